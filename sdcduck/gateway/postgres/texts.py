"""Values as PostgreSQL writes them in text, column by column."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.gateway.postgres.types import Type

_LAST = {"date": 2**31 - 1, "timestamp": 2**63 - 1}


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
        return _without_zeros(column.cast(pa.string()))
    if pa.types.is_date(arrow):
        days = column.cast(pa.int32())
        return _with_infinity(column, days, _LAST["date"])
    if pa.types.is_decimal(arrow):
        return _decimals(column)
    if pa.types.is_integer(arrow) or pa.types.is_null(arrow):
        return column.cast(pa.string())
    if isinstance(arrow, pa.ExtensionType):
        column = column.storage
    write = _array if kind.category == "A" else _text
    return pa.array([None if value is None else write(value) for value in column.to_pylist()], pa.string())


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
    plain = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    written = _with_infinity(plain, plain.cast(pa.int64()), _LAST["timestamp"])
    return pc.binary_join_element_wise(written, zone, "") if zone else written


def _with_infinity(column: pa.Array, numbers: pa.Array, last: int) -> pa.Array:
    infinite = pc.greater_equal(pc.abs(numbers), last)
    if pc.any(infinite).as_py() is not True:
        return _without_zeros(column.cast(pa.string()))
    written = _without_zeros(pc.if_else(infinite, None, column).cast(pa.string()))
    words = pc.if_else(pc.greater(numbers, 0), "infinity", "-infinity")
    return pc.if_else(infinite, words, written)


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


def _array(value: Any) -> str:
    """A list as PostgreSQL writes arrays.

    >>> _array([1, None, 'a "b"'])
    '{1,NULL,"a \\\\"b\\\\""}'
    """
    return "{" + ",".join(_element(part) for part in value) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _array(value)
    written = _text(value)
    if isinstance(value, bool | int | float | Decimal):
        return written
    if written and written.lower() != "null" and not any(sign in '{}",\\ \t\n\r' for sign in written):
        return written
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'
