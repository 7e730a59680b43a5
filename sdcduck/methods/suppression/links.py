"""The pivots of the walk by rows, and the vectors that none of them notices.

A vector of the null space begins in the row where it is 1: each row tells which pivots have an entry there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import (
    PRIME,
    Pivots,
    Queue,
    Scratch,
    at,
    multiply,
    pop_greatest,
    prefetch,
    push,
)

Array = NDArray[Any]

ONE, MINUS_ONE, OTHER = range(3)

# What is asked of a row together stands together, and nothing else: rows are met in no order, and what stood apart
# would come from far away each time. number: of the pivot that the row is, -1 if none.
ROW = np.dtype([("start", np.int64), ("length", np.int32), ("number", np.int32)])


class Links(NamedTuple):
    """Of each row the pivots with an entry there: start:start + length of ``owners`` and ``values``; and a vector that
    is worked on, the rows it touched, and the numbers of the pivots that are still to be asked.

    An owner is the row where the pivot is 1, times 4, and the kind of the entry there (ONE, MINUS_ONE, OTHER). Nearly
    all are 1 or -1: then the value is not looked at. end: one element, where the pools are free from. In ``vector`` a 0
    was not touched; p is the 0 of a row that was.
    """

    rows: Array
    capacity: Array
    owners: Array
    values: Array
    end: Array
    vector: Array
    touched: Array
    queue: Queue


@njit(cache=True, nogil=True)
def owned(row: int, value: int) -> int:
    """An owner: a row and the kind of a value."""
    return int(4 * row + (ONE if value == 1 else MINUS_ONE if value == PRIME - 1 else OTHER))


@njit(cache=True, nogil=True)
def room_to_link(links: Links, scratch: Scratch, left: int) -> bool:
    """Is there room for a pivot with the rows left?"""
    wanted = links.end[0]
    for i in range(at(left)):
        row = at(scratch.touched[i])
        if links.rows[row].length == links.capacity[row]:
            wanted += 2 * links.rows[row].length + 4
    return bool(wanted <= len(links.owners))


@njit(cache=True, nogil=True)
def link(pivots: Pivots, links: Links) -> None:
    """Enters the last pivot into the lists of its other rows. A full list moves to the end of the pool."""
    k = pivots.used[0] - 1
    own = pivots.row_of[k]
    links.rows[own].number = k
    for n in range(pivots.start[k], pivots.start[k + 1]):
        i = at(n)
        if pivots.rows[i] == own:
            continue
        number = at(pivots.rows[i])
        row = links.rows[number]
        if row.length == links.capacity[number]:
            old, new = row.start, links.end[0]
            for n_old in range(at(row.length)):
                links.owners[at(new) + n_old] = links.owners[at(old) + n_old]
                links.values[at(new) + n_old] = links.values[at(old) + n_old]
            row.start = new
            links.capacity[number] = 2 * row.length + 4
            links.end[0] = new + links.capacity[number]
        place = at(row.start + row.length)
        links.owners[place] = owned(own, pivots.values[i])
        links.values[place] = pivots.values[i]
        row.length += 1


@njit(cache=True, nogil=True)
def link_all(pivots: Pivots, old: Links) -> Links:
    """The lists of all pivots, with room for half as much again in each, and for some to move; in the memory of the
    old ones if that is enough."""
    rows = old.rows
    for row in range(len(rows)):
        rows[row].number = pivots.number_of[row]
        rows[row].length = 0
    for k in range(pivots.used[0]):
        for i in range(pivots.start[k], pivots.start[k + 1]):
            if pivots.rows[i] != pivots.row_of[k]:
                rows[pivots.rows[i]].length += 1
    end = np.int64(0)
    for row in range(len(rows)):
        rows[row].start = end
        old.capacity[row] = rows[row].length + rows[row].length // 2 + 4
        rows[row].length = 0
        end += old.capacity[row]
    owners, values = old.owners, old.values
    if len(owners) < end + 6 * len(rows):
        owners, values = np.empty(2 * end + 6 * len(rows), np.int32), np.empty(2 * end + 6 * len(rows), np.int64)
    for k in range(pivots.used[0]):
        for i in range(pivots.start[k], pivots.start[k + 1]):
            if pivots.rows[i] != pivots.row_of[k]:
                row = rows[pivots.rows[i]]
                owners[row.start + row.length] = owned(pivots.row_of[k], pivots.values[i])
                values[row.start + row.length] = pivots.values[i]
                row.length += 1
    return Links(rows, old.capacity, owners, values, np.full(1, end), old.vector, old.touched, old.queue)


@njit(cache=True, nogil=True)
def null_vector(pivots: Pivots, links: Links, first: Any) -> tuple[int, int]:
    """The vector that no pivot notices, 1 in row ``first`` and 0 in the other rows without a pivot; its rows are
    touched. Returns how many, and the entries of pivots read.

    Pivots are asked from last to first: a row is final when no later pivot is left.
    """
    links.vector[first] = 1
    links.touched[0] = first
    row = first
    touched, work = 1, 0
    k = pivots.used[0]
    while k >= 0:
        value = links.vector[row]
        if value != PRIME:
            factor = PRIME - value
            asked = links.rows[row]
            work += asked.length
            for n in range(asked.start, asked.start + asked.length):
                i = at(n)
                owner = links.owners[i]
                step = factor if owner & 3 == ONE else value
                if owner & 3 == OTHER:
                    step = multiply(factor, links.values[i])
                own = at(owner >> 2)
                before = links.vector[own]
                total = before + step
                links.vector[own] = total - PRIME if total > PRIME else total
                if before == 0:
                    links.touched[at(touched)] = owner >> 2
                    touched += 1
                    push(links.queue, links.rows[own].number)
                    prefetch(links.owners, links.rows[own].start)
        k = pop_greatest(links.queue, k)
        row = at(pivots.row_of[k])
    return touched, work


@njit(cache=True, nogil=True)
def clear_vector(links: Links, touched: int) -> None:
    """Makes the vector all zero again."""
    for i in range(at(touched)):
        links.vector[at(links.touched[i])] = 0
