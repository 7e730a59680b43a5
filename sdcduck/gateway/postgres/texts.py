"""Values as PostgreSQL writes them in text, column by column."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.gateway.postgres.types import TEXT, Type

_Part = TypeVar("_Part")
_A_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400_000_000
_YEARS = tuple(int(np.datetime64(day, "D").astype(int)) for day in ("0001-01-01", "10000-01-01"))
"""The days between which Arrow and PostgreSQL write dates alike."""


def texts(column: pa.Array, kind: Type) -> pa.Array:
    """A column as text, NULL where it is.

    Args:
        kind: the type that the client was told of.

    >>> from sdcduck.gateway.postgres.types import FLOAT8
    >>> texts(pa.array([0.5, None, float("-inf")]), FLOAT8).to_pylist()
    ['0.5', None, '-Infinity']
    """
    arrow = column.type
    if pa.types.is_string(arrow):
        return column
    if pa.types.is_dictionary(arrow):
        return column.dictionary_decode().cast(pa.string())
    if pa.types.is_boolean(arrow):
        return pc.if_else(column, "t", "f")
    if pa.types.is_floating(arrow):
        return _floats(column)
    if pa.types.is_timestamp(arrow):
        return _timestamps(column)
    if pa.types.is_time(arrow):
        written = _without_zeros(column.cast(pa.string()))
        return pc.if_else(pc.starts_with(written, "<"), "24:00:00", written)  # which Arrow has no text for
    if pa.types.is_date(arrow):
        return _dates(column)
    if pa.types.is_decimal(arrow):
        return _decimals(column)
    if pa.types.is_integer(arrow) or pa.types.is_null(arrow):
        return column.cast(pa.string())
    if isinstance(arrow, pa.ExtensionType):
        column = column.storage
    if kind.element is not None and is_list(arrow):
        rows = in_lists(column, texts(column.flatten(), kind.element).to_pylist())
        return pa.array([None if row is None else _array(row) for row in rows], pa.string())
    return pa.array([None if value is None else _text(value) for value in _values(column)], pa.string())


def is_list(arrow: pa.DataType) -> bool:
    """Whether a type is one of lists, be they of the same length or not."""
    return bool(pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow))


def in_lists(column: pa.Array, parts: Iterable[_Part]) -> list[list[_Part] | None]:
    """What stands for the values in a column of lists, list by list.

    >>> in_lists(pa.array([[1], None, [], [2, 3]]), "abc")
    [['a'], None, [], ['b', 'c']]
    """
    rest = iter(parts)
    lengths = pc.list_value_length(column).to_pylist()
    return [None if length is None else list(itertools.islice(rest, length)) for length in lengths]


def microseconds(column: pa.Array) -> NDArray[np.int64]:
    """Moments since 1970, rounded down, 0 for NULL; what is infinite is the largest or the least number in any unit."""
    numbers = np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    most = np.iinfo(np.int64).max
    infinite = np.abs(numbers) == most
    each = _A_SECOND[column.type.unit]
    moved = numbers // 1000 if column.type.unit == "ns" else np.where(infinite, 0, numbers) * (1_000_000 // each)
    return np.where(infinite, numbers, moved)


def _values(column: pa.Array) -> list[Any]:
    """As Python has them, but for dates and times within a struct or list: Python has none after 9999."""
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        rows = zip(*map(_values, column.flatten()), strict=True)
        valid = column.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if there else None for row, there in zip(rows, valid, strict=True)]
    if is_list(column.type):
        return in_lists(column, _values(column.flatten()))
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return list(texts(column, TEXT).to_pylist())
    return list(column.to_pylist())


def _floats(column: pa.Array) -> pa.Array:
    written = column.cast(pa.string())
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return written
    for ours, theirs in (("inf", "Infinity"), ("-inf", "-Infinity"), ("nan", "NaN"), ("-nan", "NaN")):
        written = pc.if_else(pc.equal(written, ours), theirs, written)
    return written


def _timestamps(column: pa.Array) -> pa.Array:
    """Moments with a time zone are written for UTC."""
    zone = "+00" if column.type.tz is not None else ""
    numbers = microseconds(column)
    valid = np.asarray(column.is_valid())
    if not len(numbers) or (numbers.min() >= _YEARS[0] * _DAY and numbers.max() < _YEARS[1] * _DAY):
        written = _without_zeros(pa.array(numbers, pa.timestamp("us"), mask=~valid).cast(pa.string()))
        return pc.binary_join_element_wise(written, zone, "") if zone else written
    pairs = zip(numbers.tolist(), valid.tolist(), strict=True)
    return pa.array([_moment(number, "us", 2**63 - 1, zone) if there else None for number, there in pairs], pa.string())


def _dates(column: pa.Array) -> pa.Array:
    days = column.cast(pa.int32())
    ends = pc.min_max(days)
    if ends["min"].as_py() is None or (ends["min"].as_py() >= _YEARS[0] and ends["max"].as_py() < _YEARS[1]):
        return column.cast(pa.string())
    numbers = days.to_pylist()
    return pa.array([None if day is None else _moment(day, "D", 2**31 - 1, "") for day in numbers], pa.string())


def _moment(number: int, unit: str, last: int, zone: str) -> str:
    """A date or moment of any year.

    >>> _moment(-735160, "D", 2**31 - 1, ""), _moment(2**63 - 1, "us", 2**63 - 1, "+00")
    ('0044-03-15 BC', 'infinity')
    """
    if abs(number) >= last:
        return "infinity" if number > 0 else "-infinity"
    day, _, time = str(np.array(number).astype(f"M8[{unit}]")).partition("T")
    sign, year, rest = day[:1] == "-", *day.lstrip("-").split("-", 1)
    before = sign or int(year) == 0
    shown = f"{1 + int(year):04}-{rest}" if before else day
    clock = f" {time.rstrip('0').rstrip('.') if '.' in time else time}{zone}" if time else ""
    return f"{shown}{clock}{' BC' if before else ''}"


def _without_zeros(written: pa.Array) -> pa.Array:
    """Times without zeros at the end of a part of a second."""
    if pc.any(pc.match_substring(written, ".")).as_py() is not True:
        return written
    return pc.replace_substring_regex(written, r"\.?0+$", "")


def _decimals(column: pa.Array) -> pa.Array:
    written = column.cast(pa.string())
    if pc.any(pc.match_substring(written, "E")).as_py() is not True:
        return written
    # Very small numbers come with an exponent.
    return pa.array([None if value is None else f"{value:f}" for value in column.to_pylist()], pa.string())


def _text(value: Any) -> str:
    """One value of a kind that is rare."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime.timedelta):
        return _interval(0, value.days, value.seconds * 1_000_000 + value.microseconds)
    if isinstance(value, pa.MonthDayNano):
        return _interval(value.months, value.days, value.nanoseconds // 1000)
    if isinstance(value, list | dict | tuple):
        return _json(value)
    return str(value)


def _interval(months: int, days: int, microseconds: int) -> str:
    years, rest = divmod(abs(months), 12)
    sign = "-" if months < 0 else ""
    named = ((f"{sign}{years} years", years), (f"{sign}{rest} mons", rest), (f"{days} days", days))
    parts = [text for text, number in named if number]
    if microseconds or not parts:
        seconds, part = divmod(abs(microseconds), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fraction = f".{part:06}".rstrip("0") if part else ""
        parts.append(("-" if microseconds < 0 else "") + clock + fraction)
    return " ".join(parts)


def _json(value: Any) -> str:
    """A list, map or struct as JSON; numbers have all their digits.

    >>> from decimal import Decimal
    >>> _json({"a": [1, None, Decimal(2**63)], "b": 0.5, "c": "x"})
    '{"a": [1, null, 9223372036854775808], "b": 0.5, "c": "x"}'
    """
    if isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
        value = dict(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        parts = (f"{json.dumps(str(key), ensure_ascii=False)}: {_json(part)}" for key, part in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    plain = value is None or isinstance(value, bool | int | float | str)
    return json.dumps(value if plain else _text(value), ensure_ascii=False)


def _array(parts: list[str | None]) -> str:
    """A list as PostgreSQL writes arrays.

    >>> _array(["1", None, 'a "b"'])
    '{1,NULL,"a \\\\"b\\\\""}'
    """
    return "{" + ",".join(map(_element, parts)) + "}"


def _element(written: str | None) -> str:
    if written is None:
        return "NULL"
    if written and written.lower() != "null" and not any(sign in '{}",\\ \t\n\r' for sign in written):
        return written
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'
