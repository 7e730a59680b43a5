"""Names and texts in SQL: how they are quoted, and when two names are one."""

from __future__ import annotations

import datetime
import math
import numbers
import string
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any


def literal(text: str) -> str:
    """A SQL string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    '''A quoted SQL identifier.

    >>> print(identifier('group "a"'))
    "group ""a"""
    '''
    return '"' + name.replace('"', '""') + '"'


def sql_value(given: Any) -> str:
    """None, a number, a text, bytes, a day, a time, or lists, tuples and dicts of these, as SQL.

    >>> sql_value([(1, 75.0), (2, 99.5)]), sql_value(["it's", True])
    ('[(1, 75), (2, 99.5)]', "['it''s', true]")
    >>> print(sql_value({"income": [0, 1e6], "day": datetime.date(2026, 1, 31), "age": range(2), "other": None}))
    {'income': [0, 1000000], 'day': DATE '2026-01-31', 'age': [0, 1], 'other': NULL}

    Raises:
        TypeError: it is something else.
    """
    if given is None:
        return "NULL"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str | PurePath):
        return literal(str(given))
    if isinstance(given, numbers.Real | Decimal):
        return _number(given)
    if isinstance(given, bytes):
        return literal("".join(f"\\x{byte:02X}" for byte in given)) + "::BLOB"
    if isinstance(given, datetime.datetime):
        return f"{'TIMESTAMP' if given.tzinfo is None else 'TIMESTAMPTZ'} {literal(str(given))}"
    if isinstance(given, datetime.date):
        return f"DATE {literal(str(given))}"
    if isinstance(given, Mapping) and given:
        return f"{{{', '.join(f'{literal(str(name))}: {sql_value(value)}' for name, value in given.items())}}}"
    if isinstance(given, list | range) or (isinstance(given, tuple) and given):
        parts = ", ".join(map(sql_value, given))
        return f"({parts})" if isinstance(given, tuple) else f"[{parts}]"
    raise TypeError


def _number(given: numbers.Real | Decimal) -> str:
    if isinstance(given, numbers.Integral):
        return str(int(given))
    if not math.isfinite(given):
        return f"{literal(str(float(given)))}::DOUBLE"
    return str(given) if isinstance(given, Decimal) else repr(float(given)).removesuffix(".0")


_TO_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def folded(name: str) -> str:
    """A name as DuckDB compares it: two names are one if they differ in the case of ASCII letters only.

    Python's ``lower`` takes more letters for one: K and the Kelvin sign, both k.

    >>> folded("KUNDEN"), folded("ÄMTER") == folded("ämter"), folded("\u212aunden") == folded("kunden")
    ('kunden', False, False)
    """
    return name.lower() if name.isascii() else name.translate(_TO_LOWER_CASE)


def folded_sql(expression: str) -> str:
    """The SQL of a name as `folded` has it: DuckDB's own ``lower`` is that of all Unicode."""
    return f"translate({expression}, '{string.ascii_uppercase}', '{string.ascii_lowercase}')"


_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a text begins that a spreadsheet would run


def harmless(text: str) -> str:
    """A text that no spreadsheet runs: with an apostrophe before what would be a formula.

    >>> harmless("=1+1"), harmless("north")
    ("'=1+1", 'north')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
