"""Spark, as an engine that may have the records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from sdcduck.catalog.engine_kinds import Keyed
from sdcduck.errors import SDCError
from sdcduck.quoting import identifier


class OfSpark:
    """A session of Spark; tables are those of its current database, and its temporary views.

    Raises:
        SDCError: it is not in ANSI mode, in which what is too large is an error, and not another number.
    """

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        if str(session.conf.get("spark.sql.ansi.enabled")).lower() != "true":
            raise SDCError(
                "argument 'records': a session of Spark without ANSI mode is not asked, for its sums and casts become "
                "other numbers where they are too large: set spark.sql.ansi.enabled to true"
            )

    def close(self) -> None:
        """Nothing: it is the custodian's."""

    def tables(self) -> list[str]:
        """The names of its tables and temporary views."""
        return sorted(str(table.name) for table in self._session.catalog.listTables() if _is_name(table.name))

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, as Arrow has them.

        Of texts those that are compared by their bytes have a type.
        """
        shown = self._session.table(_spelled(identifier(table))).schema
        return pa.schema([
            (field.name, _kind(field.dataType.simpleString())) for field in shown.fields if _is_name(field.name)
        ])  # fmt: skip

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""
        context = getattr(self._session, "sparkContext", None)
        if context is not None:
            context.setJobGroup(_GROUP, "a question to sdcduck", interruptOnCancel=True)
        found: pa.Table = self._session.sql(_spelled(sql)).toArrow()
        return found

    def together(self, queries: Sequence[str]) -> list[pa.Table]:
        """The rows of queries, one after the other: it knows no moments."""
        return [self.rows(sql) for sql in queries]

    def stop(self) -> None:
        """Stop what is asked, from another thread."""
        with suppress(Exception):  # it has just ended
            self._session.sparkContext.cancelJobGroup(_GROUP)

    def add_keys(self, table: str, unit: str, name: str, kind: str, keyed: Keyed) -> None:
        """Not in its tables.

        Raises:
            SDCError: always, with what does it.
        """
        raise SDCError(
            f"tables of Spark are not written to: write files, COPY (SELECT *, sdc_record_key({unit})::{kind} AS "
            f"{name} FROM batches) TO '{table}.parquet', and register these (docs/engines.md)"
        )


_GROUP = "sdcduck"
_QUOTED = re.compile(r'"([^"]*)"')


def _is_name(name: str) -> bool:
    """Whether a name can be written here in either kind of quotes."""
    return not set(name) & set("\"`'")


def _spelled(sql: str) -> str:
    """SQL with names as Spark quotes them: no text that it is asked has any, nor has a name (`_is_name`).

    >>> _spelled('SELECT CAST("a b" AS DOUBLE PRECISION) FROM "t"')
    'SELECT CAST(`a b` AS DOUBLE) FROM `t`'
    """
    return _QUOTED.sub(r"`\1`", sql).replace(" AS DOUBLE PRECISION)", " AS DOUBLE)")


def _kind(said: str) -> pa.DataType:
    digits = _DIGITS.fullmatch(said)
    return pa.decimal128(int(digits[1]), int(digits[2])) if digits is not None else _TYPES.get(said, pa.null())


_DIGITS = re.compile(r"decimal\((\d+),(\d+)\)")
_TYPES = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(), "date": pa.date32(), "string": pa.string(),
}  # fmt: skip
