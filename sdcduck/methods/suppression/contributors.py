"""May a candidate be published if one contributor knows his own inner cells? The test inside the elimination.

Langsrud (2024), "Secondary cell suppression by Gaussian elimination": a candidate is refused when what remains between
its residual and that of a primary cell comes from a single contributor other than the owner of the cell. Singleton rows
come last and in the reference's order, because what remains is measured against the first row both have in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.residuals import FREE_ROWS, PRIMARY, STAMP, VALUE, holders, modulo

Array = NDArray[Any]

ALLOWED, REFUSED, REFUSED_AND_PRIMARY = 0, 1, 2


@njit(cache=True, nogil=True)
def ordered_run(columns: Array, rows: Array, entries: Array, c: int, free_rows: int, backwards: bool) -> Array:
    """The entries of column c in the order of the pivots: singleton rows last, ``backwards`` if asked for."""
    start, length = columns[c].start, columns[c].length
    run = entries[start : start + length].copy()
    if backwards:
        free = np.searchsorted(run, np.int64(free_rows) << 32)
        run[free:] = run[free:][::-1].copy()
    return run


@njit(cache=True, nogil=True)
def one_other_contributor(seen: int, contributor: int, owner: int) -> int:
    """The contributor seen so far (0: none) together with this one; -1 when more than one, nobody's, or the owner's."""
    if contributor == 0 or contributor == owner or (seen not in (0, contributor)):
        return -1
    return contributor


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def flag(run: Array, flags: Array, value: bool) -> None:
    """Sets the flag of every row of a run."""
    for e in run:
        flags[e >> 32] = value


@njit(cache=True, nogil=True)
def same_free_part(columns: Array, entries: Array, c: int, d: int, free_rows: int) -> bool:
    """Are columns c and d proportional on the free rows? Otherwise more than one contributor remains between them."""
    s, t = columns[c].start, columns[d].start
    s_end, t_end = s + columns[c].length, t + columns[d].length
    limit = np.int64(free_rows) << 32
    a, b = entries[s] & VALUE, entries[t] & VALUE
    while s < s_end and t < t_end and entries[s] < limit and entries[t] < limit:
        x, y = entries[s], entries[t]
        if x >> 32 != y >> 32 or modulo(b * (x & VALUE)) != modulo(a * (y & VALUE)):
            return False
        s += 1
        t += 1
    return bool((s == s_end or entries[s] >= limit) and (t == t_end or entries[t] >= limit))


@njit(cache=True, nogil=True)
def rarest_row(columns: Array, rows: Array, entries: Array, c: int, contributor: Array, other_than: int) -> int:
    """The row of column c that fewest columns have, of those not of the contributor ``other_than``; -1 if none is."""
    best = -1
    for k in range(columns[c].start, columns[c].start + columns[c].length):
        row = entries[k] >> 32
        if contributor[row] != other_than and (best < 0 or rows[row].count < rows[best].count):
            best = row
    return best


@njit(cache=True, nogil=True)
def possible_primaries(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    out: Array,
    shared: Array,
    c: int,
    contributor: Array,
) -> Array:
    """The primary columns of known owners that can matter to column c, in order.

    Such a column has the same free rows, so the holders of one of them are enough. Of a column of singleton rows alone
    it has all rows but those of one contributor: it holds one of any two rows of different contributors.
    """
    free_rows = shared[FREE_ROWS]
    start, length = columns[c].start, columns[c].length
    first = entries[start] >> 32
    if first < free_rows:
        wanted = np.array([first])
        for k in range(start, start + length):
            row = entries[k] >> 32
            if row < free_rows and rows[row].count < rows[wanted[0]].count:
                wanted[0] = row
    else:
        one = rarest_row(columns, rows, entries, c, contributor, -1)
        two = rarest_row(columns, rows, entries, c, contributor, contributor[one])
        wanted = np.array([one, two]) if two >= 0 else entries[start : start + length] >> 32
    found = np.empty(0, np.int32)
    for row in wanted:
        shared[STAMP] += 1
        n = holders(columns, rows, entries, lists, row, shared[STAMP], out)
        kept = 0
        for i in range(n):
            d = out[i]
            owned = columns[d].kind == PRIMARY and columns[d].owner >= 0
            if owned and same_free_part(columns, entries, c, d, free_rows):
                out[kept] = d
                kept += 1
        if kept:
            found = np.concatenate((found, out[:kept]))
    return np.unique(found)


@njit(cache=True, nogil=True)
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
    for d in possible_primaries(columns, rows, entries, lists, out, shared, c, contributor):
        other = ordered_run(columns, rows, entries, np.int64(d), free_rows, backwards)  # type: ignore[arg-type]
        flag(other, flags[1], True)
        answer = remainder_test(run, flags[0], other, flags[1], contributor, columns[d].owner)
        flag(other, flags[1], False)
        if answer != ALLOWED:
            break
    flag(run, flags[0], False)
    return answer
