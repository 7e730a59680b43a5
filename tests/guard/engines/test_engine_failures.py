"""An engine that takes for ever, goes away, or has other records by now: one refusal, and a line that says so."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.catalog import engines
from sdcduck.catalog.audit_reading import read_log
from sdcduck.catalog.engine_kinds import OfDuckDB
from sdcduck.guard import Guard, Refused

sys.path.insert(0, str(Path(__file__).parent))
from postgres_server import postgres

_QUESTION = "SELECT g, count(*) AS n FROM people GROUP BY g"
_TWICE = "SELECT (SELECT count(*) FROM people) AS n, (SELECT count(*) FROM people WHERE g = 1) AS one"


def _rows() -> pa.Table:
    return pa.table({"id": range(400), "g": pa.array([i % 3 for i in range(400)], pa.int32())})


def _guard(records: Any, tmp_path: Path, **options: Any) -> Guard:
    file = tmp_path / "policies.duckdb"
    with sdcduck.connect(file, secret="the secret of these tests", records=records) as con:
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['g'])").fetchall()
    return sdcduck.open_guard(file, records=records, log=tmp_path / "audit.log", **options)


def _register() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.register("given", _rows())
    con.execute("CREATE TABLE people AS FROM given")
    return con


def _verdicts(tmp_path: Path) -> list[str]:
    return [str(entry["verdict"]) for entry in read_log(tmp_path / "audit.log")]


class Hung(OfDuckDB):
    """An engine that answers cells only when it is told to stop, or never."""

    def __init__(self, con: duckdb.DuckDBPyConnection, *, stops: bool) -> None:
        super().__init__(con)
        self.stops, self.is_asked, self.let_go = stops, threading.Event(), threading.Event()
        self.hangs = False

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        if self.hangs:
            self.is_asked.set()
            self.let_go.wait(60)
            raise RuntimeError("7 secrets")
        return super().together(queries)

    def stop(self) -> None:
        if self.stops:
            self.let_go.set()


@pytest.mark.parametrize("stops", [True, False])
def test_the_time_limit_is_one_for_the_engine_too(stops: bool, tmp_path: Path) -> None:
    engine = Hung(_register(), stops=stops)
    patient = _guard(engine, tmp_path)
    first = patient.sql(_QUESTION)
    hurried = sdcduck.open_guard(tmp_path / "policies.duckdb", records=engine, seconds=0.05, log=tmp_path / "other.log")
    engine.hangs = True
    for ask in (hurried.sql, hurried.stream):
        with pytest.raises(Refused, match="SDC091"):
            ask(_QUESTION)
        engine.let_go.clear()
    engine.hangs = False
    engine.let_go.set()
    assert patient.sql(_QUESTION).equals(first)
    assert [str(entry["verdict"]) for entry in read_log(tmp_path / "other.log")] == ["SDC091", "SDC091"]
    for guard in (hurried, patient):
        guard.close()


@pytest.mark.parametrize("late", [True, False])
def test_who_does_not_want_the_answer_does_not_wait(late: bool, tmp_path: Path) -> None:
    engine = Hung(_register(), stops=False)
    guard = _guard(engine, tmp_path)
    guard.sql(_QUESTION)
    engine.hangs = True
    asked = guard.question(_QUESTION)
    stopping = threading.Thread(target=lambda: (engine.is_asked.wait(60), asked.interrupt(late=late)))
    stopping.start()
    with pytest.raises(Refused, match="SDC091"):
        asked.ask()
    stopping.join()
    engine.let_go.set()
    assert _verdicts(tmp_path) == ["answered", "SDC091" if late else "abandoned"]
    guard.close()


def test_what_the_engine_says_when_it_fails_is_not_shown(tmp_path: Path) -> None:
    engine = Hung(_register(), stops=True)
    guard = _guard(engine, tmp_path)
    engine.hangs = True
    engine.let_go.set()
    with pytest.raises(Refused, match="SDC090") as refused:
        guard.sql(_QUESTION)
    assert "7 secrets" not in str(refused.value)
    assert _verdicts(tmp_path) == ["SDC090"]
    guard.close()


_ANOTHER = "DELETE FROM people WHERE id = 7; INSERT INTO people VALUES (9999, 1, 5)"


@pytest.mark.parametrize(
    "change", ["INSERT INTO people VALUES (9999, 1, 5)", "DELETE FROM people WHERE id = 7", _ANOTHER]
)
def test_records_that_change_between_the_look_and_the_cells(change: str, tmp_path: Path) -> None:
    """The cells have all records, whatever the question's conditions: their number tells."""
    con = _register()
    engine = OfDuckDB(con)
    guard = _guard(engine, tmp_path)
    plain, changes = engine.together, [change]

    def late(queries: Sequence[str]) -> list[pa.Table]:
        if "c0" in queries[0] and changes:
            con.execute(changes.pop())
        return plain(queries)

    engine.together = late  # type: ignore[method-assign]
    with pytest.raises(Refused, match=r"SDC060.*changed while") as refused:
        guard.sql(_QUESTION)
    assert "9999" not in str(refused.value)
    assert guard.sql(_QUESTION).num_rows == 3
    guard.close()


