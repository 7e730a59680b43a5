"""Reading an audit log, and seeing that nothing in it was changed."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import zlib
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from sdcduck.catalog import audit_files as files
from sdcduck.errors import SDCError

_Seen = Callable[[files.Place, dict[str, Any], int], None]
"""Told of a line: the place before it, what it says, and its bytes."""


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


def _looked_at(path: Path, first: int, lines: list[dict[str, Any]] | None = None) -> files.Mark:
    """The last line of a log that is whole; where all its lines are put, if anywhere."""
    with contextlib.ExitStack() as opened:
        with files.steady(path):
            # What is there now stays: whoever reads holds up nobody who writes.
            ends = files.marked(path)
            if not path.exists():
                files.refuse_unless_begun(path, ends)
                file, size, begin = None, 0, files.after(path)
            else:
                file = opened.enter_context(FileIO(path, "r"))
                size, begin = os.fstat(file.fileno()).st_size, files.begin(path, file)
        files.check_begin(path, begin, ends if first == begin.file else None)
        if not 1 <= first <= begin.file:
            raise SDCError(f"argument 'first' must be the number of a file of the log, from 1 to {begin.file}")
        marks = [] if ends is None else [ends]
        last = None
        for number in range(first, begin.file):
            numbered = files.numbered(path, number)
            if not numbered.exists():
                there = (later for later in range(number, begin.file) if files.numbered(path, later).exists())
                raise SDCError(
                    f"the audit log is not all there: {numbered.name} is gone; where files were put away, look at "
                    f"those after them, first := {next(there, begin.file)}"
                )
            with FileIO(numbered, "r") as old:
                start = files.begin(numbered, old)
                files.check_link(start, last, number)
                last = verified(old, start, [], lines, all_marks=marks)[1].mark
        files.check_link(begin, last, begin.file)
        if file is None:
            return begin.mark
        return verified(file, begin, marks, lines, size=size)[1].mark


def verified(
    file: FileIO,
    before: files.Place,
    marks: Sequence[files.Mark],
    lines: list[dict[str, Any]] | None = None,
    *,
    seen: _Seen | None = None,
    known: int = 0,
    size: int | None = None,
    all_marks: Sequence[files.Mark] = (),
) -> tuple[files.Place, files.Place]:
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
    last = before
    _check_marked(last.mark, [*marks, *all_marks])
    texts: dict[int, dict[str, Any]] = {}
    try:
        for here, line in files.following(file, last, size=size):
            if seen is not None and here.mark.number > known:
                seen(last, line, here.offset - last.offset)
            before, last = last, here
            _check_marked(last.mark, [*marks, *all_marks])
            if lines is not None:
                lines.append(_with_texts(line, texts))
    except files.DoesNotFollow as problem:
        raise SDCError(
            f"the audit log was changed: line {problem.number} does not follow from the lines before it"
        ) from None
    for mark in marks:
        if mark.number > last.mark.number:
            files.refuse_lost(mark)
    return before, last


def _check_marked(found: files.Mark, marks: Sequence[files.Mark]) -> None:
    if any(mark.number == found.number and mark.hash != found.hash for mark in marks):
        raise SDCError(f"the audit log was changed: line {found.number} is not the one that was written")


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
