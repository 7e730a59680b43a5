"""The walk in dense blocks decides every cell as the walk column by column does, however small the blocks are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elimination import greedy, linked_tables, suppressed_by

from sdcduck.methods.suppression import dense, sketch, three_primes, walk
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.elimination import Suppression, suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space, null_space, reveals_modular


@contextmanager
def blocks(size: int = 512, light: tuple[int, ...] = dense.LIGHT) -> Iterator[list[int]]:
    """The walk goes on in blocks of this size as soon as it can; yields where blocks began."""
    began: list[int] = []
    advance = walk.Walk._advance_in_blocks

    def seen(self: walk.Walk, turns: np.ndarray, first: int) -> int:
        began.append(first)
        return advance(self, turns, first)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("BLOCKS_PIVOT", "BLOCKS_ROW", "BLOCKS_START"):
            patch.setattr(walk, name, -1)
        patch.setattr(walk, "LOOK", 0)
        for module in (walk, dense):
            patch.setattr(module, "BLOCK", size)
        for module in (dense, three_primes):
            patch.setattr(module, "DEPTH", min(size + 1, module.DEPTH))
        for module in (dense, sketch):
            patch.setattr(module, "PANEL", min(max(size // 2, 1), module.PANEL))
        patch.setattr(dense, "LIGHT", light)
        patch.setattr(walk.Walk, "_advance_in_blocks", seen)
        yield began


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.sampled_from([1, 2, 3, 5, 512]), st.sampled_from([(1,), (2,), (1, 3), dense.LIGHT]))
def test_same_cells_as_the_greedy_rule_in_fractions(problem, size: int, light: tuple[int, ...]) -> None:
    x, order, primary, _ = problem
    with blocks(size, light) as began:
        assert suppressed_by(problem, "none") == greedy(x, order, primary, [], [], "none")
    assert began or not set(order) - set(primary)


@settings(max_examples=times(30, 100), deadline=None)
@given(linked_tables(), st.integers(0, 2), st.sampled_from([1, 2, 512]))
def test_forced_cells_come_first(problem, number: int, size: int) -> None:
    x, order, primary, _ = problem
    forced = order[-number:] if number else []
    kept = [c for c in primary if c not in forced]
    with blocks(size):
        result = suppress_secondary(x, order, primary, forced=forced, singleton_method="none")
    assert set(np.flatnonzero(result.secondary)) == greedy(x, order, kept, forced, [], "none")


@settings(max_examples=times(20, 60), deadline=None)
@given(linked_tables(), st.sampled_from(["anySum", "anySumNOTprimary", "anySum0", "subSum", "subSpace"]))
def test_methods_for_singletons(problem, method: str) -> None:
    x, order, primary, singletons = problem
    single = np.flatnonzero(np.diff(x.indptr) == 1)
    shown = single[np.isin(x.indices[x.indptr[single]], singletons)].tolist()
    problem = (x, order, sorted({*primary, *shown}), singletons)
    expected = suppressed_by(problem, method)
    with blocks(2):
        assert suppressed_by(problem, method) == expected


@cache
def random_table(seed: int, cells: int = 600) -> tuple[DummyMatrix, np.ndarray, np.ndarray]:
    """A three-way table with crossing groupings, and its counts and primary cells."""
    rng = np.random.default_rng(seed)
    code = np.sort(rng.choice(14**3, cells, replace=False))
    parts = [code // 196, code // 14 % 14, code % 14]
    levels = [[part, rng.integers(0, 4, 14)[part], np.zeros(cells, np.int64)] for part in parts]
    members = []
    for a in levels[0]:
        for b in levels[1]:
            for c in levels[2]:
                key = (a * 14 + b) * 14 + c
                members += [np.flatnonzero(key == k) for k in np.unique(key)]
    unique = list({m.tobytes(): m for m in members}.values())
    columns = np.repeat(np.arange(len(unique)), [len(m) for m in unique])
    x = DummyMatrix.from_pairs(np.concatenate(unique), columns, (cells, len(unique)))
    counts = rng.geometric(0.25, cells)
    return x, counts, x.totals(counts) <= 2


def suppression_of(table: tuple[DummyMatrix, np.ndarray, np.ndarray], seed: int = 0) -> Suppression:
    x, counts, primary = table
    order = candidate_order(x, x.totals(counts).astype(np.float64))
    return suppress_secondary(x, order, primary, singleton_method="none", seed=seed)


@cache
def one_by_one(seed: int) -> Suppression:
    """What the walk column by column decides on a random table: what the others are compared to."""
    return suppression_of(random_table(seed))


def check_same(result: Suppression, expected: Suppression) -> None:
    """The same cells, published in the same order."""
    assert np.array_equal(result.secondary, expected.secondary)
    assert np.array_equal(result.independent, expected.independent)


@pytest.mark.parametrize("seed", range(times(2, 4)))
@pytest.mark.parametrize("size", [16, 150, 512])
def test_same_answer_on_a_table_where_everything_hangs_together(seed: int, size: int) -> None:
    table, expected = random_table(seed), one_by_one(seed)
    with blocks(size, (2, 5)) as began:
        result = suppression_of(table)
    assert len(began) > 1 or size == 512
    check_same(result, expected)
    assert result.rank == expected.rank


def test_blocks_can_begin_in_the_middle() -> None:
    table, expected = random_table(7), one_by_one(7)
    with blocks(64), pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk.Walk, "_wants_blocks", lambda self: int(self.pivots.used[0]) > 100)
        result = suppression_of(table)
    check_same(result, expected)


def test_null_space_of_what_blocks_decided() -> None:
    x, counts, primary = random_table(3)
    with blocks(64):
        result = suppression_of((x, counts, primary))
    closed = primary | result.secondary
    space = modular_null_space(x, ~closed)
    assert space.dimension == x.rows - result.rank
    assert not len(reveals_modular(space, x, closed))
    assert null_space(x, ~closed).dimension == space.dimension


def test_primes_that_do_not_agree_are_replaced() -> None:
    table, expected = random_table(5), one_by_one(5)
    small = np.array([3.0, 5.0, 7.0])
    given = dense.three_primes

    with blocks(64) as began, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "three_primes", lambda attempt: small if attempt < 2 else given(attempt))
        result = suppression_of(table)
    assert began
    assert np.array_equal(result.secondary, expected.secondary)


def test_the_walk_in_blocks_can_be_stopped_within_a_block() -> None:
    class Stop(Exception):
        pass

    x, counts, primary = random_table(1)
    order = candidate_order(x, x.totals(counts).astype(np.float64))
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 3:
            raise Stop

    with blocks(512), pytest.raises(Stop):
        suppress_secondary(x, order, primary, singleton_method="none", progress=stop)
    assert seen == [(0, seen[0][1])] * 3


def test_several_at_once_give_the_same() -> None:
    table, expected = random_table(2), one_by_one(2)
    results: list[Suppression] = []
    with blocks(100):
        threads = [threading.Thread(target=lambda: results.append(suppression_of(table))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 3
    for result in results:
        assert np.array_equal(result.secondary, expected.secondary)


def test_other_primes_for_each_attempt() -> None:
    first, second = dense.three_primes(0), dense.three_primes(1)
    assert len({*first.tolist(), *second.tolist()}) == 6
    for p in first:
        # Every sum of products must be exact in a floating point number.
        assert dense.DEPTH * (p // 2 + 1) ** 2 + p < 2**53
