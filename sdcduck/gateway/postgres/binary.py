"""Values in the binary format of PostgreSQL, column by column."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.texts import in_lists, is_list, microseconds, texts
from sdcduck.gateway.postgres.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    OID,
    REGCLASS,
    REGTYPE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
)  # fmt: skip

_DAYS = 10_957  # from 1970 to 2000
_MICROSECONDS = _DAYS * 86_400_000_000
_NUMBERS = {
    INT2.oid: (pa.int16(), ">i2"), INT4.oid: (pa.int32(), ">i4"), INT8.oid: (pa.int64(), ">i8"),
    OID.oid: (pa.int64(), ">u4"), REGCLASS.oid: (pa.int64(), ">u4"), REGTYPE.oid: (pa.int64(), ">u4"),
    FLOAT4.oid: (pa.float32(), ">f4"), FLOAT8.oid: (pa.float64(), ">f8"),
}  # fmt: skip


def fixed(column: pa.Array, kind: Type) -> NDArray[np.generic] | None:
    """A column of a type whose values all have the same number of bytes; None for other types.

    Raises:
        PostgresError: a number is none of the type that the client was told of before there were values.
    """
    if kind.oid in _NUMBERS:
        arrow, numpy = _NUMBERS[kind.oid]
        try:
            numbers = column.cast(arrow, safe=pa.types.is_integer(arrow))
        except pa.ArrowInvalid:
            raise PostgresError("22003", f"a number that is out of range for type {kind.name}") from None
        return _plain(numbers).astype(numpy)
    if kind.oid == BOOL.oid:
        return _plain(column.cast(pa.uint8())).astype("u1")
    if kind.oid == DATE.oid:
        days = _plain(column.cast(pa.date32()).cast(pa.int32()))
        return _since_2000(days, _DAYS, np.iinfo(np.int32)).astype(">i4")
    if kind.oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        moments = column if pa.types.is_timestamp(column.type) else column.cast(pa.timestamp("us"))
        return _since_2000(microseconds(moments), _MICROSECONDS, np.iinfo(np.int64)).astype(">i8")
    if kind.oid == TIME.oid:
        return _plain(column.cast(pa.time64("us")).cast(pa.int64())).astype(">i8")
    return None


def _plain(column: pa.Array) -> NDArray[Any]:
    """The numbers of a column, 0 for NULL."""
    if column.null_count:
        column = column.fill_null(0)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _since_2000(numbers: NDArray[Any], origin: int, limits: Any) -> NDArray[Any]:
    infinite = (numbers == limits.max) | (numbers <= limits.min + 1)
    if (~infinite & (numbers < limits.min + 2 + origin)).any():
        raise PostgresError("22008", "a date or time that is out of range")
    moved = numbers - np.where(infinite, 0, origin)
    return np.where(infinite, np.where(numbers > 0, limits.max, limits.min), moved)


def values(column: pa.Array, kind: Type) -> pa.Array:
    """A column of a type whose values differ in length."""
    if pa.types.is_null(column.type):
        return column.cast(pa.binary())
    if kind.oid == NUMERIC.oid:
        return _numerics(column)
    if kind.element is not None and is_list(column.type):
        return _arrays(column, kind.element)
    if kind.oid in _ONE_BY_ONE:
        write = _ONE_BY_ONE[kind.oid]
        return pa.array([None if value is None else write(value) for value in column.to_pylist()], pa.binary())
    return texts(column, kind).cast(pa.binary())


def _interval(value: Any) -> bytes:
    if isinstance(value, str):  # a parameter, which DuckDB takes for a text where nothing says what it is
        raise PostgresError("0A000", "an interval is sent in text only here: write $1::interval")
    return struct.pack("!qii", value.nanoseconds // 1000, value.days, value.months)


_ONE_BY_ONE: dict[int, Callable[[Any], bytes]] = {
    BYTEA.oid: bytes,
    UUID.oid: lambda value: uuid.UUID(str(value)).bytes,
    INTERVAL.oid: _interval,
}


def _arrays(column: pa.Array, element: Type) -> pa.Array:
    inside = column.flatten()
    numbers = fixed(inside, element)
    parts = _pieces(numbers) if numbers is not None else values(inside, element).to_pylist()
    written = [
        struct.pack("!i", len(part)) + part if valid else None
        for part, valid in zip(parts, inside.is_valid().to_pylist(), strict=True)
    ]
    return pa.array([None if row is None else _array(row, element) for row in in_lists(column, written)], pa.binary())


def _array(parts: list[bytes | None], element: Type) -> bytes:
    if not parts:
        return struct.pack("!iii", 0, 0, element.oid)
    data = b"".join(struct.pack("!i", -1) if part is None else part for part in parts)
    return struct.pack("!iiiii", 1, int(None in parts), element.oid, len(parts), 1) + data


def _pieces(numbers: NDArray[Any]) -> list[bytes]:
    """The bytes of each number, in the order that they have in the array."""
    return [row.tobytes() for row in numbers.view(np.uint8).reshape(len(numbers), numbers.dtype.itemsize)]


_GROUP = 10_000
_POSITIVE, _NEGATIVE = 0x0000, 0x4000
_GROUPS_OF_INT64 = 5
_LARGEST = 10**18


def _numerics(column: pa.Array) -> pa.Array:
    """Numbers in groups of four decimal digits: those of 18 digits at once, others one by one."""
    scale = column.type.scale if pa.types.is_decimal(column.type) else 0
    numbers = _unscaled(column, scale)
    if numbers is None:
        decimals = column.to_pylist()
        return pa.array([None if value is None else numeric(Decimal(value), scale) for value in decimals], pa.binary())
    valid = np.ones(len(column), np.bool_) if column.null_count == 0 else np.asarray(column.is_valid())
    return _few_digits(numbers, valid, scale)


def _unscaled(column: pa.Array, scale: int) -> NDArray[np.int64] | None:
    """The digits of numbers as integers, if they all have room."""
    if pa.types.is_decimal128(column.type):
        data = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
        low, high = data[::2], data[1::2]
        if column.null_count:
            valid = np.asarray(column.is_valid())
            low, high = np.where(valid, low, 0), np.where(valid, high, 0)
        fits = (high == low >> 63).all()
    elif pa.types.is_integer(column.type) and column.type != pa.uint64():
        low, fits = _plain(column.cast(pa.int64())), True
    else:
        return None
    # Aligning the digits to groups of four multiplies by up to 1000.
    room = _LARGEST // 10 ** (-scale % 4)
    return low if fits and (np.abs(low) < room).all() and (low != np.iinfo(np.int64).min).all() else None


def _few_digits(numbers: NDArray[np.int64], valid: NDArray[np.bool_], scale: int) -> pa.Array:
    after = -(-scale // 4)  # groups behind the point
    rest = np.abs(numbers) * 10 ** (after * 4 - scale)
    count = max(_GROUPS_OF_INT64, after)
    groups = np.zeros((len(numbers), count), ">i2")
    for place in range(count - 1, -1, -1):
        rest, groups[:, place] = np.divmod(rest, _GROUP)
    filled = groups != 0
    first = np.where(filled.any(axis=1), filled.argmax(axis=1), count)
    last = np.where(filled.any(axis=1), count - filled[:, ::-1].argmax(axis=1), count)
    used = last - first
    head = np.zeros(len(numbers), np.dtype([("n", ">i2"), ("weight", ">i2"), ("sign", ">i2"), ("scale", ">i2")]))
    head["n"], head["scale"] = used, scale
    head["weight"] = np.where(used > 0, count - after - 1 - first, 0)
    head["sign"] = np.where((numbers < 0) & (used > 0), _NEGATIVE, _POSITIVE)
    row = np.concatenate([head.view(np.uint8).reshape(-1, 8), groups.view(np.uint8).reshape(-1, 2 * count)], axis=1)
    places = np.arange(count)
    kept_groups = (places >= first[:, None]) & (places < last[:, None])
    kept = np.concatenate([np.ones((len(numbers), 8), np.bool_), np.repeat(kept_groups, 2, axis=1)], axis=1)
    kept &= valid[:, None]
    offsets = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(np.where(valid, 8 + 2 * used, 0), out=offsets[1:])
    bits = np.packbits(valid, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(row[kept]))]
    return pa.Array.from_buffers(pa.binary(), len(numbers), buffers)


def numeric(value: Decimal, scale: int) -> bytes:
    """One number.

    >>> numeric(Decimal("-12345.678"), 3).hex(" ", 2)
    '0003 0001 4000 0003 0001 0929 1a7c'
    """
    if value.is_nan():
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    after = -(-scale // 4)
    rest = _exact(value, after * 4)
    groups: list[int] = []
    while rest:
        rest, group = divmod(rest, _GROUP)
        groups.insert(0, group)
    weight = len(groups) - after - 1
    while groups and groups[-1] == 0:
        groups.pop()
    sign = _NEGATIVE if value < 0 and groups else _POSITIVE
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, sign, scale, *groups)


def _exact(value: Decimal, places: int) -> int:
    """The digits of a number, moved by places, without the rounding of decimal contexts."""
    _, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    assert isinstance(exponent, int)
    moved = exponent + places
    return int(number * 10**moved if moved >= 0 else number // 10**-moved)
