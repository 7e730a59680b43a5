"""The best groups of few records: set partitioning by column generation, with a lower bound.

Castro, Gentile and Spagnolo-Arrizabalaga (2022), "An Optimization-Based Decomposition Heuristic for the
Microaggregation Problem", section 4. A column is a possible group of k to 2k - 1 records, and costs its sum of squared
errors; of the columns some are chosen, so that each record is in one. The relaxation of that, where a group may be
chosen in part, is solved with few columns; those are added whose cost is below the prices of their records, until there
are none. Where all possible groups have been looked at, its value is a lower bound; the optimum is among the columns
that are dearer than their records by no more than the best known partition is than the bound.

Of more records, the columns are groups of neighbours and, with those added, such as `pricing` finds: of five and more
members the neighbours of which all groups can be looked at are too few. Whole ones are then found by a dive, too: a
search among many columns may not end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.columns import TOLERANCE, columns_of, neighbours_of
from sdcduck.methods.masking.dives import dive
from sdcduck.methods.masking.masters import Master
from sdcduck.methods.masking.microaggregation import squared_error

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_COLUMNS = 1_000_000
"""Possible groups that are looked at."""
_MOST_PRICED = 30_000  # k times the columns that whole ones are chosen of then: with more, the search may not end
_MOST_CLOSE = 50_000  # the same, of columns that are no dearer than the best known groups allow
_ADDED = 1000  # columns in a round
_MOST_WHOLE = 5_000  # columns that are added at the end


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
    columns = columns_of(points, k, None if whole else neighbours or neighbours_of(count, k), known)
    master = Master(count)
    first = len(columns.costs) - int(known.max()) - 1  # the known groups are the last columns
    master.add(columns, np.arange(first, len(columns.costs)))
    priced = not whole and neighbours is None
    while True:
        check(0, 0)
        value, prices = master.relaxed()
        reduced = columns.reduced(prices)
        new = np.flatnonzero(reduced < -TOLERANCE)
        if priced and not len(new):
            columns, new = columns.with_cheap(points, k, prices, master.centres(points))
            reduced = columns.reduced(prices)
        if len(new) and time.monotonic() > over:
            return Partition(known, None)
        if not master.add(columns, new[np.argsort(reduced[new], kind="stable")[:_ADDED]]):
            break
    if priced:
        best = _better(points, known, dive(points, k, columns, master.added, over, check))
        best = _better(points, best, master.whole(over, reduced, _MOST_PRICED // k))
        close = int((reduced[master.added] <= squared_error(points, best) - value + TOLERANCE).sum())
        if _MOST_PRICED < close * k <= _MOST_CLOSE:
            best = _better(points, best, master.whole(over, reduced, close))
        return Partition(best, None)
    best = _better(points, known, master.whole(over))
    near = np.flatnonzero(reduced <= squared_error(points, best) - value + TOLERANCE)
    check(0, 0)
    if len(near) <= _MOST_WHOLE and master.add(columns, near):
        best = _better(points, best, master.whole(over))
    return Partition(best, value if whole else None)


def _better(points: Matrix, known: Indices, found: Indices | None) -> Indices:
    """The groups found, if they are better than those that were known."""
    if found is None or squared_error(points, found) >= squared_error(points, known) - TOLERANCE:
        return known
    return found
