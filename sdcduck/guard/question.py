"""One question to a guard, answered batch by batch: for results that are too large to hold, and that may be stopped."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

import duckdb
import pyarrow as pa

from sdcduck.catalog.audit_log import OVER_QUOTA
from sdcduck.guard.auditing import Auditing
from sdcduck.guard.engines.asking import stop_waiting
from sdcduck.guard.failures import failure
from sdcduck.guard.labels import without_labels
from sdcduck.guard.planned import Planned, Plans
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.running import Parameters, begun, watched
from sdcduck.guard.worth import Worth

_ROWS = 16_384
_HELD = 65_536
_HELD_BYTES = 32_000_000
_BEGUN, _ABANDONED = "begun", "abandoned"
_PLACE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\d{1,9})")

_MOST_CONSTANTS = 1000

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Constant:
    """An answer that stands in its question: names and DuckDB types of its columns, and its one row."""

    columns: list[tuple[str, str]]
    rows: pa.Table


class Asked(Protocol):
    """What a question needs of the guard that it is asked of."""

    audit: Auditing
    constants: dict[str, Constant]
    at_once: bool
    plans: Plans

    def rewritten(
        self, query: str, user: str = "", *, first: Callable[[Question], None] | None = None
    ) -> tuple[Rewritten, str]:
        """What runs in its place, and the version of the policies."""

    def check_files(self, rewritten: Rewritten) -> None:
        """Refuse what is made of other files than those that were looked at."""

    def worth(self, rewritten: Rewritten) -> tuple[Worth, ...]:
        """What the columns of its answer are worth."""

    def charge(self, rewritten: Rewritten, parameters: Parameters, query: str, user: str) -> Rewritten:
        """Write down what its answer tells, or refuse it; the same, with what is left in its notice."""

    def drawn(
        self, rewritten: Rewritten, parameters: Parameters, query: str, user: str
    ) -> tuple[Rewritten, Parameters]:
        """What runs, with the noise that was drawn for it, and the values of the parameters that are left in it."""

    def located(self, cursor: duckdb.DuckDBPyConnection, rewritten: Rewritten) -> str:
        """What runs on a cursor, with what an engine answers in its reach, where records are on one."""


class Question:
    """A question, from the text to the last row (`Guard.question`, `Guard.stream`).

    One thread at a time may use it; `interrupt` may be called from any.

    The audit log gets one line before the first row leaves. Where the answer is longer than what is held back until
    then, that line says ``begun``, and another one at the end has the number of rows that went out.

    Args:
        seconds: that the engine may take for all of it, whoever reads may take longer; None: no limit.
        rows: of a batch, at most.
    """

    def __init__(
        self,
        guard: Asked,
        cursor: duckdb.DuckDBPyConnection,
        query: str,
        user: str,
        *,
        seconds: float | None = None,
        rows: int = _ROWS,
    ) -> None:
        self._guard, self._cursor, self._query, self._user = guard, cursor, query, user
        self._left, self._most = seconds, rows
        self._start, self._version = time.perf_counter(), ""
        self._rewritten: Rewritten | None = None
        self._parameters = ""
        self._planned = Planned(query)
        self._reader: pa.RecordBatchReader | None = None
        self._held: deque[pa.RecordBatch] = deque()
        self._rows = 0
        self._over = self._stopped = self._unwanted = self._begun = False
        self._first: Question | None = None
        self._thread = 0
        self.schema = pa.schema([])
        """Of the rows, once it was asked."""

    def ask(self, parameters: Parameters = None) -> list[tuple[str, str]]:
        """Run it up to the first rows; names and DuckDB types of the columns.

        Raises:
            Refused: it is not answered, or failed while it ran; never with data in the message.
        """
        self._thread = threading.get_ident()
        try:
            self._guard.audit.check(self._user)
            self._parameters = written_down(parameters)
            self._planned = self._guard.plans.begun(self._query, self._user, parameters)
            asked = self._planned.question
            self._rewritten, self._version = self._guard.rewritten(asked, self._user, first=self._ask_first)
            self._guard.plans.check(self._planned, self._query, self._rewritten)
            self._first = None
            if self._stopped:
                raise Refused("SDC091")
            self._rewritten = self._guard.charge(self._rewritten, parameters, self._query, self._user)
            runs, given = self._guard.drawn(self._rewritten, parameters, self._query, self._user)
            constant = None if parameters else self._guard.constants.get(runs.sql)
            if constant is not None:
                columns = self._repeat(constant)
            else:
                columns = self._begin(runs, given)
                held = 0
                while self._rows < _HELD and held < _HELD_BYTES and (batch := self._next()) is not None:
                    self._held.append(batch)
                    held += batch.nbytes
                if runs.constant:
                    self._remember(runs.sql, columns)
            self._write("answered" if self._over else _BEGUN)
            self._end_step()
        except Refused as refused:
            self._refuse(refused)
            raise
        except BaseException as problem:
            self._over = True
            self._forget_held()
            with suppress(Refused):  # the log cannot be written: what went wrong before is what is said
                self._write(unforeseen(problem))
            self.close()
            raise
        finally:
            self._thread = 0  # which asks other questions now
        return columns

    def read(self) -> pa.RecordBatch | None:
        """The next rows; None: there are no more.

        Raises:
            Refused: it failed while it ran.
        """
        if self._held:
            return self._held.popleft()
        if self._over:
            return None
        try:
            batch = self._next()
        except Refused as refused:
            self._refuse(refused)
            raise
        if batch is None:
            self._write("answered")
            self.close()
        return batch

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All that `read` gives, and an end to the question where somebody lets go of it."""
        try:
            while (batch := self.read()) is not None:
                yield batch
        finally:
            self.close()

    @property
    def ended(self) -> bool:
        """Whether it is known that no rows are left."""
        return self._over and not self._held

    @property
    def notice(self) -> str:
        """What has to be known of the answer: that it is a preview, how many questions are left; empty: nothing."""
        return "" if self._rewritten is None else self._rewritten.notice

    @property
    def worth(self) -> tuple[Worth, ...]:
        """What the columns of the answer are worth, once it was asked."""
        return () if self._rewritten is None else self._guard.worth(self._rewritten)

    def interrupt(self, *, late: bool = False) -> None:
        """Stop it. An interruption between planning and running is lost: call again until what runs has ended.

        Args:
            late: whether it took too long, and is refused; otherwise nobody wants it any more, and it was abandoned.
        """
        self._stopped, self._unwanted = True, self._unwanted or not late
        self._cursor.interrupt()
        stop_waiting(self._thread)
        first = self._first
        if first is not None:
            with suppress(duckdb.ConnectionException):  # it has just ended
                first.interrupt(late=late)

    def close(self) -> None:
        """Give back what it holds; a question that is closed before its end was abandoned."""
        abandoned = not self._over and self._reader is not None
        self._over = True
        self._forget_held()
        self._reader = None
        self._cursor.close()
        if abandoned:
            self._write(_ABANDONED)

    def _ask_first(self, question: Question) -> None:
        """Note a question that this one has to wait for, to be stopped with it."""
        self._first = question
        if self._stopped:
            raise Refused("SDC091")

    def _begin(self, rewritten: Rewritten, parameters: Parameters) -> list[tuple[str, str]]:
        def begin() -> list[tuple[str, str]]:
            columns, self._reader = begun(
                self._cursor,
                self._guard.located(self._cursor, rewritten),
                parameters,
                self._most if rewritten.rows is None else min(rewritten.rows, self._most),
                at_once=self._guard.at_once,
                grouped=rewritten.grouped,
            )
            return columns

        columns = self._in_time(begin)
        assert self._reader is not None
        self.schema = self._reader.schema
        return columns

    def _repeat(self, constant: Constant) -> list[tuple[str, str]]:
        """Answer as the engine did before."""
        self.schema, self._over = constant.rows.schema, True
        self._held.extend(constant.rows.to_batches())
        self._rows = constant.rows.num_rows
        return constant.columns

    def _remember(self, sql: str, columns: list[tuple[str, str]]) -> None:
        """Pools of connections ask the same before every question: the engine need not answer each time."""
        constants = self._guard.constants
        if len(constants) >= _MOST_CONSTANTS:
            constants.clear()
        constants[sql] = Constant(columns, pa.Table.from_batches(self._held, self.schema))

    def _next(self) -> pa.RecordBatch | None:
        reader = self._reader
        assert reader is not None
        batch = self._in_time(lambda: self._together(reader))
        if batch is None:
            self._over = True
            self._reader = None
            return None
        self._rows += batch.num_rows
        return batch

    def _together(self, reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
        """The next rows: where the engine gives a few at a time, since they could be wide, as many as are not."""
        batch: pa.RecordBatch | None = next(reader, None)
        if batch is None or self._rewritten is None or self._rewritten.rows is None:
            return batch
        batches, rows, size = [batch], batch.num_rows, batch.nbytes
        while rows < self._most and size < _HELD_BYTES / 4 and (batch := next(reader, None)) is not None:
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        together = pa.Table.from_batches(batches).combine_chunks().to_batches()
        return together[0] if together else batches[0]

    def _in_time(self, ask: Callable[[], _Answer]) -> _Answer:
        """What the engine answers, in the time that is left."""
        start = time.perf_counter()
        try:
            answer = watched(self._cursor, ask, self._left)
        except Refused as refused:
            if not self._stopped:
                self._check_files()  # what failed was about other records
            raise Refused("SDC091") if self._stopped else refused from None
        else:
            self._check_files()
            return answer
        finally:
            if self._left is not None:
                self._left = max(self._left - (time.perf_counter() - start), 0)

    def _check_files(self) -> None:
        """Whether files were replaced while they were read."""
        if self._rewritten is not None:
            self._guard.check_files(self._rewritten)

    def _refuse(self, refused: Refused) -> None:
        """The last line of the log, unless it is the log that cannot be written."""
        self._over = True
        self._forget_held()
        try:
            if refused.code not in ("SDC092", OVER_QUOTA):
                self._write(_ABANDONED if self._unwanted and refused.code == "SDC091" else refused.code)
            self._planned.refused(refused.code)
        finally:
            self.close()

    def _end_step(self) -> None:
        """Write down that the step of a plan is answered, before its first row leaves; that it is, the log says now."""
        try:
            self._planned.answered()
        except Refused:
            self._begun = True
            raise

    def _forget_held(self) -> None:
        """Rows that were held back never went out, and are not counted as if they had."""
        self._rows -= sum(batch.num_rows for batch in self._held)
        self._held.clear()

    def _write(self, verdict: str) -> None:
        self._guard.audit.write(
            self._query,
            self._user,
            self._start,
            verdict,
            self._rows,
            self._rewritten,
            self._version,
            end=self._begun,
            parameters=self._parameters,
        )
        self._begun = verdict == _BEGUN


def unforeseen(problem: BaseException) -> str:
    """What the audit log says of a question that ended in no refusal: somebody let go of it, or it failed.

    Its charges stay. So a question that is stopped by Ctrl-C is there, too, which DuckDB says in an error of its own.

    >>> unforeseen(KeyboardInterrupt()), unforeseen(RuntimeError("Query interrupted")), unforeseen(RecursionError())
    ('abandoned', 'abandoned', 'SDC090')
    """
    let_go = isinstance(problem, KeyboardInterrupt) or str(problem) == "Query interrupted"
    return _ABANDONED if let_go else "SDC090"


def written_down(parameters: Parameters) -> str:
    """The values of parameters by name or place, as the audit log has them; empty: there are none.

    Raises:
        Refused: there is no text for one.

    >>> written_down([3, None, b"x", 1.5])
    '{"1": 3, "2": null, "3": "x", "4": 1.5}'
    """
    if not parameters:
        return ""
    named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters, 1))
    try:
        return json.dumps({str(name): value for name, value in named.items()}, default=_as_text)
    except (ValueError, TypeError, RecursionError):
        raise Refused("SDC090", "a parameter that cannot be written down") from None


