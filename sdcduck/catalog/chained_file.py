"""Files of lines that any number of processes share: what logins were told, and what became of plans.

A guard opens the register for reading only, so what it must not forget stands beside it. Each line has the hash of the
one before it, as in the audit log, and a small file, ``.last``, has number and hash of the last one. Who writes holds a
lock on that, has read what all others wrote, and has the line on disk before anybody is answered:

    with file.held() as held:
        reached, lines = held.lines(reached)  # those that are new since
        reached = held.append(cost=0.1)

Where a line is changed or gone, nobody knows what was written, and `ChainBroken` says so. What a process that died left
of a line was never answered for, and is written over. No line is older than the one before it: a clock that is set back
stands still.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

from sdcduck.catalog import audit_files as files
from sdcduck.catalog.audit_files import Mark, Place
from sdcduck.errors import SDCError

Line = dict[str, Any]


class ChainBroken(SDCError):
    """It is not known what was written."""


@dataclass(frozen=True)
class Reached:
    """How far somebody has read.

    Attributes:
        before: the place before the last line, which is looked at again: somebody may have written over it.
        last: the place behind it.
        time: of that line.
    """

    before: Place
    last: Place
    time: datetime


_BEGIN = Reached(Place(), Place(), datetime(1970, 1, 1, tzinfo=UTC))


def _now() -> datetime:
    return datetime.now(UTC)


class ChainedFile:
    """A file of lines; any number of processes may have it, and threads use one.

    Args:
        path: of the file; it is made when it is held first.
        what: it is, in messages.
        first: what its first line says; a file that does not begin so is another one.
        most: bytes that it may have; None: any number.
        clock: tells the time; None: that of the system.
    """

    def __init__(
        self,
        path: Path,
        what: str,
        *,
        first: Mapping[str, Any] | None = None,
        most: int | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.path, self.what, self.most, self.clock = path, what, most, clock or _now
        self.first = {} if first is None else dict(first)
        self._threads = threading.Lock()

    @contextlib.contextmanager
    def held(self, *, make: bool = True) -> Iterator[Held]:
        """The file, while nobody else reads or writes it.

        Args:
            make: it, where there is none.

        Raises:
            ChainBroken: one of the two files is gone, or is not what was written.
            FileNotFoundError: there is none, and none is to be made.
            OSError: it cannot be read or written, or somebody holds it for too long.
        """
        if not self._is_there() and make:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another process makes it, too
                files.make(files.path_beside(self.path), 0o600)
        with self._threads, files.held(self.path) as beside:
            yield Held(self, beside)

    def lines(self) -> list[Line]:
        """All that is written; nothing where there is no file yet. It holds up nobody who writes.

        Raises:
            ChainBroken: it is not what was written.
            OSError: it cannot be read.
        """
        if not self._is_there():
            return []
        with files.steady(self.path):
            ends = self.mark(files.path_beside(self.path).read_bytes())
            if not (ends and ends.number) and not self.path.exists():
                return []
            with self.opened("r") as file:
                size = os.fstat(file.fileno()).st_size
        if ends is None and size:
            self.refuse_changed()
        with self.opened("r") as file:
            return self.followed(file, _BEGIN, ends or Mark(), size)[1]

    def _is_there(self) -> bool:
        """Whether there is a file beside it, which is made first."""
        size = self.path.stat().st_size if self.path.exists() else 0  # looked at first: somebody may be making both
        there = files.path_beside(self.path).exists()
        if size and not there:
            self.refuse_gone()
        return there

    def mark(self, noted: bytes) -> Mark | None:
        """The line that the file beside it names; None: nothing was ever written."""
        try:
            return files.read_mark(noted) if noted else None
        except SDCError:
            self.refuse_changed()

    @contextlib.contextmanager
    def opened(self, mode: str) -> Iterator[FileIO]:
        """The file itself, which must be there."""
        try:
            file = FileIO(self.path, mode)
        except FileNotFoundError:
            self.refuse_gone()
        with file:
            yield file

    def followed(self, file: FileIO, after: Reached, ends: Mark, size: int | None = None) -> tuple[Reached, list[Line]]:
        """What follows from where somebody was, up to a line that must be there, or farther."""
        known, before, last, time, found = after.last.mark, after.before, after.before, after.time, list[Line]()
        try:
            for here, line in files.following(file, last, size=size):
                if any(one.number == here.mark.number and one != here.mark for one in (known, ends)):
                    self.refuse_changed()
                if here.mark.number > known.number:
                    found.append(line)
                    time = max(time, time_of(line))
                before, last = last, here
        except files.DoesNotFollow as problem:
            if not problem.torn:
                self.refuse_changed()
        except (KeyError, ValueError, TypeError):
            self.refuse_changed()
        if last.mark.number < max(known.number, ends.number):
            self.refuse_changed()
        if self.first and not known.number and found:
            begins = found.pop(0)
            if {name: begins.get(name) for name in self.first} != self.first:
                raise ChainBroken(f"{self.what} is of another version, or that of somebody else")
        return Reached(before, last, time), found

    def refuse_changed(self) -> NoReturn:
        raise ChainBroken(f"{self.what} was changed: it is of no use until its custodian has looked at it") from None

    def refuse_gone(self) -> NoReturn:
        raise ChainBroken(f"{self.what}, or the one beside it, .last, is gone: put back both, or none") from None


class Held:
    """A file that nobody else reads or writes (`ChainedFile.held`)."""

    def __init__(self, file: ChainedFile, beside: int) -> None:
        self._file, self._beside = file, beside
        self._noted = os.read(beside, files.LONGEST_MARK)
        ends = file.mark(self._noted)
        if ends is None:
            self._make()
        self._ends = ends or Mark()
        self._reached: Reached | None = None
        if file.first and not self._ends.number and not self.lines()[0].last.offset:
            self.append(**file.first)

    def lines(self, after: Reached | None = None) -> tuple[Reached, list[Line]]:
        """The lines that follow from where somebody was, and where they end.

        Raises:
            ChainBroken: they do not go on from there, or end before a line that was written.
        """
        with self._file.opened("r") as file:
            self._reached, found = self._file.followed(file, after or _BEGIN, self._ends)
        return self._reached, found

    def time(self) -> datetime:
        """Now, and never before the last line; what is there is to be read first."""
        return max(self._file.clock(), self._where().time)

    def append(self, **entry: Any) -> Reached:
        """Write a line, on disk before it returns, or leave all as it was; what is there is to be read first.

        Raises:
            OSError: it cannot be written, or the file has its size.
        """
        last, now, most = self._where().last, self.time(), self._file.most
        line = {
            "number": last.mark.number + 1, "time": now.isoformat(timespec="milliseconds"), **entry,
            "previous": last.mark.hash,
        }  # fmt: skip
        line["hash"] = files.hash_of_line(line)
        text, mark = files.text_of_line(line), Mark(line["number"], line["hash"])
        if most is not None and last.offset + len(text) > most:
            raise OSError(f"{self._file.what} has {most} bytes")
        with self._file.opened("r+") as file:
            file.truncate(last.offset)
            end = files.add(file, last, text, mark, self._beside, self._noted, forced=True)
        self._reached = Reached(last, end, time_of(line))
        self._noted, self._ends = mark.text(), mark
        return self._reached

    def _where(self) -> Reached:
        assert self._reached is not None, "read what is there first"
        return self._reached

    def _make(self) -> None:
        """Make a file in which nothing was ever written, and note that it ends where it begins."""
        path = self._file.path
        if not path.exists():
            files.make(path, 0o600)
        elif path.stat().st_size:
            self._file.refuse_changed()
        self._noted = Mark().text()
        files.write_over(self._beside, self._noted)
        os.fsync(self._beside)


def time_of(line: Line) -> datetime:
    """When a line was written: older files have no zone, which is UTC."""
    time = datetime.fromisoformat(line["time"])
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
