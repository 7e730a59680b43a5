"""Types of expressions that sqlglot does not know, or takes for others.

The difference of two days is a whole number and no day, so that its mean is answered and it is compared with whole
numbers only; ``first(x ORDER BY y)`` is of the type of ``x``.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.annotate_types import annotate_types

from sdcduck.quoting import folded

_KNOWN = Dialect.get_or_raise("duckdb").EXPRESSION_METADATA
_MAKE_INTERVALS = frozenset(["age"]) | frozenset(
    f"to_{unit}" for unit in ("years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds")
)
_WHOLE = frozenset(
    ["strlen", "weekday", "isoyear", "yearweek", "decade", "century", "date_sub", "datesub", "datediff", "bit_count"]
)
"""Functions that give a whole number, of those that sqlglot does not know."""
_MOMENTS = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.TIMESTAMPTZ)
_OF_TIME = exp.DataType.TEMPORAL_TYPES - {exp.DataType.Type.TIME, exp.DataType.Type.TIMETZ}


def _of_difference(annotator: Any, node: exp.Sub) -> exp.Sub:
    kinds = [side.type.this if side.type is not None else None for side in (node.this, node.expression)]
    if kinds[0] not in _OF_TIME and kinds[1] in _OF_TIME:
        # A text or NULL is taken for a time: less another it is none.
        annotator._set_type(node, exp.DataType.Type.UNKNOWN)
        return node
    if any(kind not in _OF_TIME for kind in kinds):
        annotated: exp.Sub = _KNOWN[exp.Sub]["annotator"](annotator, node)
        return annotated
    days = all(kind is exp.DataType.Type.DATE for kind in kinds)
    annotator._set_type(node, exp.DataType.Type.BIGINT if days else exp.DataType.Type.INTERVAL)
    return node


def _of_value(annotator: Any, node: exp.First | exp.Last) -> exp.First | exp.Last:
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    annotator._set_type(node, value.type)
    return node


def _of_this(annotator: Any, node: exp.Nullif | exp.Trunc) -> exp.Nullif | exp.Trunc:
    annotator._set_type(node, node.this.type)
    return node


def _of_call(annotator: Any, node: exp.Anonymous) -> exp.Anonymous:
    if folded(node.name) in _WHOLE:
        annotator._set_type(node, exp.DataType.Type.BIGINT)
        return node
    if folded(node.name) in ("date_part", "datepart") and node.expressions:
        annotator._set_type(node, _type_of_part(node.expressions[0].name))
        return node
    if folded(node.name) == "even":
        annotator._set_type(node, exp.DataType.Type.DOUBLE)
        return node
    if folded(node.name) in _MAKE_INTERVALS:
        annotator._set_type(node, exp.DataType.Type.INTERVAL)
        return node
    annotated: exp.Anonymous = _KNOWN[exp.Anonymous]["annotator"](annotator, node)
    return annotated


def _of_arithmetic(annotator: Any, node: exp.Binary) -> exp.Binary:
    """An interval times a number, or divided by one, is an interval, and so is the sum of two."""
    kinds = [side.type.this if side.type is not None else None for side in (node.this, node.expression)]
    others = {exp.DataType.Type.INTERVAL, *exp.DataType.NUMERIC_TYPES}
    if exp.DataType.Type.INTERVAL in kinds and all(kind in others for kind in kinds):
        annotator._set_type(node, exp.DataType.Type.INTERVAL)
        return node
    annotated: exp.Binary = _KNOWN[type(node)]["annotator"](annotator, node)
    return annotated


def _of_choice(annotator: Any, node: exp.Case | exp.Coalesce | exp.Greatest | exp.Least) -> exp.Expr:
    """One of several values: a time, where one of them is a time and another a day."""
    annotated: exp.Expr = _KNOWN[type(node)]["annotator"](annotator, node)
    if isinstance(node, exp.Case):
        values = [one.args["true"] for one in node.args["ifs"]] + list(filter(None, [node.args.get("default")]))
    else:
        values = [node.this, *node.expressions]
    if annotated.is_type(exp.DataType.Type.DATE) and any(value.is_type(*_MOMENTS) for value in values):
        annotator._set_type(node, exp.DataType.Type.TIMESTAMP)
    return annotated


def _of_part(annotator: Any, node: exp.Extract) -> exp.Extract:
    """extract(epoch FROM t) has decimals."""
    annotator._set_type(node, _type_of_part(node.name))
    return node


def _type_of_part(name: str) -> exp.DataType:
    return exp.DataType.build("DOUBLE" if folded(name) in ("epoch", "julian") else "BIGINT")


def _of_epoch(annotator: Any, node: exp.UnixToTime) -> exp.UnixToTime:
    """epoch_ms(t) of a time is a number, of a number a time."""
    is_time = node.this.is_type(exp.DataType.Type.DATE, *_MOMENTS)
    annotator._set_type(node, exp.DataType.Type.BIGINT if is_time else exp.DataType.Type.TIMESTAMP)
    return node


EXPRESSION_TYPES: dict[type[exp.Expr], dict[str, Any]] = {
    **_KNOWN,
    exp.Sub: {"annotator": _of_difference},
    exp.Nullif: {"annotator": _of_this},
    exp.Trunc: {"annotator": _of_this},
    **{kind: {"annotator": _of_choice} for kind in (exp.Case, exp.Coalesce, exp.Greatest, exp.Least)},
    exp.Extract: {"annotator": _of_part},
    exp.UnixToTime: {"annotator": _of_epoch},
    exp.First: {"annotator": _of_value},
    exp.Last: {"annotator": _of_value},
    exp.Anonymous: {"annotator": _of_call},
    exp.Add: {"annotator": _of_arithmetic},
    exp.Mul: {"annotator": _of_arithmetic},
    exp.Div: {"annotator": _of_arithmetic},
}
"""What sqlglot is told of the types of expressions."""


def typed_as(node: exp.Expr, *known: exp.Expr) -> None:
    """Give what was read from SQL again the types of its columns where these stand in other expressions, in place.

    A function that takes a date alone would be refused, and a cast that is none would be tried.
    """
    kinds = {(column.table, column.name): column.type for one in known for column in one.find_all(exp.Column)}
    untyped = [column for column in node.find_all(exp.Column) if column.type is None]
    for column in untyped:
        column.type = kinds.get((column.table, column.name))
    if untyped:
        # A cast has a type, behind which nothing is looked at.
        for part in [node, *(cast.this for cast in node.find_all(exp.Cast, exp.TryCast))]:
            if part.type is None or part is node:
                annotate_types(part, expression_metadata=EXPRESSION_TYPES, dialect="duckdb", overwrite_types=False)
