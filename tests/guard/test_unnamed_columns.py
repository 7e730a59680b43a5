"""Columns without a name, of subqueries and CTEs, have the names that DuckDB gives them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, 'r' || i % 3 AS region, i % 100 AS income FROM range(90) t(i);
            CREATE TABLE regions AS SELECT 'r' || i AS region, i AS area FROM range(3) t(i);
            FROM sdc_declare_public('regions');
            FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'],
                method := 'threshold', min_units := 1);
        """).fetchall()
        yield con


@pytest.mark.parametrize(
    "query",
    [
        'SELECT "count_star()" FROM (SELECT count(*) FROM people)',
        'SELECT "count_star()" + 1 AS n FROM (SELECT count(*) FROM people) t',
        "SELECT * FROM (SELECT count(*) FROM people)",
        "SELECT * FROM (SELECT region, count(*), sum(income), avg(income) FROM people GROUP BY region) ORDER BY region",
        'SELECT "sum(income)" AS s FROM (SELECT region, sum(income) FROM people GROUP BY ALL) ORDER BY 1',
        'WITH t AS (SELECT region, count(*) FROM people GROUP BY 1) SELECT "count_star()", region FROM t ORDER BY 2',
        "WITH t AS (SELECT upper(region), count(*) FROM people GROUP BY 1) FROM t ORDER BY 1",
        'SELECT max("count_star()") AS n FROM (SELECT region, count(*) FROM people GROUP BY 1 HAVING count(*) > 1)',
        'SELECT t."count_star()" FROM (SELECT count(*) FROM people UNION ALL SELECT count(*) FROM regions) t ORDER BY 1',
        "SELECT * FROM (SELECT region, count(*) FROM people GROUP BY 1 ORDER BY count(*), region)",
        'SELECT "count(area)", "max(area)" FROM (SELECT count(area), max(area) FROM regions)',
        "SELECT n FROM (SELECT count(*) FROM people) t(n)",
        "WITH t(r, n) AS (SELECT region, count(*) FROM people GROUP BY 1) SELECT r, n FROM t ORDER BY r",
        'SELECT "count_star()" FROM (SELECT region AS "count_star()" FROM people GROUP BY 1) ORDER BY 1',
        "SELECT r.area, n.* FROM regions r JOIN (SELECT region, count(*) FROM people GROUP BY 1) n USING (region) ORDER BY 1",
    ],
)
def test_names_types_and_rows_are_those_of_duckdb(con: duckdb.DuckDBPyConnection, query: str) -> None:
    plain = con.execute(f"DESCRIBE {query}").fetchall()
    one = sdcduck.open_guard(con)
    assert one.columns(query) == [row[:2] for row in plain]
    assert [tuple(row.values()) for row in one.sql(query).to_pylist()] == con.execute(query).fetchall()


def test_two_of_one_name_have_none_to_ask_for(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(Refused, match="SDC030"):
        sdcduck.open_guard(con).sql('SELECT "count_star()" FROM (SELECT count(*), count(*) FROM people)')


def test_a_window_by_name_is_no_column_of_that_name(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    named = "FROM regions WINDOW w AS (ORDER BY area)"
    first, second = one.sql(f"SELECT max(area) OVER w, min(area) OVER w {named}").column_names
    assert (first, second) == ("max(area) over w", "min(area) over w")
    for query in (
        f"SELECT w FROM (SELECT max(area) OVER w, -area AS w {named}) ORDER BY w",
        f"SELECT max(area) OVER w AS a, -area AS w {named} ORDER BY w",
        f"SELECT w FROM (SELECT min(area) OVER w, area AS w {named} UNION ALL BY NAME SELECT 7 AS w) ORDER BY w",
    ):
        assert [tuple(row.values()) for row in one.sql(query).to_pylist()] == con.execute(query).fetchall()
    with pytest.raises(Refused, match="SDC030"):
        one.sql(f"SELECT w FROM (SELECT max(area) OVER w {named})")
    asked = f"SELECT max(area) OVER w, 3 AS w {named} ORDER BY w, 1"
    assert [tuple(row.values()) for row in one.sql(asked).to_pylist()] == con.execute(asked).fetchall()
