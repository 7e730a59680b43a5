"""What `cost` says of cells: each the same, a column, or nothing that can be."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck

FIRMS = """SELECT county, branch, sum(turnover) AS turnover, count(*) AS n FROM firms GROUP BY CUBE (county, branch)"""
RULE = "p_percent := 20, contributor := 'firm', singleton := 'none', protect_intervals := true"


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(progress=False)
    con.execute(
        """CREATE TABLE firms AS SELECT i AS firm, i % 4 AS county, (i // 4) % 5 AS branch,
            (50 + 60000 / (1 + (i * 7919) % 97) ** 2)::INTEGER AS turnover FROM range(100) t(i)"""
    )
    return con


def pattern(con: duckdb.DuckDBPyConnection, more: str = "", query: str = FIRMS) -> tuple[int, int]:
    """Secondary cells, and how many primary ones are not protected."""
    call = f"$${query}$$, {RULE}{more}"
    return con.execute(
        f"""SELECT count(*) FILTER (status = 'secondary'), count(*) FILTER (status = 'primary' AND NOT protected)
        FROM sdc_audit({call})"""
    ).fetchall()[0]


def test_each_cell_the_same(con: duckdb.DuckDBPyConnection) -> None:
    by_value, narrow = pattern(con, ", improve := true")
    by_cells, narrow_too = pattern(con, ", improve := true, cost := 'cells'")
    assert (narrow, narrow_too) == (0, 0)
    assert by_cells <= by_value
    fewest = f"SELECT secondary_cost, optimal_cost, status FROM sdc_optimum($${FIRMS}$$, {RULE}, cost := ' Cells ')"
    [(cost, optimum, status)] = con.execute(fewest).fetchall()
    assert status == "optimal"
    assert by_cells == pytest.approx(cost)
    assert optimum <= cost <= 1.1 * optimum


def test_improving_never_ends_dearer(con: duckdb.DuckDBPyConnection) -> None:
    told = "SELECT secondary_cells, saved_cells, saved_cost FROM sdc_publish('firms',"
    con.execute(f"FROM sdc_publication('firms', $${FIRMS}$$)")
    [(before, *_)] = con.execute(f"{told} {RULE})").fetchall()
    [(after, cells, cost)] = con.execute(f"{told} {RULE}, improve := true)").fetchall()
    assert cells == before - after
    assert cost >= 0


def test_a_column_of_that_name_is_the_column(con: duckdb.DuckDBPyConnection) -> None:
    named = FIRMS.replace("count(*) AS n", "count(*) AS cells")
    assert pattern(con, ", cost := 'cells'", named) == pattern(con, ", cost := 'n'")


@pytest.mark.parametrize("cost", ["n / 0", "'x'"])
def test_what_is_no_number_is_refused(con: duckdb.DuckDBPyConnection, cost: str) -> None:
    with pytest.raises(Exception, match="argument 'cost' is NaN, infinite or no number"):
        pattern(con, f", cost := $q${cost}$q$")


def test_costs_of_nothing_and_less(con: duckdb.DuckDBPyConnection) -> None:
    for cost in ("0", "-1", "NULL"):
        assert pattern(con, f", cost := '{cost}'")[1] == 0


HOLDINGS = "contributor := 'coalesce(''group '' || holding, firm::VARCHAR)'"


@pytest.mark.parametrize("whose", [HOLDINGS, f"weight := 'w', {HOLDINGS}", "weight := 'w', contributor := 'firm'"])
@pytest.mark.parametrize("more", ["", ", improve := true, cost := 'cells'"])
def test_holdings_and_weights_have_the_same_protection(con: duckdb.DuckDBPyConnection, whose: str, more: str) -> None:
    """Every interval is as wide as the rule wants of contributors added up or weighted, by default and for fewest cells."""
    con.execute("""CREATE TABLE owned AS SELECT firm, county, branch, turnover, w,
        CASE WHEN firm % 3 = 0 THEN firm // 20 END AS holding FROM (SELECT *, 1 + firm % 3 / 10 AS w FROM firms)""")
    query = FIRMS.replace("firms", "owned")
    if "weight" in whose:
        query = query.replace("sum(turnover)", "sum(turnover * w)")
    call = f"$${query}$$, p_percent := 30, {whose}, singleton := 'none'"
    count = """SELECT count(*) FILTER (status = 'primary'), count(*) FILTER (status = 'secondary'),
        count(*) FILTER (status = 'primary' AND NOT protected) FROM sdc_audit("""
    [(primary, cells, narrow)] = con.execute(f"{count}{call}{more})").fetchall()
    assert primary > 1
    assert cells > 0
    assert narrow == 0
    if not more:
        [(_, fewer, open_to_attack)] = con.execute(f"{count}{call}, protect_intervals := false)").fetchall()
        assert fewer < cells
        assert open_to_attack > 0
