"""Groups near the best ones for many records: a first partition, exchanges, and the best groups within pieces of it.

Castro, Gentile and Spagnolo-Arrizabalaga (2022), "An Optimization-Based Decomposition Heuristic for the
Microaggregation Problem", section 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.exchanges import exchange
from sdcduck.methods.masking.microaggregation import squared_error
from sdcduck.methods.masking.nearest_groups import mdav, v_mdav
from sdcduck.methods.masking.neighbourhoods import improve
from sdcduck.methods.masking.partitions import Partition, best_partition

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Check = Callable[[int, int], None]

GAMMAS = tuple(step / 20 for step in range(25))
"""That V-MDAV is tried with where none is given: 0 to 1.2."""
_PIECE = 40  # records that a piece has by default, or four times k


def best_v_mdav(points: Matrix, k: int, gamma: float | None = None, check: Check = lambda done, total: None) -> Indices:
    """The groups of V-MDAV; without `gamma` the best of those that `GAMMAS` give, of equally good ones the first."""
    if gamma is not None:
        return v_mdav(points, k, gamma, check)
    found = []
    for one in GAMMAS:
        check(0, 0)
        found.append(v_mdav(points, k, one))
    return _best(points, found)


def first_groups(
    points: Matrix, k: int, gamma: float | None = None, check: Check = lambda done, total: None
) -> Indices:
    """The groups of MDAV or of V-MDAV, whichever are better."""
    return _best(points, [mdav(points, k, check), best_v_mdav(points, k, gamma, check)])


def decompose(
    points: Matrix, k: int, pieces: int | None = None, *, gamma: float | None = None, seconds: float | None = None,
    exchange_first: bool = True, neighbours: int | None = None, check: Check = lambda done, total: None,
) -> Partition:  # fmt: skip
    """The best groups that are found by all of this together.

    Records in one piece, too many for all their possible groups to be looked at, are improved by neighbourhoods behind
    that: which groups can be chosen there does not depend on who is whose neighbour.

    Args:
        points: n x p, finite.
        k: at least 2.
        pieces: into how many the records are cut, whole groups at a time; None: about 40 records each, or 4 k.
        gamma: of V-MDAV; None: several are tried.
        seconds: for each piece, and once more for neighbourhoods; see `best_partition`.
        exchange_first: whether records are exchanged before the cut, too, as they are behind it.
        neighbours: of `best_partition`.
        check: called with how many records have been in a piece, and how many there are.

    Returns:
        The groups, and a lower bound where there is one piece whose possible groups were all looked at.
    """
    if len(points) < 2 * k:
        together = np.zeros(len(points), np.int64)
        return Partition(together, squared_error(points, together))
    first = first_groups(points, k, gamma, lambda done, total: check(0, 0))
    exchanged = exchange(points, first, check)[0]
    begun = exchanged if exchange_first else first
    wanted = pieces or -(-len(points) // max(_PIECE, 4 * k))
    over = np.inf if seconds is None else time.monotonic() + 2 * seconds
    pieced, groups, bound, done = np.empty(len(points), np.int64), 0, None, 0
    for rows in cut(begun, wanted):
        known = np.unique(begun[rows], return_inverse=True)[1].reshape(-1)
        part = best_partition(points[rows], k, known, seconds=seconds, neighbours=neighbours, check=check)
        pieced[rows] = groups + part.groups
        groups += int(part.groups.max()) + 1
        bound = part.bound if len(rows) == len(points) else None
        done += len(rows)
        check(done, len(points))
    found = _best(points, [first, exchanged, pieced, exchange(points, pieced, check)[0]])
    if wanted == 1 and bound is None:
        found = exchange(points, improve(points, k, found, over=over, check=check), check)[0]
    return Partition(found, bound)


def cut(groups: Indices, pieces: int) -> list[Indices]:
    """The records of each piece: groups in their order, until a piece has its part of all records.

    >>> [rows.tolist() for rows in cut(np.array([0, 2, 1, 0, 1, 2]), 2)]
    [[0, 2, 3, 4], [1, 5]]
    """
    least = max(1, round(len(groups) / pieces))
    found, piece, size = [], 0, 0
    belongs = np.empty(int(groups.max(initial=0)) + 1, np.int64)
    for group, members in enumerate(np.bincount(groups)):
        belongs[group] = piece
        size += int(members)
        if size >= least:
            piece, size = piece + 1, 0
    for number in range(piece + (size > 0)):
        found.append(np.flatnonzero(belongs[groups] == number))
    return found


def _best(points: Matrix, several: list[Indices]) -> Indices:
    """Those with the smallest sum of squared errors; of equally good ones the first."""
    return several[int(np.argmin([squared_error(points, groups) for groups in several]))]
