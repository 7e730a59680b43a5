"""Microaggregation: groups of at least k similar records, whose numbers become the means of their group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


def standardised(values: Matrix) -> Matrix:
    """Columns of mean 0 and standard deviation 1 (of n - 1); a constant one tells no records apart, and becomes 0.

    >>> standardised(np.array([[1.0, 7], [3, 7]])).round(4).tolist()
    [[-0.7071, 0.0], [0.7071, 0.0]]
    """
    if len(values) < 2:
        return np.zeros(values.shape)
    centered = values - values.mean(axis=0)
    spread = values.std(axis=0, ddof=1)
    constant = np.ptp(values, axis=0) == 0  # where rounding makes a mean of equal numbers another number
    return np.asarray(np.where(constant, 0.0, centered / np.where(constant | (spread == 0), 1.0, spread)))


def group_means(values: Matrix, groups: Indices, weights: Matrix | None = None) -> Matrix:
    """The records with the means of their groups in place of their values, so that totals of groups stay what they are.

    Args:
        weights: n, above 0: means and totals are weighted; None: all are 1.

    >>> group_means(np.array([[1.0], [2], [6]]), np.array([0, 1, 1])).ravel().tolist()
    [1.0, 4.0, 4.0]
    >>> group_means(np.array([[1.0], [2], [6]]), np.array([0, 1, 1]), np.array([1.0, 3, 1])).ravel().tolist()
    [1.0, 3.0, 3.0]
    """
    sizes = np.bincount(groups, weights)
    means = [np.bincount(groups, column if weights is None else weights * column) / sizes for column in values.T]
    return np.column_stack([mean[groups] for mean in means])


def group_medians(values: Matrix, groups: Indices) -> Matrix:
    """The records with the medians of their groups in place of their values; of an even number the middle of two.

    >>> group_medians(np.array([[1.0], [2], [6], [3]]), np.array([0, 1, 1, 1])).ravel().tolist()
    [1.0, 3.0, 3.0, 3.0]
    """
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    found = []
    for column in values.T:
        ordered = column[np.lexsort((column, groups))]
        low, high = ordered[first + (sizes - 1) // 2], ordered[first + sizes // 2]
        found.append((low + (high - low) / 2)[groups])
    return np.column_stack(found)


def squared_error(points: Matrix, groups: Indices) -> float:
    """SSE: the squared distances of all points to the means of their groups, added up.

    >>> squared_error(np.array([[1.0], [3], [6]]), np.array([0, 0, 1]))
    2.0
    """
    return float(((points - group_means(points, groups)) ** 2).sum()) if len(points) else 0.0


def information_loss(values: Matrix, masked: Matrix) -> float:
    """The part of the variation that is lost, in per cent: 100 SSE / SST of standardised columns.

    >>> round(information_loss(np.array([[1.0], [3], [5], [7]]), np.array([[2.0], [2], [6], [6]])), 9)
    20.0
    """
    spread = values.std(axis=0)
    varying = spread > 0
    lost = ((values - masked)[:, varying] / spread[varying]) ** 2
    return float(100 * lost.sum() / max(lost.size, 1))


def in_turn(order: Indices, k: int) -> Indices:
    """The group of each record where k that follow each other share one, and the last one takes what is left.

    >>> in_turn(np.array([2, 0, 1, 4, 3]), 2).tolist()
    [0, 1, 0, 1, 1]
    """
    groups = np.empty(len(order), np.int64)
    groups[order] = np.minimum(np.arange(len(order)) // k, max(len(order) // k, 1) - 1)
    return groups


def by_component(points: Matrix, k: int) -> Indices:
    """Groups of records that follow each other by the first principal component of standardised columns.

    Its direction is the one in which the largest of its loadings is positive (the first of equal ones), since nothing
    in the records tells one.

    >>> by_component(np.array([[0.0, 0], [3, 3], [1, 1], [4, 4]]), 2).tolist()
    [0, 1, 0, 1]
    """
    if len(points) < 2:
        return np.zeros(len(points), np.int64)
    loadings = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
    scores = points @ (loadings * np.sign(loadings[np.abs(loadings).round(9).argmax()] or 1.0))
    return in_turn(np.argsort(scores, kind="stable"), k)
