"""Groups that nobody may know: their values are data, and appear with many units alone.

Which ones appear is drawn (`sdcduck.methods.dp.threshold`), once for a question, and kept in the ledger with their
numbers: from then on they are released. They stand in the query as constants, with the values of their keys as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release
from sdcduck.quoting import literal

OF_GROUPS = "charge for groups"
"""The kind of a line that costs a delta: an older sdcduck, which would not count that, reads no further."""

_AS_TEXTS = re.compile(
    r"(VARCHAR|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|DATE|TIME|TIMESTAMP|UUID|ENUM\(.*\))",
    re.DOTALL,
)
"""Types of which a text is the value again."""


class Appeared(NamedTuple):
    """Groups that appeared.

    Attributes:
        kinds: the types of their keys.
        keys: for each the values, as texts.
    """

    kinds: list[str]
    keys: list[list[str | None]]


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse keys whose values are not kept as texts.

    Raises:
        Refused: one is of such a type.
    """
    for kind in kinds:
        if _AS_TEXTS.fullmatch(kind) is None:
            raise Refused("SDC081", f"groups by a {kind} that nobody may know: cast it to VARCHAR")


def exact_of_units(release: Release, shown: str, least: int) -> str:
    """The keys and the exact totals of the groups with so many units, in an order that does not come from storage."""
    keys = ", ".join(f't."{key}"::VARCHAR' for key in release.keys)
    order = ", ".join(f't."{key}" NULLS LAST' for key in release.keys)
    return (
        f'SELECT {keys}, {shown} FROM ({release.totals}) AS t WHERE t."{release.selects}" >= {least} ORDER BY {order}'
    )


def groups_that_appeared(
    release: Release, appeared: Appeared, numbers: Sequence[Sequence[str]], kinds: Sequence[str]
) -> str:
    """The relation of groups that appeared.

    Args:
        numbers: SQL of the numbers, a list for each column.
        kinds: their types.
    """
    columns = [
        *([_text(value) for value in values] for values in appeared.keys),
        *numbers[: release.shown],
    ]
    names = [*release.keys, *(name for name, _ in release.columns[: release.shown])]
    of = [*appeared.kinds, *kinds[: release.shown]]
    cast = ", ".join(f'CAST(v."{name}" AS {kind}) AS "{name}"' for name, kind in zip(names, of, strict=True))
    listed = ", ".join(f'"{name}"' for name in names)
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    empty = f"SELECT {', '.join(['NULL'] * len(names))} WHERE false"
    return f"SELECT {cast} FROM ({f'VALUES {rows}' if rows else empty}) AS v({listed})"


def _text(value: str | None) -> str:
    return "NULL" if value is None else literal(value)
