"""Functions behind what they are of, as DuckDB's friendly SQL has them: sum(x).round(1)."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused

_ONLY_OF_2 = (
    []
    if duckdb.__version__.startswith("1.")
    else ["SELECT count(*), 'R1'.lower() FROM people", "SELECT (SELECT avg(p.age) FROM people p).round(-1) AS x"]
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""CREATE TABLE people AS SELECT i AS id, 'r' || i % 3 AS region, i % 90 AS age,
            DATE '2020-01-01' + (i % 400)::INTEGER AS day FROM range(900) t(i)""")
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age', 'day'],
            method := 'threshold', min_units := 1)""").fetchall()
        yield con


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, avg(age).round(1), count(*).least(100) AS few FROM people GROUP BY ALL ORDER BY ALL",
        "SELECT lower(region).upper().concat('-', 'x') AS r, count() FROM people GROUP BY r ORDER BY r",
        "SELECT (region || 'x').upper().length() AS n, count(*) FROM people GROUP BY n",
        "SELECT date_trunc('month', day).year() AS y, count(*) FROM people GROUP BY y ORDER BY y",
        "SELECT count(*) FROM people WHERE upper(region).lower() IN ('r1', 'r2')",
        "SELECT list(n).list_sort().list_sum() FROM (SELECT count(*) AS n FROM people GROUP BY region)",
        "SELECT (5).range() AS x",
        'SELECT sum("age").round(-2)::BIGINT AS "s.round(1)" FROM people',
        *_ONLY_OF_2,
    ],
)
def test_they_are_those_of_duckdb(con: duckdb.DuckDBPyConnection, query: str) -> None:
    plain = con.cursor().execute(query)
    answer = sdcduck.open_guard(con).sql(query)
    assert answer.column_names == [name for name, *_ in plain.description]
    assert [tuple(row.values()) for row in answer.to_pylist()] == plain.fetchall()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT region.lower(), count(*) FROM people GROUP BY ALL", r"lower\(x\) for x.lower\(\)"),
        ("SELECT avg(age).read_text() FROM people", "SDC010.*read_text"),
        ("SELECT list(age).list_sort() FROM people", "SDC050|SDC052"),
        ("SELECT count(*).getenv() FROM people", "SDC010.*getenv"),
    ],
)
def test_what_is_not_answered_in_front_is_not_behind(con: duckdb.DuckDBPyConnection, query: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        sdcduck.open_guard(con).sql(query)
