"""Moves that are known: what one program found shows that other primary cells are protected, too.

A move may be made smaller, larger as long as no inner value falls below 0, and the other way round. So one that puts a
cell as far as its rule wants often does the same for others that move with it, and no program need be asked for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

MOVED = 1e-7
"""Of the distance: what moves less is rounding."""
_MOST = 40  # moves that are kept for a task, those found last


@dataclass(frozen=True)
class Task:
    """A primary cell and how far it must be able to move: ``sign`` 1 is up, -1 down."""

    cell: int
    sign: int
    distance: float


@dataclass(frozen=True)
class Move:
    """By how much each cell moves.

    Attributes:
        far: (N,), in units of the distance of the task that was asked.
        ahead: how many times the move can be made before an inner value falls below 0.
        back: the same the other way round.
        noise: the most that an inner cell moved without counting as moved.
    """

    far: Floats
    ahead: float
    back: float
    noise: float


class Known:
    """The moves found so far in one publication, by the tasks that they do.

    Attributes:
        doing: of each task, the cells that its moves need.
        blamed: of each cell, the task that could not be done without it when it was last to be published.
    """

    def __init__(self, tasks: list[Task], given: Booleans) -> None:
        self.tasks, self.given = list(tasks), given
        self.cell = np.array([task.cell for task in tasks], dtype=np.int64)
        self.sign = np.array([task.sign for task in tasks], dtype=np.float64)
        self.distance = np.array([task.distance for task in tasks], dtype=np.float64)
        self.doing: dict[Task, list[Indices]] = {}
        self.blamed: dict[int, Task] = {}

    def add(self, task: Task, move: Move) -> Indices:
        """Note what a move does; the cells that it needs, without those given."""
        size = np.abs(move.far)
        moved = size > MOVED
        needs = np.flatnonzero(moved & ~self.given)
        noise = max(move.noise, float(size[~moved].max(initial=0.0)))
        # So many times the move must be made for each task: backwards where that is less than 0.
        there = move.far[self.cell]
        clear = np.abs(there) * MOVED > noise
        times = np.divide(self.distance * self.sign / task.distance, there, out=np.zeros_like(there), where=clear)
        done = clear & (times <= move.ahead) & (-times <= move.back)
        for place in np.flatnonzero(done).tolist():
            self._note(self.tasks[place], needs)
        self._note(task, needs)
        return needs

    def within(self, task: Task, pattern: Booleans) -> Indices | None:
        """The cells that a known move for the task needs, all of them in the pattern; None: none is known."""
        for needs in reversed(self.doing.get(task, [])):
            if pattern[needs].all():
                return needs
        return None

    def _note(self, task: Task, needs: Indices) -> None:
        moves = self.doing.setdefault(task, [])
        moves.append(needs)
        if len(moves) > _MOST:
            del moves[0]
