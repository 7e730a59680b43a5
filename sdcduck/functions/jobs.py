"""Long work of a statement: done in a thread of its own, stopped with the statement, and able to say how far it is.

DuckDB notices an interruption between the chunks that flow through a statement, never while Python computes one. So
the statement asks again and again whether the work is done (`Work.wait`), and DuckDB gets its turn in between. It does
not say when a statement ended early; the work notices because nobody asks for it any more (`Work._watch`). Then it ends
at its next checkpoint, and the statements that it asks itself are interrupted (`reads`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ReferenceType, WeakSet, ref

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

SILENCE = 1.0
"""Seconds without a question after which the work asks itself whether anybody still waits."""
PATIENCE = 5.0
"""Seconds that it then waits for a question, at least: a busy machine may keep DuckDB from asking for long."""
_GONE_SILENCE, _GONE_PATIENCE = 0.1, 1.0
"""The same where DuckDB has let go of the last answer: it does so before it asks again, or when all is over."""
_TURNS = 30
"""Patience is counted in turns: what keeps DuckDB from asking, a long computation say, makes them as long."""
_STALE = 10.0
_AGAIN = 0.02
"""Seconds between two interruptions of a statement: one that comes between two statements is lost."""

Show = Callable[[float], object]


class Stopped(Exception):
    """The statement that wanted the work ended."""


class Display(Protocol):
    """Shows the share of the work that is done, rising from 0 to 1."""

    closed: bool

    def __call__(self, share: float) -> None: ...

    def close(self) -> None:
        """The work is over, at whatever share."""


def _progress(console: Console | None) -> Progress:
    # Loaded when the first line is shown: most processes show none, and it takes a tenth of a second.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        console=console or Console(stderr=True), transient=True, auto_refresh=False, speed_estimate_period=60,
    )  # fmt: skip


class Bar:
    """A line on the terminal with the share done and the time left, for work of more than two seconds."""

    def __init__(self, title: str, *, console: Console | None = None, after: float = 2.0) -> None:
        self._began, self._after, self._title = perf_counter(), after, title
        self._console = console
        self._bar: Progress | None = None
        self._task: Any = None
        self.closed = False

    def __call__(self, share: float) -> None:
        if self._bar is None:
            if perf_counter() - self._began < self._after or share >= 1:
                return
            self._bar = _progress(self._console)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=1.0)
        self._bar.update(self._task, completed=share, refresh=True)

    def close(self) -> None:
        """Takes the line away."""
        self.closed = True
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Report:
    """Hands the share of the work done to a function that the user gave."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self.closed = False

    def __call__(self, share: float) -> None:
        self._show(share)

    def close(self) -> None:
        """Nothing to take away."""
        self.closed = True


