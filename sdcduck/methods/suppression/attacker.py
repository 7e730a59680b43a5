"""The attacker problem in as few variables, restrictions and objectives as give the same intervals.

The attacker knows the published cells and bounds of the inner values, and asks how small and how large each suppressed
cell can be (Fischetti and Salazar 2001, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, linear_program, quiet_highs, scale_of, solve
from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression.deduction import deduce, rounding_error
from sdcduck.methods.suppression.directions import directions
from sdcduck.methods.suppression.matrix import DummyMatrix, classes, row_keys

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

WHOLE = 1e-6


@dataclass(frozen=True)
class Known:
    """What an attacker knows: between which bounds some cells and all inner cells lie.

    columns: int64 (k,), the cells. least, most: float64 (k,), their bounds. low, high: float64 (n,), those of the inner
    cells, which may be infinite.
    """

    columns: Indices
    least: Floats
    most: Floats
    low: Floats
    high: Floats

    @property
    def bounds(self) -> Floats:
        """Those of the inner cells that are numbers."""
        return np.concatenate([self.low[np.isfinite(self.low)], self.high[np.isfinite(self.high)]])

    @property
    def whole(self) -> bool:
        """Are all of these whole numbers?"""
        return all(bool(np.all(v == np.rint(v))) for v in (self.least, self.most, self.bounds))

    @cached_property
    def error(self) -> float:
        """What sums of these may be off by."""
        return rounding_error(np.concatenate([self.least, self.most, self.bounds]))


@dataclass(frozen=True)
class Variables:
    """Classes of inner cells whose values are not known, counted from their lower bounds.

    rows: how many inner cells each has. low, high: its bounds. restrictions: restrictions x variables; least, most:
    their bounds. cells: variables x cells asked for: how many inner cells of the class are in the cell. base: what the
    values that are counted from add to the cells asked for.
    """

    rows: Indices
    low: Floats
    high: Floats
    restrictions: scipy.sparse.csr_matrix
    least: Floats
    most: Floats
    cells: scipy.sparse.csr_matrix
    base: Floats


@dataclass(frozen=True)
class Solutions:
    """What solves the equations: point + basis t, where every direction (column of the basis) has a variable of its own
    with the coefficient 1."""

    equations: scipy.sparse.csr_matrix  # equations x variables
    point: Floats
    basis: scipy.sparse.csr_matrix  # variables x directions
    block: Indices  # of each direction
    ranged: scipy.sparse.csr_matrix  # sums of variables that are known to within bounds only
    ranges: scipy.sparse.csr_matrix  # the same in directions
    range_low: Floats  # less the value at the point
    range_high: Floats


@dataclass(frozen=True)
class Objectives:
    """The parts of the cells asked for within single blocks: sums of variables of one block."""

    sets: scipy.sparse.csr_matrix  # objectives x variables
    block: Indices
    want: tuple[Booleans, Booleans]  # whether its minimum and its maximum are asked for
    parts: tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]  # cells x objectives: whose minima and maxima add up
    base: tuple[Floats, Floats]  # what the determined inner values add to the minimum and the maximum of each cell


@dataclass(frozen=True)
class Problem:
    """The attacker problem, reduced; ``found`` has the minima and maxima of the objectives as far as they are known."""

    variables: Variables
    solutions: Solutions
    objectives: Objectives
    bound: tuple[Floats, Floats]  # what no solution of an objective can pass
    found: tuple[Floats, Floats]
    whole: bool

    def intervals(self) -> tuple[Floats, Floats]:
        ends = []
        for side in (0, 1):
            extreme = np.where(self.objectives.want[side], self.found[side], 0.0)
            unbounded = np.isinf(extreme)
            total = self.objectives.base[side] + self.objectives.parts[side] @ np.where(unbounded, 0.0, extreme)
            total[(self.objectives.parts[side] @ unbounded.astype(np.float64)) > 0] = np.inf if side else -np.inf
            if self.whole:
                finite = np.where(np.isinf(total), 0.0, total)
                near = np.isfinite(total) & (np.abs(finite - np.rint(finite)) < WHOLE)
                total[near] = np.rint(total[near])
            ends.append(total)
        lo, hi = ends
        return np.minimum(lo, hi), np.maximum(lo, hi)  # NaN where either end is


def reduced(matrix: scipy.sparse.csc_matrix, known: Known, targets: Indices) -> Problem:
    """State the attacker problem in as few variables, restrictions and objectives as give the same intervals.

    Raises:
        ValueError: no inner values within the bounds agree with the published cells.
    """
    rng = np.random.default_rng(20010501)
    variables = _variables(matrix, known, targets, rng)
    solutions = _solutions(variables, known.error)
    objectives = _objectives(variables, solutions, rng)
    # Bounds that save linear programs: a solution that attains them is optimal.
    bound = _plain_bounds(
        objectives.sets, variables.restrictions, variables.least, variables.most, variables.low, variables.high
    )
    found = (np.full(len(objectives.block), np.inf), np.full(len(objectives.block), -np.inf))
    return Problem(variables, solutions, objectives, bound, found, known.whole)


def _variables(matrix: scipy.sparse.csc_matrix, known: Known, targets: Indices, rng: np.random.Generator) -> Variables:
    """What is left once inner cells are fixed that single restrictions determine, and equal ones stand together."""
    low, high = known.low, known.high
    by_column = matrix[:, known.columns]
    by_row = by_column.tocsr()
    fixed, value = deduce(
        by_column.indptr, by_column.indices, by_row.indptr, by_row.indices, known.least, known.most, low, high,
        known.error,
    )  # fmt: skip
    beyond = 1e-6 * np.maximum(1.0, np.abs(value)) + known.error
    _agree(~(fixed & ((value < low - beyond) | (value > high + beyond))))

    # Values are counted from the lower bound, where there is one.
    start = np.where(fixed, value, np.where(np.isfinite(low), low, 0.0))
    rows = np.flatnonzero(~fixed)
    open_rows = by_row[rows]
    target_rows = matrix[:, targets].tocsr()[rows]

    # Rows in the same restrictions are one variable. What a class of rows without upper bounds adds up to may lie in
    # any of them, so a cell gets all of it in its maximum and, unless it has all rows, nothing in its minimum. Other
    # rows must agree in the cells asked for, too.
    free = np.isfinite(low[rows]) & np.isinf(high[rows])
    keys = row_keys(open_rows, rng)
    target_keys = np.where(free[:, None], np.uint64(0), row_keys(target_rows, rng) | np.uint64(1))
    first, label = classes(np.column_stack([keys, target_keys]))
    member = scipy.sparse.csr_matrix((np.ones(len(rows)), (label, np.arange(len(rows)))), shape=(len(first), len(rows)))
    restrictions, least, most = _restrictions(open_rows[first].T.tocsr(), known, by_column.T @ start, rng)
    return Variables(
        np.bincount(label, minlength=len(first)),
        member @ np.where(np.isfinite(low[rows]), 0.0, -np.inf),
        member @ (high[rows] - start[rows]),
        restrictions,
        least,
        most,
        member @ target_rows,
        matrix[:, targets].T @ start,
    )


def _agree(right: Booleans) -> None:
    if not right.all():
        raise ValueError("no inner values within the bounds agree with the published cells")


def _restrictions(
    restrictions: scipy.sparse.csr_matrix, known: Known, taken: Floats, rng: np.random.Generator
) -> tuple[scipy.sparse.csr_matrix, Floats, Floats]:
    """The restrictions that say anything, equal ones once, with the tightest of their bounds."""
    low, high = known.least - taken, known.most - taken
    lengths = np.diff(restrictions.indptr)
    off = 1e-6 * np.maximum(1.0, np.abs(known.most)) + known.error
    _agree(~((lengths == 0) & ((low > off) | (high < -off))))
    kept = np.flatnonzero(lengths)
    restrictions, low, high = restrictions[kept], low[kept], high[kept]
    head, same = classes(row_keys(restrictions, rng))
    least, most = low[head].copy(), high[head].copy()
    np.maximum.at(least, same, low)
    np.minimum.at(most, same, high)
    _agree(~(least > most + 1e-6 * np.maximum(1.0, np.abs(most)) + known.error))
    return restrictions[head], np.minimum(least, most), most


def _solutions(variables: Variables, error: float) -> Solutions:
    """What solves the equations: a feasible point and directions. A variable without a direction is determined."""
    restrictions, least, most = variables.restrictions, variables.least, variables.most
    # Sums of decimals may contradict each other by their rounding.
    point = _feasible_point(restrictions, least - error, most + error, variables.low, variables.high)
    is_equation = least == most
    equations = restrictions[np.flatnonzero(is_equation)]
    basis = _directions(equations)
    ranged = restrictions[np.flatnonzero(~is_equation)]
    ranges = (ranged @ basis).tocsr()
    links = scipy.sparse.vstack([basis, ranges])
    _, label = scipy.sparse.csgraph.connected_components(
        scipy.sparse.bmat([[None, links], [links.T, None]], format="csr"), directed=False
    )
    block = label[links.shape[0] :].astype(np.int64)
    at_point = ranged @ point
    range_low, range_high = least[~is_equation] - at_point, most[~is_equation] - at_point
    return Solutions(equations, point, basis, block, ranged, ranges, range_low, range_high)


def _objectives(variables: Variables, solutions: Solutions, rng: np.random.Generator) -> Objectives:
    """The part of each cell within each block: minima and maxima of the blocks add up, and equal parts count once."""
    basis, block = solutions.basis, solutions.block
    count, asked = len(variables.rows), len(variables.base)
    moving = np.flatnonzero(np.diff(basis.indptr))
    variable_block = np.full(count, -1, dtype=np.int64)
    variable_block[moving] = block[basis.indices[basis.indptr[moving]]]

    share = variables.cells.tocoo()
    in_min = share.data >= variables.rows[share.row]
    cell = np.concatenate([share.col[in_min], share.col + asked]).astype(np.int64)
    variable = np.concatenate([share.row[in_min], share.row]).astype(np.int64)
    still = variable_block[variable] < 0
    constant: Floats = np.bincount(cell[still], solutions.point[variable[still]], 2 * asked).astype(
        np.float64, copy=False
    )
    cell, variable = cell[~still], variable[~still]
    blocks = int(block.max(initial=0)) + 1
    part_code, part = np.unique(cell * blocks + variable_block[variable], return_inverse=True)
    sets = scipy.sparse.csr_matrix((np.ones(len(part)), (part, variable)), shape=(len(part_code), count))
    sets.sum_duplicates()
    chosen, objective = classes(row_keys(sets, rng))
    part_cell = part_code // blocks
    parts, want = [], []
    for side in (0, 1):
        mine = (part_cell >= asked) == bool(side)
        index = (part_cell[mine] - side * asked, objective[mine])
        parts.append(scipy.sparse.csr_matrix((np.ones(int(mine.sum())), index), shape=(asked, len(chosen))))
        wanted = np.zeros(len(chosen), dtype=np.bool_)
        wanted[objective[mine]] = True
        want.append(wanted)
    return Objectives(
        sets[chosen],
        (part_code % blocks)[chosen],
        (want[0], want[1]),
        (parts[0], parts[1]),
        (variables.base + constant[:asked], variables.base + constant[asked:]),
    )


def _feasible_point(
    restrictions: scipy.sparse.csr_matrix, least: Floats, most: Floats, low: Floats, high: Floats
) -> Floats:
    """Values of the variables that agree with all that is known."""
    variables = restrictions.shape[1]
    nearest = np.clip(np.zeros(variables), low, high)
    if not restrictions.shape[0]:
        return nearest
    scale = scale_of(np.concatenate([least, most]))
    highs = quiet_highs()
    highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
    highs.passModel(linear_program(restrictions, least / scale, most / scale, low / scale, high / scale))
    _, point = solve(highs)
    return np.clip(point * scale, low, high)


def _directions(equations: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """A sparse basis of the vectors that the equations do not see, each with a coefficient 1 that no other shares."""
    as_columns = DummyMatrix(equations.indptr.astype(np.int64), equations.indices.astype(np.int32), equations.shape[1])
    basis = directions(as_columns).tocsr()
    error = np.abs(equations @ basis)
    if np.isnan(basis.data).any() or (error.nnz and error.data.max() > 1e-9):
        raise Unsolved("the equations of the published cells have no small rational solution")
    basis.sort_indices()
    return basis


def _plain_bounds(
    objectives: scipy.sparse.csr_matrix,
    restrictions: scipy.sparse.csr_matrix,
    least: Floats,
    most: Floats,
    low: Floats,
    high: Floats,
) -> tuple[Floats, Floats]:
    """Bounds of the objectives that follow from the bounds of variables and from one restriction each."""
    signed = restrictions @ np.isinf(low).astype(np.float64) == 0  # all variables of the restriction are >= 0
    cap = high.copy()
    entries = restrictions.tocoo()
    usable = signed[entries.row]
    np.minimum.at(cap, entries.col[usable], most[entries.row[usable]])
    unbounded_low = objectives @ np.isinf(low).astype(np.float64) > 0
    unbounded_high = objectives @ np.isinf(cap).astype(np.float64) > 0
    bottom = np.where(unbounded_low, -np.inf, 0.0)
    top = np.where(unbounded_high, np.inf, objectives @ np.where(np.isinf(cap), 0.0, cap))
    common = (objectives @ restrictions.T).tocoo()
    if common.nnz:
        length = np.diff(objectives.indptr)
        covered = (common.data >= length[common.row]) & signed[common.col]
        np.minimum.at(top, common.row[covered], most[common.col[covered]])
        whole_row = common.data >= np.diff(restrictions.indptr)[common.col]
        inside = whole_row & ~unbounded_low[common.row]
        np.maximum.at(bottom, common.row[inside], least[common.col[inside]])
    return bottom, top
