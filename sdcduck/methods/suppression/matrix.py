"""Which inner cells a cell of a publication is the sum of: the sparse 0/1 matrix X, kept by columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sdcduck.methods.numerics import scipy


@dataclass(frozen=True)
class DummyMatrix:
    """The dummy matrix X of a set of linked tables: rows are inner cells, columns are publishable cells.

    Column c holds the inner cells ``indices[indptr[c]:indptr[c + 1]]``, ascending and without repeats; each has the
    value 1, so the cells are z = X'y for inner values y (Langsrud and Bøvelstad 2022, section 2).
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    rows: int

    @property
    def columns(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def from_pairs(cls, rows: NDArray[np.integer], columns: NDArray[np.integer], shape: tuple[int, int]) -> DummyMatrix:
        """The matrix of (inner cell, cell) pairs, in any order; a pair that comes twice counts once."""
        n_rows, n_columns = shape
        if len(rows) and (rows.min() < 0 or rows.max() >= n_rows or columns.min() < 0 or columns.max() >= n_columns):
            raise ValueError("a pair lies outside the matrix")
        code = np.unique(columns.astype(np.int64) * n_rows + rows)
        indptr = np.zeros(n_columns + 1, dtype=np.int64)
        if n_rows:
            np.cumsum(np.bincount(code // n_rows, minlength=n_columns), out=indptr[1:])
        return cls(indptr, (code % max(n_rows, 1)).astype(np.int32), n_rows)

    def take(self, chosen: NDArray[np.integer]) -> DummyMatrix:
        """The matrix of these columns, in this order."""
        size = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        place = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], size)
        return DummyMatrix(indptr, self.indices[place], self.rows)

    def beside(self, other: DummyMatrix) -> DummyMatrix:
        """The columns of this matrix, then those of another one over the same inner cells.

        Raises:
            ValueError: the other one is about another number of inner cells.
        """
        if other.rows != self.rows:
            raise ValueError("the extra columns are about another number of inner cells")
        indptr = np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]])
        return DummyMatrix(indptr, np.concatenate([self.indices, other.indices]), self.rows)

    def sparse(self, dtype: DTypeLike = np.float64) -> scipy.sparse.csc_matrix:
        """The same as a matrix of scipy."""
        return scipy.sparse.csc_matrix(
            (np.ones(len(self.indices), dtype), self.indices, self.indptr), shape=(self.rows, self.columns)
        )

    def totals(self, y: NDArray[np.generic]) -> NDArray[np.generic]:
        """X'y: the value of each cell, exact for integers; floating-point values are added up cell by cell."""
        if np.issubdtype(y.dtype, np.floating):
            column = np.repeat(np.arange(self.columns), np.diff(self.indptr))
            floats: NDArray[np.generic] = np.bincount(column, weights=y[self.indices], minlength=self.columns)
            return floats
        sums = np.concatenate([np.zeros(1, dtype=y.dtype), np.cumsum(y[self.indices], dtype=y.dtype)])
        result: NDArray[np.generic] = sums[self.indptr[1:]] - sums[self.indptr[:-1]]
        return result


def row_keys(matrix: scipy.sparse.spmatrix, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Two random 64-bit sums for each row of a 0/1 matrix: rows are equal when both are (2^-128 a pair otherwise)."""
    ones = scipy.sparse.csr_matrix(
        (np.ones(len(matrix.indices), dtype=np.uint64), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    weights = rng.integers(0, 2**64, size=(matrix.shape[1], 2), dtype=np.uint64)
    return np.column_stack([ones @ weights[:, 0], ones @ weights[:, 1]])


def classes(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Equal rows of keys: the first row of each class, and the class of each row."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.lexsort(keys.T)
    new = np.r_[True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1)]
    label = np.empty(len(keys), dtype=np.int64)
    label[order] = np.cumsum(new) - 1
    return order[new], label
