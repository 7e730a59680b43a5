"""Numbers of dates between declared days, which are added up under differential privacy: years, and the time between.

::

    avg(2026 - year(born))    sum(date_diff('day', admitted, DATE '2026-01-01'))    avg(DATE '2026-01-01' - admitted)
    median(date_diff('hour', admitted, discharged))    avg(least(date_diff('day', admitted, discharged), 60))

They rise or fall with each date, and each date stands there once: so they are between the least and the largest of what
they are where each is on its first or on its last day.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeGuard

from sqlglot import exp

from sdcduck.guard.expressions import text, whole_number
from sdcduck.guard.protect.scope import Scope

_Moment = datetime.datetime
_SECONDS = 24 * 60 * 60
_LAST = datetime.time(23, 59, 59)
_UNITS: dict[str, Callable[[_Moment], int]] = {
    "second": lambda at: at.toordinal() * _SECONDS + at.hour * 3600 + at.minute * 60 + at.second,
    "minute": lambda at: at.toordinal() * 1440 + at.hour * 60 + at.minute,
    "hour": lambda at: at.toordinal() * 24 + at.hour,
    "day": _Moment.toordinal, "week": lambda at: (at.toordinal() - 1) // 7,
    "month": lambda at: at.year * 12 + at.month,
    "quarter": lambda at: at.year * 4 + (at.month - 1) // 3, "year": lambda at: at.year,
}  # fmt: skip
_WRITTEN = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
_MOST_DATES = 4
_LEAST = 1.0

_At = Mapping[int, _Moment]
"""A moment for each column, by its identity."""


@dataclass(frozen=True)
class NumberOfDays:
    """A number of dates.

    Attributes:
        sql: of the number.
        ends: between which it is.
        called: it.
    """

    sql: str
    ends: tuple[float, float]
    called: str


def number_of_days(scope: Scope, node: exp.Expr) -> NumberOfDays | None:
    """A number of dates whose days were declared; None: it is something else, or 0 whatever the dates."""
    columns = list(node.find_all(exp.Column))
    if not 1 <= len({text(column) for column in columns}) == len(columns) <= _MOST_DATES or node.find(exp.Query):
        return None
    ends = [_ends(scope, column) for column in columns]
    if None in ends:
        return None
    moments = product(*(one for one in ends if one is not None))
    values = {_value(node, dict(zip(map(id, columns), at, strict=True))) for at in moments}
    if isinstance(node, (exp.Least, exp.Greatest)):  # which leave out what is missing
        values |= {number for number in map(whole_number, (node.this, *node.expressions)) if number is not None}
    known = [value for value in values if value is not None]
    if len(known) < len(values) or max(map(abs, known)) < _LEAST:
        return None
    return NumberOfDays(scope.over_dimensions(node).sql("duckdb"), (float(min(known)), float(max(known))), text(node))


def _ends(scope: Scope, column: exp.Column) -> tuple[_Moment, _Moment] | None:
    """The first and the last moment of a column, or of the date that is written for a missing one."""
    days = scope.days_of(column)
    if days is None:
        return None
    first, last = map(datetime.date.fromisoformat, days)
    ends = [_Moment.combine(first, datetime.time()), _Moment.combine(last, _LAST)]
    parent = column.parent
    filled = _moment(parent.expressions[0], {}) if parent is not None and _is_filled(parent) else None
    every = ends if filled is None else [*ends, filled]
    return min(every), max(every)


def _value(node: exp.Expr, at: _At) -> int | None:
    """What an expression is at these moments; None: that is not known, or it does not rise or fall with each."""
    if isinstance(node, exp.Paren):
        return _value(node.this, at)
    if isinstance(node, exp.Neg):
        value = _value(node.this, at)
        return None if value is None else -value
    if isinstance(node, (exp.Least, exp.Greatest)):
        values = [_value(one, at) for one in (node.this, *node.expressions)]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return min(known) if isinstance(node, exp.Least) else max(known)
    if isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and node.this.name.lower() == "year"):
        of = node.this if isinstance(node, exp.Year) else node.expression
        moment = None if _is_written(of) else _moment(of, at)
        return None if moment is None else moment.year
    if isinstance(node, exp.DateDiff):
        count = _UNITS.get(str(node.args["unit"].name).lower()) if node.args.get("unit") is not None else None
        until, since = _moment(node.this, at), _moment(node.expression, at)
        return None if count is None or until is None or since is None else count(until) - count(since)
    if not isinstance(node, (exp.Add, exp.Sub)):
        return whole_number(node)
    one, other = _moment(node.this, at), _moment(node.expression, at)
    if isinstance(node, exp.Sub) and one is not None and other is not None:
        return (one.date() - other.date()).days
    left, right = _value(node.this, at), _value(node.expression, at)
    if left is None or right is None:
        return None
    return left + right if isinstance(node, exp.Add) else left - right


def _moment(node: exp.Expr, at: _At) -> _Moment | None:
    """A date itself, a written one, or the one where the other is missing."""
    if isinstance(node, exp.Column) and id(node) in at:
        return at[id(node)]
    if _is_filled(node):
        return at[id(node.this)]
    if _is_written(node):
        try:
            return _Moment.fromisoformat(node.this.this)
        except ValueError:
            return None
    return None


def _is_filled(node: exp.Expr) -> TypeGuard[exp.Coalesce]:
    """Whether this is a date, or a written one where it is missing."""
    known = isinstance(node, exp.Coalesce) and isinstance(node.this, exp.Column) and len(node.expressions) == 1
    return known and _moment(node.expressions[0], {}) is not None


def _is_written(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.this in _WRITTEN and isinstance(node.this, exp.Literal)
