"""All connections and cursors of a database have the functions, and what the user has in it stays the user's."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.functions import stored
from sdcduck.functions.reference import sql_functions

SECRET = "the secret of the tests"
PEOPLE = "CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region FROM range(200)"
KEY = "SELECT sdc_record_key(3)"
CLASSES = "SELECT records FROM sdc_classes('people', ['region']) ORDER BY ALL"
OF_NO_PYTHON = "open the file with sdcduck.connect, or call sdcduck.install on this connection"
COUNT = "SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE '%sdc%' AND NOT internal AND function_type <> 'scalar'"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A custodian's file, which nobody has open."""
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path, secret=SECRET) as con:
        con.execute(PEOPLE)
    return path


def answers(con: duckdb.DuckDBPyConnection) -> list[list[tuple[object, ...]]]:
    return [con.execute(asked).fetchall() for asked in (KEY, CLASSES)]


# --- Who has them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file", "read-only file"])
def test_every_cursor_has_them(file: Path, where: str) -> None:
    path = ":memory:" if where == "memory" else file
    with sdcduck.connect(path, secret=SECRET, read_only=where == "read-only file") as con:
        if where == "memory":
            con.execute(PEOPLE)
        assert answers(con) == answers(con.cursor()) == answers(con.cursor().cursor())
        sdcduck.install(con.cursor())
        assert con.execute("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'temp'").fetchall() == [(0,)]


def test_connections_that_others_make_have_them(file: Path) -> None:
    with sdcduck.connect(file, secret=SECRET) as con, duckdb.connect(str(file)) as other:
        assert answers(other) == answers(con)
    gc.collect()
    with duckdb.connect(str(file)) as other:
        sdcduck.install(other, secret=SECRET)
        with duckdb.connect(str(file)) as third:
            assert answers(third) == answers(other.cursor())


def test_a_view_of_theirs_answers_on_every_cursor(file: Path) -> None:
    with sdcduck.connect(file) as con:
        con.execute(f"CREATE VIEW classes AS {CLASSES}")
        assert con.cursor().execute("FROM classes").fetchall() == con.execute(CLASSES).fetchall()


@pytest.mark.parametrize("read_only", [False, True])
def test_after_use_of_another_database_they_are_installed_again(file: Path, tmp_path: Path, read_only: bool) -> None:
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).close()
    with sdcduck.connect(file, secret=SECRET) as con:
        expected = con.execute(KEY).fetchall()
        con.execute(f"ATTACH '{other}' AS other ({'READ_ONLY' if read_only else 'READ_WRITE'}); USE other")
        with pytest.raises(duckdb.CatalogException, match="sdc_record_key does not exist"):
            con.execute(KEY)
        for _ in range(2):
            assert sdcduck.install(con).execute(KEY).fetchall() == expected


def test_in_another_schema_of_the_database_they_are_found(file: Path) -> None:
    with sdcduck.connect(file, secret=SECRET) as con:
        expected = con.execute(KEY).fetchall()
        con.execute("CREATE SCHEMA mine; USE people.mine")
        assert con.execute(KEY).fetchall() == expected


def test_installed_from_another_schema_they_are_stored_in_main(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "plain.duckdb")) as con:
        con.execute("CREATE SCHEMA mine; USE plain.mine; CREATE VIEW v AS SELECT 1 AS a")
        sdcduck.install(con, secret=SECRET)
        assert con.cursor().execute(KEY).fetchall() == con.execute(KEY).fetchall()
        assert con.execute("FROM v").fetchall() == [(1,)]


# --- Without Python --------------------------------------------------------------------------------------------------

_CALLS = (
    KEY, "SELECT sdc_class_risk(1, 165)", "SELECT sdc_combine(1.0, 2.0)", "SELECT sdc_draw_count(3, 0.1, 1, 1, 1)",
    "FROM sdc_classes('people', ['region'])", "FROM sdc_ptable(D := 2, V := 1)", "FROM sdc_protect('people')",
    "FROM sdc_declare_public('people')", "FROM sdc_suppress('FROM people')", "FROM sdc_functions()",
)  # fmt: skip


@pytest.mark.parametrize("asked", _CALLS)
def test_a_plain_duckdb_says_what_is_missing(file: Path, asked: str) -> None:
    with duckdb.connect(str(file)) as con:
        with pytest.raises(duckdb.CatalogException) as caught:
            con.execute(asked)
        assert OF_NO_PYTHON in str(caught.value)
        assert "_sdc_plan" not in str(caught.value)
        assert con.execute("SELECT sdc_ckm_count(0, 0), (SELECT count(*) FROM sdc_ptables())").fetchall() == [(0, 2)]


