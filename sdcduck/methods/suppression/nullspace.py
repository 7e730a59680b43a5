"""What a publication leaves open: the inner changes n that no published cell notices, X_pub' n = 0.

Langsrud and Bøvelstad (2022, section 2): the residuals of the regression on the published cells lie in this space. The
published columns are brought to echelon form modulo 2^61 - 1 (`echelon`); every row that never was a pivot gives one
vector of a basis. `modular_null_space` stops there, which is all the stencil needs and cannot fail. `null_space` goes
on to a sparse basis of whole numbers: entries are recovered as fractions (the few vectors with large ones after lifting
the solution to higher powers of p, Dixon 1982), cleared of denominators, and X_pub' N = 0 is checked in whole numbers:
there nothing rests on the modulus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression import echelon
from sdcduck.methods.suppression.echelon import PRIME, Pivots, fraction
from sdcduck.methods.suppression.elimination import cell_indices
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.singletons import first_equal

Array = NDArray[Any]

_CHECKS = 3


@dataclass(frozen=True)
class ModularNullSpace:
    """The space of the n with X_pub' n = 0 modulo p = 2^61 - 1, kept as the echelon form of the published columns.

    Its dimension is m - rank of the published columns. pivots: of the published columns on the inner cells not known.
    free: inner cells that are no pivot, one for each dimension, ascending. known: m booleans, inner cells that are
    published themselves. published: N booleans.
    """

    pivots: Pivots
    free: NDArray[np.int64]
    known: NDArray[np.bool_]
    published: NDArray[np.bool_]

    @property
    def dimension(self) -> int:
        return len(self.free)

    @cached_property
    def basis(self) -> Any:
        """m x dimension, column-compressed, values modulo p; vector k is 1 on inner cell ``free[k]`` and 0 on the other
        free ones. Made on first use: the stencil does without."""
        vector_of = np.full(len(self.known), -1, np.int64)
        vector_of[self.free] = np.arange(self.dimension)
        start, end, vector, value = echelon.basis_rows(self.pivots, vector_of, self.dimension)
        place = _places(start, end)
        shape = (len(self.known), self.dimension)
        indptr = np.concatenate([[0], np.cumsum(end - start)])
        return scipy.sparse.csc_array(scipy.sparse.csr_array((value[place], vector[place], indptr), shape=shape))

    def random_vectors(self, count: int, seed: int = 0) -> NDArray[np.int64]:
        """m x count vectors of the space, uniform among all of them; values in [0, p)."""
        vectors = np.zeros((len(self.known), count), np.int64)
        rng = np.random.default_rng((61, seed))
        vectors[self.free] = echelon.random_values(rng, (count, self.dimension)).T
        echelon.extend(self.pivots, vectors)
        return vectors


def modular_null_space(
    x: DummyMatrix, published: ArrayLike, check: Callable[[], object] = lambda: None
) -> ModularNullSpace:
    """The null space modulo 2^61 - 1 of the published cells (mask or indices) of an m x N matrix.

    Never fails, however large the whole numbers of the space are. X_pub' n = 0 is checked for three random vectors of
    it: an error would pass with a chance of p^-3. A determinant that happens to be a multiple of p would make the space
    larger than it is in rational numbers: what follows from the published cells could then look as if it did not,
    never the other way round. check: called now and then in long work; what it raises ends it.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]), (3, 2))
    >>> modular_null_space(x, [0, 1]).dimension
    1
    """
    mask = np.zeros(x.columns, dtype=bool)
    mask[cell_indices("published", published, x.columns)] = True
    chosen, known = _chosen(x, mask)
    unknown = np.flatnonzero(~known)
    left = scipy.sparse.csc_array(chosen[unknown])
    pivots = _echelon(left, check)
    count = int(pivots.used[0])
    number_of = np.full(x.rows, -1, np.int32)
    number_of[unknown] = pivots.number_of
    end = int(pivots.start[count])
    pivots = pivots._replace(
        row_of=unknown[pivots.row_of[:count]].astype(np.int32),
        number_of=number_of,
        start=pivots.start[: count + 1],
        rows=unknown[pivots.rows[:end]].astype(np.int32),
        values=pivots.values[:end].copy(),
    )
    space = ModularNullSpace(pivots, np.flatnonzero(~known & (number_of < 0)), known, mask)
    shown = np.flatnonzero(mask)
    if _sums(x, shown, space.random_vectors(_CHECKS, seed=1)).any():
        raise RuntimeError("the null space is noticed by a published cell")
    return space


def reveals_modular(space: ModularNullSpace, x: DummyMatrix, cells: ArrayLike) -> NDArray[np.int64]:
    """Those of the cells (mask or indices) that follow from the published ones: c'n = 0 modulo p for the whole space.

    Tested on three random vectors of the space: a cell that does not follow passes with a chance of p^-3.
    """
    index = cell_indices("cells", cells, x.columns)
    result: NDArray[np.int64] = index[~_sums(x, index, space.random_vectors(_CHECKS, seed=2)).any(axis=1)]
    return result


def _sums(x: DummyMatrix, cells: Array, vectors: Array) -> Array:
    """The sums modulo p of the cells over vectors; len(cells) x vectors."""
    result = np.zeros((len(cells), vectors.shape[1]), np.int64)
    echelon.sums(x.indptr.astype(np.int64), x.indices.astype(np.int32), cells.astype(np.int64), vectors, result)
    return result


def _chosen(x: DummyMatrix, mask: Array) -> tuple[Any, Array]:
    """The published columns, and which inner cells are published themselves."""
    full = x.sparse(np.int64)
    chosen = full[:, np.flatnonzero(mask)]
    known = np.zeros(x.rows, dtype=bool)
    known[chosen[:, np.flatnonzero(np.diff(chosen.indptr) == 1)].indices] = True
    return chosen, known


def _places(start: Array, end: Array) -> Array:
    """The numbers start[0]:end[0], start[1]:end[1], ... one after the other."""
    size = end - start
    result: Array = np.repeat(start, size) + np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return result


def _echelon(x: Any, check: Callable[[], object], cost: Array | None = None) -> Pivots:
    """The echelon form of the columns of a matrix. Small cells come first: parents are then reduced by their published
    children and hardly fill in. ``cost``: of a row as a pivot, how many columns have it if not given."""
    length = np.diff(x.indptr)
    order = np.argsort(length, kind="stable")
    order = order[length[order] > 0]
    if cost is None:
        # Of equal cells one is enough.
        order = order[first_equal(x[:, order]) == np.arange(len(order))]
        return echelon.echelon(x.indptr, x.indices, x.shape[0], order, check=check)
    return echelon.echelon_by_cost(x.indptr, x.indices, order, x.data, cost, check)


@dataclass(frozen=True)
class NullSpace:
    """basis: m x k whole numbers (int64, column-compressed), k = m - rank of the published columns, each column without
    a common factor. known: m booleans, inner cells that are published themselves. published: N booleans."""

    basis: Any
    known: NDArray[np.bool_]
    published: NDArray[np.bool_]

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])


def null_space(
    x: DummyMatrix, published: ArrayLike | ModularNullSpace, check: Callable[[], object] = lambda: None
) -> NullSpace:
    """The null space of the published cells (mask or indices, or their space modulo p) of an m x N matrix.

    Raises ArithmeticError if an entry does not fit 64 bits, so that an unchecked basis is never used.
    check: called now and then in long work; what it raises ends it.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]), (3, 2))
    >>> null_space(x, [0, 1]).basis.toarray().ravel().tolist()
    [-1, 1, 0]
    """
    shown: ArrayLike = published.published if isinstance(published, ModularNullSpace) else published
    mask = np.zeros(x.columns, dtype=bool)
    mask[cell_indices("published", shown, x.columns)] = True
    chosen, known = _chosen(x, mask)
    unknown = np.flatnonzero(~known)
    left = scipy.sparse.csc_array(chosen[unknown])
    left.sort_indices()
    modular = _basis_of(published, unknown) if isinstance(published, ModularNullSpace) else _basis_modulo_p(left, check)
    basis = scipy.sparse.csc_array(_recovered(left, modular, check))
    place = scipy.sparse.csc_array(
        (np.ones(len(unknown), np.int64), (unknown, np.arange(len(unknown)))), (x.rows, len(unknown))
    )
    basis = scipy.sparse.csc_array(place @ basis)
    basis.sort_indices()
    if not _vanishes(chosen, basis):
        raise ArithmeticError("the null space has entries too large for the arithmetic")
    return NullSpace(basis, known, mask)


def reveals(space: NullSpace, x: DummyMatrix, cells: ArrayLike) -> NDArray[np.int64]:
    """Those of the cells that follow from the published ones, exactly: c'N = 0 in whole numbers."""
    index = cell_indices("cells", cells, x.columns)
    full = x.sparse(np.int64)
    product = scipy.sparse.csr_array(full[:, index].T @ space.basis)
    product.eliminate_zeros()
    result: NDArray[np.int64] = index[np.diff(product.indptr) == 0]
    return result


