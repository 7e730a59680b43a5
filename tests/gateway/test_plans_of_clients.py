"""Plans through the gateway: a client that knows nothing of them opens one and reveals it, by SQL alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from served_gateway import Served
from typer.testing import CliRunner

from sdcduck.cli import app
from sdcduck.guard.planned import call_of
from sdcduck.methods.sequence import plans
from sdcduck.quoting import literal

KEY = bytes(range(32))
QUESTIONS = [
    "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region",
    "SELECT sex, count(*) AS n FROM people WHERE region LIKE 'Nor\\_%' ESCAPE '\\' OR region LIKE '%th' AND region <> 'it''s $1 %s' "
    "GROUP BY sex -- pg_catalog\n ORDER BY sex",
    "SELECT region = ANY (['North']) AS north, count(*) AS n FROM people GROUP BY ALL ORDER BY north",
]


def opening(name: str, traces: list[bytes]) -> str:
    signature, key = plans.sign(KEY, traces[0]).hex(), plans.public_key(KEY).hex()
    return (
        f"SELECT * FROM sdc_plan_open({literal(name)}, t0 := '{traces[0].hex()}', signatures := ['{signature}'], "
        f"public_keys := ['{key}'])"
    )


def sealed(questions: list[str], salt: int) -> list[bytes]:
    return plans.traces([plans.block(text, step, bytes([salt]) * 16) for step, text in enumerate(questions, 1)])


def reveal(name: str, trace: bytes, text: str) -> str:
    return f"SELECT * FROM sdc_plan_reveal({literal(name)}, '{trace.hex()}', $of_plan${text}$of_plan$)"


def simple(con: psycopg.Connection, sql: str) -> list[tuple[object, ...]]:
    """By the simple protocol, as psql asks."""
    with psycopg.ClientCursor(con) as cursor:
        return cursor.execute(sql).fetchall()


def extended(con: psycopg.Connection, sql: str) -> list[tuple[object, ...]]:
    """By the extended protocol, prepared, described and run."""
    with con.cursor() as cursor:
        return cursor.execute(sql, prepare=True).fetchall()


def declared(con: psycopg.Connection, sql: str) -> list[tuple[object, ...]]:
    """By a cursor, as BI tools do."""
    with con.transaction(), con.cursor("of_plan") as cursor:
        return cursor.execute(sql).fetchall()


@pytest.mark.parametrize(("way", "salt"), [(simple, 1), (extended, 2), (declared, 3)])
def test_a_client_of_postgresql_reveals_step_by_step(served: Served, way: Callable[..., list], salt: int) -> None:
    name, traces = f"plan {way.__name__}", sealed(QUESTIONS, salt)
    with psycopg.connect(**served.options, autocommit=True) as con:
        assert way(con, opening(name, traces)) == [(name, "awaiting", 1)]
        for step, text in enumerate(QUESTIONS, 1):
            answer = way(con, reveal(name, traces[step], text))
            assert len(answer) in (2, 3)
            assert answer == simple(con, text.replace("= ANY (['North'])", "= 'North'"))
        log = way(con, f"FROM sdc_plan_log({literal(name)})")
        assert [(row[1], row[2]) for row in log][-1] == (3, "done")
        with pytest.raises(psycopg.Error, match="SDC075"):
            way(con, reveal(name, traces[3], QUESTIONS[2]))


def test_another_user_does_not_see_it_and_a_refusal_ends_it(served: Served) -> None:
    traces = sealed([QUESTIONS[0], "SELECT * FROM people WHERE person_id = 1", QUESTIONS[2]], 4)
    bob = {**served.options, "user": "bob"}
    with psycopg.connect(**served.options, autocommit=True) as con, psycopg.connect(**bob, autocommit=True) as other:
        simple(con, opening("hers", traces))
        with pytest.raises(psycopg.Error, match=r"SDC075.*no plan 'hers' of yours"):
            simple(other, reveal("hers", traces[1], QUESTIONS[0]))
        simple(con, reveal("hers", traces[1], QUESTIONS[0]))
        with pytest.raises(psycopg.Error, match=r"SDC0[34]"):
            extended(con, reveal("hers", traces[2], "SELECT * FROM people WHERE person_id = 1"))
        with pytest.raises(psycopg.Error, match=r"SDC075.*has ended"):
            simple(con, reveal("hers", traces[3], QUESTIONS[2]))


def test_a_client_of_flight_reveals_too(served: Served) -> None:
    dbapi = pytest.importorskip("adbc_driver_flightsql.dbapi")
    traces = sealed(QUESTIONS, 5)
    options = {"username": "ann", "password": served.options["password"]}
    with (
        dbapi.connect(f"grpc://127.0.0.1:{served.flight}", db_kwargs=options, autocommit=True) as con,
        con.cursor() as cursor,
    ):
        cursor.execute(opening("flown", traces))
        assert cursor.fetchall() == [("flown", "awaiting", 1)]
        for step, text in enumerate(QUESTIONS, 1):
            cursor.execute(reveal("flown", traces[step], text))
            assert len(cursor.fetchall()) in (2, 3)
        cursor.execute("FROM sdc_plan_log('flown')")
        assert cursor.fetchall()[-1][1:3] == (3, "done")


def test_where_only_plans_are_answered(serve: Callable[..., Served]) -> None:
    served, traces = serve("--plans-only"), sealed(QUESTIONS, 6)
    with psycopg.connect(**served.options, autocommit=True) as con:
        for way in (simple, extended):
            with pytest.raises(psycopg.Error, match="SDC077"):
                way(con, QUESTIONS[0])
            assert way(con, "SELECT relname FROM pg_class WHERE relname = 'people'") == [("people",)]
        simple(con, opening("only", traces))
        assert len(simple(con, reveal("only", traces[1], QUESTIONS[0]))) == 3


@dataclass
class Done:
    """What a command left, as of a process."""

    returncode: int
    stdout: str
    stderr: str


def plan(*words: str | Path) -> Done:
    """The command in this process, which spares the start of one; that a process says the same is tested of some."""
    result = CliRunner().invoke(app, ["plan", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def in_a_process(*words: str | Path) -> Done:
    command = [sys.executable, "-c", "from sdcduck.cli import main; main()", "plan", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_command_line_seals_certifies_and_reveals(served: Served, tmp_path: Path) -> None:
    (tmp_path / "income.sql").write_text(";\n".join([*QUESTIONS[:2], "SELECT * FROM secrets"]) + ";\n")
    file, keys = tmp_path / "income.plan", [tmp_path / "ann.key", tmp_path / "board.key"]
    public = [run("key", key).stdout.strip() for run, key in zip((in_a_process, plan), keys, strict=True)]
    assert {len(one) for one in public} == {64}
    assert keys[0].stat().st_mode & 0o777 == 0o600
    done = plan("seal", tmp_path / "income.sql", "--key", keys[0], "--expires", "2126-12-31")
    assert "3 questions" in done.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert "already" in plan("seal", tmp_path / "income.sql", "--key", keys[0]).stderr
    assert plan("certify", file, "--key", keys[1]).returncode == 0
    assert "already" in plan("certify", file, "--key", keys[1]).stderr
    opened = call_of(plan("sql", file, "0").stdout)
    assert opened is not None
    assert opened.given["public_keys"] == public
    assert call_of(plan("sql", file, "2").stdout).given["statement"] == QUESTIONS[1]  # type: ignore[union-attr]
    assert "has 3 steps" in plan("sql", file, "4").stderr
    first, second, third, fourth = (
        run("reveal", file, "--connect", served.url) for run in (in_a_process, plan, plan, in_a_process)
    )
    assert (first.returncode, second.returncode) == (0, 0)
    assert "North" in first.stdout
    assert "step 2 of 3" in second.stderr
    assert (third.returncode, fourth.returncode) == (1, 1)
    assert "SDC020" in third.stderr
    assert "has ended: aborted at step 3" in fourth.stderr


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    key, questions = tmp_path / "key", tmp_path / "questions.sql"
    plan("key", key)
    questions.write_text("SELECT 1; SELECT 2")
    assert plan("seal", questions, "--key", key).returncode == 0
    file = tmp_path / "questions.plan"
    good = file.read_text()
    for changed in (good.replace("SELECT 2", "SELECT 3"), good[:-40], "[]", "", '{"plan": 1}'):
        file.write_text(changed)
        for done in (plan("sql", file, "1"), plan("certify", file, "--key", key)):
            assert done.returncode == 1
            assert "is no sealed plan, or was changed since" in done.stderr
    assert "holds no private key" in plan("seal", questions, "--key", questions, "-o", tmp_path / "x").stderr
    assert "there is a file" in plan("key", key).stderr
    questions.write_text("-- nothing")
    assert "there is no statement" in plan("seal", questions, "--key", key, "-o", tmp_path / "x").stderr
    questions.write_text(".quit")
    assert "is no question" in plan("seal", questions, "--key", key, "-o", tmp_path / "x").stderr
    assert not (tmp_path / "x").exists()
