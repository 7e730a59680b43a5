"""MDAV and V-MDAV of records that have categories beside numbers.

Domingo-Ferrer and Torra (2005), "Ordinal, continuous and heterogeneous k-anonymity through microaggregation". The
distance of two records is Gower's: differences of numbers over their range, and 1 for different categories, added up.
What stands for a group is the mean of its numbers and the most frequent of its categories, of equally frequent ones the
first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.masking.microaggregation import group_means

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Check = Callable[[int, int], None]


def over_range(values: Matrix, categories: NDArray[np.bool_]) -> Matrix:
    """Numbers from 0 to 1, a constant column 0; codes of categories as they are.

    >>> over_range(np.array([[10.0, 3], [20, 5], [15, 3]]), np.array([False, True])).tolist()
    [[0.0, 3.0], [1.0, 5.0], [0.5, 3.0]]
    """
    if not len(values):
        return values
    low, spread = values.min(axis=0), np.ptp(values, axis=0)
    return np.where(categories, values, (values - low) / np.where(spread > 0, spread, 1.0))


def representatives(
    values: Matrix, categories: NDArray[np.bool_], groups: Indices, weights: Matrix | None = None
) -> Matrix:
    """The records with what stands for their groups in place of their values.

    Args:
        weights: n, above 0, of means and of how often a category is there; None: all are 1.

    >>> representatives(np.array([[1.0, 1], [3, 0], [5, 1]]), np.array([False, True]), np.zeros(3, int)).tolist()
    [[3.0, 1.0], [3.0, 1.0], [3.0, 1.0]]
    """
    found = []
    for column, category in zip(values.T, categories, strict=True):
        if not category:
            found.append(group_means(column[:, None], groups, weights)[:, 0])
            continue
        pairs, which = np.unique(np.column_stack([groups, column.astype(np.int64)]), axis=0, return_inverse=True)
        counts = np.bincount(which.reshape(-1), weights)
        order = np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))
        first = np.searchsorted(pairs[order, 0], np.arange(groups.max(initial=-1) + 1))
        found.append(pairs[order[first], 1].astype(np.float64)[groups])
    return np.column_stack(found)


def loss(points: Matrix, categories: NDArray[np.bool_], groups: Indices) -> float:
    """The distances of all records to what stands for their groups, added up."""
    apart = np.abs(points - representatives(points, categories, groups))
    return float(np.where(categories, apart > 0, apart).sum())


def mixed_mdav(
    points: Matrix, categories: NDArray[np.bool_], k: int, check: Check = lambda done, total: None
) -> Indices:
    """The group of each record, as `sdcduck.methods.masking.nearest_groups.mdav` makes them.

    Args:
        points: n x p, of `over_range`.
        categories: p, which columns are codes, whole numbers from 0 on.
        k: at least 1.
        check: called with how many records have a group, and how many there are.

    >>> mixed_mdav(np.array([[0.0, 0], [0.1, 0], [0.8, 1], [1.0, 1]]), np.array([False, True]), 2).tolist()
    [1, 1, 0, 0]
    """
    groups, left, made = np.zeros(len(points), np.int64), np.arange(len(points)), 0
    while len(left) >= 2 * k:
        several = len(left) >= 3 * k
        one = left[_first_farthest(points, categories, left, _center(points, categories, left))]
        left = _grouped(points, categories, left, one, k, groups, made)
        made += 1
        if several:
            other = left[_first_farthest(points, categories, left, points[one])]
            left = _grouped(points, categories, left, other, k, groups, made)
            made += 1
        check(len(points) - len(left), len(points))
    groups[left] = made
    return groups


def mixed_v_mdav(
    points: Matrix, categories: NDArray[np.bool_], k: int, gamma: float, check: Check = lambda done, total: None
) -> Indices:
    """The group of each record, as `sdcduck.methods.masking.nearest_groups.v_mdav` makes them.

    Args:
        points, categories, k, check: as of `mixed_mdav`.
        gamma: at least 0; at 0 no group grows.
    """
    groups, left, made = np.zeros(len(points), np.int64), np.arange(len(points)), 0
    center = _center(points, categories, left)
    while len(left) >= k:
        one = left[_first_farthest(points, categories, left, center)]
        left = _grouped(points, categories, left, one, k, groups, made)
        if gamma > 0 and len(left) > 1:
            left = _grown(points, categories, left, k, gamma, groups, made, np.flatnonzero(_among(groups, left, made)))
        made += 1
        check(len(points) - len(left), len(points))
    if len(left):
        done = np.ones(len(points), np.bool_)
        done[left] = False
        rows = np.flatnonzero(done)
        standing = representatives(points[rows], categories, groups[rows])
        ends = rows[np.unique(groups[rows], return_index=True)[1]]
        means = standing[np.searchsorted(rows, ends)]
        for row in left:
            groups[row] = int(_distances(means, categories, np.arange(len(means)), points[row]).argmin())
    return groups


def _among(groups: Indices, left: Indices, made: int) -> NDArray[np.bool_]:
    """Which records are in the group made last."""
    inside: NDArray[np.bool_] = np.asarray(groups == made)
    inside[left] = False
    return inside


@njit(cache=True, nogil=True)
def _distances(points: Matrix, categories: NDArray[np.bool_], rows: Indices, center: Matrix) -> Matrix:
    """Of some records to a point."""
    apart = np.zeros(len(rows))
    for place in range(len(rows)):
        for column in range(points.shape[1]):
            step = abs(points[rows[place], column] - center[column])
            if categories[column]:
                step = 1.0 if step > 0 else 0.0
            apart[place] += step
    return apart


@njit(cache=True, nogil=True)
def _first_farthest(points: Matrix, categories: NDArray[np.bool_], rows: Indices, center: Matrix) -> int:
    """The place of the record farthest from a point; of equal ones the first."""
    return int(_distances(points, categories, rows, center).argmax())


@njit(cache=True, nogil=True)
def _center(points: Matrix, categories: NDArray[np.bool_], rows: Indices) -> Matrix:
    """What stands for some records."""
    center = np.zeros(points.shape[1])
    for column in range(points.shape[1]):
        if not categories[column]:
            for row in rows:
                center[column] += points[row, column]
            center[column] /= max(len(rows), 1)
            continue
        most = 0
        for row in rows:
            most = max(most, int(points[row, column]))
        counts = np.zeros(most + 1, np.int64)
        for row in rows:
            counts[int(points[row, column])] += 1
        center[column] = counts.argmax()
    return center


@njit(cache=True, nogil=True)
def _grouped(
    points: Matrix, categories: NDArray[np.bool_], left: Indices, one: int, k: int, groups: Indices, made: int
) -> Indices:
    """Put a record and the k - 1 nearest ones into a group; answer what is left."""
    apart = _distances(points, categories, left, points[one])
    chosen, near, filled = np.empty(k, np.int64), np.full(k, np.inf), 0
    for place in range(len(left)):
        distance = -1.0 if left[place] == one else apart[place]
        if filled == k and distance >= near[k - 1]:
            continue
        at = filled if filled < k else k - 1
        while at > 0 and near[at - 1] > distance:
            near[at], chosen[at] = near[at - 1], chosen[at - 1]
            at -= 1
        near[at], chosen[at] = distance, place
        filled = min(filled + 1, k)
    stays = np.ones(len(left), np.bool_)
    for at in range(k):
        stays[chosen[at]] = False
        groups[left[chosen[at]]] = made
    return left[stays]


@njit(cache=True, nogil=True)
def _grown(
    points: Matrix, categories: NDArray[np.bool_], left: Indices, k: int, gamma: float, groups: Indices, made: int,
    members: Indices,
) -> Indices:  # fmt: skip
    """Let the nearest records join a group of k while they are nearer to it than gamma times to any other."""
    apart = np.full(len(left), np.inf)
    for member in members:
        apart = np.minimum(apart, _distances(points, categories, left, points[member]))
    size = len(members)
    while size < 2 * k - 1 and len(left) > 1:
        joins = int(apart.argmin())
        between = _distances(points, categories, left, points[left[joins]])
        between[joins] = np.inf
        if apart[joins] >= gamma * between.min():
            break
        groups[left[joins]] = made
        between[joins] = 0.0
        stays = np.ones(len(left), np.bool_)
        stays[joins] = False
        apart = np.minimum(apart, between)[stays]
        left = left[stays]
        size += 1
    return left
