"""Record keys of a table on another engine: those of `sdc_record_key`, and the secret stays here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.catalog import engine_kinds
from sdcduck.catalog.engines import engine_of

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse
from postgres_server import postgres

SECRET = "the secret of these tests"
ENGINES = ("duckdb", "postgres", "clickhouse")


def _given(kind: str, rows: pa.Table) -> Any:
    if kind == "postgres":
        return postgres().fill({"people": rows})
    if kind == "clickhouse":
        return clickhouse({"people": rows})
    con = duckdb.connect()
    con.register("given", rows)
    con.execute("CREATE TABLE people AS FROM given")
    return con


_UNITS = {
    "whole numbers": pa.array([3, -1, 0, 2**62, 3], pa.int64()),
    "small ones": pa.array([*range(900)], pa.int32()),
    "texts": pa.array(["", " a", "a", "\u00c4", "A\u0308", "7", "07", "l\ni'\"n,e\\"]),
    "nobody": pa.array([], pa.int32()),
}


@pytest.mark.parametrize(("kind", "digits"), [("duckdb", 18), ("postgres", 8), ("clickhouse", 18)])
@pytest.mark.parametrize("units", _UNITS.values(), ids=_UNITS)
def test_keys_are_those_of_this_database(
    kind: str, units: pa.Array, digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_kinds, "UNITS", 100)
    engine = _given(kind, pa.table({"id": units, "g": pa.array(range(len(units)), pa.int32())}))
    with sdcduck.connect(secret=SECRET, records=engine) as con:
        told = con.execute(f"FROM sdc_add_record_key('people', unit := 'id', digits := {digits})").fetchall()
        found = engine_of(engine).rows('SELECT "id", "g", "record_key" FROM "people"')
        con.register("found", found)
        meant = f"SELECT id, g, sdc_record_key(id, {digits})::{'INTEGER' if digits == 8 else 'BIGINT'} AS k FROM found"
        assert con.execute(f"FROM found EXCEPT ALL ({meant})").fetchall() == []
        assert con.execute("SELECT typeof(record_key) FROM found LIMIT 1").fetchall() in (
            [], [("INTEGER",)] if digits == 8 else [("BIGINT",)],
        )  # fmt: skip
        assert told == [("record_key", len(units), len(set(units.to_pylist())), 0)]
        assert "record_key" in [row[0] for row in con.execute("DESCRIBE people").fetchall()]


@pytest.mark.parametrize("spelled", ['od"d t', 'main."OD""d t"', 'memory.main."od""d t"', 'memory."od""d t"'])
def test_however_the_table_is_named(spelled: str) -> None:
    """The column was made here alone, in the empty table, for names in quotes or with their schema."""
    engine = duckdb.connect()
    engine.execute('CREATE TABLE "od""d t" AS SELECT range::INTEGER AS id FROM range(7)')
    with sdcduck.connect(secret=SECRET, records=engine) as con:
        told = con.execute(f"FROM sdc_add_record_key('{spelled}', unit := 'id')").fetchall()
        assert told == [("record_key", 7, 7, 0)]
        con.execute("CREATE SCHEMA other")
        con.execute('CREATE TABLE other."od""d t" AS SELECT 1 AS id')
        told = con.execute("FROM sdc_add_record_key('other.\"od\"\"d t\"', unit := 'id')").fetchall()
        assert told == [("record_key", 1, 1, 0)]
    assert engine.execute('SELECT count(DISTINCT record_key) FROM "od""d t"').fetchall() == [(7,)]


@pytest.mark.parametrize("kind", ENGINES)
def test_only_a_batch_is_in_this_process(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sdcduck.udfs.perturbation.engine_keys import OnEngine

    seen, made = list[int](), OnEngine._keyed

    def counted(self: OnEngine, batch: pa.RecordBatch, kind: str, digits: int) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return made(self, batch, kind, digits)

    monkeypatch.setattr(OnEngine, "_keyed", counted)
    monkeypatch.setattr(engine_kinds, "UNITS", 1000)
    with sdcduck.connect(secret=SECRET, records=_given(kind, pa.table({"id": range(5500)}))) as con:
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    assert sum(seen) == 5500
    assert max(seen) == 1000


def test_the_secret_is_in_no_log_of_the_engine() -> None:
    import hashlib

    server = postgres()
    address = _given("postgres", pa.table({"id": range(20)}))
    before = len(server.log)
    with sdcduck.connect(secret=SECRET, records=address) as con:
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    written = server.log[before:]
    assert 'ADD COLUMN "record_key" INTEGER' in written
    block = SECRET.encode().ljust(64, b"\0")
    pads = [bytes(byte ^ pad for byte in block) for pad in (0x36, 0x5C)]
    for hidden in (SECRET.encode(), hashlib.sha256(SECRET.encode()).digest(), *pads):
        assert hidden.hex()[:32] not in written.lower()
    assert SECRET not in written
    assert "sha256" not in written.lower()


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("rows", "unit", "problem"),
    [
        (pa.table({"id": [1, None]}), "id", "without a unit"),
        (pa.table({"id": [1.5, 2.0]}), "id", "neither a whole number nor a text"),
        (pa.table({"id": [1, 2]}), "name", "unknown column 'name'"),
        (pa.table({"id": [1, 2], "record_key": [5, 6]}), "id", "already"),
    ],
)
def test_what_has_no_keys(kind: str, rows: pa.Table, unit: str, problem: str) -> None:
    engine = _given(kind, rows)
    with (
        sdcduck.connect(secret=SECRET, records=engine) as con,
        pytest.raises(duckdb.InvalidInputException, match=problem) as refused,
    ):
        con.execute(f"FROM sdc_add_record_key('people', unit := '{unit}')").fetchall()
    assert "1.5" not in str(refused.value)
    assert engine_of(engine).schema("people").names == rows.column_names


@pytest.mark.parametrize("kind", ENGINES)
def test_rows_that_come_while_keys_are_made(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sdcduck.udfs.perturbation.engine_keys import OnEngine

    engine, made = _given(kind, pa.table({"id": [1, 2]})), OnEngine._keyed

    def late(self: OnEngine, batch: pa.RecordBatch, kind_: str, digits: int) -> pa.RecordBatch:
        if batch.num_rows:
            run = {"postgres": lambda sql: postgres().run(sql), "clickhouse": getattr(engine, "query", None)}
            (run.get(kind) or engine.execute)("INSERT INTO people VALUES (3)")
        return made(self, batch, kind_, digits)

    def rows() -> int:
        return int(engine_of(engine).rows("SELECT count(*) AS n FROM people").column(0)[0].as_py())

    with sdcduck.connect(secret=SECRET, records=engine) as con:
        with monkeypatch.context() as patched:
            patched.setattr(OnEngine, "_keyed", late)
            with pytest.raises(duckdb.Error, match=r"changed|nothing was written"):
                con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        assert engine_of(engine).schema("people").names == ["id"]
        assert [row[0] for row in con.execute("DESCRIBE people").fetchall()] == ["id"]
        assert con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall() == [
            ("record_key", rows(), 3, 0)
        ]


def test_a_file_that_was_opened_without_the_engine(tmp_path: Path) -> None:
    engine = _given("duckdb", pa.table({"id": [1, 2]}))
    sdcduck.connect(tmp_path / "a.duckdb", secret=SECRET, records=engine).close()
    with (
        sdcduck.connect(tmp_path / "a.duckdb", secret=SECRET) as con,
        pytest.raises(duckdb.Error, match=r"on another engine: open this file with sdcduck.connect\(.., records=..\)"),
    ):
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    with sdcduck.connect(tmp_path / "b.duckdb", secret=SECRET, records=engine) as con:
        engine.execute("DROP TABLE people")
        with pytest.raises(duckdb.Error, match="refused, or is not there"):
            con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()


def test_datafusion_takes_a_file(tmp_path: Path) -> None:
    """Its tables are not written to: batches go through DuckDB into a file, with their keys."""
    datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
    session = datafusion.SessionContext()
    session.register_record_batches("people", [pa.table({"id": range(3000)}).to_batches(max_chunksize=500)])
    with sdcduck.connect(secret=SECRET, records=session) as con:
        with pytest.raises(duckdb.Error, match=r"COPY \(SELECT \*, sdc_record_key"):
            con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        batches = pa.RecordBatchReader.from_batches(
            session.table("people").schema(), (batch.to_pyarrow() for batch in session.table("people").execute_stream())
        )
        con.register("batches", batches)
        file = tmp_path / "people.parquet"
        con.execute(f"COPY (SELECT *, sdc_record_key(id)::INTEGER AS record_key FROM batches) TO '{file}'")
        assert con.execute(f"SELECT count(*) FROM '{file}' WHERE record_key = sdc_record_key(id)").fetchall() == [
            (3000,)
        ]


def test_a_view_of_a_table_gets_no_keys() -> None:
    """They would be those of all records, in the table itself."""
    engine = _given("duckdb", pa.table({"id": [1, 2], "g": [1, 2]}))
    with sdcduck.connect(secret=SECRET, records=engine) as con:
        con.execute("CREATE VIEW few AS FROM people WHERE g = 1")
        with pytest.raises(duckdb.Error, match=r"'few' is no table; the records are those of 'people'"):
            con.execute("FROM sdc_add_record_key('few', unit := 'id')").fetchall()
        assert [row[0] for row in con.execute("DESCRIBE people").fetchall()] == ["id", "g"]
        assert con.execute("FROM sdc_add_record_key('main.people', unit := 'id')").fetchall() == [
            ("record_key", 2, 2, 0)
        ]
