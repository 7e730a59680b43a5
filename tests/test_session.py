"""Connections, cursors, files and processes: what `connect`, `install` and `uninstall` promise.

The test with two versions of DuckDB needs another interpreter with sdcduck, named by SDCDUCK_OTHER_PYTHON.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck

SECRET = "the secret of the tests"
PEOPLE = """CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region,
    (range * 7919 * 6151 % 100000000)::INTEGER AS record_key FROM range(200)"""
PROTECTED = """SELECT region, sdc_count(record_key) AS n, sdc_sum(id, record_key) AS s FROM people
    GROUP BY CUBE (region) ORDER BY region"""
OURS = (
    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE regexp_matches(function_name, '^_?sdc_') ORDER BY ALL"
)
PYTHON_CALL = "SELECT sdc_record_key(3)"


@pytest.fixture(autouse=True)
def _no_secret_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SDCDUCK_SECRET", raising=False)
    monkeypatch.delenv("SDCDUCK_SECRET_FILE", raising=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A custodian's file with records, the functions and a p-table of its own."""
    path = tmp_path_factory.mktemp("made") / "people.duckdb"
    with sdcduck.connect(path, secret=SECRET) as con:
        con.execute(PEOPLE)
        con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
    return path


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    """A copy of it, for a test that changes it."""
    return Path(shutil.copy(made, tmp_path))


@pytest.fixture
def plain_file(tmp_path: Path) -> Path:
    """A file that sdcduck has never seen."""
    path = tmp_path / "plain.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(PEOPLE)
    return path


