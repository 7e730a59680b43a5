"""The files of an audit log: the log, what it was before it had its size, and the mark beside it; their locks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
class Mark:
    """A line of a log, or its beginning: number and hash."""

    number: int = 0
    hash: str = "0" * 64

    def text(self) -> bytes:
        """As it stands beside the log: always as long, so that it is written over in one piece."""
        return f"{self.number:20d} {self.hash}\n".encode()


@dataclass(frozen=True)
class Place:
    """A place between two lines of a log: the number of the file, the bytes before it there, and the last line."""

    file: int = 1
    offset: int = 0
    mark: Mark = Mark()


def refuse_lost(mark: Mark) -> NoReturn:
    raise SDCError(
        f"the audit log was changed: it had {mark.number} lines, and lines at its end are gone; if it was moved to "
        "begin a new one, move the file beside it, .last, as well"
    )


def path_beside(path: Path) -> Path:
    return path.with_name(path.name + ".last")


def numbered(path: Path, number: int) -> Path:
    """Where a file of the log stands once the log has gone on in the next."""
    return path.with_name(f"{path.name}.{number:06d}")


def _newest(path: Path) -> int:
    """The number of the last file that the log does not go on in any more; 0: there is none."""
    form = re.compile(re.escape(path.name) + r"\.(\d{6,})")
    found = (form.fullmatch(name) for name in os.listdir(path.parent))
    return max((int(one[1]) for one in found if one is not None), default=0)


def begin(path: Path, file: FileIO) -> Place:
    """The beginning of a file of the log: of the first, or of one that says which one it is, and what it follows."""
    file.seek(0)
    buffered = BufferedReader(file)
    try:
        text = buffered.readline()
    finally:
        buffered.detach()
    if not text:
        return after(path)
    try:
        line = json.loads(text)
        number, before, previous = line["file"], line["number"] - 1, line["previous"]
        if type(number) is int and number > 1 and type(before) is int and isinstance(previous, str):
            return Place(number, 0, Mark(before, previous))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return Place()


def after(path: Path) -> Place:
    """The beginning of the file that has no line yet."""
    newest = _newest(path)
    return Place(newest + 1, 0, _end(numbered(path, newest))) if newest else Place()


def _end(path: Path) -> Mark:
    """The last line of a file that the log does not go on in."""
    line = last_line(path)
    return Mark(line["number"], line["hash"])


def last_line(path: Path) -> dict[str, Any]:
    with FileIO(path, "r") as file:
        end = file.seek(0, os.SEEK_END)
        text, most = b"", 65_536
        while end and b"\n" not in text[:-1]:
            start = max(end - most, 0)
            file.seek(start)
            text = file.read(end - start) + text
            end = start
    try:
        line: dict[str, Any] = json.loads(text[:-1].rpartition(b"\n")[2])
        if text.endswith(b"\n") and line["hash"] == hash_of_line(line) and "number" in line:
            return line
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SDCError(f"the audit log was changed: {path.name} does not end with a line of it")


def check_begin(path: Path, begin: Place, ends: Mark | None) -> None:
    """That a file follows from the one before it, if that is there, and from what stands beside the log."""
    before = numbered(path, begin.file - 1)
    if not begin.offset and begin.file > 1 and before.exists():
        check_link(begin, _end(before), begin.file)
    if ends is not None and ends.number < begin.mark.number:
        raise SDCError(f"the audit log was changed: the file beside it names line {ends.number}, of an earlier file")


def check_link(begin: Place, last: Mark | None, number: int) -> None:
    if begin.file != number or (last is not None and begin.mark != last):
        raise SDCError(f"the audit log was changed: file {number} does not follow from the file before it")


def restore(path: Path, ends: Mark | None) -> None:
    """Make the file that a process which stopped between two files was about to make.

    Raises:
        SDCError: the file is gone.
    """
    if path.exists():
        return
    if refuse_unless_begun(path, ends):
        make(path, numbered(path, _newest(path)).stat().st_mode & 0o666)


def refuse_unless_begun(path: Path, ends: Mark | None) -> bool:
    """Whether a file that is not there comes after another one; False: there never was one.

    Raises:
        SDCError: there was one, and it is gone.
    """
    newest = _newest(path)
    if newest and ends is None:
        raise SDCError(
            f"files of an earlier audit log are there: to begin a new one, move {numbered(path, newest).name} and "
            "those before it away as well"
        )
    if ends is not None and ends.number and (not newest or _end(numbered(path, newest)) != ends):
        refuse_lost(ends)
    return newest > 0


def make(path: Path, mode: int) -> None:
    """Make a file, and have the folder know it, on disk."""
    made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(made, mode)
    finally:
        os.close(made)
    if _fcntl is not None:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


LONGEST_MARK = 100
_MARK = re.compile(rb" *(\d+) ([0-9a-f]{64})\n")


def read_mark(text: bytes) -> Mark:
    found = _MARK.fullmatch(text)
    if found is None:
        raise SDCError("the audit log was changed: the file beside it, .last, does not hold number and hash of a line")
    return Mark(int(found[1]), found[2].decode())


def marked(path: Path) -> Mark | None:
    """The line that the file beside a log names; None where there is no such file, or none yet."""
    try:
        text = path_beside(path).read_bytes()
    except FileNotFoundError:
        return None
    return read_mark(text) if text else None


def next_line(last: Place, text: bytes) -> dict[str, Any] | None:
    """The line that a text holds, if it follows from the last one: to the letter as it would have been written."""
    try:
        line: dict[str, Any] = json.loads(text)
        good = (
            line["previous"] == last.mark.hash
            and line["number"] == last.mark.number + 1
            and line["hash"] == hash_of_line(line)
            and line.get("file", 1) == (1 if last.offset else last.file)
        )
        return line if good and text_of_line(line) == text else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class DoesNotFollow(Exception):
    """A text in a file that is not the line that follows.

    Attributes:
        number: that the line had to have.
        torn: whether it is what a process that died left at the end of the file.
    """

    def __init__(self, number: int, *, torn: bool) -> None:
        super().__init__(number)
        self.number, self.torn = number, torn


def following(file: FileIO, last: Place, *, size: int | None = None) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The lines behind a place, each with the place behind it.

    Args:
        size: bytes of the file to look at; None: all.

    Raises:
        DoesNotFollow: there is another text.
    """
    file.seek(last.offset)
    # A bare FileIO asks the system for one byte at a time to find the end of a line.
    buffered = BufferedReader(file)
    try:
        for text in buffered:
            if size is not None and last.offset >= size:
                break
            line = next_line(last, text)
            if line is None:
                raise DoesNotFollow(last.mark.number + 1, torn=not text.endswith(b"\n"))
            last = Place(last.file, last.offset + len(text), Mark(line["number"], line["hash"]))
            yield last, line
    finally:
        buffered.detach()


