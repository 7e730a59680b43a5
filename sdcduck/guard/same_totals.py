"""Which totals are the same: what was drawn for them once is not drawn again, and costs nothing."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from uuid import UUID

from sdcduck.guard.calls import Noised
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release

Given = Mapping[str, object]
"""Values of parameters by name, or by number."""

_PLAIN = frozenset([
    type(None), bool, int, float, str, bytes, Decimal, UUID, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta,
])  # fmt: skip
"""Types of values that are different texts where they are different."""


def told_of(given: Given) -> list[list[str]]:
    """Values as texts; others have others.

    Raises:
        Refused: it is not known whether they would have.

    >>> told_of({"1": 3, "2": "3", "3": [3.0, None]})
    [['1', 'int', '3'], ['2', 'str', "'3'"], ['3', 'list', '[3.0, None]']]
    """
    for value in given.values():
        _check_plain(value)
    return [[name, type(value).__name__, repr(value)] for name, value in given.items()]


def _check_plain(value: object) -> None:
    if type(value) in (list, tuple):
        assert isinstance(value, list | tuple)
        for part in value:
            _check_plain(part)
    elif type(value) not in _PLAIN:
        raise Refused("SDC081", f"a parameter that is a Python {type(value).__name__}")


def key_of(
    releases: Sequence[Release],
    declared: Sequence[str],
    scales: Sequence[Sequence[float]],
    version: Sequence[object],
) -> str:
    """The same for the same totals with the same noise and parameters, of the same data under the same policies."""
    asked = [
        [release.cells, release.totals, list(map(_said, release.columns)), *filter(None, [release.selects])]
        for release in releases
    ]
    under = declared[0] if len(declared) == 1 else list(declared)
    said = json.dumps([asked, list(map(list, scales)), under, list(version)])
    return hashlib.sha256(said.encode()).hexdigest()


def _said(column: tuple[str, Noised]) -> object:
    """What tells totals of the same SQL apart: of a choice, also what it is a choice of."""
    name, noised = column
    return [name, noised.low, noised.high, noised.step, noised.first] if noised.positions else name
