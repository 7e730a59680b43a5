"""The move that hides a cell: the cheapest change of the inner cells by which a cell goes up or down as far as it must.

A primary cell is protected upwards when some other inner values agree with all that is published and put it as far
above its value as its rule wants; the difference of the two is a move, and what moves with it is what is suppressed.
One linear program has all of them (the continuous form of the attacker's problem, Fischetti and Salazar 2000; Kelly,
Golden and Assad 1992). It is asked in units of the distance, so that tolerances are relative to what a rule wants.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import linear_program, quiet_highs
from sdcduck.methods.numerics import highspy, scipy
from sdcduck.methods.suppression.known import MOVED, Move, Task
from sdcduck.methods.suppression.matrix import DummyMatrix, classes, row_keys
from sdcduck.methods.suppression.nearby import Nearby

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_DEAREST = 1e4  # what the largest price becomes: the tolerances of the solver are absolute
_KEPT = 300_000_000  # bytes of starting points that are kept
_DUAL, _PRIMAL = 1, 4  # ways of the solver
_START = 10  # iterations that setting up and reading a program is worth
_WHOLE = 3000  # units of a publication whose programs are about all of it
_NEAR, _NEAR_WITHIN = 600, 200  # inner cells of a program about what is near a cell, of all and of a pattern's
_PROGRAMS = 1_000_000_000  # bytes of the programs near cells that are kept
_ENTRY = 200  # bytes that the solver takes for each entry of a program, found by measuring


class _Program:
    """The linear program of some inner cells, while all others stay as they are.

    Its units are the inner cells, equal ones together, and the cells that are sums of several; each goes up or down. A
    sum's own row says that it moves as its inner cells do. Cells that are the same sum here are one unit.

    Attributes:
        cells: int64, the cells with one of these inner cells.
        unit: int64, their units.
        work: what the last answer took: iterations times the size of the program. The same on every machine.
    """

    def __init__(self, matrix: scipy.sparse.csr_matrix, room: Floats, cells: Indices, together: bool) -> None:
        columns = matrix.tocsc()
        self.cells, self.rows = cells, matrix.shape[0]
        rows = self.rows
        first, label = np.arange(len(cells)), np.arange(len(cells))
        if together:
            first, label = classes(row_keys(columns.T.tocsr(), np.random.default_rng(3)))
            order = np.argsort(first)
            first, label = first[order], np.argsort(order)[label]
        columns = columns[:, first]
        unit = np.full(len(first), -1, dtype=np.int64)
        alone = np.flatnonzero(np.diff(columns.indptr) == 1)
        owned, which = np.unique(columns.indices[columns.indptr[alone]], return_index=True)
        unit[alone[which]] = owned
        sums = np.flatnonzero(unit < 0)
        unit[sums] = rows + np.arange(len(sums))
        self.unit = unit[label]
        self.units = rows + len(sums)
        balance = scipy.sparse.hstack([columns[:, sums].T, -scipy.sparse.identity(len(sums))])
        program = scipy.sparse.hstack([balance, -balance]).tocsr()
        self.room = np.full(self.units, np.inf)
        self.room[:rows] = room
        still = np.zeros(len(sums))
        self.cost = np.zeros(2 * self.units)
        self.low, self.high = np.zeros(2 * self.units), np.zeros(2 * self.units)
        self.highs = quiet_highs()
        self.highs.setOptionValue("presolve", "off")  # most programs start from the one before
        self.highs.passModel(linear_program(program, still, still, self.low, self.high, self.cost))
        self.starts: dict[int, highspy.HighsBasis] = {}
        self.size, self.work, self.entries = len(sums) + self.units, 0, program.nnz

    def solved(
        self,
        task: Task,
        price: Floats,
        allowed: Booleans,
        *,
        start: highspy.HighsBasis | None,
        again: bool = False,
        reach: bool = False,
    ) -> Move | None:
        """The move of these cells; None: there is none."""
        self.work = 0
        own = int(self.unit[np.searchsorted(self.cells, task.cell)])
        still = np.zeros(self.units, dtype=np.bool_)
        still[self.unit[~allowed[self.cells]]] = True
        if still[own]:
            # A cell that may not move is the same sum of these inner cells.
            return None
        cost: Floats = np.bincount(self.unit, weights=price[self.cells], minlength=self.units).astype(np.float64)
        largest = float(cost.max(initial=0.0))
        cost *= _DEAREST / largest if largest > 0 else 0.0
        high = np.where(still, 0.0, np.inf)
        high = np.concatenate([high, np.minimum(high, self.room / task.distance)])
        low, cost = np.zeros(2 * self.units), np.concatenate([cost, cost])
        here, there = own, own + self.units
        if task.sign < 0:
            here, there = there, here
        high[here], high[there] = 1.0, 0.0
        low[here] = 0.0 if reach else 1.0
        cost[here] = -1.0 if reach else 0.0
        self._change(cost, low, high)
        if start is not None:
            self.highs.setBasis(start)
        # Found by measuring: programs within a pattern, which is most of publishing again, take half as many steps.
        self.highs.setOptionValue("simplex_strategy", _PRIMAL if again else _DUAL)
        self.highs.run()
        self.work = (_START + max(0, self.highs.getInfo().simplex_iteration_count)) * self.size
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        value = np.asarray(self.highs.getSolution().col_value)
        moved: Floats = value[: self.units] - value[self.units :]
        inner, room = moved[: self.rows], self.room[: self.rows] / task.distance
        size = np.abs(inner)
        up, down = inner > MOVED, inner < -MOVED
        return Move(
            moved[self.unit],
            ahead=float((room[down] / size[down]).min(initial=np.inf)),
            back=float((room[up] / size[up]).min(initial=np.inf)),
            noise=float(size[~up & ~down].max(initial=0.0)),
        )

    def _change(self, cost: Floats, low: Floats, high: Floats) -> None:
        """Tell the solver what is new."""
        dearer = np.flatnonzero(cost != self.cost).astype(np.int32)
        if len(dearer):
            self.highs.changeColsCost(len(dearer), dearer, cost[dearer])
        other = np.flatnonzero((low != self.low) | (high != self.high)).astype(np.int32)
        if len(other):
            self.highs.changeColsBounds(len(other), other, low[other], high[other])
        self.cost, self.low, self.high = cost, low, high


class Moves:
    """The cheapest moves in one publication.

    In a large one most moves are between cells that share small sums: what is near a cell is asked first, a program of
    a few hundred inner cells in place of all.

    Attributes:
        work: what has been done: iterations times the size of the programs. The same on every machine.
    """

    def __init__(self, x: DummyMatrix, y: Floats) -> None:
        matrix = x.sparse().tocsr()
        first, label = classes(row_keys(matrix, np.random.default_rng(3)))
        self.matrix = matrix[first]
        self.room = np.full(len(first), np.inf)
        if (y >= 0).all():
            self.room = np.bincount(label, weights=y, minlength=len(first))
        self.columns, self.work = x.columns, 0
        self.starts: dict[tuple[int, int], highspy.HighsBasis] = {}
        self.programs: dict[tuple[int, bool], _Program] = {}
        self.kept = 0
        self.movable = np.ones(len(first), dtype=np.bool_)
        self.nearby = Nearby(self.matrix) if len(first) + x.columns > _WHOLE else None

    @property
    def large(self) -> bool:
        """Whether programs are about what is near a cell."""
        return self.nearby is not None

    def within(self, pattern: Booleans) -> None:
        """What is asked again is looked for among these cells, or fewer, from now on."""
        if self.nearby is None:
            return
        alone = np.flatnonzero((np.diff(self.nearby.inner_of) == 1) & ~pattern)
        self.movable = np.ones(len(self.room), dtype=np.bool_)
        self.movable[self.nearby.inner[self.nearby.inner_of[alone]]] = False
        self.programs = {key: program for key, program in self.programs.items() if not key[1]}
        self.kept = sum(program.entries for program in self.programs.values())

    @cached_property
    def whole(self) -> _Program:
        """The program of all inner cells."""
        return _Program(self.matrix, self.room, np.arange(self.columns), together=False)

    def cheapest(
        self, task: Task, price: Floats, allowed: Booleans, *, again: bool = False, everywhere: bool = False
    ) -> Move | None:
        """The move that does the task at the least price; None: there is none.

        Of large publications it is the least price near the cell, where the task can be done there.

        Args:
            price: (N,), at least 0, of moving a cell by the distance.
            allowed: (N,), the cells that may move.
            again: whether the task was asked with these prices before, so that its last move is nearly the one.
                In large publications it must then be done near the cell, among the cells that `within` said.
            everywhere: whether to look further in any case.
        """
        near = None if everywhere else self._near(task.cell, within=again)
        if near is not None:
            moved = near.solved(task, price, allowed, start=near.starts.get(task.sign) if again else None)
            self.work += near.work
            if again and moved is not None:
                near.starts[task.sign] = near.highs.getBasis()
            if moved is not None:
                far = np.zeros(self.columns)
                far[near.cells] = moved.far
                return replace(moved, far=far)
            if again:
                return None
        start = self.starts.get((task.cell, task.sign)) if again else None
        moved = self.whole.solved(task, price, allowed, start=start, again=again)
        self.work += self.whole.work
        if again and moved is not None and (len(self.starts) + 1) * self.whole.size < _KEPT:
            self.starts[task.cell, task.sign] = self.whole.highs.getBasis()
        return moved

    def reach(self, task: Task, allowed: Booleans) -> float:
        """The part of the distance, at most 1, that the cell can move where the task cannot be done."""
        moved = self.whole.solved(task, np.zeros(self.columns), allowed, reach=True, start=None)
        self.work += self.whole.work
        return 0.0 if moved is None else float(abs(moved.far[task.cell]))

    def _near(self, cell: int, *, within: bool) -> _Program | None:
        """The program of what is near a cell; None where that is all, or not enough."""
        if self.nearby is None:
            return None
        program = self.programs.pop((cell, within), None)
        if program is None:
            movable = self.movable if within else np.ones_like(self.movable)
            rows = self.nearby.of(cell, _NEAR_WITHIN if within else _NEAR, movable)
            if rows is None:
                return None
            part = self.matrix[rows]
            cells = np.unique(part.indices).astype(np.int64)
            program = _Program(part[:, cells], self.room[rows], cells, together=True)
            self.kept += program.entries
            while self.programs and self.kept * _ENTRY > _PROGRAMS:
                self.kept -= self.programs.pop(next(iter(self.programs))).entries
        self.programs[cell, within] = program  # the one that was used last is the last to go
        return program
