"""Records on another engine: every number is the one that DuckDB gives alone, to the bit, or the question is refused."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pyarrow as pa
import pytest
from effort import LONG

import sdcduck
from sdcduck.catalog import engine_semantics as semantics
from sdcduck.catalog.engine_semantics import SEMANTICS, column
from sdcduck.catalog.engines import engine_of
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

sys.path.insert(0, str(Path(__file__).parents[1] / "acceptance"))
from table import SECRET, declare, guarded, queries

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse
from postgres_server import postgres

METHODS = ("cell_key", "threshold", "rounding")
ANSWERED = {"cell_key": 150, "threshold": 150, "rounding": 130}
"""At least so many questions of the acceptance list are answered of an engine's records."""


def _duckdb(tables: dict[str, pa.Table]) -> Any:
    ibis = pytest.importorskip("ibis", reason="ibis is not installed")
    backend = ibis.duckdb.connect()
    for name, rows in tables.items():
        backend.con.register("given", rows)
        backend.con.execute(f"CREATE TABLE {name} AS FROM given")
    return backend


def _datafusion(tables: dict[str, pa.Table]) -> Any:
    datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
    session = datafusion.SessionContext()
    for name, rows in tables.items():
        session.register_record_batches(name, [rows.to_batches(max_chunksize=100)])
    return session


def _postgres(tables: dict[str, pa.Table]) -> Any:
    return postgres().fill(tables)


_ONE_OF = 12
"""Each engine and method is asked one question of so many; in `make test-long` all."""

ENGINES: dict[str, Callable[[dict[str, pa.Table]], Any]] = {
    "duckdb": _duckdb,
    "datafusion": _datafusion,
    "postgres": _postgres,
    "clickhouse": clickhouse,
}


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Callable[[dict[str, pa.Table]], Any]:
    return ENGINES[request.param]


def as_bits(answer: pa.Table) -> list[tuple[object, ...]]:
    """The rows in their order, floating-point numbers by their bytes."""

    def bits(value: object) -> object:
        return struct.pack("<d", value) if isinstance(value, float) else (type(value), value)

    return [tuple(map(bits, row.values())) for row in answer.to_pylist()]


def is_same(one: pa.Table, other: pa.Table) -> bool:
    return one.schema.equals(other.schema, check_metadata=True) and as_bits(one) == as_bits(other)


def told(guard: Guard, sql: str, parameters: Any = None) -> pa.Table | str:
    try:
        return guard.sql(sql, parameters)
    except Refused as refused:
        return refused.code


def here_and_there(con: duckdb.DuckDBPyConnection, made: Callable[[dict[str, pa.Table]], Any]) -> Any:
    """An engine with the records of a database."""
    return made({"people": con.sql("FROM people").to_arrow_table()})


@pytest.mark.parametrize("method", METHODS)
def test_the_questions_of_the_acceptance_list(method: str, engine: Callable[[dict[str, pa.Table]], Any]) -> None:
    with guarded(method) as alone:
        backend = here_and_there(alone._con, engine)
        con = sdcduck.connect(secret=SECRET, records=backend)
        for name in ("regions", "zones", "stays"):
            con.register("given", alone._con.sql(f"FROM {name}").to_arrow_table())
            con.execute(f"CREATE TABLE {name} AS FROM given")
        con.execute("CREATE VIEW cold_regions AS FROM regions WHERE climate = 'cold'")
        con.execute("CREATE VIEW women AS FROM people WHERE sex = 'f'")
        for name in ("regions", "zones", "cold_regions"):
            con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
        for name in ("people", "women", "stays"):
            declare(con, name, method, exact=False)
        con.executemany(
            "UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'",
            [[secret] for secret in _noise_secrets(alone._con)] or [[""]],
        )
        split = sdcduck.open_guard(con, records=backend)
        answered = 0
        place = len(ENGINES) * METHODS.index(method) + list(ENGINES.values()).index(engine)
        for number, query in enumerate(queries()):
            if not LONG and number % _ONE_OF != place:
                continue
            if any(name in query.sql for name in ("sdc_", "SUMMARIZE", "SHOW", "DESCRIBE")):
                continue
            one, other = told(alone, query.sql, query.parameters), told(split, query.sql, query.parameters)
            if isinstance(other, str):
                assert other == "SDC061" or other == one, query.title
                continue
            assert isinstance(one, pa.Table), query.title
            assert is_same(one, other), query.title
            answered += "_sdc_cells_0" in split.explain(query.sql).sql
        assert answered >= (ANSWERED[method] if LONG else 5)


