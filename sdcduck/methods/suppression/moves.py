"""The move that hides a cell: the cheapest change of the inner cells by which a cell goes up or down as far as it must.

A primary cell is protected upwards when some other inner values agree with all that is published and put it as far
above its value as its rule wants; the difference of the two is a move, and what moves with it is what is suppressed.
One linear program has all of them (the continuous form of the attacker's problem, Fischetti and Salazar 2000; Kelly,
Golden and Assad 1992). It is asked in units of the distance, so that tolerances are relative to what a rule wants.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import scipy
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import linear_program, quiet_highs
from sdcduck.methods.suppression.matrix import DummyMatrix, classes, row_keys

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

MOVED = 1e-7
"""Of the distance: what moves less is rounding."""
_DEAREST = 1e4  # what the largest price becomes: the tolerances of the solver are absolute
_KEPT = 300_000_000  # bytes of starting points that are kept
_START = 10  # iterations that setting up and reading a program is worth


@dataclass(frozen=True)
class Task:
    """A primary cell and how far it must be able to move: ``sign`` 1 is up, -1 down."""

    cell: int
    sign: int
    distance: float


class Moves:
    """The linear program of one publication.

    Its units are the inner cells, equal ones together, and the cells that are sums of several; each goes up or down. A
    sum's own row says that it moves as its inner cells do.

    Attributes:
        work: what has been done: iterations times the size of the program. The same on every machine.
    """

    def __init__(self, x: DummyMatrix, y: Floats) -> None:
        matrix = x.sparse().tocsr()
        first, label = classes(row_keys(matrix, np.random.default_rng(3)))
        cells = matrix[first].tocsc()
        rows = len(first)
        self.unit = np.full(x.columns, -1, dtype=np.int64)
        alone = np.flatnonzero(np.diff(cells.indptr) == 1)
        owned, which = np.unique(cells.indices[cells.indptr[alone]], return_index=True)
        self.unit[alone[which]] = owned
        sums = np.flatnonzero(self.unit < 0)
        self.unit[sums] = rows + np.arange(len(sums))
        self.units = rows + len(sums)
        balance = scipy.sparse.hstack([cells[:, sums].T, -scipy.sparse.identity(len(sums))])
        program = scipy.sparse.hstack([balance, -balance]).tocsr()
        self.room = np.full(self.units, np.inf)
        if (y >= 0).all():
            self.room[:rows] = np.bincount(label, weights=y, minlength=rows)
        still = np.zeros(len(sums))
        self.cost = np.zeros(2 * self.units)
        self.low, self.high = np.zeros(2 * self.units), np.zeros(2 * self.units)
        self.highs = quiet_highs()
        self.highs.setOptionValue("presolve", "off")  # most programs start from the one before
        self.highs.passModel(linear_program(program, still, still, self.low, self.high, self.cost))
        self.size, self.work = len(sums) + self.units, 0
        self.starts: dict[tuple[int, int], highspy.HighsBasis] = {}

    def cheapest(self, task: Task, price: Floats, allowed: Booleans, *, again: bool = False) -> Floats | None:
        """By how much each cell moves, in distances, when the task is done at the least price; None: it cannot be.

        Args:
            price: (N,), at least 0, of moving a cell by the distance.
            allowed: (N,), the cells that may move.
            again: whether the task was asked with these prices before, so that its last move is nearly the one.
        """
        largest = float(price.max(initial=0.0))
        cost = np.zeros(self.units)
        cost[self.unit] = price * (_DEAREST / largest) if largest > 0 else 0.0
        return self._solved(task, cost, allowed, again=again)

    def reach(self, task: Task, allowed: Booleans) -> float:
        """The part of the distance, at most 1, that the cell can move where the task cannot be done."""
        moved = self._solved(task, np.zeros(self.units), allowed, reach=True)
        return 0.0 if moved is None else float(abs(moved[task.cell]))

    def _solved(
        self, task: Task, cost: Floats, allowed: Booleans, *, reach: bool = False, again: bool = False
    ) -> Floats | None:
        high = np.full(self.units, np.inf)
        high[self.unit[~allowed]] = 0.0
        high = np.concatenate([high, np.minimum(high, self.room / task.distance)])
        low, cost = np.zeros(2 * self.units), np.concatenate([cost, cost])
        here, there = self.unit[task.cell], self.unit[task.cell] + self.units
        if task.sign < 0:
            here, there = there, here
        high[here], high[there] = 1.0, 0.0
        low[here] = 0.0 if reach else 1.0
        cost[here] = -1.0 if reach else 0.0
        self._change(cost, low, high)
        start = self.starts.get((task.cell, task.sign)) if again else None
        if start is not None:
            self.highs.setBasis(start)
        self.highs.run()
        self.work += (_START + max(0, self.highs.getInfo().simplex_iteration_count)) * self.size
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        if again and (len(self.starts) + 1) * self.size < _KEPT:
            self.starts[task.cell, task.sign] = self.highs.getBasis()
        value = np.asarray(self.highs.getSolution().col_value)
        moved: Floats = (value[: self.units] - value[self.units :])[self.unit]
        return moved

    def _change(self, cost: Floats, low: Floats, high: Floats) -> None:
        """Tell the solver what is new."""
        dearer = np.flatnonzero(cost != self.cost).astype(np.int32)
        if len(dearer):
            self.highs.changeColsCost(len(dearer), dearer, cost[dearer])
        other = np.flatnonzero((low != self.low) | (high != self.high)).astype(np.int32)
        if len(other):
            self.highs.changeColsBounds(len(other), other, low[other], high[other])
        self.cost, self.low, self.high = cost, low, high
