"""The cheapest secondary suppression of a small publication, by integer programming.

Cutting planes of Fischetti and Salazar (2000, "Models and algorithms for optimizing cell suppression in tabular data
with linear constraints", JASA 95): a master program over the cells to suppress, and for each primary cell and side
the attacker problem, whose dual solution is a cut when the cell is not protected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.linear_programs import Unsolved, linear_program, quiet_highs
from sdcduck.methods.numerics import highspy, scipy
from sdcduck.methods.suppression.checked import amounts, flags
from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_SHORT = 1e-6  # relative: what a protection level may be missed by
_LINEAR_ROUNDS = 200
_SUPPORT = 1e-7
_START = 10  # iterations that setting up a program is worth
_INTEGRAL = 6  # what an iteration of integer programming takes, in those of a linear program
_NODE = 200  # iterations for each node of its tree, more or less
_LINEAR = 1 / 5  # the part of the steps that may go before it begins: what takes longer is hardly ever done in time


@dataclass(frozen=True)
class OptimalPattern:
    """The pattern found, and how far it may be from the optimum.

    Attributes:
        suppressed: bool (N,), primary and secondary cells.
        objective: sum of the costs of these cells.
        bound: no pattern that protects all primary cells costs less.
        gap: (objective - bound) / objective, 0 when optimal.
        status: ``optimal``; ``time limit``, or one of steps: a pattern that protects but may not be the cheapest;
            ``infeasible``: no pattern protects the primary cells, ``suppressed`` then holds all cells that may be
            suppressed.
        steps: what was done, as the argument ``steps`` counts it.
    """

    suppressed: Booleans
    objective: float
    bound: float
    gap: float
    status: Literal["optimal", "time limit", "infeasible"]
    steps: int = 0


def optimal_suppression(
    x: DummyMatrix,
    y: ArrayLike,
    primary: ArrayLike,
    upl: ArrayLike,
    lpl: ArrayLike | None = None,
    *,
    cost: ArrayLike | None = None,
    ineligible: ArrayLike | None = None,
    time_limit: float = 60.0,
    steps: float = np.inf,
    start: ArrayLike | None = None,
    check: Callable[[], object] = lambda: None,
) -> OptimalPattern:
    """The secondary suppressions of least cost that protect every primary cell to its protection levels.

    Protected means: values of the inner cells, none negative, exist that agree with all published cells and put the
    primary cell at or above value + upl, and others that put it at or below value - lpl.

    Args:
        x: n inner cells x N cells.
        y: numbers (n,), at least 0, the inner values.
        primary: bool (N,), the cells to protect.
        upl: numbers (N,), at least 0, upper protection levels, in the unit of the cells; used at primary cells.
        lpl: numbers (N,), lower ones; default the upper ones. A cell cannot fall by more than its value.
        cost: numbers (N,), at least 0, of suppressing a cell; default its value.
        ineligible: bool (N,), cells that must be published; default those with the value 0. Primary cells are
            suppressed in any case.
        time_limit: seconds.
        steps: a limit beside it that is the same on every machine: iterations of the solver times the size of its
            program (`Moves.work`), more or less.
        start: bool (N,), a pattern that is known; where it protects, none dearer is given.
        check: called between the linear programs; what it raises ends the search.

    Raises:
        ValueError: wrong lengths or kinds, negative or not finite numbers.
    """
    inner = amounts(y, x.rows, "the inner values")
    z = np.asarray(x.totals(inner), dtype=np.float64)
    first = flags(primary, x.columns, "primary")
    up = amounts(upl, x.columns, "upper protection levels")
    down = up if lpl is None else amounts(lpl, x.columns, "lower protection levels")
    down = np.minimum(down, z)
    weight = z if cost is None else amounts(cost, x.columns, "costs")
    barred = z == 0 if ineligible is None else flags(ineligible, x.columns, "ineligible")

    ends = time.monotonic() + time_limit
    attacker = _Attacker(x, inner, z, first, up, down, check)
    everything = first | ~barred
    if attacker.cuts(everything.astype(np.float64), np.inf):
        return OptimalPattern(everything, float(weight[everything].sum()), np.inf, 0.0, "infeasible", attacker.work)
    master = _Master(weight, first, everything)
    best = everything
    if start is not None:
        known = flags(start, x.columns, "start") | first
        if not (known & ~everything).any() and not attacker.cuts(known.astype(np.float64), np.inf):
            best = known
    return _searched(attacker, master, weight, first, best, ends, steps, check)


def _searched(
    attacker: _Attacker, master: _Master, weight: Floats, first: Booleans, best: Booleans, ends: float, steps: float,
    check: Callable[[], object],
) -> OptimalPattern:  # fmt: skip
    """Cuts and choices in turn, of parts of cells and then of whole ones, until nothing is cut off any more."""
    bound = 0.0
    for integral in (False, True):
        rounds = 0
        while integral or rounds < _LINEAR_ROUNDS:
            rounds += 1
            check()
            most = (steps if integral else _LINEAR * steps) - master.work
            solved = master.solve(integral, ends - time.monotonic(), most - attacker.work, best)
            if solved is None:
                bound = max(bound, master.bound)
                return _pattern(best, weight, bound, "time limit", attacker.work + master.work)
            chosen, value = np.clip(solved[0], 0.0, 1.0), solved[1]
            bound = max(bound, value)
            cuts = attacker.cuts(np.rint(chosen) if integral else chosen, ends, most)
            if cuts is None:
                return _pattern(best, weight, bound, "time limit", attacker.work + master.work)
            if not cuts:
                # What protects with a part of each cell protects with the whole cells.
                support = chosen > _SUPPORT if not integral else chosen > 0.5
                # What is known may be cheaper by less than the solver can see.
                if _worth(support | first, weight) < _worth(best, weight):
                    best = support | first
                break
            master.add(cuts)
    return _pattern(best, weight, bound, "optimal", attacker.work + master.work)


def _worth(pattern: Booleans, cost: Floats) -> tuple[float, int]:
    """What a pattern costs, and its number of cells: the less the better."""
    return float(cost[pattern].sum()), int(pattern.sum())


def _pattern(
    suppressed: Booleans, cost: Floats, bound: float, status: Literal["optimal", "time limit"], steps: int
) -> OptimalPattern:
    objective = float(cost[suppressed].sum())
    if status == "optimal":
        bound = objective
    gap = (objective - bound) / objective if objective > 0 else 0.0
    return OptimalPattern(suppressed, objective, bound, max(gap, 0.0), status, steps)


@dataclass(frozen=True)
class _Cut:
    """sum of coefficient x suppressed >= level: a necessary condition of protection."""

    cells: NDArray[np.int32]
    coefficients: Floats
    level: float


class _Attacker:
    """How far each primary cell can move from its value when cells are suppressed (in part)."""

    def __init__(
        self,
        x: DummyMatrix,
        y: Floats,
        z: Floats,
        primary: Booleans,
        up: Floats,
        down: Floats,
        check: Callable[[], object],
    ) -> None:
        self.x, self.z, self.up, self.down, self.check = x, z, up, down, check
        self.targets = np.flatnonzero(primary)
        # An inner cell that is a cell of the publication too is bounded as such.
        published = np.zeros(x.rows, dtype=np.bool_)
        alone = np.flatnonzero(np.diff(x.indptr) == 1)
        published[x.indices[x.indptr[alone]]] = True
        self.floor = np.where(published, -np.inf, -y)
        # Values are scaled: the tolerances of the solver are absolute, and deviations are as small as the levels.
        wanted = np.concatenate([up[self.targets], down[self.targets]])
        self.unit = max(1.0, float(wanted.max(initial=0.0))) / 100
        still = np.zeros(x.columns)
        lp = linear_program(x.sparse().T.tocsr(), still, still, self.floor / self.unit, np.full(x.rows, np.inf))
        self.highs = quiet_highs()
        self.highs.setOptionValue("presolve", "off")
        self.highs.setOptionValue("simplex_strategy", 4)
        self.highs.passModel(lp)
        self.size, self.work = x.columns + x.rows, 0
        self.allowed = (np.zeros(x.columns), np.zeros(x.columns))

    def cuts(self, chosen: Floats, ends: float, most: float = np.inf) -> list[_Cut] | None:
        """Conditions that the choice violates; none when it protects all primary cells; None when out of time, or of
        the ``most`` steps that all calls may take together."""
        whole = bool(np.all((chosen == 0) | (chosen == 1)))
        lowest = -self.z * chosen / self.unit
        if whole:
            self._allow(lowest, np.where(chosen > 0, np.inf, 0.0))
        cuts = []
        for target in self.targets:
            self.check()
            rows = self.x.indices[self.x.indptr[target] : self.x.indptr[target + 1]]
            for sign, level in ((1.0, self.up[target]), (-1.0, self.down[target])):
                if level <= 0:
                    continue
                if time.monotonic() > ends or self.work > most:
                    return None
                if not whole:
                    # A cell suppressed in part may rise by that part of the level: that is what its cut counts.
                    self._allow(lowest, level * chosen / self.unit)
                self.highs.changeColsCost(len(rows), rows, np.full(len(rows), -sign))
                cut = self._cut(level / self.unit)
                self.highs.changeColsCost(len(rows), rows, np.zeros(len(rows)))
                if cut is None:
                    continue
                if whole and float(cut.coefficients @ chosen[cut.cells]) >= cut.level * (1 - _SHORT):
                    # Rounding has blunted the cut. What any unsafe pattern lacks is a cell outside of it.
                    outside = np.flatnonzero(chosen == 0).astype(np.int32)
                    cut = _Cut(outside, np.ones(len(outside)), 1.0)
                cuts.append(cut)
        return cuts

    def _allow(self, lowest: Floats, highest: Floats) -> None:
        """Let the cells move by this much."""
        for cell in np.flatnonzero((lowest != self.allowed[0]) | (highest != self.allowed[1])):
            self.highs.changeRowBounds(int(cell), float(lowest[cell]), float(highest[cell]))
        self.allowed = (lowest, highest)

    def _cut(self, level: float) -> _Cut | None:
        self.highs.run()
        self.work += (_START + max(0, self.highs.getInfo().simplex_iteration_count)) * self.size
        status = self.highs.getModelStatus()
        if status == highspy.HighsModelStatus.kUnbounded:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Unsolved(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        if -self.highs.getInfo().objective_function_value >= level * (1 - _SHORT):
            return None
        solution = self.highs.getSolution()
        dual = -np.asarray(solution.row_dual, dtype=np.float64)
        reduced = np.asarray(solution.col_dual, dtype=np.float64)
        floors = np.where(np.isfinite(self.floor), -self.floor / self.unit, 0.0)
        need = level - float(np.maximum(reduced, 0.0) @ floors)
        # A cell with a positive dual may rise without bound once suppressed; no coefficient need exceed the level.
        coefficient = np.where(dual > 1e-9, need, np.maximum(-dual, 0.0) * self.z / self.unit)
        coefficient = np.minimum(coefficient, need)
        cells = np.flatnonzero(coefficient > 1e-9 * need).astype(np.int32)
        return _Cut(cells, coefficient[cells] / need, 1.0)


class _Master:
    """The choice of cells, given the cuts so far."""

    def __init__(self, cost: Floats, primary: Booleans, eligible: Booleans) -> None:
        self.columns = len(cost)
        self.unit = max(float(cost.max(initial=0.0)), 1e-300) / 1000
        nothing = scipy.sparse.csr_matrix((0, self.columns))
        sides = np.zeros(0)
        lp = linear_program(
            nothing, sides, sides, primary.astype(np.float64), eligible.astype(np.float64), cost / self.unit
        )
        self.highs = quiet_highs()
        self.highs.setOptionValue("mip_rel_gap", 0.0)
        self.highs.setOptionValue("mip_abs_gap", 1e-9)
        self.highs.passModel(lp)
        self.integral = False
        self.bound, self.work = 0.0, 0

    def add(self, cuts: list[_Cut]) -> None:
        for cut in cuts:
            self.highs.addRow(cut.level, np.inf, len(cut.cells), cut.cells, cut.coefficients)

    def solve(self, integral: bool, seconds: float, steps: float, known: Booleans) -> tuple[Floats, float] | None:
        """The cheapest choice and its cost, from one that meets all conditions; None when out of time or steps."""
        if seconds <= 0 or steps <= 0:
            return None
        size = self.columns + self.highs.getNumRow()
        if np.isfinite(steps):
            self.highs.setOptionValue("mip_max_nodes", int(min(1 + steps / (size * _INTEGRAL * _NODE), 1e9)))
        if integral and not self.integral:
            self.integral = True
            index = np.arange(self.columns, dtype=np.int32)
            self.highs.changeColsIntegrality(
                self.columns, index, np.full(self.columns, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
            )
        if integral:
            begun = highspy.HighsSolution()
            begun.col_value = known.astype(np.float64)
            begun.value_valid = True
            self.highs.setSolution(begun)
        self.highs.setOptionValue("time_limit", float(self.highs.getRunTime()) + seconds)
        self.highs.run()
        iterations = _START + max(0, self.highs.getInfo().simplex_iteration_count)
        self.work += iterations * size * (_INTEGRAL if integral else 1)
        status = self.highs.getModelStatus()
        if status in (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kSolutionLimit):
            reached = float(self.highs.getInfo().mip_dual_bound) if integral else 0.0
            if np.isfinite(reached):
                self.bound = max(self.bound, reached * self.unit)
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Unsolved(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        value = float(self.highs.getInfo().objective_function_value) * self.unit
        return np.asarray(self.highs.getSolution().col_value, dtype=np.float64), value
