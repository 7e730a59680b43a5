"""Long work of a statement: done in a thread of its own, stopped with the statement, and able to say how far it is.

DuckDB notices an interruption between the chunks that flow through a statement, never while Python computes one. So
the statement asks again and again whether the work is done (`Work.wait`), and DuckDB gets its turn in between. It does
not say when a statement ended early; the work notices because nobody asks for it any more (`checkpoint`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import Any, Protocol

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

SILENCE = 1.0
"""Seconds without a question after which the work asks itself whether anybody still waits."""
PATIENCE = 5.0
"""Seconds that it then waits for a question: a busy machine may keep DuckDB from asking for long."""

Show = Callable[[float], object]


class Stopped(Exception):
    """The statement that wanted the work ended."""


class Display(Protocol):
    """Shows the share of the work that is done, rising from 0 to 1."""

    closed: bool

    def __call__(self, share: float) -> None: ...

    def close(self) -> None:
        """The work is over, at whatever share."""


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
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
                console=self._console or Console(stderr=True), transient=True, auto_refresh=False,
                speed_estimate_period=60,
            )  # fmt: skip
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
        self._done, self._heard = threading.Event(), threading.Event()
        self._last_heard = monotonic()
        self._stopped = self._awaited = False
        self._table: pa.Table | None = None
        self._problem: BaseException | None = None
        # The interpreter waits for the thread at its end: a database must not vanish under it.
        threading.Thread(target=self._run, name="sdcduck", daemon=False).start()

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

    def wait(self, seconds: float) -> bool:
        """Wait so long for the end of the work; True when it is over."""
        self._last_heard = monotonic()
        self._heard.set()
        return self._done.wait(seconds)

    def stop(self) -> None:
        """Ask the work to end at its next checkpoint."""
        self._stopped = True

    def result(self) -> pa.Table:
        """The table, once the work is over; raises what the work raised, `Stopped` at once if it was stopped."""
        if self._stopped:
            raise Stopped
        self._awaited = True
        self._done.wait()
        if self._problem is not None:
            raise self._problem
        return self._table

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end before it was done."""
        return self._stopped

    @property
    def forsaken(self) -> bool:
        """Whether it was stopped, or nobody has asked for so long that its result is stale."""
        return self._stopped or monotonic() - self._last_heard > 10 * SILENCE

    def check(self) -> None:
        """Raises `Stopped` when nobody waits any more."""
        if not self._stopped and not self._awaited and monotonic() - self._last_heard > SILENCE:
            self.confirm()
        if self._stopped:
            raise Stopped

    def confirm(self) -> None:
        """Waits until somebody asks for the work; raises `Stopped` when nobody does.

        Whoever asks may have been kept from it by a long computation: they get their time here.
        """
        self._heard.clear()
        if not self._stopped and (self._awaited or self._heard.wait(PATIENCE) or self._awaited):
            return
        self._stopped = True
        raise Stopped

    def show(self, done: int, total: int) -> None:
        """Shows the share done; it never falls."""
        share = done / total if total else 1.0
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


def confirm() -> None:
    """Call before something that lasts: it raises `Stopped` unless somebody waits for the work now."""
    work = _CURRENT.get()
    if work is not None:
        work.confirm()
