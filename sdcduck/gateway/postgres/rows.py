"""Batches of rows as messages: whole columns at a time, joined by Arrow, so that no row is touched by Python.

A row is a few pieces of bytes: what all rows begin with, then length and value of each column. Arrow joins the pieces
of all rows into one array, whose data are the messages as they are sent. For a handful of rows, which is what most
questions have for an answer, calling Arrow costs more than it saves: those are written value by value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.gateway.postgres.binary import fixed, values
from sdcduck.gateway.postgres.texts import texts
from sdcduck.gateway.postgres.types import Type

_LENGTH = 4
_NULL = b"\xff\xff\xff\xff"
_FEW = 256  # values


def data_rows(batch: pa.RecordBatch, kinds: Sequence[Type], formats: Sequence[int]) -> memoryview:
    """The rows as DataRow messages.

    Args:
        kinds: the types that the client was told of, column by column.
        formats: 0 for text and 1 for binary, column by column.
    """
    return _rows(b"D", batch, kinds, formats)


def copy_binary_rows(batch: pa.RecordBatch, kinds: Sequence[Type], head: bytes = b"") -> memoryview:
    """The rows as CopyData messages of COPY .. (FORMAT binary), the first of them with what comes before all rows."""
    rows = _rows(b"d", batch, kinds, [1] * len(kinds))
    if not head or not rows:
        return rows
    length = int.from_bytes(rows[1:5], "big") + len(head)
    return memoryview(b"d" + length.to_bytes(4, "big") + head + bytes(rows[5:]))


def _rows(letter: bytes, batch: pa.RecordBatch, kinds: Sequence[Type], formats: Sequence[int]) -> memoryview:
    if 0 < batch.num_rows * len(kinds) <= _FEW:
        return _few_rows(letter, batch, kinds, formats)
    fields = [_field(column, kind, form) for column, kind, form in zip(batch.columns, kinds, formats, strict=True)]
    head = np.zeros(batch.num_rows, np.dtype([("letter", "S1"), ("length", ">i4"), ("columns", ">u2")]))
    head["letter"], head["columns"] = letter, len(fields)
    head["length"] = sum((field.lengths for field in fields), np.full(batch.num_rows, _LENGTH + 2, np.int64))
    return _joined(batch.num_rows, [_fixed(head), *(piece for field in fields for piece in field.pieces)])


def _few_rows(letter: bytes, batch: pa.RecordBatch, kinds: Sequence[Type], formats: Sequence[int]) -> memoryview:
    columns = [
        _one_by_one(column, kind, form) for column, kind, form in zip(batch.columns, kinds, formats, strict=True)
    ]
    rows = [b"".join(row) for row in zip(*columns, strict=True)]
    return memoryview(b"".join(letter + struct.pack("!iH", _LENGTH + 2 + len(row), len(columns)) + row for row in rows))


def _one_by_one(column: pa.Array, kind: Type, form: int) -> list[bytes]:
    """The values of a column, each after its length."""
    numbers = fixed(column, kind) if form else None
    if numbers is not None:
        width, data = numbers.dtype.itemsize, numbers.tobytes()
        head, starts = struct.pack("!i", width), range(0, len(data), width)
        found = zip(starts, column.is_valid().to_pylist() if column.null_count else [True] * len(column), strict=True)
        return [head + data[start : start + width] if valid else _NULL for start, valid in found]
    if form:
        column = values(column, kind)
    elif not pa.types.is_integer(column.type):  # the text of a few whole numbers need not come from Arrow
        column = texts(column, kind)
    return [_NULL if value is None else _with_length(value) for value in column.to_pylist()]


def _with_length(value: str | bytes | int) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode()
    return struct.pack("!i", len(data)) + data


COPY_BINARY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_BINARY_END = b"\xff\xff"


@dataclass(frozen=True)
class CopyText:
    """How COPY writes text.

    Attributes:
        delimiter: between values.
        null: what NULL is written as.
        header: whether the names of the columns come first.
        quote: of CSV; empty: the text format, with backslashes.
        escape: before a quote within quotes.
    """

    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = ""
    escape: str = ""

    def names(self, names: Sequence[str]) -> bytes:
        """The line with the names of the columns."""
        written = self._written(pa.array(names, pa.string())).to_pylist()
        return self.delimiter.join(written).encode() + b"\n"

    def rows(self, batch: pa.RecordBatch, kinds: Sequence[Type]) -> memoryview:
        """The rows as CopyData messages."""
        pieces: list[pa.Array] = []
        lengths = np.full(batch.num_rows, _LENGTH + 1, np.int64)
        for place, (column, kind) in enumerate(zip(batch.columns, kinds, strict=True)):
            if place:
                pieces.append(self.delimiter.encode())
                lengths += len(self.delimiter.encode())
            text = pc.fill_null(self._written(texts(column, kind)), self.null).cast(pa.binary())
            lengths += _lengths(text)
            pieces.append(text)
        head = np.zeros(batch.num_rows, np.dtype([("letter", "S1"), ("length", ">i4")]))
        head["letter"], head["length"] = b"d", lengths
        return _joined(batch.num_rows, [_fixed(head), *pieces, b"\n"])

    def _written(self, column: pa.Array) -> pa.Array:
        if not self.quote:
            return self._escaped(column)
        special = pc.equal(column, self.null)
        for sign in (self.delimiter, self.quote, "\n", "\r"):
            special = pc.or_(special, pc.match_substring(column, sign))
        if pc.any(special).as_py() is not True:
            return column
        inner = column if self.escape == self.quote else pc.replace_substring(column, self.escape, self.escape * 2)
        inner = pc.replace_substring(inner, self.quote, self.escape + self.quote)
        return pc.if_else(special, pc.binary_join_element_wise(self.quote, inner, self.quote, ""), column)

    def _escaped(self, column: pa.Array) -> pa.Array:
        signs = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
        for sign, written in (signs | {self.delimiter: signs.get(self.delimiter, "\\" + self.delimiter)}).items():
            if pc.any(pc.match_substring(column, sign)).as_py() is True:
                column = pc.replace_substring(column, sign, written)
        return column


@dataclass(frozen=True)
class _Field:
    """One column: its pieces, and how many bytes they have in each row."""

    pieces: tuple[pa.Array, ...]
    lengths: NDArray[np.int64]


def _field(column: pa.Array, kind: Type, form: int) -> _Field:
    numbers = fixed(column, kind) if form else None
    if numbers is not None:
        return _fixed_field(numbers, _valid(column))
    text = values(column, kind) if form else texts(column, kind).cast(pa.binary())
    valid, lengths = _valid(column), _lengths(text)
    head = np.where(valid, lengths, -1).astype(">i4")
    return _Field((_fixed(head), text), lengths + _LENGTH)


def _fixed_field(numbers: NDArray[np.generic], valid: NDArray[np.bool_]) -> _Field:
    """Values of the same number of bytes each, in one piece with their length."""
    width = numbers.dtype.itemsize
    both = np.zeros(len(numbers), np.dtype([("length", ">i4"), ("value", numbers.dtype)]))
    both["length"], both["value"] = width, numbers
    lengths = np.full(len(numbers), _LENGTH + width, np.int64)
    if valid.all():
        return _Field((_fixed(both),), lengths)
    lengths[~valid] = _LENGTH
    both["length"][~valid] = -1
    # What follows the length of a NULL is left out.
    kept = np.ones((len(numbers), _LENGTH + width), np.bool_)
    kept[~valid, _LENGTH:] = False
    data = both.view(np.uint8).reshape(len(numbers), _LENGTH + width)[kept]
    return _Field((_array(data, lengths),), lengths)


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), np.bool_)


def _lengths(data: pa.Array) -> NDArray[np.int64]:
    """Bytes of each value, 0 for NULL."""
    return np.asarray(pc.fill_null(pc.binary_length(data), 0).to_numpy(zero_copy_only=False), np.int64)


def _fixed(data: NDArray[np.generic]) -> pa.Array:
    """A piece of the same number of bytes in every row."""
    return _array(data.view(np.uint8), np.full(len(data), data.dtype.itemsize, np.int64))


def _array(data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )


def _joined(rows: int, pieces: Sequence[pa.Array | bytes]) -> memoryview:
    if rows == 0:
        return memoryview(b"")
    joined = pc.binary_join_element_wise(
        *pieces, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=""
    )
    _, offsets, data = joined.buffers()
    return memoryview(data)[: int(np.frombuffer(offsets, np.int32)[rows])]
