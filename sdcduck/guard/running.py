"""Running what was rewritten: for so long as a query may take, and never with data in what is raised."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from sdcduck.catalog import as_unset
from sdcduck.errors import SDCError
from sdcduck.guard.engines.asking import stop_waiting
from sdcduck.guard.failures import failure
from sdcduck.guard.labels import as_texts, without_labels
from sdcduck.guard.refusals import Refused
from sdcduck.guard.wide_numbers import without_wrong_values
from sdcduck.quoting import identifier, literal

LONGEST_PARAMETER = 10_000
"""Characters: longer values for parameters are not taken."""

TOO_LONG = "sdcduck: a value of an aggregate that is too long"
"""Stands in what DuckDB says where `sizes.bound` finds one; an aggregate with this text in it says so, and no more."""

TOO_MANY = "sdcduck: a series, or a text that is repeated, padded or grows, that is too long"
"""The same where `looked_at` finds one."""

Parameters = Sequence[object] | Mapping[str, object] | None
_Answer = TypeVar("_Answer")
_MAKES_MORE = (
    "functions of a very long list or text of an aggregate: sort by list(x ORDER BY x), and aggregate fewer rows, with "
    "LIMIT in a subquery"
)
_TOO_MANY = re.compile(rf"{TOO_MANY}: (\d+)")
_ENDED = "DuckDB has ended this database after an internal error: it has to be opened again"
_NO_MEMORY = (duckdb.OutOfMemoryException, MemoryError)


def check_parameters(values: Iterable[object]) -> None:
    """Refuse values that are longer than what a query is judged by.

    Raises:
        Refused: one is, or a text in it.
    """
    for value in values:
        if isinstance(value, str | bytes | bytearray) and len(value) > LONGEST_PARAMETER:
            raise Refused("SDC002", f"a parameter of more than {LONGEST_PARAMETER} characters")
        if isinstance(value, list | tuple):
            check_parameters(value)
            if len(value) > LONGEST_PARAMETER:
                raise Refused("SDC002", f"a parameter of more than {LONGEST_PARAMETER} values")
        if isinstance(value, dict):
            check_parameters([*value.keys()])
            check_parameters([*value.values()])


_LISTENING: list[Callable[[], object]] = []


def when_ended(told: Callable[[], object]) -> Callable[[], None]:
    """Have something called when DuckDB ends an instance of this process, by any thread; what comes back takes it back.

    DuckDB ends an instance, for everybody who asks it, after an error of its own.
    """
    _LISTENING.append(told)
    return lambda: _LISTENING.remove(told)


def ended() -> Refused:
    """What is said of a question that an ended instance does not answer; whoever listens hears of it."""
    for told in list(_LISTENING):
        told()
    return Refused("SDC090", _ENDED)


@contextmanager
def in_memory() -> Iterator[None]:
    """Refuse what there is no memory left for: other questions may have all that an instance may use.

    Raises:
        Refused: as `watched` does, of what the guard asks without it; or the instance has ended.
    """
    try:
        yield
    except _NO_MEMORY:
        raise Refused("SDC094") from None
    except duckdb.FatalException:
        raise ended() from None


def watched(cursor: duckdb.DuckDBPyConnection, ask: Callable[[], _Answer], seconds: float | None) -> _Answer:
    """What `ask` does with a cursor, which is interrupted when the time is over.

    Raises:
        Refused: it took too long, or failed.
    """
    stopped = threading.Event()
    try:
        if seconds is None:
            return ask()
        over = threading.Event()
        watch = threading.Thread(
            target=_stop_after, args=(seconds, over, stopped, cursor, threading.get_ident()), daemon=True
        )
        watch.start()
        try:
            return ask()
        finally:
            over.set()
            watch.join()
    except (duckdb.Error, pa.ArrowException, OSError, MemoryError) as problem:
        if stopped.is_set() or isinstance(problem, duckdb.InterruptException):
            raise Refused("SDC091") from None
        # Out of a stream Arrow raises an OSError, which has what DuckDB said.
        if isinstance(problem, _NO_MEMORY) or str(problem).startswith("Out of Memory Error"):
            raise Refused("SDC094") from None
        if isinstance(problem, duckdb.FatalException):
            raise ended() from None
        if TOO_LONG in str(problem):
            raise Refused("SDC091", _MAKES_MORE) from None
        found = _TOO_MANY.search(str(problem))
        if found is not None:
            raise Refused(
                "SDC002",
                f"a series, or a text that is repeated, padded or grows from row to row, of more than {found[1]}",
            ) from None
        raise Refused("SDC090", failure(problem)) from None


def begun(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Parameters,
    rows: int,
    *,
    at_once: bool,
    grouped: bool = False,
) -> tuple[list[tuple[str, str]], pa.RecordBatchReader]:
    """The names and DuckDB types of the columns of an answer, and its rows as they come, without labels of ENUMs.

    Reading the rows is refused where a number is too large for Arrow.

    Args:
        rows: of a batch, at most.
        at_once: what `plans_once` says of the connection.
        grouped: the rows are no more than the groups that DuckDB holds in memory anyway. They may then be held as a
            result; a relation holds no more than a batch.
    """
    columns, reader = _begun(cursor, sql, parameters, rows, at_once=at_once, grouped=grouped)
    rows_of = without_wrong_values(as_texts(reader), [kind for _, kind in columns])
    return [(name, without_labels(kind)) for name, kind in columns], rows_of


def _begun(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    parameters: Parameters,
    rows: int,
    *,
    at_once: bool,
    grouped: bool,
) -> tuple[list[tuple[str, str]], pa.RecordBatchReader]:
    """`begun`, as DuckDB has it.

    Protected numbers take longer to plan than to compute, unless there are millions of records: so a question should be
    planned once. What DuckDB 2 has for everybody plans a relation for its columns and again to run, or a result once
    but copies its rows with a second query; what its relations are made of does neither.
    """
    given = parameters if parameters is not None else []
    check_parameters(given.values() if isinstance(given, Mapping) else given)
    if at_once:
        values = dict(given) if isinstance(given, Mapping) else list(given)
        result = cursor._submit(sql, values, "stream", rows)
        return [(str(column[0]), str(column[1])) for column in result.description], result.arrow_reader()
    if grouped:
        cursor.execute(sql, given)
        columns = [(str(column[0]), str(column[1])) for column in cursor.description or []]
        try:
            return columns, cursor.to_arrow_reader(rows)
        except UserWarning:  # in a program to which every warning is an error
            cursor.fetchall()
    relation = cursor.sql(sql, params=given)
    return list(zip(relation.columns, map(str, relation.types), strict=True)), relation.to_arrow_reader(rows)


def plans_once(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether DuckDB's package has the call under its relations that plans a query once and streams its rows.

    It is internal: another version may do without it, or mean something else by it, and is then asked as everybody may.
    """
    try:
        result = con._submit("SELECT 7 AS a, $1 AS b", ["x"], "stream", 1)
        columns = [(str(column[0]), str(column[1])) for column in result.description]
        rows = result.arrow_reader().read_all().to_pylist()
    except Exception:  # whatever another version makes of it
        return False
    return columns == [("a", "INTEGER"), ("b", "VARCHAR")] and rows == [{"a": 7, "b": "x"}]


