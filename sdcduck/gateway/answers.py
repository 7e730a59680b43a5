"""Where rows come from: the guard, the system catalog, or the session itself. All are read the same way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import duckdb
import pyarrow as pa

from sdcduck.gateway.postgres.patterns import described, with_patterns
from sdcduck.gateway.postgres.statements import Explain
from sdcduck.gateway.postgres.types import OID, TEXT, Type, array_of, type_of
from sdcduck.gateway.system.catalog import SystemCatalog
from sdcduck.gateway.system.queries import NoAnswer, SessionValues, check_read, is_system_query, system_sql
from sdcduck.guard import Explanation, Guard, Refused
from sdcduck.guard.question import Question, columns_of, written_down
from sdcduck.guard.running import begun, ended
from sdcduck.guard.worth import Worth
from sdcduck.quoting import folded

Columns = list[tuple[str, Type]]
Parameters = Mapping[str, object]
ReadQuestion = tuple[str, bool, tuple[Type, ...], tuple[str | None, ...]]
"""The text to ask, whether it is about the database itself, the types of its parameters, names of its columns."""


class Answer(Protocol):
    """Rows that come batch by batch. Its methods block, but for `interrupt`, which any thread may call."""

    def ask(self, parameters: Parameters) -> Columns:
        """Run up to the first rows."""

    def read(self) -> pa.RecordBatch | None:
        """The next rows; None: there are no more."""

    @property
    def ended(self) -> bool:
        """Whether it is known that no rows are left."""

    @property
    def notice(self) -> str:
        """What whoever asked has to know of the answer; empty: nothing."""

    @property
    def worth(self) -> tuple[Worth, ...]:
        """What the columns are worth, once it was asked; none where nothing is known of that."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows, once it was asked."""

    def interrupt(self, *, late: bool = False) -> None:
        """Stop, since it took too long or nobody wants it; to be called again until what runs has ended."""

    def close(self) -> None:
        """Give back what it holds."""


class Guarded:
    """An answer of the guard."""

    def __init__(self, guard: Guard, sql: str, user: str) -> None:
        self._guard, self._sql, self._user = guard, sql, user
        self._question: Question | None = None

    def ask(self, parameters: Parameters) -> Columns:
        """The guard's judgement, and the first rows."""
        start = time.perf_counter()
        try:
            sql, parameters = with_patterns(self._sql, parameters)
        except Refused as refused:
            given = written_down(parameters)
            self._guard.audit.write(self._sql, self._user, start, refused.code, 0, None, "", parameters=given)
            raise
        self._question = self._guard.question(sql, user=self._user)
        return [(name, type_of(kind)) for name, kind in self._question.ask(parameters)]

    def read(self) -> pa.RecordBatch | None:
        """The next rows."""
        return None if self._question is None else self._question.read()

    @property
    def ended(self) -> bool:
        """Whether it is known that no rows are left."""
        return self._question is not None and self._question.ended

    @property
    def notice(self) -> str:
        """That it is a preview."""
        return "" if self._question is None else self._question.notice

    @property
    def worth(self) -> tuple[Worth, ...]:
        """What the columns are worth, once it was asked."""
        return () if self._question is None else self._question.worth

    @property
    def schema(self) -> pa.Schema:
        """Of the rows, once it was asked."""
        return pa.schema([]) if self._question is None else self._question.schema

    def interrupt(self, *, late: bool = False) -> None:
        """Stop the query."""
        if self._question is not None:
            self._question.interrupt(late=late)

    def close(self) -> None:
        """Forget the rest."""
        if self._question is not None:
            self._question.close()


_ROWS = 16_384


