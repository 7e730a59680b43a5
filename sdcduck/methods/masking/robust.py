"""Microaggregation from the outside, which outliers do not mislead: where that is, the bulk of the records says.

The record farthest from it, by Mahalanobis' distance with the minimum covariance determinant, takes those nearest to
it, and so on: Templ and Meindl (2008), whose `rmd` this is.

Half of the records and a few, of which the covariance has the smallest determinant that was found, say what the
bulk is like; records that are far from these are left out, and the covariance of the others is taken. Rousseeuw and
Van Driessen (1999); the starts are four of those of Hubert, Rousseeuw and Verdonck (2012), so that the same records
always give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_AT_ONCE = 64
_STEPS = 100
_SINGULAR = 1e-9  # smallest variance in any direction, as a share of the largest, of columns of like size


class SingularError(ValueError):
    """Most records lie in a plane: some columns say what others do."""


def from_outside(points: Matrix, k: int, check: Callable[[int, int], None] = lambda done, total: None) -> Indices:
    """Groups of k records: in turn the one farthest from the bulk, with those nearest to it; the last has up to 2k - 1.

    Args:
        points: n x p, standardised: nearest is by the Euclidean distance of these, farthest by the robust one.

    Raises:
        SingularError: most records have the same value of a column, or of a combination of columns.
    """
    order = np.argsort(-_distances(points, bulk(points)), kind="stable")
    groups = np.full(len(points), -1, np.int64)
    made = place = 0
    while made < len(points) // k:
        made, place = _grouped(points, order, k, groups, made, place, min(made + _AT_ONCE, len(points) // k))
        check(made * k, len(points))
    return groups


@njit(cache=True, nogil=True)
def _grouped(points, order, k, groups, made, place, until):  # type: ignore[no-untyped-def]
    """More groups; how many there are then, and where to go on. The last one takes all that are left."""
    far = np.empty(len(points))
    while made < until:
        while groups[order[place]] >= 0:
            place += 1
        first = order[place]
        for other in range(len(points)):
            far[other] = np.inf
            if groups[other] < 0:
                far[other] = 0.0
                for column in range(points.shape[1]):
                    far[other] += (points[other, column] - points[first, column]) ** 2
        if made == len(points) // k - 1:
            for other in range(len(points)):
                if groups[other] < 0:
                    groups[other] = made
        else:
            far[first] = -1.0
            for _ in range(k):
                nearest = far.argmin()
                far[nearest] = np.inf
                groups[nearest] = made
        made += 1
    return made, place


def bulk(points: Matrix) -> Indices:
    """The records that are no outliers: nearer to the robust mean than 97.5 in 100 normal ones would be.

    Raises:
        SingularError: most records lie in a plane.

    >>> grid = np.arange(12.0)
    >>> bulk(np.column_stack([np.append(grid % 4, 50), np.append(grid // 4, 50)])).tolist() == list(range(12))
    True
    """
    count, width = points.shape
    half = min((count + width + 1) // 2, count)
    best, least = np.arange(count), np.inf
    for start in _starts(points, half):
        rows = start
        for _ in range(_STEPS):
            nearer = np.sort(_nearest(_distances(points, rows), half))
            if (nearer == rows).all():
                break
            rows = nearer
        size = float(np.log(_spread(points[rows])[0]).sum())
        if size < least - 1e-12:
            best, least = rows, size
    squared = _distances(points, best)
    # Of normal records half are nearer than the median of this law.
    squared *= scipy.stats.chi2.ppf(0.5, width) / np.median(squared)
    return np.flatnonzero(squared <= scipy.stats.chi2.ppf(0.975, width))


def _starts(points: Matrix, half: int) -> list[Indices]:
    """Half of the records by four simple measures of how far out they are."""
    middle = np.median(points, axis=0)
    absolute = np.abs(points - middle)
    scale = np.median(absolute, axis=0)
    scaled = absolute / np.where(scale > 0, scale, absolute.mean(axis=0) + (absolute.max(axis=0) == 0))
    length = np.sqrt(((points - middle) ** 2).sum(axis=1))
    signs = (points - middle) / np.where(length > 0, length, 1.0)[:, None]
    ranks = scipy.stats.rankdata(points, axis=0)
    scores = scipy.special.ndtri((ranks - 1 / 3) / (len(points) + 1 / 3))
    found = [_nearest((scaled**2).sum(axis=1), half), _nearest(scaled.max(axis=1), half)]
    for columns in (signs, scores):
        vectors = np.linalg.eigh(np.cov(columns, rowvar=False).reshape(points.shape[1], -1))[1]
        turned = (points - middle) @ vectors
        spread = np.median(np.abs(turned), axis=0)
        found.append(_nearest(((turned / np.where(spread > 0, spread, 1.0)) ** 2).sum(axis=1), half))
    return [np.sort(rows) for rows in found]


def _nearest(far: Matrix, half: int) -> Indices:
    return np.argsort(far, kind="stable")[:half]


def _spread(points: Matrix) -> tuple[Matrix, Matrix]:
    values, vectors = np.linalg.eigh(np.cov(points, rowvar=False).reshape(points.shape[1], -1))
    if not values.min() > _SINGULAR * max(values.max(), 1e-300):
        raise SingularError
    return values, vectors


def _distances(points: Matrix, rows: Indices) -> Matrix:
    values, vectors = _spread(points[rows])
    found: Matrix = (((points - points[rows].mean(axis=0)) @ vectors) ** 2 / values).sum(axis=1)
    return found
