"""Questions to the database that may take only so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import duckdb

from sdcduck.guard.refusals import Refused


class Limited:
    """Asks, each time on a cursor of its own and for so long as a question may take.

    Args:
        con: what the cursors are of.
        alone: held while it is used.
        seconds: after which a question is stopped; None: no limit.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, alone: threading.Lock, seconds: float | None) -> None:
        self._con, self._alone, self._seconds = con, alone, seconds

    def value(self, sql: str) -> Any:
        """The first value of a query that the guard asks for itself."""
        return self.ask(lambda cursor: cursor.execute(sql).fetchall()[0][0])

    def ask(self, question: Callable[[duckdb.DuckDBPyConnection], Any]) -> Any:
        """The answer of a function of a cursor.

        Raises:
            Refused: it took too long or failed; never with data in the message.
        """
        with self._alone:
            cursor = self._con.cursor()
        over = threading.Event()
        watch = threading.Thread(target=_stop_after, args=(self._seconds, over, cursor), daemon=True)
        try:
            if self._seconds is not None:
                watch.start()
            return question(cursor)
        except duckdb.InterruptException:
            raise Refused("SDC091") from None
        except duckdb.Error as problem:
            raise Refused("SDC090", type(problem).__name__) from None
        finally:
            over.set()
            if self._seconds is not None:
                watch.join()
            cursor.close()


def _stop_after(seconds: float, over: threading.Event, cursor: duckdb.DuckDBPyConnection) -> None:
    """Interrupt what runs on a cursor: again and again, for an interruption between planning and running is lost."""
    wait = seconds
    while not over.wait(wait):
        cursor.interrupt()
        wait = 0.05
