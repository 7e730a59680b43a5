"""The nearest rows of one table for every row of another, exactly, over columns of numbers and categories.

The distance of two rows is the sum of w_k d_k over the columns: Gower's distance but for the division by the sum of the
weights, and the number of columns that differ where all are categories. Categories differ by 0 or 1, numbers by
|x - y| / scale but at most 1, NULL (NaN) by 0 from NULL and by 1 from all else.

The rows of the reference are sorted into leaves, by the columns that part them best. A leaf is passed over where even
its nearest possible row is too far; in the others, distances of 16-bit codes that never exceed the true ones leave few
rows to look at. Only these are measured, in double precision and column by column, as the definition says: the answer
has not one bit less than that of comparing all pairs. Equal rows are looked at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

_LEAF = 256  # rows of a leaf, at most
_SMALL = 16  # rows of a leaf, at least, where it was split off
_PAD = 64  # leaves are filled up to multiples of this: whole vectors
_SAMPLE = 512  # rows that decide how a node is split
_COMMON = 0.3  # a category of this share is parted from all others
_BUCKETS = 128  # categories that the bounds of a leaf tell apart
_LARGEST_CODE = 65535
_LARGEST_WEIGHT = 16383
_TOGETHER = 16  # queries that look at a leaf one after the other
_CHUNK = 512  # queries of a task


@dataclass(frozen=True)
class Neighbours:
    """The nearest rows.

    Attributes:
        distances: n x k, ascending; infinite where the reference has fewer than k rows.
        rows: n x k, their places in the reference, -1 where there is none; of equally near rows the first. None if they
            were not wanted.
    """

    distances: NDArray[np.float64]
    rows: NDArray[np.int64] | None


def nearest(
    queries: NDArray[np.float64],
    reference: NDArray[np.float64],
    scales: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    *,
    k: int = 2,
    rows: bool = False,
    threads: int | None = None,
    check: Callable[[int, int], object] = lambda done, total: None,
) -> Neighbours:
    """The k nearest rows of the reference for each query.

    Args:
        queries: n x p numbers; codes of categories (any whole numbers), NaN for NULL.
        reference: m x p, likewise.
        scales: by column, the difference of two numbers that counts as 1; 0 for categories.
        weights: by column, not negative; None: all 1.
        k: how many; 2 for the distance to the nearest record and its ratio to the next.
        rows: whether to say which rows these are. Without, ties need not be looked at.
        threads: None: as many as there are processors.
        check: called from time to time with the queries done and all of them; what it raises ends the work.

    Raises:
        ValueError: shapes that do not fit, infinite numbers, negative scales or weights.
    """
    weights = np.ones(len(scales)) if weights is None else np.asarray(weights, np.float64)
    _checked(queries, reference, scales, weights, k)
    used = weights > 0
    if not used.all():
        queries, reference, scales, weights = queries[:, used], reference[:, used], scales[used], weights[used]
    queries, reference = np.ascontiguousarray(queries), np.ascontiguousarray(reference)
    scales = np.ascontiguousarray(scales, np.float64)
    asked, _, _, question = _distinct(queries)
    distances = np.full((len(asked), k), np.inf)
    found = np.full((len(asked), k), -1, np.int64)
    if len(asked) and len(reference):
        coding = _Coding.of(asked, reference, scales, weights)
        index = _Index.build(reference, coding)
        codes = coding.codes(asked)
        order = index.order(codes)

        def answer(start: int) -> None:
            index.search(order[start : start + _CHUNK], asked, codes, rows, distances, found)

        starts = range(0, len(asked), _CHUNK)
        _in_threads(answer, starts, threads, lambda done: check(min(done * _CHUNK, len(asked)), len(asked)))
    return Neighbours(distances[question], found[question] if rows else None)


def _checked(
    queries: NDArray[np.float64], reference: NDArray[np.float64], scales: NDArray[np.float64],
    weights: NDArray[np.float64], k: int,
) -> None:  # fmt: skip
    if queries.ndim != 2 or reference.ndim != 2 or not queries.shape[1] == reference.shape[1] == len(scales):
        raise ValueError("queries, reference and scales must have the same columns")
    if len(weights) != len(scales) or not ((weights >= 0) & np.isfinite(weights)).all() or not (weights > 0).any():
        raise ValueError("weights must be numbers that are not negative, one a column, and not all of them 0")
    if not ((scales >= 0) & np.isfinite(scales)).all():
        raise ValueError("scales must be numbers that are not negative")
    if np.isinf(queries).any() or np.isinf(reference).any():
        raise ValueError("infinite numbers have no distance")
    if k < 1:
        raise ValueError("k must be at least 1")


def _in_threads(work: Callable[[int], None], parts: range, threads: int | None, done: Callable[[int], object]) -> None:
    """Do the parts in several threads, and say how many are done; the first exception ends it all."""
    # Threads of Python, and code that holds no lock: the threads of numba serve one caller at a time only.
    number = min(threads or os.cpu_count() or 1, len(parts))
    if number <= 1:
        for place, part in enumerate(parts):
            work(part)
            done(place + 1)
        return
    with ThreadPoolExecutor(number, thread_name_prefix="sdcduck") as pool:
        waiting = {pool.submit(work, part) for part in parts}
        try:
            while waiting:
                over, waiting = wait(waiting, timeout=0.2, return_when="FIRST_EXCEPTION")
                for one in over:
                    one.result()
                done(len(parts) - len(waiting))
        finally:
            for one in waiting:
                one.cancel()


# --- equal rows ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _hashes(table):  # type: ignore[no-untyped-def]
    found = np.empty(len(table), np.uint64)
    for row in range(len(table)):
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for column in range(table.shape[1]):
            value = table[row, column]
            # 0 and -0 are one number, and so are all NaN.
            bits = np.float64(0.0 if value == 0.0 else value).view(np.uint64) if value == value else np.uint64(1)
            mixed = (mixed ^ bits) * np.uint64(0xFF51AFD7ED558CCD)
            mixed ^= mixed >> np.uint64(32)
        found[row] = mixed
    return found


@njit(cache=True, nogil=True)
def _alike(table, one, other):  # type: ignore[no-untyped-def]
    for column in range(table.shape[1]):
        x, y = table[one, column], table[other, column]
        if x != y and (x == x or y == y):
            return False
    return True


@njit(cache=True, nogil=True)
def _new_rows(table, order):  # type: ignore[no-untyped-def]
    """Which rows, in an order that brings equal ones together, differ from the one before."""
    new = np.ones(len(order), np.bool_)
    for place in range(1, len(order)):
        new[place] = not _alike(table, order[place - 1], order[place])
    return new


def _distinct(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows; where the members of each begin, and the members; and which of them each row of the table is.

    Rows of equal hash that differ may come apart in several groups, which costs time and nothing else.
    """
    order = np.argsort(_hashes(table), kind="stable")
    new = _new_rows(table, order)
    starts = np.append(np.flatnonzero(new), len(order)).astype(np.int64)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    if len(starts) - 1 == len(order):
        order = np.arange(len(order))
        return table, np.arange(len(order) + 1), order, order
    return table[order[starts[:-1]]], starts, order, group


