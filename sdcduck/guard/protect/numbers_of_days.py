"""Numbers of dates between declared days, which are added up under differential privacy: years, and the time between.

::

    avg(2026 - year(born))    sum(date_diff('day', admitted, DATE '2026-01-01'))    avg(DATE '2026-01-01' - admitted)
    median(date_diff('hour', admitted, discharged))    avg(least(date_diff('day', admitted, discharged), 60))

They rise or fall with each date, and each date stands there once: so they are between what they are where each is on
its first and on its last day. A date may be missing, which ``least`` and ``greatest`` leave out.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeGuard, TypeVar

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
    "day": _Moment.toordinal, "month": lambda at: at.year * 12 + at.month,
    "quarter": lambda at: at.year * 4 + (at.month - 1) // 3, "year": lambda at: at.year,
}  # fmt: skip
_DATE = exp.DataType.Type.DATE
_WRITTEN = (_DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
_LEAST = 1.0

_T = TypeVar("_T", int, _Moment)


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


@dataclass(frozen=True)
class _Between(Generic[_T]):
    """What a value can be.

    Attributes:
        low: the least of it.
        high: the largest.
        missing: whether it may be NULL.
    """

    low: _T
    high: _T
    missing: bool = False


def number_of_days(scope: Scope, node: exp.Expr) -> NumberOfDays | None:
    """A number of dates whose days were declared; None: it is something else, or 0 whatever the dates."""
    columns = list(node.find_all(exp.Column))
    if not columns or len({text(column) for column in columns}) < len(columns) or node.find(exp.Query):
        return None
    value = _value(scope, node)
    if value is None or max(abs(value.low), abs(value.high)) < _LEAST:
        return None
    return NumberOfDays(scope.over_dimensions(node).sql("duckdb"), (float(value.low), float(value.high)), text(node))


def _value(scope: Scope, node: exp.Expr) -> _Between[int] | None:
    """Between what an expression is; None: that is not known, or it does not rise or fall with each date."""
    if isinstance(node, exp.Paren):
        return _value(scope, node.this)
    if isinstance(node, exp.Neg):
        value = _value(scope, node.this)
        return None if value is None else _Between(-value.high, -value.low, value.missing)
    if isinstance(node, (exp.Least, exp.Greatest)):
        return _one_of(scope, node)
    if isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and node.this.name.lower() == "year"):
        of = node.this if isinstance(node, exp.Year) else node.expression
        at = None if _is_written(of) else _moment(scope, of)
        return None if at is None else _Between(at.low.year, at.high.year, at.missing)
    if isinstance(node, exp.DateDiff):
        return _time_between(scope, node)
    if not isinstance(node, (exp.Add, exp.Sub)):
        number = whole_number(node)
        return None if number is None else _Between(number, number)
    if isinstance(node, exp.Sub) and _is_of_dates(node):
        until, since = _moment(scope, node.this), _moment(scope, node.expression)
        if until is not None and since is not None:
            return _difference(until, since, _days)
    left, right = _value(scope, node.this), _value(scope, node.expression)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Sub):
        right = _Between(-right.high, -right.low, right.missing)
    return _Between(left.low + right.low, left.high + right.high, left.missing or right.missing)


def _one_of(scope: Scope, node: exp.Least | exp.Greatest) -> _Between[int] | None:
    """The least or the largest of numbers, of those that are there."""
    parts = [_value(scope, one) for one in (node.this, *node.expressions)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    there = [part for part in known if not part.missing]
    low, high = min(part.low for part in known), max(part.high for part in known)
    if there and isinstance(node, exp.Least):
        high = min(part.high for part in there)
    elif there:
        low = max(part.low for part in there)
    return _Between(low, high, missing=not there)


def _time_between(scope: Scope, node: exp.DateDiff) -> _Between[int] | None:
    unit = node.args.get("unit")
    until, since = _moment(scope, node.this), _moment(scope, node.expression)
    if unit is None or until is None or since is None:
        return None
    name = str(unit.name).lower()
    if name == "week":  # seven days each, wherever a week begins
        return _difference(until, since, lambda one, other: int(_days(one, other) / 7))
    count = _UNITS.get(name)
    return None if count is None else _difference(until, since, lambda one, other: count(one) - count(other))


def _difference(
    until: _Between[_Moment], since: _Between[_Moment], of: Callable[[_Moment, _Moment], int]
) -> _Between[int]:
    return _Between(of(until.low, since.high), of(until.high, since.low), until.missing or since.missing)


def _days(until: _Moment, since: _Moment) -> int:
    return (until.date() - since.date()).days


def _moment(scope: Scope, node: exp.Expr) -> _Between[_Moment] | None:
    """Between what a date is, or a written one, or the one where the other is missing."""
    if isinstance(node, exp.Column):
        days = scope.days_of(node)
        if days is None:
            return None
        first, last = map(datetime.date.fromisoformat, days)
        return _Between(_Moment.combine(first, datetime.time()), _Moment.combine(last, _LAST), missing=True)
    if isinstance(node, exp.Coalesce) and isinstance(node.this, exp.Column) and len(node.expressions) == 1:
        known, filled = _moment(scope, node.this), _moment(scope, node.expressions[0])
        if known is None or filled is None or filled.missing:
            return None
        return _Between(min(known.low, filled.low), max(known.high, filled.high))
    if not _is_written(node):
        return None
    try:
        at = _Moment.fromisoformat(node.this.this)
    except ValueError:
        return None
    if at.tzinfo is not None or not node.this.this.startswith(f"{at.date()}"):
        return None  # which DuckDB reads in another way, or not at all
    if node.to.is_type(_DATE):
        at = _Moment.combine(at.date(), datetime.time())
    return _Between(at, at)


def _is_written(node: exp.Expr) -> TypeGuard[exp.Cast]:
    return isinstance(node, exp.Cast) and node.to.this in _WRITTEN and isinstance(node.this, exp.Literal)


def _is_of_dates(node: exp.Expr) -> bool:
    """Whether there are dates in it and no moments, between which is an interval."""
    return all(one.is_type(_DATE) for one in node.find_all(exp.Column, exp.Cast))
