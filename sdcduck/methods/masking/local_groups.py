"""k-noise and k-PRAM: numbers blurred so that about k records may stand behind each.

Biswal, Arbuckle and Kulik, *Disclosure metrics born from statistical evaluations of data utility*. Noise is uniform on
[-delta, delta]; k-PRAM replaces a value within its interval, where all intervals are equally long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@njit(cache=True, inline="always")
def _interval(value, low, span, m):  # type: ignore[no-untyped-def]
    return min(int((value - low) / span * m), m - 1) if span > 0.0 else 0


@njit(cache=True, nogil=True)
def _places(values, low, span, m, places):  # type: ignore[no-untyped-def]
    for row in range(len(values)):
        places[row] = _interval(values[row], low, span, m)


def intervals_of(values: Floats, low: float, span: float, m: int) -> Indices:
    """In which of m intervals of equal length values lie, from 0 on: int64 (n,). The last one is closed.

    >>> intervals_of(np.array([24.0, 28, 29, 34]), 24.0, 10.0, 2).tolist()
    [0, 0, 1, 1]
    """
    places = np.empty(len(values), np.int64)
    _places(values, low, span, m, places)
    return places


@njit(cache=True, nogil=True)
def _most(ordered, longest, k, first):  # type: ignore[no-untyped-def]
    n = len(ordered)
    low, span = ordered[0], ordered[n - 1] - ordered[0]
    for m in range(first, 1, -1):
        if _interval(ordered[k - 1], low, span, m) > 0 or _interval(ordered[n - k], low, span, m) < m - 1:
            continue
        enough = True
        for window in longest:
            before, after = ordered[window], ordered[window + k]
            if (after - before) * m < span * (1.0 - 1e-9):
                break  # so short that no interval lies within, and neither within those that follow
            if _interval(after, low, span, m) - _interval(before, low, span, m) >= 2:
                enough = False
                break
        if enough:
            return m
    return 1


def most_intervals(ordered: Floats, k: int) -> int:
    """The most intervals of equal length of which each has k of the n >= k ascending values.

    An interval has fewer exactly if the k + 1 values around some k - 1 leap over it. So an interval must be longer than
    half the longest way over k values, and only ways as long as an interval are looked at.

    >>> most_intervals(np.array([24.0, 26, 27, 30, 31, 33, 38, 41]), 3)
    2
    """
    n, span = len(ordered), float(ordered[-1] - ordered[0])
    ways = ordered[k:] - ordered[:-k]
    if span == 0 or not len(ways):
        return 1
    first = min(n // k, int(2 * span / ways.max()) + 1)
    half = np.flatnonzero(ways >= ways.max() * 0.49)
    return int(_most(ordered, half[np.argsort(-ways[half], kind="stable")], k, first))


def within_intervals(places: Indices, low: float, span: float, m: int, chance: Floats) -> Floats:
    """A value of the interval of each record, all equally likely: float64 (n,).

    places: int64 (n,), of `intervals_of`. chance: float64 (n,), in (0, 1).
    """
    drawn = low + (places + chance) / m * span
    # The last digit may lie beyond the border.
    return np.where(intervals_of(drawn, low, span, m) == places, drawn, low + (places + 0.5) / m * span)


def exchanged_within(places: Indices, takers: Indices, givers: Indices) -> Indices:
    """From which record each one takes its value, so that values are exchanged within intervals only: int64 (n,).

    places: int64 (n,), the interval of each. takers, givers: int64 (n,), two orders of all records by lot.
    """
    from_whom = np.empty_like(places)
    to = takers[np.argsort(places[takers], kind="stable")]
    from_whom[to] = givers[np.argsort(places[givers], kind="stable")]
    return from_whom


def records_within(ordered: Floats, at: Floats, reach: float, *, closed: bool) -> Indices:
    """How many of the ascending values are nearer to each point than a reach, or also as near: int64 (points,)."""
    begin, end = ("left", "right") if closed else ("right", "left")
    found = np.searchsorted(ordered, at + reach, end) - np.searchsorted(ordered, at - reach, begin)  # type: ignore[call-overload]
    return np.asarray(np.maximum(found, 0), dtype=np.int64)


def expected_within(ordered: Floats, at: Floats, delta: float) -> Floats:
    """How many values with noise are expected within 2 delta of each point: float64 (points,).

    A value at a distance d is there with probability 1 for d <= delta, (3 delta - d) / (2 delta) up to 3 delta, else 0.

    >>> expected_within(np.array([24.0, 26, 27, 30, 31, 33, 38, 41]), np.array([24.0, 33, 41]), 4.0).tolist()
    [4.75, 6.125, 2.875]
    """
    middle = float(ordered[len(ordered) // 2]) if len(ordered) else 0.0
    centred, points = ordered - middle, at - middle
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    far_left, left = np.searchsorted(centred, points - 3 * delta), np.searchsorted(centred, points - delta)
    right, far_right = (np.searchsorted(centred, points + reach, "right") for reach in (delta, 3 * delta))
    below = (left - far_left) * (3 * delta - points) + sums[left] - sums[far_left]
    above = (far_right - right) * (3 * delta + points) - (sums[far_right] - sums[right])
    return np.asarray((right - left) + (below + above) / (2 * delta), dtype=np.float64)


def kolmogorov(one: Floats, other: Floats) -> float:
    """The largest distance between the distribution functions of two samples; NaN where one has no values.

    >>> kolmogorov(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 5, 6]))
    0.5
    """
    if not len(one) or not len(other):
        return float("nan")
    first, second = np.sort(one), np.sort(other)
    every = np.concatenate([first, second])
    shares = [np.searchsorted(values, every, "right") / len(values) for values in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())
