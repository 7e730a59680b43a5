"""Accuracy over low-dimensional margins: joint counts of all sets of one, two or three columns, and their distances.

Platzer, ANITA deliverable D2.2 (2020), and Platzer and Reutterer (2021): the mean distance between the relative
frequencies p of the original and q of the synthetic records over all margins of an order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Counts = NDArray[np.uint32]

_ROWS = 8192  # of a block: its codes, and the counts of some margins, stay in the cache of a core


@njit(cache=True, nogil=True)
def count_margins(codes, subsets, width, counts):  # type: ignore[no-untyped-def]
    """Add n records to the counts of s margins.

    Margins that differ in their last column only share the work for the others, and four of them are counted in one go:
    the additions do not wait for each other.

    Args:
        codes: (columns, n) codes below ``width``, uint8.
        subsets: (s, order) columns of each margin, in lexicographic order.
        width: most codes that a column has.
        counts: (s, width ** order) uint32, to which is added; the last column runs fastest.
    """
    margins, order = subsets.shape
    prefix = np.zeros(_ROWS, np.uint32)
    step = np.uint32(width)
    one = np.uint32(1)
    for start in range(0, codes.shape[1], _ROWS):
        size = min(_ROWS, codes.shape[1] - start)
        margin = 0
        while margin < margins:
            # The run of margins with the same columns but for the last.
            end = margin + 1
            while end < margins:
                same = True
                for place in range(order - 1):
                    same = same and subsets[end, place] == subsets[margin, place]
                if not same:
                    break
                end += 1
            prefix[:] = 0
            for place in range(order - 1):
                column = codes[subsets[margin, place]]
                for row in range(size):
                    prefix[row] = (prefix[row] + np.uint32(column[start + row])) * step
            while margin + 3 < end:
                first, second, third, fourth = (
                    counts[margin],
                    counts[margin + 1],
                    counts[margin + 2],
                    counts[margin + 3],
                )
                a, b = codes[subsets[margin, order - 1]], codes[subsets[margin + 1, order - 1]]
                c, d = codes[subsets[margin + 2, order - 1]], codes[subsets[margin + 3, order - 1]]
                for row in range(size):
                    base = prefix[row]
                    first[base + np.uint32(a[start + row])] += one
                    second[base + np.uint32(b[start + row])] += one
                    third[base + np.uint32(c[start + row])] += one
                    fourth[base + np.uint32(d[start + row])] += one
                margin += 4
            while margin < end:
                cells, column = counts[margin], codes[subsets[margin, order - 1]]
                for row in range(size):
                    cells[prefix[row] + np.uint32(column[start + row])] += one
                margin += 1


@njit(cache=True, nogil=True)
def _distances(original, other, found):  # type: ignore[no-untyped-def]
    for margin in range(len(original)):
        n, m = 0, 0
        for cell in range(original.shape[1]):
            n += original[margin, cell]
            m += other[margin, cell]
        cells, absolute, largest, roots, expected = 0, 0.0, 0.0, 0.0, 0.0
        for cell in range(original.shape[1]):
            if original[margin, cell] == 0 and other[margin, cell] == 0:
                continue
            p, q = original[margin, cell] / n, other[margin, cell] / m
            difference = abs(p - q)
            cells += 1
            absolute += difference
            largest = max(largest, difference)
            roots += (math.sqrt(p) - math.sqrt(q)) ** 2
            expected += math.sqrt(p * (1.0 - p))
        found[margin, 0] = cells
        found[margin, 1] = absolute
        found[margin, 2] = largest
        found[margin, 3] = math.sqrt(0.5 * roots)
        found[margin, 4] = expected * math.sqrt(2.0 / math.pi * (1.0 / n + 1.0 / m))


@dataclass(frozen=True)
class Distances:
    """Distances between two tables, of s margins each.

    Attributes:
        cells: combinations that occur in one of the two.
        l1: sum of |p - q|; half of it is the total variation.
        largest: the largest |p - q|.
        hellinger: sqrt(1 - sum of sqrt(p q)).
        l1_expected: what l1 would be on average between two samples of these sizes from one population.
    """

    cells: NDArray[np.float64]
    l1: NDArray[np.float64]
    largest: NDArray[np.float64]
    hellinger: NDArray[np.float64]
    l1_expected: NDArray[np.float64]


def distances(original: Counts, other: Counts) -> Distances:
    """Distances of s margins, from counts (s, cells); neither side may be empty."""
    found = np.empty((len(original), 5))
    _distances(original, other, found)
    return Distances(*found.T)


def worst_cells(original: Counts, other: Counts, most: int) -> list[tuple[float, int, int]]:
    """The cells with the largest |p - q|: that, the margin and the cell, largest first; ties by margin and cell."""
    if not original.size:
        return []
    sizes = [np.maximum(side.sum(axis=1, dtype=np.int64), 1)[:, None] for side in (original, other)]
    gaps = np.abs(original / sizes[0] - other / sizes[1]).ravel()
    flat = np.flatnonzero(gaps > 0)
    if len(flat) > most:
        flat = flat[gaps[flat] >= np.partition(gaps[flat], -most)[-most]]
    flat = flat[np.lexsort((flat, -gaps[flat]))][:most]
    return [(float(gaps[place]), int(place // original.shape[1]), int(place % original.shape[1])) for place in flat]


def subsets_of(columns: int, order: int) -> int:
    """How many sets of ``order`` columns there are."""
    return math.comb(columns, order)


def chunks_of_subsets(columns: int, order: int, most: int) -> Sequence[NDArray[np.int64]]:
    """All sets of ``order`` columns in lexicographic order, in pieces of ``most``."""
    every = iter(combinations(range(columns), order))
    pieces = []
    while piece := list(islice(every, most)):
        pieces.append(np.array(piece, dtype=np.int64))
    return pieces
