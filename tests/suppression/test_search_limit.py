"""The time of a search holds for all of it, and what was found not to protect is not asked again."""

from __future__ import annotations

import numpy as np
import pytest
from skewed_tables import protects, table, value

from sdcduck.methods.suppression import intervals
from sdcduck.methods.suppression.intervals import Search, Widening, widen_intervals
from sdcduck.methods.suppression.known import Known, Task
from sdcduck.methods.suppression.moves import Moves


class Counted(Moves):
    """The moves of the last search."""

    last: Counted

    def __init__(self, x: object, y: object) -> None:
        super().__init__(x, y)  # type: ignore[arg-type]
        self.most = 0
        Counted.last = self

    @property
    def work(self) -> int:
        return self._work

    @work.setter
    def work(self, work: int) -> None:
        self.most = max(getattr(self, "most", 0), work - getattr(self, "_work", 0))
        self._work = work


@pytest.mark.parametrize("trials", [0, 200])
@pytest.mark.parametrize("part", [0.1, 0.4, 0.8])
def test_all_that_follows_the_first_pattern_has_one_limit(
    trials: int, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "Moves", Counted)
    x, y, primary, width = table((6, 7), 1)
    z = np.asarray(x.totals(y))

    def searched(search: Search) -> Widening:
        return widen_intervals(
            x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
            search=search,
        )  # fmt: skip

    first = searched(Search(0, -1.0))
    begun = Counted.last.work
    searched(Search(0))
    whole = Counted.last.work - begun
    limit = part * whole
    found = searched(Search(trials, limit / intervals._SECOND))
    # The cell that is looked at is still done: these are a few programs.
    assert Counted.last.work - begun <= limit + 6 * Counted.last.most
    assert protects(x, y, found.suppressed, primary, width)
    assert value(x, y, found.suppressed) <= value(x, y, first.suppressed)
    assert not trials or not found.ended


def test_a_program_without_an_end_says_what_was_missing() -> None:
    x, y, primary, width = table((5, 6), 1)
    moves = Moves(x, y)
    cell = int(np.flatnonzero(primary)[0])
    task = Task(cell, 1, float(width[cell]))
    assert moves.cheapest(task, np.ones(x.columns), primary) is None
    missing = moves.lacking
    assert len(missing)
    assert not primary[missing].any()
    allowed = np.ones(x.columns, dtype=bool)
    assert moves.cheapest(task, np.ones(x.columns), allowed) is not None
    assert not len(moves.lacking)
    # Without these nothing else helps.
    allowed[missing] = False
    assert moves.cheapest(task, np.ones(x.columns), allowed) is None


def test_one_of_the_missing_cells_is_enough_to_look_again() -> None:
    known = Known([], np.zeros(5, dtype=bool))
    known.bar(np.array([1, 3]))
    pattern = np.array([True, False, True, False, False])
    assert known.barred(1, pattern)
    assert known.barred(3, pattern)
    assert not known.barred(2, pattern)
    pattern[3] = True
    assert not known.barred(1, pattern)


def test_most_cells_that_cannot_be_published_are_known_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [0]

    class Asked(Moves):
        def cheapest(self, *given: object, **more: object) -> object:  # type: ignore[override]
            moved = super().cheapest(*given, **more)  # type: ignore[arg-type]
            failed[0] += moved is None
            return moved

    monkeypatch.setattr(intervals, "_SMALL", 0)
    monkeypatch.setattr(intervals, "Moves", Asked)
    x, y, primary, width = table((6, 7), 1)
    z = np.asarray(x.totals(y))
    counts = []
    for forget in (False, True):
        if forget:
            monkeypatch.setattr(Known, "barred", lambda *_: False)
        failed[0] = 0
        widen_intervals(
            x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
            search=Search(trials=40),
        )  # fmt: skip
        counts.append(failed[0])
    assert counts[0] < counts[1] / 2
