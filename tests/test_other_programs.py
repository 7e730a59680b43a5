"""The functions in programs that make connections of their own; each test is skipped where its program is not there.

Those of `make tools-test` are in an environment of their own: dbt, SQLMesh, marimo, JupySQL, Harlequin.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from served_gateway import Served, register, served

import sdcduck

__all__ = ["register", "served"]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SECRET = "the secret of the tests"
PEOPLE = "CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region FROM range(200)"
ASKED = "SELECT sum(records)::BIGINT AS n, any_value(sdc_record_key(3)) AS key FROM sdc_classes('people', ['region'])"
BY_REGION = "SELECT region, sex, sdc_count(record_key), sdc_sum(income, record_key) FROM {} GROUP BY CUBE (region, sex)"


def key_of_3() -> int:
    with sdcduck.connect(secret=SECRET) as con:
        (row,) = con.execute("SELECT sdc_record_key(3)").fetchall()
        return int(row[0])


def needs(name: str) -> pytest.MarkDecorator:
    """Skips a test where this environment has not the program."""
    there = Path(sys.executable).with_name(name).exists()
    return pytest.mark.skipif(not there, reason=f"{name} is not installed: make tools-test")


def run(name: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a program of this environment says, which knows the secret and tells nobody that it runs."""
    return subprocess.run(
        [Path(sys.executable).with_name(name), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "SDCDUCK_SECRET": SECRET, "DO_NOT_TRACK": "1", "NO_COLOR": "1"},
    )  # fmt: skip


