"""What runs: watched from outside, for the calls themselves are busy waiting for the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pyarrow as pa

from sdcduck.gateway.answers import Answer, First, Parameters
from sdcduck.gateway.events import note
from sdcduck.guard import Refused

_OFTEN, _SELDOM = 0.05, 1.0
_Columns = TypeVar("_Columns")


class Cancelled(Exception):
    """Whoever asked does not want the answer any more, or the gateway stops."""


class Stoppable(Protocol):
    """What works for somebody, and may be stopped from any thread."""

    def interrupt(self, *, late: bool = False) -> None:
        """Stop; to be called again until it has ended."""


class Watched(Protocol):
    """What a `Watch` looks after: what works, for how many seconds yet, and why it was stopped."""

    left: float
    stopped: Refused | Cancelled | None

    @property
    def answer(self) -> Stoppable:
        """What works."""


@dataclass(eq=False)
class Describing:
    """Columns that somebody asks for; those of a PIVOT are values, for which another question is asked first."""

    left: float
    answer: First = field(default_factory=First)
    stopped: Refused | Cancelled | None = None

    def columns(self, watch: Watch, gone: Callable[[], bool], ask: Callable[[First], _Columns]) -> _Columns:
        """What `ask` answers, which tells the question that is asked first.

        Raises:
            Refused: there are none.
            Cancelled: nobody wants them.
        """
        try:
            with watch.over(self, gone):
                return ask(self.answer)
        except Refused:
            if self.stopped is not None:
                raise self.stopped from None
            raise


@dataclass(eq=False)
class Running:
    """An answer, from the question to the last row.

    Attributes:
        owner: the token of whoever asked.
        left: seconds for which it may still work.
        since: when something was last done with it.
        given_back: whether its slot is free again.
    """

    answer: Answer
    owner: str
    left: float
    since: float
    give_back: Callable[[], None]
    rows: int = 0
    stopped: Refused | Cancelled | None = None
    _closed: bool = False
    _alone: threading.Lock = field(default_factory=threading.Lock)
    _reader: threading.Lock = field(default_factory=threading.Lock)

    @property
    def taken(self) -> bool:
        """Whether somebody reads it."""
        return self._reader.locked()

    def take(self) -> bool:
        """Begin to read it; whether nobody else has: of two who come at once, each would have some of the rows."""
        return self._reader.acquire(blocking=False)

    def close(self) -> None:
        """Give back what it holds; once the work that is being done on it has ended."""
        with self._alone:
            self._close()

    def close_if_idle(self) -> None:
        """Give back what it holds, unless work is being done on it."""
        if self._alone.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._alone.release()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            with suppress(Refused):  # a log that cannot be written: the rows that were read had their line before
                self.answer.close()
        finally:
            self.give_back()

    def ask(self, watch: Watch, gone: Callable[[], bool], parameters: Parameters) -> None:
        """Run up to the first rows.

        Raises:
            Refused: there is no answer.
            Cancelled: nobody wants it.
        """
        with self._working(watch, gone):
            self.answer.ask(parameters)

    def read(self, watch: Watch, gone: Callable[[], bool]) -> pa.RecordBatch | None:
        """The next rows; None: there are no more.

        Raises:
            Refused: it failed while it ran.
            Cancelled: nobody wants it.
        """
        with self._working(watch, gone):
            return self.answer.read()

    @contextmanager
    def _working(self, watch: Watch, gone: Callable[[], bool]) -> Iterator[None]:
        with self._alone:
            if self._closed:
                raise Cancelled
            if self.stopped is not None:
                raise self.stopped
            start = time.monotonic()
            try:
                with watch.over(self, gone):
                    yield
            except Refused:
                if self.stopped is not None:
                    raise self.stopped from None
                raise
            finally:
                self.since = time.monotonic()
                self.left -= self.since - start


class Watch:
    """A thread that interrupts what runs too long or for nobody, again and again: an interruption may be lost.

    Args:
        seldom: what is to be done about once a second.
    """

    def __init__(self, seldom: Callable[[], None]) -> None:
        self._seldom = seldom
        self._busy: dict[Watched, tuple[float, Callable[[], bool]]] = {}
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="sdcduck-flight-watch", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, running: Watched, gone: Callable[[], bool]) -> Iterator[None]:
        """Watch while something runs.

        Args:
            gone: whether whoever asked is gone.
        """
        with self._changed:
            self._busy[running] = (time.monotonic() + running.left, gone)
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:  # so that nothing is interrupted that comes after
                del self._busy[running]

    @property
    def busy(self) -> int:
        """How many run."""
        return len(self._busy)

    def stop_all(self) -> None:
        """Interrupt everything."""
        with self._changed:
            for running in self._busy:
                running.stopped = running.stopped or Cancelled()

    def close(self, seconds: float) -> None:
        """End, once nothing runs, or after so long."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        swept = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait(_OFTEN if self._busy else _SELDOM)
                if self._over and not self._busy:
                    return
                now = time.monotonic()
                for running, (until, gone) in self._busy.items():
                    _unharmed(lambda: self._look_at(running, until, gone, now))  # noqa: B023
            if now - swept >= _SELDOM:
                swept = now
                _unharmed(self._seldom)

    def _look_at(self, running: Watched, until: float, gone: Callable[[], bool], now: float) -> None:
        if running.stopped is None:
            if now > until:
                running.stopped = Refused("SDC091")
            elif gone():
                running.stopped = Cancelled()
        if running.stopped is not None:
            running.answer.interrupt(late=isinstance(running.stopped, Refused))


def _unharmed(work: Callable[[], None]) -> None:
    """Do something, and go on whatever becomes of it: without the watch nothing would ever be stopped."""
    try:
        work()
    except Exception as problem:
        note("failed", kind=type(problem).__name__)
