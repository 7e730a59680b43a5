"""Engines beside DuckDB that hold records, and the empty tables that stand for theirs in the custodian's file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import duckdb
import pyarrow as pa

from sdcduck.catalog.engine_clickhouse import OfClickHouse
from sdcduck.catalog.engine_kinds import IS_HERE, Keyed, OfDataFusion, OfDuckDB, OfPostgres
from sdcduck.catalog.engine_spark import OfSpark
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded, identifier, literal

MARK = "sdcduck: the records of this table are on another engine"
"""The comment of a table that stands for one of an engine."""


class Engine(Protocol):
    """What is asked of an engine."""

    name: str

    def tables(self) -> list[str]:
        """The names of its tables."""

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them."""

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, of the tables as they are at one moment, where the engine has such."""

    def stop(self) -> None:
        """Stop what is asked, from another thread, where the engine can."""

    def close(self) -> None:
        """Give back what was opened for this, and not by the custodian."""

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Add a column of record keys to a table: `unit` and `name` are quoted, `kind` is its type."""


def engine_of(records: object) -> Engine:
    """What is asked in place of what the custodian has: a backend of ibis, or what it is made of.

    Raises:
        SDCError: it is neither, or of an engine of which nobody knows that it answers as DuckDB does.
    """
    if isinstance(records, OfDuckDB | OfDataFusion | OfPostgres | OfClickHouse | OfSpark):
        return records
    if isinstance(records, str) and records.startswith(("postgresql://", "postgres://")):
        return OfPostgres(records)
    if isinstance(records, str) and records.startswith("clickhouse://"):
        return OfClickHouse(_clickhouse(records.removeprefix("clickhouse://")))
    if isinstance(records, str) and records.startswith(("spark://", "spark-local:")):
        return OfSpark(_spark(records))
    if isinstance(records, str | Path) and Path(records).is_file():
        try:
            return OfDuckDB(duckdb.connect(str(records), read_only=True), own=True)
        except duckdb.Error:
            raise SDCError("argument 'records' names a file that is no database of DuckDB, or is written to") from None
    module = type(records).__module__.partition(".")[0]
    inner = getattr(records, "con", None) if module == "ibis" else records
    if isinstance(inner, duckdb.DuckDBPyConnection):
        return OfDuckDB(inner)
    if type(inner).__module__.partition(".")[0] == "datafusion" and hasattr(inner, "catalog"):
        return OfDataFusion(inner)
    if type(inner).__module__.partition(".")[0] == "psycopg" and hasattr(inner, "info"):
        return OfPostgres(_address(inner.info))
    if module == "chdb" and hasattr(inner, "send_query") and hasattr(inner, "_path"):
        return OfClickHouse(inner)
    if type(records).__module__.startswith("pyspark.sql.") and hasattr(records, "catalog"):
        return OfSpark(records)
    name = f" of {getattr(records, 'name', '')!r}" if module == "ibis" else ""
    raise SDCError(
        f"argument 'records'{name} must be an engine of which it is tested that it gives the same numbers: a backend "
        "of ibis for DuckDB, DataFusion or PostgreSQL, a connection or a file of DuckDB, a "
        "datafusion.SessionContext(), a chdb.session.Session(), a SparkSession, "
        "'postgresql://user@host:port/database', 'clickhouse:///folder?database=name', or 'spark://host:port?table=files'"
    )


def _clickhouse(place: str) -> Any:
    """A session of chDB by its folder and the database in it: `/folder?database=name`.

    Raises:
        SDCError: chDB or the folder is not there, or the folder has no such database.
    """
    folder, _, asked = place.partition("?")
    database = parse_qs(asked).get("database", ["default"])[0]
    if not Path(folder).is_dir():
        raise SDCError("argument 'records': there is no such folder of chDB: clickhouse:///folder?database=name")
    try:
        sessions: Any = import_module("chdb.session")
    except ModuleNotFoundError:
        raise SDCError("records in ClickHouse need the package 'chdb': pip install 'sdcduck[clickhouse]'") from None
    try:
        session = sessions.Session(folder)
    except RuntimeError:
        raise SDCError("argument 'records': this process reads another folder of chDB, and can read one") from None
    try:
        session.query(f"USE {identifier(database)}")
    except Exception:  # it has errors of its own
        session.close()
        raise SDCError("argument 'records': the folder of chDB has no such database") from None
    return session


def _spark(address: str) -> Any:
    """A session of Spark: of a cluster, or of this process (`spark-local:`); its database, or files, are its settings'.

    Raises:
        SDCError: Spark or Java is not there, or nobody answers.
    """
    master, _, asked = address.partition("?")
    try:
        sql: Any = import_module("pyspark.sql")
    except ModuleNotFoundError:
        raise SDCError("records in Spark need the package 'pyspark': pip install 'sdcduck[spark]'") from None
    place = "local[*]" if master.startswith("spark-local:") else master
    try:
        made = sql.SparkSession.builder.master(place).appName("sdcduck")
        session = made.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        for name, files in parse_qsl(asked):
            session.read.parquet(files).createOrReplaceTempView(name)
    except Exception:  # it has errors of its own
        raise SDCError(
            "argument 'records': Spark does not answer, needs Java, or cannot read a table: "
            "spark://host:port?people=/folder/people, or spark-local:?people=/folder/people"
        ) from None
    return session


