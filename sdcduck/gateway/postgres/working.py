"""What blocks, done in threads beside the event loop: for so long as a statement may run, and no longer than wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sdcduck.gateway.postgres import errors
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.portals import Portal
from sdcduck.guard import Refused

T = TypeVar("T")
_AGAIN = 0.05


class Stoppable(Protocol):
    """What runs, and may be stopped from any thread."""

    def interrupt(self, *, late: bool = False) -> None:
        """Stop; to be called again until what runs has ended."""


class Work:
    """The work of one session, one piece at a time; it can be stopped from outside.

    Args:
        seconds: that a statement may run, at the time it begins.
    """

    def __init__(self, threads: Executor, seconds: Callable[[], float]) -> None:
        self._threads, self._seconds = threads, seconds
        self._running: Stoppable | None = None
        self._stop: PostgresError | None = None
        self._busy = False

    @property
    def busy(self) -> bool:
        """Whether a message is being answered."""
        return self._busy

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While a message is being answered; what was stopped before is forgotten."""
        self._busy, self._stop = True, None
        try:
            yield
        finally:
            self._busy = False

    def stop(self, why: PostgresError) -> None:
        """Stop what runs now, if anything does."""
        if self._busy:
            self._stop = why
            self._interrupt(late=False)

    def aside(self, work: Callable[[], None]) -> None:
        """Do something that nobody waits for."""
        self._threads.submit(work)

    async def do(self, portal: Portal | None, work: Callable[[], T], *, beside: Stoppable | None = None) -> T:
        """Do what blocks, for so long as a statement may run.

        Args:
            beside: what is stopped where there is no portal.

        Raises:
            PostgresError: it failed, was stopped or took too long.
        """
        if self._stop is not None:
            raise self._stop
        loop = asyncio.get_running_loop()
        self._running = beside if portal is None else portal.answer
        left = self._seconds() - (0.0 if portal is None else portal.seconds)
        watch = loop.call_later(max(left, 0.001), self._too_long)
        start = time.perf_counter()
        try:
            return await loop.run_in_executor(self._threads, work)
        except Refused as refused:
            raise self._stop or errors.of_refusal(refused) from None
        except PostgresError:
            raise
        except Exception as problem:  # a fault of ours: the kind of it, and nothing that may hold data
            raise self._stop or PostgresError("XX000", f"internal error ({type(problem).__name__})") from None
        finally:
            watch.cancel()
            self._running = None
            if portal is not None:
                portal.seconds += time.perf_counter() - start

    def _too_long(self) -> None:
        late = self._stop is None
        self._stop = self._stop or errors.of_refusal(Refused("SDC091"))
        self._interrupt(late)

    def _interrupt(self, late: bool) -> None:
        """Interrupt what runs: again and again, for an interruption between planning and running is lost."""
        if self._running is not None:
            self._interrupt_this(self._running, late)

    def _interrupt_this(self, answer: Stoppable, late: bool) -> None:
        if self._running is answer:
            answer.interrupt(late=late)
            asyncio.get_running_loop().call_later(_AGAIN, self._interrupt_this, answer, late)
