"""What is said of a query that failed in DuckDB: the kind of failure, and what no record can have decided.

DuckDB's messages quote values. So none of them is passed on as it is: a few forms are known, about the types of what
stands in a query, and only names of functions and types that are on a list are taken out of these. The labels of an
ENUM are part of its type, and they are data: of such a type nothing is said.
"""

from __future__ import annotations

import re

_TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "BIT", "UUID", "DATE", "TIME", "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP", "INTERVAL", "STRING_LITERAL", "INTEGER_LITERAL",
)  # fmt: skip
_TYPE = rf"(?:(?:{'|'.join(_TYPES)}|DECIMAL\(\d{{1,2}},\d{{1,2}}\))(?:\[\]){{0,3}}(?![\w(]))"
_NAME = r"(?!_)(?P<name>[a-z][a-z_0-9]{0,40}|[-+*/%|<>=!~^&]{1,3})"
_LISTED = rf"(?:{_TYPE}(?:, |(?=\)))){{0,9}}"
_FORMS = (
    (
        r"(?:No matching aggregate function\s+Binder Error: )?No function matches the given name and argument types "
        rf"'{_NAME}\((?P<types>{_LISTED})\)'",
        "no function {name}({types}): a cast helps, as x::DOUBLE or x::VARCHAR",
    ),
    (
        r"Could not choose a best candidate function for the function call "
        rf"\"{_NAME}\((?P<types>{_LISTED})\)\"",
        "several functions {name}({types}): a cast helps, as x::DOUBLE or x::VARCHAR",
    ),
    (
        rf"Cannot compare values of type (?P<a>{_TYPE}) and (?:values of )?type (?P<b>{_TYPE})",
        "{a} is compared with {b}: a cast helps, as x::VARCHAR",
    ),
    (
        rf"Cannot mix values of type (?P<a>{_TYPE}) and (?P<b>{_TYPE}) in (?P<where>[A-Za-z ]{{2,30}})",
        "{a} and {b} together in {where}: a cast helps, as x::VARCHAR",
    ),
)  # fmt: skip
"""Beginnings of messages about types, behind the kind of error, and what is said in their place."""

_BY_KIND = {
    "OutOfRangeException": "a number is too large for its type: a cast helps, as x::DOUBLE or x::HUGEINT",
    "ConversionException": "a value is not of the type that it is cast to: TRY_CAST(x AS ..) makes NULL of it",
}


def failure(problem: Exception) -> str:
    """The kind of a failure, and what is known of it without a value.

    >>> import duckdb
    >>> failure(duckdb.OutOfRangeException("Out of Range Error: Overflow in multiplication of INT32 (4711 * 815)"))
    'OutOfRangeException; a number is too large for its type: a cast helps, as x::DOUBLE or x::HUGEINT'
    >>> failure(duckdb.BinderException("Binder Error: Cannot compare values of type VARCHAR and type DATE - an"))
    'BinderException; VARCHAR is compared with DATE: a cast helps, as x::VARCHAR'
    >>> failure(duckdb.BinderException("Binder Error: Cannot compare values of type ENUM('a') and type DATE"))
    'BinderException'
    """
    kind = type(problem).__name__
    known = _BY_KIND.get(kind)
    if known is not None:
        return f"{kind}; {known}"
    for form, words in _FORMS if kind == "BinderException" else ():
        found = re.match(f"Binder Error: {form}", str(problem))
        if found is not None:
            return f"{kind}; {words.format(**found.groupdict())}"
    return kind