# --- 16-bit codes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coding:
    """Rows as codes of 16 bits, whose distances are at most ``unit`` times the true ones, plus ``slack``.

    Attributes:
        scales, weights, lows: by column of the tables.
        columns: those of the codes as columns of the tables: categories come first.
        categories: how many they are.
        caps: by column of the codes, the largest difference of two, and what two categories differ by.
        unit: what the distance 1 is in codes.
        slack: by how much rounding may lift a distance; 0: codes are as good as the distances themselves.
    """

    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    lows: NDArray[np.float64]
    columns: NDArray[np.int64]
    categories: int
    caps: NDArray[np.uint16]
    unit: float
    slack: float

    @classmethod
    def of(
        cls, queries: NDArray[np.float64], reference: NDArray[np.float64], scales: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> _Coding:  # fmt: skip
        unit = min(_LARGEST_CODE / weights.sum(), _LARGEST_WEIGHT / weights.max())
        unit = float(np.floor(unit)) if unit >= 1 else unit
        lows = np.array([_least(queries[:, place], reference[:, place]) for place in range(len(scales))])
        exact = not scales.any() and unit >= 1 and bool((weights == np.floor(weights)).all())
        slack = 0.0 if exact else float(np.count_nonzero(scales)) + 1e-3
        columns = np.argsort(scales > 0, kind="stable")
        caps = np.floor(weights * unit).astype(np.uint16)[columns]
        return cls(scales, weights, lows, columns, int((scales == 0).sum()), caps, unit, slack)

    def codes(self, table: NDArray[np.float64]) -> NDArray[np.uint16]:
        """The codes of rows."""
        found: NDArray[np.uint16] = _coded(
            table, self.columns, self.scales, self.weights * self.unit, self.lows, self.caps
        )
        return found


def _least(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.nan_to_num(np.fmin(np.fmin.reduce(one), np.fmin.reduce(other))))


@njit(cache=True, nogil=True)
def _coded(table, columns, scales, steps, lows, caps):  # type: ignore[no-untyped-def]
    found = np.empty(table.shape, np.uint16)
    for place, column in enumerate(columns):
        cap = np.int64(caps[place])
        most = _LARGEST_CODE - cap
        for row in range(table.shape[0]):
            value = table[row, column]
            if scales[column] > 0.0:
                # NULL is as far from the last number as numbers can be.
                code = np.int64(_LARGEST_CODE)
                if value == value:
                    code = np.int64(min(np.rint((value - lows[column]) / scales[column] * steps[column]), most))
            elif value != value:
                code = np.int64(0)
            elif value == np.floor(value) and abs(value) < 2.0**53:
                code = (np.int64(value) + 1) & _LARGEST_CODE
            else:
                code = np.int64(np.float64(value).view(np.uint64) % np.uint64(65521))
            found[row, place] = code
    return found


# --- the leaves ------------------------------------------------------------------------------------------------------


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
def _grow(codes, categories, caps):  # type: ignore[no-untyped-def]
    """Sort rows into leaves: an order of the rows, where each leaf begins in it, and the nodes of the tree.

    A node is (column, code, whether the code alone, child of those, child of the others); a child that is not negative
    is a node, else leaf -child - 1.
    """
    rows, columns = codes.shape
    order = np.arange(rows)
    most = rows // _SMALL + 2
    nodes = np.empty((most, 5), np.int64)
    starts = np.empty(most + rows // _LEAF + 2, np.int64)
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
        if size > _LEAF:
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
            for start in range(first, last, _LEAF):
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
def _leaf_of(codes, nodes):  # type: ignore[no-untyped-def]
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
def _filled(codes, order, starts):  # type: ignore[no-untyped-def]
    """The codes leaf by leaf, and in it column by column, each leaf filled up with copies of its last row."""
    leaves, columns = len(starts) - 1, codes.shape[1]
    offsets = np.zeros(leaves + 1, np.int64)
    for leaf in range(leaves):
        offsets[leaf + 1] = offsets[leaf] + (starts[leaf + 1] - starts[leaf] + _PAD - 1) // _PAD * _PAD * columns
    blocks = np.empty(offsets[leaves], np.uint16)
    for leaf in range(leaves):
        width = (offsets[leaf + 1] - offsets[leaf]) // columns
        for column in range(columns):
            for place in range(width):
                row = order[min(starts[leaf] + place, starts[leaf + 1] - 1)]
                blocks[offsets[leaf] + column * width + place] = codes[row, column]
    return blocks, offsets


@njit(cache=True, nogil=True)
def _extents(codes, order, starts, categories, shifts, caps):  # type: ignore[no-untyped-def]
    """What a code adds at least to the distance from a leaf: by category, and the lowest and highest of numbers."""
    leaves, numbers = len(starts) - 1, codes.shape[1] - categories
    absent = np.zeros((categories, _BUCKETS + 1, leaves), np.uint16)
    lows = np.full((numbers, leaves), _LARGEST_CODE, np.uint16)
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


# --- the search ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add_category(distances, codes, start, width, code, cap):  # type: ignore[no-untyped-def]
    base = np.uint64(start)
    for place in range(np.uint64(width)):
        distances[place] = np.uint16(distances[place] + (cap if codes[base + place] != code else np.uint16(0)))


@njit(cache=True, nogil=True)
def _add_four_categories(distances, codes, start, width, asked, caps, column):  # type: ignore[no-untyped-def]
    """As `_add_category` for this column and the next three, with a quarter of the loads and stores."""
    first, second = np.uint64(start), np.uint64(start + width)
    third, fourth = np.uint64(start + 2 * width), np.uint64(start + 3 * width)
    a, b, c, d = asked[column], asked[column + 1], asked[column + 2], asked[column + 3]
    p, q, r, s = caps[column], caps[column + 1], caps[column + 2], caps[column + 3]
    none = np.uint16(0)
    for place in range(np.uint64(width)):
        total = np.uint16(distances[place] + (p if codes[first + place] != a else none))
        total = np.uint16(total + (q if codes[second + place] != b else none))
        total = np.uint16(total + (r if codes[third + place] != c else none))
        distances[place] = np.uint16(total + (s if codes[fourth + place] != d else none))


@njit(cache=True, nogil=True)
def _add_number(distances, codes, start, width, code, cap):  # type: ignore[no-untyped-def]
    base = np.uint64(start)
    for place in range(np.uint64(width)):
        other = codes[base + place]
        apart = np.uint16(other - code) if other > code else np.uint16(code - other)
        distances[place] = np.uint16(distances[place] + (apart if apart < cap else cap))


@njit(cache=True, nogil=True)
def _add_range(distances, lows, highs, width, code, cap):  # type: ignore[no-untyped-def]
    for place in range(np.uint64(width)):
        low, high = lows[place], highs[place]
        above = np.uint16(code - high) if code > high else np.uint16(0)
        below = np.uint16(low - code) if low > code else np.uint16(0)
        apart = np.uint16(above + below)
        distances[place] = np.uint16(distances[place] + (apart if apart < cap else cap))


@njit(cache=True, nogil=True)
def _add_table(distances, added, width):  # type: ignore[no-untyped-def]
    for place in range(np.uint64(width)):
        distances[place] = np.uint16(distances[place] + added[place])


@njit(cache=True, nogil=True)
def _least_of(distances, width):  # type: ignore[no-untyped-def]
    """The least of the first distances."""
    least = np.uint16(_LARGEST_CODE)
    for place in range(np.uint64(width)):
        least = distances[place] if distances[place] < least else least
    return least


@njit(cache=True, nogil=True)
def _distance(x, y, scales, weights, limit):  # type: ignore[no-untyped-def]
    """The distance of two rows, or anything above the limit if it is above."""
    total = 0.0
    for column in range(len(x)):
        one, other = x[column], y[column]
        if one == other:
            continue
        apart = 1.0
        if scales[column] > 0.0:
            apart = min(abs(one - other) / scales[column], 1.0) if one == one and other == other else 1.0
        if one != one and other != other:
            apart = 0.0
        total += weights[column] * apart
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def _insert(distances, rows, distance, row):  # type: ignore[no-untyped-def]
    """Put a row among the nearest; False if it is not one of them."""
    place = len(distances) - 1
    if distance > distances[place] or (distance == distances[place] and 0 <= rows[place] <= row):
        return False
    while place > 0 and (
        distance < distances[place - 1] or (distance == distances[place - 1] and row < rows[place - 1])
    ):
        distances[place], rows[place] = distances[place - 1], rows[place - 1]
        place -= 1
    distances[place], rows[place] = distance, row
    return True


@njit(cache=True, nogil=True)
def _take(best, best_rows, distance, members, with_rows):  # type: ignore[no-untyped-def]
    """Put equal rows among the nearest; False if none of them is."""
    better = False
    for place in range(min(len(members), len(best))):
        if not with_rows and distance >= best[-1]:
            break
        if not _insert(best, best_rows, distance, members[place] if with_rows else -1):
            break
        better = True
    return better


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    chosen, queries, query_codes, arrays, unit, slack, with_rows, all_distances, all_rows
):
    (
        reference, groups, members, order, starts, blocks, offsets, absent, lows, highs, categories, shifts, caps,
        scales, weights,
    ) = arrays  # fmt: skip
    leaves, columns = len(starts) - 1, len(scales)
    fours = categories // 4 * 4
    bounds = np.empty((_TOGETHER, leaves), np.uint16)
    limits, homes = np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64)
    distances = np.empty(_LEAF + _PAD, np.uint16)
    for batch in range(0, len(chosen), _TOGETHER):
        together = min(_TOGETHER, len(chosen) - batch)
        for one in range(together):
            codes = query_codes[chosen[batch + one]]
            mine = bounds[one]
            mine[:] = 0
            for column in range(categories):
                bucket = min(np.int64(codes[column]) >> shifts[column], _BUCKETS)
                _add_table(mine, absent[column, bucket], leaves)
            for column in range(categories, columns):
                number = column - categories
                _add_range(mine, lows[number], highs[number], leaves, codes[column], caps[column])
            limits[one], homes[one] = _LARGEST_CODE, np.argmin(mine)
        # Each query looks at its nearest leaf first; the others are at hand for all queries of the batch in turn.
        for turn in range(-1, leaves):
            for one in range(together):
                leaf = homes[one] if turn < 0 else turn
                if bounds[one, leaf] > limits[one] or turn == homes[one]:
                    continue
                query = chosen[batch + one]
                best, best_rows, codes = all_distances[query], all_rows[query], query_codes[query]
                start, width = offsets[leaf], (offsets[leaf + 1] - offsets[leaf]) // columns
                distances[:width] = 0
                for column in range(0, fours, 4):
                    _add_four_categories(distances, blocks, start + column * width, width, codes, caps, column)
                for column in range(fours, categories):
                    _add_category(distances, blocks, start + column * width, width, codes[column], caps[column])
                for column in range(categories, columns):
                    _add_number(distances, blocks, start + column * width, width, codes[column], caps[column])
                if _least_of(distances, width) > limits[one]:
                    continue
                for place in range(starts[leaf + 1] - starts[leaf]):
                    if distances[place] > limits[one]:
                        continue
                    group = order[starts[leaf] + place]
                    distance = _distance(queries[query], reference[group], scales, weights, best[-1])
                    if not _take(best, best_rows, distance, members[groups[group] : groups[group + 1]], with_rows):
                        continue
                    allowed = unit * best[-1] + slack
                    if allowed < _LARGEST_CODE:
                        limits[one] = np.int64(np.floor(allowed) if with_rows else np.ceil(allowed) - 1.0)
                if best[-1] == 0.0 and not with_rows:
                    limits[one] = -1


