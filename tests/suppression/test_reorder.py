"""What is published may be brought in another order in the middle of the walk: no cell is decided otherwise for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dense import random_table
from test_elimination import greedy, linked_tables, rank_of, suppressed_by

from sdcduck.methods.suppression import echelon, walk
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.reorder import small_first


@contextmanager
def always_in_order(step: int = 1) -> Iterator[list[int]]:
    """Everything is brought in order anew after each pivot, if there is one among ``step`` candidates; yields how many
    pivots there were."""
    seen: list[int] = []
    advance = walk.Walk.advance

    def few(self: walk.Walk, turns: np.ndarray, first: int, last: int) -> int:
        self.price = 0
        seen.append(int(self.pivots.used[0]))
        return advance(self, turns, first, min(last, first + step))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk.Walk, "advance", few)
        patch.setattr(walk, "BATCHES", np.inf)  # one candidate after the other, in steps as short as asked for
        yield seen


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.integers(1, 3))
def test_same_cells_as_the_greedy_rule_in_fractions(problem, step: int) -> None:
    x, order, primary, _ = problem
    with always_in_order(step):
        assert suppressed_by(problem, "none") == greedy(x, order, primary, [], [], "none")


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables())
def test_with_singletons_whose_order_decides(problem) -> None:
    x, order, primary, singletons = problem
    single = np.flatnonzero(np.diff(x.indptr) == 1)
    shown = single[np.isin(x.indices[x.indptr[single]], singletons)].tolist()
    primary = sorted({*primary, *shown})
    with always_in_order():
        got = suppressed_by((x, order, primary, singletons), "anySum")
    assert got == greedy(x, order, primary, [], singletons, "anySum")


@settings(max_examples=times(30, 100), deadline=None)
@given(linked_tables(), st.integers(1, 3), st.sampled_from(["none", "subSumAny"]))
def test_with_forced_cells(problem, number: int, method: str) -> None:
    x, order, primary, singletons = problem
    single = np.flatnonzero(np.diff(x.indptr) == 1)
    shown = single[np.isin(x.indices[x.indptr[single]], singletons)].tolist()
    problem = (x, order, sorted({*primary, *shown}), singletons)
    forced = order[-number:]
    expected = suppressed_by(problem, method, forced=forced)
    with always_in_order():
        assert suppressed_by(problem, method, forced=forced) == expected


@pytest.mark.parametrize("method", ["none", "anySum", "subSum"])
@pytest.mark.parametrize("seed", range(3))
def test_same_answer_on_a_table_where_everything_hangs_together(seed: int, method: str) -> None:
    x, counts, primary = random_table(seed)
    order = candidate_order(x, x.totals(counts).astype(np.float64))
    marks = counts == 1
    expected = suppress_secondary(x, order, primary, singleton=marks, singleton_method=method)
    with always_in_order(20) as seen:
        result = suppress_secondary(x, order, primary, singleton=marks, singleton_method=method)
    assert len(set(seen)) > 10
    assert np.array_equal(result.secondary, expected.secondary)
    assert np.array_equal(result.independent, expected.independent)


@settings(max_examples=times(30, 100), deadline=None)
@given(linked_tables(), st.data())
def test_as_many_pivots_as_the_rank(problem, data: st.DataObject) -> None:
    x, order, _, _ = problem
    columns = order[: data.draw(st.integers(0, len(order)))]
    pivots, _ = small_first(
        x.indptr.astype(np.int64),
        x.indices.astype(np.int32),
        np.array(columns, np.int64),
        x.rows,
        np.zeros(x.rows, np.bool_),
        lambda: None,
        echelon.new_pivots(x.rows, 0),
    )
    assert pivots.used[0] == rank_of(x, columns)


def test_it_leaves_less_of_the_columns_than_the_order_of_the_candidates() -> None:
    x, counts, _ = random_table(1)
    order = candidate_order(x, x.totals(counts).astype(np.float64)).astype(np.int64)
    indptr, indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    cost = np.bincount(indices, minlength=x.rows).astype(np.int64)
    columns = order[:200]
    as_they_come = echelon.echelon_by_cost(indptr, indices, columns, np.empty(0, np.int64), cost)
    pivots, work = small_first(
        indptr, indices, columns, x.rows, np.zeros(x.rows, np.bool_), lambda: None, echelon.new_pivots(x.rows, 0)
    )
    assert pivots.used[0] == as_they_come.used[0]
    assert 3 * pivots.start[pivots.used[0]] < as_they_come.start[pivots.used[0]]
    assert work > 0


def test_it_can_be_stopped() -> None:
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    x, _, _ = random_table(0)
    columns = np.arange(x.columns)
    with pytest.raises(Stop):
        small_first(
            x.indptr.astype(np.int64), x.indices.astype(np.int32), columns, x.rows, np.zeros(x.rows, np.bool_), stop,
            echelon.new_pivots(x.rows, 0),
        )  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.integers(0, 300_000), max_size=50))
def test_the_queue_gives_its_numbers_in_order(numbers: list[int]) -> None:
    queue = echelon.new_queue(300_001)
    for number in numbers:
        echelon.push(queue, number)
    rising, least = [], 0
    while (least := echelon.pop_least(queue, max(least, 0))) >= 0:
        rising.append(least)
    assert rising == sorted(set(numbers))
    for number in numbers:
        echelon.push(queue, number)
    falling, greatest = [], 300_000
    while (greatest := echelon.pop_greatest(queue, greatest)) >= 0:
        falling.append(greatest)
    assert falling == rising[::-1]
    assert not queue.words.any()
    assert not queue.filled.any()