@dataclass(frozen=True)
class _Modular:
    """A basis modulo p by rows (`_substitute`), the rows that were never a pivot, and the number of vectors."""

    start: Array
    vector: Array
    value: Array
    free: Array

    @property
    def vectors(self) -> int:
        return len(self.free)


def _basis_of(space: ModularNullSpace, unknown: Array) -> _Modular:
    """The basis of a space that is there already, on the inner cells that are not known."""
    vector_of = np.full(len(space.known), -1, np.int64)
    vector_of[space.free] = np.arange(space.dimension)
    start, end, vector, value = echelon.basis_rows(space.pivots, vector_of, space.dimension)
    start, end = start[unknown], end[unknown]
    place = _places(start, end)
    offsets = np.concatenate([[0], np.cumsum(end - start)])
    return _Modular(offsets, vector[place].astype(np.int64), value[place], np.searchsorted(unknown, space.free))


def _basis_modulo_p(x: Any, check: Callable[[], object], below: Array | None = None) -> _Modular:
    """A basis modulo p of the null space of x' or, with more rows ``below`` (values modulo p), of (x; below)'."""
    rows, more = x.shape[0], 0 if below is None else len(below)
    if below is None:
        pivots = _echelon(x, check)
    else:
        # The rows below are never a pivot: they are left with nothing when the system has a solution.
        cost = np.concatenate([np.bincount(x.indices, minlength=rows), np.full(more, -1)])
        whole = scipy.sparse.csc_array(scipy.sparse.vstack([x, scipy.sparse.csc_array(below)], format="csc"))
        whole.sort_indices()
        pivots = _echelon(whole, check, cost)
    free = np.flatnonzero(pivots.number_of < 0)
    vector_of = np.full(rows + more, -1, dtype=np.int64)
    vector_of[free] = np.arange(len(free))
    start, end, vector, value = echelon.basis_rows(pivots, vector_of, len(free))
    place = _places(start, end)
    return _Modular(np.concatenate([[0], np.cumsum(end - start)]), vector[place].astype(np.int64), value[place], free)


