"""Feasibility intervals: published numbers, the intervals of GaussSuppression, and plain linear programs."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, milp
from small_tables import Cell, Record, column, dirae, dirae_inner, publication, read_csv

from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.suppression.audit import audit, feasibility_intervals, singleton_hazards
from sdcduck.methods.suppression.extremes import BlockSolver
from sdcduck.methods.suppression.matrix import DummyMatrix

Totals = NDArray[np.float64]
EMPLOYMENT = [[["region", "province", ""], ["activity", ""]]]


def employment() -> tuple[DummyMatrix, list[Cell], Totals]:
    records = dirae_inner()
    x, names = publication(records, EMPLOYMENT)
    return x, names, x.totals(column(records, "value"))


def intervals(x: DummyMatrix, names: list[Cell], z: Totals, cells: list[Cell]) -> dict[Cell, tuple[float, float]]:
    suppressed = np.array([name in cells for name in names])
    lo, hi = feasibility_intervals(x, z, suppressed)
    order = [name for name in names if name in cells]
    return {name: (a, b) for name, a, b in zip(order, lo, hi, strict=True)}


def test_the_published_employment_table_adds_up() -> None:
    _, names, z = employment()
    assert dict(zip(names, z, strict=True)) == dirae()


def test_a_cell_suppressed_alone_is_known_exactly() -> None:
    x, names, z = employment()
    found = audit(x, z, np.array([name == ("48", "01") for name in names]))
    assert (found.lo[0], found.hi[0], found.exact[0]) == (6, 6, True)


def test_intervals_of_four_cells_in_a_rectangle() -> None:
    x, names, z = employment()
    cells = [("48", "01"), ("48", "02"), ("4801", "01"), ("4801", "02")]
    assert intervals(x, names, z, cells) == {
        ("48", "01"): (0, 17),
        ("48", "02"): (0, 17),
        ("4801", "01"): (345, 362),
        ("4801", "02"): (3420, 3437),
    }


def test_knowing_one_cell_of_the_rectangle_gives_the_others_away() -> None:
    x, names, z = employment()
    cells = [("48", "01"), ("48", "02"), ("4801", "01"), ("4801", "02")]
    suppressed = np.array([name in cells for name in names])
    records = dirae_inner()
    row = next(i for i, r in enumerate(records) if (r["region"], r["activity"]) == ("48", "02"))
    found = audit(x, z, suppressed, known=(np.array([row]), np.array([11])))
    assert found.exact.all()
    assert not found.protected.any()


def test_prior_knowledge_narrows_the_intervals() -> None:
    x, names, z = employment()
    cells = [("48", "01"), ("48", "02"), ("4801", "01"), ("4801", "02")]
    suppressed = np.array([name in cells for name in names])
    found = audit(x, z, suppressed, prior=30.0, upl=np.full(len(z), 1.8), lpl=np.full(len(z), 1.8))
    # The smallest cell, 6, moves by 30 per cent at most, and it moves the others with it.
    np.testing.assert_allclose(found.hi - z[found.cells], 1.8)
    np.testing.assert_allclose(z[found.cells] - found.lo, 1.8)
    assert found.protected.all()
    whole = feasibility_intervals(x, z, suppressed, prior=30.0, integer=True)
    np.testing.assert_array_equal(whole[1] - z[suppressed], 1)


@pytest.mark.parametrize("case", ["ssc_mun_intervals", "ssc_mun_intervals_range"])
def test_intervals_of_the_small_counts_of_gausssuppression(reference_data: Path, case: str) -> None:
    folder = reference_data / "gausssuppression"
    records = read_csv(folder / "input" / "mun_accidents.csv")
    x, names = publication(records, [[["mun", ""], ["inj", ""]]])
    compare(x, names, x.totals(column(records, "freq")), read_csv(folder / f"{case}.csv"), ("mun", "inj"))


def test_intervals_of_the_magnitudes_of_gausssuppression(reference_data: Path) -> None:
    folder = reference_data / "gausssuppression"
    records = read_csv(folder / "input" / "magnitude1.csv")
    x, names = publication(records, [[["sector4", ""], ["geo", ""]]])
    expected = read_csv(folder / "sdc_mag_p10_intervals.csv")
    assert compare(x, names, x.totals(column(records, "value")), expected, ("sector4", "geo")) == 11


def compare(x: DummyMatrix, names: list[Cell], z: Totals, expected: list[Record], dims: tuple[str, str]) -> int:
    """The final intervals, and those before cells were added for the sake of wider intervals (lo_1, up_1)."""
    by_name = {(record[dims[0]], record[dims[1]]): record for record in expected}
    count = 0
    for low, high, stage in (("lo", "up", "final"), ("lo_1", "up_1", "first")):
        if low not in expected[0]:
            continue

        def hidden(name: Cell, stage: str = stage) -> bool:
            record = by_name[name[0], name[1]]
            return record["suppressed"] == "1" and (stage == "final" or record.get("suppressed_integer") != "3")

        suppressed = np.array([name in by_name and hidden(name) for name in names])
        lo, hi = feasibility_intervals(x, z, suppressed)
        for name, a, b in zip(itertools.compress(names, suppressed), lo, hi, strict=True):
            record = by_name[name[0], name[1]]
            if record[low] != "NA":
                assert (a, b) == pytest.approx((float(record[low]), float(record[high])), abs=1e-9), (stage, name)
                count += stage == "final"
    assert count
    return count


def random_publication(rng: np.random.Generator) -> tuple[DummyMatrix, NDArray[np.int64]]:
    """Inner cells of a three-way table with a grouping that cuts across, and some of the cells of linked tables."""
    shape = rng.integers(2, 4, size=3)
    records = [
        {"a": str(a), "b": str(b), "c": str(c), "g": str((a + b) % 2)}
        for a, b, c in itertools.product(*(range(s) for s in shape))
    ]
    kept = [r for r in records if rng.random() < 0.85] or records
    tables = [[["a", "g", ""], ["b", ""], ["c", ""]], [["a", ""], ["b", "c", ""]]]
    x, _ = publication(kept, tables[: rng.integers(1, 3)])
    return x, rng.integers(0, 6, size=x.rows)


def dense(x: DummyMatrix) -> NDArray[np.float64]:
    matrix = np.zeros((x.rows, x.columns))
    matrix[x.indices, np.repeat(np.arange(x.columns), np.diff(x.indptr))] = 1
    return matrix


@pytest.mark.parametrize("kind", ["plain", "bounds", "prior", "known"])
@settings(max_examples=times(5, 15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.15, 0.4, 0.8]))
def test_intervals_are_those_of_two_linear_programs_a_cell(kind: str, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = random_publication(rng)
    z = x.totals(y)
    suppressed = rng.random(x.columns) < share
    matrix, free = dense(x), ~suppressed
    low, high = np.zeros(x.rows), np.full(x.rows, np.inf)
    options: dict[str, object] = {}
    a_ub, b_ub = None, None
    if kind == "bounds":
        low = rng.choice([0.0, 1.0, -np.inf], size=x.rows)
        low = np.where(low == 1, np.maximum(y - 2, 0), low)
        high = np.where(rng.random(x.rows) < 0.5, y + 2.0, np.inf)
        options = {"lower": low, "upper": high}
    elif kind == "known":
        rows = np.flatnonzero(rng.random(x.rows) < 0.2)
        low[rows] = high[rows] = y[rows]
        options = {"known": (rows, y[rows])}
    elif kind == "prior":
        options = {"prior": 40.0}
        hidden = matrix[:, suppressed].T
        a_ub = np.vstack([hidden, -hidden])
        b_ub = np.concatenate([1.4 * z[suppressed], -0.6 * z[suppressed]])
    lo, hi = feasibility_intervals(x, z, suppressed, jobs=1, **options)  # type: ignore[arg-type]
    for i, c in enumerate(np.flatnonzero(suppressed)):
        for sign, found in ((1, lo[i]), (-1, hi[i])):
            plain = linprog(
                sign * matrix[:, c],
                A_eq=matrix[:, free].T,
                b_eq=z[free],
                A_ub=a_ub,
                b_ub=b_ub,
                bounds=list(zip(low, high, strict=True)),
            )
            expected = sign * plain.fun if plain.status == 0 else -sign * np.inf
            assert found == pytest.approx(expected, abs=1e-6)


@settings(max_examples=times(8, 25), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_integer_intervals_are_those_of_two_integer_programs_a_cell(seed: int, prior: bool) -> None:
    rng = np.random.default_rng(seed)
    x, y = random_publication(rng)
    z = x.totals(y)
    suppressed = rng.random(x.columns) < 0.4
    lo, hi = feasibility_intervals(x, z, suppressed, integer=True, prior=60.0 if prior else None, jobs=1)
    matrix = dense(x)
    reach = 0.6 * z if prior else np.full(x.columns, np.inf)
    least, most = np.where(suppressed, z - reach, z), np.where(suppressed, z + reach, z)
    for i, c in enumerate(np.flatnonzero(suppressed)):
        for sign, found in ((1, lo[i]), (-1, hi[i])):
            plain = milp(sign * matrix[:, c], constraints=(matrix.T, least, most), integrality=np.ones(x.rows))
            expected = sign * plain.fun if plain.status == 0 else -sign * np.inf
            assert found == pytest.approx(expected, abs=1e-6)


def test_the_value_of_a_suppressed_cell_lies_in_its_interval_and_threads_change_nothing() -> None:
    rng = np.random.default_rng(5)
    records = [{"a": f"{a}", "b": f"{b}", "g": f"{a % 4}"} for a in range(40) for b in range(12)]
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]]])
    z = x.totals(rng.gamma(0.3, 1000.0, size=x.rows))
    suppressed = rng.random(x.columns) < 0.3
    seen: list[int] = []
    one = feasibility_intervals(x, z, suppressed, jobs=1)
    two = feasibility_intervals(x, z, suppressed, jobs=2, progress=lambda done, _: seen.append(done))
    np.testing.assert_array_equal(one, two)
    assert sorted(seen) == seen
    assert (one[0] <= z[suppressed] + 1e-6).all()
    assert (one[1] >= z[suppressed] - 1e-6).all()


def test_large_magnitudes() -> None:
    rng = np.random.default_rng(6)
    records = [{"a": f"{a}", "b": f"{b}"} for a in range(6) for b in range(6)]
    x, _ = publication(records, [[["a", ""], ["b", ""]]])
    y = rng.integers(1, 10, size=x.rows) * 1e9 / 7
    suppressed = np.diff(x.indptr) == 1
    small, large = (feasibility_intervals(x, x.totals(v), suppressed) for v in (y / 1e9, y))
    np.testing.assert_allclose(large[1], small[1] * 1e9, rtol=1e-7)
    np.testing.assert_allclose(large[0], small[0] * 1e9, rtol=1e-7, atol=10)


def test_nothing_published_leaves_everything_open() -> None:
    x, _ = publication([{"a": "1"}, {"a": "2"}], [[["a", ""]]])
    lo, hi = feasibility_intervals(x, [3, 4, 7], np.ones(3, dtype=bool))
    assert list(lo) == [0, 0, 0]
    assert list(hi) == [np.inf] * 3
    lo, hi = feasibility_intervals(x, [3, 4, 7], np.ones(3, dtype=bool), upper=5)
    assert list(hi) == [5, 5, 10]


def test_two_singletons_do_not_protect_each_other() -> None:
    # Row r: 50 of firm 1, 30 of firm 2 and 100 of many, the row total is published; no columns.
    records = [{"a": "r", "b": "1"}, {"a": "r", "b": "2"}, {"a": "r", "b": "3"}]
    x, names = publication(records, [[["a"], ["b", ""]]])
    y = np.array([50.0, 30.0, 100.0])
    z = x.totals(y)
    suppressed = np.array([name[1] in ("1", "2") for name in names])
    assert not audit(x, z, suppressed).exact.any()
    found = singleton_hazards(x, z, suppressed, y, np.array([1, 2, 0]))
    assert found.exact.all()
    assert not found.protected.any()
    all_three = suppressed | np.array([name[1] == "3" for name in names])
    found = singleton_hazards(x, z, all_three, y, np.array([1, 2, 0]), upl=np.full(4, 10.0))
    assert not found.exact.any()
    assert found.protected.all()
    # Firm 1 sees 130 left for the two others, firm 2 sees 150.
    assert dict(zip(found.cells, zip(found.lo, found.hi, strict=True), strict=True)) == {
        names.index(("r", "1")): (0, 150),
        names.index(("r", "2")): (0, 130),
        names.index(("r", "3")): (0, 130),
    }


@settings(max_examples=times(10, 30), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, -2.0, -np.inf]))
def test_contributors_learn_what_an_attacker_with_their_cells_learns(seed: int, lower: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = random_publication(rng)
    z = x.totals(y)
    suppressed = rng.random(x.columns) < 0.5
    owner = rng.integers(0, 4, size=x.rows)
    level = np.ceil(0.2 * z)
    found = singleton_hazards(x, z, suppressed, y, owner, upl=level, lower=lower, jobs=1)
    width = np.full(len(found.cells), np.inf)
    safe = np.ones(len(found.cells), dtype=bool)
    for one in range(4):
        rows = np.flatnonzero(owner == one) if one else np.zeros(0, dtype=int)
        his = audit(x, z, suppressed, upl=level, lower=lower, known=(rows, y[rows]), jobs=1)
        others = x.totals(~np.isin(np.arange(x.rows), rows) * 1)[his.cells] > 0
        width = np.where(others, np.minimum(width, his.hi - his.lo), width)
        safe &= his.protected | ~others
    np.testing.assert_allclose(found.hi - found.lo, width, atol=1e-6)
    np.testing.assert_array_equal(found.protected, safe)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_ends_the_audit(jobs: int) -> None:
    rng = np.random.default_rng(5)
    records = [{"a": f"{a}", "b": f"{b}", "g": f"{a % 4}"} for a in range(40) for b in range(12)]
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]]])
    calls: list[int] = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        feasibility_intervals(
            x, x.totals(rng.integers(0, 9, x.rows)), rng.random(x.columns) < 0.5, jobs=jobs, progress=stop
        )
    assert 1 <= len(calls) <= jobs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"z": [1.0, 2.0]}, "cell totals must be 3 numbers"),
        ({"z": [1.0, np.nan, 3.0]}, "finite"),
        ({"suppressed": [0, 1, 0]}, "booleans"),
        ({"lower": 2.0, "upper": 1.0}, "not above"),
        ({"cells": [True, True, True]}, "suppressed cells only"),
        ({"prior": -1.0}, "percentage"),
        ({"known": ([5], [1.0])}, "row numbers"),
        ({"z": [1.0, 2.0, 4.0], "suppressed": np.zeros(3, dtype=bool)}, "agree"),
        ({"z": [-1.0, 2.0, 1.0], "suppressed": np.array([False, True, False])}, "agree"),
        ({"upper": 1.4}, "agree"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], message: str) -> None:
    # Columns: cell 1, total, cell 2.
    x = DummyMatrix.from_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), (2, 3))
    arguments: dict[str, object] = {"z": [1.0, 3.0, 2.0], "suppressed": np.array([True, False, True])}
    with pytest.raises(ValueError, match=message):
        feasibility_intervals(x, **(arguments | options))  # type: ignore[arg-type]


def test_an_interruption_is_heard_before_the_first_contributor() -> None:
    x, _ = publication([{"a": f"{a}", "b": f"{b}"} for a in range(9) for b in range(9)], [[["a", ""], ["b", ""]]])

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    y = np.arange(x.rows)
    suppressed = np.diff(x.indptr) == 1
    with pytest.raises(KeyboardInterrupt):
        singleton_hazards(x, x.totals(y), suppressed, y, np.zeros(x.rows, dtype=int), jobs=1, progress=stop)


def test_what_there_was_no_time_for_is_neither_bounded_nor_protected() -> None:
    x, _ = publication([{"a": f"{a}", "b": f"{b}"} for a in range(5) for b in range(5)], [[["a", ""], ["b", ""]]])
    y = np.arange(1.0, x.rows + 1)
    z, suppressed = x.totals(y), np.diff(x.indptr) == 1
    before = time.monotonic()
    level, owners = np.ones(x.columns), np.arange(x.rows) % 7
    for found in (
        audit(x, z, suppressed, upl=level, until=before),
        audit(x, z, suppressed, until=before),
        singleton_hazards(x, z, suppressed, y, owners, upl=level, until=before),
    ):
        assert len(found.cells) == 25
        assert np.isnan(found.lo).all()
        assert np.isnan(found.hi).all()
        assert not (found.bounded | found.protected | found.exact).any()
    # Time enough for the outsiders only: what they know stays exact, the rest is open.
    outside = audit(x, z, suppressed, upl=level)
    assert outside.bounded.all()
    found = singleton_hazards(x, z, suppressed, y, owners, upl=level, outside=outside, until=before)
    assert not (found.bounded | found.protected).any()
    nobody = singleton_hazards(x, z, suppressed, y, 0 * owners, upl=level, outside=outside, until=before)
    np.testing.assert_array_equal(nobody.protected, outside.protected)
    assert nobody.bounded.all()
    whole = singleton_hazards(x, z, suppressed, y, owners, upl=level, until=np.inf)
    np.testing.assert_array_equal(whole.lo, singleton_hazards(x, z, suppressed, y, owners, upl=level).lo)


def test_what_the_solver_cannot_tell_is_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = publication([{"a": f"{a}", "b": f"{b}"} for a in range(5) for b in range(5)], [[["a", ""], ["b", ""]]])
    y = np.arange(1.0, x.rows + 1)
    z, suppressed = x.totals(y), np.diff(x.indptr) == 1
    optimum = BlockSolver.optimum
    calls: list[int] = []

    def fails(self: BlockSolver, index: NDArray[np.int32], slope: Totals, *, maximise: bool) -> tuple[float, Totals]:
        calls.append(1)
        if len(calls) >= 3:
            raise Unsolved("HiGHS ended with Unknown")
        return optimum(self, index, slope, maximise=maximise)

    whole = audit(x, z, suppressed, jobs=1)
    monkeypatch.setattr(BlockSolver, "optimum", fails)
    found = audit(x, z, suppressed, jobs=1, until=np.inf)
    assert 0 < np.count_nonzero(~found.bounded) < 25
    assert not found.protected[~found.bounded].any()
    np.testing.assert_array_equal(found.lo[found.bounded], whole.lo[found.bounded])
    calls.clear()
    with pytest.raises(Unsolved):
        audit(x, z, suppressed, jobs=1)
