"""Names and texts in SQL: how they are quoted, and when two names are one."""

from __future__ import annotations

import string


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
