"""Microaggregation: groups of at least k similar records, whose numbers become the means of their group.

MDAV (maximum distance to average vector), Domingo-Ferrer and Mateo-Sanz (2002), in the form of Domingo-Ferrer and Torra
(2005), "Ordinal, continuous and heterogeneous k-anonymity through microaggregation".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


def mdav(values: Matrix, k: int, check: Callable[[int, int], None] = lambda done, total: None) -> Indices:
    """The group of each record; each has k to 2k - 1 of them, as long as there are k records.

    In turn the record farthest from the mean of those that are left, and the one farthest from it, get the k - 1 that
    are nearest to them. Distances are Euclidean between columns divided by their standard deviations; of equally far
    ones the first is taken.

    Args:
        values: n x p, finite.
        k: at least 1.
        check: called with how many records have a group, and how many there are.

    >>> mdav(np.array([[1.0], [2], [3], [10], [11], [12], [13]]), 3).tolist()
    [0, 0, 0, 1, 1, 1, 1]
    """
    left, points = np.arange(len(values)), _standardised(values)
    groups, number = np.zeros(len(values), np.int64), 0

    def take(center: Matrix) -> None:
        """Put the k of those left that are nearest to a record into a group."""
        nonlocal left, points, number
        chosen = _nearest(_distances(points, center), k)
        groups[left[chosen]] = number
        number += 1
        left, points = left[~chosen], points[~chosen]
        check(len(values) - len(left), len(values))

    while len(left) >= 3 * k:
        one = points[_distances(points, points.mean(axis=0)).argmax()]
        take(one)
        take(points[_distances(points, one).argmax()])
    if len(left) >= 2 * k:
        take(points[_distances(points, points.mean(axis=0)).argmax()])
    groups[left] = number
    return groups


def group_means(values: Matrix, groups: Indices) -> Matrix:
    """The records with the means of their groups in place of their values.

    >>> group_means(np.array([[1.0], [2], [6]]), np.array([0, 1, 1])).ravel().tolist()
    [1.0, 4.0, 4.0]
    """
    sizes = np.bincount(groups)
    means = [np.bincount(groups, column) / sizes for column in values.T]
    return np.column_stack([mean[groups] for mean in means])


def information_loss(values: Matrix, masked: Matrix) -> float:
    """The part of the variation that is lost, in per cent: 100 SSE / SST of standardised columns.

    >>> round(information_loss(np.array([[1.0], [3], [5], [7]]), np.array([[2.0], [2], [6], [6]])), 9)
    20.0
    """
    spread = values.std(axis=0)
    varying = spread > 0
    lost = ((values - masked)[:, varying] / spread[varying]) ** 2
    return float(100 * lost.sum() / max(lost.size, 1))


def _standardised(values: Matrix) -> Matrix:
    """Columns of standard deviation 1; a constant one tells no records apart."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0) if len(values) else values)


def _distances(points: Matrix, center: Matrix) -> Matrix:
    """Squared distances of all points to one."""
    apart = points - center
    found: Matrix = np.einsum("ij,ij->i", apart, apart)
    return found


def _nearest(distances: Matrix, k: int) -> NDArray[np.bool_]:
    """Which are the k smallest; of equal ones the first."""
    last = np.partition(distances, k - 1)[k - 1]
    chosen: NDArray[np.bool_] = distances < last
    ties = np.flatnonzero(distances == last)
    chosen[ties[: k - int(chosen.sum())]] = True
    return chosen
