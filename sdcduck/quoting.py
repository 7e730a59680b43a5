"""Names and texts in SQL: how they are quoted, and when two names are one."""

from __future__ import annotations

import math
import string
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
    """A number, a text, a truth value, or lists and tuples of these, as SQL.

    >>> sql_value([(1, 75.0), (2, 99.5)]), sql_value(["it's", True])
    ('[(1, 75), (2, 99.5)]', "['it''s', true]")

    Raises:
        TypeError: it is something else.
    """
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str):
        return literal(given)
    if isinstance(given, int | float) and math.isfinite(given):
        return repr(given).removesuffix(".0")
    if isinstance(given, list) or (isinstance(given, tuple) and given):
        parts = ", ".join(map(sql_value, given))
        return f"[{parts}]" if isinstance(given, list) else f"({parts})"
    raise TypeError


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
