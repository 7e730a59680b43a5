"""Columns in echelon form modulo p = 2^61 - 1, one after the other: each is cleared of the pivots before it.

The left-looking form of the elimination of `residuals`: a column is touched at its own turn only, so nothing is spent
on columns that never become a pivot, and what was stored never changes. Every number is exact modulo p; a rational
number that is not 0 vanishes modulo p with a chance of about 2^-61.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

PRIME = 2**61 - 1

Array = NDArray[Any]

_HALF = 2**31 - 1


class Pivots(NamedTuple):
    """Stored columns: number k has the entries start[k]:start[k + 1] of ``rows`` and ``values``, 1 in ``row_of[k]``.

    number_of: of each row the pivot it is, -1 if none. used: one element, how many pivots there are.
    """

    row_of: Array
    number_of: Array
    start: Array
    rows: Array
    values: Array
    used: Array


class Scratch(NamedTuple):
    """A column being worked on: values by row, the rows it touched, and a heap of pivots still to be cleared."""

    values: Array
    seen: Array
    touched: Array
    heap: Array


def new_pivots(rows: int, room: int) -> Pivots:
    """No pivots yet, of at most ``rows``, with room for so many entries."""
    return Pivots(
        np.empty(rows, np.int32),
        np.full(rows, -1, np.int32),
        np.zeros(rows + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )


def new_scratch(rows: int) -> Scratch:
    """All zero, nothing touched."""
    return Scratch(
        np.zeros(rows, np.int64), np.zeros(rows, np.bool_), np.empty(rows, np.int32), np.empty(rows + 1, np.int32)
    )


def widened(pivots: Pivots, room: int) -> Pivots:
    """The same pivots with at least ``room`` more places for entries, and at least half as many as are in use."""
    end = int(pivots.start[pivots.used[0]])
    size = end + max(room, end // 2)
    rows, values = np.empty(size, np.int32), np.empty(size, np.int64)
    rows[:end], values[:end] = pivots.rows[:end], pivots.values[:end]
    return pivots._replace(rows=rows, values=values)


@njit(cache=True, nogil=True)
def multiply(a: int, b: int) -> int:
    """a b mod p for a, b in [0, p), in halves of 31 bits; 2^61 = 1."""
    if a == 1 or b == 1:
        return a * b
    a1, a0, b1, b0 = a >> 31, a & _HALF, b >> 31, b & _HALF
    middle, low = a1 * b0 + a0 * b1, a0 * b0
    total = 2 * a1 * b1 + (middle >> 30) + ((middle & 0x3FFFFFFF) << 31) + (low & PRIME) + (low >> 61)
    total = (total & PRIME) + (total >> 61)
    return total - PRIME if total >= PRIME else total


@njit(cache=True, nogil=True)
def times(a: int, b: int) -> int:
    """`multiply` where -1 comes often as well."""
    if b == PRIME - 1:
        return PRIME - a if a else a
    if a == PRIME - 1:
        return PRIME - b if b else b
    return multiply(a, b)


@njit(cache=True, nogil=True)
def add(a: int, b: int) -> int:
    """a + b mod p."""
    total = a + b
    return total - PRIME if total >= PRIME else total


@njit(cache=True, nogil=True)
def inverse(a: int) -> int:
    """1 / a mod p by Fermat; most values are +-1."""
    if a == 1 or a == PRIME - 1:
        return a
    result, power, exponent = 1, a, PRIME - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, power)
        power = multiply(power, power)
        exponent >>= 1
    return result


@njit(cache=True, nogil=True)
def push(heap: Array, size: int, item: int) -> int:
    """Adds an item to a heap with the smallest in front; returns the new size."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if heap[above] <= item:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item
    return size + 1


@njit(cache=True, nogil=True)
def pop(heap: Array, size: int) -> int:
    """Removes the smallest item of a heap of this size and returns it."""
    top, item = heap[0], heap[size - 1]
    end, place = size - 1, 0
    while 2 * place + 1 < end:
        below = 2 * place + 1
        if below + 1 < end and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= item:
            break
        heap[place] = heap[below]
        place = below
    heap[place] = item
    return int(top)


