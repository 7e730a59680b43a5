"""Published columns that stay sparse on the way to dense blocks: pivots of few entries, modulo three primes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import Queue, pop_least, push
from sdcduck.methods.suppression.three_primes import centred, inverse

Array = NDArray[Any]


class Light(NamedTuple):
    """Published columns that stayed sparse, in echelon form: number k has the entries start[k]:start[k + 1] of ``rows``
    and ``values`` (one for each prime), 1 in ``row_of[k]``. number_of: of each row, -1 if it is none of these."""

    row_of: Array
    number_of: Array
    start: Array
    rows: Array
    values: Array
    used: Array


class Desk(NamedTuple):
    """A sparse column being worked on: values by row, the rows it touched, and the pivots still to be cleared."""

    values: Array
    seen: Array
    touched: Array
    queue: Queue


@njit(cache=True, nogil=True)
def reduce_light(light: Light, desk: Desk, primes: Array, rows: Array, reach: int) -> int:
    """Loads a column of ones and clears it of the light pivots; returns how many rows were touched, and gives up when
    these are more than ``reach``."""
    touched = 0
    for row in rows:
        desk.values[row] = 1.0
        desk.seen[row] = True
        desk.touched[touched] = row
        touched += 1
        if light.number_of[row] >= 0:
            push(desk.queue, light.number_of[row])
    k = pop_least(desk.queue, 0)
    while k >= 0:
        own = light.row_of[k]
        f0, f1, f2 = desk.values[own, 0], desk.values[own, 1], desk.values[own, 2]
        if touched <= reach and (f0 != 0.0 or f1 != 0.0 or f2 != 0.0):
            for i in range(light.start[k], light.start[k + 1]):
                row = light.rows[i]
                if not desk.seen[row]:
                    desk.seen[row] = True
                    desk.touched[touched] = row
                    touched += 1
                    if light.number_of[row] >= 0:
                        push(desk.queue, light.number_of[row])
                value = desk.values[row]
                value[0] = centred(value[0] - f0 * light.values[i, 0], primes[0], 1.0 / primes[0])
                value[1] = centred(value[1] - f1 * light.values[i, 1], primes[1], 1.0 / primes[1])
                value[2] = centred(value[2] - f2 * light.values[i, 2], primes[2], 1.0 / primes[2])
        k = pop_least(desk.queue, k)
    return touched


@njit(cache=True, nogil=True)
def clear(desk: Desk, touched: int) -> None:
    """Makes the desk empty again."""
    for row in desk.touched[:touched]:
        for q in range(3):
            desk.values[row, q] = 0.0
        desk.seen[row] = False


@njit(cache=True, nogil=True)
def take_light(
    light: Light,
    desk: Desk,
    primes: Array,
    indptr: Array,
    indices: Array,
    order: Array,
    cost: Array,
    limit: int,
    heavy: Array,
) -> None:
    """Takes the columns in order as pivots, in their row of smallest cost; those with more than ``limit`` entries left
    are marked as heavy."""
    for turn in range(len(order)):
        c = order[turn]
        rows = indices[indptr[c] : indptr[c + 1]]
        touched = reduce_light(light, desk, primes, rows, len(desk.seen))
        left, best = 0, -1
        for row in desk.touched[:touched]:
            value = desk.values[row]
            if value[0] != 0.0 or value[1] != 0.0 or value[2] != 0.0:
                left += 1
                whole = value[0] != 0.0 and value[1] != 0.0 and value[2] != 0.0
                if whole and (
                    best < 0 or cost[row] < cost[best] or (cost[row] == cost[best] and row < best)
                ):  # fmt: skip
                    best = row
        if left > limit or (left and best < 0):
            heavy[turn] = True
        elif left:
            k = light.used[0]
            end = light.start[k]
            scale = np.empty(3)
            for q in range(3):
                scale[q] = inverse(desk.values[best, q], primes[q])
            for row in desk.touched[:touched]:
                value = desk.values[row]
                if value[0] != 0.0 or value[1] != 0.0 or value[2] != 0.0:
                    light.rows[end] = row
                    for q in range(3):
                        light.values[end, q] = centred(value[q] * scale[q], primes[q], 1.0 / primes[q])
                    end += 1
            light.start[k + 1] = end
            light.row_of[k] = best
            light.number_of[best] = k
            light.used[0] = k + 1
        clear(desk, touched)


@njit(cache=True, nogil=True)
def widened(rows: Array, values: Array, end: int, size: int) -> tuple[Array, Array]:
    """Room for ``size`` entries, the first ``end`` of which are given (in a loop, because that compiles in no time)."""
    more_rows, more_values = np.empty(size, np.int64), np.empty((size, 3))
    for i in range(end):
        more_rows[i] = rows[i]
        for q in range(3):
            more_values[i, q] = values[i, q]
    return more_rows, more_values


@njit(cache=True, nogil=True)
def reduced(
    light: Light, desk: Desk, primes: Array, indptr: Array, indices: Array, columns: Array, reach: int
) -> tuple[Array, Array, Array, Array]:
    """What the light pivots leave of the columns: (start, rows, values), and for which that was given up."""
    start = np.zeros(len(columns) + 1, np.int64)
    rows = np.empty(4 * len(desk.seen), np.int64)
    values = np.empty((4 * len(desk.seen), 3))
    far = np.zeros(len(columns), np.bool_)
    end = 0
    for k in range(len(columns)):
        c = columns[k]
        touched = reduce_light(light, desk, primes, indices[indptr[c] : indptr[c + 1]], reach)
        if touched > reach:
            far[k] = True
            clear(desk, touched)
            start[k + 1] = end
            continue
        if end + touched > len(rows):
            size = 2 * len(rows) + touched
            rows, values = widened(rows, values, end, size)
        for row in desk.touched[:touched]:
            value = desk.values[row]
            if value[0] != 0.0 or value[1] != 0.0 or value[2] != 0.0:
                rows[end] = row
                for q in range(3):
                    values[end, q] = value[q]
                end += 1
        clear(desk, touched)
        start[k + 1] = end
    return start, rows[:end], values[:end], far


@njit(cache=True, nogil=True)
def extend_light(light: Light, values: Array, p: float, vectors: Array) -> None:
    """Fills in the light pivot rows of vectors, so that no light column notices them."""
    share = 1.0 / p
    for k in range(light.used[0] - 1, -1, -1):
        own = light.row_of[k]
        line = vectors[own]
        line[:] = 0.0
        for i in range(light.start[k], light.start[k + 1]):
            if light.rows[i] != own:
                factor, other = values[i], vectors[light.rows[i]]
                for j in range(len(line)):
                    line[j] -= factor * other[j]
        for j in range(len(line)):
            line[j] = centred(line[j], p, share)
