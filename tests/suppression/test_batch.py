"""Candidates decided together are decided as they are one by one, however small the batches are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dense import check_same, one_by_one, random_table, suppression_of
from test_elimination import greedy, linked_tables, suppressed_by

from sdcduck.methods.suppression import batch, walk
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.nullspace import modular_null_space, reveals_modular


@contextmanager
def batches(size: int = 128, vector: float = batch.VECTOR, room: int | None = None) -> Iterator[list[int]]:
    """Candidates are decided together from the start, so many at a time; yields how many primary columns each batch
    endangered. room: places for entries of pivots before there have to be more."""
    endangered: list[int] = []
    protect, begin = batch.Batch.protect, walk.Walk.__init__

    def seen(self: batch.Batch, columns: np.ndarray) -> None:
        endangered.append(len(columns))
        protect(self, columns)

    def begun(self: walk.Walk, *arguments: object) -> None:
        begin(self, *arguments)
        if room is not None:
            self.pivots = walk.echelon.new_pivots(len(self.cost), room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "BATCHES", -1)
        patch.setattr(walk, "BATCH", size)
        patch.setattr(walk, "MOST_BATCH", 2 * size)
        patch.setattr(batch, "VECTOR", vector)
        patch.setattr(batch, "STRIP", 3)
        patch.setattr(batch.Batch, "protect", seen)
        patch.setattr(walk.Walk, "__init__", begun)
        yield endangered


@settings(max_examples=times(80, 300), deadline=None)
@given(linked_tables(), st.sampled_from([1, 2, 3, 5, 128]), st.sampled_from([0.0, 1e9]))
def test_same_cells_as_the_greedy_rule_in_fractions(problem, size: int, vector: float) -> None:
    x, order, primary, _ = problem
    with batches(size, vector):
        assert suppressed_by(problem, "none") == greedy(x, order, primary, [], [], "none")


@settings(max_examples=times(30, 100), deadline=None)
@given(linked_tables(), st.integers(0, 2), st.sampled_from([1, 2, 128]))
def test_forced_cells_come_first(problem, number: int, size: int) -> None:
    x, order, primary, _ = problem
    forced = order[-number:] if number else []
    kept = [c for c in primary if c not in forced]
    with batches(size):
        result = suppress_secondary(x, order, primary, forced=forced, singleton_method="none")
    assert set(np.flatnonzero(result.secondary)) == greedy(x, order, kept, forced, [], "none")


@pytest.mark.parametrize("seed", range(times(2, 4)))
@pytest.mark.parametrize(("size", "vector", "room"), [(7, 0.0, None), (40, 1e9, 5000), (128, 0.25, 5000)])
def test_same_answer_on_a_table_where_everything_hangs_together(
    seed: int, size: int, vector: float, room: int | None
) -> None:
    table, expected = random_table(seed), one_by_one(seed)
    with batches(size, vector, room) as endangered:
        result = suppression_of(table)
    assert max(endangered, default=0) > 1
    check_same(result, expected)
    assert result.rank == expected.rank
    x, _, primary = table
    closed = primary | result.secondary
    assert not len(reveals_modular(modular_null_space(x, ~closed), x, closed))


def test_other_orders_of_what_was_published_change_nothing() -> None:
    table = random_table(9, 900)
    expected = suppression_of(table)
    with batches(30), pytest.MonkeyPatch.context() as patch:
        reorder = walk.Walk._reorder
        orders: list[int] = []

        def always(self: walk.Walk, before: np.ndarray) -> None:
            self.price = 0
            orders.append(int(self.pivots.used[0]))
            reorder(self, before)

        patch.setattr(walk.Walk, "_reorder", always)
        result = suppression_of(table)
    assert len(orders) > 5
    check_same(result, expected)


def test_a_batch_that_endangers_too_many_is_tried_with_fewer() -> None:
    table, expected = random_table(3), one_by_one(3)
    taken_back: list[int] = []
    keep = walk.keep

    def counted(*arguments: Any) -> None:
        taken_back.append(len(arguments[2]))
        keep(*arguments)

    with batches(4), pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "keep", counted)
        patch.setattr(walk, "MOST_ENDANGERED", 2)
        patch.setattr(walk, "MOST_BATCH", 512)
        result = suppression_of(table)
    assert taken_back
    check_same(result, expected)


def test_dense_blocks_can_follow() -> None:
    table, expected = random_table(7), one_by_one(7)
    with batches(32), pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk.Walk, "_wants_blocks", lambda self: int(self.pivots.used[0]) > 250)
        result = suppression_of(table)
    check_same(result, expected)


def test_singletons_are_asked_one_by_one() -> None:
    x, counts, primary = random_table(5)
    order = candidate_order(x, x.totals(counts).astype(np.float64))
    expected = suppress_secondary(x, order, primary, singleton=counts == 1, singleton_method="anySum")
    with batches(16) as endangered:
        result = suppress_secondary(x, order, primary, singleton=counts == 1, singleton_method="anySum")
    assert not endangered
    assert np.array_equal(result.secondary, expected.secondary)


def test_it_can_be_stopped_within_a_batch() -> None:
    class Stop(Exception):
        pass

    x, counts, primary = random_table(1)
    order = candidate_order(x, x.totals(counts).astype(np.float64))
    seen: list[int] = []

    def stop(done: int, _total: int) -> None:
        seen.append(done)
        if len(seen) == 3:
            raise Stop

    with batches(512), pytest.raises(Stop):
        suppress_secondary(x, order, primary, singleton_method="none", progress=stop)
    assert seen == [0, 0, 0]
