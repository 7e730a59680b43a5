"""The audit log: one line for every question, each chained to the one before by a hash.

A line that was changed, removed or put in later breaks the chain. Who can write the whole file can write a new chain,
and lines missing at the end are seen only by those who were writing: keep a copy of the last hash elsewhere.

Lines are JSON in ASCII, so that any text a question may be can be written. Several guards, in one process or in many,
may write to one log: each write holds a lock on the file and first verifies what the others appended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path
from types import ModuleType
from typing import Any

from sdcduck.errors import SDCError

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None

_SECONDS_FOR_LOCK = 10.0
_BETWEEN_TRIES = 0.005


@dataclass(frozen=True)
class _Place:
    """A place between two lines of a log: bytes and lines before it, and the hash of the last of them."""

    offset: int = 0
    number: int = 0
    hash: str = "0" * 64


class AuditLog:
    """An append-only file of JSON lines.

    Raises:
        SDCError: the file cannot be written, or its chain is broken.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._threads = threading.Lock()
        try:
            self.path.touch(mode=0o600, exist_ok=True)
            with _opened(self.path, writing=True) as file:
                self._before, self._last = _verified(file, _Place(), _Place())
            self._text = b""
        except OSError as problem:
            raise SDCError(f"the audit log cannot be written: {problem.strerror or problem}") from None

    def write(self, **entry: Any) -> None:
        """Append a line, on disk before it returns.

        Raises:
            OSError: it could not be written, or what others did to the file does not follow from what was there; then
                the question must not be answered.
        """
        with self._threads, _opened(self.path, writing=True) as file:
            try:
                last = self._last if self._is_ours(file) else _verified(file, self._before, self._last)[1]
            except SDCError as problem:
                raise OSError(str(problem)) from None
            line = {
                "number": last.number + 1,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **entry,
                "previous": last.hash,
            }
            line["hash"] = _hash(line)
            text = _text(line)
            _append(file, last.offset, text)
            self._before, self._last = last, _Place(last.offset + len(text), last.number + 1, line["hash"])
            self._text = text

    def _is_ours(self, file: FileIO) -> bool:
        """Whether the file ends with the line that was written last, to the letter: nothing is to be verified."""
        if not self._text or os.fstat(file.fileno()).st_size != self._last.offset:
            return False
        file.seek(self._before.offset)
        return file.read(len(self._text)) == self._text


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a log, after a look at all of the chain.

    Raises:
        SDCError: the chain is broken, with the line where it breaks.
        OSError: the file cannot be read.
    """
    lines: list[dict[str, Any]] = []
    with _opened(Path(path), writing=False) as file:
        _verified(file, _Place(), _Place(), lines)
    return lines


def verify_log(path: str | Path) -> tuple[int, str]:
    """The number of lines of a log and its last hash.

    Raises:
        SDCError: the chain is broken, with the line where it breaks.
        OSError: the file cannot be read.
    """
    with _opened(Path(path), writing=False) as file:
        last = _verified(file, _Place(), _Place())[1]
    return last.number, last.hash


def _verified(
    file: FileIO, before: _Place, known: _Place, lines: list[dict[str, Any]] | None = None
) -> tuple[_Place, _Place]:
    """The places before and after the last line of a file, when all lines from a place on follow from it.

    Args:
        before: the place to begin at; one line before `known`, to see that nobody wrote over the last line.
        known: a place that the lines must come by.
        lines: where the lines are put.
    """
    if os.fstat(file.fileno()).st_size < known.offset:
        raise SDCError(f"the audit log was changed: it had {known.number} lines, and some of them are gone")
    file.seek(before.offset)
    last = before
    passed = last == known
    # A bare FileIO asks the system for one byte at a time to find the end of a line.
    buffered = BufferedReader(file)
    try:
        for text in buffered:
            line = _followed(last, text)
            if line is None:
                raise SDCError(
                    f"the audit log was changed: line {last.number + 1} does not follow from the lines before it"
                )
            before, last = last, _Place(last.offset + len(text), last.number + 1, line["hash"])
            passed = passed or last == known
            if lines is not None:
                lines.append(line)
    finally:
        buffered.detach()
    if not passed:
        raise SDCError(f"the audit log was changed: line {known.number} is not the one that was written")
    return before, last


def _followed(last: _Place, text: bytes) -> dict[str, Any] | None:
    """The line that a text holds, if it follows from the last one: to the letter as it would have been written."""
    try:
        line = json.loads(text)
        good = line["previous"] == last.hash and line["number"] == last.number + 1 and line["hash"] == _hash(line)
        return line if good and _text(line) == text else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _hash(line: dict[str, Any]) -> str:
    kept = {key: value for key, value in line.items() if key != "hash"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _text(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _append(file: FileIO, end: int, text: bytes) -> None:
    """Write a text at the end, whole and on disk, or leave the file as it was."""
    try:
        file.seek(end)
        written = 0
        while written < len(text):
            written += file.write(text[written:]) or 0
        os.fsync(file.fileno())
    except BaseException:
        file.truncate(end)
        raise


@contextlib.contextmanager
def _opened(path: Path, *, writing: bool) -> Iterator[FileIO]:
    """The file, locked: alone to write it, together with others to read it.

    Where the system has no locks on files, whoever writes holds a second file; it stays behind when a process dies, and
    then nothing is written until somebody takes it away.
    """
    beside = path.with_name(path.name + ".lock")
    with FileIO(path, "r+" if writing else "r") as file:
        if _fcntl is not None:
            # Closing the file gives the lock back.
            kind = _fcntl.LOCK_EX if writing else _fcntl.LOCK_SH
            _tried(lambda: _fcntl.flock(file.fileno(), kind | _fcntl.LOCK_NB), BlockingIOError)
        elif writing:
            _tried(lambda: os.close(os.open(beside, os.O_CREAT | os.O_EXCL, 0o600)), FileExistsError)
        try:
            yield file
        finally:
            if _fcntl is None and writing:
                beside.unlink()


def _tried(take: Callable[[], None], taken: type[OSError]) -> None:
    """Take a lock as soon as it is free, within a time."""
    until = time.monotonic() + _SECONDS_FOR_LOCK
    while True:
        try:
            take()
            return
        except taken:
            if time.monotonic() > until:
                raise TimeoutError("another process holds the lock") from None
            time.sleep(_BETWEEN_TRIES)
