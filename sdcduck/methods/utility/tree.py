"""Classification trees on columns of codes, grown for the shares in their leaves: CART (Breiman et al. 1984).

A column is counted rather than sorted wherever that is less work, a category is one column however many values it has,
and nothing is grown that pruning would take away: a node whose impurity is not above the price of a leaf. The tree is
the one that scikit-learn finds on indicators of the categories, but for splits that are equally good.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]

_DEEPEST = 30
_DIGIT = 11  # bits of a key that are sorted at a time
_FEW = 2048  # keys that are sorted by comparison
_SPARSE, _SPARSE_AND_FEW = 4, 32  # times as many codes as records: from there on records are sorted, not counted


@njit(cache=True, nogil=True)
def _sort(keys, spare, size, largest):  # type: ignore[no-untyped-def]
    """Sort the first keys, from 0 to the largest; returns the array that they are in then."""
    if size <= _FEW:
        keys[:size].sort()
        return keys
    mask = (1 << _DIGIT) - 1
    shift = 0
    starts = np.empty(1 << _DIGIT, dtype=np.int64)
    while largest >> shift:
        starts[:] = 0
        for place in range(size):
            starts[(keys[place] >> shift) & mask] += 1
        total = 0
        for digit in range(len(starts)):
            number = starts[digit]
            starts[digit] = total
            total += number
        for place in range(size):
            digit = (keys[place] >> shift) & mask
            spare[starts[digit]] = keys[place]
            starts[digit] += 1
        keys, spare = spare, keys
        shift += _DIGIT
    return keys


@njit(cache=True, nogil=True)
def _gain(zeros, ones, all_zeros, all_ones):  # type: ignore[no-untyped-def]
    """What grows as the impurity falls when so many of the records go to one side."""
    a, b = float(zeros), float(ones)
    c, d = float(all_zeros - zeros), float(all_ones - ones)
    return (a * a + b * b) / (a + b) + (c * c + d * d) / (c + d)


@njit(cache=True, nogil=True)
def _best_split(columns, sizes, ordered, outcome, records, ones, leaf, counts, keys, spare):  # type: ignore[no-untyped-def]
    """Column and code of the best split of some records: those at most at the code, or those of it; -1 if none."""
    size = len(records)
    zeros = size - ones
    best, best_column, best_code = -1.0, -1, -1
    for column in range(len(columns)):
        codes = columns[column]
        if sizes[column] > (_SPARSE if size > _FEW else _SPARSE_AND_FEW) * size:
            for place in range(size):
                record = records[place]
                keys[place] = 2 * np.int64(codes[record]) + outcome[record]
            found = _sort(keys, spare, size, 2 * np.int64(sizes[column]) + 1)
            below, below_ones = 0, 0
            for place in range(size - 1):
                below += 1
                below_ones += found[place] & 1
                if found[place] >> 1 == found[place + 1] >> 1:
                    continue
                if below >= leaf and size - below >= leaf:
                    gain = _gain(below - below_ones, below_ones, zeros, ones)
                    if gain > best:
                        best, best_column, best_code = gain, column, found[place] >> 1
            continue
        lowest, highest = sizes[column], -1
        for place in range(size):
            record = records[place]
            code = codes[record]
            counts[code, outcome[record]] += 1
            lowest, highest = min(lowest, code), max(highest, code)
        below = 0
        below_ones = np.int64(0)  # type: ignore[assignment]
        for code in range(lowest, highest + 1):
            there = counts[code, 0] + counts[code, 1]
            if not there:
                continue
            if ordered[column]:
                below += there
                below_ones += counts[code, 1]
            else:
                below, below_ones = there, counts[code, 1]
            counts[code, 0] = counts[code, 1] = 0
            # The first value of a category has no indicator.
            if (ordered[column] or code > 0) and below >= leaf and size - below >= leaf:
                gain = _gain(below - below_ones, below_ones, zeros, ones)
                if gain > best:
                    best, best_column, best_code = gain, column, code
    return best_column, best_code


@njit(cache=True, nogil=True)
def _grown(columns, sizes, ordered, outcome, price, leaf, smallest):  # type: ignore[no-untyped-def]
    """The share of ones in the leaf of each record."""
    total = len(outcome)
    records = np.arange(total, dtype=np.int32)
    aside = np.empty(total, dtype=np.int32)
    counts = np.zeros((sizes.max(), 2), dtype=np.int32)
    keys, spare = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    # Nodes, each before its children: the records from start to end; the first child, the second follows it.
    start, end, depth, child = [0], [total], [0], [0]
    impurity, ones_in = [0.0], [0]
    node = 0
    while node < len(start):
        low, high = start[node], end[node]
        size = high - low
        ones: int = np.int64(0)  # type: ignore[assignment]
        for place in range(low, high):
            ones += outcome[records[place]]
        ones_in[node] = ones
        share = ones / size
        impurity[node] = size / total * 2 * share * (1 - share)
        if size >= smallest and depth[node] < _DEEPEST and impurity[node] > max(price, 0.0):
            column, code = _best_split(
                columns, sizes, ordered, outcome, records[low:high], ones, leaf, counts, keys, spare
            )
            if column >= 0:
                first, second = low, 0
                codes = columns[column]
                for place in range(low, high):
                    record = records[place]
                    inside = codes[record] <= code if ordered[column] else codes[record] == code
                    if inside:
                        records[first] = record
                        first += 1
                    else:
                        aside[second] = record
                        second += 1
                records[first:high] = aside[:second]
                child[node] = len(start)
                for one, other in ((low, first), (first, high)):
                    start.append(one)
                    end.append(other)
                    depth.append(depth[node] + 1)
                    child.append(0)
                    impurity.append(0.0)
                    ones_in.append(0)
        node += 1
    # The smallest tree that costs least: impurity, and the price of each leaf.
    cost = np.empty(len(start))
    for node in range(len(start) - 1, -1, -1):
        cost[node] = impurity[node] + price
        if child[node]:
            grown = cost[child[node]] + cost[child[node] + 1]
            if cost[node] <= grown and price > 0:
                child[node] = 0
            else:
                cost[node] = grown
    shares = np.empty(total)
    kept = np.zeros(len(start), dtype=np.bool_)
    kept[0] = True
    for node in range(len(start)):
        if not kept[node]:
            continue
        if child[node]:
            kept[child[node]] = kept[child[node] + 1] = True
        else:
            for place in range(start[node], end[node]):
                shares[records[place]] = ones_in[node] / (end[node] - start[node])
    return shares


def leaf_shares(
    columns: Sequence[NDArray[np.int32]], sizes: Sequence[int], ordered: Sequence[bool], outcome: NDArray[np.uint8], *,
    price: float, leaf: int,
) -> Floats:  # fmt: skip
    """The share of ones in the leaf of each of n records.

    Args:
        columns: codes (n,) from 0 of each column.
        sizes: number of codes of each.
        ordered: whether a split of a column is at a code, or takes one code out, which is not the first.
        outcome: 0 or 1, (n,).
        price: what a leaf costs in Gini impurity (ccp_alpha); 0: nothing is pruned.
        leaf: records that a leaf has at least; a node that is split has four times as many.
    """
    shares: Floats = _grown(
        np.vstack(columns), np.asarray(sizes, dtype=np.int64), np.asarray(ordered), outcome, price, leaf, 4 * leaf
    )
    return shares
