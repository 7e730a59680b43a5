"""The functions in programs that make connections of their own; each test is skipped where its program is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import sdcduck

SECRET = "the secret of the tests"
PEOPLE = "CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region FROM range(200)"


def key_of_3() -> int:
    with sdcduck.connect(secret=SECRET) as con:
        (row,) = con.execute("SELECT sdc_record_key(3)").fetchall()
        return int(row[0])


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
    asked = "SELECT sum(records), any_value(sdc_record_key(3)) FROM sdc_classes('people', ['region'])"
    for _ in range(2):
        with engine.connect() as other:
            assert [tuple(row) for row in other.execute(sqlalchemy.text(asked))] == [(200, key_of_3())]
    engine.dispose()


def test_cells_of_jupysql(tmp_path: Path) -> None:
    pytest.importorskip("sql.magic", reason="jupysql is not installed")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    with sdcduck.connect(tmp_path / "people.duckdb", secret=SECRET) as con:
        con.execute(PEOPLE)
        shell.push({"con": con})
        shell.run_line_magic("load_ext", "sql")
        shell.run_line_magic("config", "SqlMagic.feedback = 0")
        shell.run_line_magic("sql", "con --alias people")
        answer = shell.run_cell_magic(
            "sql", "", "SELECT sum(records), any_value(sdc_record_key(3)) FROM sdc_classes('people', ['region'])"
        )
        assert [tuple(row) for row in answer] == [(200, key_of_3())]


def test_models_of_dbt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed")
    monkeypatch.setenv("SDCDUCK_SECRET", SECRET)
    for name, text in {
        "dbt_project.yml": "name: people\nversion: 1.0.0\nprofile: people\nmodel-paths: [models]\n",
        "profiles.yml": (
            f"people:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n      path: {tmp_path}/people.duckdb\n"
            "      threads: 2\n      plugins:\n        - module: sdcduck.dbt\n"
        ),
        "models/people.sql": "{{ config(materialized='table') }} SELECT range AS id, 'r' || range % 3 AS region, "
        "sdc_record_key(range) AS record_key FROM range(200)",
        "models/classes.sql": "{{ config(materialized='table') }} -- {{ ref('people') }}\n"
        "SELECT * FROM sdc_classes('people', ['region'])",
        "models/counted.sql": "SELECT region, sdc_count(record_key) AS n FROM {{ ref('people') }} GROUP BY region",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code = "import sys; from dbt.cli.main import dbtRunner; sys.exit(not dbtRunner().invoke(sys.argv[1:]).success)"
    folders = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", code, "run", *folders], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with sdcduck.connect(tmp_path / "people.duckdb", read_only=True) as con:
        assert con.execute("SELECT record_key FROM people WHERE id = 3").fetchall() == [(key_of_3(),)]
        assert con.execute("SELECT sum(records), (SELECT count(*) FROM counted) FROM classes").fetchall() == [(200, 3)]
