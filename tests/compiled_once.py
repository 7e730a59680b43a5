"""Where several workers of the tests need a kernel that was not compiled yet, one compiles it and the others wait.

On a fresh clone they would all compile the same ones at the same time, as long as the file with the compiled kernel is
not there: a third of what is spent on that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where each compiles its own
    fcntl = None  # type: ignore[assignment]

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


def wait_for_each_other() -> None:
    """Have this process compile no kernel while another one does."""
    alone = Dispatcher.compile

    def compile_(self: Any, signature: object) -> object:
        folder = self._cache.cache_path  # None: nothing of it is kept
        if folder is None or fcntl is None:
            return alone(self, signature)
        # A thread that compiles one kernel needs those that it calls, too: so the process's own lock comes first.
        with global_compiler_lock, (Path(folder) / f"{self._cache._impl.filename_base}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return alone(self, signature)

    Dispatcher.compile = compile_
