"""ClickHouse: types that DuckDB has not, settings of a session, texts that are none, and what is stopped."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck
from sdcduck.catalog import engine_semantics as semantics
from sdcduck.catalog.engine_clickhouse import OfClickHouse
from sdcduck.catalog.engine_semantics import SEMANTICS
from sdcduck.catalog.engines import engine_of
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse

SECRET = "the secret of these tests"
_MADE = """SELECT toUInt32(number) AS id, toLowCardinality(['n', 's', 'e'][1 + number % 3]) AS region, toUInt8(number % 7) AS c0,
    CAST(number % 5 AS Nullable(UInt16)) AS c1, CAST(number % 2 = 0 AS Bool) AS women, toDate('2020-01-01') + number % 3 AS day,
    toDecimal64(number % 100, 2) AS fee, sqrt(number) AS income FROM numbers(600)"""
_SAME = """SELECT i::BIGINT AS id, ['n', 's', 'e'][1 + i % 3] AS region, (i % 7)::SMALLINT AS c0, (i % 5)::INTEGER AS c1, i % 2 = 0 AS women,
    DATE '2020-01-01' + (i % 3)::INTEGER AS day, (i % 100)::DECIMAL(18, 2) AS fee, sqrt(i) AS income FROM range(600) r(i)"""
_PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'c0', 'women', 'day'], measures := ['c1', 'fee', 'income'])"
_QUESTIONS = (
    "SELECT region, c0, count(*) AS n, sum(c1) AS c2, sum(fee) AS f, avg(income) AS i FROM people GROUP BY CUBE (region, c0)",
    "SELECT day, women, count(c1) AS n FROM people WHERE c0 < 5 GROUP BY day, women",
)


@pytest.fixture
def session() -> Any:
    made = clickhouse({})
    made.query(f"CREATE TABLE people ENGINE = MergeTree ORDER BY id AS {_MADE}")
    return made


def _guard(session: Any) -> tuple[duckdb.DuckDBPyConnection, Guard]:
    con = sdcduck.connect(secret=SECRET, records=session)
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(_PROTECT).fetchall()
    con.execute("UPDATE sdc.settings SET value = 'noise' WHERE name = 'noise_secret'")
    return con, sdcduck.open_guard(con, records=session)


def _alone() -> Guard:
    con = sdcduck.connect(secret=SECRET)
    con.execute(f"CREATE TABLE people AS {_SAME}")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(_PROTECT).fetchall()
    con.execute("UPDATE sdc.settings SET value = 'noise' WHERE name = 'noise_secret'")
    return sdcduck.open_guard(con)


def test_settings_of_the_session_change_no_number(session: Any) -> None:
    """A session may have ClickHouse answer of some records, or groups, or of what was there before."""
    engine = OfClickHouse(session)
    _, guard = _guard(engine)
    meant = [_alone().sql(question) for question in _QUESTIONS]
    for settings in (
        "count_distinct_implementation = 'uniq', group_by_overflow_mode = 'any', limit = 1, offset = 1, prefer_column_name_to_alias = 0, "
        "join_use_nulls = 0, cast_keep_nullable = 0, output_format_arrow_string_as_string = 0, transform_null_in = 1, "
        "aggregate_functions_null_for_empty = 1, short_circuit_function_evaluation = 'disable', session_timezone = 'Pacific/Apia'",
        "additional_result_filter = 'c0 = 1', additional_table_filters = {'people': 'c0 = 1'}, group_by_overflow_mode = 'throw'",
        "use_query_cache = 1, final = 1, compile_expressions = 0",
    ):
        engine.session().query(f"SET {settings}")
        for question, wanted in zip(_QUESTIONS, meant, strict=True):
            assert guard.sql(question).equals(wanted), settings
    engine.session().query("SET max_rows_to_read = 10, read_overflow_mode = 'break'")
    with pytest.raises(Refused, match="SDC090"):
        guard.sql(_QUESTIONS[0])


def test_ibis_has_other_words_for_it() -> None:
    """ibis 12 puts a dialect of its own in the place of sqlglot's, by its name."""
    pytest.importorskip("ibis.backends.sql.dialects", reason="ibis is not installed")
    assert SEMANTICS["clickhouse"].written(semantics.total(semantics.column("x"))) == (
        'SUM(CAST("x" AS Nullable(Decimal(38, 0))))'
    )


