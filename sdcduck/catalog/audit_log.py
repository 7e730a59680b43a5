"""The audit log: one line for every question, each chained to the one before by a hash.

A line that was changed, removed or put in later breaks the chain. A small file beside the log, ``<log>.last``, holds
number and hash of its last line, so that lines cut off at the end, or the whole log, are missed too. It is written
after the line and not forced to the disk, so it may be behind the log after a crash, and never ahead of it: a log is
whole if it goes through the line that the file names. A log from before there was such a file, or one whose file was
removed, is taken to end where it ends, and gets one when a guard opens it. Log and file belong together: move both or
none. Who can write both files can write both anew: keep a copy of the last hash elsewhere.

Lines are JSON in ASCII, so that any text a question may be can be written. Several guards, in one process or in many,
may write to one log: each write holds a lock on the file beside it and first verifies what the others appended.

Nobody fills the disk with it. Long texts are packed; where that is not enough, the question of a refusal and the SQL
that ran are cut, with length and hash of it all. The question of an answer, and its parameters, are never cut: a long
text in it would hide what was asked. A text that stands in the file already is named by its line. Each user may write
so many bytes an hour: questions over that are refused, and their number is written. A log that has its size goes on in
a new file: the old one is called ``<log>.000001``, and so on, and the first line of the new one has the number of the
file, and the hash of the last line of the old one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

from sdcduck.catalog import audit_files as files
from sdcduck.catalog import audit_reading as reading
from sdcduck.errors import SDCError

QUOTA = SIZE = 100_000_000
"""Bytes that one user may write in an hour, and of a file, unless somebody says otherwise."""
OVER_QUOTA = "SDC095"
"""The verdict of lines that say how many questions were left out."""
_LONGEST_TEXT, _LONGEST_SIGN = 20_000, 12  # bytes, as they are written
_SHORTEST_NAMED = 200  # a shorter text is written again: naming it would save nothing
_LONGEST_PACKED = 200_000  # characters: a longer one is cut at once
_MOST_TEXTS = 20_000
_TEXTS = ("query", "sql", "parameters")
_UNCUT = ("query", "parameters")  # where the question was answered


class OverQuota(OSError):
    """The user has written as much as one may in this hour: the question must not be answered."""


class AuditLog:
    """An append-only file of JSON lines.

    Args:
        path: of the file.
        quota: bytes that each user may write in an hour, by the clock in UTC; None: any number.
        size: bytes after which the log goes on in a new file; None: it does not.

    Raises:
        SDCError: the file cannot be written, or its chain is broken.
    """

    def __init__(self, path: str | Path, *, quota: int | None = QUOTA, size: int | None = SIZE) -> None:
        for name, value in (("quota", quota), ("size", size)):
            if value is not None and not value > 0:
                raise SDCError(f"argument '{name}' must be a number of bytes above 0; None is no limit")
        self.path, self._quota, self._size = Path(path), quota, size
        self._beside = files.path_beside(self.path)
        self._threads = threading.Lock()
        self._hour = _hour()
        self._spent: Counter[str] = Counter()
        self._over: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._texts: dict[bytes, tuple[int, str]] = {}
        self._in_file = 0
        try:
            self._open()
        except OSError as problem:
            raise SDCError(f"the audit log cannot be written: {problem.strerror or problem}") from None
        self._text = self._marks = b""

    def _open(self) -> None:
        """Look at all of the file, and note its last line."""
        if self._size is not None and self.path.parent.is_dir() and not os.access(self.path.parent, os.W_OK):
            raise SDCError(
                f"the audit log goes on in a new file after {self._size} bytes, and its folder cannot be written: take "
                "another folder, or AuditLog(.., size=None)"
            )
        files.restore(self.path, files.marked(self.path))
        self.path.touch(mode=0o600, exist_ok=True)
        made = not self._beside.exists()
        if made:
            self._beside.touch(mode=self.path.stat().st_mode & 0o666, exist_ok=True)
        try:
            with files.held(self.path) as beside:
                noted = os.read(beside, files.LONGEST_MARK)
                ends = files.read_mark(noted) if noted else None
                files.restore(self.path, ends)
                with FileIO(self.path, "r") as file:
                    begin = files.begin(self.path, file)
                    files.check_begin(self.path, begin, ends)
                    marks = [] if ends is None else [ends]
                    self._before, self._last = reading.verified(file, begin, marks, seen=self._seen)
                    self._count_earlier(begin.file)
                if ends != self._last.mark:
                    # On disk: from here on the file beside the log is only ever written over.
                    files.write_over(beside, self._last.mark.text())
                    os.fsync(beside)
        except BaseException:
            if made:
                self._beside.unlink()
            raise

    def _count_earlier(self, number: int) -> None:
        """Count what users wrote in this hour into files that the log does not go on in any more."""
        while (number := number - 1) > 0 and (earlier := files.numbered(self.path, number)).exists():
            if not _is_of(files.last_line(earlier), self._hour):
                return
            with FileIO(earlier, "r") as file:
                reading.verified(file, files.begin(earlier, file), [], seen=self._charge)

    def write(self, **entry: Any) -> None:
        """Append a line, on disk before it returns.

        Raises:
            OverQuota: the user has written too much, and it is not written.
            OSError: it could not be written, or what others did to the file does not follow from what was there; then
                the question must not be answered.
        """
        self._write(entry, charged=True)

    def write_end(self, **entry: Any) -> None:
        """Append the second line of a question that has one, whatever the user has written."""
        self._write(entry, charged=False)

    def check_quota(self, user: str) -> None:
        """Refuse a question before it is looked at.

        Raises:
            OverQuota: the user has written too much.
            OSError: that could not be written.
        """
        who = _who({"user": _bounded(user) if isinstance(user, str) else user})
        with self._threads:
            if self._hour != _hour() or who not in self._over:
                return
            with files.held(self.path) as beside:
                self._leave_out(who, beside)

    def settle(self) -> None:
        """Write down how many questions were left out since that was written last."""
        with self._threads:
            if self._left_out:
                with files.held(self.path) as beside:
                    self._settle(beside)

    def _write(self, entry: Mapping[str, Any], *, charged: bool) -> None:
        answered = not str(entry.get("verdict", "")).startswith("SDC")
        entry = {
            key: _bounded(value, whole=key in _UNCUT and answered) if isinstance(value, str) else value
            for key, value in entry.items()
        }
        who = _who(entry)
        with self._threads, files.held(self.path) as beside:
            if self._hour != _hour():
                self._hour = _hour()
                self._spent.clear()
                self._over.clear()
                self._settle(beside)
                self._told.clear()
            if not self._add(entry, beside, most=self._left(who) if charged else None):
                self._over.add(who)
                self._leave_out(who, beside)

    def _left(self, who: str) -> Callable[[], int] | None:
        """What a user may write yet, once it is known what all others wrote; None: anything."""
        quota = self._quota
        if quota is None:
            return None
        return lambda: 0 if who in self._over else quota - self._spent[who]

    def _leave_out(self, who: str, beside: int) -> NoReturn:
        """Count a question that is refused; the number is written whenever it has doubled."""
        self._left_out[who] += 1
        if self._left_out[who] >= self._told[who]:
            self._say_left_out(who, beside)
        raise OverQuota("the user has written as much into the audit log as one may in an hour")

    def _settle(self, beside: int) -> None:
        for who in sorted(self._left_out):
            self._say_left_out(who, beside)

    def _say_left_out(self, who: str, beside: int) -> None:
        number = self._left_out[who]
        self._add(
            {
                "user": json.loads(who), "role": "", "verdict": OVER_QUOTA, "milliseconds": 0.0, "rows": 0, "query": "",
                "sql": "", "tables": [], "methods": [], "policies": "", "left_out": number,
            },
            beside,
            most=None,
        )  # fmt: skip
        self._told[who] += number
        del self._left_out[who]

    def _add(self, entry: Mapping[str, Any], beside: int, *, most: Callable[[], int] | None) -> bool:
        """Append a line; False: it has more bytes than may be, and nothing was written."""
        os.lseek(beside, 0, os.SEEK_SET)
        marked = os.read(beside, files.LONGEST_MARK)
        try:
            try:
                file = FileIO(self.path, "r+")
            except FileNotFoundError:
                files.restore(self.path, files.read_mark(marked))
                file = FileIO(self.path, "r+")
            try:
                last = self._last if self._is_ours(file, marked) else self._followed(file, marked)
            except BaseException:
                file.close()
                raise
        except SDCError as problem:
            raise OSError(str(problem)) from None
        with contextlib.ExitStack() as opened:
            opened.callback(lambda: file.close())
            line, text, own = self._line(entry, last)
            if most is not None and len(text) > most():
                return False
            if self._size is not None and last.offset and last.offset + len(text) > self._size:
                file, last = self._next_file(file, last, beside)
                marked = last.mark.text()
                line, text, own = self._line(entry, last)
            mark = files.Mark(line["number"], line["hash"])
            self._last = files.add(file, last, text, mark, beside, marked)
        self._before, self._text, self._marks = last, text, mark.text()
        self._seen(last, line, len(text), own)
        return True

    def _line(self, entry: Mapping[str, Any], last: files.Place) -> tuple[dict[str, Any], bytes, dict[bytes, str]]:
        """The line that follows, as it is written, and the texts that stand in it for the first time."""
        line: dict[str, Any] = {"number": last.mark.number + 1}
        if last.file > 1 and not last.offset:
            line["file"] = last.file
        line["time"] = _now().isoformat(timespec="milliseconds")
        known = self._texts if last.file == self._in_file else {}
        own: dict[bytes, str] = {}
        for key, value in entry.items():
            name = _named(value) if key in _TEXTS else None
            if name is not None:
                places = ((line["number"], own[one]) if one in own else known.get(one) for one in (name[:_HASH], name))
                place = next((found for found in places if found is not None), None)
                if place is None:
                    own[name] = key
                else:
                    value = dict(zip(("line", "of"), place, strict=True))
            line[key] = value
        line["previous"] = last.mark.hash
        line["hash"] = files.hash_of_line(line)
        return line, files.text_of_line(line), own

    def _seen(
        self, before: files.Place, line: dict[str, Any], size: int, texts: Mapping[bytes, str] | None = None
    ) -> None:
        """Note whose line it is, and which texts stand in it."""
        self._charge(before, line, size)
        if before.file != self._in_file or len(self._texts) > _MOST_TEXTS:
            self._texts.clear()
            self._in_file = before.file
        if texts is None:
            found = ((_named(line.get(key)), key) for key in reversed(_TEXTS))
            texts = {name: key for name, key in found if name is not None}
        for name, key in texts.items():
            self._texts[name] = (line["number"], key)

    def _charge(self, before: files.Place, line: dict[str, Any], size: int) -> None:
        """Count what a line of this hour takes from the quota of its user."""
        if _is_of(line, self._hour):
            self._spent[_who(line)] += size

    def _next_file(self, file: FileIO, last: files.Place, beside: int) -> tuple[FileIO, files.Place]:
        """A new file after one that has its size. Wherever this stops, `files.restore` and the next write go on."""
        numbered = files.numbered(self.path, last.file)
        if numbered.exists():
            raise FileExistsError(f"the audit log cannot go on in a new file: there is a {numbered.name} already")
        files.write_over(beside, last.mark.text())
        os.fsync(beside)
        mode = os.fstat(file.fileno()).st_mode & 0o666
        file.close()
        os.rename(self.path, numbered)
        files.make(self.path, mode)
        return FileIO(self.path, "r+"), files.Place(last.file + 1, 0, last.mark)

    def _is_ours(self, file: FileIO, marked: bytes) -> bool:
        """Whether the file ends with the line that was written last, to the letter: nothing is to be verified."""
        if not self._text or os.fstat(file.fileno()).st_size != self._last.offset:
            return False
        file.seek(self._before.offset)
        return file.read(len(self._text)) == self._text and marked == self._marks

    def _followed(self, file: FileIO, marked: bytes) -> files.Place:
        """The end of the log, when it follows from what was known of it and from what stands beside it."""
        ends = files.read_mark(marked)
        begin = files.begin(self.path, file)
        marks = [self._last.mark, ends]
        # One line before the last one known, to see that nobody wrote over that.
        if begin.file == self._last.file:
            start = self._before if ends.number >= self._before.mark.number else begin
            return reading.verified(file, start, marks, seen=self._seen, known=self._last.mark.number)[1]
        if begin.file < self._last.file:
            raise SDCError(f"the audit log was changed: it was in file {self._last.file}, and is in file {begin.file}")
        for number in range(self._last.file, begin.file):
            earlier = files.numbered(self.path, number)
            if not earlier.exists():  # put away since
                continue
            with FileIO(earlier, "r") as old:
                start = self._before if number == self._last.file else files.begin(earlier, old)
                files.check_begin(self.path, start, None)
                reading.verified(old, start, marks[:1], seen=self._seen, known=self._last.mark.number)
        files.check_begin(self.path, begin, ends)
        if begin.mark.number < self._last.mark.number:
            files.refuse_lost(self._last.mark)
        return reading.verified(file, begin, marks, seen=self._seen, known=self._last.mark.number)[1]


def _bounded(text: str, *, whole: bool = False) -> str | dict[str, Any]:
    """A text as it is written: a long one packed, or its beginning, with its length and its hash.

    Args:
        whole: whether it is not to be cut, however long it is.
    """
    if len(text) * _LONGEST_SIGN + 2 <= _LONGEST_TEXT:
        return text
    if len(text) <= _LONGEST_TEXT and len(json.dumps(text)) <= _LONGEST_TEXT:
        return text
    told = {"characters": len(text), "sha256": _hash_of(text).hex()}
    if whole or len(text) <= _LONGEST_PACKED:
        packed = base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()
        if whole or len(packed) <= _LONGEST_TEXT:
            return {"packed": packed, **told}
    begins = text[:_LONGEST_TEXT]
    while (length := len(json.dumps(begins))) > _LONGEST_TEXT:
        begins = begins[: len(begins) * _LONGEST_TEXT // length - 1]
    return {"begins": begins, **told}


_HASH, _CUT = 32, b"cut"  # bytes of a hash; a text that is cut has another name than the whole one, which stands for it


def _hash_of(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _named(value: object) -> bytes | None:
    """By what a text that is long enough is known again."""
    if isinstance(value, str):
        return _hash_of(value) if len(value) > _SHORTEST_NAMED else None
    if isinstance(value, dict) and isinstance(value.get("sha256"), str):
        return bytes.fromhex(value["sha256"]) + (_CUT if "begins" in value else b"")
    return None


def _who(line: Mapping[str, Any]) -> str:
    """Whose line it is."""
    return json.dumps(line.get("user", ""))


def _is_of(line: Mapping[str, Any], hour: str) -> bool:
    return str(line.get("time", ""))[:13] == hour


def _now() -> datetime:
    return datetime.now(UTC)


def _hour() -> str:
    """The hour as lines of it begin their time."""
    return _now().isoformat(timespec="milliseconds")[:13]
