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
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.risk.codes import LARGEST_CODE, Coding
from sdcduck.methods.risk.distinct import distinct
from sdcduck.methods.risk.leaves import BUCKETS, LEAF, PAD, extents, filled, grow, leaf_of

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
    asked, _, _, question = distinct(queries)
    distances = np.full((len(asked), k), np.inf)
    found = np.full((len(asked), k), -1, np.int64)
    if len(asked) and len(reference):
        coding = Coding.of(asked, reference, scales, weights)
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
    least = np.uint16(LARGEST_CODE)
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
    distances = np.empty(LEAF + PAD, np.uint16)
    for batch in range(0, len(chosen), _TOGETHER):
        together = min(_TOGETHER, len(chosen) - batch)
        for one in range(together):
            codes = query_codes[chosen[batch + one]]
            mine = bounds[one]
            mine[:] = 0
            for column in range(categories):
                bucket = min(np.int64(codes[column]) >> shifts[column], BUCKETS)
                _add_table(mine, absent[column, bucket], leaves)
            for column in range(categories, columns):
                number = column - categories
                _add_range(mine, lows[number], highs[number], leaves, codes[column], caps[column])
            limits[one], homes[one] = LARGEST_CODE, np.argmin(mine)
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
                    if allowed < LARGEST_CODE:
                        limits[one] = np.int64(np.floor(allowed) if with_rows else np.ceil(allowed) - 1.0)
                if best[-1] == 0.0 and not with_rows:
                    limits[one] = -1


@dataclass(frozen=True)
class _Index:
    """The reference, sorted into leaves: arrays of `_search`."""

    coding: Coding
    nodes: NDArray[np.int64]
    arrays: tuple[object, ...]

    @classmethod
    def build(cls, reference: NDArray[np.float64], coding: Coding) -> _Index:
        rows, groups, members, _ = distinct(reference)
        codes, categories = coding.codes(rows), coding.categories
        shifts = np.array(
            [max(int(most).bit_length() - BUCKETS.bit_length() + 1, 0) for most in codes.max(axis=0)], np.int64
        )
        order, starts, nodes = grow(codes, categories, coding.caps)
        blocks, offsets = filled(codes, order, starts)
        absent, lows, highs = extents(codes, order, starts, categories, shifts, coding.caps)
        arrays = (
            rows, groups, members, order, starts, blocks, offsets, absent, lows, highs, categories, shifts, coding.caps,
            coding.scales, coding.weights,
        )  # fmt: skip
        return cls(coding, nodes, arrays)

    def order(self, codes: NDArray[np.uint16]) -> NDArray[np.int64]:
        """An order of queries in which neighbours look at the same leaves."""
        return np.argsort(leaf_of(codes, self.nodes), kind="stable")

    def search(
        self, chosen: NDArray[np.int64], queries: NDArray[np.float64], codes: NDArray[np.uint16], rows: bool,
        distances: NDArray[np.float64], found: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Find the nearest rows of some queries; fills their rows of the last two."""
        _search(chosen, queries, codes, self.arrays, self.coding.unit, self.coding.slack, rows, distances, found)
