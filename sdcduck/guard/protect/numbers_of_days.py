"""Numbers of dates between declared days, which are added up under differential privacy: years, and days between two.

::

    avg(2026 - year(born))    sum(date_diff('day', admitted, DATE '2026-01-01'))    avg(DATE '2026-01-01' - admitted)

They rise or fall with the date, so that they are between what they are on the first and on the last day.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sdcduck.guard.expressions import text, whole_number
from sdcduck.guard.protect.scope import Scope

_UNITS: dict[str, Callable[[datetime.date], int]] = {
    "day": datetime.date.toordinal, "week": lambda day: (day.toordinal() - 1) // 7,
    "month": lambda day: day.year * 12 + day.month,
    "quarter": lambda day: day.year * 4 + (day.month - 1) // 3, "year": lambda day: day.year,
}  # fmt: skip
_LEAST = 1.0


@dataclass(frozen=True)
class NumberOfDays:
    """A number of a date.

    Attributes:
        sql: of the number.
        ends: between which it is.
        called: it.
    """

    sql: str
    ends: tuple[float, float]
    called: str


def number_of_days(scope: Scope, node: exp.Expr) -> NumberOfDays | None:
    """A number of one date whose days were declared; None: it is something else, or 0 whatever the date."""
    columns = list(node.find_all(exp.Column))
    days = scope.days_of(columns[0]) if len(columns) == 1 else None
    if days is None or node.find(exp.Query) is not None:
        return None
    ends = [_value(node, datetime.date.fromisoformat(day)) for day in days]
    low, high = (None, None) if None in ends else sorted(end for end in ends if end is not None)
    if low is None or high is None or max(abs(low), abs(high)) < _LEAST:
        return None
    return NumberOfDays(scope.over_dimensions(node).sql("duckdb"), (float(low), float(high)), text(node))


def _value(node: exp.Expr, day: datetime.date) -> int | None:
    """What an expression is on a day; None: that is not known, or it does not rise or fall with it."""
    if isinstance(node, exp.Paren):
        return _value(node.this, day)
    if isinstance(node, exp.Neg):
        value = _value(node.this, day)
        return None if value is None else -value
    if isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and node.this.name.lower() == "year"):
        of = node.this if isinstance(node, exp.Year) else node.expression
        return day.year if isinstance(of, exp.Column) else None
    if isinstance(node, exp.DateDiff):
        count = _UNITS.get(str(node.args["unit"].name).lower()) if node.args.get("unit") is not None else None
        until, since = _date(node.this, day), _date(node.expression, day)
        return None if count is None or until is None or since is None else count(until) - count(since)
    if not isinstance(node, (exp.Add, exp.Sub)):
        return whole_number(node)
    one, other = _date(node.this, day), _date(node.expression, day)
    if isinstance(node, exp.Sub) and one is not None and other is not None:
        return (one - other).days
    left, right = _value(node.this, day), _value(node.expression, day)
    if left is None or right is None:
        return None
    return left + right if isinstance(node, exp.Add) else left - right


def _date(node: exp.Expr, day: datetime.date) -> datetime.date | None:
    """The date itself, or a written one."""
    if isinstance(node, exp.Column):
        return day
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.DATE) and isinstance(node.this, exp.Literal):
        try:
            return datetime.date.fromisoformat(node.this.this)
        except ValueError:
            return None
    return None