class FromSystem:
    """An answer of the system catalog."""

    notice = ""
    worth: tuple[Worth, ...] = ()

    def __init__(self, catalog: SystemCatalog, sql: str, values: SessionValues) -> None:
        self._cursor, self._at_once = catalog.cursor(), catalog.at_once
        self._sql, self._values = sql, values
        self._reader: pa.RecordBatchReader | None = None
        self.schema = pa.schema([])

    def ask(self, parameters: Parameters) -> Columns:
        """Run the query in the instance without data."""
        try:
            text = _system_text(self._cursor, self._sql, self._values)
            columns, self._reader = begun(self._cursor, text, parameters, _ROWS, at_once=self._at_once)
            self.schema = self._reader.schema
        except duckdb.Error as problem:
            self.close()
            raise _failed(problem) from None
        except Refused:
            self.close()
            raise
        return [(name, _system_type(kind)) for name, kind in columns]

    def read(self) -> pa.RecordBatch | None:
        """The next rows."""
        if self._reader is None:
            return None
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            self.close()
            return None
        except (duckdb.Error, OSError, pa.ArrowException) as problem:
            self.close()
            raise _failed(problem) from None

    @property
    def ended(self) -> bool:
        """Whether it is known that no rows are left."""
        return self._reader is None

    def interrupt(self, *, late: bool = False) -> None:
        """Stop the query."""
        self._cursor.interrupt()

    def close(self) -> None:
        """Forget the rest."""
        self._reader = None
        self._cursor.close()


def _failed(problem: Exception) -> Refused:
    # Out of a stream Arrow raises an OSError, which has what DuckDB said.
    if isinstance(problem, duckdb.OutOfMemoryException) or str(problem).startswith("Out of Memory Error"):
        return Refused("SDC094")
    if isinstance(problem, duckdb.FatalException):
        return ended()
    return Refused("SDC090", type(problem).__name__)


def _system_text(cursor: duckdb.DuckDBPyConnection, sql: str, values: SessionValues) -> str:
    """The question as the instance without data is asked."""
    try:
        text = system_sql(sql, values)
        check_read(cursor, text)
    except NoAnswer as problem:
        raise Refused("SDC010", str(problem)) from None
    return text


def _system_type(duckdb_type: str) -> Type:
    """In the system catalog, numbers without a sign are numbers of things."""
    if duckdb_type == "UINTEGER":
        return OID
    return array_of(OID) if duckdb_type == "UINTEGER[]" else type_of(duckdb_type)


class Fixed:
    """A table of the session itself, such as the value of a setting."""

    notice = ""
    worth: tuple[Worth, ...] = ()

    def __init__(self, columns: Columns, table: pa.Table) -> None:
        self._columns, self._batches, self.schema = columns, table.to_batches(), table.schema

    def ask(self, parameters: Parameters) -> Columns:
        """Its columns."""
        return self._columns

    def read(self) -> pa.RecordBatch | None:
        """Its rows."""
        return self._batches.pop(0) if self._batches else None

    @property
    def ended(self) -> bool:
        """Whether all rows were read."""
        return not self._batches

    def interrupt(self, *, late: bool = False) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""


class First:
    """The question that a PIVOT needs for its columns, which is asked before it and stopped with it."""

    def __init__(self) -> None:
        self._question: Question | None = None
        self.stopped = False

    def __call__(self, question: Question) -> None:
        """It is going to be asked.

        Raises:
            Refused: nobody wants it any more.
        """
        self._question = question
        if self.stopped:
            raise Refused("SDC091")

    def interrupt(self, *, late: bool = False) -> None:
        """Stop it, and do not begin it."""
        self.stopped = True
        if self._question is not None:
            with suppress(duckdb.ConnectionException):  # it has just ended
                self._question.interrupt(late=late)