@dataclass(frozen=True)
class _Index:
    """The reference, sorted into leaves: arrays of `_search`."""

    coding: _Coding
    nodes: NDArray[np.int64]
    arrays: tuple[object, ...]

    @classmethod
    def build(cls, reference: NDArray[np.float64], coding: _Coding) -> _Index:
        rows, groups, members, _ = _distinct(reference)
        codes, categories = coding.codes(rows), coding.categories
        shifts = np.array(
            [max(int(most).bit_length() - _BUCKETS.bit_length() + 1, 0) for most in codes.max(axis=0)], np.int64
        )
        order, starts, nodes = _grow(codes, categories, coding.caps)
        blocks, offsets = _filled(codes, order, starts)
        absent, lows, highs = _extents(codes, order, starts, categories, shifts, coding.caps)
        arrays = (
            rows, groups, members, order, starts, blocks, offsets, absent, lows, highs, categories, shifts, coding.caps,
            coding.scales, coding.weights,
        )  # fmt: skip
        return cls(coding, nodes, arrays)

    def order(self, codes: NDArray[np.uint16]) -> NDArray[np.int64]:
        """An order of queries in which neighbours look at the same leaves."""
        return np.argsort(_leaf_of(codes, self.nodes), kind="stable")

    def search(
        self, chosen: NDArray[np.int64], queries: NDArray[np.float64], codes: NDArray[np.uint16], rows: bool,
        distances: NDArray[np.float64], found: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Find the nearest rows of some queries; fills their rows of the last two."""
        _search(chosen, queries, codes, self.arrays, self.coding.unit, self.coding.slack, rows, distances, found)
