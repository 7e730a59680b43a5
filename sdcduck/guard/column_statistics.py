"""What DuckDB's ``stats`` says of a column of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import duckdb

from sdcduck.quoting import folded, identifier

_LONGEST = re.compile(r"max_string_length'?: (\d+)")
_OFF = (None, "No statistics")
"""What DuckDB 2 and DuckDB 1 say where it is worked out by an optimizer that is off."""
_STATISTIC = re.compile(r"'?(has_null|min|max)'?\s*: ([^,\]}]+)")


def _statistics(text: str) -> dict[str, str]:
    return dict(_STATISTIC.findall(folded(text).replace("has null", "has_null")))


def never_null(text: str) -> bool:
    """Whether a column has no NULL, by what DuckDB's ``stats`` says of it.

    >>> never_null("[Min: 0, Max: 3][Has Null: false, Has No Null: true]"), never_null("{'has_null': true, 'max': 3}")
    (True, False)
    """
    return _statistics(text).get("has_null") == "false"


def longest(text: str) -> float:
    """The bytes of the longest text of a column, by what DuckDB's ``stats`` says of it; 0 where it does not say it.

    >>> longest("{'max': zz, 'max_string_length': 7}"), longest("[Min: a, Max: b, Max String Length: 12]")
    (7.0, 12.0)
    """
    return max(map(float, _LONGEST.findall(folded(text).replace(" string length", "_string_length"))), default=0.0)


def never_zero(text: str) -> bool:
    """Whether all numbers of a column are positive, or all negative, on the grid of four decimals too.

    >>> never_zero("{'has_null': false, 'max': 3, 'min': 1}"), never_zero("[Min: 0, Max: 3][Has Null: false]")
    (True, False)
    """
    known = _statistics(text)
    try:
        least, most = float(known["min"]), float(known["max"])
    except (KeyError, ValueError):
        return False
    return least >= 1e-4 or most <= -1e-4


def statistics_of(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> dict[str, str]:
    """What DuckDB's ``stats`` says of numeric columns of a table, which is named in SQL; of an empty one nothing.

    Raises:
        duckdb.BinderException: there is no such column.
    """
    shown = ", ".join(f"stats({identifier(name)})::VARCHAR" for name in columns)
    rows = con.execute(f"SELECT {shown} FROM {table} LIMIT 1").fetchall()
    if any(text in _OFF for row in rows for text in row):
        rows = con.execute(f"SELECT {_as_statistics(columns)} FROM {table}").fetchall()
    return {name: text for row in rows for name, text in zip(columns, row, strict=True)}


def longest_of(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> dict[str, float]:
    """The bytes of the longest text of each of these columns of a table, which is named in SQL."""
    shown = ", ".join(f"stats({identifier(name)})::VARCHAR" for name in columns)
    first = f"rowid = (SELECT rowid FROM {table} LIMIT 1)"  # LIMIT alone would read two thousand of these texts
    rows = con.execute(f"SELECT {shown} FROM {table} WHERE {first} LIMIT 1").fetchall()
    if not any(text in _OFF for row in rows for text in row):
        return {name: longest(text) for row in rows for name, text in zip(columns, row, strict=True)}
    shown = ", ".join(f"max(strlen({identifier(name)}::VARCHAR))" for name in columns)
    sizes = con.execute(f"SELECT {shown} FROM {table}").fetchall()[0]
    return {name: float(size or 0) for name, size in zip(columns, sizes, strict=True)}


def _as_statistics(columns: Iterable[str]) -> str:
    """The SQL of what ``stats`` would say of numeric columns, worked out of all rows."""
    return ", ".join(
        f"concat('has_null: ', count(*) > count({name}), ', min: ', min({name}), ', max: ', max({name}), ',')"
        for name in map(identifier, columns)
    )
