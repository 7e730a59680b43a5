"""Possible groups of few records, as the columns of a set partitioning problem, and what each costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.masking.pricing import cheap_groups

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

TOLERANCE = 1e-7
"""Of reduced costs, in squared standard deviations."""
_MOST_NEAR = 100_000  # groups of neighbours, where others are found by their prices


@dataclass(frozen=True)
class Columns:
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

    def with_cheap(
        self, points: Matrix, k: int, prices: Matrix, centres: Matrix, free: Indices | None = None
    ) -> tuple[Columns, Indices]:
        """With groups that cost less than their records are worth; the numbers of those that are new.

        Args:
            points: n x p, finite.
            k: the least members.
            prices: n, what each record is worth.
            centres: c x p, that members are looked for first around.
            free: numbers of records, at least k: all members are such; None: all records are.
        """
        some = np.arange(len(points)) if free is None else free
        found = np.unique(cheap_groups(points[some], prices[some], k, centres), axis=0)
        found = np.where(found >= 0, some[found], -1).astype(np.int32)
        found = np.pad(found, ((0, 0), (0, self.members.shape[1] - found.shape[1])), constant_values=-1)
        several = Columns(found, costs_of(np.ascontiguousarray(points), np.ascontiguousarray(found)))
        cheap = np.flatnonzero(several.reduced(prices) < -TOLERANCE)
        members = np.concatenate([self.members, found[cheap]])
        new = np.arange(len(self.costs), len(members))
        return Columns(members, np.concatenate([self.costs, several.costs[cheap]])), new


def columns_of(points: Matrix, k: int, neighbours: int | None, known: Indices) -> Columns:
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
    return Columns(members, costs_of(np.ascontiguousarray(points), members))


def neighbours_of(n: int, k: int) -> int:
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
def costs_of(points: Matrix, members: NDArray[np.int32]) -> Matrix:
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
