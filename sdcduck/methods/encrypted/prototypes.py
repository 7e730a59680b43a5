"""A few records, or means of records, that stand for many: the reference rows of a vote of nearest neighbours.

Each class gets prototypes by its share of the records, at least one. Those of a class are the centres of its clusters
(k-means, begun by D^2 sampling), or the records nearest to these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_MOST_ROUNDS = 50


@dataclass(frozen=True)
class Prototypes:
    """What stands for the records.

    Attributes:
        centres: a row for each prototype: the mean of its records.
        nearest: the record that is nearest to it, among its own; of equal ones the first.
        classes: of the prototypes.
        records: how many each stands for.
    """

    centres: Floats
    nearest: Indices
    classes: Indices
    records: Indices


def evenly_spaced(records: int, n: int) -> Indices:
    """Places from the first to the last record.

    >>> evenly_spaced(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.round(np.linspace(0, records - 1, n)).astype(np.int64)


def shares(sizes: Indices, n: int, least: int) -> Indices:
    """How many prototypes each class gets: by its records, one at least, and none for fewer than `least` records.

    >>> shares(np.array([50, 30, 3]), 8, 1).tolist(), shares(np.array([2, 90]), 8, 2).tolist()
    ([4, 3, 1], [1, 7])
    """
    most = sizes // least
    given = np.ones(len(sizes), np.int64)
    for _ in range(n - len(sizes)):
        # The next one goes where a prototype stands for most records (Jefferson, with one for each before).
        waiting = np.where(given < most, sizes / given, 0.0)
        if not waiting.any():
            break
        given[int(waiting.argmax())] += 1
    return given


@njit(cache=True, nogil=True)
def _assign(points, centres, owner, distance):  # type: ignore[no-untyped-def]
    """The nearest centre of each point, the first of equal ones, and how many points changed theirs."""
    changed = 0
    for i in range(len(points)):
        best, at = np.inf, 0
        for j in range(len(centres)):
            total = 0.0
            for c in range(points.shape[1]):
                total += (points[i, c] - centres[j, c]) ** 2
            if total < best:
                best, at = total, j
        changed += at != owner[i]
        owner[i], distance[i] = at, best
    return changed


def _means(points: Floats, owner: Indices, count: int) -> tuple[Floats, Indices]:
    sizes = np.bincount(owner, minlength=count)
    sums = np.stack([np.bincount(owner, column, count) for column in points.T], axis=1)
    return sums / np.maximum(sizes, 1)[:, None], sizes


def _begin(points: Floats, count: int, chance: np.random.Generator) -> Floats:
    """Centres to begin with: records, each by its squared distance from those before."""
    at = int(chance.integers(len(points)))
    distance = ((points - points[at]) ** 2).sum(axis=1)
    chosen = [at]
    while len(chosen) < count and distance.any():
        at = int(np.searchsorted(np.cumsum(distance), chance.random() * distance.sum(), side="right"))
        at = min(at, len(points) - 1)
        chosen.append(at)
        distance = np.minimum(distance, ((points - points[at]) ** 2).sum(axis=1))
    return points[chosen]


def clusters(points: Floats, count: int, least: int, chance: np.random.Generator) -> tuple[Floats, Indices]:
    """Centres of at most so many clusters, none of fewer records than `least`, and the cluster of each record."""
    centres = _begin(points, count, chance)
    owner, distance = np.full(len(points), -1, np.int64), np.empty(len(points))
    while True:
        for _ in range(_MOST_ROUNDS):
            if not _assign(points, centres, owner, distance):
                break
            means, sizes = _means(points, owner, len(centres))
            centres = means[sizes > 0]
        means, sizes = _means(points, owner, len(centres))
        if len(sizes) == 1 or sizes.min() >= least:
            return means, owner
        # The smallest cluster goes, and its records to others.
        centres = np.delete(centres, sizes.argmin(), axis=0)


def prototypes(
    points: Floats, classes: Indices, count: int, n: int, least: int, seed: int,
    check: Callable[[int, int], None] | None = None,
) -> Prototypes:  # fmt: skip
    """At most n prototypes.

    Args:
        points: numbers of about the same range, a row for each record.
        classes: of the records, from 0 on; each has `least` records or more.
        least: records of a prototype.
        seed: of the centres that are begun with.
    """
    parts = shares(np.bincount(classes, minlength=count), n, least)
    found: list[tuple[Floats, Indices, Indices, Indices]] = []
    for one, part in enumerate(parts):
        places = np.flatnonzero(classes == one)
        mine = np.ascontiguousarray(points[places])
        centres, owner = clusters(mine, int(part), least, np.random.default_rng([seed, one]))
        distance = ((mine - centres[owner]) ** 2).sum(axis=1)
        order = np.lexsort((distance, owner))
        first = np.searchsorted(owner[order], np.arange(len(centres)))
        found.append((centres, places[order[first]], np.full(len(centres), one), np.bincount(owner)))
        if check is not None:
            check(one + 1, count)
    centres, nearest, its, sizes = (np.concatenate(part) for part in zip(*found, strict=True))
    return Prototypes(centres, nearest, its, sizes)
