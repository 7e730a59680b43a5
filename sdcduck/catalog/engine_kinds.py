"""Engines that may have the records: DuckDB, DataFusion and PostgreSQL, asked in the same few ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.quoting import identifier, literal

Keyed = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes of a batch of units, in its one column, these and their record keys."""

UNITS = 50_000
"""So many units are in this process at a time while their record keys are made."""

_KEYS = "_sdc_record_keys"
IS_HERE = "database_name = current_database() AND schema_name = 'main' AND NOT temporary"
_HAS_KEYS = f"SELECT count(*) FROM duckdb_tables() WHERE table_name = {literal(_KEYS)}"
_TABLES = (
    f"SELECT table_name FROM duckdb_tables() WHERE {IS_HERE} "
    f"UNION ALL SELECT view_name FROM duckdb_views() WHERE {IS_HERE} AND NOT internal ORDER BY ALL"
)
"""Views are how it reads files of Parquet, and tables of others."""
_FOLDS = "(coalesce({0}, 'a') = 'A' OR coalesce({0}, 'a') = '\u00e4' OR coalesce({0}, '\u00e4') = 'a\u0308')"
"""Whether texts of a column are equal that differ in case, accents, or how these are written: DuckDB's collations."""
CHANGED = "the table changed while its keys were made: nothing was written, do it again"


