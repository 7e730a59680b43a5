"""What is hard to protect: levels that no pattern can give, no time, costs of nothing, numbers far apart."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck
from sdcduck.methods.linear_programs import Unsolved
from sdcduck.udfs.suppression import tables

SMALL = "SELECT county, sum(turnover) AS turnover, count(*) AS n FROM few GROUP BY ROLLUP (county)"
FAR = "SELECT a, b, sum(turnover) AS turnover, count(*) AS n FROM far GROUP BY CUBE (a, b)"
RULE = "p_percent := 20, contributor := 'firm', singleton := 'none'"
OPEN = "forced_if := 'county IS NULL'"


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(progress=False)
    con.execute(
        """CREATE TABLE few AS FROM (VALUES (1, 'A', 50.0), (2, 'B', 2.0), (3, 'B', 1.0), (4, 'B', 1.0))
            firms(firm, county, turnover);
        CREATE TABLE far AS SELECT firm, firm % 4 AS a, firm // 4 % 5 AS b,
            10.0 ** ((firm % 20 * 7 + 3) % 13) * (1 + firm // 20) / 4 AS turnover
        FROM range(60) t(firm) WHERE firm % 20 % 6 > 0 OR firm < 20"""
    )
    return con


@pytest.mark.parametrize("more", ["", ", improve := true", ", improve := true, search_seconds := 1e-6"])
def test_levels_that_no_pattern_gives_are_told_with_the_width_that_there_is(
    con: duckdb.DuckDBPyConnection, more: str
) -> None:
    """Of 54 in two counties the largest may have 54 at most, where its rule wants 60: one cell is open, and has 4."""
    call = f"$${SMALL}$$, {RULE}, {OPEN}{more}"
    shown = con.execute(f"SELECT county, status, why FROM sdc_suppress({call}) ORDER BY county").fetchall()
    assert shown == [
        ("A", "primary", "p_percent, interval cannot be wide enough"),
        ("B", "secondary", None),
        (None, "forced", "p_percent, published all the same"),
    ]
    audited = con.execute(f"SELECT county, lower, upper, exact, protected FROM sdc_audit({call}) ORDER BY county")
    assert audited.fetchall()[0] == ("A", 0, 54, False, False)
    assert con.execute(f"SELECT narrow_cells, unsafe_cells FROM sdc_publish('few', {call})").fetchall() == [(1, 0)]
    assert con.execute(f"SELECT status FROM sdc_optimum({call})").fetchall() == [("infeasible",)]


def test_no_time(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"argument 'time_limit' must be .*above 0"):
        con.execute(f"FROM sdc_optimum($${SMALL}$$, {RULE}, time_limit := 0)")
    audited = con.execute(
        f"SELECT lower, exact, protected FROM sdc_audit($${FAR}$$, {RULE}, time_limit := 0)"
    ).fetchall()
    assert audited
    assert all(lower is None and exact is not False and not protected for lower, exact, protected in audited)


@pytest.mark.parametrize("cost", ["0", "-1", "NULL", "CASE WHEN a = 1 THEN NULL WHEN a = 2 THEN -5 ELSE a END"])
def test_costs_of_nothing(con: duckdb.DuckDBPyConnection, cost: str) -> None:
    call = f"$${FAR}$$, {RULE}, cost := $q${cost}$q$"
    for more in ("", ", improve := true"):
        unsafe = f"SELECT count(*) FILTER (status = 'primary' AND NOT protected) FROM sdc_audit({call}{more})"
        assert con.execute(unsafe).fetchall() == [(0,)]
    [(ours, best, status)] = con.execute(
        f"SELECT secondary_cost, optimal_cost, status FROM sdc_optimum({call})"
    ).fetchall()
    assert status == "optimal"
    assert ours == pytest.approx(best)


def test_numbers_of_twelve_orders_of_magnitude(con: duckdb.DuckDBPyConnection) -> None:
    [(least, most)] = con.execute("SELECT min(turnover), max(turnover) FROM far").fetchall()
    assert most / least >= 1e12
    for more in ("", ", improve := true"):
        call = f"$${FAR}$$, {RULE}{more}"
        found = con.execute(
            f"SELECT count(*), bool_and(protected), bool_or(exact) FROM sdc_audit({call}) WHERE status = 'primary'"
        )
        cells, protected, exact = found.fetchall()[0]
        assert cells > 3
        assert (protected, exact) == (True, False)


def test_where_the_solver_finds_no_end_it_is_said(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise Unsolved("HiGHS ended with Unknown")

    monkeypatch.setattr(tables, "optimal_suppression", lost)
    with pytest.raises(duckdb.Error, match="too far apart for the solver"):
        con.execute(f"FROM sdc_optimum($${FAR}$$, {RULE})").fetchall()
