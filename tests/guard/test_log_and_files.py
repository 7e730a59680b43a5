"""A guard over a file: its own locked instance, limits, and a log that shows when it was changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from own_numbers import with_own_numbers

import sdcduck
from sdcduck import catalog
from sdcduck.guard import Guard, Refused, guard, verify_log


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guarded") / "people.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people AS SELECT i AS person_id, i % 5 AS region, i * 7919 % 4000 AS income FROM range(300000) t(i)"
    )
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute(
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'], measures := ['income'])"
    ).fetchall()
    con.close()
    return path


QUERY = "SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region ORDER BY region"


def test_a_file_is_answered_as_its_connection(file: Path) -> None:
    answer = guard(file).sql(QUERY).to_pylist()
    con = sdcduck.connect(file, read_only=True)
    with_own_numbers(con, "income")
    direct = con.execute(
        "SELECT region, sdc_count(record_key), sum_of_income(income, record_key) FROM people GROUP BY region ORDER BY region"
    ).fetchall()
    con.close()
    assert [tuple(row.values()) for row in answer] == direct


def test_a_view_is_looked_at_again_in_a_file_that_nobody_changes(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute("""
        CREATE TABLE people AS SELECT i AS person_id, i % 5 AS region FROM range(1000) t(i);
        CREATE TABLE regions AS SELECT i AS region, 'r' || i AS name FROM range(5) t(i);
        CREATE VIEW seasons AS SELECT i % (CASE WHEN now() > '2000-01-01' THEN 5 END) AS region FROM range(5) t(i);
        FROM sdc_add_record_key('people', unit := 'person_id');
        FROM sdc_protect('people', unit := 'person_id', dimensions := ['region']);
        FROM sdc_declare_public('regions');
        FROM sdc_declare_public('seasons');
    """)
    con.close()
    one = guard(path)
    asked = []
    value = one._schema._limited.value
    one._schema._limited.value = lambda sql: asked.append(sql) or value(sql)
    for _ in range(3):
        for name in ("regions", "seasons"):
            one.sql(f"SELECT p.region, count(*) AS n FROM people p JOIN {name} USING (region) GROUP BY p.region")
    assert sum('"people"' in sql for sql in asked) == 1
    assert sum('"regions"' in sql for sql in asked) == 1
    assert sum('"seasons"' in sql for sql in asked) == 3


def test_the_instance_is_locked(file: Path) -> None:
    con = guard(file)._con
    for statement in (
        "SET threads = 1",
        "FROM read_csv('/etc/passwd')",
        "ATTACH 'x.duckdb'",
        "INSTALL httpfs",
        "COPY people TO 'x.csv'",
        "CREATE TABLE t (a INTEGER)",
    ):
        with pytest.raises(duckdb.Error):
            con.execute(statement)


def test_a_query_that_runs_too_long_is_stopped(file: Path) -> None:
    slow = "SELECT count(*) FROM (SELECT region, count(*) AS n FROM people GROUP BY region) a" + "".join(
        f" CROSS JOIN (SELECT region, count(*) AS n FROM people GROUP BY region) b{k}" for k in range(20)
    )
    with pytest.raises(Refused, match="SDC091"):
        guard(file, seconds=0.3).sql(slow)


MANY = "(SELECT person_id AS k FROM people_public LIMIT 30000)"
AT_ONCE = f"SELECT length(list(a.k)) AS n FROM {MANY} a JOIN {MANY} b ON a.k * 0 = b.k * 0"
AT_THE_END = f"SELECT k AS n FROM {MANY} UNION ALL {AT_ONCE}"


def batch_by_batch(guarded: Guard, query: str) -> None:
    asked = guarded.question(query)
    asked.ask()
    for _ in asked.batches():
        pass


DOORS: dict[str, Callable[[Guard, str], object]] = {
    "sql": Guard.sql,
    "stream": lambda guarded, query: guarded.stream(query, rows=1000).read_all(),
    "question": batch_by_batch,
}


@pytest.fixture(scope="module")
def open_file(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("open") / "people.duckdb"
    shutil.copy(file, path)
    with sdcduck.connect(path) as con:
        con.execute(
            "CREATE TABLE people_public AS SELECT person_id FROM people; FROM sdc_declare_public('people_public')"
        )
    return path


@pytest.mark.parametrize("question", [AT_ONCE, AT_THE_END])
@pytest.mark.parametrize("door", DOORS)
def test_a_question_that_needs_too_much_memory_is_refused_and_the_guard_goes_on(
    open_file: Path, capfd: pytest.CaptureFixture[str], question: str, door: str
) -> None:
    guarded = guard(open_file, memory="200MB", seconds=600)
    with pytest.raises(Refused, match="SDC094: a query that needs too much memory") as caught:
        DOORS[door](guarded, question)
    assert caught.value.__cause__ is None
    assert guarded.sql("SELECT count(*) AS n FROM people_public").to_pylist() == [{"n": 300000}]
    guarded.close()
    assert capfd.readouterr() == ("", "")


def test_others_may_have_all_the_memory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: object) -> str:
        raise duckdb.OutOfMemoryException("Out of Memory Error: 1 of 1 used by the question of somebody else")

    con = sdcduck.connect(file, read_only=True)  # where each question looks whether policies changed
    for name in ("declared", "policies"):
        guarded = guard(con)
        guarded._schema._unchanging = False
        with monkeypatch.context() as changed:
            changed.setattr(catalog, name, failing)
            for ask in (Guard.sql, Guard.columns, Guard.rewrite, lambda one, query: one.relations()):
                with pytest.raises(Refused, match="SDC094") as caught:
                    ask(guarded, QUERY)
                assert "somebody" not in str(caught.value)
        assert len(guarded.sql(QUERY)) == 5
    con.close()


def test_half_of_the_memory_is_the_limit_where_nothing_is_said(file: Path) -> None:
    def limit(con: duckdb.DuckDBPyConnection) -> float:
        size, unit = con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
        return float(size) * {"KiB": 1, "MiB": 2**10, "GiB": 2**20, "TiB": 2**30}[unit]

    guarded = guard(file)
    with duckdb.connect() as other:
        assert limit(guarded._con) == pytest.approx(limit(other) * 0.5 / 0.8, rel=0.05)
    guarded.close()
    guarded = guard(file, memory="512MiB")
    assert limit(guarded._con) == 512 * 2**10
    guarded.close()


def test_what_cannot_be_opened(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("{}")
    with pytest.raises(sdcduck.SDCError, match="the file is no database"):
        sdcduck.open_guard(tmp_path / "lines.jsonl")
    with pytest.raises(sdcduck.SDCError, match="no such database file"):
        sdcduck.open_guard(tmp_path)
    with pytest.raises(sdcduck.SDCError, match="no such database file"):
        guard(tmp_path / "nothing.duckdb")
    con = sdcduck.connect()
    with pytest.raises(sdcduck.SDCError, match="memory limit goes with a file"):
        guard(con, memory="1GB")
    con.close()
    with pytest.raises(sdcduck.SDCError, match="has no policies"):
        guard(duckdb.connect())


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_is_free_at_the_end_whoever_else_holds_its_connection(
    file: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """As the frames of an error do until they are collected: what DuckDB closes is what is asked, not the file."""
    held = []
    real = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *given, **more: held.append(real(*given, **more)) or held[-1])
    if fails:
        with pytest.raises(sdcduck.SDCError, match="'seconds' must be more than 0"):
            guard(file, seconds=-1)
    else:
        one = guard(file)
        question = one.question(QUERY)
        one.sql(QUERY)
        one.close()
        question.close()
    assert held
    real(str(file), config={"threads": 1}).close()


@pytest.mark.parametrize(
    "memory", ["nonsense", "", "0GB", "-1GB", "10", "101%", "inf", "nanGB", "99999999999TB", "²GB", 5]
)
def test_a_memory_limit_that_is_none_is_said(tmp_path: Path, memory: str) -> None:
    """DuckDB takes -1GB for no limit at all."""
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a; FROM sdc_declare_public('t')").fetchall()
    with pytest.raises(
        sdcduck.SDCError, match=r"argument 'memory' must be a size such as '2GB' or '500MB', or a share"
    ):
        guard(path, memory=memory)


def test_a_memory_limit_is_a_size_or_a_share(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a; FROM sdc_public('t')").fetchall()
    for right in ("1500000 KB", "1.5GiB", "50%", "1tb"):
        guard(path, memory=right).close()


def test_every_question_is_written_down_and_a_change_is_seen(file: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    guarded = guard(file, log=log)
    guarded.sql(QUERY, user="ann")
    with pytest.raises(Refused):
        guarded.sql("SELECT * FROM people", user="bob")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["user"], line["verdict"], line["rows"]) for line in lines] == [
        ("ann", "answered", 5),
        ("bob", "SDC040", 0),
    ]
    assert "sdc_count" in lines[0]["sql"].lower()
    assert verify_log(log)[0] == 2
    guard(file, log=log).sql(QUERY)  # a later guard goes on with the chain
    assert verify_log(log)[0] == 3
    text = log.read_text().splitlines()
    for changed in (
        [text[0].replace("ann", "eve"), *text[1:]],
        text[1:],
        [text[0], text[2]],
        [*text, text[2]],
    ):
        log.write_text("\n".join(changed) + "\n")
        with pytest.raises(sdcduck.SDCError, match="the audit log was changed"):
            guard(file, log=log)


def test_without_the_log_there_is_no_answer(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    guarded = guard(file, log=folder / "audit.jsonl")
    shutil.rmtree(folder)
    with pytest.raises(Refused, match="SDC092"):
        guarded.sql(QUERY)
    with pytest.raises(sdcduck.SDCError, match="audit log cannot be written"):
        guard(file, log=tmp_path / "not" / "there" / "audit.jsonl")


def test_a_file_with_the_functions_of_another_version_says_so(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "older.duckdb"
    shutil.copy(file, path)
    with duckdb.connect(path) as con:  # without sdcduck, which would bring them up to date
        con.execute("DROP MACRO _sdc_ptable_kind")
        con.execute("UPDATE sdc.settings SET value = '0.0 of long ago' WHERE name = 'sql'")
    with pytest.raises(sdcduck.SDCError, match=r"are not those of this sdcduck: .*sdcduck\.connect"):
        guard(path)
    sdcduck.connect(path).close()
    assert guard(path).sql(QUERY).to_pylist() == guard(file).sql(QUERY).to_pylist()


REPLACED = {
    "a code": "_sdc_count_code(p, n, key_sum, digits) AS 3",
    "another number": "_sdc_exact_squares(y) AS y * y",
    "with other parameters": "_sdc_try(x, y) AS x",
    "of another schema": "_sdc_on_grid(value, step) AS other._sdc_on_grid(value, step)",
    "in capitals": "_SDC_CLIPPED(t) AS t",
    "with a form more": "_sdc_try(x) AS list_transform([0], lambda _sdc_once: TRY(x))[1], (x, y) AS x",
}


@pytest.mark.parametrize("what", REPLACED)
def test_a_macro_of_ours_that_was_replaced_is_noticed(file: Path, tmp_path: Path, what: str) -> None:
    path, name = tmp_path / "replaced.duckdb", REPLACED[what].split("(")[0]
    shutil.copy(file, path)
    with duckdb.connect(path) as con:
        con.execute("CREATE SCHEMA other; CREATE MACRO other._sdc_on_grid(value, step) AS value")
        con.execute(f"DROP MACRO {name}; CREATE MACRO {REPLACED[what]}")
    with pytest.raises(sdcduck.SDCError, match=r"are not those of this sdcduck: .* sdcduck\.uninstall and install"):
        guard(path)


def test_macros_of_ours_that_were_replaced_are_there_again(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "replaced.duckdb"
    shutil.copy(file, path)
    with duckdb.connect(path) as con:
        con.execute("CREATE SCHEMA other; CREATE MACRO other._sdc_on_grid(value, step) AS value")
        for macro in REPLACED.values():
            con.execute(f"DROP MACRO {macro.split('(')[0]}; CREATE MACRO {macro}")
    con = sdcduck.connect(path)
    sdcduck.install(sdcduck.uninstall(con))
    con.close()
    assert guard(path).sql(QUERY).to_pylist() == guard(file).sql(QUERY).to_pylist()


def test_a_macro_of_ours_that_is_replaced_under_the_guard_is_noticed_with_the_next_policy(file: Path) -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE info AS SELECT 1 AS a")
        con.execute("CALL sdc_declare_public('info')").fetchall()
        open_ = guard(con)
        assert open_.sql("FROM info").num_rows == 1
        con.execute("CREATE OR REPLACE MACRO _sdc_try(x) AS x")
        con.execute("CALL sdc_declare_public('info')").fetchall()
        with pytest.raises(Refused, match=r"SDC060: .*are not those of this sdcduck"):
            open_.sql("FROM info")


def test_a_ptable_macro_that_was_replaced_is_noticed(file: Path, tmp_path: Path) -> None:
    for nth, macro in enumerate(
        [
            "most(p) AS 1",
            "divisors(p) AS [7]",
            "row(p, n) AS least(n, 1)",
            "count_strips(p) AS ['a']",
            "magnitude_strips(p) AS ['a']",
        ]
    ):
        path = tmp_path / f"ptable{nth}.duckdb"
        shutil.copy(file, path)
        with duckdb.connect(path) as con:
            con.execute(f"CREATE OR REPLACE MACRO _sdc_ptable_{macro}")
        with pytest.raises(Refused, match=r"SDC060: .*p-table was changed"):
            guard(path).sql(QUERY)


def test_a_guard_without_time_or_with_no_role_says_so(file: Path) -> None:
    for seconds in (0, -1, float("nan")):
        with pytest.raises(sdcduck.SDCError, match="'seconds' must be more than 0"):
            guard(file, seconds=seconds)
    with pytest.raises(sdcduck.SDCError, match="'role' must be a text"):
        guard(file, role=5)  # type: ignore[arg-type]


def test_a_column_is_declared_once() -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT 1 AS id, 2 AS record_key, 'a' AS region, 3 AS income")
        for columns, argument in (
            ("dimensions := ['region', 'REGION']", "dimensions"),
            ("dimensions := ['region'], measures := ['income', 'Income']", "measures"),
        ):
            with pytest.raises(duckdb.Error, match=f"'{argument}' has column '.*' twice"):
                con.execute(f"FROM sdc_protect('people', unit := 'id', {columns})")
