"""A pattern that is known to protect: each primary cell and direction has a move that shows it.

A move that was found once goes on showing it as long as the cells that move in it stay suppressed. So a cell may be
published when each of the moves that need it has another one in its place, and nothing else need be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression.known import MOVED, Known, Task
from sdcduck.methods.suppression.moves import Moves

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_SETTLED = 1e-3  # of the distance: what moves less is, in the next round, as dear as what moves so much
_NEARLY = 1 - 1e-6  # of what can be reached: the rest is left to the solver's tolerances


@dataclass(frozen=True)
class Terms:
    """What holds for all patterns of a publication.

    Attributes:
        cost: (N,), of suppressing a cell.
        size: (N,), absolute values of the cells: none can fall further.
        given: (N,), primary and hidden cells, which are not published in any pattern.
        fixed: (N,), cells that stay as they are.
        check: called between the programs; what it raises ends the work.
    """

    cost: Floats
    size: Floats
    given: Booleans
    fixed: Booleans
    check: Callable[[], object]


class Held:
    """A pattern with the moves that show that it protects; ``pattern`` has hidden cells among the suppressed ones."""

    def __init__(self, moves: Moves, terms: Terms, known: Known, pattern: Booleans) -> None:
        self.moves, self.terms, self.known = moves, terms, known
        self.pattern = pattern.copy()
        self.needed: dict[Task, frozenset[int]] = {}

    def copy(self) -> Held:
        """The same, to be tried on."""
        other = Held(self.moves, self.terms, self.known, self.pattern)
        other.needed = dict(self.needed)
        return other

    @property
    def value(self) -> tuple[float, int]:
        """What the pattern costs, and its number of cells: the less the better."""
        secondary = self.pattern & ~self.terms.given
        return float(self.terms.cost[secondary].sum()), int(secondary.sum())

    def close(self, task: Task, rounds: int, taste: Floats | None = None) -> bool:
        """Suppress what the task needs, if anything; False where nothing helps.

        In the program a cell costs the more the further it moves, in a pattern it costs the same however little. So
        the price of a full move is what it costs to suppress the cell, and in further ``rounds`` that divided by how
        far it moved in the last one. Of all rounds the cheapest is taken.

        Args:
            taste: (N,), factors of the costs.
        """
        if self._done(task):
            return True
        # In a large publication what the pattern has is looked through more cheaply than everything.
        if self.moves.large and not rounds and self._again(task, self.pattern):
            return True
        cost, allowed = self.terms.cost, self.pattern | ~self.terms.fixed
        if taste is not None:
            cost = cost * taste
        new = np.where(self.pattern, 0.0, cost + _least(cost))
        full = new if not rounds else new / np.clip(self.terms.size / task.distance, _SETTLED, 1.0)
        best, least = None, np.inf
        for _ in range(rounds + 1):
            self.terms.check()
            moved = self.moves.cheapest(task, full, allowed)
            if moved is None:
                break
            far = np.abs(moved.far)
            total = float(new[far > MOVED].sum())
            if total < least:
                best, least = moved, total
            if total == 0:
                break
            full = new / np.maximum(far, _SETTLED)
        if best is None:
            return False
        self.pattern |= np.abs(best.far) > MOVED
        self._keep(task, self.known.add(task, best))
        return True

    def reached(self, task: Task) -> Task | None:
        """The task as far as it can be done in this pattern, with the move that shows it; None: not at all."""
        self.terms.check()
        part = self.moves.reach(task, self.pattern)
        if part < 1e-6:
            return None
        nearer = Task(task.cell, task.sign, task.distance * part * _NEARLY)
        return nearer if self._again(nearer, self.pattern, everywhere=True) else None

    def stands(self, task: Task) -> bool:
        """Whether all cells that the task needs are suppressed."""
        return all(self.pattern[cell] for cell in self.needed[task])

    def open(
        self,
        cells: Indices,
        permitted: Callable[[Booleans], bool] | None = None,
        enough: Callable[[int], bool] | None = None,
    ) -> None:
        """Publish the cells in this order, each if all tasks can be done without it (and it is permitted).

        ``enough`` is asked before each, with its place.
        """
        hardest: dict[Task, int] = {}
        self.moves.within(self.pattern)
        for turn, cell in enumerate(cells.tolist()):
            if enough is not None and enough(turn):
                return
            self.pattern[cell] = False
            users = [task for task, needs in self.needed.items() if cell in needs]
            # What failed last fails soonest, and first of all what failed for this cell in an earlier pattern.
            blamed = self.known.blamed.get(cell)
            users.sort(key=lambda task: (task != blamed, -hardest.get(task, -1)))
            before, self.needed = self.needed, dict(self.needed)
            for task in users:
                if not self._done(task) and not self._again(task, self.pattern):
                    hardest[task] = turn
                    self.known.blamed[cell] = task
                    break
            else:
                if permitted is None or permitted(self.pattern):
                    continue
            self.needed = before
            self.pattern[cell] = True

    def _again(self, task: Task, allowed: Booleans, *, everywhere: bool = False) -> bool:
        """Find another move within the suppressed cells, of those that are cheap."""
        self.terms.check()
        price = np.where(self.terms.given, 0.0, self.terms.cost)
        moved = self.moves.cheapest(task, price, allowed, again=True, everywhere=everywhere)
        if moved is None:
            return False
        self._keep(task, self.known.add(task, moved))
        return True

    def _done(self, task: Task) -> bool:
        """Whether a known move does the task in this pattern."""
        needs = self.known.within(task, self.pattern)
        if needs is not None:
            self._keep(task, needs)
        return needs is not None

    def _keep(self, task: Task, needs: Indices) -> None:
        self.needed[task] = frozenset(needs.tolist())


def _least(cost: Floats) -> float:
    """Something small beside the costs, so that no cell moves for nothing."""
    largest = float(cost.max(initial=0.0))
    return 1e-9 * largest if largest > 0 else 1.0
