"""Linear algebra on one thread: a question costs so little that threads wait for each other longer than they work.

How many threads BLAS has is a number of the whole process. It is 1 while somebody works in here, one at a time, and put
back at the end: others who multiply meanwhile have one thread, too, and the same results. Where somebody else limits
threads just then (`threadpoolctl` has one at a time), theirs is the number.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

from sdcduck.methods.numerics import scipy

_alone = threading.RLock()


@cache
def _libraries() -> ThreadpoolController:
    """Those of BLAS in this process, found once: it takes some milliseconds."""
    scipy.linalg.norm([1.0])  # which is loaded on first use, with a library of its own
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS works on one thread in here; also a decorator.

    >>> with one_thread():
    ...     threads()
    {1}
    """
    with _alone, _libraries().limit(limits=1):
        yield


def threads() -> set[int]:
    """How many threads each BLAS has now."""
    return {library["num_threads"] for library in _libraries().info()}
