"""Dates and moments between the first and the last day that were declared: which groups they may make.

::

    SELECT date_trunc('month', day) AS m, count(*) FROM visits WHERE day >= DATE '2024-01-01' GROUP BY m

    FROM (SELECT min(day) AS day FROM (SELECT .. generate_series(DATE '2020-01-01', DATE '2024-12-31', ..) AS day
        UNION ALL SELECT NULL) AS visits GROUP BY date_trunc('month', day), day >= DATE '2024-01-01')

So of all days for which everything that is asked comes out alike one is looked at, and many columns may be asked for
beside them. Of a moment that is known which says no more than its day or hour, and how it compares with moments that
are written in the question: those and the ones beside them are looked at, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from sqlglot import exp

from sdcduck.guard.expressions import duckdb_name, is_query, text
from sdcduck.quoting import identifier, literal

_UNITS = {
    "day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365, "decade": 3652, "century": 36524,
    "millennium": 365242,
    "isoyear": 364, "yearweek": 7, "hour": 0, "last_day": 28,
}  # fmt: skip
"""How many days there are at least between two steps; 0: it is a part of a day."""
_PARTS = {
    "month": 12, "quarter": 4, "week": 53, "day": 31, "dayofmonth": 31, "dow": 7, "dayofweek": 7, "isodow": 7,
    "weekday": 7, "doy": 366, "dayofyear": 366, "hour": 24, "dayname": 7, "monthname": 12, "weekofyear": 53,
}  # fmt: skip
"""Parts of a date, and how many values each has."""
_FUNCTIONS = frozenset([*_UNITS, *_PARTS, "date_trunc", "datetrunc", "date_part", "datepart", "extract"])
_OF_SIGN = dict(zip("mbBdaAuwjUWVHI", (12, 12, 12, 31, 7, 7, 7, 7, 366, 54, 54, 53, 24, 12), strict=True))
_FORMATS = frozenset([*_OF_SIGN, *"YyG"])
_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In, exp.Is)


def step_of(column: exp.Column) -> exp.Expr | None:
    """What says no more of a moment than its day or hour, or how it compares with written ones; None: nothing does.

    >>> from sqlglot import parse_one
    >>> for asked in (
    ...     "month(t)", "date_trunc('hour', t)", "t >= '2024-01-01'", "t::DATE", "epoch(t)", "strftime(t, '%S')"
    ... ):
    ...     print(asked, step_of(parse_one(asked, read="duckdb").find(exp.Column)) is not None)
    month(t) True
    date_trunc('hour', t) True
    t >= '2024-01-01' True
    t::DATE True
    epoch(t) False
    strftime(t, '%S') False
    """
    node = column.parent
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return node if node.to.is_type(exp.DataType.Type.DATE) else None
    if isinstance(node, _COMPARED):
        others = [part for part in node.iter_expressions() if id(part) != id(column)]
        return node if column.arg_key != "expressions" and all(map(_is_moment, others)) else None
    if node is None or not isinstance(node, exp.Func):
        return None
    name = duckdb_name(node).lower()
    if name == "strftime" and isinstance(node, exp.TimeToStr):
        return node if _is_coarse(node.args.get("format")) else None
    unit = _unit_of(node)
    return node if name in _FUNCTIONS and (unit is None or unit in _UNITS or unit in _PARTS) else None


def _is_coarse(written: exp.Expr | None) -> bool:
    """Whether a format says no more than the hour."""
    if not isinstance(written, exp.Literal) or not written.is_string:
        return False
    return "%%" not in written.this and all(sign[:1] in _FORMATS for sign in _signs(written.this) or ["-"])


def _is_moment(node: exp.Expr) -> bool:
    """Whether this is a written date or moment, or NULL."""
    if isinstance(node, (exp.Cast, exp.TryCast)):
        kinds = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
        return node.to.is_type(*kinds) and _is_moment(node.this)
    return isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and bool(node.is_string))


def _unit_of(node: exp.Expr) -> str | None:
    """The unit that a function of a date is asked for; None: it needs none."""
    unit = node.this if isinstance(node, exp.Extract) else node.args.get("unit")
    if unit is None and isinstance(node, exp.Anonymous) and len(node.expressions) > 1:
        unit = node.expressions[0]
    if unit is None:
        return None
    return str(unit.name if isinstance(unit, (exp.Literal, exp.Var)) else unit.sql()).lower()


def alone(parts: Sequence[exp.Expr], alias: str, name: str) -> list[exp.Expr]:
    """What is asked of one column by itself: the largest expressions that hold no other one."""
    found: dict[str, exp.Expr] = {}
    waiting = list(parts)
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Alias):
            waiting.append(node.this)
            continue
        columns = [one for one in node.walk(prune=is_query) if isinstance(one, exp.Column)]
        mine = [one.table == alias and one.name.lower() == name.lower() for one in columns]
        if not any(mine):
            continue
        if all(mine) and node.find(exp.Query) is None:
            found.setdefault(text(node), node)
        else:
            waiting += [child for child in node.iter_expressions() if not is_query(child)]
    return list(found.values())


def outcomes(node: exp.Expr, days: int) -> int:
    """How many values an expression of a date has at most, over so many days; NULL is one.

    >>> from sqlglot import parse_one
    >>> for asked in (
    ...     "d", "month(d)", "date_trunc('year', d)", "year(d) * 100 + month(d)", "upper(dayname(d))",
    ...     "d > '2024-01-01'",
    ... ):
    ...     print(asked, outcomes(parse_one(asked, read="duckdb"), 1000))
    d 1001
    month(d) 13
    date_trunc('year', d) 5
    year(d) * 100 + month(d) 65
    upper(dayname(d)) 8
    d > '2024-01-01' 3
    """
    if isinstance(node, (exp.Predicate, exp.Connector, exp.Not)):
        return 3
    if isinstance(node, exp.Column):
        return days + 1
    number = 1
    for child in node.iter_expressions():
        if child.find(exp.Column) is not None:
            number = min(days + 1, number * outcomes(child, days))
    if not isinstance(node, exp.Func):
        return number
    if isinstance(node, exp.TimeToStr) and _is_coarse(node.args.get("format")):
        return min(number, _of_format(node.args["format"].this, days))
    name, unit = duckdb_name(node).lower(), _unit_of(node)
    is_truncated = isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)) or name in ("date_trunc", "datetrunc")
    of = unit or name
    if of in _PARTS and not is_truncated:
        return min(number, _PARTS[of] + 1)
    if _UNITS.get(of) and (is_truncated or unit is not None or name == of) and isinstance(_date_of(node), exp.Column):
        return min(number, days // _UNITS[of] + 3)
    return number


def _of_format(written: str, days: int) -> int:
    """How many texts a format has at most: as many as its parts together.

    >>> _of_format("%Y-%m", 3650), _of_format("%d %B", 3650)
    (157, 373)
    """
    number = 1
    for sign in _signs(written):
        number *= _OF_SIGN.get(sign[:1]) or days // 364 + 3
    return number + 1


def _signs(written: str) -> list[str]:
    return written.replace("%-", "%").split("%")[1:]


def _date_of(node: exp.Expr) -> exp.Expr | None:
    """What a function is asked of: the part with the column."""
    return next((child for child in node.iter_expressions() if child.find(exp.Column) is not None), None)


def number_of_days(first: str, last: str) -> int:
    """From the first to the last one."""
    return (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1


def days(name: str, alias: str, first: str, last: str, asked: Sequence[exp.Expr]) -> tuple[str, int]:
    """A relation of the days that are looked at, and how many there are at most."""
    number = number_of_days(first, last)
    every = (
        f"SELECT CAST(unnest({_series(first, last, 'DAY')}) AS DATE) AS {identifier(name)} "
        "UNION ALL SELECT CAST(NULL AS DATE)"
    )
    return _one_of_each(every, name, alias, asked), _product(asked, number)


def moments(
    name: str, alias: str, first: str, last: str, asked: Sequence[exp.Expr], steps: Sequence[exp.Expr]
) -> tuple[str, int]:  # fmt: skip
    """The same of moments.

    Args:
        steps: what is asked of them, here and around.
    """
    hourly = any("hour" in (_unit_of(step), duckdb_name(step).lower()) or _asks_hour(step) for step in steps)
    number = number_of_days(first, last) * (24 if hourly else 1)
    shown = identifier(name)
    every = (
        f"SELECT unnest({_series(first, last, 'HOUR' if hourly else 'DAY')}) AS {shown} "
        "UNION ALL SELECT CAST(NULL AS TIMESTAMP)"
    )
    between = f"BETWEEN DATE {literal(first)} AND DATE {literal(last)}"
    written = {text(one) for step in steps if isinstance(step, _COMPARED) for one in step.find_all(exp.Literal)}
    for one in sorted(written):
        moment = f"TRY_CAST({one} AS TIMESTAMP)"
        of = f"unnest([{moment} - INTERVAL 1 MICROSECOND, {moment}, {moment} + INTERVAL 1 MICROSECOND])"
        every += f" UNION ALL SELECT m FROM (SELECT {of} AS m) WHERE CAST(m AS DATE) {between}"
    return _one_of_each(every, name, alias, asked), _product(asked, number + 3 * len(written))


def _asks_hour(step: exp.Expr) -> bool:
    written = step.args.get("format") if isinstance(step, exp.TimeToStr) else None
    return isinstance(written, exp.Literal) and any(sign in written.this for sign in ("H", "I"))


def _series(first: str, last: str, unit: str) -> str:
    end = f"DATE {literal(last)}" if unit == "DAY" else f"DATE {literal(last)} + INTERVAL 23 HOUR"
    return f"generate_series(CAST({literal(first)} AS TIMESTAMP), CAST({end} AS TIMESTAMP), INTERVAL 1 {unit})"


def _product(asked: Sequence[exp.Expr], number: int) -> int:
    found = 1
    for one in asked:
        found = min(number + 1, found * outcomes(one, number))
    return found


def _one_of_each(every: str, name: str, alias: str, asked: Sequence[exp.Expr]) -> str:
    """One value for all of which everything that is asked comes out alike."""
    by = ", ".join(text(one) for one in asked)
    shown = identifier(name)
    return f"(SELECT min({shown}) AS {shown} FROM ({every}) AS {identifier(alias)} GROUP BY {by})"
