"""Functions in windows over released rows have the values that DuckDB gives over a table of these rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard

RELEASED = "SELECT region, age, count(*) AS n, sum(income) AS income FROM people GROUP BY region, age"
FUNCTIONS = (
    "first_value(age)", "last_value(age)", "nth_value(age, 2)", "first(age)", "last(age)", "any_value(age)", "lag(age)",
    "lead(age, 2, 0)", "row_number()", "ntile(3)", "sum(n)", "max(region)",
    "first_value(CASE WHEN age % 2 = 0 THEN age END)",
)  # fmt: skip
WINDOWS = (
    "(ORDER BY region DESC, age DESC)", "(PARTITION BY region ORDER BY age DESC)", "w", "(w)",
    "(PARTITION BY age ORDER BY region DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "(ORDER BY age DESC, region ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "(ORDER BY age DESC RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
)  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, substr('NSEW', 1 + i // 7 % 4, 1) AS region, 20 + i % 7 AS age,
                100 + i * 37 % 991 AS income FROM range(900) t(i);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income']);
        """).fetchall()
        answer = sdcduck.guard(con).sql(RELEASED)
        con.register("answer", answer)
        con.execute("CREATE TABLE released AS FROM answer").fetchall()
        yield con


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.guard(con)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_window_sees_rows_in_its_own_order(
    con: duckdb.DuckDBPyConnection, guarded: Guard, function: str, window: str
) -> None:
    if "RANGE" in window and function not in ("sum(n)", "max(region)"):
        pytest.skip("rows of one age are peers, in whatever order")
    query = f"SELECT region, age, {function} OVER {window} AS v FROM {{}} x WINDOW w AS (PARTITION BY region ORDER BY age DESC)"
    wanted = con.execute(query.format("released")).fetchall()
    found = guarded.sql(query.format(f"({RELEASED})")).to_pylist()
    assert sorted([*map(str, row.values())] for row in found) == sorted([*map(str, row)] for row in wanted)
    assert len(wanted) == 28
