"""Patterns with intervals, cheaper and cheaper: each is audited by a linear program of its own, straight from the equations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from skewed_tables import cube, protects, table, value

from sdcduck.methods.suppression import intervals, moves
from sdcduck.methods.suppression.intervals import NO_SEARCH, Search, Widening, widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nearby import Nearby
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.patterns import Choice, LinkedTables, Roles, choose_cells

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def pattern(
    x: DummyMatrix, y: Floats, primary: Booleans, width: Floats, search: Search = NO_SEARCH, cost: Floats | None = None
) -> Widening:
    z = np.asarray(x.totals(y))
    return widen_intervals(
        x, y, primary, np.flatnonzero(primary), width, width, cost=z if cost is None else cost, ineligible=z == 0,
        given=primary, search=search,
    )  # fmt: skip


@pytest.fixture
def by_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """No publication is small enough for integer programming."""
    monkeypatch.setattr(intervals, "_SMALL", 0)


@pytest.mark.usefixtures("by_trials")
@pytest.mark.parametrize(("shape", "seed"), [((5, 6), 1), ((5, 6), 2), ((3, 4, 3), 3)])
def test_each_step_protects_and_costs_no_more_than_the_last(shape: tuple[int, ...], seed: int) -> None:
    x, y, primary, width = table(shape, seed)
    found = pattern(x, y, primary, width, Search(trials=10))
    steps = [found.widened, found.before, found.suppressed]
    assert all(protects(x, y, step, primary, width) for step in steps)
    costs = [value(x, y, step) for step in steps]
    assert costs == sorted(costs, reverse=True)
    assert found.impossible.size == 0
    assert (found.trials, found.ended) == (10, True)
    # Nothing is left that could be published alone.
    for cell in np.flatnonzero(found.before & ~primary):
        other = found.before.copy()
        other[cell] = False
        assert not protects(x, y, other, primary, width)


@pytest.mark.usefixtures("by_trials")
def test_what_is_widened_too_far_is_published_again() -> None:
    costs = np.array([[value(*table((8, 9), seed)[:2], step) for step in (found.widened, found.before, found.suppressed)]
        for seed in range(3) for found in [pattern(*table((8, 9), seed), Search(trials=20))]])  # fmt: skip
    assert (costs[:, 0] > 1.05 * costs[:, 1]).any()
    assert (costs[:, 1] > costs[:, 2]).any()


@pytest.mark.parametrize("seed", [1, 4])
def test_trials_come_near_the_optimum_which_integer_programming_reaches(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, primary, width = table((6, 7), seed)
    best = optimal_suppression(x, y, primary, width)
    assert best.status == "optimal"
    proven = pattern(x, y, primary, width, Search(trials=60))
    assert (proven.trials, proven.ended) == (0, True)
    assert value(x, y, proven.suppressed) == pytest.approx(best.objective)
    assert protects(x, y, proven.suppressed, primary, width)
    monkeypatch.setattr(intervals, "_SMALL", 0)
    found = pattern(x, y, primary, width, Search(trials=60))
    assert found.trials == 60
    assert best.objective <= value(x, y, found.suppressed) * (1 + 1e-9)
    assert value(x, y, found.suppressed) <= 1.05 * best.objective
    assert found.suppressed.sum() <= 1.1 * best.suppressed.sum()


def test_integer_programming_has_part_of_the_time() -> None:
    """What it does not prove within that leaves the rest to the trials; steps are counted, and not seconds."""
    x, y, primary, width = table((6, 7), 1)
    found = pattern(x, y, primary, width, Search(trials=200, seconds=0.008))
    assert 0 < found.trials < 200
    assert not found.ended
    again = pattern(x, y, primary, width, Search(trials=200, seconds=0.008))
    assert again.trials == found.trials
    np.testing.assert_array_equal(again.suppressed, found.suppressed)
    limited = optimal_suppression(x, y, primary, width, steps=1000)
    assert limited.status == "time limit"
    assert limited.bound <= limited.objective
    free = optimal_suppression(x, y, primary, width)
    enough = optimal_suppression(x, y, primary, width, steps=5.0 * free.steps)
    assert (enough.status, enough.objective) == ("optimal", pytest.approx(free.objective))


def test_no_integer_program_of_values_below_0() -> None:
    """It takes inner values for at least 0; trials do not."""
    x, y, primary, width = table((5, 6), 1)
    y = y.copy()
    y[np.flatnonzero(~primary[: x.rows])[0]] *= -1
    assert pattern(x, y, primary, width, Search(trials=3), np.abs(np.asarray(x.totals(y)))).trials == 3


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_the_optimum_of_counts_is_reached(seed: int) -> None:
    """Counts of 1 and 2 are primary and want 1, as `max_count := 2` has it."""
    rng = np.random.default_rng(seed)
    x = cube((5, 7))
    y = np.round(np.exp(rng.normal(2.0, 1.0, x.rows))) + 1
    z = np.asarray(x.totals(y))
    primary = z <= 2
    width = np.where(primary, 1.0, 0.0)
    found = pattern(x, y, primary, width, Search(trials=60))
    best = optimal_suppression(x, y, primary, width, cost=np.where(primary, 0.0, z), start=found.suppressed)
    assert best.status == "optimal"
    assert best.objective > 0
    assert value(x, y, found.suppressed & ~primary) == pytest.approx(best.objective)
    assert protects(x, y, found.suppressed, primary, width)


def test_the_same_seed_gives_the_same_pattern_and_no_time_the_first() -> None:
    x, y, primary, width = table((6, 7), 1)
    one, two = (pattern(x, y, primary, width, Search(trials=20, seed=3)) for _ in range(2))
    np.testing.assert_array_equal(one.suppressed, two.suppressed)
    short = pattern(x, y, primary, width, Search(trials=20, seconds=1e-9))
    assert (short.trials, short.ended) == (1, False)
    assert value(x, y, short.suppressed) <= value(x, y, short.before)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_does_not_matter(unit: float) -> None:
    x, y, primary, width = table((5, 6), 1)
    plain = pattern(x, y, primary, width)
    _, y, _, width = table((5, 6), 1, unit)
    assert value(x, y / unit, pattern(x, y, primary, width).suppressed) == pytest.approx(
        value(x, y / unit, plain.suppressed)
    )


def test_values_of_twelve_orders_of_magnitude() -> None:
    rng = np.random.default_rng(5)
    x = cube((4, 5))
    y = 10.0 ** rng.uniform(-4, 8, x.rows)
    primary = np.zeros(x.columns, dtype=bool)
    primary[[0, 7, 13]] = True
    width = np.where(primary, 0.2 * np.asarray(x.totals(y)), 0.0)
    found = pattern(x, y, primary, width, Search(trials=5))
    for cell in np.flatnonzero(primary):
        alone = np.arange(x.columns) == cell
        assert protects(x, y, found.suppressed, alone, np.where(alone, width, 0.0))


def test_costs_of_nothing_and_of_one_a_cell() -> None:
    x, y, primary, width = table((5, 6), 2)
    for cost in (np.zeros(x.columns), np.ones(x.columns)):
        found = pattern(x, y, primary, width, Search(trials=10), cost)
        assert protects(x, y, found.suppressed, primary, width)
    fewest = found.suppressed.sum()
    assert fewest <= pattern(x, y, primary, width, Search(trials=10)).suppressed.sum()


def test_a_cell_that_cannot_move_so_far_goes_on_moving_as_far_as_it_did() -> None:
    """Of two cells in a row of given total, one can grow by no more than the other has."""
    x = DummyMatrix.from_pairs(np.array([0, 1, 0, 1]), np.array([0, 1, 2, 2]), (2, 3))
    y, primary = np.array([50.0, 4.0]), np.array([True, False, False])
    found = widen_intervals(
        x, y, np.array([True, True, False]), np.array([0]), np.array([9.0, 0, 0]), np.array([9.0, 0, 0]),
        cost=np.ones(3), ineligible=np.array([False, False, True]), given=primary,
    )  # fmt: skip
    assert found.impossible.tolist() == [0]
    assert found.suppressed.tolist() == [True, True, False]


def test_what_a_pattern_lacks_for_other_reasons_stays_suppressed() -> None:
    x, y, primary, width = table((5, 6), 1)
    must = np.flatnonzero(~primary)[:3]

    def lacking(suppressed: Booleans) -> Booleans:
        more = np.zeros(x.columns, dtype=bool)
        more[must] = True
        return more & ~suppressed

    begun = primary | lacking(primary)
    z = np.asarray(x.totals(y))
    found = widen_intervals(
        x, y, begun, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary, lacking=lacking,
        search=Search(trials=5),
    )  # fmt: skip
    assert found.suppressed[must].all()
    assert protects(x, y, found.suppressed, primary, width)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every publication is looked through piece by piece, and the pieces are small."""
    monkeypatch.setattr(moves, "_WHOLE", 0)
    monkeypatch.setattr(moves, "_NEAR", 24)
    monkeypatch.setattr(moves, "_NEAR_WITHIN", 12)


