"""A cheaper pattern by integer programming over some cells at a time, while the others stay as they are.

All patterns that protect meet the cuts that were found so far (`cuts.py`). Of some cells the cheapest choice that meets
them is looked for; what it lacks is cut off, until it protects or is no cheaper (large neighbourhood search, Shaw
1998). The cuts hold everywhere, so that each choice leaves fewer for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, linear_program, quiet_highs
from sdcduck.methods.numerics import highspy, scipy
from sdcduck.methods.suppression.cuts import Attacker, Cut

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_ROUNDS = 40  # of cuts for one choice of cells
_FEWEST, _FIRST = 20, 50  # cells that are chosen anew, at least and at first
_EASY = 300  # iterations: what takes fewer lets more cells be chosen the next time, and what takes more fewer
_LARGER, _SMALLER = 1.01, 0.96
_MET = 1e-6  # what a cut may be missed by
_SECONDARY = 3.0  # how likely a secondary cell is chosen anew, beside about 1 of cheap ones
_NODES = 100  # of the tree of a choice
_INTEGRAL, _START = 6, 100  # as in `optimal.py`: what an iteration takes, and iterations that setting up is worth


class Covering:
    """The cuts known, and the search for cheaper patterns among those that meet them.

    Attributes:
        work: what has been done, as `Attacker.work`. The same on every machine.

    Raises:
        Unsolved: numbers too far apart for the solver; of `cheaper`, too.
    """

    def __init__(
        self, attacker: Attacker, cost: Floats, given: Booleans, fixed: Booleans, cuts: Sequence[Cut], seed: int
    ) -> None:
        movable = ~given & ~fixed
        self.attacker, self.movable, self.rng = attacker, movable, np.random.default_rng(seed)
        # Something small beside the costs, so that of two patterns of the same cost that of fewer cells is better.
        self.cost = np.where(movable, cost + 1e-9 * float(cost.max(initial=0.0)), 0.0)
        self.unit = max(float(self.cost.max(initial=0.0)), 1e-300) / 1000
        self.solved, self.size = 0, float(_FIRST)
        self.matrix = scipy.sparse.csr_matrix((0, len(cost)))
        self._add(cuts)
        self.likely = self._likely(given)

    @property
    def work(self) -> int:
        return self.attacker.work + self.solved

    def cheaper(self, pattern: Booleans) -> Booleans | None:
        """A cheaper pattern that differs in some cells, which are others at each call; None: there is none."""
        size = min(int(self.size), int(self.movable.sum()))
        free = self._free(pattern, size)
        kept, bar = pattern & ~free, float(self.cost[pattern].sum()) * (1 - 1e-7)
        most = 0
        for _ in range(_ROUNDS):
            self.attacker.check()
            found, iterations = self._chosen(kept, np.flatnonzero(free), bar)
            most = max(most, iterations)
            if found is None:
                break
            cuts = self.attacker.cuts(found.astype(np.float64))
            if not cuts:
                return found
            self._add(cuts)
        self.size = max(_FEWEST, self.size * (_LARGER if most <= _EASY else _SMALLER))
        return None

    def _add(self, cuts: Sequence[Cut]) -> None:
        if not cuts:
            return
        starts = np.cumsum([0, *(len(cut.cells) for cut in cuts)])
        cells = np.concatenate([cut.cells for cut in cuts])
        coefficients = np.concatenate([cut.coefficients for cut in cuts])
        new = scipy.sparse.csr_matrix((coefficients, cells, starts), shape=(len(cuts), len(self.cost)))
        self.matrix = scipy.sparse.vstack([self.matrix, new]).tocsr()

    def _chosen(self, kept: Booleans, free: Indices, bar: float) -> tuple[Booleans | None, int]:
        """The cheapest choice of free cells beside those kept that meets all cuts; None: none that costs less than the
        bar was found. And the iterations."""
        lacking = 1.0 - self.matrix @ kept.astype(np.float64)
        left = lacking > _MET
        part, lacking = self.matrix[left][:, free].tocsr(), lacking[left]
        each = np.repeat(lacking, np.diff(part.indptr))
        part.data = np.minimum(part.data / each, 1.0)
        rows, columns = part.shape
        highs = quiet_highs()
        lp = linear_program(
            part, np.ones(rows), np.full(rows, np.inf), np.zeros(columns), np.ones(columns), self.cost[free] / self.unit
        )
        lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.setOptionValue("mip_abs_gap", 1e-7)
        highs.setOptionValue("mip_allow_restart", False)
        highs.setOptionValue("mip_max_nodes", _NODES)
        highs.setOptionValue("objective_bound", (bar - float(self.cost[kept].sum())) / self.unit)
        highs.passModel(lp)
        highs.run()
        info = highs.getInfo()
        iterations = max(0, info.simplex_iteration_count)
        self.solved += (_START + iterations) * (rows + columns) * _INTEGRAL
        if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
            return None, iterations
        found = kept.copy()
        found[free[np.asarray(highs.getSolution().col_value) > 0.5]] = True
        return (found if float(self.cost[found].sum()) < bar else None), iterations

    def _likely(self, given: Booleans) -> Floats:
        """Of each cell how likely it is chosen anew where it is published: what the linear program takes, and cheap."""
        lowest, highest = given.astype(np.float64), (given | self.movable).astype(np.float64)
        highs = quiet_highs()
        many = self.matrix.shape[0]
        highs.passModel(
            linear_program(self.matrix, np.ones(many), np.full(many, np.inf), lowest, highest, self.cost / self.unit)
        )
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise Unsolved(f"HiGHS ended with {highs.modelStatusToString(highs.getModelStatus())}")
        self.solved += (_START + max(0, highs.getInfo().simplex_iteration_count)) * (many + len(given))
        part = np.clip(np.asarray(highs.getSolution().col_value, dtype=np.float64), 0.0, 1.0)
        middle = max(float(np.median(self.cost[self.movable])), 1e-300) if self.movable.any() else 1.0
        return _SECONDARY * part + 1.0 / (1.0 + self.cost / middle) + 0.05

    def _free(self, pattern: Booleans, size: int) -> Booleans:
        """Cells to choose among."""
        weight = np.where(pattern, _SECONDARY, self.likely) * self.movable
        free = np.zeros(len(pattern), dtype=np.bool_)
        free[self.rng.choice(len(pattern), size, replace=False, p=weight / weight.sum())] = True
        return free
