"""Cheaper patterns by integer programming over some cells at a time: cuts that hold, patterns that protect."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from skewed_tables import protects, table, value

from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.suppression import intervals, optimal
from sdcduck.methods.suppression.covering import Covering
from sdcduck.methods.suppression.cuts import Attacker, Cut
from sdcduck.methods.suppression.intervals import Search, Widening, widen_intervals
from sdcduck.methods.suppression.optimal import optimal_suppression

Booleans = NDArray[np.bool_]


def meets(cut: Cut, pattern: Booleans) -> bool:
    return float(cut.coefficients @ pattern[cut.cells]) >= 1 - 1e-6


@pytest.mark.parametrize(("shape", "seed"), [((5, 6), 1), ((3, 4, 3), 3)])
def test_the_optimum_is_come_near_from_everything_and_meets_all_cuts(shape: tuple[int, ...], seed: int) -> None:
    x, y, primary, width = table(shape, seed)
    z = np.asarray(x.totals(y))
    best = optimal_suppression(x, y, primary, width)
    assert best.status == "optimal"
    attacker = Attacker(x, y, z, primary, width, width, lambda: None)
    covering = Covering(attacker, z, primary, z == 0, (), seed=1)
    pattern = primary | (z > 0)
    for _ in range(60):
        pattern = found if (found := covering.cheaper(pattern)) is not None else pattern
    assert protects(x, y, pattern, primary, width)
    assert best.objective <= value(x, y, pattern) * (1 + 1e-9) <= 1.05 * best.objective
    cuts = [Cut(row.indices, row.data) for row in covering.matrix]
    assert len(cuts) > 20
    assert all(meets(cut, best.suppressed) for cut in cuts)
    assert covering.work > attacker.work > 0


def test_what_does_not_protect_is_cut_off() -> None:
    x, y, primary, width = table((5, 6), 2)
    attacker = Attacker(x, y, np.asarray(x.totals(y)), primary, width, width, lambda: None)
    cuts = attacker.cuts(primary.astype(np.float64))
    assert cuts
    assert not any(meets(cut, primary) for cut in cuts)
    assert all(meets(cut, np.ones_like(primary)) for cut in cuts)
    assert attacker.cuts(np.ones(x.columns)) == []
    assert attacker.cuts(primary.astype(np.float64), most=0) is None


def test_a_search_goes_on_with_it_where_integer_programming_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimal, "_HARD", 0)
    x, y, primary, width = table((5, 6), 3)
    z = np.asarray(x.totals(y))

    def searched() -> Widening:
        return widen_intervals(
            x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
            search=Search(trials=2),
        )  # fmt: skip

    found = searched()
    assert (found.trials, found.ended) == (2, True)
    assert protects(x, y, found.suppressed, primary, width)
    np.testing.assert_array_equal(searched().suppressed, found.suppressed)
    monkeypatch.setattr(intervals, "_SMALL", 0)
    assert value(x, y, found.suppressed) < value(x, y, searched().suppressed)


@pytest.mark.parametrize("fixed", [False, True])
def test_where_nothing_can_be_moved_nothing_is_searched(fixed: bool) -> None:
    x, y, primary, _ = table((2, 2), 0)
    primary[:] |= not fixed
    z = np.asarray(x.totals(y))
    width = np.where(primary, 0.15 * z, 0.0)
    found = widen_intervals(
        x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=np.full(x.columns, fixed),
        given=primary, search=Search(trials=5, seconds=1e-5),
    )  # fmt: skip
    np.testing.assert_array_equal(found.suppressed, primary)
    assert found.ended


def test_numbers_too_far_apart_end_it_and_not_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsolved(*_: object) -> None:
        raise Unsolved("HiGHS ended with Unknown")

    monkeypatch.setattr(optimal, "_HARD", 0)
    x, y, primary, width = table((5, 6), 3)
    z = np.asarray(x.totals(y))
    for step in ("cheaper", "_likely"):
        monkeypatch.setattr(Covering, step, unsolved)
        found = widen_intervals(
            x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
            search=Search(trials=2),
        )  # fmt: skip
        assert (found.trials, found.ended) == (2, True)
        assert protects(x, y, found.suppressed, primary, width)