def said(name: str, *arguments: object, cwd: Path) -> str:
    """The output of a program that succeeds."""
    done = run(name, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A file with people in it, which sdcduck has made and nobody holds."""
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path, secret=SECRET) as con:
        con.execute(PEOPLE)
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    return path


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples, with the register."""
    copy = tmp_path / "examples"
    shutil.copytree(
        EXAMPLES, copy, ignore=shutil.ignore_patterns("*.duckdb", "__pycache__", "target", "logs", ".cache")
    )
    subprocess.run(
        [sys.executable, "make_register.py"], cwd=copy, check=True, capture_output=True,
        env={**os.environ, "SDCDUCK_PASSWORD": "correct horse battery"},
    )  # fmt: skip
    return copy


def check_releases(releases: Path, register: Path) -> None:
    """That what a program made are the numbers of the functions, that suppressed ones are gone and others are there."""
    with sdcduck.connect(register, read_only=True) as con:
        expected = con.execute(BY_REGION.format("people")).fetchall()
    with duckdb.connect(str(releases), read_only=True) as con:
        found = con.execute("SELECT region, sex, people, income FROM people_by_region").fetchall()
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        (counted,) = con.execute("""
            SELECT count(*) FILTER (status = 'primary') > 0, count(*) FILTER (status = 'secondary') > 0,
                bool_and((n IS NULL) = (status <> 'open')), min(n) > 4 FROM people_by_age""").fetchall()
        assert counted == (True, True, True, True)


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_engine_of_sqlalchemy(tmp_path: Path, in_memory: bool) -> None:
    pytest.importorskip("duckdb_engine")
    import sqlalchemy

    engine = sqlalchemy.create_engine("duckdb:///" + (":memory:" if in_memory else str(tmp_path / "people.duckdb")))

    @sqlalchemy.event.listens_for(engine, "connect")
    def functions(connection: duckdb.DuckDBPyConnection, record: object) -> None:
        sdcduck.install(connection, secret=SECRET)

    with engine.begin() as one:
        one.execute(sqlalchemy.text(PEOPLE))
    for _ in range(2):
        with engine.connect() as other:
            assert [tuple(row) for row in other.execute(sqlalchemy.text(ASKED))] == [(200, key_of_3())]
    engine.dispose()


@needs("ipython")
def test_cells_of_jupysql(people: Path) -> None:
    # In a program of its own, which does not find our folder `sql` for theirs.
    people.with_name("cells.ipy").write_text(f"""
import sqlalchemy, sdcduck
con = sdcduck.connect("people.duckdb")
cursor = con.cursor()
engine = sqlalchemy.create_engine("duckdb:///:memory:")
sqlalchemy.event.listen(engine, "connect", lambda connection, record: sdcduck.install(connection))
with engine.begin() as one:
    one.execute(sqlalchemy.text({PEOPLE!r}))
%load_ext sql
%config SqlMagic.feedback = 0
%config SqlMagic.displaycon = False
%sql con --alias of_con
found = %sql {ASKED}
print("found", list(map(tuple, found)))
%sql cursor --alias of_cursor
found = %sql {ASKED}
print("found", list(map(tuple, found)))
%sql engine --alias of_engine
found = %sql {ASKED}
print("found", list(map(tuple, found)))
""")
    told = said("ipython", "cells.ipy", cwd=people.parent)
    assert told.count(f"found [(200, {key_of_3()})]") == 3, told


@needs("marimo")
def test_cells_of_marimo(people: Path) -> None:
    notebook = people.with_name("notebook.py")
    notebook.write_text(f'''
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import sdcduck

    con = sdcduck.connect("people.duckdb")
    cursor = con.cursor()
    return con, cursor, mo


@app.cell
def _(con, cursor, mo):
    for engine in (con, cursor):
        found = mo.sql(f"""{ASKED}""", engine=engine)
        print("found", int(found["n"][0]), int(found["key"][0]))
    return
''')
    said("marimo", "export", "html", "notebook.py", "-o", "out.html", cwd=people.parent)
    assert (people.parent / "out.html").read_text().count(f"found 200 {key_of_3()}") == 2


@needs("hsql")
def test_a_file_in_harlequin(people: Path) -> None:
    counted = "SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region ORDER BY region"
    with sdcduck.connect(people, read_only=True) as con:
        expected = [[region, str(n)] for region, n in con.execute(counted).fetchall()]
    found = said("hsql", "-r", "people.duckdb", "--csv", "-c", counted, cwd=people.parent)
    assert list(csv.reader(io.StringIO(found))) == [["region", "n"], *expected]
    for call in ("SELECT sdc_record_key(3)", "FROM sdc_classes('people', ['region'])"):
        done = run("hsql", "people.duckdb", "-c", call, cwd=people.parent)
        assert done.returncode != 0
        assert "sdcduck (not loaded: open the file with sdcduck.connect" in done.stderr


@needs("hsql")
def test_a_gateway_in_harlequin(served: Served, tmp_path: Path) -> None:
    def asked(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run("hsql", "-a", "postgres", "-r", served.url, *arguments, cwd=tmp_path)

    answer = asked("--csv", "-c", "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region")
    assert answer.returncode == 0, answer.stderr
    assert [line.partition(",")[0] for line in answer.stdout.splitlines()] == ["region", "East", "North", "South"]
    columns = asked("--catalog", "--path", "register.public.people", "--csv")
    assert [row[1] for row in csv.reader(io.StringIO(columns.stdout))][1:] == [
        "person_id", "region", "sex", "age", "income",
    ]  # fmt: skip
    refused = asked("-c", "SELECT person_id FROM people")
    assert refused.returncode != 0
    assert "SDC040" in refused.stderr


@needs("dbt")
def test_models_of_dbt(examples: Path) -> None:
    project = examples / "dbt"
    said("dbt", "build", "--profiles-dir", ".", cwd=project)
    check_releases(project / "releases.duckdb", examples / "register.duckdb")
    with duckdb.connect(str(project / "releases.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM synthetic_people").fetchall() == [(5000,)]
    failed = run("dbt", "test", "--profiles-dir", ".", "--select", "synthetic_people", "--vars", "k: 5000", cwd=project)
    assert failed.returncode != 0
    assert "FAIL 1 k_anonymous_synthetic_people" in failed.stdout


@needs("sqlmesh")
def test_models_of_sqlmesh(examples: Path) -> None:
    project = examples / "sqlmesh"
    said("sqlmesh", "plan", "--auto-apply", "--no-prompts", cwd=project)
    check_releases(project / "releases.duckdb", examples / "register.duckdb")
    compiled = "import sqlglot.tokens as t, sys; sys.exit(not t.__file__.endswith('.py'))"
    assert run("python", "-c", compiled, cwd=project).returncode == 0  # SQLMesh needs this one