def _as_text(value: object) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray | memoryview) else str(value)


def columns_of(cursor: duckdb.DuckDBPyConnection, sql: str, parameter_types: Sequence[str]) -> list[tuple[str, str]]:
    """Names and types of the columns of a query that may run, without running it.

    Raises:
        Refused: it does not go with parameters of these types.
    """

    def asked(value: str) -> duckdb.DuckDBPyRelation:
        def typed(found: re.Match[str]) -> str:
            place = int(found[1]) if found[1] else 0
            return value.format(parameter_types[place - 1]) if 0 < place <= len(parameter_types) else found[0]

        return cursor.sql(_PLACE.sub(typed, sql))

    try:
        try:
            relation = asked(_VALUES[0])
        except duckdb.Error:
            relation = asked(_VALUES[-1])
        kinds = (without_labels(str(kind)) for kind in relation.types)
        return list(zip(relation.columns, kinds, strict=True))
    except duckdb.Error as problem:
        raise Refused("SDC090", failure(problem)) from None


# What stands for a parameter. DuckDB 1 takes 'x' || NULL for an INTEGER; but another value may be no part of a date.
_SOME, _NULL = "coalesce(TRY_CAST('1' AS {0}), TRY_CAST('2000-01-01' AS {0}))", "CAST(NULL AS {0})"
_VALUES = (_SOME, _NULL) if duckdb.__version__.startswith("1.") else (_NULL,)
