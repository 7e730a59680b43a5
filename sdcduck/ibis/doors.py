"""Where answers come from: a guard in this process, or a gateway. Both take DuckDB's SQL and give Arrow.

A gateway is asked through ADBC, so that an answer of a million cells is read as Arrow and not row by row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

import ibis
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType
from ibis.formats.pyarrow import PyArrowType

from sdcduck.client.address import address
from sdcduck.client.refusals import refusal
from sdcduck.errors import SDCError, unknown
from sdcduck.guard import Guard, Refused
from sdcduck.guard.worth import table_of_worth, worth_of_document
from sdcduck.quoting import folded, identifier


class Door(Protocol):
    """What a backend asks."""

    def tables(self) -> list[str]:
        """Names of the tables that are open."""

    def table(self, name: str) -> ibis.Schema:
        """The columns of a table.

        Raises:
            Refused: there is no such table.
        """

    def columns(self, query: str) -> ibis.Schema:
        """The columns of an answer."""

    def answer(self, query: str) -> pa.Table:
        """An answer.

        Raises:
            Refused: by the guard.
        """

    def noise(self, query: str) -> pa.Table:
        """What the columns of an answer are worth."""

    def stream(self, query: str, rows: int) -> pa.RecordBatchReader:
        """An answer in batches of so many rows at most."""

    def close(self) -> None:
        """Ask no more."""


class InProcess:
    """A guard in this process.

    Args:
        guard: that answers.
        user: who asks, for the audit log.
    """

    def __init__(self, guard: Guard, user: str) -> None:
        self._guard, self._user = guard, user

    def tables(self) -> list[str]:
        return [policy.name for policy, _ in self._guard.relations()]

    def table(self, name: str) -> ibis.Schema:
        known = {policy.name: columns for policy, columns in self._guard.relations()}
        found = next((columns for table, columns in known.items() if folded(table) == folded(name)), None)
        if found is None:
            raise _no_table(name, known)
        return _with_noise(self, name, _schema(found.items()))

    def columns(self, query: str) -> ibis.Schema:
        return _schema(self._guard.columns(query))

    def answer(self, query: str) -> pa.Table:
        return self._guard.sql(query, user=self._user)

    def noise(self, query: str) -> pa.Table:
        return self._guard.noise(query)

    def stream(self, query: str, rows: int) -> pa.RecordBatchReader:
        return self._guard.stream(query, user=self._user, rows=rows)

    def close(self) -> None:
        self._guard.close()


def _with_noise(door: Door, table: str, columns: ibis.Schema) -> ibis.Schema:
    """The columns of a table; a measure whose sums have noise is a floating-point number, so that all of them are.

    ibis takes the sum of whole numbers for a whole number, and would cut the noise off.
    """

    def answered(query: str) -> ibis.Schema | None:
        try:
            return door.columns(query)
        except Refused:
            return None

    def has_noise(column: str) -> bool:
        name, source = identifier(column), identifier(table)
        if answered(f"SELECT {name} FROM {source} GROUP BY {name}") is not None:  # no measure
            return False
        total = answered(f"SELECT sum({name}) AS total FROM {source}")
        return total is not None and bool(total["total"].is_floating())

    exact = [name for name, kind in columns.items() if kind.is_integer() or kind.is_decimal()]
    noisy = {name: ibis.dtype("float64") for name in exact if has_noise(name)}
    return ibis.schema({**columns, **noisy})


def _no_table(name: str, known: Iterable[str]) -> Refused:
    hint = str(unknown("table", name, known)).split("; ")[1]
    return Refused("SDC020", f"'{name}'; {hint}")


def _schema(columns: Any) -> ibis.Schema:
    return ibis.schema({name: DuckDBType.from_string(kind) for name, kind in columns})


class Gateway:
    """A gateway that `sdcduck serve` runs.

    Args:
        url: ``postgresql://user:password@host:port/database``, or with ``sdcduck``.
        user: in place of the one in the URL.
        password: the same.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        try:
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"a gateway needs the package '{missing.name}': pip install 'sdcduck[ibis]'", name=missing.name
            ) from None
        self._failure = dbapi.Error
        with self._refusals():
            self._con = dbapi.connect(address(url, user, password), autocommit=True)

    def tables(self) -> list[str]:
        return [str(name) for name in self.answer(_TABLES)["table_name"].to_pylist()]

    def table(self, name: str) -> ibis.Schema:
        known = {folded(table): table for table in self.tables()}
        if folded(name) not in known:
            raise _no_table(name, known.values())
        return _with_noise(self, name, self.columns(f"SELECT * FROM {identifier(name)} LIMIT 0"))

    def columns(self, query: str) -> ibis.Schema:
        with self._refusals(), closing(self._con.cursor()) as cursor:
            fields = cursor.adbc_execute_schema(query)
        return ibis.schema({field.name: PyArrowType.to_ibis(_storage(field.type)) for field in fields})

    def answer(self, query: str) -> pa.Table:
        with self._refusals(), closing(self._con.cursor()) as cursor:
            cursor.execute(query)
            return _plain(cursor.fetch_arrow_table())

    def noise(self, query: str) -> pa.Table:
        told = json.loads(self.answer(f"EXPLAIN (FORMAT JSON) {query}")[0][0].as_py())
        if not told["answered"]:
            raise _raised(told["notes"][0])
        return table_of_worth([worth_of_document(column) for column in told["columns"]])

    def stream(self, query: str, rows: int) -> pa.RecordBatchReader:
        cursor = self._con.cursor()
        with self._refusals():
            cursor.execute(query)
            reader = cursor.fetch_record_batch()

        def batches() -> Iterator[pa.RecordBatch]:
            with self._refusals(), closing(cursor):
                for batch in reader:
                    for start in range(0, batch.num_rows, rows):
                        yield from _plain(pa.Table.from_batches([batch.slice(start, rows)])).to_batches()

        schema = pa.schema([field.with_type(_storage(field.type)) for field in reader.schema])
        return pa.RecordBatchReader.from_batches(schema, batches())

    def close(self) -> None:
        self._con.close()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the driver raises becomes what the guard said.

        Raises:
            KeyboardInterrupt: the driver, which hears of Ctrl-C before Python, had the gateway stop.
        """
        try:
            yield
        except (self._failure, pa.ArrowException, OSError) as problem:
            if "canceling statement due to user request" in str(problem):
                raise KeyboardInterrupt from None
            raise _raised(str(problem)) from None


def _raised(text: str) -> SDCError:
    """What a driver said, as the guard would have raised it."""
    if "SQLSTATE: 25006" in text:  # a session that only reads
        return Refused("SDC004")
    return refusal(text) or SDCError(f"the gateway did not answer: {' '.join(text.split())}")


_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"


def _storage(kind: pa.DataType) -> pa.DataType:
    """PostgreSQL's exact numbers of any size come as text of a type that Arrow does not know; here they are numbers."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.decimal128(38, 9) if getattr(kind, "type_name", "") == "numeric" else kind.storage_type
    return kind


def _plain(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        kind = _storage(field.type)
        if kind != field.type:
            column = table.column(place)
            stored = pa.chunked_array([chunk.storage for chunk in column.chunks], field.type.storage_type)
            table = table.set_column(place, field.with_type(kind), stored.cast(kind))
    return table
