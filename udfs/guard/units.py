"""Units of several kinds: what `sdc_protect` is given of them, read and checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sdcduck.catalog import Kind
from sdcduck.errors import SDCError
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import whole, wrong
from sdcduck.udfs.source import Source

_MOST_KINDS = 4
_REFUSED = {
    "rounding": (
        "rounds counts to multiples of 'base', which hides one record and not a unit that has many, such as a firm "
        "with all its people"
    ),
    "suppression": (
        "answers from a publication, in which cells were looked at for one kind of contributor: what is safe for firms "
        "need not be so for persons"
    ),
}
"""The methods for one kind of units, and why."""


def of_one_kind(
    unit: str | None, record_key: str | None, min_units: str | None, method: str, table: Source
) -> tuple[str, str | None, int]:
    """The unit, what is given as its record key, and how many units a number needs.

    Raises:
        SDCError: one is missing, or there is one for each of several kinds.
    """
    key, least = json.loads(record_key or "null"), json.loads(min_units or "null")
    for argument, value in (("record_key", key), ("min_units", least)):
        if isinstance(value, (dict, list)):
            raise SDCError(f"argument '{argument}': one for each kind goes with units := ['person_id', 'firm_id']")
    if least is None and method == "threshold":
        # One unit would be enough without it: every number as it is, which nobody means who asks for a threshold.
        raise wrong("min_units", "say how many units a number needs (method := 'threshold')")
    number = 1 if least is None else whole(_whole(least), "min_units", least=1)
    who = table.column(unit, "unit")[1:-1].replace('""', '"')
    return who, None if key is None else str(key), number


def check_whole(min_units: str | None) -> None:
    """Say first that a number of units is no whole one, as of all arguments of the wrong type.

    Raises:
        SDCError: it is none.
    """
    least = json.loads(min_units or "null")
    if least is not None and not isinstance(least, (dict, list)):
        whole(_whole(least), "min_units", least=1)


def check_several(
    names: Sequence[str], unit: str | None, method: str, population: str | None, table: Source
) -> tuple[str, ...]:
    """The columns of units, as the table has them.

    Raises:
        SDCError: they are not two or more, or do not go with what else is asked for.
    """
    if unit is not None:
        raise SDCError("arguments 'unit' and 'units' do not go together: name all kinds of units in 'units'")
    if method in _REFUSED:
        raise SDCError(
            f"argument 'units' does not go with method := '{method}', which {_REFUSED[method]}; cell_key and threshold "
            "protect units of several kinds"
        )
    if population is not None:
        raise SDCError(
            "arguments 'units' and 'population' do not go together: what a person has in another table may come from "
            "another firm. Make a view of both tables with all their units, and protect that"
        )
    found = tuple(table.column(name, "units")[1:-1].replace('""', '"') for name in names)
    if not 2 <= len(set(map(folded, found))) == len(found) <= _MOST_KINDS:
        raise wrong(
            "units", f"name two to {_MOST_KINDS} different columns, such as ['person_id', 'firm_id']; one is 'unit'"
        )
    return found


def of_kinds(
    units: Sequence[str], record_key: str | None, min_units: str | None, method: str, table: Source
) -> tuple[Kind, ...]:
    """The kinds of units, with the key and the threshold of each; both are given as JSON.

    Raises:
        SDCError: one is missing, or two kinds have one key.
    """
    keys: list[str | None] = [None] * len(units)
    if method == "cell_key":
        named = _of_each(units, json.loads(record_key or "null"), "record_key", _EXAMPLE_KEYS)
        keys = [table.column(str(key), "record_key")[1:-1].replace('""', '"') for key in named]
        if len(set(map(folded, map(str, keys)))) < len(keys):
            raise wrong("record_key", "name another column for each kind of units", _EXAMPLE_KEYS)
    given = json.loads(min_units or "null")
    if given is None and method == "threshold":
        raise wrong("min_units", "say how many units of each kind a number needs (method := 'threshold')")
    least = given if isinstance(given, (dict, list)) else [given] * len(units)
    numbers = [
        1 if given is None else whole(_whole(number), "min_units", least=1)
        for number in _of_each(units, least, "min_units", _EXAMPLE_NUMBERS)
    ]
    return tuple(Kind(*parts) for parts in zip(units, keys, numbers, strict=True))


_EXAMPLE_KEYS = "such as {'person_id': 'person_key', 'firm_id': 'firm_key'}"
_EXAMPLE_NUMBERS = "such as {'person_id': 10, 'firm_id': 3}, or one for all"


def _of_each(units: Sequence[str], given: Any, argument: str, example: str) -> list[Any]:
    """What a struct or a list has for each kind, in the order of these."""
    if isinstance(given, list) and len(given) == len(units):
        return given
    by_name = {folded(name): value for name, value in given.items()} if isinstance(given, dict) else {}
    if by_name.keys() != set(map(folded, units)):
        raise wrong(argument, "name one for each of 'units', and nothing else", example)
    return [by_name[folded(name)] for name in units]


def _whole(value: Any) -> int | None:
    """A whole number, also as a text of its digits; None: it is none."""
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() else None
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0 else None