def _address(info: Any) -> str:
    """Where a connection of psycopg goes, for a connection of our own."""
    asked = {**info.get_parameters(), **({"password": info.password} if info.password else {})}
    return "postgresql:///?" + urlencode(asked, quote_via=quote)


def duckdb_columns(schema: pa.Schema) -> dict[str, str]:
    """The columns that records may have here, with their DuckDB types; those of other types are left out.

    >>> duckdb_columns(pa.schema({"a": pa.int64(), "b": pa.decimal128(12, 2), "c": pa.list_(pa.int8())}))
    {'a': 'BIGINT', 'b': 'DECIMAL(12,2)'}
    """
    return {field.name: kind for field in schema if (kind := _duckdb_type(field.type)) is not None}


def _duckdb_type(kind: pa.DataType) -> str | None:
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= _DIGITS:
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _TYPES.get(str(kind))


_DIGITS = 18  # of more, DuckDB and others make other floating-point numbers
_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "double": "DOUBLE", "date32[day]": "DATE", "string": "VARCHAR", "large_string": "VARCHAR",
    "string_view": "VARCHAR",
}  # fmt: skip


def stand_in(con: duckdb.DuckDBPyConnection, records: object, tables: Sequence[str] | None = None) -> list[str]:
    """Make an empty table for each of an engine's, so that `sdc_protect` finds it by its name.

    Args:
        con: a connection to the custodian's file.
        records: the engine (`engine_of`).
        tables: those of its tables that are meant; None: all that have no table or view of their name here yet.

    Returns:
        The names of the tables that stand for others now.

    Raises:
        SDCError: it has no such table, or there is another one of that name here.
    """
    engine = engine_of(records)
    there, marked = engine.tables(), stand_ins(con)
    here = {row[0].lower() for row in con.execute(_HERE).fetchall()}
    for table in tables or ():
        if table not in there:
            raise unknown("table", table, there)
        if table.lower() in here and table not in marked:
            raise SDCError(f"there is another table {table!r} in this database, with records of its own")
    made = []
    for table in there if tables is None else tables:
        if table.lower() in here or not (columns := duckdb_columns(engine.schema(table))):
            continue
        listed = ", ".join(f"{identifier(name)} {kind}" for name, kind in columns.items())
        con.execute(f"CREATE TABLE {identifier(table)} ({listed})")
        con.execute(f"COMMENT ON TABLE {identifier(table)} IS {literal(MARK)}")
        made.append(table)
    return sorted({*made, *marked} & set(there))


def stand_ins(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The tables of a database that stand for others."""
    return [name for (name,) in con.execute(_MARKED).fetchall()]


def marked_tables(con: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Those of them that a query reads, by views and macros, too.

    Raises:
        duckdb.Error: DuckDB does not tell what it reads.
    """
    marked = stand_ins(con)
    if not marked:
        return []
    read = _planned(con, query)
    [(database,)] = con.execute("SELECT current_database()").fetchall()
    if read is not None:
        return [name for name in marked if (folded(database), "main", folded(name)) in read]

    def named(sql: str) -> set[str]:
        return {folded(_ALIAS.sub("", name)) for name in con.get_table_names(sql, qualified=True)}

    asked, before = named(query), ("", "main.", f"{identifier(database)}.", f"{identifier(database)}.main.")
    return [name for name in marked if any(asked & named(f"FROM {each}{identifier(name)}") for each in before)]


def _planned(con: duckdb.DuckDBPyConnection, query: str) -> set[tuple[str, str, str]] | None:
    """Database, schema and name of the tables in DuckDB's plan of a query; None: it has no text of that plan."""
    read = set[tuple[str, str, str]]()

    def noted(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("table") and "catalog" in item and "schema" in item:
            read.add((folded(str(item["catalog"])), folded(str(item["schema"])), folded(str(item["table"]))))
        return item

    [(plan,)] = con.execute("SELECT json_serialize_plan(?)", [query]).fetchall()
    try:
        return None if json.loads(plan, object_hook=noted).get("error") else read
    except ValueError:
        return None


_ALIAS = re.compile(r' AS (?:\w+|"(?:[^"]|"")*")$')
"""DuckDB 2 has what a table is called in the query behind its name."""
_MARKED = f"SELECT table_name FROM duckdb_tables() WHERE {IS_HERE} AND comment = {literal(MARK)} ORDER BY ALL"
_HERE = (
    f"SELECT table_name FROM duckdb_tables() WHERE {IS_HERE} "
    "UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
)
