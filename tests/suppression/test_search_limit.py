"""A time that somebody said is that of all that follows the first pattern that protects."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from skewed_tables import protects, table, value

import sdcduck
from sdcduck.methods.suppression import intervals
from sdcduck.methods.suppression.intervals import NO_SEARCH, Search, widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.moves import Moves


class Counted(Moves):
    """The moves of the last search."""

    last: Counted
    _work = 0
    most = 0

    def __init__(self, x: DummyMatrix, y: NDArray[np.float64]) -> None:
        super().__init__(x, y)
        Counted.last = self

    @property
    def work(self) -> int:
        return self._work

    @work.setter
    def work(self, work: int) -> None:
        self.most, self._work = max(self.most, work - self._work), work


@pytest.mark.parametrize("trials", [0, 200])
@pytest.mark.parametrize("part", [0.1, 0.4, 0.8])
def test_all_that_follows_the_first_pattern_has_one_limit(
    trials: int, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "Moves", Counted)
    x, y, primary, width = table((6, 7), 1)
    z = np.asarray(x.totals(y))

    def searched(search: Search) -> intervals.Widening:
        return widen_intervals(
            x, y, primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
            search=search,
        )  # fmt: skip

    first = searched(Search(0, 0.0, whole=True))
    begun = Counted.last.work
    searched(NO_SEARCH)
    limit = part * (Counted.last.work - begun)
    found = searched(Search(trials, limit / intervals._SECOND, whole=True))
    # What was begun is done: these are a few programs.
    assert Counted.last.work - begun <= limit + 6 * Counted.last.most
    assert protects(x, y, found.suppressed, primary, width)
    assert value(x, y, found.suppressed) <= value(x, y, first.suppressed)
    assert not trials or not found.ended


def test_the_usual_time_is_beside_that_of_the_first_steps() -> None:
    con = sdcduck.connect(progress=False)
    con.execute(
        """CREATE TABLE firms AS
        SELECT id % 9 AS county, id // 9 % 11 AS branch, (50 + 60000 / (1 + (id * 7919 + id * id) % 97) ** 2)::INTEGER AS turnover
        FROM range(400) firms(id)"""
    )

    def cells(more: str) -> int:
        publication = """SELECT county, branch, count(*) AS n, sum(turnover) AS turnover FROM firms
            GROUP BY CUBE (county, branch)"""
        told = con.execute(
            f"SELECT secondary_cells FROM sdc_publish('turnover', $${publication}$$, p_percent := 15{more})"
        ).fetchall()
        return int(told[0][0])

    usual = cells("")
    assert cells(", search_seconds := 60") == usual
    assert cells(", search_seconds := 0") == usual
    # Nothing follows the first pattern.
    assert cells(", search_seconds := 1e-9") > usual
    with pytest.raises(duckdb.Error, match="search_seconds"):
        cells(", search_seconds := -1")
