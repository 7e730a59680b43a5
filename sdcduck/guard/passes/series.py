"""range and generate_series: how long they are is known, or looked at when they run; in FROM they become a SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlglot import exp

from sdcduck.guard.passes.amounts import looked_at
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.laterals import mark, without_laterals
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_MOST = 10_000
_NAMES = frozenset(["range", "generate_series"])
_TIMES = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
_SHORTEST: Mapping[str, timedelta] = {
    "second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1),
    "day": timedelta(days=1), "week": timedelta(weeks=1), "month": timedelta(days=28), "quarter": timedelta(days=89),
    "year": timedelta(days=365),
}  # fmt: skip
"""How long each unit of an INTERVAL is at least."""
_ALIKE = (["number", "number", "number"], ["time", "time", "span"])
"""What the ends and the step of a series are."""


def expand_series(draft: Draft) -> None:
    """Series in FROM as SELECT.

    >>> after(expand_series, "SELECT n FROM range(3) t(n)")
    SELECT n FROM (SELECT CAST(UNNEST(RANGE(0, 3)) AS BIGINT) AS n) AS t
    """
    without_laterals(draft.tree)
    for call in draft.tree.find_all(exp.Anonymous):
        if folded(call.name) in _NAMES:
            raise Refused("SDC010", f"a function behind a dot: write {folded(call.name)}(1, 10)")
    for series in list(draft.tree.find_all(exp.GenerateSeries)):
        _look_at(series)
        table = series.parent
        if isinstance(table, exp.Table) and table.this is series:
            table.replace(_selected(table, series))


def _look_at(series: exp.GenerateSeries) -> None:
    """Have a series that is not of constants look at how long it becomes, in place."""
    try:
        length_of(series)
        return
    except Refused:
        if all(series.args.get(part) is None or series.args[part].find(*_FROM_ROWS) is None for part in _ENDS):
            raise
    step = exp.Literal.number(1) if series.args.get("step") is None else series.args["step"]
    by = _constant(step)
    if by is None or by[0] == "time" or not by[1]:
        raise Refused("SDC021", "a series by steps of anything but a constant: write range(a, b, 2)")
    start, end = (series.args[part].copy() for part in ("start", "end"))
    far: list[exp.Expr]
    if by[0] == "number":
        far = [exp.cast(one, exp.DataType.Type.DOUBLE, copy=False) for one in (end, start)]
        width = str(abs(by[1]))
    else:
        far = [exp.TimeToUnix(this=one) for one in (end, start)]
        width = str(abs(by[1]) // 1_000_000)
    if by[1] < 0:
        far.reverse()
    distance = exp.Paren(this=exp.Sub(this=far[0], expression=far[1]))
    number = exp.Div(this=distance, expression=exp.Literal.number(width), typed=False, safe=False)
    series.set("end", looked_at(series.args["end"], number, _MOST))
    series.meta[_LOOKED_AT] = True


_LOOKED_AT = "looked at"
_ENDS = ("start", "end", "step")
_WHEN_ASKED = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.TimestampTrunc, exp.DateTrunc)
_FROM_ROWS = (exp.Column, exp.Query, exp.Placeholder, exp.Parameter, exp.AggFunc, *_WHEN_ASKED)


def length_of(series: exp.GenerateSeries) -> int:
    """How many values a series has, at most.

    >>> from sqlglot import parse_one
    >>> length_of(parse_one("range(5)", "duckdb")), length_of(parse_one("generate_series(9, 1, -2)", "duckdb"))
    (6, 5)
    >>> length_of(parse_one("range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 MONTH)", "duckdb"))
    14

    Raises:
        Refused: it cannot be said, or it has very many.
    """
    if series.meta.get(_LOOKED_AT):
        return _MOST + 1
    step = series.args.get("step")
    given = [series.args.get("start"), series.args.get("end"), exp.Literal.number(1) if step is None else step]
    constants = [constant for constant in map(_constant, given) if constant is not None]
    if [kind for kind, _ in constants] not in _ALIKE or not constants[2][1]:
        raise Refused(
            "SDC021",
            "a series of anything but constants: write range(1, 10) or "
            "range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 MONTH)",
        )
    first, last, by = (number for _, number in constants)
    steps = (last - first) // by
    if steps >= _MOST:
        raise Refused("SDC002", f"a series of more than {_MOST} values")
    return max(steps + 1, 0)


def _constant(node: exp.Expr | None) -> tuple[str, int] | None:
    """A whole number, a time, or how long an INTERVAL is at least, in microseconds; None: it is none of these."""
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return (inner[0], -inner[1]) if inner is not None and inner[0] != "time" else None
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal() and len(node.this) <= 18:
        return "number", int(node.this)
    if type(node) is exp.Cast and node.to.this in _TIMES and isinstance(node.this, exp.Literal) and node.this.is_string:
        time = _time(node.this.this)
        return None if time is None else ("time", (time - datetime.min) // timedelta(microseconds=1))
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and isinstance(node.unit, exp.Var):
        return _span(node.this.this, node.unit.name)
    if type(node) is exp.Cast and node.to.is_type("interval") and isinstance(node.this, exp.Literal):
        number, _, unit = node.this.this.partition(" ")  # '1 month'::INTERVAL
        return _span(number, unit)
    return None


def _span(number: str, unit: str) -> tuple[str, int] | None:
    """How long so many of a unit of time are at least."""
    least = _SHORTEST.get(folded(unit).removesuffix("s"))
    if least is None or not (number.isascii() and number.isdecimal() and len(number) <= 5):
        return None
    return "span", int(number) * (least // timedelta(microseconds=1))


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text.isascii() else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is None else None


def _selected(table: exp.Table, series: exp.GenerateSeries) -> exp.Subquery:
    """What stands for a series in FROM."""
    if any(value for part, value in table.args.items() if part not in ("this", "alias")):
        raise Refused("SDC021", "a series with anything behind it but a name")
    called = "range" if series.args.get("is_end_exclusive") else "generate_series"
    alias = table.args.get("alias")
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier(called)
    columns = alias.args.get("columns") or [] if alias is not None else []
    if len(columns) > 1:
        raise Refused("SDC021", "several names for the column of a series")
    # Without a name for it the column is called as the table is.
    column = columns[0] if columns else name
    by = _constant(series.args.get("step"))
    kind = "BIGINT" if by is None or by[0] == "number" else "TIMESTAMP"
    value = exp.Cast(this=exp.Explode(this=series.copy()), to=exp.DataType.build(kind, dialect="duckdb"))
    select = exp.Select(expressions=[exp.Alias(this=value, alias=column.copy())])
    made = exp.Subquery(this=select, alias=exp.TableAlias(this=name.copy()))
    if series.meta.get(_LOOKED_AT):
        mark(made)
    return made
