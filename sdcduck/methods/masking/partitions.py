"""The best groups of few records: set partitioning by column generation, with a lower bound.

Castro, Gentile and Spagnolo-Arrizabalaga (2022), "An Optimization-Based Decomposition Heuristic for the
Microaggregation Problem", section 4. A column is a possible group of k to 2k - 1 records, and costs its sum of squared
errors; of the columns some are chosen, so that each record is in one. The relaxation of that, where a group may be
chosen in part, is solved with few columns; those are added whose cost is below the prices of their records, until there
are none. Where all possible groups have been looked at, its value is a lower bound; the optimum is among the columns
that are dearer than their records by no more than the best known partition is than the bound.

Of more records, the columns are groups of neighbours and, with those added, such as `pricing` finds: of five and more
members the neighbours of which all groups can be looked at are too few.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import highspy
import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, quiet_highs
from sdcduck.methods.masking.microaggregation import squared_error
from sdcduck.methods.masking.pricing import cheap_groups

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_COLUMNS = 1_000_000
"""Possible groups that are looked at."""
_MOST_NEAR = 100_000  # of neighbours, where others are found by their prices
_MOST_PRICED = 30_000  # k times the columns that whole ones are chosen of then: with more, the search may not end
_MOST_CLOSE = 50_000  # the same, of columns that are no dearer than the best known groups allow
_ADDED = 1000  # columns in a round
_MOST_WHOLE = 5_000  # columns that are added at the end
_NODES = 30  # of the search for whole columns: a limit that, unlike one of time, gives the same answer again
_TOLERANCE = 1e-7  # of reduced costs, in squared standard deviations


@dataclass(frozen=True)
class Partition:
    """Groups, and what is known of better ones.

    Attributes:
        groups: n, numbers from 0 on.
        bound: no groups have a smaller sum of squared errors; None: unknown.
    """

    groups: Indices
    bound: float | None


def possible_groups(n: int, k: int) -> int:
    """How many groups of k to 2k - 1 of n records there are.

    >>> possible_groups(1000, 3)
    8291874541950
    """
    return sum(comb(n, size) for size in range(k, min(2 * k - 1, n) + 1))


def best_partition(
    points: Matrix, k: int, known: Indices, *, seconds: float | None = None, neighbours: int | None = None,
    check: Callable[[int, int], None] = lambda done, total: None,
) -> Partition:  # fmt: skip
    """Groups of at least k records with a small sum of squared errors; the smallest, where there are few records.

    Args:
        points: n x p, finite.
        k: at least 2.
        known: n, the groups to begin with, each of at least k: the answer is no worse.
        seconds: after which the best that is known is the answer, without a bound; it is then not reproducible.
        neighbours: groups are some of so many records, one of them and those nearest to it; None: all possible groups
            where there are at most `MOST_COLUMNS`, and else neighbours and what `pricing` finds.
        check: called with 0 and 0 from time to time.
    """
    count = len(points)
    if count < 2 * k:
        together = np.zeros(count, np.int64)
        return Partition(together, squared_error(points, together))
    over = np.inf if seconds is None else time.monotonic() + seconds
    whole = neighbours is None and possible_groups(count, k) <= MOST_COLUMNS
    columns = _columns_of(points, k, None if whole else neighbours or _neighbours(count, k), known)
    master = _Master(count)
    first = len(columns.costs) - int(known.max()) - 1  # the known groups are the last columns
    master.add(columns, np.arange(first, len(columns.costs)))
    priced = not whole and neighbours is None
    while True:
        check(0, 0)
        value, prices = master.relaxed()
        reduced = columns.reduced(prices)
        new = np.flatnonzero(reduced < -_TOLERANCE)
        if priced and not len(new):
            columns, new = columns.with_cheap(points, k, prices, master.centres(points))
            reduced = columns.reduced(prices)
        if len(new) and time.monotonic() > over:
            return Partition(known, None)
        if not master.add(columns, new[np.argsort(reduced[new], kind="stable")[:_ADDED]]):
            break
    if priced:
        best = _better(points, known, master.whole(over, reduced, _MOST_PRICED // k))
        close = int((reduced[master.added] <= squared_error(points, best) - value + _TOLERANCE).sum())
        if _MOST_PRICED < close * k <= _MOST_CLOSE:
            best = _better(points, best, master.whole(over, reduced, close))
        return Partition(best, None)
    best = _better(points, known, master.whole(over))
    near = np.flatnonzero(reduced <= squared_error(points, best) - value + _TOLERANCE)
    check(0, 0)
    if len(near) <= _MOST_WHOLE and master.add(columns, near):
        best = _better(points, best, master.whole(over))
    return Partition(best, value if whole else None)


def _better(points: Matrix, known: Indices, found: Indices | None) -> Indices:
    """The groups found, if they are better than those that were known."""
    if found is None or squared_error(points, found) >= squared_error(points, known) - _TOLERANCE:
        return known
    return found


@dataclass(frozen=True)
class _Columns:
    """Possible groups.

    Attributes:
        members: c x (most members), numbers of records; -1 fills the rest of a line.
        costs: c, sums of squared errors.
    """

    members: NDArray[np.int32]
    costs: Matrix

    def reduced(self, prices: Matrix) -> Matrix:
        """How much more each costs than its records are worth."""
        padded = np.append(prices, 0.0)
        worth = np.zeros(len(self.costs))
        for line in self.members.T:
            worth += padded[line]
        return np.asarray(self.costs - worth)

    def with_cheap(self, points: Matrix, k: int, prices: Matrix, centres: Matrix) -> tuple[_Columns, Indices]:
        """With groups that cost less than their records are worth; the numbers of those that are new."""
        found = np.unique(cheap_groups(points, prices, k, centres), axis=0)
        found = np.pad(found, ((0, 0), (0, self.members.shape[1] - found.shape[1])), constant_values=-1)
        several = _Columns(found, _costs(np.ascontiguousarray(points), np.ascontiguousarray(found)))
        cheap = np.flatnonzero(several.reduced(prices) < -_TOLERANCE)
        members = np.concatenate([self.members, found[cheap]])
        new = np.arange(len(self.costs), len(members))
        return _Columns(members, np.concatenate([self.costs, several.costs[cheap]])), new


def _columns_of(points: Matrix, k: int, neighbours: int | None, known: Indices) -> _Columns:
    """Possible groups, each once, and the known ones behind them."""
    count, most = len(points), max(2 * k - 1, int(np.bincount(known).max()))
    sizes = range(k, min(2 * k - 1, neighbours or count) + 1)
    if neighbours is None:
        parts = [_filled(_subsets(count, size), most) for size in sizes]
    else:
        near = np.argsort(((points[:, None] - points[None]) ** 2).sum(axis=2), axis=1, kind="stable")
        # A record is among its own neighbours, but need not be the first of those that are equal to it.
        others = near[near != np.arange(count)[:, None]].reshape(count, -1)[:, : neighbours - 1]
        parts = []
        for size in sizes:
            some = others[:, _subsets(others.shape[1], size - 1)].reshape(-1, size - 1)
            own = np.repeat(np.arange(count), len(some) // count)
            parts.append(_filled(_each_once(np.sort(np.column_stack([own, some]), axis=1), count), most))
    parts.append(np.stack([_filled(np.flatnonzero(known == one)[None], most)[0] for one in range(known.max() + 1)]))
    members = np.ascontiguousarray(np.concatenate(parts))
    return _Columns(members, _costs(np.ascontiguousarray(points), members))


def _neighbours(n: int, k: int) -> int:
    """The most neighbours that give no more groups than `_MOST_NEAR`, and at least one more than k."""
    for neighbours in range(min(3 * k + 8, n), k + 1, -1):
        if n * sum(comb(neighbours - 1, size - 1) for size in range(k, 2 * k)) <= _MOST_NEAR:
            return neighbours
    return k + 1


def _subsets(n: int, size: int) -> NDArray[np.int32]:
    """All sets of so many of n numbers, a line each, in lexicographic order."""
    return _fill_subsets(n, size, np.empty((comb(n, size), size), np.int32))


def _filled(members: NDArray[Any], most: int) -> NDArray[np.int32]:
    """Lines of records, with -1 up to the most members."""
    return np.pad(members, ((0, 0), (0, most - members.shape[1])), constant_values=-1).astype(np.int32)


def _each_once(members: NDArray[Any], n: int) -> NDArray[Any]:
    """Different lines of sorted numbers below n."""
    order = np.lexsort(members.T[::-1])
    ordered = members[order]
    new = np.ones(len(ordered), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[new]


@njit(cache=True, nogil=True)
def _fill_subsets(n: int, size: int, found: NDArray[np.int32]) -> NDArray[np.int32]:
    for line in range(len(found)):
        if line == 0:
            for place in range(size):
                found[0, place] = place
            continue
        last = size - 1
        while found[line - 1, last] == n - size + last:
            last -= 1
        for place in range(size):
            if place < last:
                found[line, place] = found[line - 1, place]
            else:
                found[line, place] = found[line - 1, last] + 1 + place - last
    return found


@njit(cache=True, nogil=True)
def _costs(points: Matrix, members: NDArray[np.int32]) -> Matrix:
    """The sum of squared errors of each group."""
    costs, mean = np.zeros(len(members)), np.empty(points.shape[1])
    for line in range(len(members)):
        mean[:] = 0.0
        size = 0
        while size < members.shape[1] and members[line, size] >= 0:
            mean += points[members[line, size]]
            size += 1
        mean /= size
        for place in range(size):
            for column in range(points.shape[1]):
                step = points[members[line, place], column] - mean[column]
                costs[line] += step * step
    return costs


class _Master:
    """The linear programme over those of the columns that have been added.

    Attributes:
        added: their numbers.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._columns = _Columns(np.zeros((0, 0), np.int32), np.zeros(0))
        self.added = np.zeros(0, np.int64)
        self._highs = quiet_highs()
        empty = np.zeros(0)
        self._highs.addRows(
            count, np.ones(count), np.ones(count), 0, empty.astype(np.int32), empty.astype(np.int32), empty
        )

    def add(self, columns: _Columns, some: Indices) -> int:
        """Take in some of the columns, those that are not there yet; how many these are.

        Args:
            columns: those of the last call, and perhaps more behind them.
        """
        self._columns = columns
        new = some[~np.isin(some, self.added)]
        members = self._columns.members[new]
        sizes = (members >= 0).sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32) if len(new) else np.zeros(0, np.int32)
        self._highs.addCols(
            len(new), self._columns.costs[new], np.zeros(len(new)), np.full(len(new), highspy.kHighsInf),
            int(sizes.sum()), starts, members[members >= 0], np.ones(int(sizes.sum())),
        )  # fmt: skip
        self.added = np.concatenate([self.added, new])
        return len(new)

    def relaxed(self) -> tuple[float, Matrix]:
        """The optimum where a column may be taken in part, and the price of each record."""
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # the known groups are a solution
            raise Unsolved("HiGHS did not solve the relaxation of a set partitioning problem")
        return self._highs.getObjectiveValue(), np.array(self._highs.getSolution().row_dual)

    def centres(self, points: Matrix) -> Matrix:
        """The means of the groups of which some part is taken, and the records."""
        taken = self.added[np.array(self._highs.getSolution().col_value) > _TOLERANCE]
        members = self._columns.members[taken]
        inside = (members >= 0)[:, :, None]
        means = np.where(inside, points[members], 0.0).sum(axis=1) / inside.sum(axis=1)
        return np.concatenate([points, means])

    def whole(self, over: float, reduced: Matrix | None = None, most: int = 0) -> Indices | None:
        """The best groups of the columns that have been added; None where there was no time to find any, or are none.

        Args:
            over: when to stop looking.
            reduced: what each of all columns costs more than its records are worth; None: they are chosen of all.
            most: they are chosen of so many of the cheapest.
        """
        highs, added = quiet_highs(), self.added
        highs.passModel(self._highs.getLp())
        if reduced is not None:
            others = np.argsort(reduced[added], kind="stable")[most:].astype(np.int32)
            highs.changeColsBounds(len(others), others, np.zeros(len(others)), np.zeros(len(others)))
        highs.changeColsIntegrality(len(added), np.arange(len(added), dtype=np.int32), np.ones(len(added), np.uint8))
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.setOptionValue("mip_max_nodes", _NODES)
        if over < np.inf:
            highs.setOptionValue("time_limit", max(1.0, over - time.monotonic()))
        highs.run()
        taken = np.array(highs.getSolution().col_value)
        if len(taken) != len(added):
            return None
        chosen = self._columns.members[added[taken > 0.5]]
        groups = np.full(self._count, -1, np.int64)
        number, place = np.nonzero(chosen >= 0)
        groups[chosen[number, place]] = number
        return groups if len(number) == self._count and (groups >= 0).all() else None
