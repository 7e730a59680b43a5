"""May a candidate be published if one contributor knows his own inner cells? The test inside the elimination.

Langsrud (2024), "Secondary cell suppression by Gaussian elimination": a candidate is refused when what remains between
its residual and that of a primary cell comes from a single contributor other than the owner of the cell. Singleton rows
come last and in the reference's order, because what remains is measured against the first row both have in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdcduck.methods.suppression.residuals import FREE_ROWS, PRIMARY, STAMP, VALUE, holders, modulo

Array = NDArray[Any]

ALLOWED, REFUSED, REFUSED_AND_PRIMARY = 0, 1, 2


@njit(cache=True)
def ordered_run(columns: Array, rows: Array, entries: Array, c: int, free_rows: int, backwards: bool) -> Array:
    """The entries of column c in the order of the pivots: singleton rows last, ``backwards`` if asked for."""
    start, length = columns[c].start, columns[c].length
    run = entries[start : start + length].copy()
    if backwards:
        free = np.searchsorted(run, np.int64(free_rows) << 32)
        run[free:] = run[free:][::-1].copy()
    return run


@njit(cache=True)
def one_other_contributor(seen: int, contributor: int, owner: int) -> int:
    """The contributor seen so far (0: none) together with this one; -1 when more than one, nobody's, or the owner's."""
    if contributor == 0 or contributor == owner or (seen not in (0, contributor)):
        return -1
    return contributor


@njit(cache=True)
def remainder_test(run: Array, in_run: Array, other: Array, in_other: Array, contributor: Array, owner: int) -> int:
    """Is the difference of two residuals, scaled on the first row in common, one contributor's other than the owner?

    The two runs are matched entry by entry as they come (a rotated ``run`` is compared as the reference does);
    ``in_run`` and ``in_other`` tell which rows they have.
    """
    seen = 0
    for e in run:
        if not in_other[e >> 32]:
            seen = one_other_contributor(seen, contributor[e >> 32], owner)
            if seen < 0:
                return ALLOWED
    for e in other:
        if not in_run[e >> 32]:
            seen = one_other_contributor(seen, contributor[e >> 32], owner)
            if seen < 0:
                return ALLOWED
    answer = REFUSED_AND_PRIMARY if seen else REFUSED
    k = 0
    a = b = np.int64(0)
    for e in run:
        if not in_other[e >> 32]:
            continue
        while not in_run[other[k] >> 32]:
            k += 1
        x, y = e & VALUE, other[k] & VALUE
        k += 1
        if a == 0:
            a, b = x, y
        if modulo(b * x) != modulo(a * y):
            seen = one_other_contributor(seen, contributor[e >> 32], owner)
            if seen < 0:
                return ALLOWED
            answer = REFUSED_AND_PRIMARY
    return answer if a else ALLOWED


@njit(cache=True)
def single_source(run: Array, contributor: Array, combinations: int) -> bool:
    """Do all rows left belong to at most ``combinations`` contributors?"""
    first = second = np.int64(0)
    for e in run:
        who = contributor[e >> 32]
        if who == 0:
            return False
        if first in (0, who):
            first = who
        elif combinations > 1 and second in (0, who):
            second = who
        else:
            return False
    return True


@njit(cache=True)
def flag(run: Array, flags: Array, value: bool) -> None:
    """Sets the flag of every row of a run."""
    for e in run:
        flags[e >> 32] = value


@njit(cache=True)
def possible_primaries(
    columns: Array, rows: Array, entries: Array, lists: Array, out: Array, shared: Array, c: int, free_rows: int
) -> Array:
    """The primary columns of known owners that can matter to column c, in order.

    Such a column has the same free rows, so the holders of one of them are enough; a column of singleton rows alone is
    tested against the holders of each.
    """
    start = columns[c].start
    tried = 1 if entries[start] >> 32 < free_rows else columns[c].length
    found = np.empty(0, np.int32)
    for k in range(tried):
        shared[STAMP] += 1
        n = holders(columns, rows, entries, lists, entries[start + k] >> 32, shared[STAMP], out)
        found = np.concatenate((found, out[:n]))
    found = np.unique(found)
    kept = 0
    for d in found:
        if columns[d].kind == PRIMARY and columns[d].owner >= 0:
            found[kept] = d
            kept += 1
    return found[:kept]


@njit(cache=True)
def contributor_test(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    out: Array,
    shared: Array,
    c: int,
    contributor: Array,
    flags: Array,
    combinations: int,
    backwards: bool,
    rotated: bool,
) -> int:
    """Tests candidate column c against every primary column; ``owner`` of a column is -1 where the test is off.

    ``flags``: two rows of False per inner cell, left as they were.
    """
    free_rows = shared[FREE_ROWS]
    run = ordered_run(columns, rows, entries, c, free_rows, backwards)
    if rotated:
        run = np.concatenate((run[1:], run[:1]))
    if combinations and single_source(run, contributor, combinations):
        return REFUSED_AND_PRIMARY
    answer = ALLOWED
    flag(run, flags[0], True)
    for d in possible_primaries(columns, rows, entries, lists, out, shared, c, free_rows):
        other = ordered_run(columns, rows, entries, d, free_rows, backwards)
        flag(other, flags[1], True)
        answer = remainder_test(run, flags[0], other, flags[1], contributor, columns[d].owner)
        flag(other, flags[1], False)
        if answer != ALLOWED:
            break
    flag(run, flags[0], False)
    return answer
