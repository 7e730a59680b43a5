"""What a column is good for, guessed from its name, its type and its values; the custodian corrects it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sdcduck.udfs.source import is_number

ROLES = {
    "identifier": "tells who it is: never published",
    "dimension": "tables are broken down by it",
    "measure": "is added up",
    "sensitive": "should not be learned of anybody",
    "other": "is left alone",
}
_MOST_CATEGORIES = 150
_LEAST_RECORDS = 5  # of each value, for a hierarchy to be more than chance
_NEARLY_ALL = 0.95  # of distinct values, which are an estimate
_IDENTIFIES = re.compile(r"(^|_)(id|uuid|nr|number|ssn|key|name|email|phone|address|person|unit|firm)(_|$)|_?id$")
_SENSITIVE = re.compile(
    r"diagnos|disease|illness|health|hiv|relig|ethnic|race|income|salary|wage|earning|debt|crime|offence|benefit|sexual"
)


@dataclass(frozen=True)
class Column:
    """A column with what it is taken for.

    Attributes:
        name, sql_type: as in the table.
        distinct: about how many values the sample has.
        nulls: per cent without a value.
        role: one of `ROLES`.
        why: what that was guessed from.
    """

    name: str
    sql_type: str
    distinct: int
    nulls: float
    role: str
    why: str


def guessed(summary: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of a table from what ``SUMMARIZE`` says of them.

    >>> row = {"column_name": "region", "column_type": "VARCHAR", "approx_unique": 4, "count": 100}
    >>> [(one.role, one.why) for one in guessed([{**row, "null_percentage": 0}])]
    [('dimension', '4 values')]
    """
    return [_column(row) for row in summary]


def hierarchies(columns: Sequence[str], counts: Sequence[int]) -> dict[str, str]:
    """In which other column the values of one lie: each in one of its values, and the nearest such column.

    Args:
        counts: of the records, of the values of each column, and of those of every two together.

    >>> hierarchies(["country", "region", "town", "sex"], [900, 2, 6, 40, 2, 6, 40, 4, 40, 12, 80])
    {'region': 'country', 'town': 'region'}
    """
    records, rest = counts[0], counts[1:]
    values = dict(zip(columns, rest, strict=False))
    pairs = dict(zip(itertools.combinations(columns, 2), rest[len(columns) :], strict=True))
    found: dict[str, str] = {}
    for lower in columns:
        # Of few records any column seems to lie in any other.
        if values[lower] * _LEAST_RECORDS > records:
            continue
        above = [
            upper for upper in columns
            if values[lower] >= 2 * values[upper] and values[upper] > 1
            and (pairs.get((lower, upper)) or pairs.get((upper, lower))) == values[lower]
        ]  # fmt: skip
        above = [upper for upper in above if upper not in found.values()]
        if above:
            found[lower] = max(above, key=lambda upper: values[upper])
    return found


def _column(row: dict[str, Any]) -> Column:
    name, sql_type = str(row["column_name"]), str(row["column_type"])
    distinct, count = int(row["approx_unique"] or 0), int(row["count"] or 0)
    role, why = _role(name.lower(), sql_type, distinct, count)
    return Column(name, sql_type, distinct, float(row["null_percentage"] or 0), role, why)


def _role(name: str, sql_type: str, distinct: int, count: int) -> tuple[str, str]:
    number, whole = is_number(sql_type), sql_type.endswith(("INT", "INTEGER"))
    unique = count > 1 and distinct >= _NEARLY_ALL * count
    if name == "record_key":
        return "other", "the record key"
    if unique and (whole or not number) and (not number or _IDENTIFIES.search(name)):
        return "identifier", "another value in nearly each record"
    if _IDENTIFIES.search(name) and distinct > _MOST_CATEGORIES:
        return "identifier", "its name"
    if _SENSITIVE.search(name):
        return (
            "measure" if number else "sensitive"
        ), "its name" if not number else "numbers, and sensitive by its name"
    if distinct <= _MOST_CATEGORIES and (whole or not number):
        return "dimension", f"{distinct} value{'' if distinct == 1 else 's'}"
    if number:
        return "measure", "numbers"
    return "other", f"{distinct:,} values"