def _noise_secrets(con: duckdb.DuckDBPyConnection) -> list[str]:
    return [row[0] for row in con.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall()]


_DOUBLES = [
    None, float("nan"), -float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 5e-5, -5e-5, 4.9e-5, 1.5e-4, 2.5e-4, -2.5e-4, -1.5e-4, 0.1, 1e-9,
    -1e-9, 0.49999999999999994e-4, 9e14, 9.3e14, -9.3e14, 922337203685477.5, -922337203685477.6, 922337203685477.7, 450359962737049.7,
    450359962737049.65, 123456789.12345, 5e-324, 1.7e308, -1.7e308,
]  # fmt: skip
"""Where engines differ: no value, NaN of both signs, infinity, halves of ten-thousandths, and the ends of BIGINT."""


def test_the_words_of_an_engine_mean_what_duckdb_does(engine: Callable[[dict[str, pa.Table]], Any]) -> None:
    """Each of a record alone: sums on the grid, the ends, what comes to nothing on the grid, and no keys."""
    from sdcduck.catalog.engines import engine_of

    keys = [None if place % 7 == 3 else place for place in range(len(_DOUBLES))]
    rows = pa.table({"i": range(len(_DOUBLES)), "x": pa.array(_DOUBLES, pa.float64()), "k": pa.array(keys, pa.int32())})
    asked = engine_of(engine({"people": rows}))
    x, k = column("x"), column("k")
    high, low = semantics.largest(x, k, floating=True)
    parts = [
        semantics.total_on_grid(x), high, low, semantics.nans(x, k), semantics.without(k), semantics.most(k),
        semantics.count(x), semantics.is_null(x), semantics.is_some(x),
    ]  # fmt: skip
    shown = ", ".join(f"{SEMANTICS[asked.name].written(part)} AS c{place}" for place, part in enumerate(parts))
    found = asked.rows(f'SELECT "i", {shown} FROM "people" GROUP BY "i", "x" ORDER BY "i"')
    with duckdb.connect() as con:
        con.register("people", rows)
        meant = con.sql("""SELECT i, sum(try_cast(x * 1e4 AS BIGINT))::DECIMAL(38, 0), max(abs(x)) FILTER (k IS NOT NULL AND NOT isnan(x)),
            max(abs(x)) FILTER (k IS NOT NULL AND NOT isnan(x)), count(*) FILTER (k IS NOT NULL AND isnan(x)), count(*) FILTER (k IS NULL),
            max(k), count(x), x IS NULL, abs(x * 1e4) > 0.5 FROM people GROUP BY i, x ORDER BY i""").to_arrow_table()
    # A text where it may be of any length, and 0 and 1 of conditions in ClickHouse: DuckDB reads them so.
    for place in (1, 8, 9):
        column_ = found.column(place).cast(meant.schema.field(place).type)
        found = found.set_column(place, meant.column_names[place], column_)
    assert as_bits(found.rename_columns(meant.column_names)) == as_bits(meant)


def test_sums_of_whole_numbers_do_not_overflow(engine: Callable[[dict[str, pa.Table]], Any]) -> None:
    from sdcduck.catalog.engines import engine_of

    rows = pa.table({"x": pa.array([2**63 - 1] * 4 + [-(2**63)] + [None], pa.int64())})
    asked = engine_of(engine({"people": rows}))
    sql = SEMANTICS[asked.name].written(semantics.total(column("x")))
    assert int(asked.rows(f'SELECT {sql} AS s FROM "people"').column(0)[0].as_py()) == 3 * 2**63 - 4


