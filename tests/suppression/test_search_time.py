"""How long `improve` looks for a cheaper pattern: what `search_seconds` takes, and what is said of it."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck

COUNTS = "SELECT a, b, count(*) AS n FROM units GROUP BY CUBE (a, b)"
TOLD = f"SELECT secondary_cells, saved_cost, search_ended FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3"


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(progress=False)
    con.execute(
        "CREATE TABLE units AS SELECT i % 7 AS a, i // 7 AS b FROM range(63) t(i), range(1 + (i * 7919 + i * i) % 13)"
    )
    return con


def told(con: duckdb.DuckDBPyConnection, more: str = "") -> tuple[int, float | None, bool | None]:
    return con.execute(f"{TOLD}{more})").fetchall()[0]


def test_whether_all_trials_were_made_is_told(con: duckdb.DuckDBPyConnection) -> None:
    declined = ", improve := false"
    assert told(con, declined)[1:] == (None, None)
    assert told(con, f"{declined}, search_seconds := 1")[1:] == (None, None)  # nobody asked for a search
    cells, saved, ended = told(con, ", improve := true")
    assert ended
    assert (cells, saved, True) == told(con, ", improve := true, search_seconds := NULL")
    assert (cells, saved, True) == told(con, ", improve := true, search_seconds := 0")  # as long as it takes
    _, less, ended = told(con, ", improve := true, search_seconds := 1e-6")
    assert ended is False
    assert less is not None
    assert saved is not None
    assert 0 <= less <= saved


def test_with_intervals_the_same_is_told(con: duckdb.DuckDBPyConnection) -> None:
    rule = ", primary_if := 'n <= 2', protect_intervals := true, improve := true"
    assert told(con, f"{rule}, search_seconds := 1e-6")[2] is False


def test_a_rule_set_may_say_it(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CALL sdc_rules('short', max_count := 3, improve := true, search_seconds := 1e-6)")
    call = f"SELECT search_ended FROM sdc_publish('counts', $${COUNTS}$$, rules := 'short'"
    assert con.execute(f"{call})").fetchall() == [(False,)]
    assert con.execute(f"{call}, search_seconds := 60)").fetchall() == [(True,)]


@pytest.mark.parametrize("seconds", ["-1", "'nan'", "'-inf'"])
def test_no_time_at_all_is_refused(con: duckdb.DuckDBPyConnection, seconds: str) -> None:
    with pytest.raises(duckdb.Error, match="argument 'search_seconds' must be"):
        told(con, f", improve := true, search_seconds := {seconds}::DOUBLE")
