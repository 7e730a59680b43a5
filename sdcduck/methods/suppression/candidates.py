"""In which order cells are published as long as nothing forbids it: the most useful ones first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression.matrix import DummyMatrix

_TIE = 0.99  # a tie-breaker never overtakes the next whole number
_ZERO_WEIGHT = 1e-20


def candidate_order(
    x: DummyMatrix,
    freq: NDArray[np.float64],
    *,
    weight: NDArray[np.float64] | None = None,
    value: NDArray[np.float64] | None = None,
    records: NDArray[np.int64] | None = None,
    secondary_zeros: bool = False,
) -> NDArray[np.int64]:
    """All cells, the one most worth publishing first (as the R package GaussSuppression orders them).

    The score of a cell is (freq + 1) w, or |value| w for magnitudes, plus 0.99 of how much it overlaps with other cells
    of a high score, |X'X s| / max |X'X s|, with a row of X for each of the ``records``. Equal scores keep the order of
    the columns.

    Args:
        x: m x n matrix of the cells.
        freq: float64 (n,), counts of the cells.
        weight: float64 (n,), what publishing a cell is worth; None: 1. Negative ones count as 0.
        value: float64 (n,), magnitudes of the cells; None: a frequency table.
        records: int64 (m,), how many records an inner cell is taken for, at least 1; None: 1.
        secondary_zeros: whether cells of count 0 may be suppressed; otherwise they come before all others.

    Returns:
        int64 (n,), columns of x.
    """
    if len(freq) != x.columns:
        raise ValueError("one count for each cell is needed")
    if x.columns == 0:
        return np.empty(0, dtype=np.int64)
    one_more = np.where(freq + 1 <= 0, freq, freq + 1)  # the reference takes no 1 from negative counts
    share = np.ones(x.columns) if weight is None else np.maximum(weight, 0.0)
    if value is not None:
        share = np.abs(value / one_more) * share
    if share.min() == 0:
        share = share + share.max() * _ZERO_WEIGHT
    size = one_more * share
    lengths = np.diff(x.indptr)
    column = np.repeat(np.arange(x.columns), lengths)
    by_row = np.bincount(x.indices, weights=size[column], minlength=x.rows)
    if records is not None:
        by_row = by_row * np.maximum(records, 1)
    tie = np.abs(np.bincount(column, weights=by_row[x.indices], minlength=x.columns))
    score = np.abs(size) + _TIE * (tie / tie.max() if tie.max() > 0 else tie)
    if not secondary_zeros:
        empty = freq == 0
        score[empty] += 0.01 + score.max()
    return np.argsort(-score, kind="stable").astype(np.int64)
