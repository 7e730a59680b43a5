"""How well a score tells members from others: the curve of true against false positives, without drawing it.

The area (AUC) is Mann and Whitney's statistic, its variance that of DeLong, DeLong and Clarke-Pearson (1988). The
advantage is the largest difference of true and false positive rate over all thresholds (Yeom et al. 2018); the rate of
true positives at few false ones is what counts for whom the attack finds (Carlini et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ranked:
    """Scores of all, put in order once: whoever is called a member afterwards, the ranks stay.

    Attributes:
        order: of the records, by rising score.
        block: of each place in that order, the number of its group of equal scores.
        starts: where each group begins, and the end.
    """

    order: Ints
    block: Ints
    starts: Ints

    @classmethod
    def of(cls, scores: Floats) -> Ranked:
        order = np.argsort(scores, kind="stable")
        ordered = scores[order]
        new = np.ones(len(scores), np.bool_)
        new[1:] = ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(new)
        return cls(order, np.cumsum(new) - 1, np.append(starts, len(scores)))

    def ranks(self) -> Floats:
        """Of each record, the mean of the places that its score has.

        >>> Ranked.of(np.array([0.3, 0.1, 0.3])).ranks().tolist()
        [2.5, 1.0, 2.5]
        """
        middle = (self.starts[:-1] + self.starts[1:] + 1) / 2
        found = np.empty(len(self.order))
        found[self.order] = middle[self.block]
        return found

    def counted(self, member: NDArray[np.bool_]) -> Curve:
        """How many members and others each group has."""
        within = np.add.reduceat(member[self.order], self.starts[:-1], dtype=np.int64)
        return Curve(within, np.diff(self.starts) - within)


@dataclass(frozen=True)
class Curve:
    """Members and others by rising score, a number for each group of equal scores."""

    members: Ints
    others: Ints

    def area(self) -> tuple[float, float]:
        """AUC and its standard error; the latter is NaN where there is one member or one other.

        >>> curve = Ranked.of(np.array([0.9, 0.8, 0.8, 0.4, 0.8, 0.5, 0.3, 0.2])).counted(np.arange(8) < 4)
        >>> curve.area()[0]
        0.8125
        """
        all_members, all_others = int(self.members.sum()), int(self.others.sum())
        others_below = np.cumsum(self.others) - self.others
        members_above = all_members - np.cumsum(self.members)
        # Of a member, the share of others below, and of another the share of members above: doubled, whole numbers.
        wins, losses = 2 * others_below + self.others, 2 * members_above + self.members
        auc = int((self.members * wins).sum()) / (2 * all_members * all_others)
        if min(all_members, all_others) < 2:
            return auc, math.nan
        of_members = (self.members * (wins / (2 * all_others) - auc) ** 2).sum() / (all_members - 1)
        of_others = (self.others * (losses / (2 * all_members) - auc) ** 2).sum() / (all_others - 1)
        return auc, math.sqrt(of_members / all_members + of_others / all_others)

    def advantage(self) -> float:
        """The largest difference of the rates of true and false positives."""
        true, false = self._rates()
        return float((true - false).max(initial=0.0))

    def true_positives(self, false_positives: float) -> float:
        """The largest rate of true positives at a rate of false ones that is no larger."""
        true, false = self._rates()
        return float(true[false <= false_positives].max(initial=0.0))

    def _rates(self) -> tuple[Floats, Floats]:
        """By falling threshold."""
        true, false = np.cumsum(self.members[::-1]), np.cumsum(self.others[::-1])
        return true / true[-1], false / false[-1]


def interval(auc: float, standard_error: float, confidence: float) -> tuple[float, float]:
    """Of an area, on the scale of its logarithmic odds, so that it stays within 0 and 1.

    >>> [round(end, 3) for end in interval(0.8, 0.05, 0.95)]
    [0.684, 0.881]
    """
    from scipy.special import expit, logit, ndtri

    if math.isnan(standard_error):
        return math.nan, math.nan
    if not 0 < auc < 1:
        return auc, auc
    middle, half = logit(auc), float(ndtri((1 + confidence) / 2)) * standard_error / (auc * (1 - auc))
    return float(expit(middle - half)), float(expit(middle + half))


def relabelled(members: int, records: int, times: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """For each time who is called a member if it is drawn: as many as there are."""
    chance = np.random.default_rng(seed)
    for _ in range(times):
        row = np.zeros(records, np.bool_)
        row[chance.permutation(records)[:members]] = True
        yield row
