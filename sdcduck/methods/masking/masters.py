"""The linear programme of a set partitioning problem, in HiGHS."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, quiet_highs
from sdcduck.methods.masking.columns import TOLERANCE, Columns
from sdcduck.methods.numerics import highspy

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_ITERATIONS = 20_000  # of one programme of a dive: a few hundred are usual, and it may not end
_NODES = 30  # of the search for whole columns: a limit that, unlike one of time, gives the same answer again


class Master:
    """The linear programme over those of the columns that have been added.

    Args:
        count: n, the number of records.
        alone: what it costs to leave a record out of all groups; None: that may not be.

    Attributes:
        added: numbers of the columns that have been added.
    """

    def __init__(self, count: int, alone: float | None = None) -> None:
        self._count = count
        self._alone = 0 if alone is None else count
        self._columns = Columns(np.zeros((0, 0), np.int32), np.zeros(0))
        self.added = np.zeros(0, np.int64)
        self._highs = quiet_highs()
        empty = np.zeros(0)
        self._highs.addRows(
            count, np.ones(count), np.ones(count), 0, empty.astype(np.int32), empty.astype(np.int32), empty
        )
        if alone is not None:
            self._highs.setOptionValue("simplex_iteration_limit", _ITERATIONS)
            each = np.arange(count, dtype=np.int32)
            self._highs.addCols(
                count, np.full(count, alone), np.zeros(count), np.full(count, highspy.kHighsInf),
                count, each, each, np.ones(count),
            )  # fmt: skip

    def add(self, columns: Columns, some: Indices) -> int:
        """Take in some of the columns, those that are not there yet; how many these are.

        Args:
            columns: those of the last call, and perhaps more behind them.
        """
        self._columns = columns
        new = some[~np.isin(some, self.added)]
        members = self._columns.members[new]
        sizes = (members >= 0).sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32) if len(new) else np.zeros(0, np.int32)
        self._highs.addCols(
            len(new), self._columns.costs[new], np.zeros(len(new)), np.full(len(new), highspy.kHighsInf),
            int(sizes.sum()), starts, members[members >= 0], np.ones(int(sizes.sum())),
        )  # fmt: skip
        self.added = np.concatenate([self.added, new])
        return len(new)

    def relaxed(self) -> tuple[float, Matrix]:
        """The optimum where a column may be taken in part, and the price of each record."""
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # from the start it may be more exact
            self._highs.clearSolver()
            self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # the known groups are a solution
            raise Unsolved("HiGHS did not solve the relaxation of a set partitioning problem")
        return self._highs.getObjectiveValue(), np.array(self._highs.getSolution().row_dual)

    def parts(self) -> Matrix:
        """Which part of each of the columns that have been added the last optimum takes."""
        return np.array(self._highs.getSolution().col_value)[self._alone :]

    def take(self, place: int) -> None:
        """From now on that one of the columns that have been added is taken whole."""
        self._highs.changeColBounds(self._alone + place, 1.0, 1.0)

    def centres(self, points: Matrix) -> Matrix:
        """The means of the groups of which some part is taken, and the records."""
        members = self._columns.members[self.added[self.parts() > TOLERANCE]]
        inside = (members >= 0)[:, :, None]
        means = np.where(inside, points[members], 0.0).sum(axis=1) / inside.sum(axis=1)
        return np.concatenate([points, means])

    def whole(self, over: float, reduced: Matrix | None = None, most: int = 0) -> Indices | None:
        """The best groups of the columns that have been added; None where there was no time to find any, or are none.

        Args:
            over: when to stop looking.
            reduced: what each of all columns costs more than its records are worth; None: they are chosen of all.
            most: they are chosen of so many of the cheapest.
        """
        highs, added = quiet_highs(), self.added
        highs.passModel(self._highs.getLp())
        if reduced is not None:
            others = np.argsort(reduced[added], kind="stable")[most:].astype(np.int32)
            highs.changeColsBounds(len(others), others, np.zeros(len(others)), np.zeros(len(others)))
        highs.changeColsIntegrality(len(added), np.arange(len(added), dtype=np.int32), np.ones(len(added), np.uint8))
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.setOptionValue("mip_max_nodes", _NODES)
        if over < np.inf:
            highs.setOptionValue("time_limit", max(1.0, over - time.monotonic()))
        highs.run()
        taken = np.array(highs.getSolution().col_value)
        if len(taken) != len(added):
            return None
        chosen = self._columns.members[added[taken > 0.5]]
        groups = np.full(self._count, -1, np.int64)
        number, place = np.nonzero(chosen >= 0)
        groups[chosen[number, place]] = number
        return groups if len(number) == self._count and (groups >= 0).all() else None
