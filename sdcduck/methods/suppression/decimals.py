"""Synthetic decimal numbers: random inner values whose sum is whole, and true, exactly for what a publication tells.

Langsrud and Bøvelstad (2022), "Synthetic decimal numbers as a flexible tool for suppression of post-published tabular
data", PSD: y* = yhat + (I - H) u with the regression of y on the published cells (equations 4 to 8). With a basis N of
the null space of the published cells, I - H = N (N'N)^-1 N', so y* = y + N (N'N)^-1 N' (u - y): published sums are
right whatever the accuracy of the solution. The residuals keep the scale of u: rescaling them to a fixed length, as
RegSDC does, would leave only two possible replicates where one dimension is open (Prop. 5 then fails).
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression.elimination import cell_indices
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import ModularNullSpace, NullSpace, null_space

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE_DIGITS = 9
WHOLE = 10.0**-WHOLE_DIGITS

_LSMR_TURNS, _LSMR_STEPS = 12, 5000


def decimals(
    x: DummyMatrix,
    published: ArrayLike | NullSpace | ModularNullSpace,
    y: NDArray[np.integer] | None = None,
    *,
    replicates: int = 3,
    sigma: float = pi / 3,
    seed: int = 0,
    check: Callable[[], object] = lambda: None,
) -> Floats:
    """m x replicates decimal numbers for the published cells (mask, indices, or their null space) of an m x N matrix.

    y: m inner counts (frequency mode: published sums are the true counts); None for zero mode, where they are 0, the
    mode for magnitudes. sigma: standard deviation of u. With the null space the projection is direct; with cells alone
    it is iterative (LSMR); with a modular null space it is direct if whole numbers of 64 bits suffice for a basis.
    check: called now and then in long work; what it raises ends it.
    ValueError if the iterative projection does not come so far that the published sums are right to nine digits.
    """
    if replicates < 1:
        raise ValueError("at least one replicate is needed")
    if not sigma > 0:
        raise ValueError("sigma must be positive")
    truth = np.zeros(x.rows) if y is None else np.asarray(y, dtype=np.float64)
    if truth.shape != (x.rows,):
        raise ValueError("one count for each inner cell is needed")
    if not np.isfinite(truth).all():
        raise ValueError("counts must be finite")
    noise = np.random.default_rng((2022, seed)).standard_normal((x.rows, replicates)) * sigma
    change = residual_of(x, published, noise - truth[:, None], check)
    return _rounded_where_whole(truth[:, None] + change)


def residual_of(
    x: DummyMatrix,
    published: ArrayLike | NullSpace | ModularNullSpace,
    values: Floats,
    check: Callable[[], object] = lambda: None,
) -> Floats:
    """(I - H) v for every column v of the m x r values: what the published cells do not explain of it."""
    if isinstance(published, ModularNullSpace):
        try:
            return _projected(null_space(x, published, check), values, check)
        except ArithmeticError:
            published = published.published
    if isinstance(published, NullSpace):
        return _projected(published, values, check)
    return _projected_iteratively(x, cell_indices("published", published, x.columns), values, check)


def _projected(space: NullSpace, values: Floats, check: Callable[[], object]) -> Floats:
    """N (N'N)^-1 N' v, with the columns of N brought to length 1."""
    if not space.dimension:
        return np.zeros_like(values)
    basis = space.basis.astype(np.float64)
    length = np.sqrt(np.asarray(basis.multiply(basis).sum(axis=0)).ravel())
    basis = scipy.sparse.csc_array(basis @ scipy.sparse.diags_array(1 / length))
    gram = scipy.sparse.csc_array(basis.T @ basis)
    check()  # the factorisation cannot be stopped: asked before it begins
    factors = scipy.sparse.linalg.splu(
        gram, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    result: Floats = basis @ factors.solve(basis.T @ values)
    # One step of refinement: the solution of badly scaled bases gets most of its digits back.
    result += basis @ factors.solve(basis.T @ (values - result))
    return result


def _projected_iteratively(x: DummyMatrix, published: Ints, values: Floats, check: Callable[[], object]) -> Floats:
    """v - X b by LSMR, on the inner cells that are not published themselves; until X_pub' of it is 0 to nine digits."""
    matrix = x.sparse()
    matrix = matrix[:, published]
    known = np.zeros(x.rows, dtype=bool)
    known[matrix[:, np.flatnonzero(np.diff(matrix.indptr) == 1)].indices] = True
    open_rows = np.flatnonzero(~known)
    matrix = scipy.sparse.csr_array(matrix[open_rows])
    result = np.zeros_like(values)
    for k in range(values.shape[1]):
        result[open_rows, k] = _left_by_lsmr(matrix, values[open_rows, k], check)
    return result


def _left_by_lsmr(matrix: scipy.sparse.csr_array, values: Floats, check: Callable[[], object]) -> Floats:
    """The part of the values that is orthogonal to the columns of the matrix; ValueError if LSMR comes to a halt."""
    rest = values.copy()
    error = np.inf
    for turn in range(_LSMR_TURNS):
        check()
        rest -= matrix @ scipy.sparse.linalg.lsmr(matrix, rest, atol=1e-15, btol=1e-15, maxiter=_LSMR_STEPS)[0]
        error = float(np.abs(matrix.T @ rest).max(initial=0))
        if error < WHOLE and turn >= 2:
            return rest
    raise ValueError(
        f"the decimals of this publication could not be computed: a published sum is off by {error:.1e} after "
        f"{_LSMR_TURNS} projections; publish the stencil instead, which is exact"
    )


def _rounded_where_whole(values: Floats) -> Floats:
    """Whole numbers where a value is whole to nine digits."""
    nearest = np.round(values)
    result: Floats = np.where(nearest == np.round(values, WHOLE_DIGITS), nearest, values)
    return result
