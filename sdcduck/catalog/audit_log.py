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
import binascii
import contextlib
import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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

QUOTA = SIZE = 100_000_000
"""Bytes that one user may write in an hour, and of a file, unless somebody says otherwise."""
OVER_QUOTA = "SDC095"
"""The verdict of lines that say how many questions were left out."""

_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows
_SECONDS_FOR_LOCK = 10.0
_BETWEEN_TRIES = 0.005
_LONGEST_TEXT, _LONGEST_SIGN = 20_000, 12  # bytes, as they are written
_SHORTEST_NAMED = 200  # a shorter text is written again: naming it would save nothing
_LONGEST_PACKED = 200_000  # characters: a longer one is cut at once
_MOST_TEXTS = 20_000
_TEXTS = ("query", "sql", "parameters")
_UNCUT = ("query", "parameters")  # where the question was answered


class OverQuota(OSError):
    """The user has written as much as one may in this hour: the question must not be answered."""


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
    """A place between two lines of a log: the number of the file, the bytes before it there, and the last line."""

    file: int = 1
    offset: int = 0
    mark: _Mark = _Mark()


_Seen = Callable[[_Place, dict[str, Any], int], None]
"""Told of a line: the place before it, what it says, and its bytes."""


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
        self._beside = _beside(self.path)
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
        _restore(self.path, _marked(self.path))
        self.path.touch(mode=0o600, exist_ok=True)
        made = not self._beside.exists()
        if made:
            self._beside.touch(mode=self.path.stat().st_mode & 0o666, exist_ok=True)
        try:
            with _held(self.path) as beside:
                noted = os.read(beside, _LONGEST_MARK)
                ends = _read_mark(noted) if noted else None
                _restore(self.path, ends)
                with FileIO(self.path, "r") as file:
                    begin = _begin(self.path, file)
                    _check_begin(self.path, begin, ends)
                    marks = [] if ends is None else [ends]
                    self._before, self._last = _verified(file, begin, marks, seen=self._seen)
                    self._count_earlier(begin.file)
                if ends != self._last.mark:
                    # On disk: from here on the file beside the log is only ever written over.
                    _write_over(beside, self._last.mark.text())
                    os.fsync(beside)
        except BaseException:
            if made:
                self._beside.unlink()
            raise

    def _count_earlier(self, number: int) -> None:
        """Count what users wrote in this hour into files that the log does not go on in any more."""
        while (number := number - 1) > 0 and (earlier := _numbered(self.path, number)).exists():
            if not _is_of(_last_line(earlier), self._hour):
                return
            with FileIO(earlier, "r") as file:
                _verified(file, _begin(earlier, file), [], seen=self._charge)

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
            with _held(self.path) as beside:
                self._leave_out(who, beside)

    def settle(self) -> None:
        """Write down how many questions were left out since that was written last."""
        with self._threads:
            if self._left_out:
                with _held(self.path) as beside:
                    self._settle(beside)

    def _write(self, entry: Mapping[str, Any], *, charged: bool) -> None:
        answered = not str(entry.get("verdict", "")).startswith("SDC")
        entry = {
            key: _bounded(value, whole=key in _UNCUT and answered) if isinstance(value, str) else value
            for key, value in entry.items()
        }
        who = _who(entry)
        with self._threads, _held(self.path) as beside:
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
        marked = os.read(beside, _LONGEST_MARK)
        try:
            try:
                file = FileIO(self.path, "r+")
            except FileNotFoundError:
                _restore(self.path, _read_mark(marked))
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
            marks = _Mark(line["number"], line["hash"]).text()
            try:
                _append(file, last.offset, text)
                _write_over(beside, marks)
            except BaseException:
                _undo(file, last.offset, beside, marked)
                raise
        self._before = last
        self._last = _Place(last.file, last.offset + len(text), _Mark(line["number"], line["hash"]))
        self._text, self._marks = text, marks
        self._seen(last, line, len(text), own)
        return True

    def _line(self, entry: Mapping[str, Any], last: _Place) -> tuple[dict[str, Any], bytes, dict[bytes, str]]:
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
        line["hash"] = _hash(line)
        return line, _text(line), own

    def _seen(self, before: _Place, line: dict[str, Any], size: int, texts: Mapping[bytes, str] | None = None) -> None:
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

    def _charge(self, before: _Place, line: dict[str, Any], size: int) -> None:
        """Count what a line of this hour takes from the quota of its user."""
        if _is_of(line, self._hour):
            self._spent[_who(line)] += size

    def _next_file(self, file: FileIO, last: _Place, beside: int) -> tuple[FileIO, _Place]:
        """A new file after one that has its size. Wherever this stops, `_restore` and the next write go on."""
        numbered = _numbered(self.path, last.file)
        if numbered.exists():
            raise FileExistsError(f"the audit log cannot go on in a new file: there is a {numbered.name} already")
        _write_over(beside, last.mark.text())
        os.fsync(beside)
        mode = os.fstat(file.fileno()).st_mode & 0o666
        file.close()
        os.rename(self.path, numbered)
        _make(self.path, mode)
        return FileIO(self.path, "r+"), _Place(last.file + 1, 0, last.mark)

    def _is_ours(self, file: FileIO, marked: bytes) -> bool:
        """Whether the file ends with the line that was written last, to the letter: nothing is to be verified."""
        if not self._text or os.fstat(file.fileno()).st_size != self._last.offset:
            return False
        file.seek(self._before.offset)
        return file.read(len(self._text)) == self._text and marked == self._marks

    def _followed(self, file: FileIO, marked: bytes) -> _Place:
        """The end of the log, when it follows from what was known of it and from what stands beside it."""
        ends = _read_mark(marked)
        begin = _begin(self.path, file)
        marks = [self._last.mark, ends]
        # One line before the last one known, to see that nobody wrote over that.
        if begin.file == self._last.file:
            start = self._before if ends.number >= self._before.mark.number else begin
            return _verified(file, start, marks, seen=self._seen, known=self._last.mark.number)[1]
        if begin.file < self._last.file:
            raise SDCError(f"the audit log was changed: it was in file {self._last.file}, and is in file {begin.file}")
        for number in range(self._last.file, begin.file):
            earlier = _numbered(self.path, number)
            if not earlier.exists():  # put away since
                continue
            with FileIO(earlier, "r") as old:
                start = self._before if number == self._last.file else _begin(earlier, old)
                _check_begin(self.path, start, None)
                _verified(old, start, marks[:1], seen=self._seen, known=self._last.mark.number)
        _check_begin(self.path, begin, ends)
        if begin.mark.number < self._last.mark.number:
            _refuse_lost(self._last.mark)
        return _verified(file, begin, marks, seen=self._seen, known=self._last.mark.number)[1]


