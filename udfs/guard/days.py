"""Bounds of dates and moments: the first and the last day that there may be, as everybody knows."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from sdcduck.errors import SDCError
from sdcduck.quoting import folded
from sdcduck.udfs.source import Source

Days = tuple[tuple[str, str, str, str], ...]
KINDS = ("DATE", "TIMESTAMP")
_EXAMPLE = "{'day': ['2020-01-01', '2024-12-31']}"
_MOST_DAYS = 100_000


def read_days(bounds: str | None, table: Source, dimensions: Sequence[str], method: str) -> tuple[str | None, Days]:
    """The bounds of all else, and those of dimensions of dates and moments: name, type, first and last day.

    Raises:
        SDCError: they are no days.
    """
    given = None if bounds is None else json.loads(bounds)
    if method != "dp" or not isinstance(given, dict):
        return bounds, ()
    known = {folded(name): name for name in dimensions}
    found: dict[str, tuple[str, str, str, str]] = {}
    left = {}
    for written, ends in given.items():
        name = known.get(folded(written))
        kind = "" if name is None else table.type_of(name)
        if name is None or kind not in KINDS:
            left[written] = ends
        elif name in found:
            raise SDCError(f"argument 'bounds' has column '{name}' twice")
        else:
            found[name] = (name, kind, *_ends(name, ends))
    return json.dumps(left) if left or not found else None, tuple(found.values())


def _ends(name: str, ends: object) -> tuple[str, str]:
    if not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_day, ends)):
        raise SDCError(f"argument 'bounds': say the first and the last day of '{name}', such as {_EXAMPLE}")
    first, last = ends
    if last < first:
        raise SDCError(f"argument 'bounds': the last day of '{name}' is before the first one")
    number = (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1
    if number > _MOST_DAYS:
        raise SDCError(f"argument 'bounds': '{name}' has more than {_MOST_DAYS} days")
    return first, last


def _is_day(text: object) -> bool:
    """Whether a text is a day, as DuckDB writes it.

    >>> [_is_day(text) for text in ("2020-02-29", "2021-02-29", "20200101", "2020-01-01 10:00:00", 2020)]
    [True, False, False, False, False]
    """
    try:
        return isinstance(text, str) and datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
