"""What the singleton methods ask of the residuals: of which cells only singletons are left, and what these would tell.

Langsrud (2024), "Secondary cell suppression by Gaussian elimination", PSD.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import fraction
from sdcduck.methods.suppression.residuals import (
    CANDIDATE,
    ENOUGH,
    FREE_ROWS,
    GONE,
    PIVOT,
    PRIMARY,
    PRIME,
    STAMP,
    UNDECIDED,
    VALUE,
    eliminate,
    find,
    holders,
    inverse,
    modulo,
    refuse,
    rows_of,
)

Array = NDArray[Any]


@njit(cache=True, nogil=True)
def both_signs(columns: Array, entries: Array, shared: Array, c: int) -> bool:
    """Has column c entries of both signs? In doubt no, which leads to more suppression, never less."""
    start = columns[c].start
    scale = inverse(entries[start] & VALUE)
    for k in range(start + 1, start + columns[c].length):
        numerator, denominator = fraction(modulo(scale * (entries[k] & VALUE)), PRIME, 1 << 15)
        if numerator < 0:
            return True
        if denominator == 0:
            shared[UNDECIDED] += 1
            return False
    return False


@njit(cache=True, nogil=True)
def unused(columns: Array, entries: Array, used: Array, c: int) -> bool:
    """Is no row of column c in use by an earlier exception?"""
    return not used[rows_of(columns, entries, c)].any()


@njit(cache=True, nogil=True)
def mark(columns: Array, entries: Array, used: Array, c: int, value: bool) -> None:
    """Marks the rows of column c as used, or takes the mark away."""
    used[rows_of(columns, entries, c)] = value


@njit(cache=True, nogil=True)
def covers_primary(
    columns: Array, rows: Array, entries: Array, lists: Array, out: Array, shared: Array, covered: Array
) -> bool:
    """Are all rows of some primary cell among the ascending rows ``covered``?"""
    for row in covered:
        shared[STAMP] += 1
        for k in range(holders(columns, rows, entries, lists, row, shared[STAMP], out)):
            c = out[k]
            if columns[c].kind != PRIMARY or columns[c].length > len(covered):
                continue
            inside = True
            for e in range(columns[c].start, columns[c].start + columns[c].length):
                place = np.searchsorted(covered, entries[e] >> 32)
                if place == len(covered) or covered[place] != entries[e] >> 32:
                    inside = False
                    break
            if inside:
                return True
    return False


@njit(cache=True, nogil=True)
def rows_left(columns: Array, entries: Array, c: int) -> Array:
    """The rows of what is left of column c, ascending; none if it is determined or suppressed by a singleton."""
    c = find(columns, c)
    live = columns[c].kind == CANDIDATE or columns[c].kind == PRIMARY
    rows = rows_of(columns, entries, c)
    return rows if live else rows[:0]


@njit(cache=True, nogil=True)
def same_rows(one: Array, other: Array) -> bool:
    return len(one) == len(other) and bool((one == other).all())


@njit(cache=True, nogil=True)
def with_last_children(
    columns: Array,
    entries: Array,
    parent_start: Array,
    parents: Array,
    child_start: Array,
    children: Array,
    primary: Array,
    known: Array,
    flags: Array,
) -> Array:
    """The ascending rows ``known`` and those that follow from them in one step; none if they tell a primary column.

    parents[parent_start[r]:parent_start[r + 1]] are the parents with row r, children of a parent alike. When part of
    what is left of a parent is known, and the rest is one row or all that is left of a child, the rest is known too.
    ``flags``: False for each row, left as they were.
    """
    flags[known] = True
    more = known
    meeting = [parents[parent_start[row] : parent_start[row + 1]] for row in known]
    told = False
    for parent in np.unique(joined(meeting)):
        left = rows_left(columns, entries, parent)
        rest = left[~flags[left]]
        if len(rest) == 0 or len(rest) == len(left):
            continue
        equal = len(rest) == 1
        if not equal:
            for child in children[child_start[parent] : child_start[parent + 1]]:
                if same_rows(rows_left(columns, entries, child), rest):
                    equal = True
                    told = told or primary[child]
        if equal:
            more = np.concatenate((more, rest))
    flags[known] = False
    return known[:0] if told else np.unique(more)


@njit(cache=True, nogil=True)
def joined(parts: list[Array]) -> Array:
    """The arrays one after the other."""
    size = 0
    for part in parts:
        size += len(part)
    result = np.empty(size, np.int64)
    end = 0
    for part in parts:
        result[end : end + len(part)] = part
        end += len(part)
    return result


SINGLETONS_LEFT = 3


@njit(cache=True, nogil=True)
def publish_any_sum(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    buckets: Array,
    scratch: Array,
    out: Array,
    shared: Array,
    turns: Array,
    first: int,
    last: int,
    secondary: Array,
    used: Array,
    exceptions: bool,
    ask: bool,
) -> tuple[int, int]:
    """Walks candidates turns[first:last]; one of which only singleton rows are left is suppressed.

    With ``exceptions`` not if its entries have both signs and no earlier exception used its rows. With ``ask`` the walk
    stops there with SINGLETONS_LEFT and the caller decides.
    """
    for turn in range(first, last):
        c = find(columns, turns[turn])
        kind = columns[c].kind
        if kind in (GONE, PIVOT) or columns[c].length == 0:
            continue
        refused = entries[columns[c].start] >> 32 >= shared[FREE_ROWS]
        marked = False
        if refused and exceptions and both_signs(columns, entries, shared, c) and unused(columns, entries, used, c):
            mark(columns, entries, used, c, True)
            marked = True
            refused = False
        if kind == PRIMARY:
            secondary[turns[turn]] = True
        elif refused and ask:
            return turn, SINGLETONS_LEFT
        elif refused:
            secondary[turns[turn]] = True
            refuse(columns, rows, entries, buckets, c)
        else:
            status = eliminate(columns, rows, entries, lists, buckets, scratch, out, shared, c)
            if status != ENOUGH:
                if marked:
                    mark(columns, entries, used, c, False)
                return turn, status
    return last, ENOUGH
