"""The end of the interpreter: no thread of DuckDB may be inside a Python function then.

A statement that is read as a stream goes on in DuckDB's own threads until its buffer is full. Where one of these calls
Python while the interpreter ends, the process aborts (``PyGILState_Release``). So at the end the statements are
interrupted, functions refuse to be called, and what is still inside them is waited for. So is any other thread that
runs or waits for a processor: it may be on its way into one, which on a busy machine takes as long as it takes.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import duckdb

from sdcduck.errors import SDCError

QUIET = 0.05
"""Seconds without a call after which no thread is taken to be on its way to one."""
_PATIENCE = 10.0
"""Seconds that calls are waited for."""
_RUNNING = 2.0
"""Seconds that other threads are waited for: a program may have one that has nothing to do with DuckDB."""
_TASKS = Path("/proc/self/task")
_TURN = 0.005


class Calls:
    """The calls of Python functions that are under way, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._last = 0.0
        self._over = False
        self._connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()

    def watch(self, con: duckdb.DuckDBPyConnection) -> None:
        """Interrupt the statements of this connection at the end."""
        self._connections.add(con)

    def counted(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function, which is refused once the end has begun."""

        def call(*arguments: object) -> object:
            with self._lock:
                if self._over:
                    self._last = monotonic()
                    raise SDCError("the program has ended")
                self._inside += 1
            try:
                return function(*arguments)
            finally:
                with self._lock:
                    self._inside -= 1
                    self._last = monotonic()

        return call

    def end(self) -> None:
        """Refuse further calls, and come back when there are none."""
        with self._lock:
            self._over = True
            self._last = began = monotonic()
        for con in list(self._connections):
            with suppress(duckdb.Error):
                con.interrupt()
        while monotonic() - began < _PATIENCE:
            with self._lock:
                if monotonic() - began < _RUNNING and others_run():
                    self._last = monotonic()
                if not self._inside and monotonic() - self._last > QUIET:
                    return
            sleep(_TURN)


def others_run() -> bool:
    """Whether another thread runs, or waits for a processor or a disk; not known where the system does not tell."""
    own = str(threading.get_native_id())
    for task in _TASKS.glob("*/stat"):
        with suppress(OSError):  # it has just ended
            if task.parent.name != own and task.read_text().rpartition(")")[2].split()[0] in "RD":
                return True
    return False


CALLS = Calls()
atexit.register(CALLS.end)