@njit(cache=True, nogil=True)
def subtract(
    factor: int, rows: Array, entries: Array, number_of: Array, scratch: Scratch, touched: int, size: int
) -> tuple[int, int]:
    """Adds factor times a pivot to the column being worked on; returns the new lengths of rows touched and heap."""
    values, seen = scratch.values, scratch.seen
    for i in range(len(rows)):
        row = rows[i]
        values[row] = add(values[row], times(factor, entries[i]))
        if not seen[row]:
            seen[row] = True
            scratch.touched[touched] = row
            touched += 1
            if number_of[row] >= 0:
                size = push(scratch.heap, size, number_of[row])
    return touched, size


@njit(cache=True, nogil=True)
def reduce(pivots: Pivots, scratch: Scratch, rows: Array, values: Array) -> int:
    """Loads a column (no values: all 1) and clears it of all pivots; returns how many rows were touched."""
    touched = size = 0
    for i in range(len(rows)):
        row = rows[i]
        scratch.values[row] = values[i] if len(values) else 1
        scratch.seen[row] = True
        scratch.touched[i] = row
        if pivots.number_of[row] >= 0:
            size = push(scratch.heap, size, pivots.number_of[row])
    touched = len(rows)
    while size:
        k = pop(scratch.heap, size)
        size -= 1
        value = scratch.values[pivots.row_of[k]]
        if value:
            a, b = pivots.start[k], pivots.start[k + 1]
            touched, size = subtract(
                PRIME - value, pivots.rows[a:b], pivots.values[a:b], pivots.number_of, scratch, touched, size
            )
    return touched


@njit(cache=True, nogil=True)
def best_row(scratch: Scratch, touched: int, cost: Array) -> int:
    """The row of smallest cost that is left of the column; -1 if none is, or only rows of negative cost."""
    best = -1
    for row in scratch.touched[:touched]:
        if scratch.values[row] and cost[row] >= 0 and (best < 0 or (cost[row], row) < (cost[best], best)):
            best = row
    return best


@njit(cache=True, nogil=True)
def store(pivots: Pivots, scratch: Scratch, touched: int, row: int) -> None:
    """What is left of the column becomes a pivot in this row; there is room for it."""
    k = pivots.used[0]
    end = pivots.start[k]
    scale = inverse(scratch.values[row])
    for r in scratch.touched[:touched]:
        if scratch.values[r]:
            pivots.rows[end] = r
            pivots.values[end] = multiply(scratch.values[r], scale)
            end += 1
    pivots.start[k + 1] = end
    pivots.row_of[k] = row
    pivots.number_of[row] = k
    pivots.used[0] = k + 1


@njit(cache=True, nogil=True)
def clear(scratch: Scratch, touched: int) -> None:
    """Makes the scratch all zero again."""
    for row in scratch.touched[:touched]:
        scratch.values[row] = 0
        scratch.seen[row] = False


@njit(cache=True, nogil=True)
def take(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    values: Array,
    order: Array,
    first: int,
    cost: Array,
) -> int:
    """Takes the columns order[first:]; stops where the pool is full, and returns where. Rows of cost -1 never pivot."""
    for turn in range(first, len(order)):
        a, b = indptr[order[turn]], indptr[order[turn] + 1]
        touched = reduce(pivots, scratch, indices[a:b], values[a:b])
        row = best_row(scratch, touched, cost)
        full = row >= 0 and pivots.start[pivots.used[0]] + touched > len(pivots.rows)
        if row >= 0 and not full:
            store(pivots, scratch, touched, row)
        clear(scratch, touched)
        if full:
            return turn
    return len(order)


@njit(cache=True, nogil=True)
def extend(pivots: Pivots, vectors: Array) -> None:
    """Fills in the pivot rows of m x k vectors, values modulo p on the other rows, so that no column notices them."""
    for k in range(pivots.used[0] - 1, -1, -1):
        own = pivots.row_of[k]
        vectors[own] = 0
        for i in range(pivots.start[k], pivots.start[k + 1]):
            if pivots.rows[i] != own:
                factor = PRIME - pivots.values[i]
                for v in range(vectors.shape[1]):
                    if vectors[pivots.rows[i], v]:
                        vectors[own, v] = add(vectors[own, v], multiply(factor, vectors[pivots.rows[i], v]))


