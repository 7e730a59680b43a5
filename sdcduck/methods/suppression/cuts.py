"""Conditions that every pattern meets that protects: cutting planes of Fischetti and Salazar (2000, JASA 95).

An attacker knows the published cells and asks how far a primary cell may lie from its value. Where that is not as far
as its rule wants, the dual solution of his linear program says of which cells some must be suppressed beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, linear_program, quiet_highs
from sdcduck.methods.numerics import highspy
from sdcduck.methods.suppression.known import MOVED, Task
from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_SHORT = 1e-6  # relative: what a protection level may be missed by
_START = 10  # iterations that setting up a program is worth
_PART = 0.02  # of the published cells, suppressed where a cut is made sharper
_MOST = 40  # moves that are kept for a task


@dataclass(frozen=True)
class Cut:
    """sum of coefficient x suppressed >= 1: a necessary condition of protection."""

    cells: NDArray[np.int32]
    coefficients: Floats


class Attacker:
    """How far each primary cell can move from its value when cells are suppressed (in part).

    Attributes:
        work: what has been done: iterations times the size of the program. The same on every machine.
    """

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
        self.x, self.y, self.z, self.primary, self.check = x, y, z, primary, check
        self.tasks = [
            Task(cell, sign, float(levels[cell]))
            for cell in np.flatnonzero(primary).tolist()
            for sign, levels in ((1, up), (-1, down))
            if levels[cell] > 0
        ]
        # An inner cell that is a cell of the publication too is bounded as such.
        self.inner, self.cell_of = np.zeros(0, dtype=np.int32), np.full(x.rows, -1, dtype=np.int64)
        alone = np.flatnonzero(np.diff(x.indptr) == 1)
        self.cell_of[x.indices[x.indptr[alone]]] = alone
        self.inner = np.flatnonzero(self.cell_of >= 0).astype(np.int32)
        self.unseen = np.flatnonzero(self.cell_of < 0)
        self.own = self.cell_of[self.inner]
        self.sums = np.setdiff1d(np.arange(x.columns), self.own)
        # Values are scaled: the tolerances of the solver are absolute, and deviations are as small as the levels.
        self.unit = max([1.0, *(task.distance for task in self.tasks)]) / 100
        still, seen = np.zeros(len(self.sums)), self.cell_of >= 0
        self.highs = quiet_highs()
        self.highs.setOptionValue("presolve", "off")
        self.highs.setOptionValue("simplex_strategy", 4)
        self.highs.passModel(
            linear_program(
                x.sparse().T.tocsr()[self.sums], still, still, np.where(seen, 0.0, -y / self.unit),
                np.where(seen, 0.0, np.inf),
            )
        )  # fmt: skip
        self.size, self.work = len(self.sums) + x.rows, 0
        self.allowed = (np.zeros(x.columns), np.zeros(x.columns))
        self.moves: dict[Task, list[Indices]] = {task: [] for task in self.tasks}

    def cuts(self, chosen: Floats, ends: float = np.inf, most: float = np.inf) -> list[Cut] | None:
        """Conditions that the choice violates; none when it protects all primary cells; None when out of time, or of
        the ``most`` steps that all calls may take together."""
        whole = bool(np.all((chosen == 0) | (chosen == 1)))
        pattern = chosen == 1
        found = []
        for task in self.tasks:
            if whole and any(pattern[needs].all() for needs in reversed(self.moves[task])):
                continue
            self.check()
            if time.monotonic() > ends or self.work > most:
                return None
            self._allow(task, chosen, pattern if whole else None)
            cut = self._cut(task, note=whole)
            if cut is not None:
                found.append((task, cut))
        if not whole:
            return [cut for _, cut in found]
        return [self._sharper(task, cut, pattern) for task, cut in found]

    def _sharper(self, task: Task, cut: Cut, pattern: Booleans) -> Cut:
        """A cut that a little of each published cell would not do for either, where there is one."""
        self._allow(task, np.where(pattern, 1.0, _PART), pattern)
        other = self._cut(task, note=False)
        if other is not None and not pattern[other.cells].any():
            return other
        for each in (other, cut):
            if each is not None and float(each.coefficients @ pattern[each.cells]) < 1 - _SHORT:
                return each
        # Rounding has blunted the cut. What any unsafe pattern lacks is a cell outside of it.
        outside = np.flatnonzero(~pattern).astype(np.int32)
        return Cut(outside, np.ones(len(outside)))

    def _allow(self, task: Task, chosen: Floats, pattern: Booleans | None) -> None:
        """Let the cells move by their parts: down to nothing, and up by the level; what is in a pattern without end.

        A cell suppressed in part may rise by that part of the level: that is what its cut counts.
        """
        lowest, highest = -self.z * chosen / self.unit, task.distance * chosen / self.unit
        if pattern is not None:
            highest[pattern] = np.inf
        new = (lowest != self.allowed[0]) | (highest != self.allowed[1])
        inner = self.inner[new[self.own]]
        if len(inner):
            cells = self.cell_of[inner]
            self.highs.changeColsBounds(len(inner), inner, lowest[cells], highest[cells])
        for row in np.flatnonzero(new[self.sums]).tolist():
            cell = self.sums[row]
            self.highs.changeRowBounds(row, float(lowest[cell]), float(highest[cell]))
        self.allowed = (lowest, highest)

    def _cut(self, task: Task, note: bool) -> Cut | None:
        """What the cells allowed violate; None where the task can be done, by a move to ``note``."""
        level = task.distance / self.unit
        rows = self.x.indices[self.x.indptr[task.cell] : self.x.indptr[task.cell + 1]]
        self.highs.changeColsCost(len(rows), rows, np.full(len(rows), -float(task.sign)))
        self.highs.run()
        status, info, solution = self.highs.getModelStatus(), self.highs.getInfo(), self.highs.getSolution()
        reached = -info.objective_function_value
        self.work += (_START + max(0, info.simplex_iteration_count)) * self.size
        self.highs.changeColsCost(len(rows), rows, np.zeros(len(rows)))
        if status == highspy.HighsModelStatus.kUnbounded:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Unsolved(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        if reached >= level * (1 - _SHORT):
            if note:
                moved = np.abs(self._of_cells(solution.row_value, solution.col_value)) > MOVED * level
                self.moves[task] = [*self.moves[task][1 - _MOST :], np.flatnonzero(moved & ~self.primary)]
            return None
        dual = -self._of_cells(solution.row_dual, solution.col_dual)
        reduced = np.asarray(solution.col_dual, dtype=np.float64)[self.unseen]
        need = level - float(np.maximum(reduced, 0.0) @ self.y[self.unseen]) / self.unit
        # A cell with a positive dual may rise without bound once suppressed; no coefficient need exceed the level.
        coefficient = np.where(dual > 1e-9, need, np.maximum(-dual, 0.0) * self.z / self.unit)
        coefficient = np.minimum(coefficient, need)
        cells = np.flatnonzero(coefficient > 1e-9 * need).astype(np.int32)
        return Cut(cells, coefficient[cells] / need)

    def _of_cells(self, rows: object, columns: object) -> Floats:
        """Of each cell what the program says of its row or its column."""
        values = np.zeros(self.x.columns)
        values[self.sums] = np.asarray(rows, dtype=np.float64)
        values[self.own] = np.asarray(columns, dtype=np.float64)[self.inner]
        return values
