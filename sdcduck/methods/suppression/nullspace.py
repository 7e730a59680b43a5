"""What a publication leaves open: a sparse whole-number basis N of all inner changes that no published cell notices.

X_pub' N = 0 (Langsrud and Bøvelstad 2022, section 2: the residuals of the regression on the published cells lie in the
span of N). The published columns are eliminated modulo p as in the suppression; every row that never was a pivot gives
one basis vector, by substitution from the last pivot to the first. Entries are recovered as fractions (the few vectors
with large ones after lifting the solution to higher powers of p, Dixon 1982), cleared of denominators, and X_pub' N = 0
is checked in whole numbers: nothing rests on the modulus.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.suppression import residuals
from sdcduck.methods.suppression.elimination import Elimination, cell_indices
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.residuals import CANDIDATE, GONE, PIVOT, PRIME, VALUE, inverse, modulo

Array = NDArray[Any]

_HALF = 1 << 15


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


def null_space(x: DummyMatrix, published: ArrayLike) -> NullSpace:
    """The null space of the published cells (mask or indices) of an m x N matrix.

    Raises ArithmeticError if an entry does not fit 64 bits, so that an unchecked basis is never used.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]), (3, 2))
    >>> null_space(x, [0, 1]).basis.toarray().ravel().tolist()
    [-1, 1, 0]
    """
    mask = np.zeros(x.columns, dtype=bool)
    mask[cell_indices("published", published, x.columns)] = True
    chosen = sp.csc_array((np.ones(len(x.indices), np.int64), x.indices, x.indptr), shape=(x.rows, x.columns))
    chosen = chosen[:, np.flatnonzero(mask)]
    length = np.diff(chosen.indptr)
    known = np.zeros(x.rows, dtype=bool)
    known[chosen[:, np.flatnonzero(length == 1)].indices] = True
    unknown = np.flatnonzero(~known)
    left = sp.csc_array(chosen[unknown])
    left.sort_indices()
    modular = _basis_modulo_p(left)
    basis = sp.csc_array(_recovered(left, modular))
    place = sp.csc_array((np.ones(len(unknown), np.int64), (unknown, np.arange(len(unknown)))), (x.rows, len(unknown)))
    basis = sp.csc_array(place @ basis)
    basis.sort_indices()
    if not _vanishes(chosen, basis):
        raise ArithmeticError("the null space has entries too large for the arithmetic")
    return NullSpace(basis, known, mask)


def reveals(space: NullSpace, x: DummyMatrix, cells: ArrayLike) -> NDArray[np.int64]:
    """Those of the cells that follow from the published ones, exactly: c'N = 0 in whole numbers."""
    index = cell_indices("cells", cells, x.columns)
    full = sp.csc_array((np.ones(len(x.indices), np.int64), x.indices, x.indptr), shape=(x.rows, x.columns))
    product = sp.csr_array(full[:, index].T @ space.basis)
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


def _basis_modulo_p(x: Any, below: Array | None = None) -> _Modular:
    """A basis modulo p of the null space of x' or, with more rows ``below`` (values modulo p), of (x; below)'."""
    rows, more = x.shape[0], 0 if below is None else len(below)
    length = np.diff(x.indptr)
    kind = np.where(length > 0, CANDIDATE, GONE).astype(np.int8)
    whole = x if below is None else sp.csc_array(sp.vstack([x, sp.csc_array(below)], format="csc"))
    whole.sort_indices()
    # The rows below come last in rank and are left with nothing when the system has a solution.
    engine = Elimination(
        whole.indptr.astype(np.int64),
        whole.indices.astype(np.int32),
        rows + more,
        kind,
        free_rows=rows,
        keep_pivots=True,
        values=whole.data.astype(np.int64),
    )
    engine.start_merging()
    # Small cells first: parents are reduced by their published children and hardly fill in.
    turns = np.argsort(length, kind="stable")
    unused = np.zeros(x.shape[1], dtype=bool)
    done = 0
    while done < len(turns):
        done, status = residuals.publish(
            *engine.store, engine.scratch, engine.out, engine.shared, turns, done, len(turns), unused
        )
        if status:
            engine.make_room(status)
    pivots = np.flatnonzero(engine.columns["kind"] == PIVOT)
    pivots = pivots[np.argsort(engine.columns["stamp"][pivots])]
    pivot_rows = engine.columns["owner"][pivots].astype(np.int64)
    free = np.setdiff1d(np.arange(rows + more), pivot_rows)
    vector_of = np.full(rows + more, -1, dtype=np.int64)
    vector_of[free] = np.arange(len(free))
    start, end, vector, value = _substitute(engine.columns, engine.entries, pivots, pivot_rows, vector_of)
    size = end - start
    order = np.repeat(start, size) + np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return _Modular(np.concatenate([[0], np.cumsum(size)]), vector[order], value[order], free)


