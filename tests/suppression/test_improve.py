"""The improvement pass never loses safety and never costs more; the elimination it rests on, against exact rank."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_tables import column, dirae_inner, publication

from sdcduck.methods.suppression import walk
from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.directions import directions
from sdcduck.methods.suppression.echelon import PRIME, fraction
from sdcduck.methods.suppression.improve import improve
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space, reveals_modular
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.walk import suppressed_in_order


def exact_rank(columns: NDArray[np.int64]) -> int:
    """The rank over the rationals."""
    rows = [[Fraction(int(v)) for v in row] for row in columns]
    rank = 0
    for c in range(columns.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][c]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            if rows[i][c]:
                factor = rows[i][c] / rows[rank][c]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def dense(x: DummyMatrix) -> NDArray[np.int64]:
    matrix = np.zeros((x.rows, x.columns), dtype=np.int64)
    matrix[x.indices, np.repeat(np.arange(x.columns), np.diff(x.indptr))] = 1
    return matrix


def follows(x: DummyMatrix, published: NDArray[np.bool_], cell: int) -> bool:
    matrix = dense(x)
    return exact_rank(matrix[:, published]) == exact_rank(np.column_stack([matrix[:, published], matrix[:, cell]]))


def linked_tables(rng: np.random.Generator) -> tuple[DummyMatrix, NDArray[np.int64]]:
    shape = rng.integers(2, 5, size=2)
    records = [
        {"a": str(a), "b": str(b), "g": str(rng.integers(3)), "h": str((a + 2 * b) % 3)}
        for a, b in itertools.product(range(shape[0]), range(shape[1]))
        if rng.random() < 0.9
    ] or [{"a": "0", "b": "0", "g": "0", "h": "0"}]
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]], [["h", "g"], ["a", ""]]][: rng.integers(1, 3)])
    return x, rng.integers(1, 12, size=x.rows)


def greedy(x: DummyMatrix, z: NDArray[np.int64], primary: NDArray[np.bool_]) -> NDArray[np.bool_]:
    order = np.argsort(-z, kind="stable")
    found = suppressed_in_order(x, order[~primary[order]], primary)
    assert found is not None
    return primary | found


@settings(max_examples=times(12, 40), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_elimination_agrees_with_the_rank_over_the_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, _ = linked_tables(rng)
    published = rng.random(x.columns) < 0.5
    space = modular_null_space(x, published)
    assert x.rows - space.dimension == exact_rank(dense(x)[:, published])
    revealed = reveals_modular(space, x, ~published)
    for cell in np.flatnonzero(~published):
        assert (cell in revealed) == follows(x, published, cell)
    basis = directions(x.take(np.flatnonzero(published))).toarray()
    assert basis.shape[1] == space.dimension
    assert np.abs(dense(x)[:, published].T @ basis).max(initial=0) < 1e-12
    # Each direction has a row of its own.
    own = basis[((basis != 0).sum(axis=1) == 1) & (basis.sum(axis=1) == 1)]
    assert set(np.nonzero(own)[1]) == set(range(space.dimension))


def test_fractions_are_recognised() -> None:
    values = [5, PRIME - 7, 3 * pow(4, -1, PRIME) % PRIME, -12345 * pow(67891, -1, PRIME) % PRIME]
    assert [fraction(value) for value in values] == [(5, 1), (-7, 1), (3, 4), (-12345, 67891)]
    assert fraction(2**31) == (0, 0)


def test_greedy_elimination_suppresses_what_ssbtools_suppresses(reference_data: Path) -> None:
    stored = np.load(reference_data / "big" / "linked_2k.npz")
    lengths = stored["indptr"].astype(np.int64)
    indptr = np.r_[0, np.cumsum(lengths)]
    running = np.cumsum(stored["delta"].astype(np.int64))
    indices = running - np.repeat(np.r_[0, running][indptr[:-1]], lengths)
    x = DummyMatrix(indptr, indices.astype(np.int32), int(stored["shape"][0]))
    primary = np.unpackbits(stored["primary"])[: x.columns].astype(bool)
    candidates = stored["candidates"].astype(np.int64)
    found = suppressed_in_order(x, candidates[~primary[candidates]], primary)
    assert found is not None
    suppressed = primary | found
    secondary = np.loadtxt(reference_data / "big" / "linked_2k_secondary.csv", skiprows=1, dtype=int)
    np.testing.assert_array_equal(np.flatnonzero(suppressed & ~primary), np.sort(secondary))
    better = improve(x, suppressed, primary, stored["y"], trials=30)
    assert better.cost_saved >= 0
    assert not len(reveals_modular(modular_null_space(x, ~better.suppressed), x, primary))


@settings(max_examples=times(12, 40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_safety_is_kept_and_the_cost_never_rises(seed: int, wasteful: bool) -> None:
    rng = np.random.default_rng(seed)
    x, y = linked_tables(rng)
    z = x.totals(y)
    primary = rng.random(x.columns) < 0.2
    suppressed = greedy(x, z, primary)
    if wasteful:
        suppressed |= rng.random(x.columns) < 0.3
    frozen = rng.random(x.columns) < 0.1
    found = improve(x, suppressed, primary, z, trials=20, frozen=frozen)
    assert (found.suppressed | ~primary).all()
    for cell in np.flatnonzero(primary):
        assert not follows(x, ~found.suppressed, cell)
    np.testing.assert_array_equal(found.suppressed[frozen], suppressed[frozen])
    assert z[found.suppressed].sum() + found.cost_saved == z[suppressed].sum()
    assert found.cost_saved >= 0
    assert suppressed.sum() - found.suppressed.sum() == found.cells_saved
    np.testing.assert_array_equal(np.flatnonzero(suppressed & ~found.suppressed), found.opened)
    np.testing.assert_array_equal(np.flatnonzero(~suppressed & found.suppressed), found.closed)
    # Nothing is left that could be published alone.
    for cell in np.flatnonzero(found.suppressed & ~primary & ~frozen):
        published = ~found.suppressed
        published[cell] = True
        assert any(follows(x, published, p) for p in np.flatnonzero(primary))


@settings(max_examples=times(5, 15), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_wide_intervals_stay_wide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = linked_tables(rng)
    z = x.totals(y)
    primary = rng.random(x.columns) < 0.15
    level = np.ceil(0.3 * z)
    suppressed = greedy(x, z, primary) | (rng.random(x.columns) < 0.3)
    before = audit(x, z, suppressed, upl=level, cells=primary, jobs=1).protected
    found = improve(x, suppressed, primary, z, trials=5, z=z, upl=level, jobs=1)
    after = audit(x, z, found.suppressed, upl=level, cells=primary, jobs=1).protected
    assert after[before].all()
    assert found.cost_saved >= 0


def test_trials_come_near_to_the_optimum() -> None:
    records = dirae_inner()
    x, _ = publication(records, [[["region", "province", ""], ["activity", ""]]])
    y = column(records, "value")
    z = x.totals(y)
    primary = (z >= 1) & (z <= 10)
    level = np.ceil(0.2 * z)
    optimum = optimal_suppression(x, y, primary, level)
    assert optimum.status == "optimal"
    everything = z > 0
    alone = improve(x, everything, primary, z, trials=0, z=z, upl=level)
    tried = improve(x, everything, primary, z, trials=30, z=z, upl=level)
    assert optimum.objective <= z[tried.suppressed].sum() + 1e-6 <= z[alone.suppressed].sum() + 2e-6


def counted(shape: tuple[int, int], seed: int) -> tuple[DummyMatrix, NDArray[np.int64], NDArray[np.bool_]]:
    """A table of counts with its totals: the matrix, the cells, and which are primary."""
    a, b = np.indices(shape).reshape(2, -1)
    row, inner = np.arange(len(a)), len(a)
    cells = np.concatenate([row, inner + a, inner + shape[0] + b, np.full(inner, inner + sum(shape))])
    x = DummyMatrix.from_pairs(np.tile(row, 4), cells, (inner, inner + sum(shape) + 1))
    z = x.totals(np.random.default_rng(seed).poisson(6, inner) + 1)
    return x, z, z <= 3


def test_what_time_allows_is_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    x, z, primary = counted((20, 24), 3)
    suppressed = greedy(x, z, primary)
    told: list[tuple[int, int]] = []

    def looked(seconds: float) -> tuple[NDArray[np.bool_], bool, int]:
        told.clear()
        found = improve(
            x, suppressed, primary, z, trials=20, seconds=seconds, progress=lambda *done: told.append(done)
        )  # fmt: skip
        return found.suppressed, found.ended, told[-1][0]

    all_of_them, ended, made = looked(np.inf)
    assert ended
    assert made == 19
    assert all(total == 20 for _, total in told)
    some = [looked(seconds) for seconds in (0.002, 0.005)]
    assert [ended for _, ended, _ in some] == [False, False]
    assert 0 < some[0][2] < some[1][2] < 19
    # What was tried is what would have been tried first, however fast the machine is.
    made = some[1][2]
    np.testing.assert_array_equal(some[1][0], improve(x, suppressed, primary, z, trials=made).suppressed)
    np.testing.assert_array_equal(looked(1e9)[0], all_of_them)
    # A trial is left in its middle, too: one question for each slice of the candidates.
    monkeypatch.setattr(walk, "SLICE", 16)
    np.testing.assert_array_equal(looked(np.inf)[0], all_of_them)
    again, ended, made = looked(1e-6)
    assert (ended, made) == (False, 0)
    np.testing.assert_array_equal(again, improve(x, suppressed, primary, z, trials=0).suppressed)


def test_steps_are_counted_whatever_the_walk_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, in batches and in dense blocks the answer is the same, and none is for nothing."""
    x, z, primary = counted((20, 24), 3)
    turns = np.argsort(-z, kind="stable")
    turns = turns[~primary[turns]]
    answers, steps = [], []
    for name, value in (("LOOK", 64), ("BATCHES", 0.0), ("BLOCKS_START", -1)):
        with monkeypatch.context() as changed:
            changed.setattr(walk, name, value)
            if name == "BLOCKS_START":
                changed.setattr(walk, "BLOCKS_PIVOT", -1)
                changed.setattr(walk, "BLOCKS_ROW", -1)
            done: list[int] = []
            answers.append(suppressed_in_order(x, turns, primary, lambda new, done=done: bool(done.append(new))))
            steps.append(done)
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])
    assert all(len(done) > 1 and all(new > 0 for new in done) for done in steps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suppressed": np.zeros(3, dtype=bool)}, "primary cell is not suppressed"),
        ({"suppressed": np.array([True, False, False])}, "not safe"),
        ({"cost": [1.0]}, "costs must be 3"),
        ({"cost": [1.0, -1.0, 1.0]}, "negative"),
        ({"primary": [1, 0, 0]}, "booleans"),
        ({"upl": [1.0, 1.0, 1.0]}, "together"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], message: str) -> None:
    x = DummyMatrix.from_pairs(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), (2, 3))
    arguments: dict[str, object] = {
        "suppressed": np.array([True, False, True]),
        "primary": np.array([True, False, False]),
        "cost": [1.0, 1.0, 1.0],
    }
    with pytest.raises(ValueError, match=message):
        improve(x, **(arguments | options))  # type: ignore[arg-type]
