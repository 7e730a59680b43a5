"""The modular null space: the stencil made of it, and what it says about later cells, against the exact one."""

from __future__ import annotations

from pathlib import Path

import builders
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elimination import PAPER, linked_tables, paper_table, rank_of

from sdcduck.methods.suppression import decimals as decimals_module
from sdcduck.methods.suppression import nullspace
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.echelon import PRIME, inverse, multiply
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.nullspace import (
    ModularNullSpace,
    modular_null_space,
    null_space,
    reveals,
    reveals_modular,
)
from sdcduck.methods.suppression.stencil import STENCIL_PRIME, stencil


@settings(max_examples=times(60, 200), deadline=None)
@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_arithmetic_modulo_the_prime(a: int, b: int) -> None:
    assert multiply(a, b) == a * b % PRIME
    assert a == 0 or multiply(a, inverse(a)) == 1


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.integers(0, 100))
def test_the_modular_space_says_the_same_as_the_exact_one(problem, seed: int) -> None:
    x, order, _, _ = problem
    published = np.sort(order[: len(order) // 2])
    space, exact = modular_null_space(x, published), null_space(x, published)
    assert space.dimension == exact.dimension == x.rows - rank_of(x, published.tolist())
    everything = np.arange(x.columns)
    np.testing.assert_array_equal(reveals_modular(space, x, everything), reveals(exact, x, everything))
    np.testing.assert_array_equal(space.known, exact.known)
    np.testing.assert_array_equal(null_space(x, space).basis.toarray(), exact.basis.toarray())
    np.testing.assert_array_equal(null_space(x, space).published, exact.published)
    values = stencil(space, replicates=2, seed=seed)
    assert values.min(initial=0) >= 0
    assert values.max(initial=0) < STENCIL_PRIME
    open_cells = [
        c
        for c in everything
        if not any(sum(map(int, values[x.indices[x.indptr[c] : x.indptr[c + 1]], k])) % PRIME for k in (0, 1))
    ]
    assert open_cells == reveals(exact, x, everything).tolist()
    # The basis spans the stencil: on a free inner cell only one vector is not 0.
    basis = space.basis.toarray()
    np.testing.assert_array_equal(basis[space.free], np.eye(space.dimension, dtype=np.int64))
    spanned = [sum(int(v) * int(values[f, 0]) for v, f in zip(row, space.free, strict=True)) % PRIME for row in basis]
    assert spanned == values[:, 0].tolist()


def test_the_rank_is_that_of_the_suppression(reference_data: Path) -> None:
    """Modulo 2^61 - 1 and modulo the prime of the suppression the same dimension is left."""
    x, candidates, primary, _ = builders.linked_instance(reference_data, "2k")
    result = suppress_secondary(x, candidates, primary, singleton_method="none")
    published = ~(primary | result.secondary)
    space = modular_null_space(x, published)
    assert space.dimension == x.rows - result.rank
    filled = np.flatnonzero(np.diff(x.indptr) > 0)
    suppressed = np.intersect1d(np.flatnonzero(~published), filled)
    assert not len(reveals_modular(space, x, suppressed))
    assert len(reveals_modular(space, x, published)) == published.sum()
    # The basis of whole numbers has the same span: as many vectors, and none that a published cell notices.
    assert null_space(x, published).dimension == space.dimension


def failing(*_: object) -> None:
    raise ArithmeticError("too large")


def test_decimals_without_a_basis_of_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = paper_table(with_size=False)
    published = np.ones(x.columns, bool)
    published[[4, 5, 6, 7, 12, 13, 14, 15, 20, 30, 31, 34]] = False
    space = modular_null_space(x, published)
    direct = decimals(x, space, PAPER.ravel(), seed=3)
    monkeypatch.setattr(decimals_module, "null_space", failing)
    iterative = decimals(x, space, PAPER.ravel(), seed=3)
    np.testing.assert_allclose(direct, iterative, atol=1e-8)
    assert not len(builders.check_decimals(x, iterative, published, [], tolerance=1e-9)[0])
    monkeypatch.setattr(decimals_module, "_LSMR_STEPS", 1)
    with pytest.raises(ValueError, match="could not be computed"):
        decimals(x, space, PAPER.ravel(), seed=3)


def test_a_broken_echelon_form_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = paper_table(with_size=False)
    plain = nullspace._echelon

    def wrong(matrix: object, check: object, cost: object = None) -> object:
        pivots = plain(matrix, check, cost)
        pivots.values[pivots.start[1] : pivots.start[pivots.used[0]]] += 1
        return pivots

    monkeypatch.setattr(nullspace, "_echelon", wrong)
    with pytest.raises(RuntimeError):
        modular_null_space(x, np.arange(8))


def test_everything_or_nothing_published() -> None:
    x, _ = paper_table(with_size=False)
    everything, nothing = modular_null_space(x, np.arange(x.columns)), modular_null_space(x, [])
    assert everything.dimension == 0
    assert not stencil(everything).any()
    assert nothing.dimension == x.rows
    assert isinstance(nothing, ModularNullSpace)
    assert not len(reveals_modular(nothing, x, np.arange(x.columns)))
    assert len(reveals_modular(everything, x, np.arange(x.columns))) == x.columns
    assert (stencil(nothing, seed=1) != stencil(nothing, seed=2)).all()
    with pytest.raises(ValueError, match="at least one replicate"):
        stencil(nothing, replicates=0)
