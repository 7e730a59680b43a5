"""Nothing of a query is printed: sqlglot writes remarks with parts of the text to its logger, and so to stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_AT_WORK: ContextVar[bool] = ContextVar("sdcduck_guard_at_work", default=False)


def _is_of_others(record: logging.LogRecord) -> bool:
    return not _AT_WORK.get()


logging.getLogger("sqlglot").addFilter(_is_of_others)


@contextmanager
def without_logging() -> Iterator[None]:
    """Drop what sqlglot remarks in here; what it tells other threads and the rest of the program is as ever."""
    before = _AT_WORK.set(True)
    try:
        yield
    finally:
        _AT_WORK.reset(before)
