"""Columns in echelon form, those with few entries first: the same span as in any other order, with far less in it.

What the walk publishes comes with the large cells first, and a large cell fills in whatever follows it. Once it is
known which columns there are, they can be taken in the order that a sparse elimination would choose (Markowitz 1957).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import (
    SLICE,
    Pivots,
    Scratch,
    at,
    best_row,
    clear,
    emptied,
    new_scratch,
    reduce,
    store,
    widened,
)

Array = NDArray[Any]

LIGHT = 3  # entries left of the columns of the first pass
GROWTH = 1.25  # and how many times as many in each further one
NEAR = 2  # columns with so many times the entries of a pass are left to a later one unseen
MOST_LEFT = 1 << 23  # entries that are kept of what is left; columns beyond that are cleared anew in each pass

DONE, HEAVY, NO_ROW = 0, 1, 2


class Left(NamedTuple):
    """What is left of columns: the entries begin[k]:end[k] of ``rows`` and ``values``. used: one element, where these
    are free from."""

    begin: Array
    end: Array
    rows: Array
    values: Array
    used: Array


Pool = tuple[Array, Array]


def new_pool(room: int) -> Pool:
    """Rows and values of so many entries."""
    return np.empty(room, np.int32), np.empty(room, np.int64)


def nothing_left(columns: int, pool: Pool) -> Left:
    """Nothing kept yet of so many columns (begin is -1)."""
    return Left(np.full(columns, -1, np.int64), np.zeros(columns, np.int64), *pool, np.zeros(1, np.int64))


@njit(cache=True, nogil=True)
def reduce_left(
    pivots: Pivots, scratch: Scratch, indptr: Array, indices: Array, columns: Array, left: Left, k: int
) -> int:
    """Loads what is left of columns[k], or the column itself, clears it of the pivots, and returns how many rows are
    left."""
    if left.begin[k] >= 0:
        kept = slice(left.begin[k], left.end[k])
        length = reduce(pivots, scratch, left.rows[kept], left.values[kept])
    else:
        rows = indices[indptr[columns[k]] : indptr[columns[k] + 1]]
        length = reduce(pivots, scratch, rows, left.values[:0])
    scratch.work[0] += length
    return length


@njit(cache=True, nogil=True)
def settled(pivots: Pivots, left: Left, k: int) -> bool:
    """Is what was kept of column k what is left of it still?"""
    for n in range(max(left.begin[k], 0), left.end[k]):
        i = at(n)
        if pivots.number_of[at(left.rows[i])] >= 0:
            return False
    return bool(left.begin[k] >= 0)


@njit(cache=True, nogil=True)
def look(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    columns: Array,
    first: int,
    last: int,
    left: Left,
    new: Left,
    length: Array,
    cost: Array,
) -> None:
    """What the pivots leave of columns[first:last]: kept in ``new`` where there is room; ``length`` entries of each,
    counted by rows in ``cost``."""
    for k in range(first, last):
        if settled(pivots, left, k) and new.used[0] + left.end[k] - left.begin[k] <= len(new.rows):
            length[k] = left.end[k] - left.begin[k]
            place = new.used[0]
            new.begin[k], new.end[k] = place, place + length[k]
            new.used[0] = new.end[k]
            for n in range(left.begin[k], left.end[k]):
                e = at(n)
                new.rows[at(place)], new.values[at(place)] = left.rows[e], left.values[e]
                cost[at(left.rows[e])] += 1
                place += 1
            continue
        length[k] = reduce_left(pivots, scratch, indptr, indices, columns, left, k)
        place = new.used[0]
        fits = place + length[k] <= len(new.rows)
        for i in range(at(length[k])):
            row = scratch.touched[i]
            if fits:
                new.rows[at(place)], new.values[at(place)] = row, scratch.values[at(row)]
                place += 1
            cost[at(row)] += 1
        if fits:
            new.begin[k], new.end[k] = new.used[0], place
            new.used[0] = place
        clear(scratch, length[k])


@njit(cache=True, nogil=True)
def take_light(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    columns: Array,
    left: Left,
    order: Array,
    first: int,
    last: int,
    cost: Array,
    limit: int,
    fate: Array,
) -> int:
    """Takes columns[order[first:last]] as pivots, where rows of negative cost are none; ``fate``: DONE, or HEAVY with
    more than ``limit`` entries left, or NO_ROW to pivot. Stops where the pool is full, and returns where."""
    for turn in range(first, last):
        k = order[turn]
        length = reduce_left(pivots, scratch, indptr, indices, columns, left, k)
        pivot = best_row(scratch, length, cost) if 0 < length <= limit else -1
        full = pivot >= 0 and pivots.start[pivots.used[0]] + length > len(pivots.rows)
        if length > limit:
            fate[k] = HEAVY
        elif length and pivot < 0:
            fate[k] = NO_ROW
        elif length and not full:
            store(pivots, scratch, length, pivot)
        clear(scratch, length)
        if full:
            return turn
    return last


def small_first(
    indptr: Array,
    indices: Array,
    columns: Array,
    plain_rows: int,
    last: Array,
    check: Callable[[], object],
    memory: Pivots,
) -> tuple[Pivots, int]:
    """The echelon form of the columns, and the entries read for it.

    In each pass the columns with few entries left come, fewest first; the pivot is the row that fewest of the columns
    still have. Both is seen anew in each pass, from what the pass before left of the columns. Rows from ``plain_rows``
    on are pivots only where nothing else is left, and only those marked in ``last`` (a boolean for each row). check:
    called several times a second. memory: pivots that may be overwritten.
    """
    height = len(last)
    form = _Form(indptr, indices, height, check, emptied(memory))
    without_row = [columns[:0]]
    limit = LIGHT
    left = nothing_left(len(columns), new_pool(0))
    while len(columns):
        left, length, cost = form.look(columns, left)
        cost[plain_rows:] = -1
        fate = np.where(length > NEAR * limit, HEAVY, DONE).astype(np.int8)
        near = np.flatnonzero((length > 0) & (length <= NEAR * limit))
        form.take(columns, left, near[np.argsort(length[near], kind="stable")], cost, limit, fate)
        without_row.append(columns[fate == NO_ROW])
        heavy = fate == HEAVY
        columns, left = columns[heavy], left._replace(begin=left.begin[heavy], end=left.end[heavy])
        limit = int(GROWTH * limit) + 1 if limit < height // 8 else height
    columns = np.concatenate(without_row)
    fate = np.zeros(len(columns), np.int8)
    cost = np.where(last, 0, -1)
    form.take(columns, nothing_left(len(columns), new_pool(0)), np.arange(len(columns)), cost, height, fate)
    return form.pivots, int(form.scratch.work[0])


class _Form:
    """An echelon form that grows. check: called between slices of columns."""

    def __init__(self, indptr: Array, indices: Array, height: int, check: Callable[[], object], pivots: Pivots) -> None:
        self.indptr, self.indices, self.height, self.check = indptr, indices, height, check
        self.pivots, self.scratch = pivots, new_scratch(height)
        self.pools = new_pool(MOST_LEFT), new_pool(MOST_LEFT)

    def look(self, columns: Array, left: Left) -> tuple[Left, Array, Array]:
        """What is left of the columns, how many entries of each, and how many of them have each row."""
        # What the pass before left is read in one pool while the other is filled.
        self.pools = self.pools[::-1]
        new = nothing_left(len(columns), self.pools[0])
        length, cost = np.zeros(len(columns), np.int64), np.zeros(self.height, np.int64)
        for first in range(0, len(columns), SLICE):
            last = min(first + SLICE, len(columns))
            look(
                self.pivots, self.scratch, self.indptr, self.indices, columns, first, last, left, new, length, cost
            )  # fmt: skip
            self.check()
        return new, length, cost

    def take(self, columns: Array, left: Left, order: Array, cost: Array, limit: int, fate: Array) -> None:
        """Takes the light ones of columns[order] as pivots; ``fate`` says of each column what became of it."""
        done = 0
        while done < len(order):
            until = min(done + SLICE, len(order))
            done = take_light(
                self.pivots, self.scratch, self.indptr, self.indices, columns, left, order, done, until, cost, limit,
                fate,
            )  # fmt: skip
            if done < until:
                self.pivots = widened(self.pivots, self.height)
            self.check()
