"""Expressions over single records that cannot fail: what is written around those that could.

DuckDB's TRY is not enough. The optimiser works out once what stands twice, also `s = 5` and `s = 6` of a text `s`, and
looks for the values of a long IN in a join: both outside of TRY, whatever record it is about. Into a lambda it does not
look, so that nothing leaves the TRY that stands in there (`_sdc_try`). Conditions in which nothing can fail, wherever
it is worked out, stand in TRY alone, which costs less. And some errors are none that TRY catches: parts of a time that
its type does not have, a width of no time, an escape of two letters. What could raise one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import duckdb
from sqlglot import exp

from sdcduck.guard.expressions import digits, duckdb_name, family, whole_number
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

TRIED = "_sdc_try"
"""The macro around what could fail."""

_Type = exp.DataType.Type
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_SIGNED = {_Type.TINYINT, _Type.SMALLINT, _Type.INT, _Type.BIGINT}
_MOST_DIGITS, _MOST_OF_DECIMAL = 18, 9
_LONGEST_PADDED, _LONGEST_SEARCHED = 1000, 1000
_POSITIVE = re.compile(r"[1-9]\d{0,5}")
_UNITS = frozenset(
    ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
     "century"]
)  # fmt: skip
_CLOCK = frozenset(["hour", "minute", "second", "millisecond", "microsecond", "ms", "us", "epoch"])
"""Parts that every type of a time has."""
_OF_INTERVALS = frozenset(["millennium", "century", "decade", "year", "quarter", "month", "day", "dayofmonth"])
"""Parts that dates have, with or without a time, finite or not, and intervals; times of a day do not."""
_OF_DATES = frozenset(
    ["week", "yearweek", "isoyear", "dow", "dayofweek", "weekday", "isodow", "doy", "dayofyear"]
)  # fmt: skip
"""Parts that dates have alone."""
_CALENDAR = _OF_INTERVALS | _OF_DATES
_DATES = exp.DataType.TEMPORAL_TYPES - {_Type.TIME, _Type.TIMETZ}
_TRUNCATED = frozenset(["date_trunc", "datetrunc"])
_WITH_PART = _TRUNCATED | {"date_part", "datepart", "date_diff", "datediff", "date_sub", "datesub"}
_OF_WEEKS = (exp.DayOfYear, exp.DayOfWeek, exp.DayOfWeekIso, exp.Week, exp.WeekOfYear)
_NAMES_OF_WEEKS = (_OF_DATES - {"dow", "doy"}) | {"weekofyear"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def tried(node: exp.Expr) -> exp.Expr:
    """An expression, or NULL where it fails."""
    return exp.Anonymous(this=TRIED, expressions=[node])


def is_total(node: exp.Expr, is_stored: Callable[[exp.Column], bool]) -> bool:
    """Whether a condition compares columns with constants of their type, which nothing can make fail.

    Args:
        is_stored: whether a column is one of a table, so that its type is known from DuckDB itself.
    """
    if isinstance(node, (exp.Paren, exp.Not)):
        return is_total(node.this, is_stored)
    if isinstance(node, (exp.And, exp.Or)):
        return is_total(node.this, is_stored) and is_total(node.expression, is_stored)
    if isinstance(node, exp.Boolean):
        return True
    if isinstance(node, exp.Column):
        return family(node) == "truth" and is_stored(node)
    column, values = _compared(node)
    if not isinstance(column, exp.Column) or not is_stored(column):
        return False
    return all(_fits(value, column, is_stored) for value in values)


def shorten_searches(select: exp.Select) -> None:
    """Have regexp_replace of records take texts of a thousand bytes at most, in place; a longer one is NULL.

    To replace all that a pattern finds may take the square of the length: one long text would be seen by the clock.
    """
    for search in list(select.find_all(exp.RegexpReplace)):
        value = search.this
        if isinstance(value, exp.Case) and value.meta.get(_SHORTENED):
            continue
        size = exp.func("strlen", value.copy(), dialect="duckdb")
        short = exp.LTE(this=size, expression=exp.Literal.number(_LONGEST_SEARCHED))
        kept = exp.Case(ifs=[exp.If(this=short, true=value.copy())])
        kept.meta[_SHORTENED], kept.type = True, value.type
        search.set("this", kept)


_SHORTENED = "shortened"


def refuse_lifted(node: exp.Expr) -> None:
    """Refuse lists in a condition of EXISTS: DuckDB would look for their values in a join, outside of TRY."""
    if node.find(exp.In) is not None:
        raise Refused("SDC005", "IN of an expression, in EXISTS: write x = 1 OR x = 2")


def refuse_uncaught(node: exp.Expr) -> None:
    """Refuse a function that raises what TRY does not catch, for some values of its arguments.

    Raises:
        Refused: it could, or what it is given is not known well enough.
    """
    arguments = node.expressions if isinstance(node, exp.Anonymous) else []
    called = folded(node.name) if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Coalesce) and duckdb.__version__.startswith("1.") and _has_logarithm(node):
        raise Refused("SDC014", "coalesce of a logarithm or a root: write CASE WHEN x > 0 THEN ln(x) ELSE 0 END")
    if isinstance(node, exp.Escape) or called.endswith("_escape"):
        written = [node.this.expression, node.expression] if isinstance(node, exp.Escape) else arguments[1:]
        texts = [one.this for one in written if isinstance(one, exp.Literal) and one.is_string]
        if len(texts) != len(written) or len(texts) != 2 or len(texts[1]) > 1 or _ends_in_escape(*texts):
            raise Refused(
                "SDC014",
                "ESCAPE of anything but one character and a pattern in quotes that does not end in it; "
                "for a pattern that is a column, contains(a, b) or starts_with(a, b)",
            )
    elif isinstance(node, exp.DateBin) or called in ("time_bucket", "date_bin"):
        width = node.this if isinstance(node, exp.DateBin) else arguments[0] if arguments else None
        if not _is_width(width):
            raise Refused("SDC014", "time_bucket of anything but a width such as INTERVAL '7 days'")
    elif isinstance(node, (exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.DateDiff)):
        part = node.this if isinstance(node, exp.Extract) else node.args.get("unit")
        of = [node.expression] if isinstance(node, exp.Extract) else [node.this, node.args.get("expression")]
        _refuse_part(part, of, any_of=not isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)))
    elif isinstance(node, exp.Pad):
        length = whole_number(node.expression)
        if length is None or length > _LONGEST_PADDED:
            raise Refused("SDC014", f"lpad and rpad of single records to anything but a number up to {_LONGEST_PADDED}")
    elif called in _WITH_PART:
        _refuse_part(arguments[0] if arguments else None, arguments[1:], any_of=called not in _TRUNCATED)
    elif (isinstance(node, _OF_WEEKS) or called in _NAMES_OF_WEEKS) and not any(
        _is_of(time, _DATES) for time in arguments or [node.this]
    ):
        raise Refused("SDC014", f"{called or duckdb_name(node)} of what may be no DATE or TIMESTAMP; cast it")


def _has_logarithm(node: exp.Expr) -> bool:
    """Whether one of several values may fail: where one does, DuckDB 1.5 reads past the end of memory, TRY or not."""
    named = (folded(found.name) for found in node.find_all(exp.Anonymous))
    return node.find(exp.Ln, exp.Log, exp.Sqrt, exp.Pow) is not None or not _ROOTS.isdisjoint(named)


_ROOTS = frozenset(["ln", "log", "log2", "log10", "sqrt", "pow", "power"])


def _ends_in_escape(pattern: str, escape: str) -> bool:
    """Whether a pattern ends in an escape of nothing.

    >>> _ends_in_escape("50$%$", "$"), _ends_in_escape("50$$", "$"), _ends_in_escape("50$", "")
    (True, False, False)
    """
    escape = escape or "\0"  # which no escape is to DuckDB 1
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1


def _refuse_part(part: exp.Expr | None, of: Sequence[exp.Expr | None], *, any_of: bool) -> None:
    """Refuse a part of a time that some values of the type do not have; ``any_of``: of any other type than a date's."""
    name = folded(part.name) if isinstance(part, exp.Var) or (isinstance(part, exp.Literal) and part.is_string) else ""
    if name.removesuffix("s") not in _CLOCK | _CALENDAR and name not in _CLOCK:
        raise Refused("SDC014", "a part of a time that is not in quotes, or not one such as 'year', 'month', 'hour'")
    kinds = _DATES if name.removesuffix("s") not in _OF_INTERVALS else _DATES | {_Type.INTERVAL}
    if (
        any_of
        and name.removesuffix("s") in _CALENDAR
        and not any(_is_of(time, kinds) for time in of if time is not None)
    ):
        raise Refused("SDC014", f"'{name}' of what may be no DATE or TIMESTAMP; cast it")