def test_columns_and_tables_that_are_left_out(session: Any) -> None:
    session.query(
        "CREATE TABLE odd (id Int64, a Array(Int8), e Enum('a', 'b'), u UInt64, f Float32, t DateTime, s FixedString(3), w String ALIAS 'x', "
        "b LowCardinality(Nullable(String)), many Decimal(30, 2), `back\\\\slash` Int8, g UUID, big Int128) ENGINE = MergeTree ORDER BY id"
    )
    session.query("CREATE VIEW seen AS SELECT * FROM people")
    with sdcduck.connect(secret=SECRET, records=session) as con:
        assert [
            row[0]
            for row in con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        ] == ["odd", "people"]
        described = {row[0]: row[1] for row in con.execute("DESCRIBE odd").fetchall()}
        assert described == {"id": "BIGINT", "b": "VARCHAR"}
        assert {row[0]: row[1] for row in con.execute("DESCRIBE people").fetchall()} == {
            "id": "BIGINT", "region": "VARCHAR", "c0": "SMALLINT", "c1": "INTEGER", "women": "BOOLEAN", "day": "DATE",
            "fee": "DECIMAL(18,2)", "income": "DOUBLE",
        }  # fmt: skip


def test_a_text_that_is_not_in_utf8(session: Any) -> None:
    _, guard = _guard(session)
    session.query("INSERT INTO people (id, region, record_key) SELECT 999, unhex('ff'), 5")
    with pytest.raises(Refused, match="SDC090") as refused:
        guard.sql("SELECT region, count(*) AS n FROM people GROUP BY region")
    assert "999" not in str(refused.value)


def test_a_question_is_stopped(session: Any) -> None:
    """By another session, from another thread; the first one is good for more."""
    engine = engine_of(session)
    ended = list[str]()

    def ask() -> None:
        try:
            engine.rows("SELECT sum(sipHash64(number) % 7) AS n FROM numbers(100000000000)")
        except Exception as problem:
            ended.append(str(problem))

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive() and not ended:
        engine.stop()
    asking.join()
    assert len(ended) == 1
    assert engine.rows("SELECT count(*) AS n FROM people").column(0).to_pylist() == [600]


def test_a_table_that_cannot_be_changed_stays_as_it_is(session: Any) -> None:
    session.query("CREATE TABLE logged (id Int64) ENGINE = Log")
    session.query("INSERT INTO logged SELECT number FROM numbers(10)")
    with sdcduck.connect(secret=SECRET, records=session) as con:
        with pytest.raises(duckdb.Error, match="refused, or is not there"):
            con.execute("FROM sdc_add_record_key('logged', unit := 'id')").fetchall()
        assert con.execute("DESCRIBE logged").fetchall()[0][:2] == ("id", "BIGINT")
    assert engine_of(session).schema("logged").names == ["id"]
    assert session.query("SELECT count() FROM system.tables WHERE name LIKE '\\_sdc\\_%'").data() == "0\n"


def test_the_secret_is_in_no_query_of_the_engine(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = list[str](), type(session).query

    def heard(self: Any, sql: str, *arguments: Any) -> Any:
        said.append(sql)
        return asked(self, sql, *arguments)

    monkeypatch.setattr(type(session), "query", heard)
    _guard(session)
    assert any("ADD COLUMN" in sql for sql in said)
    assert not any(SECRET in sql or "HMAC" in sql.upper() for sql in said)


_FOLDER = """
import sys
from chdb.session import Session
from typer.testing import CliRunner
import sdcduck
from sdcduck.cli import app

folder, made, protect, secret, question = sys.argv[1:]
session = Session(folder)
session.query("CREATE DATABASE register")
session.query(f"CREATE TABLE register.people ENGINE = MergeTree ORDER BY id AS {made}")
session.close()
address, file = f"clickhouse://{folder}?database=register", f"{folder}.duckdb"
with sdcduck.connect(file, secret=secret, records=address) as con:
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(protect).fetchall()
    con.execute("UPDATE sdc.settings SET value = 'noise' WHERE name = 'noise_secret'")
try:
    sdcduck.connect(records=f"clickhouse://{folder}?database=none")
except sdcduck.SDCError as problem:
    assert "no such database" in str(problem), problem
asked = CliRunner().invoke(app, ["shell", file, "--records", address, "-c", question])
assert asked.exit_code == 0, asked.output
guard = sdcduck.open_guard(file, records=address)
print(guard.sql(question).to_pylist())
"""


def test_the_address_of_a_folder(tmp_path: Path) -> None:
    """As `--records` has it: the shell, the gateway and `sdcduck sql`. A process has one folder, so this is another."""
    pytest.importorskip("chdb", reason="chdb is not installed")
    given = [str(tmp_path / "folder"), _MADE, _PROTECT, SECRET, _QUESTIONS[0]]
    run = subprocess.run([sys.executable, "-c", _FOLDER, *given], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == str(_alone().sql(_QUESTIONS[0]).to_pylist())


def test_an_address_of_nothing() -> None:
    with pytest.raises(SDCError, match="no such folder"):
        sdcduck.connect(records="clickhouse:///nowhere/at/all")
