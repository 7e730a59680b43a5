"""Integrally private clusters: centres that several data sets without a common record would all have given.

Torra (2022), "Towards integrally private clustering: overlapping clusters for high privacy guarantees", PSD. Each of c
clusters is cut into kappa parts with nearly the same centre and size; one part of each cluster makes a data set, a
generator. Nothing proves that clustering it gives the same centres, so that every generator is clustered again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.masking.nearest_groups import mdav
from sdcduck.methods.numerics import scipy
from sdcduck.methods.synthesis.draws import random_bits

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Check = Callable[[int, int], None]

INITS = ("kmeans", "mdav")
"""What k-means begins with: many random starts, of which the best counts, or the groups of MDAV."""
_STARTS, _LARGE = 50, 10_000  # random starts; fewer, for more records than these
_ALL_PARTNERS, _PARTNERS = 4096, 512  # records each of which is tried with each; of more: blocks of so many
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Clustering:
    """The algorithm whose result is published.

    Attributes:
        c: clusters.
        init: one of `INITS`.
        seed: of the random starts.
    """

    c: int
    init: str
    seed: int

    def labels(self, points: Matrix, check: Check = lambda done, total: None) -> Indices:
        """The cluster of each record, from nothing: k-means at a fixed point; clusters in the order of their centres.

        Raises:
            ValueError: fewer than c different records.
        """
        if len(np.unique(points, axis=0)) < self.c:
            raise ValueError("there are fewer different records than clusters")
        points = np.ascontiguousarray(points)
        if self.init == "mdav":
            groups = mdav(points, max(1, len(points) // self.c), check)
            return self.settled(points, centers_of(points, np.minimum(groups, self.c - 1), self.c))
        chance = np.random.default_rng(self.seed % 2**64)
        starts = _STARTS if len(points) <= _LARGE else max(5, _STARTS * _LARGE // len(points))
        best, found = np.inf, np.zeros(len(points), np.int64)
        for start in range(starts):
            check(start, starts)
            labels = self.settled(points, _spread_centers(points, self.c, chance))
            error = float(((points - centers_of(points, labels, self.c)[labels]) ** 2).sum())
            if error < best - _TOLERANCE * max(1.0, error):
                best, found = error, labels
        return found

    def settled(self, points: Matrix, centers: Matrix) -> Indices:
        """The same from some centres on."""
        labels = np.full(len(points), -1, np.int64)
        _lloyd(points, centers.copy(), labels)
        order = np.lexsort(centers_of(points, labels, self.c).T[::-1])
        return np.argsort(order)[labels]


def centers_of(points: Matrix, labels: Indices, count: int) -> Matrix:
    """The means of clusters; of an empty one that of all records."""
    sizes = np.bincount(labels, minlength=count)
    sums = np.column_stack([np.bincount(labels, column, minlength=count) for column in points.T])
    return np.asarray(np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], points.mean(axis=0)))


def _spread_centers(points: Matrix, c: int, chance: np.random.Generator) -> Matrix:
    """Random records, each with a chance in proportion to its squared distance from those before (k-means++)."""
    chosen = [int(chance.random() * len(points))]
    apart = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < c:
        steps = np.cumsum(apart)
        place = int(np.searchsorted(steps, chance.random() * steps[-1], side="right"))
        chosen.append(min(place, int(np.flatnonzero(apart)[-1])))
        apart = np.minimum(apart, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen]


@njit(cache=True, nogil=True)
def _lloyd(points: Matrix, centers: Matrix, labels: Indices) -> None:
    """Nearest centres and means in turn until no record changes; an empty one gets the record farthest from its own."""
    n, d = points.shape
    c = len(centers)
    apart = np.empty(n)
    for _ in range(10 * n + 100):
        changed = False
        for row in range(n):
            best, found = np.inf, 0
            for cluster in range(c):
                distance = 0.0
                for column in range(d):
                    step = points[row, column] - centers[cluster, column]
                    distance += step * step
                if distance < best:
                    best, found = distance, cluster
            apart[row] = best
            changed = changed or labels[row] != found
            labels[row] = found
        sizes = np.zeros(c, np.int64)
        for row in range(n):
            sizes[labels[row]] += 1
        for cluster in range(c):
            if sizes[cluster] == 0:
                far = int(apart.argmax())
                sizes[labels[far]] -= 1
                labels[far], apart[far] = cluster, 0.0
                sizes[cluster] = 1
                changed = True
        if not changed:
            return
        centers[:] = 0.0
        for row in range(n):
            centers[labels[row]] += points[row]
        for cluster in range(c):
            centers[cluster] /= max(sizes[cluster], 1)


@dataclass(frozen=True)
class Parts:
    """Clusters cut into parts.

    Attributes:
        macro, micro: of each record, from 0 on.
        difference: the largest difference between sizes of parts of a cluster.
        delta: the largest squared distance between centres of parts of a cluster.
        objective: the squared distances of records to the centres of their parts, added up.
        smallest: records of the smallest part of each cluster.
        deltas, differences: of each cluster.
    """

    macro: Indices
    micro: Indices
    objective: float
    smallest: Indices
    deltas: Matrix
    differences: Indices

    @property
    def delta(self) -> float:
        return float(self.deltas.max())

    @property
    def difference(self) -> int:
        return int(self.differences.max())


def cut_into_parts(
    points: Matrix, macro: Indices, kappa: int, keys: NDArray[np.uint64], numbers: Indices, *, seed: int,
    restarts: int, tolerance: float, check: Check = lambda done, total: None,
) -> Parts:  # fmt: skip
    """Cut each cluster into kappa parts whose sizes differ by at most one and whose centres hardly do.

    Args:
        keys, numbers: what a record is known by; chance depends on it, the seed and the restart.
        restarts: how many random beginnings of a cluster are tried, until centres are within `tolerance`.
        tolerance: of the squared distance of two centres.

    Raises:
        ValueError: a cluster has fewer than kappa records.
    """
    count = int(macro.max()) + 1
    if np.bincount(macro).min() < kappa:
        raise ValueError("a cluster has fewer records than parts")
    micro = np.zeros(len(points), np.int64)
    for cluster in range(count):
        rows = np.flatnonzero(macro == cluster)
        centered = np.ascontiguousarray(points[rows] - points[rows].mean(axis=0))
        best = np.inf
        for restart in range(restarts):
            check(cluster * restarts + restart, count * restarts)
            ones = np.ones(len(rows), np.int64)
            bits = random_bits(keys[rows], numbers[rows], restart * ones, seed * ones)
            order = np.lexsort((np.arange(len(rows)), bits))
            parts = _exchanged(centered[order], np.arange(len(rows)) % kappa, kappa, check)
            delta = _largest_gap(centers_of(centered[order], parts, kappa))
            if delta < best:
                best, micro[rows[order]] = delta, parts
            if best <= tolerance:
                break
    return measured(points, macro, micro, kappa)


def measured(points: Matrix, macro: Indices, micro: Indices, kappa: int) -> Parts:
    """What has been reached by a cut."""
    count = int(macro.max()) + 1
    sizes = np.bincount(macro * kappa + micro, minlength=count * kappa).reshape(count, kappa)
    centers = centers_of(points, macro * kappa + micro, count * kappa)
    error = float(((points - centers[macro * kappa + micro]) ** 2).sum())
    deltas = np.array([_largest_gap(one) for one in centers.reshape(count, kappa, -1)])
    return Parts(macro, micro, error, sizes.min(axis=1), deltas, np.ptp(sizes, axis=1))


def _largest_gap(centers: Matrix) -> float:
    """The largest squared distance of two centres."""
    return float(((centers[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).max())


def _exchanged(points: Matrix, parts: Indices, kappa: int, check: Check) -> Indices:
    """Parts of the same sizes, whose centres no exchange of two records of a block brings nearer to the common one."""
    parts, points = parts.astype(np.int64), np.ascontiguousarray(points)
    block = len(points) if len(points) <= _ALL_PARTNERS else _PARTNERS
    while _exchange_once(points, parts, kappa, block):
        check(0, 0)
    return parts


@njit(cache=True, nogil=True)
def _exchange_once(points: Matrix, parts: Indices, kappa: int, block: int) -> bool:
    """Go through all records, and exchange each with the best one of another part, if that helps; whether any did.

    What falls is the sum over parts of the squared sum of their centred records over their number.
    """
    n, d = points.shape
    sums, sizes = np.zeros((kappa, d)), np.zeros(kappa)
    for row in range(n):
        sums[parts[row]] += points[row]
        sizes[parts[row]] += 1
    found = False
    for row in range(n):
        a = parts[row]
        best, partner = -_TOLERANCE, -1
        begin = row // block * block
        for other in range(begin, min(begin + block, n)):
            b = parts[other]
            if a == b:
                continue
            along_a, along_b, length = 0.0, 0.0, 0.0
            for column in range(d):
                step = points[other, column] - points[row, column]
                along_a += sums[a, column] * step
                along_b += sums[b, column] * step
                length += step * step
            change = (2 * along_a + length) / sizes[a] + (length - 2 * along_b) / sizes[b]
            if change < best:
                best, partner = change, other
        if partner >= 0:
            b = parts[partner]
            for column in range(d):
                step = points[partner, column] - points[row, column]
                sums[a, column] += step
                sums[b, column] -= step
            parts[row], parts[partner] = b, a
            found = True
    return found


@dataclass(frozen=True)
class Generator:
    """What clustering one of the generators gives.

    Attributes:
        records: how many it has.
        changes: records that are in another cluster than in the whole.
        shift: the largest distance of a centre from that of the whole.
        passes: whether its rounded centres are those of the whole.
    """

    records: int
    changes: int
    shift: float
    passes: bool


def generator(
    points: Matrix, values: Matrix, parts: Parts, number: int, clustering: Clustering, grid: Matrix
) -> Generator:
    """Cluster a generator, from the centres of the whole on and from nothing; both count, the worse one is told.

    Args:
        points: n x p, as they were clustered.
        values: n x p, as centres are published.
        number: which part of each cluster it is made of.
        grid: p, to multiples of what published centres are rounded; 0: not at all.
    """
    c = clustering.c
    whole, published = centers_of(points, parts.macro, c), rounded(centers_of(values, parts.macro, c), grid)
    rows = parts.micro == number
    some, known = np.ascontiguousarray(points[rows]), parts.macro[rows]
    changes, shift, passes = 0, 0.0, True
    for anew in (False, True):
        try:
            labels = clustering.labels(some) if anew else clustering.settled(some, whole)
        except ValueError:
            return Generator(len(some), len(some), np.inf, False)
        centers = centers_of(some, labels, c)
        apart = ((whole[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        order = scipy.optimize.linear_sum_assignment(apart)[1]
        changes = max(changes, int((np.argsort(order)[labels] != known).sum()))
        shift = max(shift, float(np.sqrt(apart[np.arange(c), order].max())))
        passes = passes and bool((rounded(centers_of(values[rows], labels, c)[order], grid) == published).all())
    return Generator(len(some), changes, shift, passes)


def rounded(centers: Matrix, grid: Matrix) -> Matrix:
    """Centres as multiples of the steps of a grid.

    >>> rounded(np.array([[0.26, 7.0]]), np.array([0.25, 0.0])).tolist()
    [[0.25, 7.0]]
    """
    steps = np.where(grid > 0, grid, 1.0)
    return np.where(grid > 0, np.rint(centers / steps) * steps, centers) + 0.0