def hash_of_line(line: dict[str, Any]) -> str:
    kept = {key: value for key, value in line.items() if key != "hash"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def text_of_line(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def append(file: FileIO, end: int, text: bytes) -> None:
    """Write a text at the end, whole and on disk."""
    file.seek(end)
    written = 0
    while written < len(text):
        written += file.write(text[written:]) or 0
    os.fsync(file.fileno())


def write_over(beside: int, text: bytes) -> None:
    os.lseek(beside, 0, os.SEEK_SET)
    if os.write(beside, text) < len(text):
        raise OSError("the file beside the audit log cannot be written")


def add(
    file: FileIO, last: Place, text: bytes, mark: Mark, beside: int, marked: bytes, *, forced: bool = False
) -> Place:
    """Write a line, and note it in the file beside; the place behind it. Where that fails, all is as it was.

    Args:
        marked: what is noted now.
        forced: whether the file beside is on disk, too, before this returns.
    """
    try:
        append(file, last.offset, text)
        write_over(beside, mark.text())
        if forced:
            os.fsync(beside)
    except BaseException:
        undo(file, last.offset, beside, marked)
        raise
    return Place(last.file, last.offset + len(text), mark)


def undo(file: FileIO, end: int, beside: int, marked: bytes) -> None:
    """Leave log and file beside it as they were; at no time with a log that ends too early."""
    try:
        write_over(beside, marked)
    finally:
        file.truncate(end)


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """The file beside a log, which must be there, locked to write the log; the log itself may become another file.

    It is a bare number, for opening costs each question half as much so. Where the system has no locks on files, a
    third one is held; it stays behind when a process dies, and then nothing is written until somebody takes it away.
    """
    beside = os.open(path_beside(path), os.O_RDWR | _BINARY)
    try:
        if _fcntl is not None:
            # Closing the file gives the lock back.
            _locked(beside, _fcntl.LOCK_EX)
            yield beside
            return
        _tried(lambda: os.close(os.open(_lock(path), os.O_CREAT | os.O_EXCL, 0o600)), FileExistsError)
        try:
            yield beside
        finally:
            _lock(path).unlink()
    finally:
        os.close(beside)


@contextlib.contextmanager
def steady(path: Path) -> Iterator[None]:
    """While nobody writes, as far as the system has locks on files, and there is one to lock."""
    try:
        beside = os.open(path_beside(path), os.O_RDONLY | _BINARY)
    except FileNotFoundError:
        yield
        return
    try:
        if _fcntl is not None:
            _locked(beside, _fcntl.LOCK_SH)
        yield
    finally:
        os.close(beside)


def _locked(file: int, kind: int) -> None:
    assert _fcntl is not None
    flock, now = _fcntl.flock, kind | _fcntl.LOCK_NB
    _tried(lambda: flock(file, now), BlockingIOError)


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
