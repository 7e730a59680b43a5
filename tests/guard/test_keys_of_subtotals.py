"""Comparisons and other conditions as keys of ROLLUP, CUBE and GROUPING SETS, which sqlglot reads in brackets only."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Guard, duckdb.DuckDBPyConnection]]:
    """Groups that are all large enough for their exact numbers, and a public table of the same records."""
    con = sdcduck.connect()
    con.execute("""
        CREATE TABLE people AS SELECT i AS id, ['North', 'South', 'West'][1 + i % 3] AS region, 10 + i * 7 % 60 AS age,
            CASE WHEN i % 11 > 0 THEN i % 5 END AS rooms FROM range(6000) t(i);
        CREATE TABLE open_people AS FROM people;
        FROM sdc_protect('people', unit := 'id', method := 'threshold', min_units := 3,
            dimensions := ['region', 'age', 'rooms']);
        FROM sdc_declare_public('open_people')""")
    open_ = guard(con)
    yield open_, con
    open_.close()
    con.close()


KEYS = (
    "ROLLUP (age > 25)", "CUBE (rooms IS NULL)", "CUBE (rooms IS NOT NULL, region)", "ROLLUP (region, p.age <> 30)",
    "GROUPING SETS (age > 25, ())", "GROUPING SETS (CUBE (age > 25, rooms = 1), (region, age < 20), region LIKE 'N%')",
    "ROLLUP (region IN ('North', 'West')), CUBE (NOT age > 25)", "CUBE (age BETWEEN 20 AND 30 AND rooms > 1 OR age > 50)",
    "CUBE ((age) > (25), rooms IS DISTINCT FROM 1)", "ROLLUP (rooms IN [1, 2], region = 'North' AND age IN (20, 21))",
    "ROLLUP ((region, age > 25), starts_with(region, 'N') IS TRUE)", "ROLLUP (CASE WHEN age > 25 THEN 1 ELSE 0 END = 1)",
)  # fmt: skip


@pytest.mark.parametrize("keys", KEYS)
def test_a_condition_is_a_key_of_subtotals(asked: tuple[Guard, duckdb.DuckDBPyConnection], keys: str) -> None:
    open_, con = asked
    for table in ("people", "open_people"):
        query = f"SELECT count(*) AS n FROM {table} p GROUP BY {keys} ORDER BY n"
        assert open_.sql(query)["n"].to_pylist() == [n for (n,) in con.execute(query).fetchall()]


@pytest.mark.parametrize("table", ["people", "open_people"])
@pytest.mark.parametrize("keys", ["age > 25, rooms IS NULL", "1, 2", "old, none", "(old, none)", "age > 25, 2"])
def test_it_is_the_same_by_number_and_by_name(
    asked: tuple[Guard, duckdb.DuckDBPyConnection], table: str, keys: str
) -> None:
    open_, con = asked
    query = (
        "SELECT age > 25 AS old, rooms IS NULL AS none, grouping(age > 25) AS g, count(*) AS n, sum(1) AS s "
        f"FROM {table} GROUP BY ROLLUP ({keys}) HAVING count(*) > 5 ORDER BY ALL"
    )
    answer = [tuple(row.values()) for row in open_.sql(query).to_pylist()]
    assert answer == con.execute(query).fetchall()


def test_parameters_in_keys(asked: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    open_, con = asked
    for age in (25, 40):
        query = "SELECT count(*) AS n FROM people GROUP BY CUBE (age > {}, region = {}) ORDER BY n"
        wanted = con.execute(query.format(age, "'West'")).fetchall()
        assert open_.sql(query.format("?", "?"), [age, "West"])["n"].to_pylist() == [n for (n,) in wanted]


def test_what_may_be_no_key_is_refused_as_it_is_elsewhere(asked: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    for keys, code in (("id > 25", "SDC040"), ("nothing > 25", "SDC030"), ("count(*) > 2", "SDC005|SDC001|SDC090")):
        with pytest.raises(Refused, match=code):
            asked[0].sql(f"SELECT count(*) AS n FROM people GROUP BY ROLLUP ({keys})")
