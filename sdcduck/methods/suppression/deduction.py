"""Inner cells that follow from single published cells, one after the other: no linear program is needed for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Array = NDArray[Any]


def rounding_error(totals: Floats) -> float:
    """What sums of the cells may be off by: nothing for whole numbers that a double holds exactly."""
    largest = float(np.abs(totals).max(initial=0.0))
    if largest < 2**53 and bool(np.all(totals == np.rint(totals))):
        return 0.0
    return 256 * float(np.finfo(np.float64).eps) * largest


def deduced_rows(matrix: scipy.sparse.csc_matrix, totals: Floats, hidden: Booleans, low: Floats) -> Booleans:
    """The inner cells that follow from single published cells, one after the other."""
    restricted = matrix[:, np.flatnonzero(~hidden)]
    by_row = restricted.tocsr()
    sides = totals[~hidden]
    fixed, _ = deduce(
        restricted.indptr,
        restricted.indices,
        by_row.indptr,
        by_row.indices,
        sides,
        sides,
        low,
        np.full(matrix.shape[0], np.inf),
        rounding_error(totals),
    )
    return np.asarray(fixed, dtype=np.bool_)


class _Left(NamedTuple):
    """What is left of each restriction: its rows that are not fixed, what the fixed ones take of it, the sums of the
    bounds of the others, and how many of these have no such bound."""

    rows: Array
    taken: Array
    low_sum: Array
    high_sum: Array
    low_open: Array
    high_open: Array


class _Queue(NamedTuple):
    """Restrictions to look at, in a ring: from places[0] on as many as places[1], each of them once."""

    ring: Array
    queued: Array
    places: Array


@njit(cache=True, nogil=True)
def _all_left(cptr, cidx, low, high):  # type: ignore[no-untyped-def]
    """The restrictions before any row is fixed."""
    columns = len(cptr) - 1
    left = _Left(
        cptr[1:] - cptr[:-1],
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
    )
    for c in range(columns):
        for k in range(cptr[c], cptr[c + 1]):
            r = cidx[k]
            if np.isinf(low[r]):
                left.low_open[c] += 1
            else:
                left.low_sum[c] += low[r]
            if np.isinf(high[r]):
                left.high_open[c] += 1
            else:
                left.high_sum[c] += high[r]
    return left


@njit(cache=True, nogil=True)
def _take_out(rows, value, rptr, ridx, low, high, left, queue):  # type: ignore[no-untyped-def]
    """The rows have their values now: their restrictions are to be looked at again."""
    for r in rows:
        for k in range(rptr[r], rptr[r + 1]):
            d = ridx[k]
            left.rows[d] -= 1
            left.taken[d] += value[r]
            if np.isinf(low[r]):
                left.low_open[d] -= 1
            else:
                left.low_sum[d] -= low[r]
            if np.isinf(high[r]):
                left.high_open[d] -= 1
            else:
                left.high_sum[d] -= high[r]
            if not queue.queued[d]:
                queue.queued[d] = True
                queue.ring[(queue.places[0] + queue.places[1]) % len(queue.ring)] = d
                queue.places[1] += 1


@njit(cache=True, nogil=True)
def _fix_rows(c, cptr, cidx, least, most, low, high, left, fixed, value, error, found):  # type: ignore[no-untyped-def]
    """Fixes the rows that restriction c determines, which are written to ``found``; returns how many."""
    at_low = left.low_open[c] == 0 and most[c] - left.taken[c] <= left.low_sum[c] + error
    at_high = not at_low and left.high_open[c] == 0 and least[c] - left.taken[c] >= left.high_sum[c] - error
    single = left.rows[c] == 1 and least[c] == most[c]
    count = 0
    if at_low or at_high or single:
        for k in range(cptr[c], cptr[c + 1]):
            r = cidx[k]
            if not fixed[r]:
                fixed[r] = True
                value[r] = low[r] if at_low else high[r] if at_high else most[c] - left.taken[c]
                found[count] = r
                count += 1
    return count


@njit(cache=True, nogil=True)
def deduce(cptr, cidx, rptr, ridx, least, most, low, high, error):  # type: ignore[no-untyped-def]
    """Fix the rows that one restriction alone determines, until no more follows: which these are, and their values.

    A restriction determines its rows when only one is left and it is an equation, or when what is left of it equals
    the sum of the lower (upper) bounds of its rows.
    """
    columns = len(cptr) - 1
    fixed = low == high
    value = np.where(fixed, low, 0.0)
    left = _all_left(cptr, cidx, low, high)
    queue = _Queue(np.arange(columns), np.ones(columns, np.bool_), np.array([0, columns]))
    _take_out(np.flatnonzero(fixed), value, rptr, ridx, low, high, left, queue)
    found = np.empty(len(fixed), np.int64)
    while queue.places[1]:
        c = queue.ring[queue.places[0]]
        queue.places[0] = (queue.places[0] + 1) % columns
        queue.places[1] -= 1
        queue.queued[c] = False
        if left.rows[c]:
            count = _fix_rows(c, cptr, cidx, least, most, low, high, left, fixed, value, error, found)
            _take_out(found[:count], value, rptr, ridx, low, high, left, queue)
    return fixed, value