@pytest.mark.usefixtures("all_are_large", "by_trials")
@pytest.mark.parametrize(("shape", "seed"), [((5, 6), 1), ((5, 6), 2), ((3, 4, 3), 3), ((8, 9), 1)])
@pytest.mark.parametrize("room", [0, 1_000_000_000])
def test_large_publications_are_protected_piece_by_piece(
    shape: tuple[int, ...], seed: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "_PROGRAMS", room)
    x, y, primary, width = table(shape, seed)
    found = pattern(x, y, primary, width, Search(trials=3))
    steps = [found.widened, found.before, found.suppressed]
    assert all(protects(x, y, step, primary, width) for step in steps)
    assert not found.impossible.size
    costs = [value(x, y, step) for step in steps]
    assert costs == sorted(costs, reverse=True)
    # However many programs are kept, the answer is the same from call to call.
    np.testing.assert_array_equal(pattern(x, y, primary, width, Search(trials=3)).suppressed, found.suppressed)


@pytest.mark.usefixtures("all_are_large")
def test_what_cannot_be_done_nearby_is_done_with_all_cells() -> None:
    """The sum of a row is primary: its move needs more inner cells than a piece has."""
    x, y, _, _ = table((6, 7), 1)
    primary = np.arange(x.columns) == 42
    width = np.where(primary, 0.9 * np.asarray(x.totals(y)), 0.0)
    found = pattern(x, y, primary, width)
    assert not found.impossible.size
    assert protects(x, y, found.suppressed, primary, width)


