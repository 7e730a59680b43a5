"""How many records may have the same values, where a value that is missing may be any: counts that follow suppressions.

A record with gaps at the keys P and one with gaps at Q may be alike if they agree on all keys that neither lacks. So a
record is counted in tables of its own: one for each pattern Q that some record has, and each union of it with another
pattern, over the values of the other keys. A suppression changes one number in each table of two patterns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Indices = NDArray[np.int64]
Counts = NDArray[np.float64]
Check = Callable[[int, int], None]

MOST_KEYS = 12
"""There is a place for each pair of patterns."""
SLACK = 1e-9  # counts are sums of alpha
_AT_ONCE = 20_000  # records between two looks at whether somebody has stopped it


class Matches:
    """The records by what they have left.

    Attributes:
        patterns: of each record, a bit for each key that it lacks: 1 for the first, 2 for the second, ..
    """

    def __init__(self, codes: Indices, strata: Indices, alpha: float, patterns: Indices | None = None) -> None:
        """Records of different strata are never alike.

        Args:
            codes: n x m, numbers of the values from 0 on; -1: missing.
            strata: n.
            alpha: what a record counts that is alike only because a value is missing, 0 to 1.
            patterns: what is missing, if it is more than the codes say.
        """
        n, m = codes.shape
        self.m, self.alpha = m, alpha
        self.patterns: Indices = (codes < 0) @ (1 << np.arange(m)) if patterns is None else patterns.copy()
        self._values, self._class = _distinct(np.column_stack([codes + 1, strata]))
        self._active = np.zeros(1 << m, np.int64)
        self._used = np.zeros(1, np.int64)
        for pattern in np.unique(self.patterns):
            self._active[self._used[0]] = pattern
            self._used[0] += 1
        self._slots = np.full(1 << m, -1, np.int32)
        self._groups = np.zeros((0, n), np.int32)
        self._starts = np.full((1 << m, 1 << m), -1, np.int32)
        self._totals = np.zeros(0, np.int32)
        self._filled = 0
        self._wanted = np.full(2, -1, np.int64)

    def groups(self, pattern: int) -> NDArray[np.int32]:
        """Numbers of the records by all keys but those of a pattern, and the stratum."""
        if self._slots[pattern] < 0:
            kept = [key for key in range(self.m) if not pattern >> key & 1]
            packed = _packed(self._values[:, [*kept, self.m]])
            number = np.unique(packed, return_inverse=True)[1].reshape(-1).astype(np.int32)
            slot = int(self._slots.max()) + 1
            if slot == len(self._groups):
                self._groups = np.concatenate([self._groups, np.zeros((max(8, slot), len(self._class)), np.int32)])
            self._groups[slot] = number[self._class]
            self._slots[pattern] = slot
        return np.asarray(self._groups[self._slots[pattern]])

    def counts(self, rows: Indices, added: int = 0, *, surely: bool = False) -> Counts:
        """How many records each of some is alike with, itself among them.

        Args:
            rows: which.
            added: a pattern that each of them lacks, too.
            surely: what is left whatever else is suppressed: every other record counts alpha.
        """
        found = np.zeros(len(rows))
        weight = self.alpha if surely else 1.0
        self._through(lambda begin, _: int(_counts(rows, begin, added, weight, found, *self._arrays)), len(rows))
        return found

    def suppress_one_each(self, rows: Indices, keys: Indices, check: Check = lambda done, total: None) -> None:
        """Of each record in turn, suppress the first of the keys that lets it be alike with more; or else the first.

        Args:
            rows: in the order in which they have their turn.
            keys: in the order in which they are tried.
        """
        self._through(lambda begin, end: int(_one_each(rows, begin, end, keys, *self._arrays)), len(rows), check)

    def reduce(self, rows: Indices, relying: Indices, smaller: NDArray[np.int64], k: int, begun: Indices) -> None:
        """Let records lack less, where all have enough left that need what others lack.

        Args:
            rows: that lack more than one key, in turn.
            relying: those that may be alike with too few, if another one lacks less.
            smaller: patterns that are tried for each, in this order, as long as they have fewer keys.
            k: what each of them must be alike with.
            begun: what each record lacked at first.
        """
        known = np.concatenate([relying, np.zeros(len(rows), np.int64)])
        number = np.array([len(relying)])
        self._through(
            lambda begin, _: int(_reduce(rows, begin, known, number, smaller, k - SLACK, begun, *self._arrays)),
            len(rows),
        )

    def move(self, rows: Indices, patterns: Indices) -> None:
        """Give records other patterns."""
        _moved(rows, patterns, *self._arrays)

    @property
    def _arrays(self) -> tuple[object, ...]:
        return (self.alpha, self.patterns, self._active, self._used, self._slots, self._groups, self._starts,
                self._totals, self._wanted)  # fmt: skip

    def _through(self, work: Callable[[int, int], int], total: int, check: Check = lambda done, total: None) -> None:
        """Go through all records, with the tables that the work asks for on its way."""
        begin = 0
        while begin < total:
            begin = work(begin, min(begin + _AT_ONCE, total))
            if self._wanted[0] >= 0:
                self._build(int(self._wanted[0]), int(self._wanted[1]))
                self._wanted[:] = -1
            else:
                check(begin, total)

    def _build(self, pattern: int, union: int) -> None:
        groups = self.groups(union)
        table = np.bincount(groups[self.patterns == pattern], minlength=int(groups.max(initial=-1)) + 1)
        end = self._filled + len(table)
        if end > len(self._totals):
            self._totals = np.concatenate([self._totals, np.zeros(max(end, 1024), np.int32)])
        self._totals[self._filled : end] = table
        self._starts[pattern, union] = self._filled
        self._filled = end


def lacking(patterns: Indices) -> Indices:
    """How many keys each pattern has.

    >>> lacking(np.array([0, 4, 5])).tolist()
    [0, 1, 2]
    """
    return np.asarray((patterns[:, None] >> np.arange(MOST_KEYS) & 1).sum(axis=1), np.int64)


def _distinct(columns: Indices) -> tuple[Indices, Indices]:
    """The different lines of a matrix of numbers from 0 on, and which of them each line is."""
    _, first, number = np.unique(_packed(columns), return_index=True, return_inverse=True)
    return columns[first], number.reshape(-1)


def _packed(columns: Indices) -> Indices:
    """One number for each line; the same for equal lines only."""
    packed, range_ = np.zeros(len(columns), np.int64), 1
    for column in columns.T:
        size = int(column.max(initial=0)) + 1
        if range_ > (1 << 62) // size:
            packed = np.unique(packed, return_inverse=True)[1].reshape(-1)
            range_ = int(packed.max(initial=0)) + 1
        packed, range_ = packed * size + column, range_ * size
    return packed


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    row, trial, weight,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    """What a record would count with a pattern; -1: a table has to be built first."""
    own, same, other = patterns[row], 0, 0
    for place in range(used[0]):
        pattern = active[place]
        union = trial | pattern
        if slots[union] < 0 or starts[pattern, union] < 0:
            wanted[0], wanted[1] = pattern, union
            return -1.0
        found = totals[starts[pattern, union] + groups[slots[union], row]]
        if pattern == own:
            found -= 1
        if pattern == trial:
            same += found
        else:
            other += found
    return 1.0 + weight * same + alpha * other


@njit(cache=True, nogil=True)
def _move(  # type: ignore[no-untyped-def]
    row, to,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    own = patterns[row]
    known = False
    for place in range(used[0]):
        known = known or active[place] == to
    if not known:
        active[used[0]] = to
        used[0] += 1
    for union in range(len(slots)):
        if starts[own, union] >= 0:
            totals[starts[own, union] + groups[slots[union], row]] -= 1
        if starts[to, union] >= 0:
            totals[starts[to, union] + groups[slots[union], row]] += 1
    patterns[row] = to


@njit(cache=True, nogil=True)
def _moved(  # type: ignore[no-untyped-def]
    rows, to,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    for place in range(len(rows)):
        _move(rows[place], to[place], alpha, patterns, active, used, slots, groups, starts, totals, wanted)


@njit(cache=True, nogil=True)
def _counts(  # type: ignore[no-untyped-def]
    rows, begin, added, weight, found,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    for place in range(begin, len(rows)):
        row = rows[place]
        count = _count(row, patterns[row] | added, weight, alpha, patterns, active, used, slots, groups, starts,
                       totals, wanted)  # fmt: skip
        if count < 0.0:
            return place
        found[place] = count
    return len(rows)


@njit(cache=True, nogil=True)
def _one_each(  # type: ignore[no-untyped-def]
    rows, begin, end, keys,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    for place in range(begin, end):
        row = rows[place]
        own = patterns[row]
        now = _count(row, own, 1.0, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
        if now < 0.0:
            return place
        chosen = own
        for key in keys:
            trial = own | (1 << key)
            if trial == own:
                continue
            then = _count(row, trial, 1.0, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
            if then < 0.0:
                return place
            if then > now + SLACK:
                chosen = trial
                break
            if chosen == own:
                chosen = trial  # none lets it be alike with more, so far
        if chosen != own:
            _move(row, chosen, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
    return end


@njit(cache=True, nogil=True)
def _bits(pattern):  # type: ignore[no-untyped-def]
    number = 0
    while pattern:
        number += pattern & 1
        pattern >>= 1
    return number


@njit(cache=True, nogil=True)
def _reduce(  # type: ignore[no-untyped-def]
    rows, begin, known, number, smaller, least, begun,
    alpha, patterns, active, used, slots, groups, starts, totals, wanted,
):  # fmt: skip
    for place in range(begin, len(rows)):
        row = rows[place]
        own = patterns[row]
        for added in smaller:
            trial = begun[row] | added
            if begun[row] & added or _bits(trial) >= _bits(own):
                continue
            then = _count(row, trial, 1.0, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
            if then < 0.0:
                return place
            if then < least:
                continue
            _move(row, trial, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
            fits = True
            for other in range(number[0]):
                one = known[other]
                left = _count(one, patterns[one], 1.0, alpha, patterns, active, used, slots, groups, starts, totals,
                              wanted)  # fmt: skip
                if left < least:
                    fits = False
                    break
            if fits:
                known[number[0]] = row
                number[0] += 1
                break
            _move(row, own, alpha, patterns, active, used, slots, groups, starts, totals, wanted)
            if wanted[0] >= 0:
                return place
    return len(rows)
