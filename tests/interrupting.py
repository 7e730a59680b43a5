"""Stopping a statement that runs, whatever else the machine is busy with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def again_and_again(stop: Callable[[], object], begun: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Stop the statement of the block, from when it has begun until the block is over.

    A single interruption can come between two steps of a statement, or before the first, and be forgotten: the
    statement would then never end.

    Args:
        stop: as ``con.interrupt``, or the ``cancel`` of a client.
        begun: whether the statement has come as far as it should.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            if begun():
                stop()
                over.wait(0.5)

    other = threading.Thread(target=watch)
    other.start()
    try:
        yield
    finally:
        over.set()
        other.join()
