"""Rank swapping and data shuffling: the values of a column in another order.

Rank swapping (Moore 1996): two records change values if their ranks differ by at most a share of all. Shuffling
(Muralidhar and Sarathy 2006): values are laid out in the order of numbers drawn from a normal copula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy
from sdcduck.methods.synthesis.draws import random_bits

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_TRIES = 16


@njit(cache=True, inline="always")
def _leap(following, place):  # type: ignore[no-untyped-def]
    """The first place from here on that is free."""
    while following[place] != place:
        following[place] = following[following[place]]
        place = following[place]
    return place


@njit(cache=True, nogil=True)
def _pairs(reach, bits, partner):  # type: ignore[no-untyped-def]
    n = len(partner)
    following = np.arange(n + 1)
    for place in range(n):
        if partner[place] >= 0:
            continue
        width = min(reach, n - 1 - place)
        if width < 1:
            continue
        # Any free place ahead is as likely as the others while a guess finds one; then the next free one is taken.
        other = -1
        state = bits[place]
        for _ in range(_TRIES):
            guess = place + 1 + int((state >> np.uint64(11)) % np.uint64(width))
            if partner[guess] < 0:
                other = guess
                break
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        if other < 0:
            other = _leap(following, place + 1)
            if other > place + width:
                continue
        partner[place], partner[other] = other, place
        following[place], following[other] = place + 1, other + 1


def swapped_ranks(order: Indices, reach: int, bits: NDArray[np.uint64]) -> Indices:
    """From which record each one takes its value: int64 (n,); from itself, if it has no partner.

    order: int64 (m,), the records that swap, by their values, ascending. reach: how far ranks may move. bits: uint64
    (n,), 64 random bits of each record.

    >>> swapped_ranks(np.array([2, 0, 1]), 1, np.zeros(4, np.uint64)).tolist()
    [2, 1, 0, 3]
    """
    partner = np.full(len(order), -1, np.int64)
    _pairs(reach, bits[order], partner)
    giver = np.arange(len(bits))
    giver[order] = order[np.where(partner < 0, np.arange(len(order)), partner)]
    return giver


def swapped_within(order: Indices, values: Floats, most: float, bits: NDArray[np.uint64]) -> tuple[Indices, int]:
    """The widest swap whose values move by at most so much in the root mean square: from which record, and the reach.

    The mean of a random subset of N then moves by at most 2 most / sqrt(N), but for chance: Moore's second limit, where
    most is K0 times the mean. The wider the reach, the further values move, but for chance; the limit is kept.

    order, bits: as in `swapped_ranks`. values: float64 (n,). most: at least 0.

    >>> swapped_within(np.arange(3), np.array([0.0, 1, 9]), 2.0, np.zeros(3, np.uint64))
    (array([1, 0, 2]), 2)
    """
    fits, fails, best = 0, len(order), np.arange(len(bits))
    while fails - fits > 1:
        reach = (fits + fails) // 2
        giver = swapped_ranks(order, reach, bits)
        moved = np.abs(values[order] - values[giver[order]])
        largest = moved.max() or 1.0  # squares of very large or small numbers are none
        if largest * np.sqrt(np.mean((moved / largest) ** 2)) <= most:
            fits, best = reach, giver
        else:
            fails = reach
    return best, fits


def reach_of(correlation: float) -> float:
    """How far ranks may move, as a share, so that those before and after are correlated so much.

    Ranks as shares of all have the variance 1 / 12. Who swaps with any of those ahead that are free moves by p^2 / 2.61
    in the mean square (measured), more than p^2 / 3, because those just ahead are often taken already.

    >>> round(reach_of(0.95), 3)
    0.147
    """
    return float(np.sqrt((1 - correlation) / 2.3))


def random_words(key: NDArray[np.uint64], among: Indices, stream: int) -> NDArray[np.uint64]:
    """64 random bits of each record: uint64 (n,)."""
    return random_bits(key, among, np.zeros_like(among), np.full(len(key), stream, np.int64))


def normal_scores(values: Floats) -> Floats:
    """The normal numbers of the ranks of values, equal ones sharing theirs; standardised: float64 (n,)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    scores = scipy.special.ndtri((middle - 0.5) / len(values))[place.reshape(-1)]
    spread = scores.std()
    return np.asarray(scores / spread if spread > 0 else np.zeros_like(scores), dtype=np.float64)


def products(columns: Floats) -> Floats:
    """Mean products of all pairs of columns: float64 (columns, columns); the same on any number of threads."""
    count = columns.shape[1]
    found = np.empty((count, count))
    for one in range(count):
        for other in range(one + 1):
            found[one, other] = found[other, one] = np.mean(columns[:, one] * columns[:, other])
    return found


def root(matrix: Floats) -> Floats:
    """The symmetric root of a covariance matrix; what is negative by rounding counts as 0: float64 (p, p).

    >>> root(np.array([[4.0, 0], [0, 0]])).round(6).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found


def inverse(matrix: Floats) -> Floats:
    """The pseudo-inverse of a symmetric matrix: float64 (p, p)."""
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)


def combined(columns: Floats, weights: Floats) -> Floats:
    """``columns @ weights``, the same on any number of threads: float64 (n, weights.shape[1])."""
    found = np.zeros((len(columns), weights.shape[1]))
    for one in range(columns.shape[1]):
        found += columns[:, one, None] * weights[one]
    return found


def shuffled(
    values: Floats, others: Floats, noise: Floats, check: Callable[[int, int], object] = lambda done, total: None
) -> Indices:
    """From which record each one takes its value, by column: int64 (n, p).

    The normal scores of the values given those of the others are normal, with the covariance that the ranks have: a
    draw from that law replaces them, and its order is that of the values. Given the others it knows nothing of these.

    values: float64 (n, p), to be shuffled. others: float64 (n, q), that stay. noise: float64 (n, p), standard normal.
    """
    n, p = values.shape
    scores = np.column_stack([normal_scores(column) for column in np.column_stack([values, others]).T])
    covariance = products(scores)
    among, between, rest = covariance[:p, :p], covariance[:p, p:], covariance[p:, p:]
    slopes = between @ inverse(rest) if others.shape[1] else np.zeros((p, 0))
    drawn = combined(noise, root(among - slopes @ between.T))
    if others.shape[1]:
        drawn = drawn + combined(scores[:, p:], slopes.T)
    giver = np.empty((n, p), np.int64)
    for column in range(p):
        check(column, p)
        # Equal draws cannot be told from each other but by the place of the record.
        giver[np.argsort(drawn[:, column], kind="stable"), column] = np.argsort(values[:, column], kind="stable")
    return giver
