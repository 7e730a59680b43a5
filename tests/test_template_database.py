"""Every database is the same, whether its functions were created one by one or copied from the template."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
from full_disk import no_more_than

import sdcduck
from sdcduck.functions import stored
from sdcduck.functions.template_database import TemplateDatabase, kept_beside

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
        monkeypatch.setattr(template, "begin", lambda *_: False)
        monkeypatch.setattr(stored, "_FILE", template)

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


def new_files(path: Path) -> TemplateDatabase:
    """What new files are copies of, as it is kept at a path."""
    return TemplateDatabase(stored._make_template, lambda: path, stored._STORAGE)


def test_all_ways_make_the_same_file(
    templates: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []
    for how in ("created", "copied", "begun"):
        templates(how == "copied")
        if how == "begun":
            monkeypatch.setattr(stored, "_FILE", new_files(tmp_path / "template"))
        path = tmp_path / f"{how}.duckdb"
        with sdcduck.connect(path, secret=SECRET) as con:
            now = contents(con)
        with duckdb.connect(str(path)) as plain:  # what is in the file itself
            in_file = [plain.execute(sql).fetchall() for sql in CONTENTS[:-1]]
            tags = plain.execute("SELECT tags FROM duckdb_databases() WHERE database_name = current_database()")
            seen.append((now, in_file, tags.fetchall()))
        with sdcduck.connect(path, read_only=True) as con:
            assert contents(con)[-1] == now[-1]
    created, copied, begun = seen
    assert copied == created
    assert begun[1:] == created[1:]
    # Macros that were read from a file are spelled in another way than those that were created just now.
    assert begun[0][1:] == created[0][1:]
    assert [row[:5] for row in begun[0][0]] == [row[:5] for row in created[0][0]]


def test_a_new_file_is_a_copy_and_a_file_like_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stored, "_FILE", new_files(tmp_path / "template"))
    monkeypatch.setattr(stored, "store", pytest.fail)
    for name in ("one.duckdb", "odd 'name\".db"):
        with sdcduck.connect(tmp_path / name, secret=SECRET) as con:
            con.execute("CREATE TABLE t AS SELECT 3 AS i")
            con.cursor().execute("CREATE OR REPLACE MACRO own(a) AS a + 1")
            assert con.cursor().execute(
                "SELECT own(i), sdc_ckm_count(0, 0), sdc_record_key(3) > 0 FROM t"
            ).fetchall() == [(4, 0, True)]
        with sdcduck.connect(tmp_path / name, secret=SECRET) as con:
            assert con.execute("SELECT own(i) FROM t").fetchall() == [(4,)]
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "one.duckdb").stat().st_mode == plain.stat().st_mode
    names = ["odd 'name\".db", "one.duckdb", "plain", "template"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names  # nothing is left of how it was made


class _ByItselfError(Exception):
    """DuckDB was asked to make the file."""


def test_what_may_be_no_path_or_has_settings_duckdb_begins_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def by_itself(*_: object, **__: object) -> None:
        raise _ByItselfError

    begun: list[Path] = []
    monkeypatch.setattr(stored._FILE, "begin", lambda path: bool(begun.append(path)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "left.duckdb.wal").write_bytes(b"")
    for name in ("~", "~/x.duckdb", "file:x.duckdb", "a:b", "x.duckdb?threads=1", "left.duckdb"):
        with monkeypatch.context() as patch:
            patch.setattr(duckdb, "connect", by_itself)
            with pytest.raises(_ByItselfError):
                stored.begin_file(Path(name), {})
    with sdcduck.connect(tmp_path / "settings.duckdb", threads=1) as con:
        assert con.execute("SELECT current_setting('threads')").fetchall() == [(1,)]
    assert begun == []
    with sdcduck.connect(tmp_path / "plain.duckdb") as con:
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]
    assert begun == [tmp_path / "plain.duckdb"]
    with pytest.raises(duckdb.IOException, match="nowhere"):
        sdcduck.connect(tmp_path / "nowhere" / "x.duckdb")


def test_a_file_that_is_there_is_never_written_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    template = new_files(tmp_path / "template")
    (tmp_path / "there").write_bytes(b"mine")
    assert not template.begin(tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == b"mine"

    def no_links(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    assert not template.begin(tmp_path / "new")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["template", "there"]
    monkeypatch.setattr(stored, "_FILE", template)
    with sdcduck.connect(tmp_path / "new") as con:
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]


@pytest.mark.parametrize("broken", ["empty", "cut", "changed", "other"])
def test_a_broken_template_makes_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: str) -> None:
    """A file that began as a copy of one could not be opened, or, worse, only once."""
    kept = tmp_path / "template"
    assert new_files(kept).begin(tmp_path / "before")
    whole = kept.read_bytes()
    half = len(whole) // 2
    kept.write_bytes(
        {
            "empty": b"",
            "cut": whole[:half],
            "changed": whole[:half] + bytes(255 - byte for byte in whole[half : half + 9]) + whole[half + 9 :],
            "other": bytes(half),
        }[broken]
    )
    monkeypatch.setattr(stored, "_FILE", new_files(kept))
    for _ in range(2):
        with sdcduck.connect(tmp_path / "new") as con:
            assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]
            con.execute("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS i")
    assert not kept.exists()  # the next process makes another
    assert new_files(kept).begin(tmp_path / "after")
    assert kept.stat().st_size == len(whole)


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
    template = TemplateDatabase(stored._make_template)
    monkeypatch.setattr(stored, "_TEMPLATE", template)
    assert not template.copy_to(duckdb.connect(), "memory")  # the first is never copied
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


def kept(path: Path | None) -> TemplateDatabase:
    """The template of a process, as it is kept at a path."""
    return TemplateDatabase(stored._make_template, lambda: path)


def test_the_next_process_copies_what_one_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "template.duckdb"
    seen = []
    for make in (stored._make_template, None):  # the second makes none
        template = TemplateDatabase(make or pytest.fail, lambda: path)  # type: ignore[arg-type]
        monkeypatch.setattr(stored, "_TEMPLATE", template)
        for _ in range(2):
            with sdcduck.connect() as con:
                seen.append(contents(con))
        assert [file.name for file in tmp_path.iterdir()] == ["template.duckdb"]
    monkeypatch.setattr(stored, "_TEMPLATE", TemplateDatabase(stored._make_template))
    with sdcduck.connect() as con:
        assert seen == [contents(con)] * 4
    with duckdb.connect(str(path), read_only=True) as con:
        assert con.execute("FROM sdc.settings WHERE name = 'secret'").fetchall() == []


def test_what_is_kept_is_that_of_this_duckdb_and_of_these_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module = str(tmp_path / "module.py")
    texts = [["a"], ["b"], ["a", "b"], ["ab"], ["a"]]
    paths = [kept_beside(module, lambda text=text: text) for text in texts]  # type: ignore[misc]
    assert len(set(paths)) == 4
    assert paths[0] == paths[-1]
    assert all(path is not None and duckdb.__version__ in path.name for path in paths)
    assert any(stored.__file__ in text for text in stored._made_by())
    assert stored._written_by() in stored._made_by()


def test_python_that_keeps_nothing_compiled_keeps_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert kept_beside(stored.__file__, lambda: ["a"]) is None


def test_older_ones_go(tmp_path: Path) -> None:
    names = [f"template.{version}.{sources}.duckdb" for version in (duckdb.__version__, "1.0.0") for sources in "ab"]
    for name in names[1:]:
        (tmp_path / name).write_bytes(b"")
    with duckdb.connect() as con:
        assert kept(tmp_path / names[0]).copy_to(con, "memory")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([names[0], *names[2:]])


def test_where_none_can_be_kept_or_it_is_broken_all_is_created(
    templates: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    templates(False)
    with sdcduck.connect() as con:
        created = contents(con)
    (tmp_path / "broken").write_bytes(b"no database")
    (tmp_path / "cut short").write_bytes(b"")
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "nowhere" / "t", tmp_path / "file" / "t", tmp_path / "broken", tmp_path / "cut short"):
        monkeypatch.setattr(stored, "_TEMPLATE", kept(path))
        for _ in range(2):
            with sdcduck.connect() as con:
                assert contents(con) == created


def test_many_processes_make_it_at_once(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
import sdcduck
from sdcduck.functions import stored
from sdcduck.functions.template_database import TemplateDatabase
stored._TEMPLATE = TemplateDatabase(stored._make_template, lambda: Path(sys.argv[1]))
print(sdcduck.connect().execute("SELECT count(*) FROM sdc_functions()").fetchall())
"""
    command = [sys.executable, "-c", program, str(tmp_path / "template.duckdb")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    # Behind what DuckDB shows of how far it is, on a busy machine.
    assert len({process.communicate(timeout=300)[0].splitlines()[-1] for process in processes}) == 1
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["template.duckdb"]


def test_a_full_disk_is_what_the_error_says(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "x.duckdb")).close()  # not ours yet: the macros go through its log
    with no_more_than(20_000), pytest.raises(duckdb.TransactionException, match="File too large"):
        sdcduck.connect(tmp_path / "x.duckdb", secret=SECRET)
    with sdcduck.connect(tmp_path / "x.duckdb", secret=SECRET) as con:
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]
