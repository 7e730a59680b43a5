"""Whole groups by a dive: those that the relaxation takes are taken whole, and others are priced anew for the rest.

With the groups of a converged relaxation alone, whole ones may not fit together, and a search for those that do grows
without bound in the number of columns. A dive never goes back. Each step takes the groups of which the optimum has all,
or else the one of which it has most, and then lets `pricing` find groups of the records that are left, for the prices
that these have now.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.masking.columns import TOLERANCE, Columns
from sdcduck.methods.masking.masters import Master

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_ADDED = 1000  # columns in a round
_PATIENCE = 50  # rounds that do not lower the optimum
_ALL = 0.9999


def dive(
    points: Matrix, k: int, columns: Columns, added: Indices, over: float = np.inf,
    check: Callable[[int, int], None] = lambda done, total: None,
) -> Indices | None:  # fmt: skip
    """Groups of at least k records; None where there was no time, or HiGHS does not solve what is left.

    Args:
        points: n x p, finite.
        k: at least 2; n is at least 2k.
        columns: possible groups.
        added: numbers of the columns to begin with, some of which are in all records.
        over: when to stop looking.
        check: called with 0 and 0 from time to time.
    """
    spread = ((points - points.mean(axis=0)) ** 2).sum(axis=1).max()
    master = Master(len(points), alone=float(spread + columns.costs[added].max()))
    master.add(columns, added)
    groups, taken = np.full(len(points), -1, np.int64), 0
    while (groups < 0).any():
        check(0, 0)
        if time.monotonic() > over:
            return None
        try:
            columns = _priced(points, k, columns, master, np.flatnonzero(groups < 0))
        except Unsolved:
            return None
        more = _taken(columns, master, groups, taken)
        if more == taken:
            break
        taken = more
    return _joined(points, groups) if taken else None


def _priced(points: Matrix, k: int, columns: Columns, master: Master, free: Indices) -> Columns:
    """The columns with groups of free records that lower the optimum, which is known afterwards."""
    value, prices = master.relaxed()
    rounds = _PATIENCE
    while len(free) >= k and rounds:
        centres = np.concatenate([points[free], master.centres(points)[len(points) :]])
        columns, new = columns.with_cheap(points, k, prices, centres, free)
        if not len(new):
            break
        master.add(columns, new[np.argsort(columns.reduced(prices)[new], kind="stable")[:_ADDED]])
        least, (value, prices) = value, master.relaxed()
        rounds = _PATIENCE if value < least - TOLERANCE else rounds - 1
    return columns


def _taken(columns: Columns, master: Master, groups: Indices, taken: int) -> int:
    """Take what the optimum takes whole, or else the largest part; how many groups are taken then."""
    parts, first = master.parts(), taken
    for place in np.argsort(-parts, kind="stable"):
        if parts[place] <= TOLERANCE or (taken > first and parts[place] < _ALL):
            break
        members = columns.members[master.added[place]]
        members = members[members >= 0]
        if (groups[members] < 0).all():
            groups[members] = taken
            taken += 1
            master.take(int(place))
    return taken


def _joined(points: Matrix, groups: Indices) -> Indices:
    """With records that are in no group in the one whose mean is nearest."""
    inside = groups >= 0
    sizes = np.bincount(groups[inside])
    means = np.column_stack([np.bincount(groups[inside], column[inside]) for column in points.T]) / sizes[:, None]
    joined = groups.copy()
    for record in np.flatnonzero(~inside):
        joined[record] = int(((means - points[record]) ** 2).sum(axis=1).argmin())
    return joined
