"""Asking an engine that can take for ever, or go away: whoever waits for it can be let go at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from sdcduck.catalog.engines import Engine
from sdcduck.guard.refusals import Refused

_Answer = TypeVar("_Answer")
_WAITING: dict[int, _Call] = {}
"""What threads wait for now, by their numbers."""


class _Call:
    """One thing that an engine is asked, in a thread of its own: some cannot be stopped, and go on by themselves."""

    def __init__(self, engine: Engine, alone: threading.Lock, ask: Callable[[], object]) -> None:
        self._engine, self._alone, self._ask = engine, alone, ask
        self._ended = threading.Event()
        self._begun = self._stopped = False
        self._answer: object = None
        self._problem: BaseException | None = None

    def run(self, seconds: float | None) -> object:
        """What the engine answers.

        Raises:
            Refused: it took too long, was stopped, or failed; never with what the engine says, which may have data.
        """
        me = threading.get_ident()
        _WAITING[me] = self
        try:
            threading.Thread(target=self._work, daemon=True).start()
            if not self._ended.wait(seconds):
                self.stop()
        except BaseException:  # Ctrl-C
            self.stop()
            raise
        finally:
            del _WAITING[me]
        if self._stopped:
            raise Refused("SDC091", "the engine that has the records")
        if isinstance(self._problem, MemoryError):
            raise Refused("SDC094")
        if self._problem is not None:
            raise Refused("SDC090", "the engine that has the records failed, or is not there")
        return self._answer

    def stop(self) -> None:
        """Wait for it no more."""
        if not self._ended.is_set():
            self._stopped = True
            self._ended.set()
            if self._begun:
                self._engine.stop()

    def _work(self) -> None:
        with self._alone:  # an engine is asked one thing at a time
            if self._stopped:
                return
            self._begun = True
            try:
                self._answer = self._ask()
            except BaseException as problem:  # engines have errors of their own
                self._problem = problem
            finally:
                self._begun = False
                self._ended.set()


def stop_waiting(thread: int) -> None:
    """Stop what a thread asks an engine now, if anything."""
    call = _WAITING.get(thread)
    if call is not None:
        call.stop()


class Asking:
    """An engine, asked by one thread at a time, each for so long as a question may take.

    Args:
        engine: that has the records.
        seconds: None: no limit.
    """

    def __init__(self, engine: Engine, seconds: float | None) -> None:
        self._engine, self._seconds = engine, seconds
        self._alone = threading.Lock()

    @property
    def name(self) -> str:
        """Which engine it is."""
        return self._engine.name

    def close(self) -> None:
        """Give back what was opened to ask it."""
        self._engine.close()

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table.

        Raises:
            Refused: as `rows`.
        """
        return self._asked(lambda: self._engine.schema(table))

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query.

        Raises:
            Refused: it fails, or takes too long.
        """
        return self._asked(lambda: self._engine.rows(sql))

    def together(self, queries: list[str]) -> list[pa.Table]:
        """The rows of several queries, at one moment where the engine has such.

        Raises:
            Refused: as `rows`.
        """
        return self._asked(lambda: self._engine.together(queries))

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        return _Call(self._engine, self._alone, ask).run(self._seconds)  # type: ignore[return-value]
