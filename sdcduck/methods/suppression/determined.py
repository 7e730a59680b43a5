"""Which suppressed cells are given away exactly, found without their intervals: one linear program for all of them.

From the true inner values an attacker's other solutions differ by directions that no published cell sees and that do
not fall where the value is 0. Where no such direction rises, the 0 is known; a cell is known exactly if it follows from
the published cells and these zeros. (They are the implicit equalities of the attacker's polyhedron; the rest of it has
an interior, in which a cell is constant only if it follows from its equations.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.linear_programs import linear_program, quiet_highs, solve
from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression.checked import flags
from sdcduck.methods.suppression.matrix import DummyMatrix, classes, row_keys
from sdcduck.methods.suppression.nullspace import modular_null_space, reveals_modular

Booleans = NDArray[np.bool_]


def determined(x: DummyMatrix, y: ArrayLike, suppressed: ArrayLike) -> Booleans:
    """The suppressed cells with one possible value, as no inner value is negative; bool (N,).

    `audit` calls a cell exact for an interval that is narrower than one half, too: of such cells only those without any
    width are found here.

    Args:
        x: n inner cells x N cells.
        y: numbers (n,), at least 0, the inner values.
        suppressed: bool (N,).

    Raises:
        ValueError: wrong lengths, or negative or not finite inner values.
    """
    inner = np.asarray(y, dtype=np.float64)
    if inner.shape != (x.rows,) or not np.isfinite(inner).all() or (inner < 0).any():
        raise ValueError(f"the inner values must be {x.rows} finite numbers, none of them negative")
    hidden = flags(suppressed, x.columns, "suppressed")
    matrix = x.sparse()
    kept = np.flatnonzero(~_known_zeros(matrix[:, np.flatnonzero(~hidden)].tocsr(), inner == 0))
    open_part = matrix[kept].tocsc()
    remaining = DummyMatrix(open_part.indptr.astype(np.int64), open_part.indices.astype(np.int32), len(kept))
    # A cell of known zeros only is nothing to eliminate.
    empty = np.diff(remaining.indptr) == 0
    space = modular_null_space(remaining, ~hidden & ~empty)
    known: Booleans = hidden & empty
    known[reveals_modular(space, remaining, hidden & ~empty)] = True
    return known


def _known_zeros(published: scipy.sparse.csr_matrix, zero: Booleans) -> Booleans:
    """The inner cells of 0 that are 0 in every solution; bool (n,)."""
    rng = np.random.default_rng(20010501)
    # Rows in the same published cells are one variable, which can fall where one of them can.
    first, label = classes(row_keys(published, rng))
    falls = np.zeros(len(first), dtype=np.bool_)
    falls[label[~zero]] = True
    watched = np.flatnonzero(~falls)
    restrictions = published[first].T.tocsr()
    head, _ = classes(row_keys(restrictions, rng))
    restrictions = restrictions[head[np.diff(restrictions.indptr)[head] > 0]]
    if not len(watched) or not restrictions.shape[0]:
        return np.zeros(len(zero), dtype=np.bool_)
    # A direction can be as long as one likes: what rises at all rises by 1, and all that can rise do so together.
    nothing = np.zeros(restrictions.shape[0])
    low = np.concatenate([np.where(falls, -np.inf, 0.0), np.zeros(len(watched))])
    high = np.concatenate([np.full(len(first), np.inf), np.ones(len(watched))])
    both = scipy.sparse.hstack([restrictions, restrictions[:, watched]]).tocsr()
    cost = np.concatenate([np.zeros(len(first)), np.full(len(watched), -1.0)])
    highs = quiet_highs()
    highs.passModel(linear_program(both, nothing, nothing, low, high, cost))
    _, point = solve(highs)
    known = np.zeros(len(first), dtype=np.bool_)
    known[watched] = point[len(first) :] < 0.5
    return np.asarray(known[label])