def read_log(path: str | Path, *, first: int = 1) -> list[dict[str, Any]]:
    """The lines of a log, after a look at all of the chain and its end.

    A text that another line holds stands in every line that names it. One that was cut is told by how it ``begins``,
    the number of its ``characters`` and its ``sha256``.

    Args:
        first: number of the file to begin with; those before it may have been put away.

    Raises:
        SDCError: the chain is broken, with the line where it breaks, or lines are missing at its end, or a file is.
        OSError: a file cannot be read.
    """
    lines: list[dict[str, Any]] = []
    _looked_at(Path(path), first, lines)
    return lines


def verify_log(path: str | Path, *, first: int = 1) -> tuple[int, str]:
    """The number of the last line of a log and its hash, after a look at all files of it.

    Args:
        first: number of the file to begin with; those before it may have been put away.

    Raises:
        SDCError: the chain is broken, with the line where it breaks, or lines are missing at its end, or a file is.
        OSError: a file cannot be read.
    """
    last = _looked_at(Path(path), first)
    return last.number, last.hash


def _looked_at(path: Path, first: int, lines: list[dict[str, Any]] | None = None) -> _Mark:
    """The last line of a log that is whole; where all its lines are put, if anywhere."""
    with contextlib.ExitStack() as opened:
        with _steady(path):
            # What is there now stays: whoever reads holds up nobody who writes.
            ends = _marked(path)
            if not path.exists():
                _refuse_unless_begun(path, ends)
                file, size, begin = None, 0, _after(path)
            else:
                file = opened.enter_context(FileIO(path, "r"))
                size, begin = os.fstat(file.fileno()).st_size, _begin(path, file)
        _check_begin(path, begin, ends if first == begin.file else None)
        if not 1 <= first <= begin.file:
            raise SDCError(f"argument 'first' must be the number of a file of the log, from 1 to {begin.file}")
        marks = [] if ends is None else [ends]
        last = None
        for number in range(first, begin.file):
            numbered = _numbered(path, number)
            if not numbered.exists():
                there = (later for later in range(number, begin.file) if _numbered(path, later).exists())
                raise SDCError(
                    f"the audit log is not all there: {numbered.name} is gone; where files were put away, look at "
                    f"those after them, first := {next(there, begin.file)}"
                )
            with FileIO(numbered, "r") as old:
                start = _begin(numbered, old)
                _check_link(start, last, number)
                last = _verified(old, start, [], lines, all_marks=marks)[1].mark
        _check_link(begin, last, begin.file)
        if file is None:
            return begin.mark
        return _verified(file, begin, marks, lines, size=size)[1].mark


