"""k-disclosure: what a coalition learns from the difference of two published cells, as further primary columns.

A cell inside another one discloses an attribute when the rest of the larger cell is empty, or holds no more persons
than a coalition of k of them knows about anyway (KDisclosurePrimary of the R package GaussSuppression, D. Lupp; the
candidate order is its DirectDisclosureCandidates). The difference itself is what has to be protected: a column that
nobody publishes, given to `suppress_secondary` as ``extra``, with singleton method "anySumNOTprimary" and the empty
inner cells as singletons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.matrix import DummyMatrix

Array = NDArray[Any]

_ROOM = 1 << 16


@dataclass(frozen=True)
class Differences:
    """Differences of two cells, one inside the other.

    Attributes:
        matrix: m x k, the inner cells of each difference.
        parent: int64 (k,), the larger cell; where several pairs have the same difference, that of the first.
    """

    matrix: DummyMatrix
    parent: NDArray[np.int64]

    def only(self, chosen: NDArray[np.bool_]) -> Differences:
        """Those of the mask (k,)."""
        return Differences(self.matrix.take(np.flatnonzero(chosen)), self.parent[chosen])


def disclosing_differences(
    x: DummyMatrix, freq: NDArray[np.number], coalition: float = 1, upper_bound: float = np.inf
) -> Differences:
    """The differences of cells that k-disclosure protects, as columns over the m inner cells; equal ones come once.

    A pair of cells counts when the inner cells of the smaller (the child) are some but not all of the larger one's (the
    parent), both counts are positive, the child's is at most ``upper_bound``, and the parent's exceeds it by at most
    ``coalition``. Order: by parent, then by child.

    Args:
        x: m x N matrix of the cells.
        freq: (N,), counts of the cells.
        coalition: number of persons who share what they know, k.
        upper_bound: largest count of a child that needs protection.

    Raises:
        ValueError: freq has another length, or coalition is negative or not a number.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]), (2, 3))
    >>> disclosing_differences(x, np.array([4, 3, 1])).matrix.indices
    array([1], dtype=int32)
    """
    count = np.asarray(freq, dtype=np.float64)
    if count.shape != (x.columns,):
        raise ValueError("one count for each cell is needed")
    if not coalition >= 0:
        raise ValueError("coalition must not be negative")
    indptr, indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    row_start, row_cells = _by_rows(indptr, indices, x.rows)
    met, stamp = np.zeros(x.columns, np.int32), np.full(x.columns, -1, np.int64)
    pairs, parent = [np.empty((0, 2), np.int64)], 0
    while parent < x.columns:
        found = np.empty((max(_ROOM, x.columns), 2), np.int64)
        parent, n = _disclosing_pairs(
            indptr, indices, row_start, row_cells, count, coalition, upper_bound, parent, met, stamp, found
        )
        pairs.append(found[:n].copy())
    return _differences(x, np.concatenate(pairs))


def direct_disclosure_order(freq: NDArray[np.number], secondary_zeros: float = 1) -> NDArray[np.int64]:
    """All cells, the one most worth publishing first: by count, with empty cells in the place of ``secondary_zeros``
    and smaller counts behind them; before all others if that is 0. Equal ones keep the order of the columns.

    >>> direct_disclosure_order(np.array([0, 1, 5, 2, 0])).tolist()
    [2, 3, 0, 4, 1]
    """
    count = np.asarray(freq, dtype=np.float64)
    score = np.where(count == 0, secondary_zeros, np.where(count <= secondary_zeros, count - 1, count))
    if not secondary_zeros and len(score):
        score[count == 0] += 0.01 + score.max()
    return np.argsort(-score, kind="stable").astype(np.int64)


def _by_rows(indptr: Array, indices: Array, rows: int) -> tuple[Array, Array]:
    """The cells of each inner cell, ascending."""
    cell = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    start = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=rows))]).astype(np.int64)
    return start, cell[np.argsort(indices, kind="stable")]


@njit(cache=True, nogil=True)
def _disclosing_pairs(
    indptr: Array,
    indices: Array,
    row_start: Array,
    row_cells: Array,
    count: Array,
    coalition: float,
    upper_bound: float,
    first: int,
    met: Array,
    stamp: Array,
    found: Array,
) -> tuple[int, int]:
    """Writes the pairs (parent, child) from parent ``first`` on; returns the next parent and the number of pairs.

    One parent at a time, so that no more than its own overlaps are held; ``met`` and ``stamp`` are its scratch.
    """
    n = 0
    for parent in range(first, len(count)):
        if n + len(count) > len(found):
            return parent, n
        size = indptr[parent + 1] - indptr[parent]
        if count[parent] <= 0 or count[parent] - upper_bound > coalition:
            continue
        begin = n
        for e in range(indptr[parent], indptr[parent + 1]):
            for i in range(row_start[indices[e]], row_start[indices[e] + 1]):
                child = row_cells[i]
                if stamp[child] != parent:
                    stamp[child] = parent
                    met[child] = 0
                met[child] += 1
                inside = met[child] == indptr[child + 1] - indptr[child] and met[child] < size
                if inside and 0 < count[child] <= upper_bound and count[parent] - count[child] <= coalition:
                    found[n, 0], found[n, 1] = parent, child
                    n += 1
        found[begin:n, 1].sort()
    return len(count), n


def _differences(x: DummyMatrix, pairs: Array) -> Differences:
    """The columns x_parent - x_child of the pairs, without repeats (by two random 62-bit sums)."""
    marks = np.random.default_rng(20220921).integers(1, 2**62, (2, x.rows))
    totals = np.column_stack([np.asarray(x.totals(mark), np.int64) for mark in marks])
    sums = totals[pairs[:, 0]] - totals[pairs[:, 1]]
    _, first = np.unique(sums, axis=0, return_index=True)
    pairs = pairs[np.sort(first)]
    members = [
        np.setdiff1d(x.indices[x.indptr[p] : x.indptr[p + 1]], x.indices[x.indptr[c] : x.indptr[c + 1]], True)
        for p, c in pairs.tolist()
    ]
    indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in members])]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32)
    return Differences(DummyMatrix(indptr, indices, x.rows), pairs[:, 0])
