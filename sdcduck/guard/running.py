"""Running what was rewritten: for so long as a query may take, and never with data in what is raised."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from sdcduck.guard.refusals import Refused

_Answer = TypeVar("_Answer")


def watched(cursor: duckdb.DuckDBPyConnection, ask: Callable[[], _Answer], seconds: float | None) -> _Answer:
    """What `ask` does with a cursor, which is interrupted when the time is over.

    Raises:
        Refused: it took too long, or failed.
    """
    over, stopped = threading.Event(), threading.Event()
    watch = threading.Thread(target=_stop_after, args=(seconds, over, stopped, cursor), daemon=True)
    try:
        if seconds is not None:
            watch.start()
        return ask()
    except (duckdb.Error, pa.ArrowException, OSError) as problem:
        if stopped.is_set() or isinstance(problem, duckdb.InterruptException):
            raise Refused("SDC091") from None
        raise Refused("SDC090", type(problem).__name__) from None
    finally:
        over.set()
        if seconds is not None:
            watch.join()


class Limited:
    """Asks, each time on a cursor of its own and for so long as a question may take.

    Args:
        con: what the cursors are of.
        alone: held while it is used.
        seconds: after which a question is stopped; None: no limit.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, alone: threading.Lock, seconds: float | None) -> None:
        self._con, self._alone, self.seconds = con, alone, seconds

    def value(self, sql: str) -> Any:
        """The first value of a query that the guard asks for itself."""
        return self.ask(lambda cursor: cursor.execute(sql).fetchall()[0][0])

    def ask(self, question: Callable[[duckdb.DuckDBPyConnection], _Answer]) -> _Answer:
        """The answer of a function of a cursor.

        Raises:
            Refused: it took too long or failed; never with data in the message.
        """
        with self._alone:
            cursor = self._con.cursor()
        try:
            return watched(cursor, lambda: question(cursor), self.seconds)
        finally:
            cursor.close()


def _stop_after(
    seconds: float, over: threading.Event, stopped: threading.Event, cursor: duckdb.DuckDBPyConnection
) -> None:
    """Interrupt what runs on a cursor: again and again, for an interruption between planning and running is lost."""
    wait = seconds
    while not over.wait(wait):
        stopped.set()
        cursor.interrupt()
        wait = 0.05
