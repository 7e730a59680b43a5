"""Wide enough intervals: suppress more cells until every primary cell can move as far as its rule wants, and no more.

Three ways lead to a pattern, and the cheapest is taken. From a pattern that protects against exact computation, each
primary cell and direction adds the cells of its cheapest move; what has moved once can move again (`held.Held.close`).
From the primary cells alone the same is done with prices that come nearer to what a pattern costs. And from the better
of the two, cells are published in part and what is then missing is repaired, again and again (large neighbourhood
search, Shaw 1998). After each, cells that no move needs are published again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.suppression.covering import Covering
from sdcduck.methods.suppression.cuts import Attacker
from sdcduck.methods.suppression.held import Held, Terms
from sdcduck.methods.suppression.known import Known, Task
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.moves import Moves
from sdcduck.methods.suppression.optimal import optimal_suppression

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_ROUNDS = 3  # of better prices
_FEWEST, _MOST = 3, 30  # secondary cells that a trial publishes
_TASTE = 0.3  # standard deviation of the logarithm of the factors that shake up the costs
_CLEANING = 15.0  # seconds for the cells of each of the first two patterns
_SECOND = 2e7
"""Work (`Moves.work`) of a second of a processor core, more or less."""
_SMALL, _SHARE = 1500, 0.6  # cells of publications that integer programming is asked about, and its share of the time
_LIMIT = 5.0  # seconds of that where there is no limit
_REPAIRS = 5.0  # seconds after which repairs make room for integer programming over some cells


@dataclass(frozen=True)
class Widening:
    """A pattern with wide enough intervals.

    Attributes:
        suppressed: bool (N,), the pattern.
        impossible: int64, primary cells that cannot move as far whatever is suppressed.
        widened: bool (N,), what the first way alone leads to.
        before: bool (N,), the better of the first two ways: what it would have been without trials.
        trials: how many patterns were tried.
        ended: whether all trials were made that were to be made.
    """

    suppressed: Booleans
    impossible: Indices
    widened: Booleans
    before: Booleans
    trials: int
    ended: bool


@dataclass(frozen=True)
class Search:
    """How long to look for a cheaper pattern.

    Attributes:
        trials: at most so many.
        seconds: about so many of a processor core, counted in steps of the solver, so that the answer is the same on
            every machine; infinite: no limit.
        seed: of the random choices.
        whole: whether the seconds are those of all that follows the first pattern that protects, with the two ways to
            a cheaper one, which have a time of their own otherwise.
    """

    trials: int = 0
    seconds: float = np.inf
    seed: int = 0
    whole: bool = False


NO_SEARCH = Search()


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
    given: Booleans | None = None,
    lacking: Callable[[Booleans], Booleans] | None = None,
    search: Search = NO_SEARCH,
    progress: Callable[[int, int], object] | None = None,
) -> Widening:
    """A pattern in which the intervals of some primary cells are wide enough.

    Args:
        x: m inner cells x N cells.
        y: float64 (m,), inner values. They stay at 0 or above, but for negative ones, whose sign tells nothing.
        suppressed: bool (N,), a pattern to begin with.
        cells: int64, the primary cells to protect, among the suppressed ones.
        upl, lpl: float64 (N,), how far above and below its value a cell must be able to lie, in its unit; a cell that
            cannot fall so far without inner values below 0 need only fall to 0.
        cost: float64 (N,), at least 0, of suppressing a cell.
        ineligible: bool (N,), cells that stay as they are.
        given: bool (N,), suppressed cells that are never published; default all of them.
        lacking: which cells a pattern must suppress beside its own, for other reasons than the width of intervals; with
            them it lacks none. The pattern to begin with lacks none.
        search: how long to look for cheaper patterns.
        progress: called with what is done and what there is to do, several times a second.

    Raises:
        ValueError: arrays that do not fit the matrix, or values that are not finite.
    """
    if y.shape != (x.rows,) or any(a.shape != (x.columns,) for a in (suppressed, upl, lpl, cost, ineligible)):
        raise ValueError("one value for each inner cell, and one of everything else for each cell, is needed")
    if not all(np.isfinite(a).all() for a in (y, upl, lpl, cost)) or cost.min(initial=0.0) < 0:
        raise ValueError("values, protection levels and costs must be finite, and costs not negative")
    told, steps = 0, 3 * len(cells)

    def check() -> None:
        if progress is not None:
            progress(told, steps)

    def step() -> None:
        nonlocal told
        told += len(cells)
        check()

    totals = np.asarray(x.totals(y), dtype=np.float64)
    fall = np.minimum(lpl, totals) if (y >= 0).all() else lpl
    terms = Terms(cost, np.abs(totals), suppressed if given is None else given, ineligible, check)
    # The largest first: their moves, made smaller, often do for others.
    wanted_of = {
        cell: [Task(cell, sign, float(by)) for sign, by in ((1, upl[cell]), (-1, fall[cell])) if by > 0]
        for cell in cells[np.argsort(-upl[cells], kind="stable")].tolist()
    }
    known = Known([task for wanted in wanted_of.values() for task in wanted], terms.given)
    held = Held(Moves(x, y), terms, known, suppressed)
    held.moves.within(suppressed)
    tasks, impossible = [], []
    for done, (cell, wanted) in enumerate(wanted_of.items()):
        failed = [task for task in wanted if not held.close(task, 0)]
        # A cell that cannot move as far as is wanted goes on moving as far as it can now, at the end.
        tasks += [(task, task in failed) for task in wanted]
        impossible += [cell] if failed else []
        told = done + 1
        check()
    widened = held.pattern.copy()
    todo = [nearer for task, failed in tasks if (nearer := held.reached(task) if failed else task) is not None]
    if not todo:
        return Widening(widened, np.array(impossible, dtype=np.int64), widened, widened, 0, True)
    refining = _Refining(held, todo, lacking, search)
    before = refining.better(step)
    best = refining.searched(refining.proven(before, x, y))
    return Widening(
        best.pattern, np.array(impossible, dtype=np.int64), widened, before.pattern, refining.made, refining.ended
    )


class _Refining:
    """The way from a pattern that protects to a cheaper one."""

    def __init__(
        self, held: Held, tasks: list[Task], lacking: Callable[[Booleans], Booleans] | None, search: Search
    ) -> None:
        self.held, self.tasks, self.lacking, self.search = held, tasks, lacking, search
        self.cost, self.moves = held.terms.cost, held.moves
        self.movable = ~held.terms.given & ~held.terms.fixed
        self.made, self.ended = 0, True
        self.spent, self.optimal = 0.0, False
        self.covering: Covering | None = None
        # Of large publications the cells are looked at as far as that goes in the time of the first way.
        self.time = max(self.moves.work, _SECOND * _CLEANING)
        self.limit = self.moves.work + search.seconds * _SECOND if search.whole else np.inf

    def better(self, step: Callable[[], None]) -> Held:
        """The better pattern of the first two ways; ``step`` is called after each."""
        best = self._cleaned(self.held)
        step()
        other = self._from_primary(best.value[0])
        step()
        return best if other is None else min(best, other, key=lambda held: held.value)

    def _order(self, held: Held, cost: Floats) -> Indices:
        """Secondary cells, the dearest first."""
        cells = np.flatnonzero(held.pattern & self.movable)
        ordered: Indices = cells[np.argsort(-cost[cells], kind="stable")]
        return ordered

    def _cleaned(self, held: Held, bar: float = np.inf) -> Held:
        """Without the cells that nothing needs; the same if that would lack more than it saves.

        Args:
            bar: a value that the pattern must come down to, or is not wanted.
        """
        cleaned = held.copy()
        limit = min(self.moves.work + self.time, self.limit)
        order = self._order(cleaned, self.cost)
        hopeless = self._hopeless(cleaned, order, bar)
        cleaned.open(order, enough=lambda turn: hopeless(turn) or self.moves.work > limit)
        self._complete(cleaned)
        return min(held, cleaned, key=lambda each: each.value)

    def _complete(self, held: Held) -> bool:
        """Suppress what the pattern lacks; whether it lacked anything."""
        if self.lacking is None:
            return False
        more = self.lacking(held.pattern)
        held.pattern |= more
        return bool(more.any())

    def _from_primary(self, bar: float) -> Held | None:
        """Another pattern, of the better prices, for no more than the bar; None where a task cannot be done."""
        held = Held(self.moves, self.held.terms, self.held.known, self.held.terms.given)
        limit = min(self.moves.work + 2 * self.time, self.limit)
        for task in sorted(self.tasks, key=lambda task: -task.distance):
            if self.moves.work > limit or not held.close(task, _ROUNDS):
                return None
        self._complete(held)
        return self._cleaned(held, bar)

    def proven(self, best: Held, x: DummyMatrix, y: Floats) -> Held:
        """The best pattern there is, where integer programming finds it in its share of the time; else the same."""
        share = min(_SHARE * min(self.search.seconds, 2 * _LIMIT) * _SECOND, self.limit - self.moves.work)
        if not self.search.trials or share <= 0 or x.columns > _SMALL or (y < 0).any():
            return best
        given, fixed = best.terms.given, best.terms.fixed
        up, down = np.zeros(x.columns), np.zeros(x.columns)
        for task in self.tasks:
            (up if task.sign > 0 else down)[task.cell] = task.distance
        cost = np.where(given, 0.0, self.cost + 1e-9 * float(self.cost.max(initial=0.0)))
        try:
            found = optimal_suppression(
                x, y, given, up, down, cost=cost, ineligible=fixed & ~given, start=best.pattern, time_limit=np.inf,
                steps=share, check=best.terms.check,
            )  # fmt: skip
            self.spent = min(found.steps, share)
            self.limit -= self.spent
            if found.status == "time limit" and (best.pattern & self.movable).any():
                z = np.asarray(x.totals(y), dtype=np.float64)
                attacker = Attacker(x, y, z, given, up, np.minimum(down, z), best.terms.check)
                self.covering = Covering(attacker, self.cost, given, fixed, found.cuts, self.search.seed)
        except Unsolved:
            return best  # numbers too far apart for the solver: the trials have programs of their own scale
        held = self._protecting(found.suppressed) if found.status == "optimal" else None
        if held is None:
            return best
        self.optimal = not self._complete(held) and held.value[0] <= float(self.cost[found.suppressed & ~given].sum())
        return min(best, held, key=lambda each: each.value)

    def _protecting(self, pattern: Booleans) -> Held | None:
        """A pattern with moves that show that it protects, by programs that did not lead to it."""
        held = Held(self.moves, self.held.terms, self.held.known, pattern)
        return held if all(held.close(task, 0) for task in self.tasks) else None

    def searched(self, first: Held) -> Held:
        """The best pattern after all trials, or as many as there is time for; none where the best is proven.

        Integer programming over some cells begins with the first pattern again: from a repaired one it leads less far.
        """
        if self.optimal:
            return first
        rng = np.random.default_rng(self.search.seed)
        begun = self.moves.work - self.spent
        limit = min(begun + self.search.seconds * _SECOND, self.limit)
        best = self._repaired(first, rng, limit if self.covering is None else min(limit, begun + _REPAIRS * _SECOND))
        if self.covering is not None:
            best = min(best, self._covered(first, limit), key=lambda held: held.value)
            best = self._repaired(best, rng, limit)
        self.ended = self.made == self.search.trials or not (best.pattern & self.movable).any()
        return best

    def _repaired(self, best: Held, rng: np.random.Generator, limit: float) -> Held:
        """The best pattern of repairs, as many as are left and there is time for."""
        while self.made < self.search.trials and self.moves.work <= limit and (best.pattern & self.movable).any():
            self.made += 1
            tried = self._tried(best, rng)
            # Patterns of the same value are taken too: they lead on to others.
            if tried is not None and tried.value <= best.value:
                best = tried
        return best

    def _covered(self, best: Held, limit: float) -> Held:
        """The best pattern by integer programming over some cells at a time, until many in turn gain nothing."""
        failed = 0
        while self.covering is not None and failed < self.search.trials and self.moves.work <= limit:
            before = self.covering.work
            try:
                found = self.covering.cheaper(best.pattern)
            except Unsolved:
                break  # as above
            self.moves.work += self.covering.work - before
            held = None if found is None else self._protecting(found)
            failed += 1
            if held is not None:
                self._complete(held)
                if held.value < best.value:
                    best, failed = held, 0
        return best

    def _tried(self, best: Held, rng: np.random.Generator) -> Held | None:
        """Another pattern: some secondary cells are published, and what that breaks is repaired; None: it cannot be."""
        held = best.copy()
        held.pattern[self._related(best, rng)] = False
        taste = np.exp(rng.normal(0.0, _TASTE, len(self.cost)))
        broken = [task for task in self.tasks if not held.stands(task)]
        for place in rng.permutation(len(broken)):
            task = broken[place]
            if self.moves.work > self.limit or (not held.stands(task) and not held.close(task, _ROUNDS, taste)):
                return None
        # What no broken task has to do with is as it was: it could not be published then.
        touched = frozenset[int]().union(*(each.needed[task] for task in broken for each in (best, held)))
        order = self._order(held, self.cost * taste)
        order = order[np.isin(order, np.fromiter(touched, dtype=np.int64, count=len(touched)))]
        hopeless = self._hopeless(held, order, best.value[0])
        held.open(order, enough=lambda turn: hopeless(turn) or self.moves.work > self.limit)
        if held.value <= best.value:
            self._complete(held)
        return held

    def _related(self, held: Held, rng: np.random.Generator) -> list[int]:
        """Some secondary cells that move together: each is needed by a task that needs another one, where that goes."""
        secondary = np.flatnonzero(held.pattern & self.movable)
        size = min(len(secondary), max(1, round(float(np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST)))))))
        users: dict[int, list[Task]] = {}
        for task in self.tasks:
            for cell in held.needed[task]:
                users.setdefault(cell, []).append(task)
        chosen, seen, waiting = list[int](), set[int](), list[int]()
        while len(chosen) < size:
            if not waiting:
                left = secondary[~np.isin(secondary, chosen)]
                waiting.append(int(rng.choice(left)))
                seen.update(waiting)
            cell = waiting.pop(int(rng.integers(len(waiting))))
            chosen.append(cell)
            beside = {other for task in users.get(cell, []) for other in held.needed[task]} - seen
            new = [other for other in sorted(beside) if self.movable[other]]
            seen.update(new)
            waiting += new
        return chosen

    def _hopeless(self, held: Held, order: Indices, bar: float) -> Callable[[int], bool]:
        """Whether a pattern that is published in this order will cost more than the bar, asked at each cell."""
        left = np.append(np.cumsum(self.cost[order][::-1])[::-1], 0.0)

        def enough(turn: int) -> bool:
            return turn % 4 == 0 and held.value[0] - float(left[turn]) > bar * (1 + 1e-9)

        return enough
