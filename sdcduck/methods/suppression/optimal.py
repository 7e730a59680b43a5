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
from sdcduck.methods.suppression.cuts import Attacker, Cut
from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_LINEAR_ROUNDS = 200
_SUPPORT = 1e-7
_START = 10  # iterations that setting up a program is worth
_INTEGRAL = 6  # what an iteration of integer programming takes, in those of a linear program
_NODE = 200  # iterations for each node of its tree, more or less
_LINEAR = 1 / 5  # the part of a limit of steps that may go before it begins
_HARD = 300  # conditions that linear programs found: with more of them it is hardly ever done in a limit of steps


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
        cuts: the conditions that were found.
    """

    suppressed: Booleans
    objective: float
    bound: float
    gap: float
    status: Literal["optimal", "time limit", "infeasible"]
    steps: int = 0
    cuts: tuple[Cut, ...] = ()


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
    attacker = Attacker(x, inner, z, first, up, down, check)
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
    attacker: Attacker, master: _Master, weight: Floats, first: Booleans, best: Booleans, ends: float, steps: float,
    check: Callable[[], object],
) -> OptimalPattern:  # fmt: skip
    """Cuts and choices in turn, of parts of cells and then of whole ones, until nothing is cut off any more."""
    bound, known = 0.0, list[Cut]()

    def ended(status: Literal["optimal", "time limit"]) -> OptimalPattern:
        return _pattern(best, weight, bound, status, attacker.work + master.work, tuple(known))

    for integral in (False, True):
        rounds = 0
        if integral and np.isfinite(steps) and len(known) > _HARD:
            return ended("time limit")
        while integral or rounds < _LINEAR_ROUNDS:
            rounds += 1
            check()
            most = (steps if integral else _LINEAR * steps) - master.work
            solved = master.solve(integral, ends - time.monotonic(), most - attacker.work, best)
            if solved is None:
                bound = max(bound, master.bound)
                return ended("time limit")
            chosen, value = np.clip(solved[0], 0.0, 1.0), solved[1]
            bound = max(bound, value)
            cuts = attacker.cuts(np.rint(chosen) if integral else chosen, ends, most)
            if cuts is None:
                return ended("time limit")
            if not cuts:
                # What protects with a part of each cell protects with the whole cells.
                support = chosen > _SUPPORT if not integral else chosen > 0.5
                # What is known may be cheaper by less than the solver can see.
                if _worth(support | first, weight) < _worth(best, weight):
                    best = support | first
                break
            master.add(cuts)
            known += cuts
    return ended("optimal")


def _worth(pattern: Booleans, cost: Floats) -> tuple[float, int]:
    """What a pattern costs, and its number of cells: the less the better."""
    return float(cost[pattern].sum()), int(pattern.sum())


def _pattern(
    suppressed: Booleans,
    cost: Floats,
    bound: float,
    status: Literal["optimal", "time limit"],
    steps: int,
    cuts: tuple[Cut, ...],
) -> OptimalPattern:
    objective = float(cost[suppressed].sum())
    if status == "optimal":
        bound = objective
    gap = (objective - bound) / objective if objective > 0 else 0.0
    return OptimalPattern(suppressed, objective, bound, max(gap, 0.0), status, steps, cuts)


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

    def add(self, cuts: list[Cut]) -> None:
        for cut in cuts:
            self.highs.addRow(1.0, np.inf, len(cut.cells), cut.cells, cut.coefficients)

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
