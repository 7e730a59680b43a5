"""The database under attack: one table for each method, public tables, and a table that nobody may see.

Every confidential value is recognisable: units, measures and record keys are large numbers that occur nowhere else. The
record key of the one person aged 99 is one with which a count of one is published as 1, so that `min_units` hides it.
"""

from __future__ import annotations

import os
from datetime import date
from typing import Any

import duckdb

import sdcduck
from sdcduck.guard import REASONS, Guard, Refused, guard

LONG = bool(os.environ.get("SDCDUCK_LONG"))
"""Whether attacks are made on a larger scale, for hours: SDCDUCK_LONG=1."""

SETUP = """
CREATE TABLE people AS SELECT
    900000000001 + i * 1000003 AS person_id,
    ((i + 1) * 15485863 + 7) % 100000000 AS record_key,
    ['N', 'S', 'E'][1 + i % 3] AS region,
    20 + (i * 7) % 5 AS age,
    DATE '2020-01-01' + ((i * 11) % 40)::INTEGER AS d,
    32452843 + i * 1299721 AS income
FROM range(90) r(i);
INSERT INTO people VALUES (911111111111, 42345683, 'W', 99, DATE '1999-09-09', 982451653);
CREATE TABLE few AS FROM people;
CREATE TABLE thresholded AS FROM people;
CREATE TABLE rounded AS FROM people;
CREATE TABLE covered AS FROM people;
CREATE TABLE visits AS SELECT person_id, record_key, ['A', 'B'][1 + ((record_key + k) % 2)::INTEGER] AS ward, income + k AS cost
FROM people, range(2) r(k);
CREATE TABLE stays AS SELECT person_id, record_key, region, age FROM people, range(1 + (record_key % 3 = 0)::INTEGER);
CREATE TABLE firms AS SELECT 800000000001 + i AS firm, ['N', 'S', 'E'][1 + i % 3] AS region, ['a', 'b', 'c'][1 + (i * i // 3) % 3] AS sector,
    15485863 + i * 104729 AS turnover FROM range(24) r(i);
CREATE TABLE regions AS SELECT * FROM (VALUES ('N', 'North', 1), ('S', 'South', 2), ('E', 'East', 3), ('W', 'West', 4)) t(region, label, num);
CREATE TABLE codes AS SELECT * FROM (VALUES ('20', 1), ('020', 1), ('21', 2), ('22', 3)) t(code, band);
CREATE TABLE doubled AS FROM regions UNION ALL FROM regions;
CREATE TABLE nobody AS SELECT 424242424243 AS x;
"""
DIMENSIONS = "dimensions := ['region', 'age', 'd'], measures := ['income']"
POLICIES = (
    "FROM sdc_store_ptable('rounded_5', '(FROM sdc_rounding_ptable(5))')",
    f"FROM sdc_protect('people', unit := 'person_id', {DIMENSIONS})",
    f"FROM sdc_protect('few', unit := 'person_id', {DIMENSIONS}, min_units := 3)",
    f"FROM sdc_protect('thresholded', unit := 'person_id', {DIMENSIONS}, min_units := 3, method := 'threshold')",
    f"FROM sdc_protect('rounded', unit := 'person_id', {DIMENSIONS}, min_units := 3, method := 'rounding', base := 5)",
    "FROM sdc_publish('cells', 'SELECT region, age, d, count(*) AS n, sum(income) AS income FROM covered GROUP BY CUBE(region, age, d)', max_count := 2)",
    f"FROM sdc_protect('covered', unit := 'person_id', {DIMENSIONS}, method := 'suppression', publication := 'cells')",
    "FROM sdc_protect('visits', unit := 'person_id', dimensions := ['ward'], measures := ['cost'])",
    "FROM sdc_protect('stays', unit := 'person_id', dimensions := ['region', 'age'])",
    "FROM sdc_publish('tables', 'SELECT region, sector, count(*) AS n, sum(turnover) AS turnover FROM firms GROUP BY CUBE(region, sector)', max_count := 2)",
    "FROM sdc_protect('firms', unit := 'firm', dimensions := ['region', 'sector'], measures := ['turnover'], method := 'suppression', publication := 'tables')",
    "FROM sdc_declare_public('regions')",
    "FROM sdc_declare_public('codes')",
    "FROM sdc_declare_public('doubled')",
)
PEOPLE_TABLES = ("people", "few", "thresholded", "rounded", "covered")


class Attacked:
    """The database, its guard, and what must never be seen."""

    def __init__(self) -> None:
        self.con: duckdb.DuckDBPyConnection = sdcduck.connect(secret="the secret of the tests")
        self.con.execute(SETUP)
        for statement in POLICIES:
            self.con.execute(statement).fetchall()
        self.guard: Guard = guard(self.con)
        confidential = self.con.execute(
            "SELECT person_id, record_key, income FROM people UNION ALL SELECT cost, cost, cost FROM visits "
            "UNION ALL SELECT firm, firm, turnover FROM firms UNION ALL SELECT x, x, x FROM nobody"
        ).fetchall()
        stencil = self.con.execute("SELECT stencil FROM sdc.tables_stencil WHERE stencil > 1000").fetchall()
        self.confidential = {int(value) for row in [*confidential, *stencil] for value in row}

    def leaks(self, value: object) -> list[object]:
        """The confidential values in an answer, however deep, and in texts."""
        return leaks(value, self.confidential)

    def attempt(self, query: str, parameters: list[object] | None = None) -> list[dict[str, Any]] | Refused:
        """What an analyst gets: rows or a refusal. Anything else raised is a failure."""
        try:
            rows: list[dict[str, Any]] = self.guard.sql(query, parameters).to_pylist()
            return rows
        except Refused as problem:
            refused = problem
        known = refused.code in REASONS
        said = str(refused).replace(refused.detail, "") if refused.detail and refused.detail in query else str(refused)
        assert known
        assert not self.leaks(said), said
        return refused


def leaks(value: object, confidential: set[int]) -> list[object]:
    """The confidential values in an answer, however deep, and in texts."""
    if isinstance(value, dict):
        return [found for part in value.values() for found in leaks(part, confidential)]
    if isinstance(value, (list, tuple)):
        return [found for part in value for found in leaks(part, confidential)]
    if isinstance(value, str):
        digits = "".join(character if character.isdigit() else " " for character in value)
        return [int(word) for word in digits.split() if int(word) in confidential]
    if isinstance(value, (bool, date, bytes)) or value is None:
        return []
    try:
        number = float(value)  # type: ignore[arg-type]
        return [value] if number == number and abs(number) < 1e18 and abs(round(number)) in confidential else []
    except (TypeError, ValueError, OverflowError):
        return []