def other_process(code: str, *arguments: object, python: str = sys.executable) -> str:
    """Run Python code in a process of its own; its last line of output, or of its error."""
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    return (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()[-1]


def protected(con: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    return con.execute(PROTECTED).fetchall()


# --- Installing ------------------------------------------------------------------------------------------------------


def test_installing_again_changes_nothing() -> None:
    with duckdb.connect() as con:
        con.execute(PEOPLE)
        assert sdcduck.install(con, secret=SECRET) is con
        state = [
            OURS,
            "FROM sdc.settings ORDER BY ALL",
            "FROM sdc.ptables ORDER BY ALL",
            "FROM sdc.ptable_intervals ORDER BY ALL",
        ]
        first = [con.execute(query).fetchall() for query in state]
        answers = protected(con), con.execute(PYTHON_CALL).fetchall()
        for _ in range(3):
            assert sdcduck.install(con) is con
        assert [con.execute(query).fetchall() for query in state] == first
        assert (protected(con), con.execute(PYTHON_CALL).fetchall()) == answers


def test_databases_have_secrets_of_their_own() -> None:
    with sdcduck.connect(secret=SECRET) as a, sdcduck.connect(secret=SECRET + "!") as b, sdcduck.connect() as c:
        assert a.execute(PYTHON_CALL).fetchall() != b.execute(PYTHON_CALL).fetchall()
        with pytest.raises(duckdb.InvalidInputException, match="there is no secret"):
            c.execute(PYTHON_CALL).fetchall()
        a.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
        assert b.execute("SELECT count(*) FROM sdc_ptables()").fetchall() == [(2,)]


def test_two_connections_of_a_process_to_one_file(tmp_path: Path) -> None:
    """Also to a file that the first of them made; what one of them stores, the other one finds."""
    path = tmp_path / "new.duckdb"
    with sdcduck.connect(path, secret=SECRET) as a, sdcduck.connect(path) as b:
        a.execute(PEOPLE)
        assert b.execute(PYTHON_CALL).fetchall() == a.execute(PYTHON_CALL).fetchall()
        b.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
        count = "SELECT sdc_count(record_key, ptable := 'mine') FROM people"
        assert a.execute(count).fetchall() == b.execute(count).fetchall()


def test_the_connection_that_installed_may_go_first(file: Path) -> None:
    """DuckDB drops the Python objects of functions with the connection that made them; a call then would crash."""
    code = """
import gc, sys, duckdb, sdcduck
a = sdcduck.connect(sys.argv[1], secret="the secret of the tests")
b, c = sdcduck.connect(sys.argv[1]), duckdb.connect(sys.argv[1])
expected = a.execute("SELECT sdc_record_key(3)").fetchall()
a.close()
del a
gc.collect()
assert b.execute("SELECT sdc_record_key(3)").fetchall() == expected
assert b.execute("SELECT count(*) FROM sdc_ptable_check('mine')").fetchall() == [(3,)]
b.close()
del b
gc.collect()
sdcduck.install(c)
assert c.execute("SELECT sdc_record_key(3)").fetchall() == expected
print("well")
"""
    assert other_process(code, file) == "well"


def test_closing_releases_the_file(file: Path) -> None:
    con = sdcduck.connect(file, secret=SECRET)
    con.execute("FROM sdc_ptable_check('mine')").fetchall()
    con.execute(PYTHON_CALL).fetchall()
    con.close()
    del con
    gc.collect()
    assert (
        other_process(
            "import sys, sdcduck; sdcduck.connect(sys.argv[1]).execute('DROP TABLE people'); print('well')", file
        )
        == "well"
    )


def test_inside_a_transaction_installing_is_refused_and_the_transaction_lives() -> None:
    with duckdb.connect() as con:
        con.begin()
        con.execute(PEOPLE)
        with pytest.raises(sdcduck.SDCError, match="cannot be installed inside a transaction"):
            sdcduck.install(con, secret=SECRET)
        con.commit()
        sdcduck.install(con, secret=SECRET)
        # Where everything is there already, nothing is to be undone.
        con.begin()
        sdcduck.install(con)
        con.execute("DELETE FROM people WHERE id > 10")
        con.rollback()
        assert con.execute("SELECT count(*) FROM people").fetchall() == [(200,)]
        assert con.execute(PYTHON_CALL).fetchall()


def test_a_closed_connection_says_that_it_is_closed() -> None:
    con = sdcduck.connect(secret=SECRET)
    con.close()
    calls: list[Callable[[], object]] = [
        lambda: sdcduck.install(con), lambda: sdcduck.uninstall(con), lambda: sdcduck.set_secret(con, SECRET),
        lambda: con.execute("SELECT sdc_ckm_count(1, 1)"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(duckdb.ConnectionException, match="closed"):
            call()


def test_a_file_that_is_let_go_of_meanwhile_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a guard that was closed, while a thread that ends still holds its connection."""
    file = tmp_path / "register.duckdb"
    sdcduck.connect(file, secret=SECRET).close()
    held, asked = duckdb.connect(str(file), read_only=True), threading.Event()
    opened = duckdb.connect

    def counted(*arguments: Any, **named: Any) -> duckdb.DuckDBPyConnection:
        try:
            return opened(*arguments, **named)
        finally:
            asked.set()

    def let_go() -> None:
        asked.wait()
        held.close()

    monkeypatch.setattr("sdcduck.functions.install._PATIENCE", 0.0)
    with pytest.raises(duckdb.ConnectionException, match="different configuration"):
        sdcduck.connect(file)
    monkeypatch.setattr("sdcduck.functions.install._PATIENCE", 60.0)
    monkeypatch.setattr(duckdb, "connect", counted)
    ending = threading.Thread(target=let_go)
    ending.start()
    with sdcduck.connect(file) as con:
        assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]
    ending.join()


# --- Uninstalling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
def test_table_functions_work_inside_the_tables_that_table_functions_read(tmp_path: Path, read_only: bool) -> None:
    """A view of the custodian, and a query in parentheses, may call any function, and nothing is seen of how."""
    odd = tmp_path / 'a "b".c.db'
    with sdcduck.connect(odd) as con:
        con.execute(PEOPLE)
        con.execute("CREATE SCHEMA s; CREATE VIEW s.small AS SELECT * FROM sdc_classes('people', ['region'])")
        con.execute(
            "CREATE MACRO records_of(r) AS (SELECT records FROM sdc_classes('people', ['region']) WHERE region = r)"
        )
    with sdcduck.connect(odd, read_only=read_only) as con:
        before = con.execute("SHOW DATABASES").fetchall(), con.execute(OURS).fetchall()
        for _ in range(2):
            for source in (
                "s.small",
                "(SELECT region, records FROM sdc_classes('people', ['region']))",
                "(SELECT DISTINCT region, records_of(region) AS records FROM people)",
                "(SELECT region, classes AS records FROM s.small, sdc_l_diversity('s.small', ['region'], 'records'))",
            ):
                rows = con.execute("SELECT k, classes FROM sdc_k_anonymity(?, ['region'])", [source]).fetchall()
                assert rows == [(1, 3)], source
        assert (con.execute("SHOW DATABASES").fetchall(), con.execute(OURS).fetchall()) == before
        if not read_only:
            sdcduck.uninstall(con)
            sdcduck.install(con)
            assert con.execute("SELECT k FROM sdc_k_anonymity('s.small', ['region'])").fetchall() == [(1,)]


@pytest.mark.parametrize("purge", [False, True])
def test_uninstalling_leaves_the_users_tables_alone(file: Path, purge: bool) -> None:
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute(
            "CREATE MACRO twice(x) AS 2 * x; CREATE VIEW adults AS FROM people WHERE id > 18; CREATE TABLE sdc_mine AS SELECT 1 AS a"
        )
        before = protected(con)
        people = con.execute("FROM people ORDER BY ALL").fetchall()
        assert sdcduck.uninstall(con, purge=purge) is con
        assert con.execute(OURS).fetchall() == []
        assert con.execute("FROM people ORDER BY ALL").fetchall() == people
        assert con.execute("SELECT twice(a), (SELECT count(*) FROM adults) FROM sdc_mine").fetchall() == [(2, 181)]
        schemas = con.execute("SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'sdc'").fetchall()
        assert schemas == [(0 if purge else 1,)]
        # Twice is as good as once, and the way back is open.
        sdcduck.uninstall(con, purge=purge)
        sdcduck.uninstall(con)
        sdcduck.install(con)
        assert protected(con) == before
        names = [row[0] for row in con.execute("SELECT name FROM sdc_ptables()").fetchall()]
        assert names == ["default", "default_magnitude"] + ([] if purge else ["mine"])
        with pytest.raises(duckdb.InvalidInputException, match="there is no secret"):
            con.execute(PYTHON_CALL).fetchall()


def test_uninstalling_through_a_cursor_and_where_nothing_is() -> None:
    with sdcduck.connect(secret=SECRET) as con:
        cursor = con.cursor()
        sdcduck.uninstall(cursor)
        with pytest.raises(duckdb.CatalogException, match="does not exist"):
            con.execute(PYTHON_CALL)
        sdcduck.install(con, secret=SECRET)
        assert con.execute(PYTHON_CALL).fetchall()
    with duckdb.connect() as con:
        sdcduck.uninstall(con)
        sdcduck.uninstall(con, purge=True)
        assert con.execute("SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'sdc'").fetchall() == [(0,)]


# --- Read-only -------------------------------------------------------------------------------------------------------


def test_a_read_only_file_answers_queries_and_refuses_to_write(file: Path) -> None:
    with sdcduck.connect(file) as con:
        expected = protected(con), con.execute("SELECT sdc_count(record_key, ptable := 'mine') FROM people").fetchall()
    content = file.read_bytes()
    with sdcduck.connect(file, read_only=True, secret=SECRET) as con:
        assert (
            protected(con),
            con.execute("SELECT sdc_count(record_key, ptable := 'mine') FROM people").fetchall(),
        ) == expected
        assert con.execute("SELECT units FROM sdc_check_keys('people', unit := 'id')").fetchall() == [(200,)]
        assert con.execute(PYTHON_CALL).fetchall()
        for statement in (
            "FROM sdc_store_ptable('x', '(FROM sdc_ptable(D := 2, V := 1))')",
            "FROM sdc_drop_ptable('mine')",
            "FROM sdc_add_record_key('people', unit := 'id', record_key := 'k')",
            "DROP TABLE people",
        ):
            with pytest.raises(duckdb.Error, match="read-only mode"):
                con.execute(statement).fetchall()
        with pytest.raises(duckdb.Error, match="read-only mode"):
            sdcduck.set_secret(con, SECRET, store=True)
        sdcduck.uninstall(con)
        assert protected(con) == expected[0]
    assert file.read_bytes() == content


def test_a_read_only_file_without_the_functions_has_them_for_the_time_being(plain_file: Path) -> None:
    content = plain_file.read_bytes()
    with sdcduck.connect(plain_file, read_only=True, secret=SECRET) as con:
        answer = protected(con)
        names = con.execute("SELECT name FROM sdc_ptables()").fetchall()
        assert names == [("default",), ("default_magnitude",)]
        assert con.execute("SELECT bool_and(ok) FROM sdc_ptable_check('default')").fetchall() == [(True,)]
        paired = con.execute(
            """SELECT cells FROM sdc_table_risk_utility('(SELECT region, count(*) AS n FROM people GROUP BY ALL)',
                '(SELECT region, sdc_count(record_key) AS n FROM people GROUP BY ALL)', dimensions := ['region'])"""
        ).fetchall()
        assert paired == [(3,)]
        with pytest.raises(duckdb.Error, match="read-only mode"):
            con.execute("FROM sdc_store_ptable('x', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
        cursor = sdcduck.install(con.cursor())
        assert protected(cursor) == answer
        cursor.close()
        sdcduck.uninstall(con)
        assert con.execute(OURS).fetchall() == []
        assert con.execute("SELECT count(*) FROM duckdb_databases() WHERE database_name = 'sdc'").fetchall() == [(0,)]
    assert plain_file.read_bytes() == content
    with sdcduck.connect(plain_file) as con:
        assert protected(con) == answer


def test_a_read_only_file_of_another_version_keeps_its_ptables(file: Path) -> None:
    mine = "SELECT sdc_count(record_key, ptable := 'mine') FROM people GROUP BY id % 20 ORDER BY id % 20"
    with sdcduck.connect(file) as con:
        expected = con.execute(mine).fetchall()
        con.execute("UPDATE sdc.settings SET value = '0.0.1 of old' WHERE name = 'sql'")
    with sdcduck.connect(file, read_only=True) as con:
        assert con.execute(mine).fetchall() == expected


# --- Versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_of_a_newer_sdcduck_is_refused_and_left_as_it_is(file: Path, read_only: bool) -> None:
    with duckdb.connect(str(file)) as con:
        con.execute("UPDATE sdc.settings SET value = '99.1.0 0123456789abcdef' WHERE name = 'sql'")
    content = file.read_bytes()
    with pytest.raises(sdcduck.SDCError, match=r"was written by sdcduck 99\.1\.0; this is .*: please update"):
        sdcduck.connect(file, read_only=read_only)
    gc.collect()
    assert file.read_bytes() == content
    # It was closed again.
    assert other_process("import sys, duckdb; duckdb.connect(sys.argv[1]); print('well')", file) == "well"


def test_a_file_of_an_older_sdcduck_is_brought_up_to_date(file: Path) -> None:
    with duckdb.connect(str(file)) as con:
        expected = protected(con)
        con.execute("UPDATE sdc.settings SET value = '0.0.1 of old' WHERE name = 'sql'")
        con.execute("CREATE OR REPLACE MACRO sdc_count(record_key) AS -1; DROP MACRO sdc_sum")
    with sdcduck.connect(file) as con:
        assert protected(con) == expected
        assert con.execute("SELECT count(*) FROM sdc_ptables()").fetchall() == [(3,)]


_STATE = """
import json, sys, duckdb
if sys.argv[2] == "sdcduck":
    import sdcduck
    con = sdcduck.connect(sys.argv[1], secret="the secret of the tests")
    extra = con.execute("SELECT sdc_record_key(3)").fetchall()
    con.execute("FROM sdc_store_ptable('theirs', '(FROM sdc_ptable(D := 3, V := 2))')").fetchall()
else:
    con, extra = duckdb.connect(sys.argv[1]), None
rows = con.execute(sys.argv[3]).fetchall()
mine = con.execute("SELECT sdc_count(record_key, ptable := 'mine') FROM people").fetchall()
con.close()
print(json.dumps([duckdb.__version__, rows, mine, extra]))
"""


@pytest.mark.parametrize("how", ["duckdb", "sdcduck"])
@pytest.mark.parametrize("first", ["here", "there"])
def test_files_go_from_one_version_of_duckdb_to_the_other(tmp_path: Path, how: str, first: str) -> None:
    """Written here and opened there, or the other way round, with and without sdcduck; and then here again."""
    python = os.environ.get("SDCDUCK_OTHER_PYTHON")
    if not python:
        pytest.skip("SDCDUCK_OTHER_PYTHON names no interpreter with another version of DuckDB")
    file = tmp_path / "people.duckdb"
    make = f"""
import sys, sdcduck
with sdcduck.connect(sys.argv[1]) as con:
    con.execute({PEOPLE!r})
    con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
print("made")
"""
    maker, opener = (sys.executable, python) if first == "here" else (python, sys.executable)
    assert other_process(make, file, python=maker) == "made"
    opened = json.loads(other_process(_STATE, file, how, PROTECTED, python=opener))
    back = json.loads(other_process(_STATE, file, "sdcduck", PROTECTED, python=maker))
    assert opened[0] != back[0], "SDCDUCK_OTHER_PYTHON has the same version of DuckDB"
    assert opened[1:3] == back[1:3]
    if how == "sdcduck":
        assert opened[3] == back[3]


# --- Two processes ---------------------------------------------------------------------------------------------------

_OPEN = """
import sys, sdcduck
con = sdcduck.connect(sys.argv[1], read_only=sys.argv[2] == "read")
print(con.execute("SELECT sdc_count(record_key) FROM people").fetchall())
"""


@pytest.mark.parametrize("second", ["read", "write"])
def test_a_file_that_another_process_writes_to_is_locked(file: Path, second: str) -> None:
    with sdcduck.connect(file) as con:
        text = other_process(_OPEN, file, second)
        assert "Could not set lock on file" in text
        assert str(file) in text
        assert f"PID {os.getpid()}" in text
        # Nothing happened to the first one.
        assert len(protected(con)) == 4


def test_several_processes_may_read_one_file(file: Path) -> None:
    with sdcduck.connect(file, read_only=True) as con:
        answer = str(con.execute("SELECT sdc_count(record_key) FROM people").fetchall())
        assert other_process(_OPEN, file, "read") == answer
        assert "Could not set lock on file" in other_process(_OPEN, file, "write")


# --- Connecting ------------------------------------------------------------------------------------------------------


def test_what_a_waiting_statement_asks_for_runs_on_all_threads() -> None:
    """It may wait in any of DuckDB's threads or in the caller's: often enough that both are seen."""
    con = sdcduck.connect(threads=2)
    con.execute("CREATE TABLE numbers AS FROM range(400000) t(i)")
    together, met = threading.Event(), set[int]()

    def work(i: int) -> int:
        met.add(threading.get_ident())
        if len(met) > 1:
            together.set()
        assert together.wait(120)  # in vain unless another thread works on the same statement
        return i

    def ask() -> None:
        con.cursor().execute("SELECT sum(work(i)) FROM numbers WHERE i % 1000 = 0").fetchall()

    def wait(i: int) -> int:
        met.clear()
        together.clear()
        with ThreadPoolExecutor() as pool:
            pool.submit(ask).result()
        return i

    con.create_function("work", work, ["BIGINT"], "BIGINT")
    con.create_function("wait", wait, ["BIGINT"], "BIGINT", side_effects=True)
    for _ in range(20):
        con.execute("SELECT wait(i) FROM range(1) t(i)").fetchall()


def test_the_number_of_threads_that_a_user_chose_stays() -> None:
    def external(con: duckdb.DuckDBPyConnection) -> object:
        return con.execute("SELECT current_setting('external_threads')").fetchall()[0][0]

    chosen = sdcduck.connect(external_threads=2, threads=4)
    assert external(chosen) == 2
    assert external(sdcduck.uninstall(chosen)) == 2
    con = duckdb.connect()
    before = external(con)
    assert external(sdcduck.install(con)) == 0
    assert external(sdcduck.install(con)) == 0
    assert external(sdcduck.uninstall(con)) == before


def test_a_path_may_be_text_or_a_path_and_options_reach_duckdb(tmp_path: Path) -> None:
    settings = "SELECT current_setting('threads'), current_setting('preserve_insertion_order')"
    for path in (tmp_path / "a.duckdb", str(tmp_path / "b.duckdb"), ":memory:"):
        with sdcduck.connect(path, threads=1, config={"preserve_insertion_order": False}) as con:
            assert con.execute(settings).fetchall() == [(1, False)]
            assert con.execute("SELECT sdc_ckm_count(0, 0)").fetchall() == [(0,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.duckdb", "b.duckdb"]
    config = {"threads": 1}
    sdcduck.connect(config=config, preserve_insertion_order=True).close()
    assert config == {"threads": 1}


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (None, {"nonsense": 1}, "nonsense"),
        (None, {"read_only": True}, "database does not exist"),
        ("folder", {}, "Is a directory"),
        ("text", {}, "not a valid DuckDB database file"),
    ],
)
def test_what_cannot_be_opened_says_why(
    tmp_path: Path, make: str | None, options: dict[str, object], message: str
) -> None:
    path = tmp_path / "x.duckdb"
    if make == "folder":
        path.mkdir()
    elif make == "text":
        path.write_text("this is no database\n" * 1000)
    with pytest.raises(duckdb.Error, match=message):
        sdcduck.connect(path, **options)  # type: ignore[arg-type]
    assert path.exists() == (make is not None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_round_table('p', seed := 1.5)", "sdc_round_table: argument 'seed' must be a whole number, not 1.5"),
        ("sdc_round_table('p', base := 2.5)", "sdc_round_table: argument 'base' must be a whole number, not 2.5"),
        ("sdc_round_table('p', seed := 1e17)", "argument 'seed' must be a whole number between -2^53 and 2^53"),
        ("sdc_round_table('p', seed := 'nan'::DOUBLE)", "argument 'seed' must be a whole number, not nan"),
        (
            "sdc_decimals('p', k_disclosure := 0.5)",
            "sdc_decimals: argument 'k_disclosure' must be a whole number, not 0.5",
        ),
        ("sdc_protect('people', min_units := 1.5)", "sdc_protect: argument 'min_units' must be a whole number"),
        ("sdc_declare_public(3)", "sdc_declare_public: argument 'tbl' must name a table or view"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused_in_the_name_of_the_function(
    file: Path, call: str, message: str
) -> None:
    with sdcduck.connect(file, secret=SECRET) as con, pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM {call}").fetchall()
    assert message in str(caught.value)
    assert "_sdc_plan" not in str(caught.value)


@pytest.mark.parametrize("name", ["sdc.duckdb", "SDC.db"])
def test_a_file_that_is_called_as_the_schema_has_a_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(sdcduck.SDCError, match=r"the database is called sdc.*give the file another name"):
        sdcduck.connect(tmp_path / name)
    with sdcduck.connect(tmp_path / "register.duckdb") as con:
        con.execute("CREATE TABLE regions AS SELECT 1 AS n; FROM sdc_declare_public('regions')")
    (tmp_path / "register.duckdb").replace(tmp_path / name)
    with pytest.raises(sdcduck.SDCError, match="the database is called sdc"):
        sdcduck.open_guard(tmp_path / name)


@pytest.mark.parametrize("name", ["main", "system", "temp", "memory", "information_schema", "pg_catalog"])
def test_files_that_are_called_as_what_duckdb_has(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.duckdb"
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute(PEOPLE)
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
        counted = sdcduck.open_guard(con).sql("SELECT region, count(*) AS n FROM people GROUP BY region")
    guard = sdcduck.open_guard(file)
    assert guard.sql("SELECT region, count(*) AS n FROM people GROUP BY region") == counted
    guard.close()


def test_what_of_duckdb_gives_wrong_numbers_is_switched_off() -> None:
    """DuckDB 2.0.1 found each record of this view among copies that none is one of (`common_subplan`)."""
    with contextlib.closing(sdcduck.connect()) as con:
        con.execute("CREATE TABLE t AS SELECT i % 400 AS s, i % 400 * 7 % 90 AS p, i % 9 AS d FROM range(1000) r(i)")
        con.execute("""CREATE VIEW v AS SELECT b.d AS x, b.p AS y, a.s AS z FROM t a
            LEFT JOIN t b ON a.d = b.d AND a.s = b.s AND a.d < b.d WHERE b.d IS NULL OR b.d > 3""")
        found = "FROM sdc_identical_matches('(SELECT x, y FROM v)', '(SELECT z AS x, y FROM v)')"
        con.execute("SELECT matches " + found)
        assert con.fetchall() == [(0,)]


def test_what_a_user_switched_off_stays_off() -> None:
    def off(con: duckdb.DuckDBPyConnection) -> object:
        return con.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0]

    with contextlib.closing(duckdb.connect()) as con:
        con.execute("SET disabled_optimizers = 'join_order'")
        for _ in range(2):
            assert off(sdcduck.install(con)) == "join_order,common_subplan"
        assert off(sdcduck.uninstall(con)) == "join_order"
        con.execute("SET disabled_optimizers = 'common_subplan'")
        assert off(sdcduck.uninstall(sdcduck.install(con))) == "common_subplan"
        con.execute("SET disabled_optimizers = ''; SET lock_configuration = true")
        assert off(sdcduck.install(con)) == ""
    with contextlib.closing(sdcduck.connect(disabled_optimizers="join_order")) as con:
        assert off(con) == "join_order,common_subplan"