def test_every_macro_that_calls_python_says_so(file: Path) -> None:
    """None calls a function of ours that is not there before it asks for Python."""
    with duckdb.connect(str(file)) as con:
        macros = con.execute(
            "SELECT function_name, macro_definition FROM duckdb_functions() WHERE starts_with(function_name, 'sdc_') "
            "AND NOT internal AND regexp_matches(macro_definition, '_sdc_(plan|rows|hmac|class_risk|draw|t_quantile)')"
        ).fetchall()
    assert len(macros) > 100
    assert [name for name, definition in macros if "_sdc_with_python(" not in definition] == []


def test_a_process_that_was_killed_leaves_a_file_that_opens(file: Path, tmp_path: Path) -> None:
    """Its log of changes has the macros, which are read where nobody knows what they call."""
    new = tmp_path / "new.duckdb"
    code = "import os, sys, sdcduck\ncon = sdcduck.connect(sys.argv[1])\ncon.execute('CREATE TABLE t AS SELECT 1 AS a')\nos._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(new)], check=True, timeout=60)
    assert new.with_name("new.duckdb.wal").exists()
    with duckdb.connect(str(new)) as con:
        assert con.execute("FROM t").fetchall() == [(1,)]
        con.execute("ATTACH ':memory:' AS copied; COPY FROM DATABASE new TO copied")
    gc.collect()
    with sdcduck.connect(new, secret=SECRET) as con:
        assert con.execute("SELECT records FROM sdc_classes('t', ['a'])").fetchall() == [(1,)]


# --- Whose they are --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("macro", ["sdc_classes(a) AS a", "SDC_Count(a) AS a", "sdc_count() AS TABLE SELECT 7 AS a"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_macro_of_the_user_is_not_replaced(tmp_path: Path, macro: str, in_memory: bool) -> None:
    with duckdb.connect(":memory:" if in_memory else str(tmp_path / "own.duckdb")) as con:
        con.execute(f"CREATE MACRO {macro}")
        name = macro.split("(")[0]
        before = con.execute(COUNT).fetchall()
        with pytest.raises(sdcduck.SDCError, match=rf"a macro '{name}' that is not of sdcduck.*DROP MACRO"):
            sdcduck.install(con)
        assert con.execute(COUNT).fetchall() == before
        con.execute(f"DROP MACRO {'TABLE ' if 'TABLE' in macro else ''}{name}")
        assert sdcduck.install(con, secret=SECRET).execute(KEY).fetchall()


def test_a_macro_that_an_older_sdcduck_did_not_store_is_the_users(file: Path) -> None:
    with duckdb.connect(str(file)) as con:
        con.execute("DELETE FROM sdc.settings WHERE name = 'macros'")
        con.execute("UPDATE sdc.settings SET value = '0.0.1 of old' WHERE name = 'sql'")
        stored._drop(con, "people", stored.names() - stored._pure_names())
        con.execute("CREATE MACRO sdc_classes(a) AS a")
    with pytest.raises(sdcduck.SDCError, match="a macro 'sdc_classes' that is not of sdcduck"):
        sdcduck.connect(file)
    gc.collect()
    with duckdb.connect(str(file)) as con:
        assert con.execute("SELECT sdc_classes(3), sdc_ckm_count(0, 0)").fetchall() == [(3, 0)]
        assert con.execute("SELECT value FROM sdc.settings WHERE name = 'sql'").fetchall() == [("0.0.1 of old",)]


