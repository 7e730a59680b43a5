"""Bounds and bands of measures: what `sdc_protect` is given, read and checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sdcduck.catalog.relations import Limits, total_of
from sdcduck.errors import SDCError
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import wrong
from sdcduck.udfs.source import Source

_MOST, _MOST_BORDERS = 9e14, 100
_SUM = re.compile(r"sum\((.+)\)", re.IGNORECASE)
_FORMS = {
    "bounds": "name for each measure the least and the largest value",
    "bands": "name for each measure two borders or more, in ascending order",
}
_EXAMPLES = {"bounds": "{'income': [1, 1e6]}", "bands": "{'income': [0, 10000, 20000]}"}


def read_limits(argument: str, given: str | None, table: Source, measures: Sequence[str], method: str) -> Limits:
    """The numbers that are named for measures, by the names that the table has; of bands also for `sum(measure)`.

    Args:
        argument: bounds or bands.
        given: as JSON; None: nothing.
        measures: those of the policy.

    Raises:
        SDCError: they are none.
    """
    if given is None:
        return ()
    if method == "suppression":
        raise SDCError(
            f"argument '{argument}' does not go with method := 'suppression', whose cells hold sums: make a view with "
            + ("the band as a column, and that a dimension of the publication" if argument == "bands" else "the column")
        )
    read = json.loads(given)
    if not isinstance(read, dict) or not read:
        raise _wrong(argument)
    known = {folded(name): name for name in measures}
    found: dict[str, tuple[float, ...]] = {}
    for written, numbers in read.items():
        total = _SUM.fullmatch(written) if argument == "bands" and folded(written) not in known else None
        name = table.column(total[1] if total else written, argument)[1:-1].replace('""', '"')
        if folded(name) not in known:
            raise SDCError(f"argument '{argument}': column '{name}' is not one of the measures")
        limited = total_of(known[folded(name)]) if total else known[folded(name)]
        if limited in found:
            raise SDCError(f"argument '{argument}' has column '{limited}' twice")
        found[limited] = _numbers(argument, limited, numbers)
    return tuple(found.items())


def _numbers(argument: str, name: str, numbers: Any) -> tuple[float, ...]:
    if not isinstance(numbers, list) or not all(type(one) in (int, float) for one in numbers):
        raise _wrong(argument, name)
    values = tuple(map(float, numbers))
    if not all(math.isfinite(value) and abs(value) <= _MOST for value in values):
        raise SDCError(f"argument '{argument}': '{name}' has a number that is NaN, infinite or beyond 9e14")
    if argument == "bounds" and len(values) != 2:
        raise _wrong(argument, name)
    if argument == "bands" and not 2 <= len(values) <= _MOST_BORDERS:
        few = "one border makes no band" if len(values) < 2 else f"{len(values)} borders are more than {_MOST_BORDERS}"
        raise SDCError(f"argument '{argument}': '{name}': {few}; {_FORMS[argument]}, such as {_EXAMPLES[argument]}")
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise SDCError(f"argument '{argument}': the numbers of '{name}' must ascend, such as {_EXAMPLES[argument]}")
    return values


def _wrong(argument: str, name: str | None = None) -> SDCError:
    of = "" if name is None else f"'{name}' is not so; "
    return wrong(argument, _FORMS[argument], f"{of}such as {_EXAMPLES[argument]}")
