"""Synthetic trips, cell by cell: from the longest context that was seen, one of the k cells that most often came next.

Blanco-Justicia, Jebreel, Manjón and Domingo-Ferrer (2022) draw so from a network; here counts foretell the next cell.
Where fewer than k cells followed, shorter contexts fill up, down to one cell. There is nothing below that: a cell that
nobody ever left ends the trip, since anything else would be a jump that no trip has made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Indices = NDArray[np.int64]

_TOGETHER = 10_000  # trips between two looks at whether the statement still runs


@dataclass(frozen=True)
class Model:
    """What came after what, by contexts of 1 to `order` cells.

    Attributes:
        cells: how many cells there are; cells are numbers below.
        k: the most successors that are kept of a context.
        keys: contexts in order, those of each length behind each other; a context is the number of the one without its
            last cell, times `cells`, plus the last cell.
        lengths: where the contexts of each length begin in `keys`, and the end.
        first: where the successors of each context begin in `following`, and the end.
        following: successors, the most frequent first, of equally frequent ones the smaller number.
    """

    cells: int
    k: int
    keys: Indices
    lengths: Indices
    first: Indices
    following: Indices

    @property
    def order(self) -> int:
        """Cells of the longest context."""
        return len(self.lengths) - 1

    def top(self, prefix: list[int]) -> list[int]:
        """The cells, k at most, of which one comes next.

        >>> model = fit(np.array([0, 1, 2, 5, 0, 3, 6, 0, 4, 8, 4]), np.array([4, 3, 4]), cells=9, order=3, k=3)
        >>> model.top([0]), model.top([0, 4]), model.top([5])
        ([1, 3, 4], [8], [])
        """
        found, context = np.empty(self.k, np.int64), np.full(self.order + 1, -1)
        for cell in prefix:
            _go_on(cell, context, self.cells, self.keys, self.lengths)
        count = _candidates(context, self.k, self.lengths, self.first, self.following, found)
        return [int(cell) for cell in found[:count]]

    def walk(
        self, starts: Indices, begins: Indices, chances: NDArray[np.float64], check: Callable[[int, int], None]
    ) -> tuple[Indices, Indices]:
        """Trips from these cells.

        Args:
            starts: the first cell of each.
            begins: where the cells of each begin, and the end.
            chances: one for each cell, at least 0 and below 1.
            check: called with how many trips are done, and of how many.

        Returns:
            The cells, and how many each trip got before it came to where nobody ever went on.
        """
        n = len(starts)
        walked, made = np.empty(begins[-1], np.int64), np.empty(n, np.int64)
        for low in range(0, n, _TOGETHER):
            high = min(n, low + _TOGETHER)
            _walk(
                starts[low:high], begins[low : high + 1], chances, self.k, self.cells, self.keys, self.lengths,
                self.first, self.following, walked, made[low:high],
            )  # fmt: skip
            check(high, n)
        return walked, made


def fit(trips: Indices, sizes: Indices, *, cells: int, order: int, k: int) -> Model:
    """Count what follows.

    Args:
        trips: the cells of all trips, one trip behind the other: numbers below `cells`.
        sizes: of the trips, at least 1.
        order: cells of the longest context.
        k: successors of a context that are kept.
    """
    ends = np.cumsum(sizes)
    place = np.arange(len(trips)) - np.repeat(ends - sizes, sizes)
    left = np.ones(len(trips), np.bool_)  # for another cell
    left[ends - 1] = False
    number = np.zeros(len(trips), np.int64)  # of the context that ends here, among those of its length
    keys, firsts, following = [], [], []
    there = 0
    for length in range(1, order + 1):
        here = np.flatnonzero(left & (place >= length - 1))
        shorter = number[here - 1] if length > 1 else np.zeros(len(here), np.int64)
        known, index = np.unique(shorter * cells + trips[here], return_inverse=True)
        number = np.zeros(len(trips), np.int64)
        number[here] = index
        pairs, counts = np.unique(index * cells + trips[here + 1], return_counts=True)
        context = pairs // cells
        ranked = np.lexsort((pairs, -counts, context))
        begin = np.searchsorted(context, np.arange(len(known)))
        kept = np.arange(len(pairs)) - begin[context] < k
        following.append(pairs[ranked][kept] % cells)
        firsts.append(there + np.searchsorted(context[kept], np.arange(len(known))))
        keys.append(known)
        there += len(following[-1])
    return Model(
        cells, k, np.concatenate(keys), np.cumsum([0, *map(len, keys)]), np.append(np.concatenate(firsts), there),
        np.concatenate(following),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _go_on(cell, context, cells, keys, lengths):  # type: ignore[no-untyped-def]
    """One cell more: the numbers of the contexts of each length that end in it, in place; -1 for those never left."""
    for length in range(len(lengths) - 1, 0, -1):
        shorter = context[length - 1] if length > 1 else 0
        context[length] = -1
        if shorter < 0:
            continue
        low, high = lengths[length - 1], lengths[length]
        end, wanted = high, shorter * cells + cell
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < end and keys[low] == wanted:
            context[length] = low - lengths[length - 1]


@njit(cache=True, nogil=True)
def _candidates(context, k, lengths, first, following, found):  # type: ignore[no-untyped-def]
    """How many there are; they are written to `found`."""
    count = 0
    for length in range(len(lengths) - 1, 0, -1):
        if context[length] < 0:
            continue
        at = lengths[length - 1] + context[length]
        for place in range(first[at], first[at + 1]):
            new = count < k
            for other in range(count):
                new = new and found[other] != following[place]
            if new:
                found[count] = following[place]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _walk(starts, begins, chances, k, cells, keys, lengths, first, following, walked, made):  # type: ignore[no-untyped-def]
    found, context = np.empty(k, np.int64), np.empty(len(lengths), np.int64)
    for trip in range(len(starts)):
        context[:] = -1
        cell = starts[trip]
        place, end = begins[trip], begins[trip + 1]
        walked[place] = cell
        while place + 1 < end:
            _go_on(cell, context, cells, keys, lengths)
            count = _candidates(context, k, lengths, first, following, found)
            if count == 0:
                break
            place += 1
            cell = found[int(chances[place] * count)]
            walked[place] = cell
        made[trip] = place + 1 - begins[trip]


@dataclass(frozen=True)
class Drawn:
    """Synthetic trips.

    Attributes:
        cells: of all trips, one behind the other.
        sizes: cells of each trip.
        truncated: whether it ended where nobody ever went on.
    """

    cells: Indices
    sizes: Indices
    truncated: NDArray[np.bool_]


class Predictor(Protocol):
    """What comes next: counts or a network."""

    def walk(
        self, starts: Indices, begins: Indices, chances: NDArray[np.float64], check: Callable[[int, int], None]
    ) -> tuple[Indices, Indices]:
        """As `Model.walk`."""


def draw(
    model: Predictor, starts: Indices, sizes: Indices, n: int, stream: int, check: Callable[[int, int], None]
) -> Drawn:
    """Draw trips.

    Args:
        starts: cells, of which each trip begins in one; one that is there twice is as likely as two.
        sizes: of trips, of which each has one.
        n: how many trips.
        stream: what the chances are made of.
        check: called with how many are done, and of how many.
    """
    chance = np.random.default_rng(stream % 2**64)
    wanted = sizes[chance.integers(0, len(sizes), n)]
    begun = starts[chance.integers(0, len(starts), n)]
    begins = np.concatenate([[0], np.cumsum(wanted)])
    walked, made = model.walk(begun, begins, chance.random(begins[-1]), check)
    kept = np.arange(len(walked)) - np.repeat(begins[:-1], wanted) < np.repeat(made, wanted)
    return Drawn(walked[kept], made, made < wanted)