def test_other_records_that_are_as_many(tmp_path: Path) -> None:
    """They are looked at, as all records are, before anything is said of them: here a unit has two."""
    con = _register()
    guard = _guard(con, tmp_path)
    guard.sql(_QUESTION)
    con.execute(_ANOTHER)
    with pytest.raises(Refused, match=r"SDC060.*changed while"):
        guard.sql(_QUESTION)
    assert guard.sql(_QUESTION).num_rows == 3
    con.execute(_ANOTHER.replace("id = 7", "id = 9").replace("9999", "8").replace(", 5)", ", 6)"))
    for code in ("SDC060", "SDC061"):
        with pytest.raises(Refused, match=code):
            guard.sql(_QUESTION)
    guard.close()


def test_parts_of_a_question_see_one_moment(tmp_path: Path) -> None:
    for number, engine in enumerate(
        (engines.engine_of(_register()), engines.engine_of(postgres().fill({"people": _rows()})))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        guard = _guard(engine, folder)
        both = guard.explain(_TWICE).engine
        assert len(both) == 2
        assert len(engine.together(list(both))) == 2
        assert guard.sql(_TWICE).num_rows == 1
        guard.close()
    written = postgres().log
    assert written.rindex("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") > written.rindex("ADD COLUMN")


def test_a_server_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    server = postgres()
    guard = _guard(server.fill({"people": _rows()}), tmp_path)
    before = guard.sql(_QUESTION)
    server.stop()
    for _ in range(2):
        with pytest.raises(Refused, match=r"SDC090.*engine that has the records"):
            guard.sql(_QUESTION)
    server.start()
    assert guard.sql(_QUESTION).equals(before)
    assert _verdicts(tmp_path) == ["answered", "SDC090", "SDC090", "answered"]
    guard.close()


def test_postgresql_stops_when_the_time_is_over(tmp_path: Path) -> None:
    server = postgres()
    server.fill({"records": _rows()})
    server.run("CREATE TABLE people AS SELECT * FROM records")
    patient = _guard(server.address, tmp_path)
    before = patient.sql(_QUESTION)
    hurried = sdcduck.open_guard(tmp_path / "policies.duckdb", records=server.address, seconds=0.5)
    server.run(
        "ALTER TABLE people RENAME TO those",
        "CREATE VIEW people AS SELECT * FROM those WHERE (SELECT pg_sleep(20)) IS NOT NULL",
    )
    with pytest.raises(Refused, match="SDC091"):
        hurried.sql(_QUESTION)
    server.run("DROP VIEW people", "ALTER TABLE those RENAME TO people")  # which waits until it has stopped
    assert patient.sql(_QUESTION).equals(before)
    for guard in (hurried, patient):
        guard.close()


def test_nothing_is_charged_where_the_engine_is_away(tmp_path: Path) -> None:
    con = _register()
    guard = _guard(con, tmp_path)
    guard.close()
    with sdcduck.connect(tmp_path / "policies.duckdb", records=con) as custodian:
        custodian.execute("FROM sdc_question_budget('people', 2)").fetchall()
    guard = sdcduck.open_guard(tmp_path / "policies.duckdb", records=con)
    con.execute("ALTER TABLE people RENAME TO away")
    for _ in range(5):
        with pytest.raises(Refused, match="SDC090"):
            guard.sql(_QUESTION, user="anna")
    con.execute("ALTER TABLE away RENAME TO people")
    assert guard.sql(_QUESTION, user="anna").num_rows == 3
    assert guard.sql(_QUESTION, user="anna").num_rows == 3
    guard.close()


def _file_of_records(tmp_path: Path) -> Path:
    """A DuckDB file with records and their keys, and beside it one with their policies and a user."""
    register = tmp_path / "register.duckdb"
    with duckdb.connect(str(register)) as con:
        con.register("given", _rows())
        con.execute("CREATE TABLE people AS FROM given")
        with sdcduck.connect(
            tmp_path / "policies.duckdb", secret="the secret of these tests", records=con
        ) as custodian:
            custodian.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
            custodian.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['g'])").fetchall()
    return register


