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
    "(ORDER BY region DESC, age DESC)", "(PARTITION BY region ORDER BY age DESC)", "w", "(w)", "framed",
    "(PARTITION BY age ORDER BY region DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "(ORDER BY age DESC, region rows BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "(ORDER BY age DESC, region ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)",
    "(ORDER BY age * 10 + ascii(region) % 10 DESC RANGE BETWEEN 30 PRECEDING AND 10 FOLLOWING)",
    "(ORDER BY age DESC, region GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
)  # fmt: skip
"""Each is an order without ties."""
PEERS = ("EXCLUDE GROUP", "EXCLUDE TIES", "EXCLUDE CURRENT ROW", "")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, substr('NSEW', 1 + i // 7 % 4, 1) AS region, 20 + i % 7 AS age,
                100 + i * 37 % 991 AS income FROM range(900) t(i);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income']);
        """).fetchall()
        answer = sdcduck.open_guard(con).sql(RELEASED)
        con.register("answer", answer)
        con.execute("CREATE TABLE released AS FROM answer").fetchall()
        yield con


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_window_sees_rows_in_its_own_order(
    con: duckdb.DuckDBPyConnection, guarded: Guard, function: str, window: str
) -> None:
    compared(con, guarded, f"SELECT region, age, {function} OVER {window} AS v FROM {{}} x {NAMED}")


@pytest.mark.parametrize("excluded", PEERS)
@pytest.mark.parametrize("frame", ["ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE 1 PRECEDING"])
def test_rows_that_are_equal_stay_peers(
    con: duckdb.DuckDBPyConnection, guarded: Guard, frame: str, excluded: str
) -> None:
    over = f"OVER (PARTITION BY region ORDER BY age // 2 {frame} {excluded})"
    figures = f"sum(n) {over} AS s, count(*) {over} AS c, max(age) {over} AS m"
    ranks = ", ".join(
        f"{rank}() {over} AS {rank}_" for rank in ("rank", "dense_rank", "rank_dense", "cume_dist", "percent_rank")
    )
    compared(con, guarded, f"SELECT region, age, {figures}, {ranks} FROM {{}} x")


@pytest.mark.parametrize("frame", ["RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS 1 PRECEDING EXCLUDE TIES"])
@pytest.mark.parametrize("function", ["row_number()", "lag(age)", "ntile(4)"])
def test_a_place_is_that_of_the_order_whatever_the_frame(
    con: duckdb.DuckDBPyConnection, guarded: Guard, function: str, frame: str
) -> None:
    over = f"(ORDER BY age * 10 + ascii(region) % 10 {frame})"
    compared(con, guarded, f"SELECT region, age, {function} OVER {over} AS v FROM {{}} x")


NAMED = (
    "WINDOW w AS (PARTITION BY region ORDER BY age DESC), "
    "framed AS (ORDER BY age DESC, region ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
)


def compared(con: duckdb.DuckDBPyConnection, guarded: Guard, query: str) -> None:
    """Compare the answer over released rows with DuckDB's over a table of them."""
    wanted = con.execute(query.format("released")).fetchall()
    found = guarded.sql(query.format(f"({RELEASED})")).to_pylist()
    assert sorted([*map(str, row.values())] for row in found) == sorted([*map(str, row)] for row in wanted)
    assert len(wanted) == 28
