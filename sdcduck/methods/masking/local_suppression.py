"""Local suppression: single values that are taken out until every record may be one of k.

A value that is missing may be any, so a record with gaps is alike with all that agree with what it has left. Templ,
Kowarik and Meindl (2015), "Statistical Disclosure Control for Micro-Data Using the R Package sdcMicro".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.matches import SLACK, Matches, lacking
from sdcduck.methods.masking.suppression_programme import fewest_values

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Check = Callable[[int, int], None]

METHODS = ("best", "sdcmicro")
"""By which values are chosen."""
_MOST_RELYING = 5_000  # records that are looked at again each time one gets a value back


@dataclass(frozen=True)
class Demand:
    """Keys, and how many records must be alike in them."""

    keys: tuple[int, ...]
    k: int


@dataclass(frozen=True)
class LocalSuppression:
    """How values are chosen.

    Attributes:
        demands: in the order in which they are met.
        order: of the keys: the first is suppressed rather than the others.
        alpha: what a record counts that is alike only because a value is missing, 0 to 1.
        method: one of `METHODS`.
    """

    demands: Sequence[Demand]
    order: tuple[int, ...]
    alpha: float = 1.0
    method: str = "best"

    def of(self, codes: Indices, strata: Indices, check: Check = lambda done, total: None) -> Mask:
        """Which values are suppressed.

        Args:
            codes: n x m, numbers of the values from 0 on, -1 for one that is missing; equally rare records have their
                turn in this order.
            strata: n; a record is alike with none of another stratum, and each has at least k.

        Returns:
            n x m.
        """
        begun = (codes < 0) @ (1 << np.arange(codes.shape[1]))
        found = self._in_turn(codes, strata, check) if self.method == "sdcmicro" else self._best(codes, strata, check)
        if any((self._counts(codes, strata, one, found) < one.k - SLACK).any() for one in self.demands):
            raise RuntimeError("a record is alike with too few after suppression")
        return ((found & ~begun)[:, None] >> np.arange(codes.shape[1]) & 1).astype(np.bool_)

    def _counts(self, codes: Indices, strata: Indices, demand: Demand, patterns: Indices) -> NDArray[np.float64]:
        return self._matches(codes, strata, demand, patterns).counts(np.arange(len(codes)))

    def _matches(self, codes: Indices, strata: Indices, demand: Demand, patterns: Indices) -> Matches:
        """The records by the keys of a demand."""
        return Matches(codes[:, demand.keys], strata, self.alpha, _onto(patterns, demand.keys))

    def _in_turn(self, codes: Indices, strata: Indices, check: Check) -> Indices:
        """The patterns of sdcMicro.

        All records that are alike with too few lose one value each, the rarest first, and lose another one as long as
        there are such records. With alpha below 1 a record may become rare because another one lost a value: then all
        demands are looked at again.
        """
        patterns = (codes < 0) @ (1 << np.arange(codes.shape[1]))
        rows = np.arange(len(codes))
        while True:
            before = patterns.copy()
            for demand in self.demands:
                matches = self._matches(codes, strata, demand, patterns)
                keys = np.array([demand.keys.index(key) for key in self.order if key in demand.keys])
                while (rare := (counts := matches.counts(rows)) < demand.k - SLACK).any():
                    turn = rows[rare][np.argsort(counts[rare], kind="stable")]
                    if (matches.patterns[turn] == (1 << matches.m) - 1).all():
                        turn = _joining(matches, strata, turn, demand.k)
                        matches.move(turn, np.full(len(turn), (1 << matches.m) - 1))
                    else:
                        matches.suppress_one_each(turn, keys, check)
                patterns |= _back(matches.patterns, demand.keys)
            if self.alpha == 1 or len(self.demands) == 1 or (patterns == before).all():
                return patterns

    def _best(self, codes: Indices, strata: Indices, check: Check) -> Indices:
        """The best of what is found: the fewest values that each record is safe with, and those of sdcMicro."""
        begun = (codes < 0) @ (1 << np.arange(codes.shape[1]))
        if self.alpha < 1 and len(self.demands) > 1:
            return self._in_turn(codes, strata, check)
        alone, rare = self._each_alone(codes, strata, begun, check)
        if len(self.demands) > 1:
            return min(alone, self._in_turn(codes, strata, check), key=lambda one: _values(one, begun))
        demand = self.demands[0]
        alone = self._reduced(codes, strata, demand, begun, alone, np.zeros(0, np.int64))
        if _values(alone, begun) == len(rare):  # each rare record loses one
            return alone
        turn = self._in_turn(codes, strata, check)
        relying = np.flatnonzero(turn != begun)
        turn = self._reduced(codes, strata, demand, begun, turn, relying)
        found = min(alone, turn, key=lambda one: _values(one, begun))
        if self.alpha < 1 or _values(found, begun) == len(rare):
            return found
        return fewest_values(codes[:, demand.keys], strata, demand.k, rare, found, begun, self.order)

    def _each_alone(self, codes: Indices, strata: Indices, begun: Indices, check: Check) -> tuple[Indices, Indices]:
        """For each rare record the fewest values without which it is alike with enough records as they came.

        What the others lose then makes it alike with more, and never with fewer.
        """
        patterns, rows = begun.copy(), np.arange(len(codes))
        several = [self._matches(codes, strata, demand, begun) for demand in self.demands]
        short = np.zeros(len(codes), np.bool_)
        for one, demand in zip(several, self.demands, strict=True):
            short |= one.counts(rows) < demand.k - SLACK
        rare = left = rows[short]
        for added in _sets(self.order):
            check(len(rare) - len(left), len(rare))
            pattern = sum(1 << key for key in added)
            possible = left[begun[left] & pattern == 0]
            enough = np.ones(len(possible), np.bool_)
            for one, demand in zip(several, self.demands, strict=True):
                within = int(_onto(np.array([pattern]), demand.keys)[0])
                enough[enough] = one.counts(possible[enough], within, surely=True) >= demand.k - SLACK
            if self.alpha < 1:  # equal ones count in full: k of them suffice
                there = several[0].groups(pattern)[possible]
                equal = begun[possible] == 0
                enough |= (
                    equal & (np.bincount(there[equal], minlength=there.max(initial=0) + 1) >= self.demands[0].k)[there]
                )
            patterns[possible[enough]] |= pattern
            left = left[~np.isin(left, possible[enough])]
            if not len(left):
                return patterns, rare
        all_keys = (1 << codes.shape[1]) - 1
        patterns[left] = all_keys
        matches = self._matches(codes, strata, self.demands[0], patterns)
        while (short := matches.counts(rows) < self.demands[0].k - SLACK).any():
            more = rows[short & (matches.patterns != all_keys)]
            more = more if len(more) else _joining(matches, strata, rows[short], self.demands[0].k)
            matches.move(more, np.full(len(more), all_keys))
        return matches.patterns, rare

    def _reduced(
        self, codes: Indices, strata: Indices, demand: Demand, begun: Indices, patterns: Indices, relying: Indices
    ) -> Indices:
        """The same with fewer values, where what others lack lets a record keep one."""
        several = np.flatnonzero(lacking(patterns & ~begun) > 1)
        if self.alpha < 1 or not len(several) or len(relying) + len(several) > _MOST_RELYING:
            return patterns
        matches = self._matches(codes, strata, demand, patterns)
        smaller = np.array([sum(1 << key for key in one) for one in _sets(self.order)], np.int64)
        matches.reduce(several, relying, smaller, demand.k, begun)
        return matches.patterns


def order_of_keys(codes: Indices) -> tuple[int, ...]:
    """The keys in the order in which they are suppressed, where nobody says which are important.

    That with the most values is the first; of equal ones the last, as in sdcMicro.
    """
    values = [len(np.unique(column[column >= 0])) for column in codes.T]
    return tuple(sorted(range(len(values)), key=lambda key: (values[key], key), reverse=True))


def _sets(order: Sequence[int]) -> list[tuple[int, ...]]:
    """All sets of keys, small ones first, and of equal size those that are suppressed rather."""
    return [one for size in range(1, len(order) + 1) for one in combinations(order, size)]


def _values(patterns: Indices, begun: Indices) -> int:
    """How many values are suppressed."""
    return int(lacking(patterns & ~begun).sum())


def _onto(patterns: Indices, keys: Sequence[int]) -> Indices:
    """Patterns of some keys alone."""
    return _moved(patterns, np.array(keys), np.arange(len(keys)))


def _back(patterns: Indices, keys: Sequence[int]) -> Indices:
    """Patterns of some keys as those of all."""
    return _moved(patterns, np.arange(len(keys)), np.array(keys))


def _moved(patterns: Indices, old: Indices, new: Indices) -> Indices:
    """The old bits of patterns at new places."""
    return np.asarray((patterns[:, None] >> old & 1) @ (np.int64(1) << new), np.int64)


def _joining(matches: Matches, strata: Indices, rare: Indices, k: int) -> Indices:
    """Records that lose all, so that those without any value are enough: of one stratum with such records.

    As few as are needed, from classes that have more than they need, or else one whole class.
    """
    nothing, (stratum, *_) = (1 << matches.m) - 1, strata[rare]
    within = np.flatnonzero(strata == stratum)
    blank = matches.patterns[within] == nothing
    wanted = np.ceil((k - matches.alpha * len(within)) / (1 - matches.alpha) - SLACK) - blank.sum()
    others: Indices = np.asarray(within[~blank], np.int64)
    classes = np.unique(matches.patterns[others] << 32 | matches.groups(0)[others], return_inverse=True)[1].reshape(-1)
    order = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    spare = others[place >= k]
    if len(spare) >= wanted:
        return spare[: int(wanted)]
    whole = int(np.argmin(np.where(sizes >= wanted, sizes, len(others) + 1)))
    return np.asarray(others[classes == whole], np.int64)
