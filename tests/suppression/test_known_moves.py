"""A move that was found shows more than it was asked for, and a published pattern is not chosen again."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

import sdcduck
from sdcduck.methods.suppression.known import Known, Move, Task
from sdcduck.udfs.suppression import pattern

GIVEN = np.array([True, True, False, False, False])


def known(*tasks: Task) -> Known:
    return Known(list(tasks), GIVEN)


def everywhere(known: Known, task: Task) -> list[int] | None:
    needs = known.within(task, np.ones(5, dtype=bool))
    return None if needs is None else needs.tolist()


def test_a_move_made_smaller_and_the_other_way_round_does_other_tasks() -> None:
    asked = Task(0, 1, 10.0)
    smaller, larger, too_large = Task(1, -1, 4.0), Task(1, -1, 9.0), Task(1, -1, 11.0)
    back, too_far_back = Task(0, -1, 5.0), Task(0, -1, 6.0)
    moves = known(asked, smaller, larger, too_large, back, too_far_back)
    # The first cell goes up by 10 and the second down by 5; it can be made twice, or half of it backwards.
    moves.add(asked, Move(np.array([1.0, -0.5, 0.5, 0.0, 1e-9]), ahead=2.0, back=0.5, noise=0.0))
    done = [everywhere(moves, task) for task in (asked, smaller, larger, back)]
    assert done == [[2], [2], [2], [2]]
    assert everywhere(moves, too_large) is None
    assert everywhere(moves, too_far_back) is None


def test_a_move_is_known_only_where_all_it_needs_is_suppressed() -> None:
    task = Task(0, 1, 1.0)
    moves = known(task)
    moves.add(task, Move(np.array([1.0, 0.0, -1.0, 0.0, 0.0]), ahead=1.0, back=1.0, noise=0.0))
    assert moves.within(task, np.array([True, True, False, True, True])) is None
    moves.add(task, Move(np.array([1.0, 0.0, 0.0, -1.0, 0.0]), ahead=1.0, back=1.0, noise=0.0))
    found = moves.within(task, np.array([True, True, False, True, True]))
    assert found is not None
    assert found.tolist() == [3]


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_what_is_rounding_beside_one_distance_may_not_be_beside_a_smaller_one(noise: float) -> None:
    asked, small = Task(0, 1, 1e6), Task(1, 1, 1e3)
    moves = known(asked, small)
    moves.add(asked, Move(np.array([1.0, 1e-3, 1.0, 0.0, 0.0]), ahead=1.0, back=1.0, noise=noise))
    assert everywhere(moves, asked) == [2]
    assert everywhere(moves, small) == (None if noise else [2])


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sdcduck.connect()
    connection.execute("""
        CREATE TABLE firms AS SELECT id AS firm, id % 4 AS county, id // 4 % 5 AS branch, (1 + id * id * 37 % 9973)
            AS turnover FROM range(70) firms(id)""")
    yield connection
    connection.close()


PUBLISH = """FROM sdc_publish('firms', $$
    SELECT county, branch, count(*) AS n, sum(turnover) AS turnover FROM firms GROUP BY CUBE (county, branch) $$,
    p_percent := 40, contributor := 'firm')"""
AUDIT = "FROM sdc_audit('firms')"


def never(*_: object, **__: object) -> None:
    raise AssertionError("chosen again")


def test_the_audit_of_a_publication_is_of_the_cells_as_they_were_published(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(secondary,)] = con.execute(f"SELECT secondary_cells {PUBLISH}").fetchall()
    assert secondary > 0
    stored = con.execute("SELECT county, branch FROM sdc.firms_cells WHERE status <> 'open' ORDER BY ALL").fetchall()
    rules = "p_percent := 40, contributor := 'firm'"
    anew = con.execute(f"FROM sdc_audit('firms', {rules})").fetchall()
    monkeypatch.setattr(pattern, "choose_cells", never)
    assert con.execute(AUDIT).fetchall() == anew
    assert con.execute(f"SELECT county, branch {AUDIT} ORDER BY ALL").fetchall() == stored
    # With rules of its own the pattern is another one.
    with pytest.raises(duckdb.Error, match="AssertionError"):
        con.execute("FROM sdc_audit('firms', p_percent := 20, contributor := 'firm')").fetchall()


@pytest.mark.parametrize("status", ["primary", "secondary"])
def test_cells_that_somebody_changed_are_chosen_again(con: duckdb.DuckDBPyConnection, status: str) -> None:
    con.execute(PUBLISH).fetchall()
    before = con.execute(AUDIT).fetchall()
    # Without one of them a primary cell follows, or is none.
    con.execute(f"UPDATE sdc.firms_cells SET status = 'open' WHERE status = '{status}'")
    assert con.execute(AUDIT).fetchall() == before