def _is_of(node: exp.Expr, kinds: Collection[object]) -> bool:
    """Whether an expression is known to be of one of these types, as what age() gives is of INTERVAL."""
    if isinstance(node, exp.Anonymous) and folded(node.name) == "age":
        return _Type.INTERVAL in kinds
    return node.type is not None and node.type.this in kinds


def _is_width(node: exp.Expr | None) -> bool:
    """Whether a constant is a length of time that is more than none, in one unit."""
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        unit = folded(node.unit.name) if node.unit is not None else ""
        return _POSITIVE.fullmatch(node.this.this) is not None and unit.removesuffix("s") in _UNITS
    if isinstance(node, exp.Anonymous) and folded(node.name).startswith("to_") and len(node.expressions) == 1:
        node = node.expressions[0]
    elif isinstance(node, exp.Func) and type(node).__name__.startswith("To") and isinstance(node.this, exp.Expr):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and _POSITIVE.fullmatch(node.this) is not None


def _compared(node: exp.Expr) -> tuple[exp.Expr | None, list[exp.Expr]]:
    """What is compared, and with what."""
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return node.this, []
    if isinstance(node, _COMPARISONS):
        left, right = node.this, node.expression
        return (left, [right]) if isinstance(left, exp.Column) else (right, [left])
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        return node.this, [node.args["low"], node.args["high"]]
    if isinstance(node, exp.In) and all(
        part in ("this", "expressions") or not given for part, given in node.args.items()
    ):
        return node.this, node.expressions
    return None, []


