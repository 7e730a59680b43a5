"""Waiting for an answer: with the seconds on the terminal, and Ctrl-C, which stops the question and not the shell."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from sdcduck.errors import SDCError

_T = TypeVar("_T")
_TURN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PAUSE = 0.1
_SILENT = 1.0


class Cancelled(Exception):
    """The user stopped the question."""


def wait(work: Callable[[], _T], stop: Callable[[], None], *, show: bool) -> _T:
    """What `work` returns or raises, done in another thread.

    Args:
        stop: called after Ctrl-C, again and again: an interruption between planning and running is lost.
        show: whether the seconds are shown on standard error.

    Raises:
        Cancelled: after Ctrl-C.
    """
    future: Future[_T] = Future()
    stopped = threading.Event()
    # No exception may come between: whoever leaves here while the question runs would close it under way.
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        threading.Thread(target=_do, args=(work, future), name="sdcduck shell", daemon=True).start()
        _watch(future, stopped, stop, show=show)
    finally:
        signal.signal(signal.SIGINT, before)
    if stopped.is_set():
        with suppress(SDCError):
            future.result()
        raise Cancelled
    return future.result()


def _watch(future: Future[_T], stopped: threading.Event, stop: Callable[[], None], *, show: bool) -> None:
    """Until it is done."""
    start, turn = time.monotonic(), 0
    while not future.done():
        with suppress(TimeoutError):
            future.exception(_PAUSE)
        if future.done():
            break
        if stopped.is_set():
            with suppress(Exception):  # the question may have ended by itself, or the gateway be gone
                stop()
        seconds = time.monotonic() - start
        if show and seconds > _SILENT:
            turn += 1
            said = "stopping" if stopped.is_set() else "Ctrl-C stops it"
            sys.stderr.write(f"\r{_TURN[turn % len(_TURN)]} {seconds:.0f} s, {said}\x1b[K")
            sys.stderr.flush()
    if turn:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _do(work: Callable[[], _T], future: Future[_T]) -> None:
    try:
        future.set_result(work())
    except BaseException as problem:  # it belongs to whoever waits
        future.set_exception(problem)
