"""Who was in the data that a model was fitted to: by a score of each record, or by principal components.

Zari, Parra-Arnau, Unsal, Strufe & Onen (2022): components fit the records better that they were made of. The error of
reconstruction by the first k of them is the score, and what counts is the largest area over all k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.dp.pca import components
from sdcduck.methods.models.roc import Curve, Floats, Ranked, interval, relabelled
from sdcduck.methods.sequence.one_thread import one_thread

_NOTHING = 1e-9
"""Of the square of its length: a record with no larger error lies in the plane of the components."""
_TIED = 1e-11
"""Of the median of these squares: errors that differ by less are the same."""


@dataclass(frozen=True)
class Told:
    """What a score tells.

    Attributes:
        curve: of the members and the others.
        auc, low, high: the area and its interval.
        permuted: areas where members are drawn.
        permuted_advantage: the same of the advantage.
    """

    curve: Curve
    auc: float
    low: float
    high: float
    permuted: Floats
    permuted_advantage: Floats

    @property
    def p_value(self) -> float:
        """The share of draws with as large an area, the true one among them."""
        return float((1 + (self.permuted >= self.auc).sum()) / (1 + len(self.permuted)))


def membership(
    members: Floats, others: Floats, confidence: float, permutations: int, seed: int, check: Callable[[], None]
) -> Told:
    """What scores of members and of others tell; the larger, the surer a member.

    >>> told = membership(np.array([0.9, 0.8, 0.8, 0.4]), np.array([0.8, 0.5, 0.3, 0.2]), 0.95, 9, 0, lambda: None)
    >>> told.auc, told.curve.advantage(), told.curve.true_positives(0.1)
    (0.8125, 0.5, 0.25)
    """
    scores = np.concatenate([members, others])
    ranked = Ranked.of(scores)
    curve = ranked.counted(np.arange(len(scores)) < len(members))
    areas, advantages = [], []
    for labels in relabelled(len(members), len(scores), permutations, seed):
        check()
        drawn = ranked.counted(labels)
        areas.append(drawn.area()[0])
        advantages.append(drawn.advantage())
    auc, error = curve.area()
    return Told(curve, auc, *interval(auc, error, confidence), np.array(areas), np.array(advantages))


@one_thread()
def errors(records: Floats, loadings: Floats) -> Floats:
    """Squared errors of reconstruction (n, k) by the first 1, 2, .., k components (rows).

    >>> errors(np.array([[2.0, 0], [1, -1], [3, 3]]), np.array([[0.5**0.5, 0.5**0.5]])).round(9).tolist()
    [[2.0], [2.0], [0.0]]
    """
    lengths = (records**2).sum(axis=1, keepdims=True)
    found: Floats = lengths - np.cumsum((records @ loadings.T) ** 2, axis=1)
    found[np.abs(found) < _NOTHING * lengths] = 0
    # Errors that are equal but for rounding are ties.
    grid = _TIED * (float(np.median(lengths)) or float(lengths.mean()) or 1.0)
    rounded: Floats = np.rint(found / grid) * grid
    return rounded


@one_thread()
def fitted(members: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, and components as rows, of records that are centred."""
    return components(members.T @ members / len(members))


@dataclass(frozen=True)
class ToldByComponents:
    """By number of components.

    Attributes:
        auc, low, high: the area and its interval.
        largest: the largest area by so many or fewer.
        permuted: the mean of that where members are drawn.
        p_value: the share of draws in which it is as large, the true one among them.
    """

    auc: Floats
    low: Floats
    high: Floats
    largest: Floats
    permuted: Floats
    p_value: Floats


def membership_by_components(
    members: Floats, others: Floats, loadings: Floats, confidence: float, permutations: int, seed: int,
    check: Callable[[int, int], None],
) -> ToldByComponents:  # fmt: skip
    """What the first 1, 2, .. components (rows) tell of records in the same units."""
    records = np.concatenate([members, others])
    member = np.arange(len(records)) < len(members)
    labels = np.empty((permutations, len(records)))
    for row, drawn_members in zip(labels, relabelled(len(members), len(records), permutations, seed), strict=True):
        row[:] = drawn_members
    found, drawn = [], []
    losses = errors(records, loadings).T.copy()
    for place, loss in enumerate(losses):
        check(place, len(losses))
        ranked = Ranked.of(-loss)
        auc, error = ranked.counted(member).area()
        found.append((auc, *interval(auc, error, confidence)))
        drawn.append(_areas(ranked.ranks(), labels, len(members)))
    auc, low, high = np.array(found).T
    largest = np.maximum.accumulate(auc)
    permuted = np.maximum.accumulate(np.array(drawn), axis=0)
    beaten = (permuted >= largest[:, None]).sum(axis=1)
    return ToldByComponents(
        auc, low, high, largest, permuted.mean(axis=1) if permutations else np.full(len(auc), np.nan),
        (1 + beaten) / (1 + permutations),
    )  # fmt: skip


@one_thread()
def _areas(ranks: Floats, labels: Floats, members: int) -> Floats:
    """The area for each row of labels; sums of halves are exact in any order."""
    others = len(ranks) - members
    areas: Floats = (labels @ ranks - members * (members + 1) / 2) / (members * others)
    return areas


def alike(members: NDArray[np.float64], others: NDArray[np.float64]) -> int:
    """How many of the others are the same as some member in all columns.

    >>> alike(np.array([[1.0, 2], [3, 4]]), np.array([[3.0, 4], [3, 4], [2, 1]]))
    2
    """
    kind = np.dtype((np.void, members.dtype.itemsize * members.shape[1]))
    one, other = (np.ascontiguousarray(part + 0.0).view(kind).ravel() for part in (members, others))
    return int(np.isin(other, one).sum())
