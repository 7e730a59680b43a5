"""Waiting for an answer: with the seconds on the terminal, and Ctrl-C, which stops the question and not the shell."""

from __future__ import annotations

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
    threading.Thread(target=_do, args=(work, future), name="sdcduck shell", daemon=True).start()
    start, turn, stopped, drawn = time.monotonic(), 0, False, False
    try:
        while not future.done():
            try:
                with suppress(TimeoutError):
                    future.exception(_PAUSE)
                seconds = time.monotonic() - start
                if show and not future.done() and seconds > _SILENT:
                    drawn, turn = True, turn + 1
                    said = "stopping" if stopped else "Ctrl-C stops it"
                    sys.stderr.write(f"\r{_TURN[turn % len(_TURN)]} {seconds:.0f} s, {said}\x1b[K")
                    sys.stderr.flush()
            except KeyboardInterrupt:
                stopped = True
            if stopped and not future.done():
                with suppress(Exception):  # the question may have ended by itself, or the gateway be gone
                    stop()
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    if stopped:
        with suppress(SDCError):
            future.result()
        raise Cancelled
    return future.result()


def _do(work: Callable[[], _T], future: Future[_T]) -> None:
    try:
        future.set_result(work())
    except BaseException as problem:  # it belongs to whoever waits
        future.set_exception(problem)
