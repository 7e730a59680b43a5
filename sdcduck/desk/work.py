"""The work of the desk: one statement at a time on the one connection that writes, in a thread, and stopped on demand.

Pages read through cursors of their own and never wait for it.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import duckdb
import pyarrow as pa

from sdcduck.desk.forms import Form
from sdcduck.errors import SDCError

_KEPT = 30
_AGAIN = 0.02
"""Seconds between two interruptions: one that comes between two statements is lost."""

State = Literal["waiting", "running", "done", "stopped", "failed"]


@dataclass
class Work:
    """A statement that somebody clicked for.

    Attributes:
        kind: what page shows its answer.
        title: in words.
        statement: SQL.
        form: what it was made of, to change it and try again.
        tables: where its records are.
        writes: whether it belongs into the script of the session.
        makes: tables and views that later work may read.
        about: what the page needs beside the answer.
        share: how much is done, from 0 to 1, where that is known.
        answer: the rows, once it is done.
        problem: why it failed, in the words of the house.
    """

    kind: str
    title: str
    statement: str
    form: Form
    tables: tuple[str, ...] = ()
    writes: bool = False
    makes: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    state: State = "waiting"
    share: float = 0.0
    answer: pa.Table | None = None
    problem: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    wanted: bool = True


@dataclass(frozen=True)
class Written:
    """A statement that changed the database, for the script."""

    when: datetime
    title: str
    statement: str
    tables: tuple[str, ...]
    makes: tuple[str, ...]


class Worker:
    """Runs work in the order in which it comes."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._known: OrderedDict[int, Work] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.running: Work | None = None
        self.written: list[Written] = []
        self._thread = threading.Thread(target=self._run, name="sdcduck desk")
        self._thread.start()

    def start(self, work: Work) -> Work:
        """Put it at the end of the queue."""
        with self._lock:
            work.number = next(self._numbers)
            self._known[work.number] = work
            for number in [one.number for one in self._known.values() if one.over.is_set()][:-_KEPT]:
                del self._known[number]
        self._queue.put(work)
        return work

    def work(self, number: int) -> Work:
        """What was started under a number.

        Raises:
            SDCError: it was never, or so long ago that its answer is gone.
        """
        found = self._known.get(number)
        if found is None:
            raise SDCError("this answer is gone: the desk keeps the last ones only; click for it again")
        return found

    def first_before(self, work: Work) -> Work | None:
        """What it waits for."""
        running = self.running
        return None if running is work else running

    def progress(self, share: float) -> None:
        """What the house says of how far long work is; called from any thread."""
        running = self.running
        if running is not None:
            running.share = share

    def stop(self, work: Work, *, patience: float = 2.0) -> None:
        """Interrupt it, or take it out of the queue; it may take its time to notice."""
        work.wanted = False
        for _ in range(int(patience / _AGAIN)):
            if self.running is work:
                self._con.interrupt()
            if work.state == "waiting" or work.over.wait(_AGAIN):
                return

    def close(self) -> None:
        """Stop everything, and wait until the thread has ended."""
        for work in list(self._known.values()):
            work.wanted = False
        self._queue.put(None)
        while self._thread.is_alive():
            if self.running is not None:
                self._con.interrupt()
            self._thread.join(_AGAIN)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            if work.wanted:
                self._do(work)
            else:
                work.state = "stopped"
            work.over.set()

    def _do(self, work: Work) -> None:
        self.running, work.state = work, "running"
        state: State
        try:
            work.answer = _rows(self._con, work.statement)
            state = "done"
            if work.writes:
                self.written.append(Written(datetime.now(UTC), work.title, work.statement, work.tables, work.makes))
        except Exception as problem:  # it belongs to whoever clicked, and the thread goes on
            state = "failed" if work.wanted else "stopped"
            work.problem = words_of(problem)
        finally:
            self.running = None
        work.state = state


def words_of(problem: Exception) -> str:
    """What an error says to its reader: the house's words, without the place in the statement."""
    if not isinstance(problem, SDCError | duckdb.Error):
        return f"the desk cannot go on with this ({type(problem).__name__}); what was stored before is as it was"
    return str(problem).split("\n\nLINE ")[0].strip()


def started(worker: Worker, work: Work, *, patience: float) -> Work:
    """Started, and over already where it is short."""
    worker.start(work).over.wait(patience)
    return work


def _rows(con: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    """The rows of a statement, which is over then."""
    if duckdb.__version__.startswith("1."):
        return con.execute(statement).to_arrow_table()
    con.abort()  # what was not fetched of an earlier answer, as `execute` does
    return con.sql(statement).to_arrow_table()
