"""A database with the same records under each method, made anew for each random example."""

from __future__ import annotations

import duckdb
from attacked_database import LONG
from effort import times
from hypothesis import HealthCheck, settings
from own_numbers import with_own_numbers

import sdcduck
from sdcduck.guard import Guard, guard

EXAMPLES = 2000 if LONG else times(8, 15, older=4)
RELAXED = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=not LONG, suppress_health_check=list(HealthCheck), database=None
)

TABLES = {"cell_key": "few", "suppression": "covered", "threshold": "thresholded", "rounding": "rounded"}
"""The table under each method; `people` is under cell keys with min_units := 1."""
POLICIES = {
    "people": "",
    "few": ", min_units := 3",
    "thresholded": ", min_units := 3, method := 'threshold'",
    "rounded": ", base := 5, method := 'rounding'",
    "covered": ", method := 'suppression', publication := 'cells'",
}


class Fuzzed:
    """The database of this process, and what nobody may see of the records that are in all its tables."""

    con: duckdb.DuckDBPyConnection | None = None
    guard: Guard
    confidential: frozenset[int] = frozenset()


def database() -> tuple[duckdb.DuckDBPyConnection, Guard]:
    """The database, made when it is first asked for."""
    if Fuzzed.con is None:
        con = sdcduck.connect(secret="the secret of the tests")
        con.execute(
            "CREATE TABLE people (id BIGINT, record_key INTEGER, region VARCHAR, age INTEGER, sex VARCHAR, income BIGINT);"
            "INSERT INTO people VALUES (1, 1, 'N', 1, 'f', 1); CREATE TABLE rows_of_people AS FROM people;"
            "CREATE TABLE regions AS SELECT * FROM (VALUES ('N', 1), ('S', 2), ('E', 3)) t(region, num)"
        )
        for table in list(POLICIES)[1:]:
            con.execute(f"CREATE TABLE {table} AS FROM people")
        publish(con)
        con.execute("FROM sdc_store_ptable('rounded_5', '(FROM sdc_rounding_ptable(5))')").fetchall()
        for table, arguments in POLICIES.items():
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['region', 'age', 'sex'], measures := ['income']{arguments})"
            ).fetchall()
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        with_own_numbers(con, "income")
        Fuzzed.con, Fuzzed.guard = con, guard(con)
    return Fuzzed.con, Fuzzed.guard


def publish(con: duckdb.DuckDBPyConnection, *, zeros: bool = False) -> None:
    """The publication that answers under suppression, of the records as they are."""
    con.execute(
        "FROM sdc_publish('cells', 'SELECT region, age, sex, count(*) AS n, sum(income) AS income FROM covered "
        f"GROUP BY CUBE(region, age, sex)', max_count := 2, protect_zeros := {zeros})"
    ).fetchall()


def fill(con: duckdb.DuckDBPyConnection, records: list[tuple[object, ...]], *tables: str) -> set[int]:
    """The same records into tables, and into `people`; what of them nobody may see."""
    rows = [(970000000001 + i, 10000019 + (i * 7368787) % 89000000, *record) for i, record in enumerate(records)]
    con.execute("DELETE FROM rows_of_people")
    con.executemany("INSERT INTO rows_of_people VALUES (?, ?, ?, ?, ?, ?)", rows)
    for table in ("people", *tables):
        con.execute(f"DELETE FROM {table}; INSERT INTO {table} FROM rows_of_people")
    if "covered" in tables:
        publish(con)
    return {int(value) for row in rows for value in (row[0], row[1], row[5]) if value is not None}  # type: ignore[call-overload]
