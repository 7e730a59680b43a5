"""Every database is the same, whether its functions were created one by one or copied from the template."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.functions import stored
from sdcduck.functions.template_database import TemplateDatabase

SECRET = "the secret of the tests"
CONTENTS = [
    # Python makes the types of its functions; a macro has none.
    """SELECT schema_name, function_name, function_type, parameters, parameter_types, macro_definition
       FROM duckdb_functions() WHERE NOT internal ORDER BY ALL""",
    "SELECT schema_name, sql, comment FROM duckdb_schemas() WHERE database_name = current_database() ORDER BY ALL",
    "SELECT schema_name, table_name, sql, comment FROM duckdb_tables() ORDER BY ALL",
    "SELECT schema_name, table_name, constraint_type, constraint_text FROM duckdb_constraints() ORDER BY ALL",
    "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
    "SELECT * FROM duckdb_sequences()",
    "FROM sdc.settings WHERE name <> 'secret' ORDER BY ALL",
    "FROM sdc.ptables ORDER BY ALL",
    "FROM sdc.dp_releases",
    "SELECT unnest([sdc_ckm_count(7, 400_000_000_000_000), sdc_ckm_count(0, 0)])",
    "FROM sdc_functions() ORDER BY ALL",
]


def contents(con: duckdb.DuckDBPyConnection) -> list[list[tuple[object, ...]]]:
    return [con.execute(sql).fetchall() for sql in CONTENTS]


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Make the next databases from the template, or without."""

    def use(copied: bool) -> None:
        template = TemplateDatabase(stored._make_template)
        if not copied:
            monkeypatch.setattr(template, "copy_to", lambda *_: False)
        else:
            template.copy_to(duckdb.connect(), "memory")  # the first is never copied
        monkeypatch.setattr(stored, "_TEMPLATE", template)

    return use


def test_both_ways_make_the_same_database_in_memory(templates: Callable[[bool], None]) -> None:
    templates(False)
    with sdcduck.connect() as con:
        one_by_one = contents(con)
    templates(True)
    with sdcduck.connect() as con:
        copied = contents(con)
    assert len(one_by_one[0]) > 200
    assert copied == one_by_one


def test_both_ways_make_the_same_file(templates: Callable[[bool], None], tmp_path: Path) -> None:
    seen = []
    for copied in (False, True):
        templates(copied)
        path = tmp_path / f"{'copied' if copied else 'created'}.duckdb"
        with sdcduck.connect(path, secret=SECRET) as con:
            now = contents(con)
        with duckdb.connect(str(path)) as plain:  # what is in the file itself
            stored = [plain.execute(sql).fetchall() for sql in CONTENTS[:-1]]
            tags = plain.execute("SELECT tags FROM duckdb_databases() WHERE database_name = current_database()")
            seen.append((now, stored, tags.fetchall()))
        with sdcduck.connect(path, read_only=True) as con:
            assert contents(con)[-1] == now[-1]
    assert seen[0] == seen[1]


def test_a_database_with_tables_of_its_own_keeps_them(templates: Callable[[bool], None], tmp_path: Path) -> None:
    templates(True)
    with duckdb.connect(str(tmp_path / "own.duckdb")) as con:
        con.execute(
            "CREATE TABLE people AS FROM range(3) AS p(id); CREATE SCHEMA other; CREATE VIEW other.v AS FROM people"
        )
        sdcduck.install(con, secret=SECRET)
        assert con.execute("SELECT count(*) FROM other.v").fetchall() == [(3,)]
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]


@pytest.mark.parametrize("start", ["CREATE SCHEMA sdc", "SET enable_external_access = false"])
def test_where_nothing_can_be_copied_it_is_created(templates: Callable[[bool], None], start: str) -> None:
    templates(True)
    with duckdb.connect() as con:
        con.execute(start)
        sdcduck.install(con, secret=SECRET)
        found = contents(con)
        assert con.execute(
            "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE '%template%'"
        ).fetchall() == [(0,)]
    templates(False)
    with duckdb.connect() as con:
        con.execute(start)
        sdcduck.install(con, secret=SECRET)
        assert contents(con) == found


def test_without_a_place_for_temporary_files_it_is_created(
    templates: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    templates(True)
    monkeypatch.setattr(stored._TEMPLATE, "_path", None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with sdcduck.connect() as con:
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]


def test_cursors_of_both_ways_work(templates: Callable[[bool], None]) -> None:
    patterns = []
    for copied in (False, True):
        templates(copied)
        with sdcduck.connect(secret=SECRET) as con:
            con.execute("CREATE TABLE t AS SELECT 'r' || i % 4 AS r, 's' || i % 3 AS s FROM range(50) AS _(i)")
            cube = "SELECT r, s, count(*) AS n FROM t GROUP BY CUBE (r, s)"
            patterns.append(con.execute(f"FROM sdc_suppress('{cube}', max_count := 4) ORDER BY ALL").fetchall())
    assert any("max_count" in row for row in patterns[0])
    assert patterns[0] == patterns[1]


def test_many_threads_make_databases_at_once() -> None:
    def make(_: int) -> list[tuple[object, ...]]:
        with sdcduck.connect(secret=SECRET) as con:
            return con.execute("SELECT sdc_record_key(3), count(*) FROM sdc_functions()").fetchall()

    with ThreadPoolExecutor(8) as pool:
        assert len({str(rows) for rows in pool.map(make, range(24))}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_does_not_remove_the_template_of_its_parent() -> None:
    template = TemplateDatabase(lambda con: con.execute("CREATE TABLE made (i INTEGER)"))
    with duckdb.connect() as con:
        assert not template.copy_to(con, "memory")
        assert template.copy_to(con, "memory")
    child = os.fork()
    if child == 0:
        try:
            own = template._file()
            del template
            gc.collect()
            os._exit(own.exists())
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    with duckdb.connect() as con:
        assert template.copy_to(con, "memory")
        assert con.execute("FROM made").fetchall() == []
