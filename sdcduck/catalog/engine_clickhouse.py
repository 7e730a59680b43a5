"""ClickHouse inside this process (chDB), as an engine that may have the records."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from sdcduck.catalog.engine_kinds import CHANGED, Keyed, parts
from sdcduck.errors import SDCError
from sdcduck.quoting import identifier, literal


class OfClickHouse:
    """chDB, by a session of our own; tables are those of the database that is the current one of the session given.

    Every statement brings the settings that its meaning depends on, whatever those of the session are.
    """

    name = "clickhouse"

    def __init__(self, session: Any) -> None:
        self._given = session  # with the last session of a process its tables go
        self._kind, self._path = type(session), session._path
        self._database = str(session.query("SELECT currentDatabase()", "ArrowTable").column(0)[0].as_py())
        self._own: Any = None
        self._asked: str | None = None

    def session(self) -> Any:
        """The session of our own."""
        if self._own is None:
            made = self._kind(self._path)
            made.query(f"USE {identifier(self._database)}")
            self._own = made
        return self._own

    def close(self) -> None:
        """End that session, until somebody asks again."""
        own, self._own = self._own, None
        if own is not None:
            with suppress(Exception):  # it is gone
                own.close()

    def tables(self) -> list[str]:
        """The names of its tables."""
        listed = self.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND NOT is_temporary AND "
            "NOT endsWith(engine, 'View') AND NOT startsWith(name, '_sdc_') ORDER BY name"
        )
        return [str(name) for name in listed.column(0).to_pylist() if _is_name(name)]

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them; those that are worked out from others have no type."""
        return pa.schema([(name, _arrow(kind)) for name, kind in self._kinds(table).items()])

    def _kinds(self, table: str) -> dict[str, str]:
        """The types of its columns, without whether there may be NULL, and how they are stored.

        Raises:
            SDCError: there is no such table.
        """
        if not _is_name(table):
            raise SDCError("the engine has no such table")
        found = self.rows(
            "SELECT name, if(default_kind IN ('', 'DEFAULT'), type, '') AS type FROM system.columns "
            f"WHERE database = currentDatabase() AND table = {literal(table)} ORDER BY position"
        )
        if not found.num_rows:
            raise SDCError("the engine has no such table")
        return {str(row["name"]): _plain(row["type"]) for row in found.to_pylist() if _is_name(row["name"])}

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query; whole numbers without a sign come as wider ones with one.

        Raises:
            pyarrow.ArrowInvalid: a text that is not in UTF-8.
        """
        mark = secrets.token_hex(8)
        self._asked = mark
        try:
            found = self.session().query(f"{sql} SETTINGS {_SETTINGS}, log_comment = '{mark}'", "ArrowTable")
        except BaseException:
            # What is asked next in the same session gets what is left of the answer that was stopped before its own.
            self.close()
            raise
        finally:
            self._asked = None
        found.validate(full=True)
        fields = [pa.field(field.name, _SIGNED.get(field.type, field.type)) for field in found.schema]
        signed: pa.Table = found.cast(pa.schema(fields))
        return signed

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, one after the other: it knows no moments."""
        return [self.rows(sql) for sql in queries]

    def stop(self) -> None:
        """Stop what is asked, from another thread: by another session, for this one is waiting."""
        mark = self._asked
        if mark is not None:
            with suppress(Exception):  # it has just ended
                other = self._kind(self._path)
                try:
                    other.query(f"KILL QUERY WHERE Settings['log_comment'] = '{mark}' ASYNC")
                finally:
                    other.close()

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Add a column of record keys to a table: all of it, or the column is taken away again.

        Raises:
            SDCError: rows were added while the keys were made.
        """
        made = f"_sdc_record_keys_{secrets.token_hex(8)}"
        plain = {identifier(column): known for column, known in self._kinds(table).items()}[unit]
        filled = f"joinGetOrNull({literal(f'{self._database}.{made}')}, 'record_key', CAST({unit} AS {plain}))"
        session = self.session()
        run = session.query
        run(f"CREATE TABLE {made} (unit {plain}, record_key {kind}) ENGINE = Join(ANY, LEFT, unit)")
        try:
            units = session.send_query(f"SELECT DISTINCT {unit} AS unit FROM {identifier(table)}", "Arrow")
            for each in parts(units.record_batch()):
                batch = pa.Table.from_batches([keyed(each)])
                batch.validate(full=True)  # it is read by its name below
                run(f"INSERT INTO {made} SELECT unit, record_key FROM Python(batch)")
            run(f"ALTER TABLE {identifier(table)} ADD COLUMN {name} Nullable({kind})")
            try:
                run(f"ALTER TABLE {identifier(table)} UPDATE {name} = {filled} WHERE 1 SETTINGS mutations_sync = 2")
                left = self.rows(f"SELECT count(*) - count({name}) AS n FROM {identifier(table)}").column(0)[0].as_py()
                if left:
                    raise SDCError(CHANGED)
            except BaseException:
                with suppress(Exception):
                    run(f"KILL MUTATION WHERE position(command, '{made}') > 0 SYNC")
                run(f"ALTER TABLE {identifier(table)} DROP COLUMN {name}")
                raise
        finally:
            run(f"DROP TABLE {made}")


def _is_name(name: str) -> bool:
    """Whether a name is written here as in DuckDB: within quotes, a backslash has a meaning of its own."""
    return "\\" not in name


def _plain(kind: str) -> str:
    """A type, without whether there may be NULL, and how it is stored; of others than these nothing.

    >>> _plain("LowCardinality(Nullable(String))"), _plain("Decimal(12, 2)"), _plain("DateTime64(3)")
    ('String', 'Decimal(12, 2)', '')
    """
    found = _WRAPPED.fullmatch(kind)
    return "" if found is None else found[1]


def _arrow(kind: str) -> pa.DataType:
    digits = _DIGITS.fullmatch(kind)
    if digits is not None:
        return pa.decimal128(int(digits[1]), int(digits[2])) if int(digits[1]) <= _MOST_DIGITS else pa.null()
    return _TYPES.get(kind, pa.null())


_WRAPPED = re.compile(r"(?:LowCardinality\()?(?:Nullable\()?(\w+|Decimal\(\d+, \d+\))\)*")
_DIGITS = re.compile(r"Decimal\((\d+), (\d+)\)")
_MOST_DIGITS = 38
_SIGNED = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64(),
}  # fmt: skip
_TYPES = {
    "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(), "UInt8": pa.int16(),
    "UInt16": pa.int32(), "UInt32": pa.int64(), "Float64": pa.float64(), "Bool": pa.bool_(), "String": pa.string(),
    "Date": pa.date32(), "Date32": pa.date32(),
}  # fmt: skip
_SETTINGS = ", ".join([
    "prefer_column_name_to_alias = 1",  # a column of the table may be called as one of the answer
    "cast_keep_nullable = 1",
    "join_use_nulls = 1",
    "group_by_use_nulls = 1",
    "count_distinct_implementation = 'uniqExact'",
    "decimal_check_overflow = 1",
    *(f"{what}_overflow_mode = 'throw'" for what in ("group_by", "read", "result", "timeout", "distinct", "set")),
    *(f"{what}_overflow_mode_leaf = 'throw'" for what in ("read", "timeout")),
    "limit = 0",
    "offset = 0",
    "additional_result_filter = ''",
    "additional_table_filters = {}",
    "use_query_cache = 0",
    "optimize_trivial_approximate_count_query = 0",
    "skip_unavailable_shards = 0",
    "apply_deleted_mask = 1",
    "output_format_arrow_string_as_string = 1",
    "output_format_arrow_low_cardinality_as_dictionary = 0",
])  # fmt: skip
"""Some would answer of fewer records than there are, or with what was there before."""
