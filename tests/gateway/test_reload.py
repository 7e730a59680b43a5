"""A file that is put in the place of the one served: its users and policies hold from SIGHUP on, and nobody is refused."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_gateway import PASSWORD, Served, start, wait_for

import sdcduck

psycopg = pytest.importorskip("psycopg")

OTHER = "another horse, another battery"
BY_SEX = "SELECT sex, count(*) AS n FROM people GROUP BY sex ORDER BY sex"


@pytest.fixture
def running(register: Path, tmp_path: Path) -> Iterator[Served]:
    """A gateway to a file of its own."""
    shutil.copy(register, tmp_path / "register.duckdb")
    served = start(tmp_path / "register.duckdb", tmp_path / "served")
    yield served
    if served.process.poll() is None:
        served.stop()


def logged_in(running: Served, user: str, password: str) -> Any:
    return psycopg.connect(**{**running.options, "user": user, "password": password}, autocommit=True)


def put_in_place(running: Served, following: Path) -> None:
    following.replace(running.events.parent.parent / "register.duckdb")
    running.process.send_signal(signal.SIGHUP)


def test_users_and_policies_change_while_it_serves(running: Served, register: Path, tmp_path: Path) -> None:
    following = tmp_path / "next.duckdb"
    shutil.copy(register, following)
    with sdcduck.connect(following, secret="the secret of the tests") as con:
        for statement in (
            f"FROM sdc_create_user('cleo', '{OTHER}', role := 'analyst')", f"FROM sdc_create_user('ann', '{OTHER}')",
            "FROM sdc_drop_user('bob')", "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])",
        ):  # fmt: skip
            con.execute(statement).fetchall()
    before = logged_in(running, "ann", PASSWORD)
    assert len(before.execute(BY_SEX).fetchall()) == 2
    put_in_place(running, following)
    wait_for(lambda: running.told("file read again") == 1)
    with pytest.raises(psycopg.OperationalError, match="has changed; connect again"):
        before.execute(BY_SEX)
    for user, password in (("ann", PASSWORD), ("bob", PASSWORD)):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            logged_in(running, user, password)
    for user in ("ann", "cleo"):
        with logged_in(running, user, OTHER) as con:
            assert len(con.execute("SELECT region, count(*) FROM people GROUP BY region").fetchall()) == 3
            with pytest.raises(psycopg.Error, match="sex"):  # no dimension any more
                con.execute(BY_SEX)
    assert [line["user"] for line in running.asked()] == ["ann", "ann", "ann", "cleo", "cleo"]  # one log for all
    assert running.stop() == 0


def test_a_file_that_cannot_be_served_changes_nothing(running: Served, register: Path, tmp_path: Path) -> None:
    following = tmp_path / "next.duckdb"
    shutil.copy(register, following)
    with sdcduck.connect(following) as con:
        con.execute("DELETE FROM sdc.users")
    with logged_in(running, "ann", PASSWORD) as con:
        put_in_place(running, following)
        wait_for(lambda: running.told("file kept") == 1)
        assert len(con.execute(BY_SEX).fetchall()) == 2
        (tmp_path / "none.duckdb").write_text("no database")
        put_in_place(running, tmp_path / "none.duckdb")
        wait_for(lambda: running.told("file kept") == 2)
        assert len(con.execute(BY_SEX).fetchall()) == 2
    assert running.told("file read again") == 0
    assert not list(tmp_path.glob(".register*"))
    assert running.stop() == 0
