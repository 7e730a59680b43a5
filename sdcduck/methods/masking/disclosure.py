"""What masked numbers still tell of the records behind them: how near they lie, and whose they are the nearest to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_EQUAL = 1e-9  # of distances, as a share: they differ by rounding only
_FAR = 1e100
"""How far from 0 a masked number can be, in units of the largest original: beyond, its square would be none."""


def _scaled(values: Matrix, masked: Matrix) -> tuple[Matrix, Matrix]:
    """Both in powers of two of the largest original of each column: no digit is lost, and squares are numbers."""
    size = -np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    with np.errstate(over="ignore"):
        moved = np.ldexp(masked, size)
    return np.ldexp(values, size), np.clip(moved, -_FAR, _FAR)


def within_interval(values: Matrix, masked: Matrix, width: float) -> NDArray[np.bool_]:
    """Which numbers lie nearer to the masked one than a share of the standard deviation of their column.

    Args:
        values, masked: n x p, finite, the records in the same order.
        width: above 0, in standard deviations (divisor n - 1) of the originals. What has not changed is always near.

    >>> within_interval(np.array([[0.0], [10], [20]]), np.array([[0.9], [11], [20]]), 0.1).ravel().tolist()
    [True, False, True]
    """
    values, masked = _scaled(values, masked)
    apart = np.abs(values - masked)
    if len(values) < 2:
        return np.asarray(apart == 0)
    return np.asarray((apart < width * values.std(axis=0, ddof=1)) | (apart == 0))


def linked(values: Matrix, masked: Matrix) -> Matrix:
    """Of each record the chance that the masked record nearest to it is its own.

    Distances are Euclidean between columns divided by the standard deviations of the originals; columns that do not
    vary do not count. Among masked records that are equally near one is taken by lot, so that nobody is found with a
    chance above 1/k where k share their values.

    Args:
        values, masked: n x p, finite, the records in the same order.

    >>> linked(np.array([[0.0], [10], [20]]), np.array([[5.0], [5], [20]])).tolist()
    [0.5, 0.5, 1.0]
    """
    from scipy.spatial import cKDTree

    if len(values) < 2:
        return np.ones(len(values))
    values, masked = _scaled(values, masked)
    spread = values.std(axis=0, ddof=1)
    varying = (spread > 0) & (np.ptp(values, axis=0) > 0)
    if not varying.any():
        return np.full(len(values), 1 / len(values))
    center = values[:, varying].mean(axis=0)
    points, others = ((table[:, varying] - center) / spread[varying] for table in (values, masked))
    different, place, counts = np.unique(others, axis=0, return_inverse=True, return_counts=True)
    tree = cKDTree(different)
    own = np.sqrt(((points - others) ** 2).sum(axis=1))
    reach = own * (1 + _EQUAL) + np.finfo(np.float64).tiny
    nearest = tree.query(points)[0]
    found = np.zeros(len(points))
    first = np.flatnonzero(own <= nearest * (1 + _EQUAL) + np.finfo(np.float64).tiny)
    alone = tree.query_ball_point(points[first], reach[first], return_length=True) == 1
    found[first[alone]] = 1 / counts[place.reshape(-1)[first[alone]]]
    for row in first[~alone]:  # records with several masked ones at the same distance: few
        found[row] = 1 / counts[tree.query_ball_point(points[row], reach[row])].sum()
    return found
