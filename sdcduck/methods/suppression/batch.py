"""Candidates of the walk decided some hundred at a time: publish all of them, see what follows, and take that back.

Of all candidates of a batch being published two random vectors that none of them notices tell which primary columns
follow. Most often none does, and the batch is decided. Otherwise only these columns and the batch matter: both are
combinations of the pivots that the batch added, whose factors the elimination shows on its way, and in those few
coordinates the candidates are gone through in order (`settle`). So nothing is spent on single columns that keeps the
vectors up to date; they are filled in anew after each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import (
    PRIME,
    Pivots,
    Scratch,
    add,
    at,
    best_row,
    clear,
    extend,
    inverse,
    multiply,
    reduce_noting,
    store,
    widened,
)
from sdcduck.methods.suppression.echelon import sums as add_sums

Array = NDArray[Any]

DEPENDENT, PUBLISHED, SECONDARY = 0, 1, 2
SLICE = 64  # columns between two checks
STRIP = 16  # vectors filled in at a time
VECTOR = 0.25  # what an entry of a pivot costs for each of them, in entries read for a column


@njit(cache=True, nogil=True)
def take_noting(
    indptr: Array,
    indices: Array,
    pivots: Pivots,
    scratch: Scratch,
    columns: Array,
    order: Array,
    done: int,
    last: int,
    first: int,
    cost: Array,
    coordinates: Array,
    pivot_of: Array,
) -> int:
    """Takes columns[order[done:last]] as pivots, in their row of smallest cost; stops where the pool is full, and
    returns where.

    coordinates[k]: column k by the pivots from number ``first`` on. pivot_of[k]: its own one, counted from there. The
    cost of a row grows by 1 with each pivot that has it.
    """
    for turn in range(done, last):
        k = order[turn]
        rows = indices[indptr[columns[k]] : indptr[columns[k] + 1]]
        left = reduce_noting(pivots, scratch, rows, pivots.values[:0], first, coordinates[k])
        if left and pivots.start[pivots.used[0]] + left > len(pivots.rows):
            clear(scratch, left)
            coordinates[k] = 0
            return turn
        if left:
            own = best_row(scratch, left, cost)
            pivot_of[k] = pivots.used[0] - first
            coordinates[k, pivot_of[k]] = scratch.values[own]
            for i in range(at(left)):
                cost[at(scratch.touched[i])] += 1
            store(pivots, scratch, left, own)
        clear(scratch, left)
    return last


@njit(cache=True, nogil=True)
def note(
    indptr: Array,
    indices: Array,
    pivots: Pivots,
    scratch: Scratch,
    columns: Array,
    done: int,
    last: int,
    first: int,
    coordinates: Array,
) -> None:
    """Writes columns[done:last], which follow from the pivots, by those from number ``first`` on."""
    for k in range(done, last):
        rows = indices[indptr[columns[k]] : indptr[columns[k] + 1]]
        left = reduce_noting(pivots, scratch, rows, pivots.values[:0], first, coordinates[k])
        clear(scratch, left)


@njit(cache=True, nogil=True)
def proportional(one: Array, other: Array, place: int) -> bool:
    """Has ``other`` the rows of ``one`` with one constant ratio? ``one`` is not 0 in ``place``."""
    a, b = one[place], other[place]
    if b == 0:
        return False
    for i in range(at(len(one))):
        x, y = one[i], other[i]
        if (x == 0) != (y == 0) or (x and multiply(x, b) != multiply(y, a)):
            return False
    return True


@njit(cache=True, nogil=True)
def settle(coordinates: Array, candidates: int) -> Array:
    """What becomes of the candidates, the first lines, in order, so that none of the other lines follows; the lines
    are overwritten."""
    fate = np.zeros(candidates, np.int8)
    places = np.empty(coordinates.shape[1], np.int64)
    for j in range(candidates):
        line = coordinates[j]
        count = 0
        for i in range(len(line)):
            if line[i]:
                places[count] = i
                count += 1
        if count == 0:
            continue
        pivot = places[count - 1]
        fate[j] = PUBLISHED
        for e in range(candidates, len(coordinates)):
            if proportional(line, coordinates[e], pivot):
                fate[j] = SECONDARY
                break
        if fate[j] == SECONDARY:
            continue
        scale = PRIME - inverse(line[pivot])
        for i in range(j + 1, len(coordinates)):
            other = coordinates[i]
            if other[pivot]:
                factor = multiply(other[pivot], scale)
                for n in range(count):
                    place = at(places[n])
                    other[place] = add(other[place], multiply(factor, line[place]))
    return fate


@njit(cache=True, nogil=True)
def keep(pivots: Pivots, first: int, kept: Array, cost: Array) -> None:
    """Only those pivots from number ``first`` on stay for which ``kept`` is True; they move up."""
    used, end = first, pivots.start[first]
    begin = end
    for k in range(first, pivots.used[0]):
        # Where the next one begins is read before it is written over.
        start, stop, own = begin, pivots.start[k + 1], pivots.row_of[k]
        begin = stop
        pivots.number_of[own] = -1
        if not kept[k - first]:
            for i in range(start, stop):
                cost[pivots.rows[i]] -= 1
            continue
        for i in range(start, stop):
            pivots.rows[end], pivots.values[end] = pivots.rows[i], pivots.values[i]
            end += 1
        pivots.row_of[used] = own
        pivots.number_of[own] = used
        used += 1
        pivots.start[used] = end
    pivots.used[0] = used


def untouched(coordinates: Array, pivot_of: Array, fate: Array) -> tuple[Array, Array]:
    """Which pivots, and which candidates, have nothing of a candidate that is suppressed."""
    owner = np.flatnonzero(pivot_of >= 0)
    owner = owner[np.argsort(pivot_of[owner])]
    clean = np.ones(len(owner), np.bool_)
    for k, column in enumerate(owner):
        clean[k] = fate[column] != SECONDARY and bool(clean[:k][coordinates[column, :k] != 0].all())
    return clean, ~(coordinates[:, : len(owner)] != 0)[:, ~clean].any(axis=1)


class Batch:
    """Candidates that are published together, on top of pivots, and taken back where that gives something away.

    columns: the candidates in order. fate: what becomes of each. pivots: with what is published of them; they may move
    to other memory. cost: of each row as a pivot, kept up to date. check: called several times a second.
    """

    def __init__(
        self,
        indptr: Array,
        indices: Array,
        pivots: Pivots,
        scratch: Scratch,
        columns: Array,
        cost: Array,
        check: Callable[[], object],
    ) -> None:
        self.indptr, self.indices, self.pivots, self.scratch = indptr, indices, pivots, scratch
        self.columns, self.cost, self.check = columns, cost, check
        self.first = int(pivots.used[0])
        self.coordinates = np.zeros((len(columns), len(columns)), np.int64)
        self.pivot_of = np.full(len(columns), -1, np.int64)
        before = int(scratch.work[0])
        self._take(np.arange(len(columns)))
        self.work = int(scratch.work[0]) - before
        self.fate = np.where(self.pivot_of < 0, DEPENDENT, PUBLISHED).astype(np.int8)

    def _take(self, order: Array) -> None:
        done = 0
        while done < len(order):
            until = min(done + SLICE, len(order))
            done = take_noting(
                self.indptr, self.indices, self.pivots, self.scratch, self.columns, order, done, until, self.first,
                self.cost, self.coordinates, self.pivot_of,
            )  # fmt: skip
            if done < until:
                self.pivots = widened(self.pivots, len(self.cost))
            self.check()

    def protect(self, endangered: Array) -> None:
        """Takes back what gives the endangered columns away, which are those that follow if all is published."""
        lines = len(self.columns)
        rank = int(self.pivots.used[0]) - self.first
        if len(endangered) * self.work > lines * rank * int(self.pivots.start[self.first]) * VECTOR:
            both = self._on_pivot_rows(np.concatenate([self.columns, endangered]))
        else:
            both = np.zeros((lines + len(endangered), rank), np.int64)
            both[:lines] = self.coordinates[:, :rank]
            for done in range(0, len(endangered), SLICE):
                until = min(done + SLICE, len(endangered))
                note(
                    self.indptr, self.indices, self.pivots, self.scratch, endangered, done, until, self.first,
                    both[lines:],
                )  # fmt: skip
                self.check()
        self.fate = settle(both, lines)
        self.check()
        clean, covered = untouched(self.coordinates, self.pivot_of, self.fate)
        keep(self.pivots, self.first, clean, self.cost)
        again = np.flatnonzero((self.fate != SECONDARY) & ~covered)
        self._take(again)

    def _on_pivot_rows(self, columns: Array) -> Array:
        """What the pivots before the batch leave of the columns, on the rows that it took: other coordinates, which
        cost the same for any number of columns."""
        before = self.pivots._replace(used=np.full(1, self.first))
        rows = self.pivots.row_of[self.first : self.pivots.used[0]]
        result = np.zeros((len(columns), len(rows)), np.int64)
        for done in range(0, len(rows), STRIP):
            strip = rows[done : done + STRIP]
            vectors = np.zeros((len(self.cost), len(strip)), np.int64)
            vectors[strip, np.arange(len(strip))] = 1
            extend(before, vectors)
            sums = np.zeros((len(columns), len(strip)), np.int64)
            add_sums(self.indptr, self.indices, columns, vectors, sums)
            result[:, done : done + STRIP] = sums
            self.check()
        return result