@njit(cache=True, nogil=True)
def basis_rows(pivots: Pivots, vector_of: Array, vectors: int) -> tuple[Array, Array, Array, Array]:
    """The null space by rows: (start, end, vector, value); free rows are unit rows, a pivot row follows from the rows
    that were left with it. ``vector_of``: the vector of each free row, -1 for pivot rows."""
    rows = len(vector_of)
    start, end = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    vector, value = np.empty(4 * rows + vectors, np.int32), np.empty(4 * rows + vectors, np.int64)
    used = 0
    for row in range(rows):
        start[row] = used
        if vector_of[row] >= 0:
            vector[used], value[used] = vector_of[row], 1
            used += 1
        end[row] = used
    total = np.zeros(vectors, np.int64)
    seen = np.zeros(vectors, np.bool_)
    touched = np.empty(vectors, np.int32)
    for k in range(pivots.used[0] - 1, -1, -1):
        own, n = pivots.row_of[k], 0
        for i in range(pivots.start[k], pivots.start[k + 1]):
            row = pivots.rows[i]
            if row != own:
                a, b = start[row], end[row]
                n = add_row(vector[a:b], value[a:b], PRIME - pivots.values[i], total, seen, touched, n)
        if used + n > len(vector):
            vector = np.concatenate((vector[:used], np.empty(used + n, np.int32)))
            value = np.concatenate((value[:used], np.empty(used + n, np.int64)))
        start[own] = used
        for v in touched[:n]:
            if total[v]:
                vector[used], value[used] = v, total[v]
                used += 1
            total[v] = 0
            seen[v] = False
        end[own] = used
    return start, end, vector, value


@njit(cache=True, nogil=True)
def add_row(vector: Array, value: Array, factor: int, total: Array, seen: Array, touched: Array, n: int) -> int:
    """Adds factor times a row of the basis to ``total``."""
    for i in range(len(vector)):
        v = vector[i]
        if not seen[v]:
            seen[v] = True
            touched[n] = v
            n += 1
        total[v] = add(total[v], multiply(factor, value[i]))
    return n


@njit(cache=True, nogil=True)
def sums(indptr: Array, indices: Array, columns: Array, values: Array, result: Array) -> None:
    """result[i, v]: the sum modulo p of column columns[i] over values[:, v]."""
    for i in range(len(columns)):
        for e in range(indptr[columns[i]], indptr[columns[i] + 1]):
            for v in range(values.shape[1]):
                result[i, v] = add(result[i, v], values[indices[e], v])


@njit(cache=True, nogil=True)
def combine(indptr: Array, indices: Array, data: Array, draws: Array, result: Array) -> None:
    """Adds draws[k, v] times column v of a whole-number matrix to result[:, k], modulo p."""
    for k in range(len(draws)):
        for v in range(len(indptr) - 1):
            for i in range(indptr[v], indptr[v + 1]):
                row = indices[i]
                result[row, k] = add(result[row, k], multiply(data[i] % PRIME, draws[k, v]))


def random_values(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Uniform values modulo p."""
    return rng.integers(0, PRIME, shape, dtype=np.int64)


def echelon(indptr: Array, indices: Array, rows: int, order: Array, values: Array | None = None) -> Pivots:
    """The echelon form of the columns ``order`` of a matrix: those of them that do not follow from earlier ones.

    values: of the entries, modulo p; all 1 if not given. A pivot is the row that fewest of the columns have.
    """
    if values is None:
        values = np.empty(0, np.int64)
    length = np.diff(indptr)
    used = np.isin(np.arange(len(length)), order)
    cost = np.bincount(indices[np.repeat(used, length)], minlength=rows).astype(np.int64)
    return echelon_by_cost(indptr, indices, order, values, cost)


def echelon_by_cost(indptr: Array, indices: Array, order: Array, values: Array, cost: Array) -> Pivots:
    """`echelon` with a cost for each row as a pivot; -1: never."""
    rows = len(cost)
    pivots, scratch = new_pivots(rows, len(indices) + rows), new_scratch(rows)
    indptr, indices, order = indptr.astype(np.int64), indices.astype(np.int32), order.astype(np.int64)
    done = 0
    while (done := take(pivots, scratch, indptr, indices, values, order, done, cost)) < len(order):
        pivots = widened(pivots, rows)
    return pivots
