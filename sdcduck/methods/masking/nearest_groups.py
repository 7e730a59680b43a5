"""Groups of similar records, each made of one record and those nearest to it: MDAV and V-MDAV.

MDAV (maximum distance to average vector), Domingo-Ferrer and Mateo-Sanz (2002), in the form of Domingo-Ferrer and Torra
(2005), "Ordinal, continuous and heterogeneous k-anonymity through microaggregation". V-MDAV, Solanas and
Martinez-Balleste (2006), "V-MDAV: a multivariate microaggregation with variable group size".

Both look for the farthest and the nearest record again and again, n / k times over all that are left. The records lie
in the order of their distance to the mean of all: two are at least as far from each other as these distances differ,
and at most their sum, so that a search ends where no later record can win. Distances are worked out for many records at
once, one column after another, which a processor does several at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_SLACK = 1e-9  # of a distance: bounds are worked out otherwise than distances, and must not cut off an equal one
_AT_ONCE = 256  # records whose distances are worked out together
_WORK = 2_000_000  # distances between two looks at whether somebody has stopped it


def mdav(points: Matrix, k: int, check: Callable[[int, int], None] = lambda done, total: None) -> Indices:
    """The group of each record; each has k to 2k - 1 of them, as long as there are k records.

    In turn the record farthest from the mean of those that are left, and the one farthest from it, get the k - 1 that
    are nearest to them. Of equally far ones the first is taken.

    Args:
        points: n x p, finite; distances are Euclidean.
        k: at least 1.
        check: called with how many records have a group, and how many there are.

    >>> mdav(np.array([[1.0], [2], [3], [10], [11], [12], [13]]), 3).tolist()
    [0, 0, 0, 1, 1, 1, 1]
    """
    state = _Open(points)
    made = 0
    while state.left >= 2 * k:
        made = _mdav(*state.arrays, state.center, state.groups, k, made, state.at_once)
        state.pack(check)
    state.groups[state.rows] = made
    return state.groups


def v_mdav(
    points: Matrix, k: int, gamma: float, check: Callable[[int, int], None] = lambda done, total: None
) -> Indices:
    """The group of each record; each has k to 2k - 1 of them, or a few more that were left at the end.

    The record farthest from the mean of all gets the k - 1 nearest. Then the record that is nearest to one of the group
    joins it, so long as it is nearer to it than `gamma` times to any other record without a group. Fewer than k that
    are left go to the groups whose means are nearest.

    Args:
        points: n x p, finite; distances are Euclidean.
        k: at least 1.
        gamma: at least 0; at 0 no group grows.
        check: called with how many records have a group, and how many there are.

    >>> v_mdav(np.array([[0.0], [1], [2], [9], [10], [12]]), 2, 0.5).tolist()
    [1, 1, 1, 0, 0, 0]
    """
    state = _Open(points)
    made = 0
    if len(points) < k:
        return state.groups
    while state.left >= k:
        made = _v_mdav(*state.arrays, state.groups, k, made, gamma, state.at_once)
        state.pack(check)
    done = np.ones(len(points), np.bool_)
    done[state.rows] = False
    sizes = np.bincount(state.groups[done], minlength=made)
    means = np.column_stack(
        [np.bincount(state.groups[done], column[done], minlength=made) / sizes for column in points.T]
    )
    for row in state.rows:
        state.groups[row] = ((means - points[row]) ** 2).sum(axis=1).argmin()
    return state.groups


class _Open:
    """The records that have no group yet, the farthest from the mean of all first.

    Attributes:
        center: the mean of all.
        points: p x m, those that were left at the last packing.
        rows: m, their numbers.
        radii: m, their distances from the mean of all.
        groups: n, the answer.
    """

    def __init__(self, points: Matrix) -> None:
        self.center = points.mean(axis=0) if len(points) else np.zeros(points.shape[1])
        radii = np.sqrt(((points - self.center) ** 2).sum(axis=1))
        order = np.argsort(-radii, kind="stable")
        self.rows, self.radii = order.astype(np.int64), radii[order]
        self.points = np.ascontiguousarray(points[order].T)
        self.groups = np.zeros(len(points), np.int64)
        self._is_open = np.ones(len(points), np.bool_)

    @property
    def left(self) -> int:
        """How many have no group yet."""
        return len(self.rows)

    @property
    def at_once(self) -> int:
        """Groups to be made before they are packed: those that have one must not be looked at for long."""
        return max(1, min(_WORK // max(1, self.left), self.left // 64))

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """What a kernel is given."""
        return self.points, self.rows, self.radii, self._is_open

    def pack(self, check: Callable[[int, int], None]) -> None:
        """Forget those that have a group now."""
        left = self._is_open
        self.points = np.ascontiguousarray(self.points[:, left])
        self.rows, self.radii = self.rows[left], self.radii[left]
        self._is_open = np.ones(len(self.rows), np.bool_)
        check(len(self.groups) - len(self.rows), len(self.groups))


@njit(cache=True, nogil=True)
def _mdav(
    points: Matrix,
    rows: Indices,
    radii: Matrix,
    is_open: Any,
    origin: Matrix,
    groups: Indices,
    k: int,
    made: int,
    most: int,
) -> int:
    """Make about so many groups, and answer how many there are then; fewer than 2k records are left to the caller."""
    left, total = len(rows), points.sum(axis=1)
    chosen, near = np.empty(k, np.int64), np.empty(k)
    end = made + most
    while left >= 2 * k and made < end:
        center = total / left
        one = _farthest(points, rows, radii, is_open, center, np.sqrt(((center - origin) ** 2).sum()))
        several = left >= 3 * k
        _nearest(points, rows, radii, is_open, one, chosen, near)
        _take(points, rows, is_open, groups, chosen, made, total)
        made, left = made + 1, left - k
        if several:
            other = _farthest(points, rows, radii, is_open, points[:, one].copy(), radii[one])
            _nearest(points, rows, radii, is_open, other, chosen, near)
            _take(points, rows, is_open, groups, chosen, made, total)
            made, left = made + 1, left - k
    return made


@njit(cache=True, nogil=True)
def _v_mdav(
    points: Matrix,
    rows: Indices,
    radii: Matrix,
    is_open: Any,
    groups: Indices,
    k: int,
    made: int,
    gamma: float,
    most: int,
) -> int:
    """Make at most so many groups, and answer how many there are then; fewer than k records are left to the caller."""
    left, total = len(rows), np.zeros(len(points))
    chosen, near, alone = np.empty(k, np.int64), np.empty(k), np.empty(1, np.int64)
    beside, between = np.empty(1, np.int64), np.empty(1)
    first = 0
    end = made + most
    while left >= k and made < end:
        while not is_open[first]:
            first += 1
        _nearest(points, rows, radii, is_open, first, chosen, near)
        _take(points, rows, is_open, groups, chosen, made, total)
        left, size = left - k, k
        if gamma > 0 and k > 1 and left > 1:
            apart = np.full(len(rows), np.inf)
            for member in chosen:
                _approach(points, int(member), apart)
            while size < 2 * k - 1 and left > 1:
                joins = _smallest(apart, rows, is_open)
                is_open[joins] = False
                _nearest(points, rows, radii, is_open, joins, beside, between)
                is_open[joins] = True
                if np.sqrt(apart[joins]) >= gamma * np.sqrt(between[0]):
                    break
                alone[0] = joins
                _take(points, rows, is_open, groups, alone, made, total)
                _approach(points, joins, apart)
                left, size = left - 1, size + 1
        made += 1
    return made


@njit(cache=True, nogil=True)
def _distances(points: Matrix, begin: int, end: int, center: Matrix, apart: Matrix) -> None:
    """The squared distances of records to a point, from the begin of `apart` on."""
    apart[: end - begin] = 0.0
    for column in range(len(points)):
        at, line = center[column], points[column]
        for place in range(begin, end):
            step = line[place] - at
            apart[place - begin] += step * step


@njit(cache=True, nogil=True)
def _farthest(points: Matrix, rows: Indices, radii: Matrix, is_open: Any, center: Matrix, radius: float) -> int:
    """Which open record is farthest from a point at that radius; of equal ones that with the smallest number."""
    best, found, apart = -1.0, -1, np.empty(_AT_ONCE)
    for begin in range(0, len(rows), _AT_ONCE):
        bound = (radii[begin] + radius) * (1 + _SLACK)
        if bound * bound < best:
            break
        end = min(begin + _AT_ONCE, len(rows))
        _distances(points, begin, end, center, apart)
        for place in range(begin, end):
            one = apart[place - begin]
            if one >= best and is_open[place] and (one > best or rows[place] < rows[found]):
                best, found = one, place
    return found


@njit(cache=True, nogil=True)
def _nearest(
    points: Matrix, rows: Indices, radii: Matrix, is_open: Any, one: int, chosen: Indices, near: Matrix
) -> None:
    """The open records that are nearest to one, into `chosen`, and their squared distances into `near`."""
    near[:] = np.inf
    chosen[:] = -1
    center, radius, apart = points[:, one].copy(), radii[one], np.empty(_AT_ONCE)
    home = one // _AT_ONCE * _AT_ONCE
    for begin in range(int(home), -1, -_AT_ONCE):  # those about as far out, and those farther out
        end = min(begin + _AT_ONCE, len(rows))
        if _too_far(radii[end - 1] - radius, near[-1]):
            break
        _distances(points, begin, end, center, apart)
        _sort_in(apart, begin, end, rows, is_open, chosen, near)
    for begin in range(home + _AT_ONCE, len(rows), _AT_ONCE):
        if _too_far(radius - radii[begin], near[-1]):
            break
        end = min(begin + _AT_ONCE, len(rows))
        _distances(points, begin, end, center, apart)
        _sort_in(apart, begin, end, rows, is_open, chosen, near)


@njit(cache=True, nogil=True)
def _too_far(between: float, squared: float) -> bool:
    """Whether radii that differ so much are of records that are farther apart."""
    least = between * (1 - _SLACK)
    return least > 0 and least * least > squared


@njit(cache=True, nogil=True)
def _sort_in(apart: Matrix, begin: int, end: int, rows: Indices, is_open: Any, chosen: Indices, near: Matrix) -> None:
    """Put those of some records among the nearest ones that are; of equal ones those with the smallest numbers."""
    for place in range(begin, end):
        one, last = apart[place - begin], len(near) - 1
        if one > near[last] or not is_open[place]:
            continue
        if one == near[last] and chosen[last] >= 0 and rows[chosen[last]] < rows[place]:
            continue
        while last > 0 and (near[last - 1] > one or (near[last - 1] == one and rows[chosen[last - 1]] > rows[place])):
            near[last], chosen[last] = near[last - 1], chosen[last - 1]
            last -= 1
        near[last], chosen[last] = one, place


@njit(cache=True, nogil=True)
def _approach(points: Matrix, member: int, apart: Matrix) -> None:
    """Take a member of a group into account in the squared distances of records to the nearest of its members."""
    center, distance = points[:, member].copy(), np.empty(len(apart))
    _distances(points, 0, len(apart), center, distance)
    for place in range(len(apart)):
        apart[place] = min(apart[place], distance[place])


@njit(cache=True, nogil=True)
def _smallest(apart: Matrix, rows: Indices, is_open: Any) -> int:
    """The open record with the smallest of some numbers; of equal ones the one with the smallest number of its own."""
    found = -1
    for place in range(len(apart)):
        if is_open[place] and (
            found < 0 or apart[place] < apart[found] or (apart[place] == apart[found] and rows[place] < rows[found])
        ):
            found = place
    return found


@njit(cache=True, nogil=True)
def _take(
    points: Matrix, rows: Indices, is_open: Any, groups: Indices, chosen: Indices, number: int, total: Matrix
) -> None:
    """Give records a group, and take them out of what is left."""
    for place in chosen:
        is_open[place] = False
        groups[rows[place]] = number
        total -= points[:, place]
