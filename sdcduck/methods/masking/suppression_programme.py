"""The fewest values to suppress in the records that are rare, by integer programming; for small files.

A variable for each value that may go, and one for each pair of records that may become alike: it is at most 1, and for
each key in which the two differ at most what is suppressed of it in either. Each rare record loses a value at least and
is alike with k; records that are not rare lose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import linear_program, quiet_highs
from sdcduck.methods.masking.matches import lacking
from sdcduck.methods.numerics import scipy

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_RECORDS = 24
"""Rare records of a file that this is tried with."""
_MOST_COMPARED = 1_000_000  # pairs of a rare record and another one
_NODES = 50  # of the search: a limit that, unlike one of time, gives the same answer again


def fewest_values(
    codes: Indices, strata: Indices, k: int, rare: Indices, known: Indices, begun: Indices, order: Sequence[int]
) -> Indices:
    """Patterns with the fewest suppressed values; those that are known where no better ones are found.

    Args:
        codes: n x m, -1 for a value that is missing.
        strata: n.
        k: records that are alike, a missing value being any.
        rare: the records that are alike with fewer.
        known: n, patterns that will do: a bit for each key that a record lacks.
        begun: n, what each record lacks at first.
        order: keys that are suppressed rather than the others first.
    """
    others = np.setdiff1d(np.arange(len(codes)), rare)
    if len(rare) > MOST_RECORDS or len(rare) * len(others) > _MOST_COMPARED:
        return known
    found = _solution(codes, strata, k, rare, others, order)
    if found is None or found.sum() >= lacking(known & ~begun).sum():
        return known
    patterns = begun.copy()
    patterns[rare] |= found @ (1 << np.arange(codes.shape[1]))
    return patterns


def _solution(
    codes: Indices, strata: Indices, k: int, rare: Indices, others: Indices, order: Sequence[int]
) -> Mask | None:
    """Which values go, a line for each rare record; None: nothing was found."""
    m, count = codes.shape[1], len(rare)
    one, two = np.triu_indices(count, 1)
    pair = _apart(codes, rare[one], rare[two], strata)
    each, other = np.repeat(np.arange(count), len(others)), np.tile(others, count)
    single = _apart(codes, rare[each], other, strata)
    sizes = np.bincount(each[single >= 0] << m | single[single >= 0], minlength=count << m)
    places = np.flatnonzero(sizes)
    with_others, apart = places >> m, places & (1 << m) - 1
    one, two, pair = one[pair >= 0], two[pair >= 0], pair[pair >= 0]
    # The variables: values, kinds of other records of each rare one, pairs of rare ones.
    values = count * m
    total = values + len(places) + len(pair)
    numbers = np.arange(total)
    kinds, pairs = numbers[values : values + len(places)], numbers[values + len(places) :]
    shown = np.arange(m)
    link, key = np.nonzero(np.concatenate([apart, pair])[:, None] >> shown & 1)
    first = np.concatenate([with_others, one])[link] * m + key
    is_pair = link >= len(places)
    second = two[np.where(is_pair, link - len(places), 0)] * m + key if len(pair) else first
    links = np.arange(len(link))
    linked = _matrix(
        [links, links, links[is_pair]], [link + values, first, second[is_pair]], [1.0, -1.0, -1.0], (len(link), total)
    )
    lines = np.arange(count)
    alike = _matrix(
        [with_others, one, two], [kinds, pairs, pairs], [np.minimum(sizes[places], k), 1.0, 1.0], (count, total)
    )
    loses = _matrix([np.repeat(lines, m)], [numbers[:values]], [1.0], (count, total))
    cost = np.zeros(total)
    rank = np.empty(m)
    rank[list(order)] = np.arange(m)
    cost[:values] = 1 + np.tile(rank, count) / (values * m)  # the keys decide among equally few
    high = np.ones(total)
    high[:values] = (codes[rare] >= 0).reshape(-1)
    least = np.concatenate([np.full(len(link), -np.inf), np.full(count, k - 1.0), np.ones(count)])
    most = np.concatenate([np.zeros(len(link)), np.full(2 * count, np.inf)])
    highs = quiet_highs()
    highs.passModel(
        linear_program(scipy.sparse.vstack([linked, alike, loses]).tocsr(), least, most, np.zeros(total), high, cost)
    )
    highs.changeColsIntegrality(values, np.arange(values, dtype=np.int32), np.ones(values, np.uint8))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_max_nodes", _NODES)
    highs.run()
    taken = np.array(highs.getSolution().col_value)
    if len(taken) != total or not highs.getInfo().primal_solution_status:
        return None
    return (taken[:values] > 0.5).reshape(count, m)


def _apart(codes: Indices, one: Indices, two: Indices, strata: Indices) -> Indices:
    """The keys in which records differ, as a bit each; -1: they are of different strata."""
    a, b = codes[one], codes[two]
    keys = ((a != b) & (a >= 0) & (b >= 0)) @ (1 << np.arange(codes.shape[1]))
    return np.where(strata[one] == strata[two], keys, -1)


def _matrix(
    rows: list[Indices], columns: list[Indices], values: list[float | NDArray[np.generic]], shape: tuple[int, int]
) -> scipy.sparse.csr_matrix:
    filled = [np.broadcast_to(np.asarray(value, np.float64), len(row)) for value, row in zip(values, rows, strict=True)]
    entries = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.coo_matrix((np.concatenate(filled), entries), shape=shape).tocsr()
