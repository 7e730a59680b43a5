"""Rows sorted into leaves, by the columns that part them best, and what a leaf adds at least to a distance."""

from __future__ import annotations

import numpy as np

from sdcduck.methods.compiled import njit
from sdcduck.methods.risk.codes import LARGEST_CODE

LEAF = 256  # rows of a leaf, at most
_SMALL = 16  # rows of a leaf, at least, where it was split off
PAD = 64  # leaves are filled up to multiples of this: whole vectors
_SAMPLE = 512  # rows that decide how a node is split
_COMMON = 0.3  # a category of this share is parted from all others
BUCKETS = 128  # categories that the bounds of a leaf tell apart


@njit(cache=True, nogil=True)
def _cut(sample, is_number, cap):  # type: ignore[no-untyped-def]
    """Where to split a node by a column, of which the sample is sorted: the code, whether it alone, and its share.

    And how much further away the one half is then from the rows of the other, on average.
    """
    size = len(sample)
    common, most, run = sample[0], 0, 0
    for place in range(size):
        run = run + 1 if place and sample[place] == sample[place - 1] else 1
        if run > most:
            common, most = sample[place], run
    if not is_number and most >= _COMMON * size:
        share = most / size
        return np.int64(common), True, share, 2.0 * share * (1.0 - share) * cap
    code = np.int64(sample[size // 2])
    below, until = size // 2, size // 2
    while below > 0 and sample[below - 1] == code:
        below -= 1
    while until < size and sample[until] == code:
        until += 1
    if below > 0 and size - 2 * below < 2 * until - size:
        code, until = code - 1, below
    share = until / size
    if until == size:
        return code, False, share, 0.0
    if not is_number:
        return code, False, share, 2.0 * share * (1.0 - share) * cap
    apart = 0.0
    for one in sample:
        apart += min(abs(np.float64(one) - code), np.float64(cap))
    return code, False, share, 0.5 * apart / size


@njit(cache=True, nogil=True)
def _split(codes, order, first, last, column, code, single):  # type: ignore[no-untyped-def]
    """Bring the rows with codes of at most this one, or of this alone, to the front; returns where the others begin."""
    place = first
    for here in range(first, last):
        mine = codes[order[here], column]
        if mine == code if single else mine <= code:
            order[here], order[place] = order[place], order[here]
            place += 1
    return place


@njit(cache=True, nogil=True)
def grow(codes, categories, caps):  # type: ignore[no-untyped-def]
    """Sort rows into leaves: an order of the rows, where each leaf begins in it, and the nodes of the tree.

    A node is (column, code, whether the code alone, child of those, child of the others); a child that is not negative
    is a node, else leaf -child - 1.
    """
    rows, columns = codes.shape
    order = np.arange(rows)
    most = rows // _SMALL + 2
    nodes = np.empty((most, 5), np.int64)
    starts = np.empty(most + rows // LEAF + 2, np.int64)
    # What is still to be done: first and last row, the place in a node that waits to be told the child, and the share
    # of the node that the child is.
    todo = [(0, rows, -1, 0, 1.0)]
    leaves, made = 0, 0
    sample = np.empty((columns, _SAMPLE), np.uint16)
    # The share of categories that are left in a node: who has another is far from it already.
    left = np.ones((len(nodes), columns))
    here, gains, shares = np.ones(columns), np.empty(columns), np.empty(columns)
    cuts, singles = np.empty(columns, np.int64), np.empty(columns, np.bool_)
    while todo:
        first, last, parent, side, share = todo.pop()
        size = last - first
        middle, column = first, 0
        if parent >= 0:
            here[:] = left[parent]
            if nodes[parent, 0] < categories:
                here[nodes[parent, 0]] *= share
        if size > LEAF:
            taken = min(size, _SAMPLE)
            for one in range(taken):
                row = order[first + one * size // taken]
                for place in range(columns):
                    sample[place, one] = codes[row, place]
            for place in range(columns):
                cut = _cut(np.sort(sample[place, :taken]), place >= categories, caps[place])
                cuts[place], singles[place], shares[place] = cut[0], cut[1], cut[2]
                gains[place] = cut[3] * here[place]
            for _ in range(columns):
                column = int(np.argmax(gains))
                if gains[column] <= 0.0:
                    break
                gains[column] = 0.0
                middle = _split(codes, order, first, last, column, cuts[column], singles[column])
                if min(middle - first, last - middle) >= _SMALL:
                    break
                middle = first
        if middle == first or made == len(nodes):
            # A large leaf of rows with the same codes is cut up: its parts are reached through one another.
            for start in range(first, last, LEAF):
                starts[leaves] = start
                leaves += 1
            child = -leaves
        else:
            nodes[made, 0], nodes[made, 1], nodes[made, 2] = column, cuts[column], singles[column]
            left[made] = here
            todo.append((middle, last, made, 4, 1.0 - shares[column]))
            todo.append((first, middle, made, 3, shares[column]))
            child = made
            made += 1
        if parent >= 0:
            nodes[parent, side] = child
    starts[leaves] = rows
    return order, starts[: leaves + 1].copy(), nodes[:made].copy()


@njit(cache=True, nogil=True)
def leaf_of(codes, nodes):  # type: ignore[no-untyped-def]
    """The leaf in which a row would be."""
    found = np.zeros(len(codes), np.int64)
    if len(nodes):
        for row in range(len(codes)):
            node = np.int64(0)
            while node >= 0:
                mine = codes[row, nodes[node, 0]]
                those = mine == nodes[node, 1] if nodes[node, 2] else mine <= nodes[node, 1]
                node = nodes[node, 3 if those else 4]
            found[row] = -node - 1
    return found


@njit(cache=True, nogil=True)
def filled(codes, order, starts):  # type: ignore[no-untyped-def]
    """The codes leaf by leaf, and in it column by column, each leaf filled up with copies of its last row."""
    leaves, columns = len(starts) - 1, codes.shape[1]
    offsets = np.zeros(leaves + 1, np.int64)
    for leaf in range(leaves):
        offsets[leaf + 1] = offsets[leaf] + (starts[leaf + 1] - starts[leaf] + PAD - 1) // PAD * PAD * columns
    blocks = np.empty(offsets[leaves], np.uint16)
    for leaf in range(leaves):
        width = (offsets[leaf + 1] - offsets[leaf]) // columns
        for column in range(columns):
            for place in range(width):
                row = order[min(starts[leaf] + place, starts[leaf + 1] - 1)]
                blocks[offsets[leaf] + column * width + place] = codes[row, column]
    return blocks, offsets


@njit(cache=True, nogil=True)
def extents(codes, order, starts, categories, shifts, caps):  # type: ignore[no-untyped-def]
    """What a code adds at least to the distance from a leaf: by category, and the lowest and highest of numbers."""
    leaves, numbers = len(starts) - 1, codes.shape[1] - categories
    absent = np.zeros((categories, BUCKETS + 1, leaves), np.uint16)
    lows = np.full((numbers, leaves), LARGEST_CODE, np.uint16)
    highs = np.zeros((numbers, leaves), np.uint16)
    for category in range(categories):
        absent[category] = caps[category]
        for leaf in range(leaves):
            for place in range(starts[leaf], starts[leaf + 1]):
                absent[category, np.int64(codes[order[place], category]) >> shifts[category], leaf] = 0
    for number in range(numbers):
        for leaf in range(leaves):
            for place in range(starts[leaf], starts[leaf + 1]):
                code = codes[order[place], categories + number]
                lows[number, leaf] = min(lows[number, leaf], code)
                highs[number, leaf] = max(highs[number, leaf], code)
    return absent, lows, highs
