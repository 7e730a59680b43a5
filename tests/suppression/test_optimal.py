"""The cheapest suppression: optima of the published employment table, and all patterns tried on tiny tables."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_tables import Cell, column, dirae_inner, publication, read_csv

import sdcduck
from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.optimal import OptimalPattern, optimal_suppression

Array = NDArray[Any]


def asked(
    province: str, primaries: list[Cell] | None = None
) -> tuple[list[Cell], DummyMatrix, Array, Array, Array, Array]:
    """Within one province: names, cells, numbers of inner cells and of all, which are primary, and their levels.

    Primary cells: the given ones, or all inner ones of 1 to 5. Levels: a fifth, rounded up.
    """
    records = dirae_inner(province)
    x, names = publication(records, [[["region", ""], ["activity", ""]]])
    y = column(records, "value")
    z = x.totals(y)
    primary = (z >= 1) & (z <= 5) if primaries is None else np.array([name in primaries for name in names])
    return names, x, y, z, primary, np.ceil(0.2 * z)


def solve(
    province: str, primaries: list[Cell] | None = None
) -> tuple[OptimalPattern, dict[Cell, tuple[float, float]], set[Cell]]:
    """The cheapest pattern, the intervals of the primary cells in it, and all its cells."""
    names, x, y, z, primary, level = asked(province, primaries)
    found = optimal_suppression(x, y, primary, level)
    checked = audit(x, z, found.suppressed, upl=level, lpl=level, cells=primary)
    assert checked.protected.all()
    intervals = {names[c]: (lo, hi) for c, lo, hi in zip(checked.cells, checked.lo, checked.hi, strict=True)}
    return found, intervals, set(itertools.compress(names, found.suppressed))


@pytest.mark.parametrize("also", [[], [("48", "10")]])
def test_optimum_of_province_48(also: list[Cell]) -> None:
    found, intervals, cells = solve("48", [("48", "01"), *also])
    assert (found.status, found.gap) == ("optimal", 0)
    assert found.objective == pytest.approx(575)
    assert cells == {("48", "01"), ("48", "10"), ("4801", "01"), ("4801", "10")}
    assert intervals["48", "01"] == (0, 9)


def test_optimum_of_province_01() -> None:
    found, intervals, cells = solve("01")
    assert found.objective == pytest.approx(44)
    assert cells - set(intervals) == {("0105", "05"), ("0105", "06")}
    assert intervals == {
        ("0101", "05"): (0, 11),
        ("0101", "06"): (0, 11),
        ("0101", "07"): (0, 8),
        ("0105", "07"): (0, 8),
    }


def test_optimum_of_province_20() -> None:
    found, intervals, _ = solve("20")
    assert found.objective == pytest.approx(3681)
    assert intervals == {("20", "09"): (0, 9)}


@pytest.mark.parametrize(
    ("province", "primary", "value", "least"), [("48", ("48", "01"), 6, 575), ("20", ("20", "09"), 2, 3681)]
)
def test_the_optimum_of_a_condition_in_sql(province: str, primary: Cell, value: int, least: int) -> None:
    """A condition wants no width, but its cell must not be given away: as for small counts, a fifth."""
    con = sdcduck.connect()
    con.execute("CREATE TABLE cells (region VARCHAR, activity VARCHAR, n BIGINT)")
    inner = [(record["region"], record["activity"], int(record["value"])) for record in dirae_inner(province)]
    con.executemany("INSERT INTO cells VALUES (?, ?, ?)", inner)
    con.execute("CREATE TABLE people AS SELECT region, activity, u FROM cells LEFT JOIN range(100000) t(u) ON u < n")
    query = "SELECT region, activity, count(u) AS n FROM people GROUP BY CUBE (region, activity)"
    condition = f"region = '{primary[0]}' AND activity = '{primary[1]}'"
    columns = "primary_cells, optimal_cost, secondary_cost >= optimal_cost, status"
    found = con.execute(f"SELECT {columns} FROM sdc_optimum('{query}', primary_if := $${condition}$$)").fetchall()
    con.close()
    assert found == [(1, least - value, True, "optimal")]


@settings(max_examples=times(8, 25), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_pattern_of_a_tiny_linked_table_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = [{"a": str(a), "b": str(b), "g": str((a + b) % 2)} for a in range(2) for b in range(3)]
    records = [r for r in records if rng.random() < 0.9] or records
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]]][:1])
    keep = np.sort(rng.permutation(x.columns)[:9])
    pairs = np.column_stack([x.indices, np.repeat(np.arange(x.columns), np.diff(x.indptr))])
    position = np.full(x.columns, -1)
    position[keep] = np.arange(len(keep))
    pairs = pairs[position[pairs[:, 1]] >= 0]
    x = DummyMatrix.from_pairs(pairs[:, 0], position[pairs[:, 1]], (x.rows, len(keep)))
    y = rng.integers(0, 8, size=x.rows)
    z = x.totals(y)
    primary = (z > 0) & (rng.random(x.columns) < 0.25)
    level = np.ceil(0.3 * z)
    found = optimal_suppression(x, y, primary, level)
    optional = np.flatnonzero((z > 0) & ~primary)
    cheapest = np.inf
    for size in range(len(optional) + 1):
        for extra in itertools.combinations(optional, size):
            pattern = primary.copy()
            pattern[list(extra)] = True
            if (
                z[pattern].sum() < cheapest
                and audit(x, z, pattern, upl=level, lpl=level, cells=primary, jobs=1).protected.all()
            ):
                cheapest = float(z[pattern].sum())
    if cheapest == np.inf:
        assert found.status == "infeasible"
    else:
        assert found.status == "optimal"
        assert found.objective == pytest.approx(cheapest)
        assert audit(x, z, found.suppressed, upl=level, lpl=level, cells=primary, jobs=1).protected.all()


def test_out_of_time_still_protects() -> None:
    _, x, y, z, primary, level = asked("01")
    found = optimal_suppression(x, y, primary, level, time_limit=0.0)
    assert found.status == "time limit"
    assert found.bound <= 44 <= found.objective
    assert 0 <= found.gap <= 1
    assert audit(x, z, found.suppressed, upl=level, lpl=level, cells=primary).protected.all()


def test_out_of_time_the_pattern_that_was_known_is_given() -> None:
    _, x, y, z, primary, level = asked("01")
    best = optimal_suppression(x, y, primary, level)
    short = optimal_suppression(x, y, primary, level, time_limit=0.0, start=best.suppressed)
    assert (short.status, short.objective) == ("time limit", best.objective)
    assert short.bound <= best.objective
    again = optimal_suppression(x, y, primary, level, start=best.suppressed)
    assert (again.status, again.objective) == ("optimal", best.objective)
    # What does not protect is no start.
    wrong = optimal_suppression(x, y, primary, level, time_limit=0.0, start=primary)
    assert wrong.objective >= best.objective
    assert audit(x, z, wrong.suppressed, upl=level, lpl=level, cells=primary).protected.all()


def test_a_cell_that_nothing_protects_is_infeasible() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2))
    found = optimal_suppression(x, [3, 2], np.array([True, False]), [1.0, 1.0], ineligible=np.array([False, True]))
    assert found.status == "optimal"  # the inner cell that is not published may hold the difference
    x = DummyMatrix.from_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), (2, 3))
    found = optimal_suppression(
        x, [3, 5], np.array([True, False, False]), [1.0] * 3, ineligible=np.array([False, True, True])
    )
    assert found.status == "infeasible"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1.0]}, "inner values must be 2"),
        ({"y": [1.0, -1.0]}, "negative"),
        ({"primary": [1, 0, 0]}, "booleans"),
        ({"upl": [np.inf, 0, 0]}, "finite"),
        ({"cost": [1.0]}, "costs must be 3"),
        ({"ineligible": [0, 0, 1]}, "booleans"),
        ({"start": [0, 0, 1]}, "start must be 3 booleans"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], message: str) -> None:
    x = DummyMatrix.from_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), (2, 3))
    arguments: dict[str, object] = {"y": [3.0, 5.0], "primary": np.array([True, False, False]), "upl": [1.0, 0, 0]}
    with pytest.raises(ValueError, match=message):
        optimal_suppression(x, **(arguments | options))  # type: ignore[arg-type]


def test_no_dearer_than_the_optimum_of_sdctable(reference_data: Path) -> None:
    # sdcTable's protection levels are 1 by default; its cost is the count.
    folder = reference_data / "sdctable"
    records = read_csv(folder / "input_mun_accidents.csv")
    x, names = publication(records, [[["mun", ""], ["inj", ""]]])
    y = column(records, "freq")
    z = x.totals(y)
    by_name = {(r["mun"], r["inj"]): r["sdcStatus"] for r in read_csv(folder / "mun_OPT.csv")}
    status = np.array([by_name[name[0], name[1]] for name in names])
    found = optimal_suppression(x, y, status == "u", np.ones(len(z)))
    assert found.status == "optimal"
    assert found.objective == pytest.approx(z[np.isin(status, ["u", "x"])].sum())
