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


UNNAMED = """now()|today()|transaction_timestamp()|current_date|1+1|-1|+1|'A'|NULL|1::int|try_cast('1' AS int)|DATE '2020-01-01'|
INTERVAL 1 DAY|INTERVAL '1 day'|extract(year FROM DATE '2020-01-01')|year(DATE '2020-01-01')|1 <> 2|NOT true|1 IS NOT NULL|
1 NOT IN (1, 2)|1 BETWEEN 0 AND 2|'a' NOT LIKE 'b'|lower('A')|trim(' a ')|substr('abc', 1, 2)|substring('abc' FROM 1 FOR 2)|
position('a' IN 'abc')|len('a')|left('abc', 1)|ceiling(1.5)|pow(2, 3)|2^3|mod(5, 2)|5 // 2|ifnull(1, 2)|nullif(1, 2)|if(true, 1, 2)|
CASE 1 WHEN 1 THEN 'a' END|[1, 2][1]|{'a': 1}.a|map([1], [2])|1 IS DISTINCT FROM 2|((1))|1 = 1 AND 2 = 2|'a' SIMILAR TO 'b'|
1::numeric|1::hugeint|'a'::char(3)|date_diff('day', DATE '2020-01-01', DATE '2020-01-02')|count(DISTINCT area)|
sum(area) FILTER (WHERE area > 0)|string_agg(region, ',')|list(area)|count(*) FILTER (true)|median(area)|max_by(region, area)|
bool_or(area > 1)|(SELECT 1)|1 IN (SELECT 1)|100.0 * count(*) / 3|sum(area) + 1|max(area) OVER w|row_number() OVER ()|count(*) OVER ()"""


_TYPED = ("DATE '", "1::numeric", "1::hugeint", "::char")
"""DuckDB 1 has no tree of how a type was written: a cast is called by the type itself there."""
EXPRESSIONS = [
    expression
    for expression in UNNAMED.replace("\n", "").split("|")
    if not (duckdb.__version__.startswith("1.") and any(part in expression for part in _TYPED))
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_has_no_name_is_called_as_duckdb_calls_it(con: duckdb.DuckDBPyConnection, expression: str) -> None:
    query = f"SELECT {expression}, 1 AS one FROM regions WINDOW w AS (ORDER BY region)"
    one = sdcduck.open_guard(con)
    wanted = [row[0] for row in con.execute(f"DESCRIBE {query}").fetchall()]
    assert one.sql(query).column_names == [name for name, _ in one.columns(query)] == wanted


def test_of_a_set_operation_and_a_with_the_first_select_names_the_columns(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    for query in (
        "SELECT len(region), sum(income) * 2 FROM people GROUP BY 1 UNION ALL SELECT 1, 2",
        "WITH t AS (SELECT 1 AS x) SELECT x+1, x FROM t UNION SELECT 3, 4 INTERSECT SELECT 3, 4",
        "WITH t AS (SELECT 1 AS x) (SELECT x // 2 FROM t)",
    ):
        assert one.sql(query).column_names == [row[0] for row in con.execute(f"DESCRIBE {query}").fetchall()]


def test_two_of_one_name_have_none_to_ask_for(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(Refused, match="SDC030"):
        sdcduck.open_guard(con).sql('SELECT "count_star()" FROM (SELECT count(*), count(*) FROM people)')


def test_a_window_by_name_is_no_column_of_that_name(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    named = "FROM regions WINDOW w AS (ORDER BY area)"
    first, second = one.sql(f"SELECT max(area) OVER w, min(area) OVER w {named}").column_names
    assert (first, second) == tuple(
        row[0] for row in con.execute(f"DESCRIBE SELECT max(area) OVER w, min(area) OVER w {named}").fetchall()
    )
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
