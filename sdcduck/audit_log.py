"""The audit log: one line for every question, each chained to the one before by a hash.

A line that was changed, removed or put in later breaks the chain. A small file beside the log, ``<log>.last``, holds
number and hash of its last line, so that lines cut off at the end, or the whole log, are missed too. It is written
after the line and not forced to the disk, so it may be behind the log after a crash, and never ahead of it: a log is
whole if it goes through the line that the file names. A log from before there was such a file, or one whose file was
removed, is taken to end where it ends, and gets one when a guard opens it. Log and file belong together: move both or
none. Who can write both files can write both anew: keep a copy of the last hash elsewhere.

Lines are JSON in ASCII, so that any text a question may be can be written. Several guards, in one process or in many,
may write to one log: each write holds a lock on the file and first verifies what the others appended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from sdcduck.errors import SDCError

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None

_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows
_SECONDS_FOR_LOCK = 10.0
_BETWEEN_TRIES = 0.005


@dataclass(frozen=True)
class _Mark:
    """A line of a log, or its beginning: number and hash."""

    number: int = 0
    hash: str = "0" * 64

    def text(self) -> bytes:
        """As it stands beside the log: always as long, so that it is written over in one piece."""
        return f"{self.number:20d} {self.hash}\n".encode()


@dataclass(frozen=True)
class _Place:
    """A place between two lines of a log: the bytes before it, and the last line before it."""

    offset: int = 0
    mark: _Mark = _Mark()


class AuditLog:
    """An append-only file of JSON lines.

    Raises:
        SDCError: the file cannot be written, or its chain is broken.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._beside = _beside(self.path)
        self._threads = threading.Lock()
        try:
            ends = _marked(self.path)
            if ends is not None and ends.number and not self.path.exists():
                _refuse_lost(ends)
            self.path.touch(mode=0o600, exist_ok=True)
            with _opened(self.path, writing=True) as file:
                ends = _marked(self.path)
                self._before, self._last = _verified(file, _Place(), [] if ends is None else [ends])
                if ends is None:
                    self._beside.touch(mode=os.fstat(file.fileno()).st_mode & 0o666, exist_ok=True)
                if ends != self._last.mark:
                    self._mark_first()
            self._text = self._marks = b""
        except OSError as problem:
            raise SDCError(f"the audit log cannot be written: {problem.strerror or problem}") from None

    def _mark_first(self) -> None:
        """Note the last line, on disk: from here on the file beside the log is only ever written over."""
        with _held(self._beside) as beside:
            _write_over(beside, self._last.mark.text())
            os.fsync(beside)

    def write(self, **entry: Any) -> None:
        """Append a line, on disk before it returns.

        Raises:
            OSError: it could not be written, or what others did to the file does not follow from what was there; then
                the question must not be answered.
        """
        with self._threads, _opened(self.path, writing=True) as file, _held(self._beside) as beside:
            marked = os.read(beside, _LONGEST_MARK)
            try:
                last = self._last if self._is_ours(file, marked) else self._followed(file, marked)
            except SDCError as problem:
                raise OSError(str(problem)) from None
            line = {
                "number": last.mark.number + 1,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **entry,
                "previous": last.mark.hash,
            }
            line["hash"] = _hash(line)
            text = _text(line)
            mark = _Mark(last.mark.number + 1, line["hash"])
            marks = mark.text()
            try:
                _append(file, last.offset, text)
                _write_over(beside, marks)
            except BaseException:
                _undo(file, last.offset, beside, marked)
                raise
            self._before, self._last = last, _Place(last.offset + len(text), mark)
            self._text, self._marks = text, marks

    def _is_ours(self, file: FileIO, marked: bytes) -> bool:
        """Whether the file ends with the line that was written last, to the letter: nothing is to be verified."""
        if not self._text or os.fstat(file.fileno()).st_size != self._last.offset:
            return False
        file.seek(self._before.offset)
        return file.read(len(self._text)) == self._text and marked == self._marks

    def _followed(self, file: FileIO, marked: bytes) -> _Place:
        """The end of the file, when it follows from what was known of it and from what stands beside it."""
        ends = _read_mark(marked)
        # One line before the last one known, to see that nobody wrote over that.
        before = self._before if ends.number >= self._before.mark.number else _Place()
        return _verified(file, before, [self._last.mark, ends])[1]


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a log, after a look at all of the chain and its end.

    Raises:
        SDCError: the chain is broken, with the line where it breaks, or lines are missing at its end.
        OSError: the file cannot be read.
    """
    lines: list[dict[str, Any]] = []
    _looked_at(Path(path), lines)
    return lines


def verify_log(path: str | Path) -> tuple[int, str]:
    """The number of lines of a log and its last hash.

    Raises:
        SDCError: the chain is broken, with the line where it breaks, or lines are missing at its end.
        OSError: the file cannot be read.
    """
    last = _looked_at(Path(path))
    return last.number, last.hash


def _looked_at(path: Path, lines: list[dict[str, Any]] | None = None) -> _Mark:
    """The last line of a log that is whole; where all its lines are put, if anywhere."""
    # Before the log: where readers hold no lock, lines may come while this looks, and none may go.
    ends = _marked(path)
    if ends is not None and ends.number and not path.exists():
        _refuse_lost(ends)
    with _opened(path, writing=False) as file:
        return _verified(file, _Place(), [] if ends is None else [ends], lines)[1].mark


def _verified(
    file: FileIO, before: _Place, marks: Sequence[_Mark], lines: list[dict[str, Any]] | None = None
) -> tuple[_Place, _Place]:
    """The places before and after the last line of a file, when all lines from a place on follow from it.

    Args:
        before: the place to begin at.
        marks: lines that must be among those from there on.
        lines: where the lines are put.
    """
    file.seek(before.offset)
    last = before
    _check_marked(last.mark, marks)
    # A bare FileIO asks the system for one byte at a time to find the end of a line.
    buffered = BufferedReader(file)
    try:
        for text in buffered:
            line = _next(last.mark, text)
            if line is None:
                raise SDCError(
                    f"the audit log was changed: line {last.mark.number + 1} does not follow from the lines before it"
                )
            before, last = last, _Place(last.offset + len(text), _Mark(last.mark.number + 1, line["hash"]))
            _check_marked(last.mark, marks)
            if lines is not None:
                lines.append(line)
    finally:
        buffered.detach()
    for mark in marks:
        if mark.number > last.mark.number:
            _refuse_lost(mark)
    return before, last


def _check_marked(found: _Mark, marks: Sequence[_Mark]) -> None:
    if any(mark.number == found.number and mark.hash != found.hash for mark in marks):
        raise SDCError(f"the audit log was changed: line {found.number} is not the one that was written")


def _refuse_lost(mark: _Mark) -> NoReturn:
    raise SDCError(
        f"the audit log was changed: it had {mark.number} lines, and lines at its end are gone; if it was moved to "
        "begin a new one, move the file beside it, .last, as well"
    )


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".last")


_LONGEST_MARK = 100
_MARK = re.compile(rb" *(\d+) ([0-9a-f]{64})\n")


def _read_mark(text: bytes) -> _Mark:
    found = _MARK.fullmatch(text)
    if found is None:
        raise SDCError("the audit log was changed: the file beside it, .last, does not hold number and hash of a line")
    return _Mark(int(found[1]), found[2].decode())


def _marked(path: Path) -> _Mark | None:
    """The line that the file beside a log names; None where there is no such file, or none yet."""
    try:
        text = _beside(path).read_bytes()
    except FileNotFoundError:
        return None
    return _read_mark(text) if text else None


def _next(last: _Mark, text: bytes) -> dict[str, Any] | None:
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
    """Write a text at the end, whole and on disk."""
    file.seek(end)
    written = 0
    while written < len(text):
        written += file.write(text[written:]) or 0
    os.fsync(file.fileno())


def _write_over(beside: int, text: bytes) -> None:
    os.lseek(beside, 0, os.SEEK_SET)
    if os.write(beside, text) < len(text):
        raise OSError("the file beside the audit log cannot be written")


def _undo(file: FileIO, end: int, beside: int, marked: bytes) -> None:
    """Leave log and file beside it as they were; at no time with a log that ends too early."""
    try:
        _write_over(beside, marked)
    finally:
        file.truncate(end)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[int]:
    """The file beside a log, which must be there; as a bare number, for opening costs each question half as much so."""
    file = os.open(path, os.O_RDWR | _BINARY)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _opened(path: Path, *, writing: bool) -> Iterator[FileIO]:
    """The file, locked: alone to write it, together with others to read it.

    Where the system has no locks on files, whoever writes holds a second file; it stays behind when a process dies, and
    then nothing is written until somebody takes it away.
    """
    with FileIO(path, "r+" if writing else "r") as file:
        if _fcntl is not None:
            # Closing the file gives the lock back.
            kind = _fcntl.LOCK_EX if writing else _fcntl.LOCK_SH
            _tried(lambda: _fcntl.flock(file.fileno(), kind | _fcntl.LOCK_NB), BlockingIOError)
        elif writing:
            _tried(lambda: os.close(os.open(_lock(path), os.O_CREAT | os.O_EXCL, 0o600)), FileExistsError)
        try:
            yield file
        finally:
            if _fcntl is None and writing:
                _lock(path).unlink()


def _lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


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
