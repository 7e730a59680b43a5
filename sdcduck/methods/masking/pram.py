"""Post randomisation (PRAM): categories that change by lot, with known probabilities.

Gouweleeuw, Kooiman, Willenborg and De Wolf (1998). An invariant matrix R, with t R = t for the shares t of the
categories, keeps all counts in expectation: a matrix P is followed by its own way back, Q of Bayes' theorem, R = P Q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def even_matrix(diagonal: Floats) -> Floats:
    """Categories stay with the probabilities of the diagonal, and all others are equally likely: float64 (l, l).

    >>> even_matrix(np.array([0.8, 0.6, 1.0])).round(2).tolist()
    [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]]
    """
    count = len(diagonal)
    if count < 2:
        return np.ones((count, count))
    matrix = np.repeat((1 - diagonal) / (count - 1), count).reshape(count, count)
    np.fill_diagonal(matrix, diagonal)
    return matrix


def invariant_matrix(matrix: Floats, counts: Indices, alpha: float) -> Floats:
    """alpha P Q + (1 - alpha) I, which keeps the counts in expectation: float64 (l, l).

    matrix: float64 (l, l), P, rows add up to 1. counts: int64 (l,), records of each category.

    >>> invariant_matrix(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([3, 1]), 1.0).round(4).tolist()
    [[0.7857, 0.2143], [0.6429, 0.3571]]
    """
    there = matrix * counts[:, None]
    seen = there.sum(axis=0)
    back = np.where(seen[:, None] > 0, there.T / np.where(seen > 0, seen, 1)[:, None], np.eye(len(counts)))
    found: Floats = alpha * (matrix @ back) + (1 - alpha) * np.eye(len(counts))
    return found


@njit(cache=True, nogil=True)
def _draw(codes, sums, chance, drawn):  # type: ignore[no-untyped-def]
    count = sums.shape[0]
    for row in range(len(codes)):
        own = codes[row]
        before = sums[own, own - 1] if own > 0 else 0.0
        stays = sums[own, own] - before
        at = chance[row] * sums[own, count - 1]
        if at < stays:
            drawn[row] = own
            continue
        # What is left is laid out without the record's own category.
        at -= stays
        if at >= before:
            at += stays
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if sums[own, middle] > at:
                high = middle
            else:
                low = middle + 1
        drawn[row] = low


def drawn_categories(codes: Indices, matrix: Floats, chance: Floats) -> Indices:
    """What each record becomes: int64 (n,). A small chance stays, whatever the other probabilities are.

    codes: int64 (n,), categories from 0 on. matrix: float64 (l, l), rows add up to 1. chance: float64 (n,), in (0, 1).

    >>> drawn_categories(np.array([1, 1, 1]), np.array([[1.0, 0], [0.3, 0.7]]), np.array([0.1, 0.69, 0.71])).tolist()
    [1, 1, 0]
    """
    drawn = np.empty_like(codes)
    _draw(codes, np.cumsum(matrix, axis=1), chance, drawn)
    return drawn