def test_texts_are_told_apart_by_their_bytes(engine: Callable[[dict[str, pa.Table]], Any]) -> None:
    from sdcduck.catalog.engines import engine_of

    texts = ["a", "A", "a ", "\u00e4", "a\u0308", "", None, "\u212a", "K", "k"]
    asked = engine_of(engine({"people": pa.table({"x": texts})}))
    found = asked.rows('SELECT "x", count(*) AS n FROM "people" GROUP BY "x"').to_pydict()
    assert found["n"] == [1] * len(texts)
    assert set(found["x"]) == set(texts)


_PEOPLE = """SELECT i AS id, ['n', 's', 'e', NULL][1 + i % 4] AS region, ['f', 'm'][1 + i * 37 % 101 % 2] AS sex, i % 90 AS age,
    CASE WHEN i % 11 = 0 THEN NULL WHEN i % 97 = 0 THEN 'NaN'::DOUBLE WHEN i % 13 = 0 THEN -0.0 WHEN i % 17 = 0 THEN 0.00015
        WHEN i = 5 THEN 'inf'::DOUBLE ELSE sqrt(i) - 10 END AS income,
    (i * 7919 % 100000 - 5)::DECIMAL(12, 2) / 100 AS fee, CASE WHEN i % 5 > 0 THEN (i % 20)::BIGINT END AS hours
    FROM range(1500) r(i)"""


def _alone() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret=SECRET)
    con.execute(f"CREATE TABLE people AS SELECT * REPLACE (fee::DECIMAL(12, 2) AS fee) FROM ({_PEOPLE})")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    return con


_PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex', 'age'], measures := ['income', 'fee', 'hours'])"
_QUESTIONS = (
    "SELECT region, sex, count(*) AS n, sum(income) AS i, avg(income) AS a, sum(fee) AS f, avg(hours) AS h FROM people "
    "GROUP BY CUBE (region, sex)",
    "SELECT upper(region) AS r, age // 10 AS decade, grouping(upper(region)) AS g, sum(hours) AS h FROM people WHERE age > 7 "
    "GROUP BY GROUPING SETS ((upper(region), age // 10), (age // 10), ()) HAVING count(*) > 3",
    "SELECT sum(fee) FILTER (WHERE sex = 'f') AS f, count(income) AS n, avg(income) AS a FROM people WHERE age::DOUBLE / 7 < 5",
    "SELECT region, count(*) AS n FROM people WHERE age > 1000 GROUP BY region",
    "SELECT sum(fee * 2 + hours) AS both FROM people",
)


@pytest.fixture(scope="module")
def alone() -> duckdb.DuckDBPyConnection:
    con = _alone()
    con.execute(_PROTECT).fetchall()
    return con


def _split(alone: duckdb.DuckDBPyConnection, backend: Any) -> tuple[duckdb.DuckDBPyConnection, Guard]:
    con = sdcduck.connect(secret=SECRET, records=backend)
    con.execute(_PROTECT).fetchall()
    con.executemany(
        "UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'", [[one] for one in _noise_secrets(alone)]
    )
    return con, sdcduck.open_guard(con, records=backend)


def test_strange_values(alone: duckdb.DuckDBPyConnection, engine: Callable[[dict[str, pa.Table]], Any]) -> None:
    backend = here_and_there(alone, engine)
    whole = sdcduck.open_guard(alone)
    _, split = _split(alone, backend)
    for question in _QUESTIONS:
        assert is_same(whole.sql(question), split.sql(question)), question
        assert is_same(whole.stream(question).read_all(), split.stream(question).read_all()), question