class OfDuckDB:
    """Another database of DuckDB."""

    name = "duckdb"

    def __init__(self, con: duckdb.DuckDBPyConnection, *, own: bool = False) -> None:
        self._con, self._own = con, own
        self._asked: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """Let go of a file that was opened for this."""
        if self._own:
            self._con.close()

    def tables(self) -> list[str]:
        """The names of its tables and views."""
        with self._con.cursor() as cursor:
            return [str(name) for (name,) in cursor.execute(_TABLES).fetchall()]

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them.

        Texts that are not compared by their bytes have no type: what is told apart here would be together there.
        """
        none = f"SELECT * FROM {identifier(table)} LIMIT 0"
        shown = self.rows(none).schema
        texts = [identifier(field.name) for field in shown if pa.types.is_string(field.type)]
        if not texts:
            return shown
        folds = ", ".join(f"{_FOLDS.format(f'CAST(_sdc_none.{name} AS VARCHAR)')} AS {name}" for name in texts)
        found = self.rows(f"SELECT {folds} FROM (SELECT 1) AS _sdc_one LEFT JOIN ({none}) AS _sdc_none ON true")
        left_out = {name for name, told in found.to_pylist()[0].items() if told}
        return pa.schema([
            pa.field(field.name, pa.null() if field.name in left_out else field.type) for field in shown
        ])  # fmt: skip

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""
        return self.together([sql])[0]

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, of the tables as they are at one moment."""
        with self._con.cursor() as cursor:
            self._asked = cursor
            try:
                cursor.begin()
                return [cursor.sql(sql).to_arrow_table() for sql in queries]
            finally:
                self._asked = None

    def stop(self) -> None:
        """Stop what is asked, from another thread."""
        cursor = self._asked
        if cursor is not None:
            with suppress(duckdb.Error):  # it has just ended
                cursor.interrupt()

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Add a column of record keys to a table: all of it or nothing.

        Raises:
            SDCError: rows were added while the keys were made.
        """
        with self._con.cursor() as reading, self._con.cursor() as cursor:
            units = reading.sql(f"SELECT DISTINCT {unit} AS unit FROM {identifier(table)}").to_arrow_reader(UNITS)
            cursor.begin()
            try:
                for place, batch in enumerate(parts(units)):
                    cursor.register("_sdc_batch", pa.Table.from_batches([keyed(batch)]))
                    made = f"INSERT INTO temp.{_KEYS}" if place else f"CREATE TEMP TABLE {_KEYS} AS"
                    cursor.execute(f"{made} FROM _sdc_batch")
                    cursor.unregister("_sdc_batch")
                cursor.execute(f"ALTER TABLE {identifier(table)} ADD COLUMN {name} {kind}")
                if cursor.execute(_HAS_KEYS).fetchall()[0][0]:
                    cursor.execute(
                        f"UPDATE {identifier(table)} AS t SET {name} = k.record_key FROM temp.{_KEYS} AS k "
                        f"WHERE t.{unit} = k.unit"
                    )
                left = cursor.execute(f"SELECT count(*) - count({name}) FROM {identifier(table)}").fetchall()[0][0]
                if left:
                    raise SDCError(CHANGED)
                cursor.commit()
            except BaseException:
                cursor.rollback()
                raise


class OfDataFusion:
    """A session of DataFusion."""

    name = "datafusion"

    def __init__(self, session: Any) -> None:
        self._session = session

    def close(self) -> None:
        """Nothing: it is the custodian's."""

    def tables(self) -> list[str]:
        """The names of its tables."""
        return [str(name) for name in self._session.catalog().schema().names()]

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them."""
        found: pa.Schema = self._session.table(identifier(table)).schema()
        return found

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""
        found: pa.Table = self._session.sql(sql).to_arrow_table()
        return found

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, one after the other: it knows no moments."""
        return [self.rows(sql) for sql in queries]

    def stop(self) -> None:
        """It cannot be stopped: what is asked ends by itself, and nobody waits for it."""

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Not in its tables.

        Raises:
            SDCError: always, with what does it.
        """
        raise SDCError(
            f"tables of DataFusion are not written to: write a file, COPY (SELECT *, sdc_record_key({unit})::{kind} AS "
            f"{name} FROM batches) TO '{table}.parquet', and register that (docs/engines.md)"
        )


class OfPostgres:
    """A server of PostgreSQL, by Arrow's driver: rows come as its binary COPY has them, a batch at a time.

    It has a connection of its own, made when it is needed, and once more when that is gone.

    Args:
        address: ``postgresql://user@host:port/database``.
        schema: where the tables are.
    """

    name = "postgres"

    def __init__(self, address: str, schema: str = "public") -> None:
        self._address, self._schema = address, schema
        self._con: Any = None
        self._asked: Any = None
        self._alone = threading.Lock()
        with self._cursor() as cursor:
            if _rows(cursor, "SELECT current_setting('server_encoding') AS e").column(0)[0].as_py() != "UTF8":
                raise SDCError("argument 'records': a database of PostgreSQL whose texts are not in UTF-8 is not read")

    def close(self) -> None:
        """End the connection, until somebody asks again."""
        with self._alone:
            con, self._con = self._con, None
        if con is not None:
            with suppress(Exception):  # it is gone
                con.close()

    def _new(self) -> Any:
        try:
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError:
            raise SDCError(
                "records in PostgreSQL need the package 'adbc-driver-postgresql': pip install 'sdcduck[postgres]'"
            ) from None
        from adbc_driver_manager import Error

        try:
            con = dbapi.connect(self._address, autocommit=True)
        except Error:
            raise SDCError(
                "argument 'records': PostgreSQL does not answer at this address, or lets nobody in"
            ) from None
        with con.cursor() as cursor:
            cursor.execute(f"SET search_path = {identifier(self._schema)}")
        return con

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor of the connection, which is made anew where the last one failed."""
        with self._alone:
            if self._con is None:
                self._con = self._new()
            try:
                with self._con.cursor() as cursor:
                    yield cursor
            except BaseException:
                # Whether the connection lives, and in which state, is not worth finding out.
                con, self._con = self._con, None
                with suppress(Exception):
                    con.close()
                raise

    def tables(self) -> list[str]:
        """The names of its tables."""
        listed = (
            "SELECT CAST(c.relname AS text) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE n.nspname = {literal(self._schema)} AND c.relkind IN ('r', 'p', 'm', 'f') ORDER BY 1"
        )
        return [str(name) for name in self.rows(listed).column(0).to_pylist()]

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them.

        Decimals have their digits, and texts that are not compared by their bytes no type.
        """
        shown = self.rows(f"SELECT * FROM {identifier(table)} LIMIT 0", typed=True).schema
        folding = (
            "SELECT CAST(a.attname AS text) AS name FROM pg_attribute a JOIN pg_collation l ON l.oid = a.attcollation "
            f"WHERE a.attrelid = CAST({literal(identifier(table))} AS regclass) AND NOT l.collisdeterministic"
        )
        left_out = set(self.rows(folding).column(0).to_pylist())
        return pa.schema([
            pa.field(field.name, pa.null() if field.name in left_out else _kind(field)) for field in shown
        ])  # fmt: skip

    def rows(self, sql: str, *, typed: bool = False) -> pa.Table:
        """The rows of a query; numbers of any length are texts, unless their fields are wanted as they come."""
        with self._cursor() as cursor:
            self._asked = cursor
            try:
                return _rows(cursor, sql, typed=typed)
            finally:
                self._asked = None

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, of the tables as they are at one moment."""
        if len(queries) == 1:
            return [self.rows(queries[0])]
        with self._cursor() as cursor:
            self._asked = cursor
            try:
                cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                found = [_rows(cursor, sql) for sql in queries]
                cursor.execute("COMMIT")
                return found
            finally:
                self._asked = None

    def stop(self) -> None:
        """Stop what is asked, from another thread."""
        cursor = self._asked
        if cursor is not None:
            with suppress(Exception):  # it has just ended
                cursor.adbc_cancel()

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Add a column of record keys to a table: all of it or nothing.

        Raises:
            SDCError: rows were added while the keys were made.
        """
        listed = f"SELECT DISTINCT {unit} AS unit FROM {identifier(table)}"
        shown = self.rows(f"{listed} LIMIT 0", typed=True).schema
        made = keyed(pa.RecordBatch.from_pylist([], shown)).schema
        writing = self._new()
        try:
            with writing.cursor() as cursor:
                cursor.execute("BEGIN")
                reading = self._new()
                try:
                    with reading.cursor() as units:
                        units.execute(listed)
                        batches = map(keyed, parts(units.fetch_record_batch()))
                        reader = pa.RecordBatchReader.from_batches(made, batches)
                        cursor.adbc_ingest(_KEYS, reader, mode="create", temporary=True)
                finally:
                    reading.close()
                cursor.execute(f"ALTER TABLE {identifier(table)} ADD COLUMN {name} {kind}")
                cursor.execute(
                    f"UPDATE {identifier(table)} AS t SET {name} = k.record_key FROM pg_temp.{_KEYS} AS k "
                    f"WHERE t.{unit} = k.unit"
                )
                left = _rows(cursor, f"SELECT count(*) - count({name}) AS n FROM {identifier(table)}")
                if left.column(0)[0].as_py():
                    raise SDCError(CHANGED)
                cursor.execute("COMMIT")
        finally:
            writing.close()


def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of no more than `UNITS` rows."""
    return (batch.slice(start, UNITS) for batch in batches for start in range(0, batch.num_rows, UNITS))


def _rows(cursor: Any, sql: str, *, typed: bool = False) -> pa.Table:
    cursor.execute(sql)
    found: pa.Table = cursor.fetch_arrow_table()
    if typed:
        return found
    columns = [
        pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        if isinstance(column.type, pa.BaseExtensionType)
        else column
        for column in found.columns
    ]
    return pa.table(dict(zip(found.column_names, columns, strict=True)))


def _kind(field: pa.Field) -> pa.DataType:
    """The type of a column of PostgreSQL; those that nobody reads here have none."""
    said = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    kind, digits = said.get("POSTGRESQL:type"), int(said.get("POSTGRESQL:typmod", -1)) - _HEADER
    if kind == "numeric":
        precision, scale = digits >> 16, digits & 0x7FF
        return pa.decimal128(precision, scale) if 0 < precision <= _DIGITS and scale <= precision else pa.null()
    return field.type if kind in _READ else pa.null()


_HEADER = 4  # bytes that PostgreSQL counts into the size of a type
_DIGITS = 38
_READ = frozenset(["int2", "int4", "int8", "bool", "float8", "date", "text", "varchar"])
