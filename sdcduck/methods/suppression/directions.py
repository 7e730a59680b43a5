"""In which directions an attacker's solutions differ: a sparse basis of the vectors that no equation sees.

Such a basis is kept while the equations are taken one after the other, short ones first, modulo the prime 2^61 - 1: of
the vectors that see an equation the shortest is given up, and the others lose their part along it. Linear programs over
the basis have few entries then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression.echelon import PRIME, add, fraction, inverse, multiply
from sdcduck.methods.suppression.matrix import DummyMatrix

Array = NDArray[Any]


class _Vectors(NamedTuple):
    """Vectors in a pool one behind the other; a vector that grows moves to its end. Vector v is 1 in row v.

    head, vector, following: of each row a linked list of the vectors that had it once. ends: where the pool and the
    lists are free from.
    """

    start: Array
    length: Array
    alive: Array
    rows: Array
    values: Array
    head: Array
    vector: Array
    following: Array
    ends: Array


def directions(x: DummyMatrix) -> scipy.sparse.csc_matrix:
    """A basis of the vectors v with X'v = 0, float64 (rows x k): each has a row of its own, where it is 1.

    Entries are the fractions of numbers below 2^30 that they are modulo the prime; NaN where there is none.
    """
    order = np.argsort(np.diff(x.indptr), kind="stable")
    start, rows, values = _basis(x.indptr, x.indices, x.rows, order)
    return scipy.sparse.csc_matrix((values, rows, start), shape=(x.rows, len(start) - 1))


@njit(cache=True)
def _combine(row_a, value_a, row_b, value_b, factor, out_row, out_value):  # type: ignore[no-untyped-def]
    """a + factor * b of two sparse vectors with ascending rows; returns the length of the result."""
    i, j, n = 0, 0, 0
    while i < len(row_a) or j < len(row_b):
        if j == len(row_b) or (i < len(row_a) and row_a[i] < row_b[j]):
            out_row[n], out_value[n] = row_a[i], value_a[i]
            i += 1
            n += 1
        elif i == len(row_a) or row_b[j] < row_a[i]:
            out_row[n], out_value[n] = row_b[j], multiply(factor, value_b[j])
            j += 1
            n += 1
        else:
            v = add(value_a[i], multiply(factor, value_b[j]))
            if v != 0:
                out_row[n], out_value[n] = row_a[i], v
                n += 1
            i += 1
            j += 1
    return n


@njit(cache=True)
def _unit_vectors(count):  # type: ignore[no-untyped-def]
    """The vectors before any equation is taken."""
    room = max(4 * count, 1024)
    rows, values, vector, following = (
        np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64),
    )  # fmt: skip
    rows[:count] = vector[:count] = np.arange(count)
    values[:count] = 1
    following[:count] = -1
    ones = np.ones(count, np.int64)
    ends = np.array([count, count])
    return _Vectors(
        np.arange(count), ones, np.ones(count, np.bool_), rows, values, np.arange(count), vector, following, ends
    )


@njit(cache=True)
def _with_room(vectors, more):  # type: ignore[no-untyped-def]
    """The vectors with room for ``more`` entries, in a pool without those given up if the old one is full."""
    start, length, alive, rows, values, head, vector, following, ends = vectors
    if ends[0] + more > len(rows):
        size = max(len(rows), 2 * (length[alive].sum() + more))
        new_rows, new_values = np.empty(size, np.int64), np.empty(size, np.int64)
        used = 0
        for v in np.flatnonzero(alive):
            n = length[v]
            new_rows[used : used + n] = rows[start[v] : start[v] + n]
            new_values[used : used + n] = values[start[v] : start[v] + n]
            start[v] = used
            used += n
        rows, values, ends[0] = new_rows, new_values, used
    if ends[1] + more > len(vector):
        extra = np.empty(len(vector) + more, np.int64)
        vector, following = np.concatenate((vector, extra)), np.concatenate((following, extra))
    return _Vectors(start, length, alive, rows, values, head, vector, following, ends)


@njit(cache=True)
def _replace(vectors, v, rows, values):  # type: ignore[no-untyped-def]
    """Vector v has these entries now, in ascending rows; there is room for them."""
    old = vectors.rows[vectors.start[v] : vectors.start[v] + vectors.length[v]]
    i = 0
    for row in rows:
        while i < len(old) and old[i] < row:
            i += 1
        if i == len(old) or old[i] != row:
            place = vectors.ends[1]
            vectors.vector[place] = v
            vectors.following[place] = vectors.head[row]
            vectors.head[row] = place
            vectors.ends[1] += 1
    if len(rows) > vectors.length[v]:
        vectors.start[v] = vectors.ends[0]
        vectors.ends[0] += len(rows)
    begin = vectors.start[v]
    vectors.length[v] = len(rows)
    vectors.rows[begin : begin + len(rows)] = rows
    vectors.values[begin : begin + len(rows)] = values


@njit(cache=True)
def _noticed(vectors, rows, c, in_column, seen, met, sums):  # type: ignore[no-untyped-def]
    """The vectors whose sums over column c are not 0, written to ``met`` with these; how many, and the shortest."""
    count, pivot = 0, -1
    length = vectors.length
    for r in rows:
        in_column[r] = c
    for r in rows:
        node = vectors.head[r]
        while node >= 0:
            v = vectors.vector[node]
            node = vectors.following[node]
            if not vectors.alive[v] or seen[v] == c:
                continue
            seen[v] = c
            total = 0
            for k in range(vectors.start[v], vectors.start[v] + length[v]):
                if in_column[vectors.rows[k]] == c:
                    total = add(total, vectors.values[k])
            if total != 0:
                met[count], sums[count] = v, total
                count += 1
                if pivot < 0 or length[v] < length[pivot] or (length[v] == length[pivot] and v < pivot):
                    pivot = v
    return count, pivot


@njit(cache=True)
def _basis(indptr, indices, count, order):  # type: ignore[no-untyped-def]
    """The vectors left when all columns are taken, by columns: where each begins, rows and values."""
    vectors = _unit_vectors(count)
    in_column, seen = np.full(count, -1), np.full(count, -1)
    met, sums = np.empty(count, np.int64), np.empty(count, np.int64)
    spare_rows, spare_values = np.empty(count, np.int64), np.empty(count, np.int64)
    for c in order:
        found, pivot = _noticed(vectors, indices[indptr[c] : indptr[c + 1]], c, in_column, seen, met, sums)
        if pivot < 0:
            continue
        vectors.alive[pivot] = False
        first, end = vectors.start[pivot], vectors.start[pivot] + vectors.length[pivot]
        pivot_rows, pivot_values = vectors.rows[first:end].copy(), vectors.values[first:end].copy()
        back = 0
        for m in range(found):
            back = sums[m] if met[m] == pivot else back
        back = multiply(PRIME - 1, inverse(back))
        for m in range(found):
            v = met[m]
            if v == pivot:
                continue
            first, end = vectors.start[v], vectors.start[v] + vectors.length[v]
            n = _combine(
                vectors.rows[first:end], vectors.values[first:end], pivot_rows, pivot_values, multiply(sums[m], back),
                spare_rows, spare_values,
            )  # fmt: skip
            vectors = _with_room(vectors, n)
            _replace(vectors, v, spare_rows[:n], spare_values[:n])
    own = np.flatnonzero(vectors.alive)
    indptr = np.zeros(len(own) + 1, np.int64)
    indptr[1:] = np.cumsum(vectors.length[own])
    rows, values = np.empty(indptr[-1], np.int64), np.empty(indptr[-1])
    for i in range(len(own)):
        for k in range(vectors.length[own[i]]):
            rows[indptr[i] + k] = vectors.rows[vectors.start[own[i]] + k]
            numerator, denominator = fraction(vectors.values[vectors.start[own[i]] + k])
            values[indptr[i] + k] = numerator / denominator if denominator else np.nan
    return indptr, rows, values