@njit(cache=True, nogil=True)
def _common_denominators(vector: Array, value: Array, vectors: int) -> tuple[Array, Array, Array]:
    """Numerators, denominators, and of each vector their least common multiple (0 where there is none below 2^31)."""
    top, bottom = np.empty(len(value), np.int64), np.empty(len(value), np.int64)
    multiple = np.ones(vectors, np.int64)
    for i in range(len(value)):
        top[i], bottom[i] = fraction(value[i])
        known = multiple[vector[i]]
        if known == 0 or bottom[i] == 0:
            multiple[vector[i]] = 0
            continue
        a, b = known, bottom[i]
        while b:
            a, b = b, a % b
        known = known // a * bottom[i]
        multiple[vector[i]] = known if known < 1 << 31 else 0
    return top, bottom, multiple


def _recovered(x: Any, modular: _Modular, check: Callable[[], object]) -> Any:
    """The basis in whole numbers."""
    top, bottom, multiple = _common_denominators(modular.vector, modular.value, modular.vectors)
    fits = multiple[modular.vector] > 0
    shape = (x.shape[0], modular.vectors)
    row = np.repeat(np.arange(x.shape[0]), np.diff(modular.start))
    entries = top[fits] * (multiple[modular.vector[fits]] // bottom[fits])
    basis = scipy.sparse.csc_array((entries, (row[fits], modular.vector[fits])), shape=shape)
    large = np.flatnonzero(multiple == 0)
    return basis + _lifted(x, modular, row, large, check) if len(large) else basis


def _lifted(x: Any, modular: _Modular, row: Array, large: Array, check: Callable[[], object]) -> Any:
    """The basis vectors with large entries, found modulo powers of p.

    With x'n = p b in whole numbers, the next digit d of n solves x'd = -b modulo p: the basis vector of (x; b)' that is
    1 in the row of b. One to three digits are tried.
    """
    inside = np.isin(modular.vector, large)
    column = np.searchsorted(large, modular.vector[inside])
    digit = np.zeros((x.shape[0], len(large)), np.int64)
    digit[row[inside], column] = _balanced(modular.value[inside])
    number: Array = digit.astype(object)
    power = 1
    carry = _exact_product(x, digit)
    for _ in range(3):
        vectors = [_cleared(number[:, k], power * PRIME) for k in range(len(large))]
        if all(vector is not None for vector in vectors):
            lifted = np.column_stack([np.array(vector, dtype=np.int64) for vector in vectors if vector is not None])
            place = scipy.sparse.csc_array(
                (np.ones(len(large), np.int64), (np.arange(len(large)), large)), (len(large), modular.vectors)
            )
            return scipy.sparse.csc_array(lifted) @ place
        b = carry // PRIME
        if np.any(b * PRIME != carry):
            raise ArithmeticError("the null space has entries too large for the arithmetic")
        power *= PRIME
        step = _basis_modulo_p(x, check, (b % PRIME).T.astype(np.int64))
        if not np.array_equal(step.free[: modular.vectors], modular.free):
            raise ArithmeticError("the null space has entries too large for the arithmetic")
        digit = np.zeros_like(digit)
        new = step.vector >= modular.vectors
        places = np.repeat(np.arange(len(step.start) - 1), np.diff(step.start))[new]
        inner = places < x.shape[0]
        digit[places[inner], step.vector[new][inner] - modular.vectors] = _balanced(step.value[new][inner])
        number = number + power * digit.astype(object)
        carry = b + _exact_product(x, digit)
    raise ArithmeticError("the null space has entries too large for the arithmetic")


def _exact_product(x: Any, digit: Array) -> Array:
    """x' digit in Python numbers, from halves of 30 bits."""
    result: Array = (x.T @ (digit >> 30)).astype(object) * 2**30 + (x.T @ (digit & (2**30 - 1))).astype(object)
    return result


def _balanced(value: Array) -> Array:
    """Representatives between -p/2 and p/2."""
    result: Array = np.where(value > PRIME // 2, value - PRIME, value)
    return result


def _cleared(values: Array, modulus: int) -> list[int] | None:
    """The values modulo ``modulus`` as whole numbers with a common denominator cleared; None if that does not fit."""
    bound = isqrt(modulus // 2)
    denominator = 1
    for value in values:
        rest = value * denominator % modulus
        r0, r1, t0, t1 = modulus, rest, 0, 1
        while r1 >= bound:
            quotient = r0 // r1
            r0, r1, t0, t1 = r1, r0 - quotient * r1, t1, t0 - quotient * t1
        denominator *= abs(t1)
        if denominator >= bound:
            return None
    cleared = [value * denominator % modulus for value in values]
    cleared = [value - modulus if value > modulus // 2 else value for value in cleared]
    return cleared if max(map(abs, cleared)) < 2**62 else None


def _vanishes(chosen: Any, basis: Any) -> bool:
    """Is chosen'N = 0, in 64-bit whole numbers that cannot overflow?"""
    longest = int(np.diff(chosen.indptr).max(initial=0))
    if longest * int(np.abs(basis.data).max(initial=0)) >= 2**63:
        return False
    return not np.any((chosen.T @ basis).data)