class Work:
    """The making of one table for a statement."""

    def __init__(self, make: Callable[[], pa.Table], display: Display | None = None) -> None:
        self._make, self._display = make, display
        self._share = -1.0
        self._portion = (0.0, 1.0)
        self._done, self._heard = threading.Event(), threading.Event()
        self._last_heard = monotonic()
        self._stopped = self._awaited = False
        self.shared = self.handed_out = False  # whether several rows of a statement ask for it; whether one has it
        self._table: pa.Table | None = None
        self._problem: BaseException | None = None
        self._answer: ReferenceType[NDArray[np.int64]] | None = None
        self._reading: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()
        # The interpreter waits for the threads at its end: a database must not vanish under them.
        for target in (self._run, self._watch):
            threading.Thread(target=target, name="sdcduck", daemon=False).start()

    def _run(self) -> None:
        _CURRENT.set(self)
        try:
            self._table = self._make()
        except BaseException as problem:  # it belongs to the statement, which asks for it in `result`
            self._problem = problem
        finally:
            if self._display is not None:
                self._display.close()
            self._done.set()

    def _watch(self) -> None:
        """Stops the work when nobody waits for it any more, and whatever it reads with it."""
        while not self._done.wait(_GONE_SILENCE / 2):
            if self._stopped or self._deserted():
                self._stopped = True
                while not self._done.wait(_AGAIN):
                    for cursor in list(self._reading):
                        with suppress(duckdb.Error):  # it is closed
                            cursor.interrupt()

    def _deserted(self) -> bool:
        """Whether nobody asks for the work; whoever is kept from it by a long computation gets their time here."""
        gone = self._answer is not None and self._answer() is None
        silence, patience = (_GONE_SILENCE, _GONE_PATIENCE) if gone else (SILENCE, PATIENCE)
        if self._awaited or monotonic() - self._last_heard < silence:
            return False
        self._heard.clear()
        turns = (self._heard.wait(patience / _TURNS) or self._done.is_set() for _ in range(_TURNS))
        return not any(turns) and not self._awaited

    def read_by(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """The statements of this cursor are interrupted with the work."""
        if self._stopped:
            raise Stopped
        self._reading.add(cursor)

    def wait(self, seconds: float) -> bool:
        """Wait so long for the end of the work; True when it is over."""
        self._last_heard = monotonic()
        self._heard.set()
        return self._done.wait(seconds)

    def answered(self, answer: NDArray[np.int64]) -> None:
        """What DuckDB was told: it holds on to it while it does other work with it, not when the statement is over."""
        self._answer = ref(answer)

    def stop(self) -> None:
        """Ask the work to end at its next checkpoint."""
        self._stopped = True

    def result(self) -> pa.Table:
        """The table, once the work is over; raises what the work raised, `Stopped` at once if it was stopped."""
        if self.stopped:
            raise Stopped
        self._awaited = True
        self._done.wait()
        if self._problem is not None:
            raise self._problem
        return self._table

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end before it was done."""
        return self._stopped and self._table is None

    @property
    def over(self) -> bool:
        """Whether it ended, by itself or not."""
        return self._done.is_set()

    @property
    def forsaken(self) -> bool:
        """Whether it was stopped, or nobody has asked for so long that its result is stale."""
        return self.stopped or monotonic() - self._last_heard > _STALE

    def check(self) -> None:
        """Raises `Stopped` when nobody waits any more."""
        if self._stopped:
            raise Stopped

    def confirm(self) -> None:
        """Waits until somebody asks for the work; raises `Stopped` when nobody does."""
        self._heard.clear()
        while not self._awaited and not self._heard.wait(_AGAIN):
            self.check()
        self.check()

    def portion(self, begin: float, end: float) -> None:
        """The step that begins is this portion of all."""
        self._portion = (begin, end)

    def show(self, done: int, total: int) -> None:
        """Shows the share done; it never falls."""
        begin, end = self._portion
        share = begin + (end - begin) * (done / total if total else 1.0)
        if self._display is not None and share > self._share:
            self._share = share
            self._display(share)


_CURRENT: ContextVar[Work | None] = ContextVar("sdcduck_work", default=None)


def checkpoint() -> Callable[..., None]:
    """A function to call several times a second in long work, with any arguments: it ends work nobody waits for."""
    work = _CURRENT.get()
    if work is None:
        return lambda *_: None

    def check(*_: object) -> None:
        work.check()

    return check


def shown_checkpoint() -> Callable[[int, int], None]:
    """As `checkpoint`, to be called with what is done and what there is to do, which are shown as a share."""
    work = _CURRENT.get()
    if work is None:
        return lambda done, total: None

    def check(done: int, total: int) -> None:
        work.check()
        work.show(done, total)

    return check


def portion(begin: float, end: float) -> None:
    """What is shown from now on as done is done of this portion of the work, which has several steps."""
    work = _CURRENT.get()
    if work is not None:
        work.portion(begin, end)


def reads(cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor whose statements are interrupted with the work that it was made in, if it was. It must not write."""
    work = _CURRENT.get()
    if work is not None:
        work.read_by(cursor)
    return cursor


def confirm() -> None:
    """Call before something that lasts: it raises `Stopped` unless somebody waits for the work now."""
    work = _CURRENT.get()
    if work is not None:
        work.confirm()
