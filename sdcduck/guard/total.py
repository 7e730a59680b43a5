"""Expressions over single records that cannot fail: what is written around those that could.

DuckDB's TRY is not enough. The optimiser works out once what stands twice, also `s = 5` and `s = 6` of a text `s`, and
looks for the values of a long IN in a join: both outside of TRY, whatever record it is about. Into a lambda it does not
look, so that nothing leaves the TRY that stands in there (`_sdc_try`). Conditions in which nothing can fail, wherever
it is worked out, stand in TRY alone, which costs less.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from sqlglot import exp

from sdcduck.guard.refusals import Refused
from sdcduck.guard.shapes import digits, family

TRIED = "_sdc_try"
"""The macro around what could fail."""

_Type = exp.DataType.Type
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_SIGNED = {_Type.TINYINT, _Type.SMALLINT, _Type.INT, _Type.BIGINT}
_MOST_DIGITS, _MOST_OF_DECIMAL = 18, 9
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


def refuse_lifted(node: exp.Expr) -> None:
    """Refuse lists in a condition of EXISTS: DuckDB would look for their values in a join, outside of TRY."""
    if node.find(exp.In) is not None:
        raise Refused("SDC005", "IN of an expression, in EXISTS: write x = 1 OR x = 2")


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
