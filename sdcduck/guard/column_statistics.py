"""What DuckDB's ``stats`` says of a column of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sdcduck.quoting import folded, identifier

_LONGEST = re.compile(r"max_string_length'?: (\d+)")
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


def as_statistics(columns: Iterable[str]) -> str:
    """The SQL of what ``stats`` would say of numeric columns, worked out of all rows."""
    return ", ".join(
        f"concat('has_null: ', count(*) > count({name}), ', min: ', min({name}), ', max: ', max({name}), ',')"
        for name in map(identifier, columns)
    )
