"""What a login was told is counted over its sessions, and over the gateways of a file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from register_of_people import SECRET, made
from served_gateway import PASSWORD, Served, start

import sdcduck

psycopg = pytest.importorskip("psycopg")


def test_two_gateways_of_a_file_count_together(tmp_path: Path) -> None:
    register = made(tmp_path / "register")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        for user in ("ann", "bob"):
            con.execute(f"FROM sdc_create_user('{user}', '{PASSWORD}')").fetchall()
    gateways = [start(register, tmp_path / name) for name in ("one", "other")]
    try:
        for served in gateways:
            served.database = "people"
        assert [_told(served, "ann") for served in gateways] == [[0], [0]]
        assert _asked(gateways[0], "ann", 1)
        assert _asked(gateways[1], "ann", 2)
        assert [_told(served, "ann") for served in gateways] == [[2], [2]]
        assert _told(gateways[0], "bob") == [0]
        with pytest.raises(psycopg.Error, match="SDC070"):
            _rows(gateways[1], "ann", "SELECT a, b, c, count(*) FROM people WHERE ill GROUP BY CUBE (a, b, c)")
    finally:
        for served in gateways:
            served.stop()


def test_refusals_of_exact_counts_are_counted_by_all_gateways(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 4 AS a, i < 12 AS ill FROM range(100) t(i)").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['a', 'ill'], method := 'threshold',
            min_units := 5, sequence := 'atoms')""").fetchall()
        con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}')").fetchall()
    gateways = [start(path, tmp_path / name) for name in ("one", "other")]
    try:
        for served in gateways:
            served.database = "people"
        few = "a = 1 AND ill"
        for served in gateways:
            with pytest.raises(psycopg.Error, match="SDC070"):
                _rows(served, "ann", f"SELECT count(*) FROM people WHERE {few}")
        assert _rows(gateways[0], "ann", "SELECT count(*) FROM people WHERE a = 2") == [(25,)]
        with pytest.raises(psycopg.Error, match="SDC070"):
            _rows(gateways[1], "ann", f"SELECT count(*) FROM people WHERE a = 2 OR ({few})")
        assert [_told(served, "ann") for served in gateways] == [[1], [1]]
    finally:
        for served in gateways:
            served.stop()


def test_a_budget_of_questions_is_one_of_all_gateways_and_said_beside_each_answer(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 4 AS a FROM range(100) t(i)").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['a'], method := 'threshold',
            min_units := 5)""").fetchall()
        con.execute("FROM sdc_question_budget('people', 2)").fetchall()
        con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}')").fetchall()
    gateways = [start(path, tmp_path / name) for name in ("one", "other")]
    notices: list[str | None] = []
    try:
        for served in gateways:
            served.database = "people"
            with psycopg.connect(**{**served.options, "user": "ann"}, autocommit=True) as con:
                con.add_notice_handler(lambda notice: notices.append(notice.message_primary))
                assert con.execute("SELECT count(*) FROM people WHERE a = 2").fetchall() == [(25,)]
        assert notices == [f"people: {left} of 2 questions are left today" for left in (1, 0)]
        for served in gateways:
            with pytest.raises(psycopg.Error, match="SDC073") as refused:
                _rows(served, "ann", "SELECT count(*) FROM people WHERE a = 2")
            assert refused.value.sqlstate == "53400"
            assert [row[1:4] for row in _rows(served, "ann", "SHOW sdc_questions")] == [(2, 2, 0)]
    finally:
        for served in gateways:
            served.stop()


def _rows(served: Served, user: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(**{**served.options, "user": user}, autocommit=True) as con:
        found: list[tuple[object, ...]] = con.execute(query).fetchall()
    return found


def _asked(served: Served, user: str, value: int) -> bool:
    return len(_rows(served, user, f"SELECT count(*) FROM people WHERE ill AND a = {value}")) == 1


def _told(served: Served, user: str) -> list[object]:
    return [row[1] for row in _rows(served, user, "SHOW sdc_sequence")]