# DuckDB 2.0 warns of results as Arrow: they are one copy more, here of few rows.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning, r"sdcduck\.guard\.running")


class Limited:
    """Asks, each time on a cursor of its own and for so long as a question may take.

    Args:
        con: what the cursors are of.
        alone: held while it is used.
        seconds: after which a question is stopped; None: no limit.
        database: in which others may make macros at any time; None: nobody can.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, alone: threading.Lock, seconds: float | None, database: str | None = None
    ) -> None:
        self._con, self._alone, self.seconds = con, alone, seconds
        self._path = None if database is None else literal("system.main,{0}.main,{0}.sdc".format(identifier(database)))
        self._unset = as_unset(con)
        self._as_unset(con)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor for one question, on which no macro runs in place of DuckDB's function of its name.

        Tables are found on it by their full names only.
        """
        return self.settled(self._plain_cursor())

    @in_memory()
    def settled(self, cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """A cursor of whoever holds the connection, as `cursor` has it."""
        self._as_unset(cursor)
        if self._path is not None:
            cursor.execute(f"SET search_path = {self._path}")
        return cursor

    def _as_unset(self, cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        if self._unset:
            try:
                cursor.execute(self._unset)
            except duckdb.InvalidInputException:  # they are locked
                raise SDCError(
                    "settings by which questions mean something else are locked; before lock_configuration say "
                    f"{self._unset}"
                ) from None
        return cursor

    @in_memory()
    def _plain_cursor(self) -> duckdb.DuckDBPyConnection:
        with self._alone:
            return self._con.cursor()

    def value(self, sql: str) -> Any:
        """The first value of a query that the guard asks for itself."""
        return self._ask(lambda cursor: cursor.execute(sql).fetchall()[0][0], self._as_unset(self._plain_cursor()))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of such a query."""
        return self._ask(lambda cursor: cursor.execute(sql).fetchall(), self._as_unset(self._plain_cursor()))

    def ask(self, question: Callable[[duckdb.DuckDBPyConnection], _Answer]) -> _Answer:
        """The answer of a function of a `cursor`.

        Raises:
            Refused: it took too long or failed; never with data in the message.
        """
        return self._ask(question, self.cursor())

    def _ask(
        self, question: Callable[[duckdb.DuckDBPyConnection], _Answer], cursor: duckdb.DuckDBPyConnection
    ) -> _Answer:
        try:
            return watched(cursor, lambda: question(cursor), self.seconds)
        finally:
            cursor.close()


def _stop_after(
    seconds: float, over: threading.Event, stopped: threading.Event, cursor: duckdb.DuckDBPyConnection, thread: int
) -> None:
    """Interrupt what a thread runs on a cursor or asks an engine.

    Again and again, for an interruption between planning and running is lost.
    """
    wait = seconds
    while not over.wait(wait):
        stopped.set()
        cursor.interrupt()
        stop_waiting(thread)
        wait = 0.05
