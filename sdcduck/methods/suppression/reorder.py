"""Columns in echelon form, those with few entries first: the same span as in any other order, with far less in it.

What the walk publishes comes with the large cells first, and a large cell fills in whatever follows it. Once it is
known which columns there are, they can be taken in the order that a sparse elimination would choose (Markowitz 1957).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdcduck.methods.suppression.echelon import (
    SLICE,
    Pivots,
    Scratch,
    best_row,
    clear,
    new_pivots,
    new_scratch,
    reduce,
    store,
    widened,
)

Array = NDArray[Any]

LIGHT = 4  # entries left of the columns of the first pass; twice as many in each further one

DONE, HEAVY, NO_ROW = 0, 1, 2


@njit(cache=True, nogil=True)
def count_left(
    pivots: Pivots, scratch: Scratch, indptr: Array, indices: Array, columns: Array, length: Array, cost: Array
) -> None:
    """What the pivots leave of the columns: ``length`` entries of each, counted by rows in ``cost``."""
    for k in range(len(columns)):
        rows = indices[indptr[columns[k]] : indptr[columns[k] + 1]]
        touched = reduce(pivots, scratch, rows, rows[:0])
        scratch.work[0] += touched
        for row in scratch.touched[:touched]:
            if scratch.values[row]:
                length[k] += 1
                cost[row] += 1
        clear(scratch, touched)


@njit(cache=True, nogil=True)
def take_light(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    columns: Array,
    first: int,
    last: int,
    cost: Array,
    limit: int,
    fate: Array,
) -> int:
    """Takes columns[first:last] as pivots, where rows of negative cost are none; ``fate``: DONE, or HEAVY with more
    than ``limit`` entries left, or NO_ROW to pivot. Stops where the pool is full, and returns where."""
    for turn in range(first, last):
        rows = indices[indptr[columns[turn]] : indptr[columns[turn] + 1]]
        touched = reduce(pivots, scratch, rows, rows[:0])
        scratch.work[0] += touched
        left = 0
        for row in scratch.touched[:touched]:
            left += scratch.values[row] != 0
        pivot = best_row(scratch, touched, cost) if 0 < left <= limit else -1
        full = pivot >= 0 and pivots.start[pivots.used[0]] + left > len(pivots.rows)
        if left > limit:
            fate[turn] = HEAVY
        elif left and pivot < 0:
            fate[turn] = NO_ROW
        elif left and not full:
            store(pivots, scratch, touched, pivot)
        clear(scratch, touched)
        if full:
            return turn
    return last


def small_first(
    indptr: Array, indices: Array, columns: Array, plain_rows: int, last: Array, check: Callable[[], object]
) -> tuple[Pivots, int]:
    """The echelon form of the columns, and the entries read for it.

    In each pass the columns with few entries left come, fewest first; the pivot is the row that fewest of the columns
    still have. Both is seen anew in each pass. Rows from ``plain_rows`` on are pivots only where nothing else is left,
    and only those marked in ``last`` (a boolean for each row). check: called several times a second.
    """
    height = len(last)
    pivots, scratch = new_pivots(height, 4 * height + 64), new_scratch(height)
    without_row = [columns[:0]]
    limit = LIGHT
    while len(columns):
        cost, length = np.zeros(height, np.int64), np.zeros(len(columns), np.int64)
        for first in range(0, len(columns), SLICE):
            part = slice(first, first + SLICE)
            count_left(pivots, scratch, indptr, indices, columns[part], length[part], cost)
            check()
        cost[plain_rows:] = -1
        columns, length = columns[length > 0], length[length > 0]
        columns = columns[np.argsort(length, kind="stable")]
        pivots, fate = _taken(pivots, scratch, indptr, indices, columns, cost, limit, check)
        without_row.append(columns[fate == NO_ROW])
        columns = columns[fate == HEAVY]
        limit = 2 * limit if limit < height // 8 else height
    cost = np.where(last, 0, -1)
    columns = np.concatenate(without_row)
    pivots, _ = _taken(pivots, scratch, indptr, indices, columns, cost, height, check)
    return pivots, int(scratch.work[0])


def _taken(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    columns: Array,
    cost: Array,
    limit: int,
    check: Callable[[], object],
) -> tuple[Pivots, Array]:
    """The pivots with those that the columns add to them, and the fate of each column."""
    fate = np.full(len(columns), DONE, np.int8)
    done = 0
    while done < len(columns):
        until = min(done + SLICE, len(columns))
        done = take_light(pivots, scratch, indptr, indices, columns, done, until, cost, limit, fate)
        if done < until:
            pivots = widened(pivots, len(cost))
        check()
    return pivots, fate
