"""The columns of a matrix under elimination, with the pools that they live in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression import residuals
from sdcduck.methods.suppression.residuals import CANDIDATE, PRIMARY

Ints = NDArray[np.int64]
Array = NDArray[Any]


class Elimination:
    """The columns of a matrix under elimination, with the pools they live in.

    kind: GONE, CANDIDATE or PRIMARY of each column, whose entries are 1. Rows from ``free_rows`` on are singletons and
    get pivots in order.
    """

    def __init__(
        self,
        indptr: Ints,
        indices: NDArray[np.int32],
        rows: int,
        kind: NDArray[np.int8],
        *,
        free_rows: int | None = None,
        owner: Ints | None = None,
        space: bool = False,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng((20220921, seed))
        columns = len(indptr) - 1
        self.free_rows = rows if free_rows is None else free_rows
        self.columns = np.zeros(columns, residuals.COLUMN)
        self.columns["kind"] = kind
        if owner is not None:
            self.columns["owner"] = owner
        self.rows = np.zeros(rows, residuals.ROW)
        weighted = self.free_rows if space else rows
        for name in ("w0", "w1"):
            self.rows[name][:weighted] = rng.integers(1, residuals.PRIME, weighted)
        self.rows["rank"] = np.arange(rows)
        self.entries = np.empty(4 * len(indices) + 64, np.int64)
        self.lists = np.empty(10 * len(indices) + 2 * rows + 64, np.int32)
        self.buckets = np.full(1 << max(columns, 1).bit_length(), -1, np.int32)
        self.scratch = np.empty(rows + 1, np.int64)
        self.out = np.empty(max(columns, 1), np.int32)
        self.shared = np.zeros(8, np.int64)
        residuals.fill(self.columns, self.rows, self.entries, self.lists, indptr, indices)
        self.shared[residuals.ENTRIES_END] = len(indices)
        self.shared[residuals.LISTS_END] = self.rows["capacity"].sum()
        self.shared[residuals.FREE_ROWS] = self.free_rows
        self.shared[residuals.SPACE] = self.free_rows if space else 0

    def copy(self) -> Elimination:
        """An independent copy with the order of the singleton rows reversed."""
        other = object.__new__(Elimination)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        other.rows["rank"] = -other.rows["rank"]
        return other

    @property
    def store(self) -> tuple[Array, Array, Array, Array, Array]:
        """What the compiled functions work on."""
        return self.columns, self.rows, self.entries, self.lists, self.buckets

    def live(self) -> NDArray[np.int32]:
        kind = self.columns["kind"]
        return np.flatnonzero((kind == CANDIDATE) | (kind == PRIMARY)).astype(np.int32)

    def start_merging(self) -> None:
        """From now on proportional columns are found and merged."""
        self.shared[residuals.KEYED] = 1
        residuals.rekey(self.columns, self.rows, self.entries, self.buckets, self.live(), self.shared[residuals.SPACE])

    def make_room(self, status: int) -> None:
        """Moves a full pool to one that is twice what is needed now."""
        room = int(self.shared[residuals.ROOM])
        if status == residuals.ENTRIES_FULL:
            kind = self.columns["kind"]
            needed = (kind == CANDIDATE) | (kind == PRIMARY)
            size = max(len(self.entries), 2 * (int(self.columns["length"][needed].sum()) + room))
            pool = np.empty(size, np.int64)
            end = residuals.pack_columns(self.columns, self.entries, pool)
            self.entries, self.shared[residuals.ENTRIES_END] = pool, end
        else:
            size = max(len(self.lists), 2 * (int(self.rows["length"].sum()) + 2 * len(self.rows) + room))
            lists = np.empty(size, np.int32)
            end = residuals.pack_lists(self.columns, self.rows, self.lists, lists)
            self.lists, self.shared[residuals.LISTS_END] = lists, end

    def publish(self, c: int) -> None:
        """Publishes column c: one pivot row less for all others."""
        while status := residuals.eliminate(*self.store, self.scratch, self.out, self.shared, c):
            self.make_room(status)

    def refuse(self, c: int) -> None:
        """A candidate of what column c stands for is suppressed because of singletons."""
        residuals.refuse(self.columns, self.rows, self.entries, self.buckets, c)

    def delete_rows(self, rows: Ints) -> None:
        """These inner cells count as known from now on."""
        residuals.delete_rows(*self.store, self.out, self.shared, rows)

    def rows_left(self, c: int) -> Ints:
        """The rows of what is left of column c; none if it is determined or suppressed by a singleton."""
        c = residuals.find(self.columns, c)
        if self.columns["kind"][c] not in (CANDIDATE, PRIMARY):
            return np.empty(0, np.int64)
        left: Ints = residuals.rows_of(self.columns, self.entries, c)
        return left
