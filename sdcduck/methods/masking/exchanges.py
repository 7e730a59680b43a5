"""Better groups by exchanging two records: best-improvement local search.

Castro, Gentile and Spagnolo-Arrizabalaga (2022), "An Optimization-Based Decomposition Heuristic for the
Microaggregation Problem", figure 1. The change of the sum of squared errors by an exchange follows from the sums of
squared distances of each record to the members of each group. One exchange changes these for two groups only, and the
best partners of few records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

TOLERANCE = 1e-9
"""An exchange has to gain more, in squared standard deviations."""
_AT_ONCE = 16  # exchanges between two looks at whether somebody has stopped it


def exchange(
    points: Matrix, groups: Indices, check: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Indices, int]:
    """Groups of the same sizes, between which no exchange of two records lowers the sum of squared errors.

    In turn the one exchange is made that lowers it most; of equal ones that of the first records. It holds
    n x (number of groups) distances.

    Args:
        points: n x p, finite.
        groups: n, numbers from 0 on.
        check: called with 0 and 0 from time to time: how long it takes nobody knows.

    Returns:
        The groups, and how many exchanges were made.

    >>> points = np.array([[0.0, 0], [1, 0], [0, 1], [10, 10], [11, 10], [10, 11], [5, 5], [6, 5]])
    >>> exchange(points, np.array([0, 0, 1, 1, 1, 0, 0, 1]))[0].tolist()
    [0, 0, 0, 1, 1, 1, 0, 1]
    """
    found = np.array(groups, np.int64)
    count = int(found.max(initial=-1)) + 1
    if count < 2:
        return found, 0
    points = np.ascontiguousarray(points)
    sizes = np.bincount(found, minlength=count)
    sums = _sums_of_distances(points, found, count)
    gains, partners = np.full(len(points), np.inf), np.full(len(points), -1, np.int64)
    _find_partners(points, found, sizes, sums, gains, partners)
    made = 0
    while now := _exchanges(points, found, sizes, sums, gains, partners, _AT_ONCE):
        made += now
        check(0, 0)
    return found, made


@njit(cache=True, nogil=True)
def _sums_of_distances(points: Matrix, groups: Indices, count: int) -> Matrix:
    """Of each record the sum of its squared distances to the members of each group."""
    sums = np.zeros((len(points), count))
    for one in range(len(points)):
        for other in range(len(points)):
            sums[one, groups[other]] += _distance(points, one, other)
    return sums


@njit(cache=True, nogil=True)
def _distance(points: Matrix, one: int, other: int) -> float:
    """The squared distance of two records."""
    apart = 0.0
    for column in range(points.shape[1]):
        step = points[one, column] - points[other, column]
        apart += step * step
    return apart


@njit(cache=True, nogil=True)
def _change(points: Matrix, groups: Indices, sizes: Indices, sums: Matrix, one: int, other: int) -> float:
    """How much more the sum of squared errors is when two records of different groups exchange them."""
    a, b = groups[one], groups[other]
    apart = _distance(points, one, other)
    return float(
        (sums[other, a] - apart - sums[one, a]) / sizes[a] + (sums[one, b] - apart - sums[other, b]) / sizes[b]
    )


@njit(cache=True, nogil=True)
def _find_partner(
    points: Matrix, groups: Indices, sizes: Indices, sums: Matrix, gains: Matrix, partners: Indices, one: int
) -> None:
    """The later record with which an exchange lowers the sum of squared errors most."""
    gains[one], partners[one] = np.inf, -1
    for other in range(one + 1, len(groups)):
        if groups[one] != groups[other]:
            change = _change(points, groups, sizes, sums, one, other)
            if change < gains[one]:
                gains[one], partners[one] = change, other


@njit(cache=True, nogil=True)
def _find_partners(
    points: Matrix, groups: Indices, sizes: Indices, sums: Matrix, gains: Matrix, partners: Indices
) -> None:
    """The same for every record."""
    for one in range(len(groups)):
        _find_partner(points, groups, sizes, sums, gains, partners, one)


@njit(cache=True, nogil=True)
def _exchanges(
    points: Matrix, groups: Indices, sizes: Indices, sums: Matrix, gains: Matrix, partners: Indices, most: int
) -> int:
    """Make the best exchange, and the best one then, at most so many times; answer how many there were."""
    for made in range(most):
        one = int(gains.argmin())
        if gains[one] >= -TOLERANCE:
            return made
        other = int(partners[one])
        a, b = groups[one], groups[other]
        for place in range(len(groups)):
            gone, come = _distance(points, place, one), _distance(points, place, other)
            sums[place, a] += come - gone
            sums[place, b] += gone - come
        groups[one], groups[other] = b, a
        changed = np.flatnonzero((groups == a) | (groups == b))
        for place in range(len(groups)):
            partner = partners[place]
            if groups[place] == a or groups[place] == b or (partner >= 0 and (groups[partner] in (a, b))):
                _find_partner(points, groups, sizes, sums, gains, partners, place)
                continue
            for later in changed[np.searchsorted(changed, place) :]:
                change = _change(points, groups, sizes, sums, place, later)
                if change < gains[place] or (change == gains[place] and later < partners[place]):
                    gains[place], partners[place] = change, later
    return most
