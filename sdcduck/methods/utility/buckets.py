"""Buckets of a column: quantiles of numbers, and the bucket that each number falls into.

The conventions are those of Platzer and Reutterer (2021), "Holdout-based empirical assessment of mixed-type synthetic
data": breaks are the distinct quantiles (type 7) at 0, 1/m, .., 1, and buckets are closed on the right, the first on
both sides. Closed on the left they are the groups of the R package synthpop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]

_BINS = 1 << 16
_FEW = 4096  # values that are sorted at once
_SEARCHED = 40  # breaks from which on a binary search is faster than comparing with each


@njit(cache=True, nogil=True)
def _tally(values, low, scale, tallies):  # type: ignore[no-untyped-def]
    for place in range(len(values)):
        tallies[int((values[place] - low) * scale)] += 1


@njit(cache=True, nogil=True)
def _collect(values, low, scale, wanted, found):  # type: ignore[no-untyped-def]
    size = 0
    for place in range(len(values)):
        if wanted[int((values[place] - low) * scale)]:
            found[size] = values[place]
            size += 1


def order_statistics(values: Floats, ranks: NDArray[np.int64]) -> Floats:
    """The values of these ranks, from 0, among n finite values.

    They are looked up in a histogram of equal widths, and only what shares a bin with one of them is sorted: some five
    times faster than partitioning a million values, never much slower.
    """
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        width = high - low
        scale = (_BINS - 1) / width
    if len(values) <= _FEW or not (np.isfinite(width) and np.isfinite(scale)):
        return np.sort(values)[ranks]
    tallies = np.zeros(_BINS + 1, dtype=np.int64)
    _tally(values, low, scale, tallies)
    upto = np.cumsum(tallies)
    bins = np.searchsorted(upto, ranks, side="right")
    wanted = np.zeros(_BINS + 1, dtype=np.bool_)
    wanted[bins] = True
    found = np.empty(int(tallies[wanted].sum()))
    _collect(values, low, scale, wanted, found)
    found.sort()
    left_out = np.cumsum(np.where(wanted, 0, tallies))
    chosen: Floats = found[ranks - left_out[bins]]
    return chosen


def quantile_breaks(values: Floats, buckets: int) -> Floats:
    """The distinct quantiles (type 7) at 0, 1/buckets, .., 1 of finite values; none of no values.

    >>> quantile_breaks(np.array([1.0, 2.0, 3.0, 4.0, 10.0]), 2)
    array([ 1.,  3., 10.])
    """
    if not len(values):
        return np.zeros(0)
    places = np.arange(buckets + 1) / buckets * (len(values) - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    ranks = np.unique(np.concatenate([below, above]))
    known = order_statistics(values, ranks)
    lower, upper = known[np.searchsorted(ranks, below)], known[np.searchsorted(ranks, above)]
    share = places - below
    # As numpy does it: from the nearer end, so that equal neighbours give exactly their value.
    with np.errstate(over="ignore", invalid="ignore"):
        step = upper - lower
        near = np.where(share < 0.5, lower + step * share, upper - step * (1 - share))
    # Neighbours that are further apart than there are numbers.
    quantiles = np.where(np.isfinite(step), near, lower * (1 - share) + upper * share)
    breaks: Floats = np.unique(quantiles)
    return breaks


@njit(cache=True, nogil=True)
def _compare(values, breaks, left, codes):  # type: ignore[no-untyped-def]
    last = len(breaks) - 1
    for place in range(len(values)):
        value, code = values[place], 0
        if left:
            for one in range(1, last):
                code += value >= breaks[one]
        else:
            for one in range(1, last):
                code += value > breaks[one]
        codes[place] = code


@njit(cache=True, nogil=True)
def _search(values, breaks, left, codes):  # type: ignore[no-untyped-def]
    last = len(breaks) - 1
    for place in range(len(values)):
        value, low, high = values[place], 1, last
        while low < high:
            middle = (low + high) // 2
            if value > breaks[middle] or (left and value == breaks[middle]):
                low = middle + 1
            else:
                high = middle
        codes[place] = low - 1


@njit(cache=True, nogil=True)
def _outside(values, low, high, other, codes):  # type: ignore[no-untyped-def]
    for place in range(len(values)):
        value = values[place]
        if value != value:
            codes[place] = other + 1
        elif value < low or value > high:
            codes[place] = other


def bucket_codes(values: Floats, breaks: Floats, codes: NDArray[np.uint8], *, left: bool = False) -> None:
    """Write the bucket of each value: 0 to k - 1, k outside of all, k + 1 for NaN, where k is the number of buckets.

    Args:
        values: n numbers, of any kind.
        breaks: k + 1 rising breaks; one break is a bucket of that value alone.
        codes: n places for the result.
        left: whether buckets are closed on the left, the last on both sides.
    """
    buckets = bucket_count(breaks)
    if buckets == 0:
        codes[:] = np.where(np.isnan(values), 1, 0)
        return
    (_search if len(breaks) > _SEARCHED else _compare)(values, breaks, left, codes)
    _outside(values, breaks[0], breaks[-1], buckets, codes)


def bucket_count(breaks: Floats) -> int:
    """How many buckets breaks make: a single one is a bucket of that value."""
    return max(len(breaks) - 1, min(len(breaks), 1))