def test_the_shell_asks_an_engine(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from sdcduck.cli.commands import app

    register, policies = _file_of_records(tmp_path), str(tmp_path / "policies.duckdb")
    asked = CliRunner().invoke(app, ["shell", policies, "--records", str(register), "-c", _QUESTION])
    assert asked.exit_code == 0, asked.output
    assert asked.output.count("\n") >= 3
    again = CliRunner().invoke(app, ["shell", policies, "-c", _QUESTION], env={"SDCDUCK_RECORDS": str(register)})
    assert again.output == asked.output
    without = CliRunner().invoke(app, ["shell", policies, "-c", _QUESTION])
    assert without.exit_code == 1
    assert "SDC060" in without.output
    for none, problem in ((str(tmp_path / "nowhere.duckdb"), "'records'"), (__file__, "no database of DuckDB")):
        wrong = CliRunner().invoke(app, ["shell", policies, "--records", none, "-c", _QUESTION])
        assert wrong.exit_code == 1
        assert problem in wrong.output
        assert wrong.output.count("\n") == 1
    both = CliRunner().invoke(
        app, ["shell", "--connect", "postgresql://u@h/d", "--records", str(register), "-c", _QUESTION]
    )
    assert "--records go with a file" in both.output


def test_the_gateway_asks_an_engine(tmp_path: Path) -> None:
    import asyncio

    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    from sdcduck.gateway.postgres.server import Gateway, Options
    from sdcduck.gateway.serving import open_file
    from sdcduck.gateway.shared_state import Limits

    register, policies = _file_of_records(tmp_path), tmp_path / "policies.duckdb"
    with sdcduck.connect(policies) as con:
        con.execute("FROM sdc_create_user('anna', 'a long password', role := 'analyst')").fetchall()
    guard = sdcduck.open_guard(policies, records=str(register))
    meant = sorted(tuple(row.values()) for row in guard.sql(_QUESTION).to_pylist())
    guard.close()
    opened = open_file(policies, Limits(5, 60.0, None), connections=5, records=str(register))

    async def served() -> list[tuple[Any, ...]]:
        gateway = Gateway(
            opened, Options(host="127.0.0.1", port=0, tls=None, tls_required=False, connections=5, idle=60.0)
        )
        port = await gateway.start()

        def ask() -> list[tuple[Any, ...]]:
            address = f"postgresql://anna@127.0.0.1:{port}/policies"
            with psycopg.connect(address, password="a long password", sslmode="disable") as con:
                return sorted(con.execute(_QUESTION).fetchall())

        try:
            return await asyncio.to_thread(ask)
        finally:
            await gateway.stop()

    assert asyncio.run(served()) == meant
    opened.close()