def _verified(
    file: FileIO,
    before: _Place,
    marks: Sequence[_Mark],
    lines: list[dict[str, Any]] | None = None,
    *,
    seen: _Seen | None = None,
    known: int = 0,
    size: int | None = None,
    all_marks: Sequence[_Mark] = (),
) -> tuple[_Place, _Place]:
    """The places before and after the last line of a file, when all lines from a place on follow from it.

    Args:
        before: the place to begin at.
        marks: lines that must be among those from there on.
        lines: where the lines are put.
        seen: told of each line.
        known: number of the last line that it knows already.
        size: bytes of the file to look at; None: all.
        all_marks: lines that must be so if they are among these.
    """
    file.seek(before.offset)
    last = before
    _check_marked(last.mark, [*marks, *all_marks])
    texts: dict[int, dict[str, Any]] = {}
    # A bare FileIO asks the system for one byte at a time to find the end of a line.
    buffered = BufferedReader(file)
    try:
        for text in buffered:
            if size is not None and last.offset >= size:
                break
            line = _next(last, text)
            if line is None:
                raise SDCError(
                    f"the audit log was changed: line {last.mark.number + 1} does not follow from the lines before it"
                )
            mark = _Mark(last.mark.number + 1, line["hash"])
            if seen is not None and mark.number > known:
                seen(last, line, len(text))
            before, last = last, _Place(last.file, last.offset + len(text), mark)
            _check_marked(last.mark, [*marks, *all_marks])
            if lines is not None:
                lines.append(_with_texts(line, texts))
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


# --- texts -----------------------------------------------------------------------------------------------------------


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


def _with_texts(line: dict[str, Any], lines: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """A line with the texts that it names by the line of the same file that has them."""
    full = dict(line)
    lines[line["number"]] = full
    for key, value in line.items():
        if not isinstance(value, dict):
            continue
        try:
            if "line" in value:
                full[key] = lines[value["line"]][value["of"]]
            elif "packed" in value:
                full[key] = zlib.decompress(base64.b64decode(value["packed"])).decode("utf-8", "surrogatepass")
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
            raise SDCError(f"the audit log was changed: line {line['number']} names a text that is not there") from None
    return full


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


# --- files -----------------------------------------------------------------------------------------------------------


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".last")


def _numbered(path: Path, number: int) -> Path:
    """Where a file of the log stands once the log has gone on in the next."""
    return path.with_name(f"{path.name}.{number:06d}")


