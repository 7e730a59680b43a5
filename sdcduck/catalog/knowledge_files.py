"""What each login was told so far: a file for each, in a folder beside the register, ``<register>.sequence``.

A guard opens the register for reading only. So what answers have told is written beside it, forced to disk before the
answer leaves, and read by all sessions and gateways of a login: who writes holds a lock. A file is a chain of lines as
the audit log is, and the small file beside it, ``.last``, holds number and hash of its last line. Where lines are gone
that this one names, or the file is of another version, nobody knows what the login was told, and nothing is answered.

The first line says the version and the login. Each of the others is an answer, or a decision of the custodian to begin
anew. Nothing in it is made of a record: the sets that were asked for, and what the guard worked out of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from sdcduck.catalog import audit_files as files
from sdcduck.catalog.audit_files import Place
from sdcduck.errors import SDCError

VERSION = 1
MOST = 256_000_000
"""Bytes of a file: a login that was told more is told nothing new."""

Line = dict[str, Any]


class KnowledgeLost(SDCError):
    """It is not known what a login was told."""


class KnowledgeFile:
    """What one login was told.

    Args:
        register: the file of the database.
        login: who asks.
        most: bytes that the file may have.
    """

    def __init__(self, register: Path, login: str, *, most: int = MOST) -> None:
        self.folder = folder_of(register)
        self.path = self.folder / f"{hashlib.sha256(login.encode()).hexdigest()[:32]}.jsonl"
        self._login, self._most = login, most

    @contextlib.contextmanager
    def held(self) -> Iterator[Held]:
        """The file, while nobody else reads or writes it.

        Raises:
            KnowledgeLost: lines are gone, or it is of another version.
            OSError: it cannot be read or written, or somebody holds it for too long.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        beside = files.path_beside(self.path)
        there = self.path.exists()  # looked at first: another process may be making both
        if not beside.exists():
            if there:
                raise KnowledgeLost(f"the file beside {self.path.name} is gone")
            beside.touch(mode=0o600, exist_ok=True)
        with files.held(self.path) as mark:
            held = Held(self.path, mark, self._most)
            if held.is_new:
                held.append(version=VERSION, login=self._login)
            yield held

    def lines(self) -> list[Line]:
        """All that is written; nothing where there is no file yet.

        Raises:
            KnowledgeLost: lines are gone, or it is of another version.
        """
        if not files.path_beside(self.path).exists() and not self.path.exists():
            return []
        with self.held() as held:
            return held.lines()[1]


class Held:
    """A file that nobody else reads or writes (`KnowledgeFile.held`)."""

    def __init__(self, path: Path, mark: int, most: int) -> None:
        self._path, self._mark, self._most = path, mark, most
        self._noted = os.read(mark, files.LONGEST_MARK)
        try:
            self._ends = files.read_mark(self._noted) if self._noted else files.Mark()
        except SDCError:
            raise KnowledgeLost(f"the file beside {path.name} holds no line of it") from None
        self._last: Place | None = None
        self.is_new = not self._noted
        """Whether nothing was ever written."""
        if self.is_new:
            if path.exists() and path.stat().st_size:
                raise KnowledgeLost(f"the file beside {path.name} is empty")
            if not path.exists():
                files.make(path, 0o600)
            self._last = Place()

    def lines(self, after: Place | None = None) -> tuple[Place, list[Line]]:
        """The lines behind a place, and the place where they end.

        Raises:
            KnowledgeLost: they do not go on from there, or end before the line that is known to be there.
        """
        last, found = after or Place(), list[Line]()
        try:
            with FileIO(self._path, "r") as file:
                file.seek(last.offset)
                texts = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            raise KnowledgeLost(f"{self._path.name} is gone") from None
        for text in texts:
            line = files.next_line(last, text)
            if line is None:
                break
            last = Place(last.file, last.offset + len(text), files.Mark(line["number"], line["hash"]))
            found.append(line)
        if last.mark.number < self._ends.number or (last.mark.number == self._ends.number and last.mark != self._ends):
            raise KnowledgeLost(f"{self._path.name} ends too early, or was changed")
        size = self._path.stat().st_size
        if size < last.offset or (size > last.offset and last.mark.number > self._ends.number):
            raise KnowledgeLost(f"{self._path.name} was changed behind its last line")
        if after is None and (not found or found[0].get("version") != VERSION):
            raise KnowledgeLost(f"{self._path.name} is of another version")
        self._last = last
        return last, found if after else found[1:]

    def append(self, **entry: Any) -> Place:
        """Write a line, on disk before it returns; the place behind it.

        A line that a process began to write as it stopped was never answered for: it is written over.

        Raises:
            OSError: it cannot be written, or the file has its size.
        """
        last = self._last
        assert last is not None, "read what is there first"
        line = {
            "number": last.mark.number + 1,
            "time": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds"),
            **entry,
            "previous": last.mark.hash,
        }
        line["hash"] = files.hash_of_line(line)
        text, mark = files.text_of_line(line), files.Mark(line["number"], line["hash"])
        if last.offset + len(text) > self._most:
            raise OSError(f"what a login was told has {self._most} bytes")
        with FileIO(self._path, "r+") as file:
            file.truncate(last.offset)
            try:
                files.append(file, last.offset, text)
                files.write_over(self._mark, mark.text())
                os.fsync(self._mark)
            except BaseException:
                self._undo(file, last.offset)
                raise
        self._noted, self._ends = mark.text(), mark
        self._last = Place(last.file, last.offset + len(text), mark)
        return self._last

    def _undo(self, file: FileIO, end: int) -> None:
        if self._noted:
            files.undo(file, end, self._mark, self._noted)
        else:
            os.ftruncate(self._mark, 0)
            file.truncate(end)


def folder_of(register: Path) -> Path:
    """The folder with what logins were told by a register."""
    return register.with_name(f"{register.name}.sequence")


def all_lines(register: Path) -> dict[str, list[Line]]:
    """What all logins were told, by login.

    Raises:
        KnowledgeLost: of one of them it is not known.
    """
    folder, found = folder_of(register), dict[str, list[Line]]()
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        with path.open("rb") as file:
            try:
                login = json.loads(file.readline())["login"]
            except (ValueError, KeyError, TypeError):
                raise KnowledgeLost(f"{path.name} does not begin as it should") from None
        found[login] = KnowledgeFile(register, login).lines()
    return found