@pytest.mark.usefixtures("all_are_large")
def test_in_large_publications_too_a_cell_goes_on_moving_as_far_as_it_can() -> None:
    test_a_cell_that_cannot_move_so_far_goes_on_moving_as_far_as_it_did()


def test_what_is_near_shares_the_smallest_sums() -> None:
    x = cube((3, 40))
    nearby = Nearby(x.sparse().tocsr())
    everywhere = np.ones(x.rows, dtype=bool)
    # The column of three comes before the row of forty, and a sum is taken whole or not at all.
    assert nearby.of(5, 12, everywhere).tolist() == [5, 45, 85]
    assert nearby.of(5, 45, everywhere).tolist() == [*range(40), 45, 85]
    assert nearby.of(5, 12, np.arange(x.rows) != 45).tolist() == [5, 85]
    # The total has too many inner cells of its own.
    assert nearby.of(x.columns - 1, 12, everywhere) is None


def test_progress_rises_through_all_steps() -> None:
    x, y, primary, width = table((5, 6), 1)
    z = np.asarray(x.totals(y))
    shares: list[float] = []
    widen_intervals(
        x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
        progress=lambda done, total: shares.append(done / total),
    )  # fmt: skip
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(set(shares)) == primary.sum() + 3


def test_progress_of_a_choice_with_intervals_never_falls() -> None:
    x, y, primary, width = table((5, 6), 1)
    none = np.zeros(x.columns, dtype=bool)
    counts = np.ones(x.rows, dtype=np.int64)
    tables = LinkedTables(x, np.asarray(x.totals(counts), float), np.asarray(x.totals(y)), counts, y, counts)
    shares: list[float] = []
    choose_cells(
        tables, Roles(primary, none, none, none), Choice(singleton_method="none", protection=width),
        progress=lambda done, total: shares.append(done / total),
    )  # fmt: skip
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert any(0.1 < share < 0.9 for share in shares)


@pytest.mark.usefixtures("by_trials")
def test_a_trial_publishes_cells_that_have_to_do_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tables that share nothing, it is mostly those of one: at random it would be half of the time."""
    x, y, _, width = table((5, 6), 1)
    both = DummyMatrix.from_pairs(
        np.concatenate([x.indices, x.indices + x.rows]),
        np.concatenate([column := np.repeat(np.arange(x.columns), np.diff(x.indptr)), column + x.columns]),
        (2 * x.rows, 2 * x.columns),
    )
    monkeypatch.setattr(intervals, "_FEWEST", 2)
    monkeypatch.setattr(intervals, "_MOST", 2)
    published: list[list[int]] = []
    related = intervals._Refining._related

    def noted(*arguments: object) -> list[int]:
        published.append(related(*arguments))  # type: ignore[arg-type]
        return published[-1]

    monkeypatch.setattr(intervals._Refining, "_related", noted)
    twice = np.concatenate([width, width])
    found = pattern(both, np.concatenate([y, y]), twice > 0, twice, Search(trials=20))
    assert (found.suppressed & ~(twice > 0)).sum() >= 10
    assert len(published) == 20
    assert all(len(set(cells)) == 2 for cells in published)
    first = [{cell < x.columns for cell in cells} for cells in published]
    assert sum(len(tables) == 1 for tables in first) >= 16
    assert {True} in first
    assert {False} in first
    assert protects(both, np.concatenate([y, y]), found.suppressed, twice > 0, twice)
