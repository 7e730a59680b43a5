"""Wide enough intervals: suppress more cells until every primary cell can move as far as its rule wants.

For one primary cell and one direction, a linear program finds the change of the inner cells that moves it by its
protection level at the least cost of the published cells that move with it (the continuous form of the attacker's
problem, Fischetti and Salazar 2000; Kelly, Golden and Assad 1992). The cells that move are suppressed, and cost nothing
from then on. One pass is enough: what has moved once can move again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import highspy
import numpy as np
import scipy
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import linear_program, quiet_highs
from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_MOVED = 1e-7  # of the largest movement: less is rounding


@dataclass(frozen=True)
class Widening:
    """A pattern with wide enough intervals.

    Attributes:
        suppressed: bool (N,), the cells suppressed before and those added.
        impossible: int64, primary cells that cannot move as far whatever is suppressed.
    """

    suppressed: Booleans
    impossible: Indices


def widen_intervals(
    x: DummyMatrix,
    y: Floats,
    suppressed: Booleans,
    cells: Indices,
    upl: Floats,
    lpl: Floats,
    *,
    cost: Floats,
    ineligible: Booleans,
    progress: Callable[[int, int], None] | None = None,
) -> Widening:
    """Suppress published cells until the intervals of some primary cells are wide enough.

    Args:
        x: m inner cells x N cells.
        y: float64 (m,), inner values. They stay at 0 or above, but for negative ones, whose sign tells nothing.
        suppressed: bool (N,), cells suppressed already.
        cells: int64, the primary cells to protect, among the suppressed ones.
        upl, lpl: float64 (N,), how far above and below its value a cell must be able to lie, in its unit; a cell that
            cannot fall so far without inner values below 0 need only fall to 0.
        cost: float64 (N,), at least 0, of suppressing a cell.
        ineligible: bool (N,), published cells that stay published.
        progress: called with (cells done, all of them).

    Raises:
        ValueError: arrays that do not fit the matrix, or values that are not finite.
    """
    if y.shape != (x.rows,) or any(a.shape != (x.columns,) for a in (suppressed, upl, lpl, cost, ineligible)):
        raise ValueError("one value for each inner cell, and one of everything else for each cell, is needed")
    if not all(np.isfinite(a).all() for a in (y, upl, lpl, cost)) or cost.min(initial=0.0) < 0:
        raise ValueError("values, protection levels and costs must be finite, and costs not negative")
    pattern = suppressed.copy()
    matrix = x.sparse()
    totals = matrix.T @ y
    nonnegative = bool((y >= 0).all())
    fall = np.minimum(lpl, totals) if nonnegative else lpl
    model = _Model(matrix, y, pattern, cells, cost, ineligible, nonnegative)
    impossible = []
    for done, cell in enumerate(cells):
        possible = True
        for direction, distance in ((1.0, upl[cell]), (-1.0, fall[cell])):
            if distance > 0:
                moved = model.move(done, direction * distance)
                possible &= moved is not None
                if moved is not None:
                    pattern[moved] = True
        if not possible:
            impossible.append(cell)
        if progress is not None:
            progress(done + 1, len(cells))
    return Widening(pattern, np.array(impossible, dtype=np.int64))


class _Model:
    """The linear program: changes of the inner cells, and of each published cell what it goes up and down."""

    def __init__(
        self, matrix: scipy.sparse.csc_matrix, y: Floats, pattern: Booleans, cells: Indices, cost: Floats,
        ineligible: Booleans, nonnegative: bool,
    ) -> None:  # fmt: skip
        self.published = np.flatnonzero(~pattern)
        rows, shown = matrix.shape[0], len(self.published)
        identity = scipy.sparse.identity(shown, format="csc")
        balance = scipy.sparse.hstack([matrix[:, self.published].T, -identity, identity])
        targets = scipy.sparse.hstack([matrix[:, cells].T, scipy.sparse.csc_matrix((len(cells), 2 * shown))])
        constraints = scipy.sparse.vstack([balance, targets]).tocsr()
        price = np.where(ineligible[self.published], 0.0, cost[self.published] + cost.max(initial=1.0) * 1e-9)
        room = np.where(ineligible[self.published], 0.0, np.inf)
        lp = linear_program(
            constraints,
            np.concatenate([np.zeros(shown), np.full(len(cells), -np.inf)]),
            np.concatenate([np.zeros(shown), np.full(len(cells), np.inf)]),
            np.concatenate([-y if nonnegative else np.full(rows, -np.inf), np.zeros(2 * shown)]),
            np.concatenate([np.full(rows, np.inf), room, room]),
            np.concatenate([np.zeros(rows), price, price]),
        )
        self.rows, self.shown = rows, shown
        self.highs = quiet_highs()
        self.highs.passModel(lp)

    def move(self, target: int, distance: float) -> Indices | None:
        """Move the target cell; the published cells that move with it, or None where nothing can move it so far."""
        row = self.shown + target
        self.highs.changeRowBounds(row, distance, distance)
        self.highs.run()
        solved = self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        moved = None
        if solved:
            solution = np.asarray(self.highs.getSolution().col_value)[self.rows :]
            amount = solution[: self.shown] + solution[self.shown :]
            places = np.flatnonzero(amount > _MOVED * max(1.0, abs(distance)))
            for place in places:
                # Suppressed from now on: it moves for free.
                self.highs.changeColCost(self.rows + place, 0.0)
                self.highs.changeColCost(self.rows + self.shown + place, 0.0)
            moved = self.published[places]
        self.highs.changeRowBounds(row, -np.inf, np.inf)
        return moved