def test_cells_are_told_apart_by_dimensions_alone(alone: duckdb.DuckDBPyConnection) -> None:
    """Whether a record has a measure, or one that comes to something, is asked record by record."""
    whole = sdcduck.open_guard(alone)
    _, split = _split(alone, here_and_there(alone, _as_duckdb))
    for question, conditions in (
        ("SELECT region, sum(income) AS i, avg(hours) AS h FROM people GROUP BY region", ""),
        ("SELECT region, sum(fee) FILTER (WHERE sex = 'f') AS f FROM people GROUP BY region", ', "sex"'),
    ):
        (engine_sql,) = split.explain(question).engine
        assert engine_sql.endswith(f'GROUP BY "region"{conditions} HAVING COUNT(*) > 0'), question
        assert is_same(whole.sql(question), split.sql(question)), question


def test_both_halves_are_explained(alone: duckdb.DuckDBPyConnection) -> None:
    _, split = _split(alone, here_and_there(alone, _as_duckdb))
    found = split.explain("SELECT region, count(*) AS n FROM people WHERE age > 7 GROUP BY region")
    (engine_sql,) = found.engine
    assert '"people"' in engine_sql
    assert "age > 7" not in engine_sql
    assert "_sdc_cells_0" in found.sql
    assert '"main"."people"' not in found.sql


def _as_duckdb(tables: dict[str, pa.Table]) -> Any:
    """A connection of DuckDB is an engine, too."""
    con = duckdb.connect()
    for name, rows in tables.items():
        con.register("given", rows)
        con.execute(f"CREATE TABLE {name} AS FROM given")
    return con


@pytest.mark.parametrize(
    "question",
    [
        "SELECT median(income) FROM people",
        "SELECT stddev(fee) FROM people",
        "SELECT sex, count(*) FROM people WHERE id IN (SELECT id FROM people WHERE age > 20) GROUP BY sex",
    ],
)
def test_what_is_not_known_to_be_the_same_is_refused(alone: duckdb.DuckDBPyConnection, question: str) -> None:
    _, split = _split(alone, here_and_there(alone, _as_duckdb))
    assert told(split, question) == "SDC061"
    assert not split.explain(question).answered


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE people SET record_key = NULL WHERE id = 3; INSERT INTO people BY NAME SELECT 9999 AS id, 7 AS record_key", "SDC060"),
        ("INSERT INTO people BY NAME SELECT 1 AS id, 7 AS record_key", "SDC061"),
        ("INSERT INTO people BY NAME SELECT NULL AS id, 7 AS record_key", "SDC060"),
        ("INSERT INTO people BY NAME SELECT 9999 AS id, 100000000 AS record_key", "SDC060"),
        ("DELETE FROM people WHERE id = 3; UPDATE people SET record_key = id * 50000", "SDC060"),
        ("DELETE FROM people WHERE id = 3; UPDATE people SET record_key = 5", "SDC060"),
        ("ALTER TABLE people DROP COLUMN record_key", "SDC090"),
        ("DROP TABLE people", "SDC090"),
    ],
)  # fmt: skip
def test_records_that_changed_on_the_engine(alone: duckdb.DuckDBPyConnection, change: str, code: str) -> None:
    backend = here_and_there(alone, _as_duckdb)
    _, split = _split(alone, backend)
    assert split.sql(_QUESTIONS[3]).column_names == ["region", "n"]
    backend.execute(change)
    with pytest.raises(Refused, match=code) as refused:
        split.sql("SELECT sex, count(*) AS n FROM people GROUP BY sex")
    assert "9999" not in str(refused.value)


def test_columns_of_postgresql_that_are_left_out() -> None:
    server = postgres()
    server.fill({})
    server.run(
        "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE people (id integer, g text, folded text COLLATE folding, blanks char(3), any_digits numeric, "
        "many_digits numeric(30, 2), fee numeric(12, 2), at timestamp, single real, span interval, d date, big bigint)",
    )
    with sdcduck.connect(records=server.address) as con:
        described = {row[0]: row[1] for row in con.execute("DESCRIBE people").fetchall()}
    assert described == {
        "id": "INTEGER", "g": "VARCHAR", "fee": "DECIMAL(12,2)", "d": "DATE", "big": "BIGINT",
    }  # fmt: skip


