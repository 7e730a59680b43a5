"""Cell-key tables as pure SQL: on DuckDB, SQLite and PostgreSQL the numbers of `sdc_count` and `sdc_sum`, bit by bit."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

import sdcduck
from sdcduck.ibis import cell_key_count, cell_key_sum, cell_key_table

METRICS = {
    "n": cell_key_count(), "y": cell_key_sum("y"), "z": cell_key_sum("z"), "ties": cell_key_sum("ties"),
    "skew": cell_key_sum("skew", p_large=0.3),
}  # fmt: skip
IN_SQL = """sdc_count(record_key) AS n, sdc_sum(y, record_key) AS y, sdc_sum(z, record_key) AS z,
    sdc_sum(ties, record_key) AS ties, sdc_sum(skew, record_key, p_large := 0.3) AS skew"""
CELLS = ([], ["a"], ["a", "b"], ["b"])


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Cells of 1 to 400 records, with negative, missing and skewed values, and values between two points of the grid."""
    own = sdcduck.connect()
    own.execute("""
        CREATE TABLE people AS SELECT
            sqrt(range)::INTEGER AS a, range % 7 AS b, (range * 48271 % 2147483647 % 100000000)::INTEGER AS record_key,
            (range * 7919 % 1000 - 200)::INTEGER AS y,
            CASE WHEN range % 11 > 0 THEN (range * 104729 % 1000003) / 7.0 - 30000 END AS z,
            (range % 17 - 8.5) / 10000 AS ties, CASE WHEN range % 3 = 0 THEN exp(range % 23) ELSE 0 END AS skew
        FROM range(20000);
        INSERT INTO people VALUES (1000, 0, 99999999, 0, NULL, 0, 0), (1001, 0, 0, -1, -0.5, 0, 1e12)""")
    yield own
    own.close()


@pytest.fixture
def plain() -> Iterator[Any]:
    """An ibis connection without sdcduck."""
    own = duckdb.connect()
    yield sdcduck.ibis.from_connection(own)
    own.close()


def bits(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(struct.pack("d", v) if isinstance(v, float) else v for v in row) for row in rows), key=repr)


def expected(con: duckdb.DuckDBPyConnection, by: list[str]) -> list[tuple[Any, ...]]:
    return con.execute(f"SELECT {', '.join([*by, IN_SQL])} FROM people {'GROUP BY ALL' if by else ''}").fetchall()


def answered(table: Any, by: list[str]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in cell_key_table(table, by, METRICS).to_pyarrow().to_pylist()]


@pytest.mark.parametrize("by", CELLS, ids=repr)
def test_in_duckdb_without_any_function_of_ours(con: duckdb.DuckDBPyConnection, plain: Any, by: list[str]) -> None:
    plain.con.register("records", con.sql("SELECT * FROM people").to_arrow_table())
    plain.con.execute("CREATE TABLE people AS FROM records")
    assert bits(answered(plain.table("people"), by)) == bits(expected(con, by))


@pytest.mark.parametrize("by", CELLS, ids=repr)
def test_in_sqlite(con: duckdb.DuckDBPyConnection, tmp_path: Path, by: list[str]) -> None:
    file = tmp_path / "people.sqlite"
    raw = sqlite3.connect(file)
    raw.execute(
        "CREATE TABLE people (a INTEGER, b INTEGER, record_key INTEGER, y INTEGER, z REAL, ties REAL, skew REAL)"
    )
    raw.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", con.execute("FROM people").fetchall())
    raw.commit()
    raw.close()
    other = ibis.sqlite.connect(file)
    assert bits(answered(other.table("people"), by)) == bits(expected(con, by))
    other.disconnect()


