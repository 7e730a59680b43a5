"""Record keys of a table on another engine, made here in batches: the secret never leaves this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from sdcduck.catalog.engines import Engine, duckdb_columns, marked_tables
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier
from sdcduck.udfs.source import Source, stands_for

_UNITS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "VARCHAR")


@dataclass(frozen=True)
class OnEngine:
    """A table of an engine, and the empty one that stands for it here.

    Attributes:
        session: of the database that the empty one is in.
        engine: that has the records.
        table: its name on the engine.
    """

    session: Session
    engine: Engine
    table: str

    def add(self, unit: str, new: str, kind: str, digits: int) -> tuple[int, int, int]:
        """Add a column of record keys, there and to the empty table: rows, units and keys that differ.

        Args:
            unit: the column of the units, quoted.
            new: the name of the new column, quoted.
            kind: its type.

        Raises:
            SDCError: the engine has another table by now, records without a unit, or fails; it says so without data.
        """
        table, cursor = identifier(self.table), self.session.cursor()
        cursor.begin()
        try:
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN {new} {kind}")
            there = {identifier(name): known for name, known in duckdb_columns(self.engine.schema(self.table)).items()}
            if there.get(unit) not in _UNITS:
                raise SDCError(
                    f"column {unit} of table {self.table!r} on the engine is neither a whole number nor a text"
                )
            if self._numbers(f"count(*) - count({unit}) AS n FROM {table}")[0]:
                raise SDCError(f"column {unit} of table {self.table!r} is NULL: a record without a unit has no key")
            self.engine.add_keys(self.table, unit, new, kind, lambda batch: self._keyed(batch, kind, digits))
            counted = f"count(*) AS n, count(DISTINCT {unit}) AS u, count(DISTINCT {new}) AS k FROM {table}"
            rows, units, keys = self._numbers(counted)
            cursor.commit()
        except BaseException as problem:
            cursor.rollback()
            if isinstance(problem, SDCError) or not isinstance(problem, Exception):
                raise
            _failed(problem)  # engines have errors of their own, which may have data
        return rows, units, keys

    def _numbers(self, selected: str) -> tuple[int, ...]:
        found = self.engine.rows(f"SELECT {selected}")
        return tuple(int(column[0].as_py()) for column in found.columns)

    def _keyed(self, batch: pa.RecordBatch, kind: str, digits: int) -> pa.RecordBatch:
        """Units with their keys, as `sdc_record_key` makes them."""
        cursor = self.session.cursor()
        cursor.register("_sdc_units", pa.Table.from_batches([batch]))
        try:
            found = cursor.sql(
                f"SELECT unit, _sdc_hmac_keys(unit::VARCHAR, {digits})::{kind} AS record_key FROM _sdc_units"
            ).to_arrow_table()
        finally:
            cursor.close()
        keys = found.column("record_key").combine_chunks()
        return pa.record_batch([batch.column(0), keys], names=["unit", "record_key"])


def _failed(problem: Exception) -> NoReturn:
    kind = type(problem).__name__
    raise SDCError(f"the engine that has the records refused, or is not there ({kind}): nothing was written") from None


def on_engine(session: Session, table: Source) -> OnEngine | None:
    """Where the records of a table are; None: in it.

    Raises:
        SDCError: on an engine that this connection does not know.
    """
    marked = marked_tables(session.cursor(), f"FROM {table.sql}")
    if not marked:
        return None
    if session.engine is None:
        raise SDCError(
            f"the records of {marked[0]!r} are on another engine: open this file with sdcduck.connect(.., records=..)"
        )
    if not stands_for(session.cursor(), table, marked[0]):
        raise SDCError(
            f"argument 'tbl': {table.described} is no table; the records are those of '{marked[0]}', which get the keys"
        )
    return OnEngine(session, session.engine, marked[0])
