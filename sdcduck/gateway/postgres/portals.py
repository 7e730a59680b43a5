"""Prepared statements and portals: what a client has asked for, and how far it has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sdcduck.gateway.answers import Answer, Columns
from sdcduck.gateway.postgres.rows import COPY_BINARY_HEAD, CopyText, copy_binary_rows, data_rows
from sdcduck.gateway.postgres.statements import Explain, Statement
from sdcduck.gateway.postgres.types import Type

Encode = Callable[[pa.RecordBatch], memoryview]


@dataclass
class Prepared:
    """A statement with its parameters.

    Attributes:
        sql: of a question, as the guard or the system catalog is asked.
        system: whether it is a question about the database itself.
        names: what PostgreSQL calls the columns that have no name.
        columns: of the answer, once a client has asked for them.
        size: of the text, in characters, and of the types of its parameters.
    """

    statement: Statement
    sql: str = ""
    system: bool = False
    types: tuple[Type, ...] = ()
    names: tuple[str | None, ...] = ()
    columns: Columns | None = None
    size: int = 0

    def called(self, columns: Columns) -> Columns:
        """The columns of the answer, as PostgreSQL calls them."""
        if len(columns) != len(self.names) or isinstance(self.statement, Explain):
            return columns
        return [(name or there, kind) for name, (there, kind) in zip(self.names, columns, strict=True)]


@dataclass
class Portal:
    """A statement with values, and its answer as far as it was read.

    Attributes:
        columns: as the client was told of them.
        rows: that were sent.
        seconds: for which it ran.
        hold: whether it outlives the transaction.
        size: of the values, in bytes: as they came, and for each of them what it takes beside.
        first: rows that are to be sent before all others.
    """

    prepared: Prepared
    values: Sequence[object] = ()
    formats: Sequence[int] = ()
    answer: Answer | None = None
    columns: Columns = field(default_factory=list)
    rows: int = 0
    seconds: float = 0.0
    hold: bool = False
    done: bool = False
    size: int = 0
    first: tuple[int, memoryview] | None = None
    _rest: pa.RecordBatch | None = None

    def take(self, rows: int, encode: Encode) -> tuple[int, memoryview] | None:
        """The next rows as messages, at most so many (0: as they come); None: there are no more.

        It blocks: not for the thread that serves all clients.
        """
        assert self.answer is not None
        batch = self._rest if self._rest is not None else self.answer.read()
        self._rest = None
        while batch is not None and batch.num_rows == 0:
            batch = self.answer.read()
        if batch is None:
            self.done = True
            return None
        if rows and batch.num_rows > rows:
            self._rest, batch = batch.slice(rows), batch.slice(0, rows)
        self.rows += batch.num_rows
        self.done = self._rest is None and self.answer.ended
        return batch.num_rows, encode(batch)

    def close(self) -> None:
        """Forget the rest of the answer."""
        self._rest = None
        if self.answer is not None:
            self.answer.close()


def formats_for(columns: Columns, asked: Sequence[int]) -> list[int]:
    """The format of each column: one for all, or one each, or text.

    Raises:
        ValueError: so many columns there are not.
    """
    if len(asked) <= 1:
        return [*asked, 0][:1] * len(columns)
    if len(asked) != len(columns):
        raise ValueError("the formats are not as many as the columns")
    return list(asked)


def encode_rows(columns: Columns, formats: Sequence[int]) -> Encode:
    """Rows as DataRow messages."""
    kinds = [kind for _, kind in columns]
    return lambda batch: data_rows(batch, kinds, formats)


def encode_copy(columns: Columns, text: CopyText | None) -> Encode:
    """Rows as CopyData messages; without a way to write text they are binary."""
    kinds = [kind for _, kind in columns]
    if text is not None:
        return lambda batch: text.rows(batch, kinds)
    heads = iter([COPY_BINARY_HEAD])
    return lambda batch: copy_binary_rows(batch, kinds, next(heads, b""))


def beside(answer: Answer, *, noise: bool) -> list[str]:
    """What is said beside an answer that was asked, and what its numbers are worth to whoever wants to know."""
    worth = [one.line for one in answer.worth if one.method] if noise else []
    return [answer.notice, *worth] if answer.notice else worth
