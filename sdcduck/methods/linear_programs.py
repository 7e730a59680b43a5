"""Linear programs in HiGHS, without a word on standard output, which may be somebody's pipe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import highspy, scipy

Floats = NDArray[np.float64]

_LARGEST_SIDE = 1e6  # beyond it a block is scaled: the tolerances of the solver are absolute


def quiet_highs() -> highspy.Highs:
    """A solver that prints nothing, on one thread: the problems run side by side."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    # Either option should do, but the solver looks at the one in some places and at the other in the rest.
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("log_to_console", False)
    # The number of threads is a setting of the whole process that HiGHS does not change later: it is left alone.
    highs.setOptionValue("parallel", "off")
    return highs


class Unsolved(RuntimeError):
    """A linear program whose end the solver does not find, even from the start."""


def scale_of(sides: Floats) -> float:
    """Large values are scaled: the tolerances of the solver are absolute."""
    return max(1.0, float(np.abs(sides[np.isfinite(sides)]).max(initial=0.0)) / _LARGEST_SIDE)


def linear_program(
    matrix: scipy.sparse.csr_matrix, least: Floats, most: Floats, low: Floats, high: Floats, cost: Floats | None = None
) -> highspy.HighsLp:
    """The variables between ``low`` and ``high`` of least cost (0 if not given), whose sums by the rows of the matrix
    lie between ``least`` and ``most``."""
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = np.zeros(matrix.shape[1]) if cost is None else cost
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_, lp.row_upper_ = least, most
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    return lp


def solve(highs: highspy.Highs) -> tuple[float, Floats]:
    """The optimum and where it is attained; minus infinity without bound."""
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kUnbounded:
        return -np.inf, np.zeros(0)
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise ValueError("no inner values within the bounds agree with the published cells")
    if status != highspy.HighsModelStatus.kOptimal:
        raise Unsolved(f"HiGHS ended with {highs.modelStatusToString(status)}")
    point = np.asarray(highs.getSolution().col_value, dtype=np.float64)
    return float(highs.getInfo().objective_function_value), point