class Explained(Fixed):
    """What the guard would do with a question."""

    def __init__(self, guard: Guard, statement: Explain, sql: str, user: str) -> None:
        super().__init__([("QUERY PLAN", TEXT)], pa.table({"QUERY PLAN": pa.array([], pa.string())}))
        self._guard, self._statement, self._sql, self._user = guard, statement, sql, user
        self._first = First()

    def ask(self, parameters: Parameters) -> Columns:
        """Ask the guard, and nobody else."""
        explained = self._guard.explain(self._sql, user=self._user, first=self._first)
        if self._first.stopped:
            raise Refused("SDC091")
        lines = [_document(explained)] if self._statement.json else _lines(explained)
        self._batches = pa.table({"QUERY PLAN": pa.array(lines, pa.string())}).to_batches()
        return super().ask(parameters)

    def interrupt(self, *, late: bool = False) -> None:
        """Stop the question that a PIVOT needs first."""
        self._first.interrupt(late=late)


def _lines(explained: Explanation) -> list[str]:
    """An explanation for people: what was protected, and what the numbers are worth."""
    worth = [one.line for one in explained.worth if one.method]
    return [*(explained.notes or ["answered as it is"]), *worth]


def _document(explained: Explanation) -> str:
    """An explanation for programs."""
    columns = [
        {
            "name": column.name, "kind": column.kind, "protected": sorted(column.protected),
            "grouped": sorted(column.grouped), "computed": column.computed, **worth.document(),
        }
        for column, worth in zip(explained.columns, explained.worth, strict=True)
    ]  # fmt: skip
    return json.dumps({"answered": explained.answered, "notes": explained.notes, "columns": columns})


@dataclass(frozen=True)
class Role:
    """What users of one role ask: their guard and their system catalog."""

    guard: Guard
    catalog: SystemCatalog

    @property
    def raw(self) -> bool:
        """Whether they see the records as they are."""
        return self.guard.raw

    def close(self) -> None:
        """Nobody asks any more: the file is free of this guard."""
        self.catalog.close()
        self.guard.close()

    @cached_property
    def own(self) -> dict[str, dict[str, str]]:
        """The columns of the relations that can be asked about, by lower-case name."""
        return {folded(policy.name): columns for policy, columns in self.guard.relations()}

    @cached_property
    def read(self) -> dict[tuple[str, tuple[int, ...]], ReadQuestion]:
        """Questions that were read before."""
        return {}

    @cached_property
    def described(self) -> dict[tuple[str, tuple[Type, ...]], Columns]:
        """The columns of questions that clients asked for before; whoever asks the question itself asks the guard."""
        return {}

    @cached_property
    def schema(self) -> dict[str, Mapping[str, str]]:
        """The columns of all relations, also those of the system catalog."""
        return {**self.catalog.schema, **self.own}

    def shows(self, name: str, setting: Callable[[str], str | None]) -> bool:
        """Whether SHOW is about a table: there is no such setting."""
        return name != "all" and setting(name) is None and name.rpartition(".")[2] in self.own

    def is_system(self, sql: str) -> bool:
        """Whether a question is about the database itself."""
        return is_system_query(sql, self.own)

    def columns(
        self, sql: str, *, system: bool, values: SessionValues, types: Sequence[Type], first: First | None = None
    ) -> Columns:
        """The columns of an answer, without asking for it.

        Args:
            first: with which it can be stopped.

        Raises:
            Refused: the question would not be answered.
        """
        names = [kind.sql for kind in types]
        found = self.duckdb_columns(sql, system=system, values=values, types=names, first=first)
        return [(name, _system_type(kind) if system else type_of(kind)) for name, kind in found]

    def duckdb_columns(
        self, sql: str, *, system: bool, values: SessionValues, types: Sequence[str], first: First | None = None
    ) -> list[tuple[str, str]]:
        """The columns of an answer with their types of DuckDB, without asking for it.

        Raises:
            Refused: the question would not be answered.
        """
        if not system:
            start = time.perf_counter()
            try:
                asked = described(sql)
            except Refused as refused:
                self.guard.audit.write(sql, values.user, start, refused.code, 0, None, "")
                raise
            return self.guard.columns(asked, types, user=values.user, first=first)
        cursor = self.catalog.cursor()
        try:
            text = _system_text(cursor, sql, replace(values, set=lambda name, value: value))
            return columns_of(cursor, text, types)
        finally:
            cursor.close()
