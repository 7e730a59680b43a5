"""The best groups of numbers: microaggregation of one column, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


def best_groups(values: Vector, k: int) -> Indices:
    """Groups of at least k numbers with the smallest sum of squared errors that there is.

    Groups of sorted numbers follow each other and have k to 2k - 1 members, so that the best ones are a shortest path:
    Hansen and Mukherjee (2003), "A polynomial algorithm for optimal univariate microaggregation". Of equally good ones
    the one is taken whose last groups are the smallest. It takes n x k steps.

    Args:
        values: n, finite.
        k: at least 1; fewer than 2k numbers are one group.

    >>> best_groups(np.array([5.0, 1, 6, 0, 7, 20]), 2).tolist()
    [1, 0, 1, 0, 2, 2]
    >>> best_groups(np.array([5.0, 1, 6, 0, 7, 8]), 2).tolist()
    [1, 0, 1, 0, 2, 2]
    """
    order = np.argsort(values, kind="stable")
    if len(values) < 2 * k:
        return np.zeros(len(values), np.int64)
    ends = _shortest_path(values[order] - values.mean(), k)
    groups = np.empty(len(values), np.int64)
    groups[order] = np.searchsorted(ends, np.arange(len(values)), side="right")
    return groups


@njit(cache=True, nogil=True)
def _shortest_path(values: Vector, k: int) -> Indices:
    """Where the groups of sorted numbers end, but for the last one."""
    count = len(values)
    cost, size = np.full(count + 1, np.inf), np.zeros(count + 1, np.int64)
    cost[0] = 0.0
    for end in range(k, count + 1):
        mean, error = 0.0, 0.0
        for width in range(1, min(2 * k - 1, end) + 1):  # the error of the numbers before the end, one more at a time
            step = values[end - width] - mean
            mean += step / width
            error += step * (values[end - width] - mean)
            if width >= k and cost[end - width] + error < cost[end]:
                cost[end], size[end] = cost[end - width] + error, width
    ends = np.empty(count // k, np.int64)
    found, end = 0, count
    while end > 0:
        end -= size[end]
        if end > 0:
            ends[found] = end
            found += 1
    return ends[:found][::-1]