def test_a_decimal_that_is_none(alone: duckdb.DuckDBPyConnection) -> None:
    """NaN may be in a numeric(12, 2) of PostgreSQL, and is in no DECIMAL(12, 2): one refusal, without the value."""
    address = here_and_there(alone, _postgres)
    _, split = _split(alone, address)
    postgres().run("UPDATE people SET fee = 'NaN' WHERE id = 3")
    with pytest.raises(Refused, match="SDC090") as refused:
        split.sql("SELECT sum(fee) AS f FROM people")
    assert "nan" not in str(refused.value).lower().replace("finance", "")


def test_an_address_where_nobody_answers(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_postgresql", reason="Arrow's driver of PostgreSQL is not installed")
    with pytest.raises(SDCError, match="PostgreSQL does not answer") as refused:
        sdcduck.connect(records=f"postgresql:///x?host={tmp_path}&user=u&password=not-to-be-shown")
    assert "not-to-be-shown" not in str(refused.value)


def test_nothing_is_answered_of_the_empty_tables(alone: duckdb.DuckDBPyConnection) -> None:
    backend = here_and_there(alone, _as_duckdb)
    con, split = _split(alone, backend)
    con.execute("CREATE VIEW women AS FROM people WHERE sex = 'f'")
    con.execute(_PROTECT.replace("'people'", "'women'")).fetchall()
    with pytest.raises(Refused, match=r"SDC060.*another engine"):
        sdcduck.open_guard(con).sql("SELECT count(*) FROM people")
    for guard in (split, sdcduck.open_guard(con)):
        with pytest.raises(Refused, match=r"SDC061.*a view of records on an engine"):
            guard.sql("SELECT count(*) FROM women")
    con.execute("INSERT INTO people BY NAME SELECT 1 AS id, 'n' AS region, 5 AS record_key")
    with pytest.raises(Refused, match="SDC060"):
        split.sql("SELECT count(*) FROM people")


def test_engines_that_are_none() -> None:
    for records in ("people.duckdb", 3, object()):
        with pytest.raises(SDCError, match="argument 'records'"):
            sdcduck.connect(records=records)
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS id, 'x' AS g")
        con.execute("FROM sdc_declare_public('t')").fetchall()
        with pytest.raises(SDCError, match="no table of this database stands for"):
            sdcduck.open_guard(con, records=duckdb.connect())


def test_a_file_that_only_the_guard_holds(alone: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    backend = here_and_there(alone, _as_duckdb)
    with sdcduck.connect(tmp_path / "policies.duckdb", secret=SECRET, records=backend) as con:
        con.execute(_PROTECT).fetchall()
        con.executemany(
            "UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'", [[one] for one in _noise_secrets(alone)]
        )
    split = sdcduck.open_guard(tmp_path / "policies.duckdb", records=backend)
    assert is_same(split.sql(_QUESTIONS[0]), sdcduck.open_guard(alone).sql(_QUESTIONS[0]))
    split.close()


def test_an_address_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of each table become a view, by what is called of Spark."""
    module = MagicMock()
    monkeypatch.setitem(sys.modules, "pyspark", module)
    monkeypatch.setitem(sys.modules, "pyspark.sql", module.sql)
    begun = module.sql.SparkSession.builder.master
    session = begun.return_value.appName.return_value.config.return_value.getOrCreate.return_value
    session.conf.get.return_value = "true"
    assert engine_of("spark://127.0.0.1:7077?people=/data/people&firms=/data/firms").name == "spark"
    assert engine_of("spark-local:?people=/data/people").name == "spark"
    assert [call.args for call in begun.call_args_list] == [("spark://127.0.0.1:7077",), ("local[*]",)]
    assert [call.args[0] for call in session.read.parquet.call_args_list] == [
        "/data/people",
        "/data/firms",
        "/data/people",
    ]
    begun.side_effect = RuntimeError("7 secrets")
    with pytest.raises(SDCError, match="does not answer") as failed:
        engine_of("spark://127.0.0.1:7077")
    assert "7 secrets" not in str(failed.value)
