"""One number of the rules at several values: what each of them would leave out, to be taken by a click."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.forms import Form
from sdcduck.desk.publications import drafted
from sdcduck.desk.statements import Draft, call, rules_of
from sdcduck.desk.work import Work
from sdcduck.errors import unknown
from sdcduck.quoting import sql_value

NUMBERS: Mapping[str, str] = {
    "max_count": "cells of 1 to so many records",
    "min_contributors": "fewer contributors than",
    "p_percent": "to within so many per cent",
    "dominance_k": "more than so many per cent of the cell",
}
"""The numbers that can be tried, by the fields of the form."""
_SLIDES: Mapping[str, str] = {
    "max_count": "Cells of 1 to so many records are not published",
    "min_contributors": "Nor are cells of fewer contributors than",
    "p_percent": "Nor are those whose largest contribution could be told to within so many per cent",
    "dominance_k": "Nor are those of which the largest contributors have more than so many per cent",
}
_LEAST_TOP, _PER_CENT = 20, 100
_STEPS = (-2, -1, 0, 1, 2, 3)
_APART = {"max_count": 1.0, "min_contributors": 1.0, "p_percent": 5.0, "dominance_k": 5.0}
_BOUNDS = {"max_count": (0, 10**9), "min_contributors": (2, 10**9), "p_percent": (1, 100), "dominance_k": (1, 99)}


def tried(form: Form) -> list[str]:
    """Which numbers a form has; the smallest count always."""
    return [name for name in NUMBERS if name == "max_count" or form.has(name)]


@dataclass(frozen=True)
class Slider:
    """A number of the rules that is moved beside the pattern, from `low` to `high` in steps."""

    name: str
    words: str
    value: float
    low: int
    high: int
    step: str


def sliders(form: Form) -> list[Slider]:
    """A slider for each number that a form has.

    >>> for one in sliders(Form.read("max_count=3&p_percent=12.5")):
    ...     print(one.name, one.value, one.low, one.high, one.step)
    max_count 3 0 20 1
    p_percent 12.5 1 100 any
    """
    made = []
    for name in tried(form):
        value = form.number(name, NUMBERS[name]) or 0
        whole, (low, high) = value == int(value), _BOUNDS[name]
        top = min(high, max(_LEAST_TOP, 2 * int(value))) if high > _PER_CENT else high
        made.append(Slider(name, _SLIDES[name], int(value) if whole else value, low, top, "1" if whole else "any"))
    return made


def values_around(field: str, value: float) -> list[float]:
    """A number and its neighbours.

    >>> values_around("max_count", 1), values_around("dominance_k", 87.5)
    ([0, 1, 2, 3, 4], [77.5, 82.5, 87.5, 92.5, 97.5])
    """
    low, high = _BOUNDS[field]
    around = [value + _APART[field] * step for step in _STEPS]
    return [int(one) if one == int(one) else one for one in around if low <= one <= high]


def statement_of(draft: Draft, form: Form, field: str) -> str:
    """How many cells are left out at each value.

    Raises:
        SDCError: the rules are none.
    """
    at = form.number(field, NUMBERS[field]) or 0
    parts = []
    for value in values_around(field, at):
        others = [(name, text) for name, text in form.fields if name != field]
        rules = rules_of(Form([*others, (field, str(value))]))
        parts.append(
            f"SELECT {sql_value(value)} AS number, count(*) FILTER (status = 'primary') AS primary_cells, "
            "count(*) FILTER (status = 'secondary') AS secondary_cells, count(*) FILTER (NOT suppressed) AS published "
            f"FROM ({call('sdc_suppress', draft.query, **rules)})"
        )
    return "\nUNION ALL ".join(parts) + "\nORDER BY number"


def try_numbers(asked: Asked) -> Posted:
    """Run the pattern at several values of one number."""
    draft, field = drafted(asked), asked.form.one("number", "max_count")
    if field not in NUMBERS:
        raise unknown("number of the rules", field, list(NUMBERS))
    statement = statement_of(draft, asked.form, field)
    about = {"field": field, "words": NUMBERS[field], "now": asked.form.number(field, NUMBERS[field]) or 0}
    title = f"{draft.name}: {NUMBERS[field]}"
    return asked.begin(Work("numbers", title, statement, asked.form, (draft.table,), about=about))