def test_what_another_sdcduck_stored_makes_room(file: Path) -> None:
    with duckdb.connect(str(file)) as con:
        con.execute("UPDATE sdc.settings SET value = '0.0.1 of old' WHERE name = 'sql'")
        con.execute("UPDATE sdc.settings SET value = value || ' sdc_of_then sdc_rows_of_then' WHERE name = 'macros'")
        con.execute("CREATE MACRO sdc_of_then(a) AS a; CREATE MACRO sdc_rows_of_then() AS TABLE SELECT 1 AS a")
        con.execute("CREATE MACRO sdc_of_mine(a) AS 2 * a")
    with sdcduck.connect(file) as con:
        left = "SELECT function_name FROM duckdb_functions() WHERE regexp_matches(function_name, 'then|mine$')"
        assert con.execute(left).fetchall() == [("sdc_of_mine",)]
        sdcduck.uninstall(con)
        assert con.execute("SELECT sdc_of_mine(4)").fetchall() == [(8,)]
        con.execute("CREATE MACRO sdc_count(a) AS a")  # after that the name is the user's
        with pytest.raises(sdcduck.SDCError, match="a macro 'sdc_count' that is not of sdcduck"):
            sdcduck.install(con)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("replaced", "drop"),
    [
        ("SDC_Protect(tbl, unit := NULL) AS TABLE SELECT 'people' AS name", "MACRO TABLE sdc_protect"),
        ("_sdc_with_python(plan) AS replace(plan, 'people', 'others')", "MACRO _sdc_with_python"),
    ],
)
def test_a_macro_that_somebody_replaced_is_noticed(file: Path, replaced: str, drop: str, read_only: bool) -> None:
    with duckdb.connect(str(file)) as con:
        con.execute(f"CREATE OR REPLACE MACRO {replaced}")
    with pytest.raises(sdcduck.SDCError, match="somebody replaced sdcduck's") as caught:
        sdcduck.connect(file, read_only=read_only)
    assert f"DROP {drop}".casefold() in str(caught.value).replace('"', "").casefold()
    del caught
    gc.collect()
    with duckdb.connect(str(file)) as con:
        con.execute(f"DROP {drop}")
    with sdcduck.connect(file, read_only=read_only, secret=SECRET) as con:
        assert con.execute(KEY).fetchall() == [(22362356,)]
        if not read_only:
            assert con.cursor().execute(KEY).fetchall() == [(22362356,)]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_replaced_macro_that_protects_nothing_is_ours_again(file: Path, read_only: bool) -> None:
    with duckdb.connect(str(file)) as con:
        con.execute("CREATE OR REPLACE MACRO sdc_record_key(unit_id, digits := 8) AS 3")
    with (
        pytest.warns(UserWarning, match="somebody replaced sdc_record_key of sdcduck"),
        sdcduck.connect(file, read_only=read_only, secret=SECRET) as con,
    ):
        assert con.execute(KEY).fetchall() == [(22362356,)]
    if not read_only:
        with sdcduck.connect(file, secret=SECRET) as con:
            assert con.execute(KEY).fetchall() == [(22362356,)]


def other_words(text: str) -> str:
    """How no DuckDB of today writes these."""
    return text.replace("query(", "run_the_query(").replace("SELECT *", "FROM_FIRST EVERY COLUMN")


def test_a_duckdb_that_spells_macros_with_other_words(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later one may; what it makes of ours is ours, and what somebody replaced is not."""
    defined = stored._defined

    def respelled(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
        return [(name, other_words(definition), kind) for name, definition, kind in defined(con)]

    stored._spelled_here.cache_clear()
    monkeypatch.setattr(stored, "_defined", respelled)
    with duckdb.connect(str(file)) as con:
        assert any(stored._words(text) != stored._called().get(name) for name, text, _ in respelled(con))
        assert stored.has_all(con)
        con.execute("CREATE OR REPLACE MACRO sdc_protect(tbl, unit := NULL) AS TABLE SELECT * FROM query('SELECT 1')")
        with pytest.raises(sdcduck.SDCError, match="somebody replaced sdcduck's sdc_protect"):
            stored.has_all(con)
    stored._spelled_here.cache_clear()


def test_macros_of_ours_are_not_taken_for_replaced(file: Path) -> None:
    """However this DuckDB spells them: as they were created, and as they were read from a file."""
    with duckdb.connect(str(file)) as con:
        assert stored.has_all(con)
    with sdcduck.connect() as con:
        assert stored.has_all(con)
    assert stored.names() - stored._pure_names() - set(stored._called()) == stored._IN_OTHER_WORDS


# --- At once ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["current", "old", "new"])
def test_many_threads_open_one_file(file: Path, tmp_path: Path, state: str) -> None:
    path = tmp_path / "new.duckdb" if state == "new" else file
    if state == "old":
        with duckdb.connect(str(file)) as con:
            con.execute("UPDATE sdc.settings SET value = '0.0.1 of old' WHERE name = 'sql'")

    def ask(_: int) -> str:
        with sdcduck.connect(path, secret=SECRET) as con:
            return str(con.cursor().execute(KEY).fetchall())

    with (
        sdcduck.connect(path, secret=SECRET) if state == "current" else duckdb.connect(),
        ThreadPoolExecutor(8) as pool,
    ):
        assert len(set(pool.map(ask, range(16)))) == 1


def test_a_current_file_is_not_written_to(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    with sdcduck.connect(file, secret=SECRET) as con:
        answers(con)
        assert not file.with_name(f"{file.name}.wal").exists()
    assert file.read_bytes() == content
    shutil.copy(file, tmp_path / "copy.duckdb")
    with sdcduck.connect(tmp_path / "copy.duckdb", secret=SECRET) as con:
        assert con.execute(KEY).fetchall()


def test_all_functions_of_the_reference_are_stored() -> None:
    assert {function.name for function in sql_functions()} <= stored.names()