@pytest.fixture(scope="module")
def postgres(con: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL of our own with the records, where it is installed; it must not run as root."""
    psycopg = pytest.importorskip("psycopg")
    initdb = shutil.which("initdb") or next(iter(sorted(glob("/usr/lib/postgresql/*/bin/initdb"))), None)
    user = "postgres" if os.geteuid() == 0 else None
    if initdb is None or (user is not None and user not in {entry.pw_name for entry in pwd.getpwall()}):
        pytest.skip("there is no PostgreSQL")
    folder = tempfile.mkdtemp(prefix="sdcduck-")  # the path of a socket must be short
    if user is not None:
        shutil.chown(folder, user)

    def run(program: str, *arguments: str) -> None:
        command = [str(Path(initdb).resolve().with_name(program)), "-D", f"{folder}/data", *arguments]
        subprocess.run(command, user=user, cwd=folder, check=True, capture_output=True, timeout=120)

    try:
        run("initdb", "-A", "trust", "-U", "ann")
        run("pg_ctl", "-o", f"-k {folder} -c listen_addresses=''", "-w", "-l", f"{folder}/log", "start")
        try:
            with psycopg.connect(host=folder, user="ann", dbname="postgres") as raw, raw.cursor() as cursor:
                cursor.execute(
                    "CREATE TABLE people (a INTEGER, b INTEGER, record_key INTEGER, y INTEGER, z FLOAT8, ties FLOAT8, skew FLOAT8)"
                )
                with cursor.copy("COPY people FROM STDIN") as copy:
                    for row in con.execute("FROM people").fetchall():
                        copy.write_row(row)
            other = ibis.postgres.connect(host=folder, user="ann", database="postgres")
            yield other
            other.disconnect()
        finally:
            run("pg_ctl", "-m", "fast", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("by", CELLS, ids=repr)
def test_in_postgresql(con: duckdb.DuckDBPyConnection, postgres: Any, by: list[str]) -> None:
    assert bits(answered(postgres.table("people"), by)) == bits(expected(con, by))


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb", "snowflake", "trino"])
def test_as_text_it_needs_nothing_but_the_records(dialect: str) -> None:
    people = ibis.table({"region": "string", "record_key": "int32", "income": "float64"}, name="people")
    table = cell_key_table(people, "region", {"n": cell_key_count(), "income": cell_key_sum("income")})
    text = str(ibis.to_sql(table, dialect=dialect)).lower()
    assert "sdc_count" not in text
    assert text.count("from ") == 2  # the records, and the cells made of them
    assert table.schema() == ibis.schema({"region": "string", "n": "int64", "income": "float64"})


def test_stored_ptables_of_several_layouts(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 8, V := 3, js := 2))')").fetchall()
    con.execute("""FROM sdc_store_ptable('turns',
        '(SELECT pcv, ckey, (pcv + ckey) % 2 AS pvalue FROM range(1, 751) a(pcv), range(2) b(ckey))')""").fetchall()
    for name in ("mine", "turns"):
        own = sdcduck.ibis.from_connection(con)
        table = cell_key_table(own.table("people"), ["a"], {"n": cell_key_count(ptable=name)}, ptables=con)
        in_sql = con.execute(f"SELECT a, sdc_count(record_key, ptable := '{name}') FROM people GROUP BY a").fetchall()
        assert sorted(tuple(row.values()) for row in table.to_pyarrow().to_pylist()) == sorted(in_sql)


@pytest.mark.parametrize(("key", "y"), [("NULL", "1"), ("-5", "1"), ("5", "'nan'"), ("5", "1e15")])
def test_what_sdc_sum_refuses_is_null(plain: Any, key: str, y: str) -> None:
    plain.con.execute(
        "CREATE TABLE people AS SELECT 2 AS a, 7 AS record_key, 3::DOUBLE AS y "
        f"UNION ALL SELECT 1, {key}::INTEGER, {y}::DOUBLE"
    )
    metrics = {"n": cell_key_count(), "y": cell_key_sum("y")}
    rows = {row["a"]: row for row in cell_key_table(plain.table("people"), "a", metrics).to_pyarrow().to_pylist()}
    assert rows[1]["y"] is None
    assert rows[2]["y"] is not None
    assert (rows[1]["n"] is None) is (key != "5")


def test_no_records(plain: Any) -> None:
    plain.con.execute("CREATE TABLE people (a INTEGER, record_key INTEGER, y DOUBLE)")
    metrics = {"n": cell_key_count(), "y": cell_key_sum("y")}
    assert cell_key_table(plain.table("people"), "a", metrics).count().execute() == 0
    assert cell_key_table(plain.table("people"), [], metrics).to_pyarrow().to_pylist() == [{"n": 0, "y": None}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "regoin"}, "unknown column 'regoin'; did you mean 'region'"),
        ({"metrics": {"s": cell_key_sum("incme")}}, "did you mean 'income'"),
        ({"metrics": {"s": cell_key_sum("region")}}, "cannot be added up"),
        ({"metrics": {}}, "at least one number"),
        ({"metrics": {"n": cell_key_count(ptable="defualt")}}, "did you mean 'default'"),
        ({"metrics": {"n": cell_key_count(ptable="default_magnitude")}}, "is for magnitudes, not for counts"),
        ({"record_key": "income"}, "record keys must be integers"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    people = ibis.table({"region": "string", "record_key": "int32", "income": "float64"}, name="people")
    with pytest.raises(sdcduck.SDCError, match=message):
        cell_key_table(people, **{"by": "region", "metrics": {"n": cell_key_count()}, **arguments})
    with pytest.raises(sdcduck.SDCError, match="p_large"):
        cell_key_sum("income", p_large=0)


def test_a_ptable_too_large_for_sql_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""FROM sdc_store_ptable('large',
        '(SELECT pcv, ckey, (pcv + ckey) % 2 AS pvalue FROM range(1, 751) a(pcv), range(256) b(ckey))')""").fetchall()
    people = ibis.table({"record_key": "int32"}, name="people")
    with pytest.raises(sdcduck.SDCError, match="too many to be written into SQL"):
        cell_key_table(people, [], {"n": cell_key_count(ptable="large")}, ptables=con)