@njit(cache=True)
def _substitute(
    columns: Array, entries: Array, pivots: Array, pivot_rows: Array, vector_of: Array
) -> tuple[Array, Array, Array, Array]:
    """The rows of the basis: free rows are unit rows, a pivot row follows from the rows that were left with it."""
    rows = len(vector_of)
    free = vector_of.max() + 1 if rows else 0
    start, end = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    vector, value = np.empty(free + 64, np.int64), np.empty(free + 64, np.int64)
    used = 0
    for row in range(rows):
        start[row] = end[row] = used
        if vector_of[row] >= 0:
            vector[used], value[used] = vector_of[row], 1
            used += 1
            end[row] = used
    total = np.zeros(free, np.int64)
    touched = np.empty(free, np.int64)
    seen = np.zeros(free, np.bool_)
    for k in range(len(pivots) - 1, -1, -1):
        c, pivot_row, scale, n = pivots[k], pivot_rows[k], 0, 0
        for e in range(columns[c].start, columns[c].start + columns[c].length):
            row, factor = entries[e] >> 32, entries[e] & VALUE
            if row == pivot_row:
                scale = PRIME - inverse(factor)
                continue
            for i in range(start[row], end[row]):
                f = vector[i]
                if not seen[f]:
                    seen[f] = True
                    touched[n] = f
                    n += 1
                total[f] = modulo(total[f] + factor * value[i])
        if used + n > len(vector):
            size = 2 * (used + n)
            wider = np.empty(size, np.int64)
            wider[:used] = vector[:used]
            vector = wider
            wider = np.empty(size, np.int64)
            wider[:used] = value[:used]
            value = wider
        start[pivot_row] = used
        for i in range(n):
            f = touched[i]
            if total[f]:
                vector[used], value[used] = f, modulo(total[f] * scale)
                used += 1
            total[f] = 0
            seen[f] = False
        end[pivot_row] = used
    return start, end, vector, value


@njit(cache=True)
def _fraction(value: int) -> tuple[int, int]:
    """Numerator and denominator below 2^15 of a value modulo p (Wang 1981); denominator 0 if there are none."""
    if value < _HALF:
        return value, 1
    if PRIME - value < _HALF:
        return value - PRIME, 1
    r0, r1, t0, t1 = PRIME, value, 0, 1
    while r1 >= _HALF:
        quotient = r0 // r1
        r0, r1 = r1, r0 - quotient * r1
        t0, t1 = t1, t0 - quotient * t1
    if abs(t1) >= _HALF:
        return 0, 0
    return (r1, t1) if t1 > 0 else (-r1, -t1)


@njit(cache=True)
def _common_denominators(vector: Array, value: Array, vectors: int) -> tuple[Array, Array, Array]:
    """Numerators, denominators, and of each vector their least common multiple (0 where there is none below 2^31)."""
    top, bottom = np.empty(len(value), np.int64), np.empty(len(value), np.int64)
    multiple = np.ones(vectors, np.int64)
    for i in range(len(value)):
        top[i], bottom[i] = _fraction(value[i])
        known = multiple[vector[i]]
        if known == 0 or bottom[i] == 0:
            multiple[vector[i]] = 0
            continue
        a, b = known, bottom[i]
        while b:
            a, b = b, a % b
        known = known // a * bottom[i]
        multiple[vector[i]] = known if known < PRIME else 0
    return top, bottom, multiple


def _recovered(x: Any, modular: _Modular) -> Any:
    """The basis in whole numbers."""
    top, bottom, multiple = _common_denominators(modular.vector, modular.value, modular.vectors)
    fits = multiple[modular.vector] > 0
    shape = (x.shape[0], modular.vectors)
    row = np.repeat(np.arange(x.shape[0]), np.diff(modular.start))
    entries = top[fits] * (multiple[modular.vector[fits]] // bottom[fits])
    basis = sp.csc_array((entries, (row[fits], modular.vector[fits])), shape=shape)
    large = np.flatnonzero(multiple == 0)
    return basis + _lifted(x, modular, row, large) if len(large) else basis


def _lifted(x: Any, modular: _Modular, row: Array, large: Array) -> Any:
    """The basis vectors with large entries, found modulo powers of p.

    With x'n = p b in whole numbers, the next digit d of n solves x'd = -b modulo p: the basis vector of (x; b)' that is
    1 in the row of b. Two to four digits are tried.
    """
    inside = np.isin(modular.vector, large)
    column = np.searchsorted(large, modular.vector[inside])
    digit = np.zeros((x.shape[0], len(large)), np.int64)
    digit[row[inside], column] = _balanced(modular.value[inside])
    number: Array = digit.astype(object)
    power = 1
    carry = x.T @ digit
    for _ in range(3):
        b = carry // PRIME
        if np.any(b * PRIME != carry):
            raise ArithmeticError("the null space has entries too large for the arithmetic")
        power *= PRIME
        step = _basis_modulo_p(x, (b % PRIME).T)
        if not np.array_equal(step.free[: modular.vectors], modular.free):
            raise ArithmeticError("the null space has entries too large for the arithmetic")
        digit = np.zeros_like(digit)
        new = step.vector >= modular.vectors
        places = np.repeat(np.arange(len(step.start) - 1), np.diff(step.start))[new]
        inner = places < x.shape[0]
        digit[places[inner], step.vector[new][inner] - modular.vectors] = _balanced(step.value[new][inner])
        number = number + power * digit.astype(object)
        carry = b + x.T @ digit
        vectors = [_cleared(number[:, k], power * PRIME) for k in range(len(large))]
        if all(vector is not None for vector in vectors):
            lifted = np.column_stack([np.array(vector, dtype=np.int64) for vector in vectors if vector is not None])
            place = sp.csc_array(
                (np.ones(len(large), np.int64), (np.arange(len(large)), large)), (len(large), modular.vectors)
            )
            return sp.csc_array(lifted) @ place
    raise ArithmeticError("the null space has entries too large for the arithmetic")


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
