"""A database that DuckDB ends under a gateway: it answers nobody any more, and ends for another one to start."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
from pathlib import Path

import duckdb
import pytest
from served_gateway import PASSWORD, Served, start

import sdcduck
from sdcduck.gateway.serving import ENDED
from sdcduck.guard import Refused
from sdcduck.guard.running import when_ended

psycopg = pytest.importorskip("psycopg")
COUNT = "SELECT count(*) AS n FROM people"
# A checkpoint that is broken off is an error after which DuckDB ends an instance. Nothing that a user may send does so, nor is
# there one of a file that is open for reading: so this gateway holds it for writing, and breaks one off when it is told to.
_BREAKS = """
import signal, duckdb
connect, held = duckdb.connect, []
def writing(database=":memory:", read_only=False, config=None, **more):
    if not (read_only and config):
        return connect(database, read_only=read_only, config=config or {}, **more)
    held.append(connect(database, config={"memory_limit": "1GB"}))
    return held[-1]
def broken_off(*_):
    for statement in ("PRAGMA debug_checkpoint_abort='before_header'", "CREATE TABLE lost AS FROM range(9)"):
        held[0].cursor().execute(statement)
    while True:
        try:
            held[0].cursor().execute("CHECKPOINT")
        except duckdb.TransactionException:
            pass  # others are at work: there is a checkpoint between two of them
        except duckdb.FatalException:
            print("broken off", flush=True)
            return
duckdb.connect = writing
signal.signal(signal.SIGUSR1, broken_off)
"""


def breaking(register: Path, folder: Path, *options: str) -> Served:
    """A gateway to a copy of the register, of which a checkpoint was broken off."""
    file = folder / "register.duckdb"
    shutil.copy(register, file)
    return start(file, folder / "served", *options, before=_BREAKS)


@pytest.mark.parametrize("options", [(), ("--flight-port", "0")])
def test_a_gateway_ends_with_its_database(register: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    served = breaking(register, tmp_path, *options)
    with psycopg.connect(**served.options, autocommit=True) as con:
        before = con.execute(COUNT).fetchone()
        served.process.send_signal(signal.SIGUSR1)
        with pytest.raises(psycopg.Error, match=r"SDC090.*has ended this database"):
            while con.execute(COUNT).fetchone() == before:
                pass
        assert served.process.wait(60) == ENDED
        with pytest.raises(psycopg.Error):
            con.execute(COUNT)
    told = [json.loads(line)["log"] for line in served.events.read_text().splitlines() if line.startswith("{")]
    assert next(event for event in told if event["event"] == "database ended")["exit"] == ENDED
    with contextlib.suppress(duckdb.Error):  # what was broken off stands in the log of the file, and is made up for
        duckdb.connect(str(tmp_path / "register.duckdb")).close()
    again = start(tmp_path / "register.duckdb", tmp_path / "again")
    with psycopg.connect(**again.options, autocommit=True) as con:
        assert con.execute(COUNT).fetchone() == before
    assert again.stop() == 0


def test_over_arrow_flight_alone_too(register: Path, tmp_path: Path) -> None:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    served = breaking(register, tmp_path, "--flight-port", "0")
    where = {"username": served.user, "password": PASSWORD}
    nobody_to_close_it = contextlib.suppress(adbc.Error, RuntimeError, ResourceWarning)
    with nobody_to_close_it, adbc.connect(f"grpc://127.0.0.1:{served.flight}", db_kwargs=where) as con:
        cursor = con.cursor()
        cursor.execute(COUNT)
        before = cursor.fetchall()
        served.process.send_signal(signal.SIGUSR1)
        with pytest.raises(adbc.Error):
            while True:
                cursor.execute(COUNT)
                assert cursor.fetchall() == before
    assert served.process.wait(60) == ENDED


def test_a_gateway_stays_where_a_question_alone_failed(register: Path, tmp_path: Path) -> None:
    served = start(register, tmp_path)
    with psycopg.connect(**served.options, autocommit=True) as con:
        with pytest.raises(psycopg.Error, match="SDC090"):
            con.execute("SELECT 9223372036854775807 + n FROM (SELECT count(*) AS n FROM people)")
        assert con.execute(COUNT).fetchone() is not None
    assert served.stop() == 0


def test_whoever_listens_hears_of_an_ended_database(tmp_path: Path) -> None:
    with contextlib.closing(sdcduck.connect(tmp_path / "people.duckdb", secret="the secret of the tests")) as con:
        con.execute("CREATE TABLE people AS SELECT range AS id FROM range(9)")
        con.execute("FROM sdc_declare_public('people')").fetchall()
        one = sdcduck.open_guard(con)
        question, heard = one.question("FROM people"), list[str]()
        stop = when_ended(lambda: heard.append("ended"))
        with pytest.raises(Refused, match="SDC090"):
            one.sql("SELECT id + 9223372036854775807 FROM people")
        assert heard == []
        con.execute("PRAGMA debug_checkpoint_abort='before_header'; CREATE TABLE lost AS FROM range(9)")
        with pytest.raises(duckdb.FatalException):
            con.execute("CHECKPOINT")
        doors = (question.ask, lambda: one.sql("FROM people"), lambda: one.columns("FROM people"), one.relations)
        for door in (*doors, lambda: one.stream("FROM people"), lambda: one.explain("FROM people", user="ann")):
            heard.clear()
            with pytest.raises(Refused, match=r"SDC090.*has ended this database"):
                door()
            assert heard
        stop()
        heard.clear()
        with pytest.raises(Refused):
            one.sql("FROM people")
        assert heard == []
