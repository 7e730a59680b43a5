"""Better groups by solving small parts again: the groups around each group, with all that their records could form.

Groups that were chosen among few columns, or within pieces, can be improved where their records could have been put
together otherwise. A neighbourhood is a group and the groups with the nearest means, as many records as all their
possible groups can be looked at of. Its best groups are found by `best_partition`, and never worse than those that are
there. Groups that are new have neighbourhoods of their own; it ends when none of all is improved.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.microaggregation import squared_error
from sdcduck.methods.masking.partitions import best_partition, possible_groups

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_MOST_GROUPS = 60_000  # possible ones, of one neighbourhood
_TOLERANCE = 1e-9  # an improvement, in squared standard deviations


def improve(
    points: Matrix, k: int, groups: Indices, *, over: float = np.inf,
    check: Callable[[int, int], None] = lambda done, total: None,
) -> Indices:  # fmt: skip
    """Groups of at least k records between which no neighbourhood can be improved.

    Args:
        points: n x p, finite.
        groups: n, numbers from 0 on, each of at least k: the answer is no worse.
        over: when to stop, on the clock of `time.monotonic`.
        check: called with 0 and 0 from time to time.

    >>> points = np.array([[0.0, 0], [1, 0], [0, 1], [10, 10], [11, 10], [10, 11], [5, 5], [6, 5]])
    >>> improve(points, 3, np.array([0, 1, 0, 1, 0, 1, 0, 1])).tolist()
    [0, 0, 0, 1, 1, 1, 0, 0]
    """
    most = _most_records(len(points), k)
    members = [np.flatnonzero(groups == one) for one in range(int(groups.max(initial=-1)) + 1)]
    means = np.array([points[rows].mean(axis=0) for rows in members])
    there = np.ones(len(members), np.bool_)
    waiting, seen = deque(range(len(members))), set()
    while waiting and time.monotonic() < over:
        check(0, 0)
        one = waiting.popleft()
        if not there[one]:
            continue
        around = _around(one, members, means, there, most)
        if len(around) < 2 or frozenset(around) in seen:
            continue
        seen.add(frozenset(around))
        rows = np.concatenate([members[other] for other in around])
        known = np.repeat(np.arange(len(around)), [len(members[other]) for other in around])
        found = best_partition(points[rows], k, known, check=check).groups
        if squared_error(points[rows], found) >= squared_error(points[rows], known) - _TOLERANCE:
            continue
        there[around] = False
        new = [rows[found == group] for group in range(int(found.max()) + 1)]
        waiting.extend(range(len(members), len(members) + len(new)))
        members += new
        means = np.concatenate([means, [points[some].mean(axis=0) for some in new]])
        there = np.append(there, np.ones(len(new), np.bool_))
    answer = np.empty(len(points), np.int64)
    left = [members[one] for one in np.flatnonzero(there)]
    for group, rows in enumerate(sorted(left, key=lambda rows: int(rows.min()))):
        answer[rows] = group
    return answer


def _most_records(n: int, k: int) -> int:
    """Of how many records all possible groups can be looked at."""
    most = 2 * k
    while most < n and possible_groups(most + 1, k) <= _MOST_GROUPS:
        most += 1
    return most


def _around(one: int, members: list[Indices], means: Matrix, there: NDArray[np.bool_], most: int) -> list[int]:
    """A group and those with the nearest means, with so many records together."""
    others = np.flatnonzero(there)
    near = others[np.argsort(((means[others] - means[one]) ** 2).sum(axis=1), kind="stable")]
    sizes = np.cumsum([len(members[other]) for other in near[: most + 1]])
    return [int(other) for other in near[: int((sizes <= most).sum())]]