def _newest(path: Path) -> int:
    """The number of the last file that the log does not go on in any more; 0: there is none."""
    form = re.compile(re.escape(path.name) + r"\.(\d{6,})")
    found = (form.fullmatch(name) for name in os.listdir(path.parent))
    return max((int(one[1]) for one in found if one is not None), default=0)


def _begin(path: Path, file: FileIO) -> _Place:
    """The beginning of a file of the log: of the first, or of one that says which one it is, and what it follows."""
    file.seek(0)
    buffered = BufferedReader(file)
    try:
        text = buffered.readline()
    finally:
        buffered.detach()
    if not text:
        return _after(path)
    try:
        line = json.loads(text)
        number, before, previous = line["file"], line["number"] - 1, line["previous"]
        if type(number) is int and number > 1 and type(before) is int and isinstance(previous, str):
            return _Place(number, 0, _Mark(before, previous))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return _Place()


def _after(path: Path) -> _Place:
    """The beginning of the file that has no line yet."""
    newest = _newest(path)
    return _Place(newest + 1, 0, _end(_numbered(path, newest))) if newest else _Place()


def _end(path: Path) -> _Mark:
    """The last line of a file that the log does not go on in."""
    line = _last_line(path)
    return _Mark(line["number"], line["hash"])


def _last_line(path: Path) -> dict[str, Any]:
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
        if text.endswith(b"\n") and line["hash"] == _hash(line) and "number" in line:
            return line
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SDCError(f"the audit log was changed: {path.name} does not end with a line of it")


def _check_begin(path: Path, begin: _Place, ends: _Mark | None) -> None:
    """That a file follows from the one before it, if that is there, and from what stands beside the log."""
    before = _numbered(path, begin.file - 1)
    if not begin.offset and begin.file > 1 and before.exists():
        _check_link(begin, _end(before), begin.file)
    if ends is not None and ends.number < begin.mark.number:
        raise SDCError(f"the audit log was changed: the file beside it names line {ends.number}, of an earlier file")


def _check_link(begin: _Place, last: _Mark | None, number: int) -> None:
    if begin.file != number or (last is not None and begin.mark != last):
        raise SDCError(f"the audit log was changed: file {number} does not follow from the file before it")


def _restore(path: Path, ends: _Mark | None) -> None:
    """Make the file that a process which stopped between two files was about to make.

    Raises:
        SDCError: the file is gone.
    """
    if path.exists():
        return
    if _refuse_unless_begun(path, ends):
        _make(path, _numbered(path, _newest(path)).stat().st_mode & 0o666)


def _refuse_unless_begun(path: Path, ends: _Mark | None) -> bool:
    """Whether a file that is not there comes after another one; False: there never was one.

    Raises:
        SDCError: there was one, and it is gone.
    """
    newest = _newest(path)
    if newest and ends is None:
        raise SDCError(
            f"files of an earlier audit log are there: to begin a new one, move {_numbered(path, newest).name} and "
            "those before it away as well"
        )
    if ends is not None and ends.number and (not newest or _end(_numbered(path, newest)) != ends):
        _refuse_lost(ends)
    return newest > 0


def _make(path: Path, mode: int) -> None:
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


def _next(last: _Place, text: bytes) -> dict[str, Any] | None:
    """The line that a text holds, if it follows from the last one: to the letter as it would have been written."""
    try:
        line: dict[str, Any] = json.loads(text)
        good = (
            line["previous"] == last.mark.hash
            and line["number"] == last.mark.number + 1
            and line["hash"] == _hash(line)
            and line.get("file", 1) == (1 if last.offset else last.file)
        )
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
    """The file beside a log, which must be there, locked to write the log; the log itself may become another file.

    It is a bare number, for opening costs each question half as much so. Where the system has no locks on files, a
    third one is held; it stays behind when a process dies, and then nothing is written until somebody takes it away.
    """
    beside = os.open(_beside(path), os.O_RDWR | _BINARY)
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
def _steady(path: Path) -> Iterator[None]:
    """While nobody writes, as far as the system has locks on files, and there is one to lock."""
    try:
        beside = os.open(_beside(path), os.O_RDONLY | _BINARY)
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
