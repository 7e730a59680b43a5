"""Nearest neighbours in the whole numbers that an encrypted circuit computes with, in clear.

Ameur, Aziz, Audigier and Bouzefrane (2022) compare squared distances by their differences, which are linear in the
question. A torus, the numbers modulo 1, is cut into 2^32 parts; the question is told as q / (v tau), a record as the
whole number round(tau x / v), so that scores have one order for all pairs. (Their code rounds differences of records,
which may go round in circles.) Differences of scores must lie within half a turn, which v is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TORUS = 2**32
ROOM = 1 / 16
"""Share of half a turn that the encrypted comparison keeps free, for noise and for its second look."""

COMPARISON_NOISE = math.sqrt(1024 / 24) / 2048 / 16
"""Standard deviation of the noise of an encrypted comparison of scores, in turns (`comparisons`)."""

_TOGETHER = 2**22  # numbers of a block of questions


def scaled(values: Floats, low: Floats, high: Floats) -> Floats:
    """Numbers from 0 to 1 between the ends; what lies outside is moved to them.

    >>> scaled(np.array([[5.0, 1.0], [20.0, 1.0]]), np.array([0.0, 1.0]), np.array([10.0, 1.0])).tolist()
    [[0.5, 0.0], [1.0, 0.0]]
    """
    width = high - low
    inside = np.clip(values, low, high) - low
    return np.clip(np.where(width > 0, inside / np.where(width > 0, width, 1.0), 0.0), 0.0, 1.0)


def widest(points: Floats) -> float:
    """The largest difference of squared distances of two records that any question between 0 and 1 has.

    >>> round(widest(np.array([[0.1], [0.2], [0.6], [0.9]])), 2)
    0.8
    """
    most, norms = 0.0, (points**2).sum(axis=1)
    for one, norm in zip(points, norms, strict=True):
        # In each column the worst question is 1 where it brings the first nearer, and else 0.
        nearer = np.maximum(points - one, 0.0).sum(axis=1)
        most = max(most, float((norm - norms + 2 * nearer).max()))
    return most


def smallest_scale(points: Floats, room: float = 0.0) -> float:
    """The smallest v with which no difference leaves half a turn, or that less `room`."""
    return math.sqrt(2 * widest(points) / (1 - room))


def safe_scale(columns: int) -> float:
    """A v that is large enough for any records of so many columns, for who does not know them.

    >>> round(safe_scale(4), 3), safe_scale(2) >= smallest_scale(np.array([[0.0, 0.0], [1.0, 1.0]]), ROOM)
    (2.921, True)
    """
    return math.sqrt(2 * columns / (1 - ROOM))


@dataclass(frozen=True)
class Records:
    """Records with a class each, as the circuit has them.

    Attributes:
        points: numbers from 0 to 1, a row for each record.
        classes: of the records, from 0 on.
        count: of classes.
        v: what divides all, so that differences lie within half a turn.
        tau: the precision.
    """

    points: Floats
    classes: Indices
    count: int
    v: float
    tau: int

    @property
    def whole(self) -> Indices:
        """The records as whole numbers."""
        made: Indices = np.round(self.tau * self.points / self.v).astype(np.int64)
        return made

    @property
    def norms(self) -> Indices:
        """The squared norms, in parts of a turn."""
        made: Indices = np.round((self.points**2).sum(axis=1) / self.v**2 * TORUS).astype(np.int64)
        return made

    def encoded(self, questions: Floats) -> Indices:
        """Questions in parts of a turn."""
        return encoded(questions, self.v * self.tau)

    def scores(self, questions: Floats) -> Indices:
        """Of each question (row) and record, in parts of a turn: squared distances, but for what all records share.

        >>> known = Records(np.array([[0.1], [0.2], [0.6], [0.9]]), np.array([0, 0, 1, 1]), 2, v=4, tau=1000)
        >>> known.whole.ravel().tolist(), (known.scores(np.array([[0.3]])) / TORUS * 1e6).round().astype(int).tolist()
        ([25, 50, 150, 225], [[-3125, -5000, 0, 16875]])
        """
        # Whole numbers below 2^53 are exact as floating-point numbers, and so quicker multiplied.
        products = self.encoded(questions).astype(np.float64) @ self.whole.T.astype(np.float64)
        made: Indices = self.norms - 2 * products.astype(np.int64)
        return made


def encoded(questions: Floats, scale: float) -> Indices:
    """Questions in parts of a turn, divided by v times tau."""
    made: Indices = np.round(questions / scale * TORUS).astype(np.int64)
    return made


@dataclass(frozen=True)
class Vote:
    """What becomes of each question.

    Attributes:
        classes: the one that most of the k nearest have, of equal ones the first.
        votes: of the k nearest for each class.
        gap: how much farther the next one is than the k-th, in turns; infinite where there is no next one.
    """

    classes: Indices
    votes: Indices
    gap: Floats


def vote(scores: NDArray[np.generic], classes: Indices, count: int, k: int) -> Vote:
    """Of scores of each question (row) and record, the votes of the k lowest; of equal records the first.

    >>> vote(np.array([[-3, -5, 0, 17]]), np.array([0, 0, 1, 1]), 2, k=3).votes.tolist()
    [[2, 1]]
    """
    order = np.argsort(scores, axis=1, kind="stable")[:, : k + 1]
    near = classes[order[:, :k]]
    votes = np.stack([(near == one).sum(axis=1) for one in range(count)], axis=1)
    gap = np.full(len(scores), np.inf)
    if k < scores.shape[1]:
        ends = np.take_along_axis(scores, order[:, k - 1 :], axis=1).astype(np.float64)
        gap = ends[:, 1] - ends[:, 0]
    return Vote(votes.argmax(axis=1), votes, gap)


def simulate(
    records: Records, questions: Floats, k: int, check: Callable[[int, int], None] | None = None
) -> tuple[Vote, Indices]:
    """The vote of the circuit, and the classes of ordinary nearest neighbours, for comparison."""
    from scipy.spatial.distance import cdist

    found: list[Vote] = []
    plain = [np.zeros(0, np.int64)]
    size = max(1, _TOGETHER // len(records.points))
    for low in range(0, len(questions), size):
        asked = questions[low : low + size]
        one = vote(records.scores(asked), records.classes, records.count, k)
        found.append(Vote(one.classes, one.votes, one.gap / TORUS))
        distances = cdist(asked, records.points, "sqeuclidean")
        plain.append(vote(distances, records.classes, records.count, k).classes)
        if check is not None:
            check(min(low + size, len(questions)), len(questions))
    parts = (
        np.concatenate([np.zeros(0, np.int64), *(one.classes for one in found)]),
        np.concatenate([np.zeros((0, records.count), np.int64), *(one.votes for one in found)]),
        np.concatenate([np.zeros(0), *(one.gap for one in found)]),
    )
    return Vote(*parts), np.concatenate(plain)