def _fits(value: exp.Expr, column: exp.Column, is_stored: Callable[[exp.Column], bool]) -> bool:
    """Whether DuckDB compares a value with a column without a cast of the column that could fail."""
    kind = family(column)
    if isinstance(value, exp.Column):
        return kind is not None and value.type == column.type and is_stored(value)
    if kind in ("whole", "real", "decimal"):
        written = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(written, exp.Literal) or written.is_string:
            return False
        number = written.this
        if kind == "whole":
            assert column.type is not None
            return column.type.this in _SIGNED and number.isdecimal() and len(number) <= _MOST_DIGITS
        most = _MOST_OF_DECIMAL if kind == "decimal" else _MOST_DIGITS
        plain = number.replace(".", "", 1).isdecimal() and len(number) <= most
        return plain and (kind == "real" or 0 < digits(column) <= _MOST_DIGITS)
    if isinstance(value, exp.Cast) and type(value) is exp.Cast and value.to.this is _Type.DATE:
        return kind in ("date", "timestamp") and _is_time(value.this, _DAY)
    if isinstance(value, exp.Cast) and type(value) is exp.Cast and value.to.this is _Type.TIMESTAMP:
        return kind == "timestamp" and (_is_time(value.this, _TIME) or _is_time(value.this, _DAY))
    if kind == "text":
        return isinstance(value, exp.Literal) and bool(value.is_string)
    if kind in ("date", "timestamp"):
        return _is_time(value, _DAY) or (kind == "timestamp" and _is_time(value, _TIME))
    return kind == "truth" and isinstance(value, exp.Boolean)


def _is_time(value: exp.Expr, form: re.Pattern[str]) -> bool:
    if not isinstance(value, exp.Literal) or not value.is_string or form.fullmatch(value.this) is None:
        return False
    try:
        datetime.fromisoformat(value.this)
    except ValueError:
        return False
    return bool(value.this.isascii())
