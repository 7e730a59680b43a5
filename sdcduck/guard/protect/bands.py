"""Bands of a measure: comparisons with the borders that the custodian declared, which are dimensions.

A band is closed below and open above, so that each value is in one: ``income >= 10000 AND income < 20000``. Comparisons
that say the same of every value are taken, too: ``20000 > income``, of whole numbers ``income <= 19999`` and
``income BETWEEN 10000 AND 19999``, of a DECIMAL with two decimals ``price <= 19.99``. Any other border, be it one
nearby, would tell on which side of it a value is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from sdcduck.guard.expressions import decimals, family, is_wide

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE}
_PLAIN = re.compile(r"(?:0|[1-9]\d*)(?:\.\d+)?")
_MOST_ZEROS = 2  # decimals that may be written behind a border that has none
_FARTHEST, _MOST_DECIMALS = 10**9, 4
_COMPARED = (*_MIRRORED, exp.Between, exp.EQ, exp.NEQ, exp.In)


def is_band(column: exp.Column, borders: Sequence[float]) -> bool:
    """Whether a measure stands in a comparison that says on which side of a declared border it is, and nothing else."""
    comparison = column.parent
    if isinstance(comparison, exp.Between):
        if column.arg_key != "this" or comparison.args.get("symmetric"):
            return False
        low, high = comparison.args["low"], comparison.args["high"]
        return _is_border(column, exp.GTE, low, borders) and _is_border(column, exp.LTE, high, borders)
    if not isinstance(comparison, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return False
    if column.arg_key == "this":
        return _is_border(column, type(comparison), comparison.expression, borders)
    return _is_border(column, _MIRRORED[type(comparison)], comparison.this, borders)


def is_compared(column: exp.Column) -> bool:
    """Whether a column stands in a comparison."""
    return isinstance(column.parent, _COMPARED)


def is_with_numbers(column: exp.Column) -> bool:
    """Whether a column stands in a comparison with numbers that are written out, and with nothing else.

    >>> from sqlglot import parse_one
    >>> [is_with_numbers(parse_one(text, read="duckdb").find(exp.Column)) for text in
    ...     ("x > 3", "x BETWEEN -1 AND 2.5", "x IN (1, 2)", "3 >= x", "x > y", "x > y + 1", "x > '3'", "x > 1e3")]
    [True, True, True, True, False, False, False, False]
    """
    compared = column.parent
    if (
        compared is None
        or not isinstance(compared, _COMPARED)
        or (isinstance(compared, exp.Between) and compared.args.get("symmetric"))
    ):
        return False
    others = [part for part in compared.iter_expressions() if part is not column]
    return bool(others) and all(number_of(part) is not None for part in others)


def is_asked_whether(column: exp.Column) -> bool:
    """Whether a column stands in a comparison with written numbers, or is asked whether it is NULL."""
    above = column.parent
    is_null = isinstance(above, exp.Is) and isinstance(above.expression, exp.Null)
    return is_null or (is_with_numbers(column) and all(is_short(number) for number in compared_numbers(column)))


def compared_numbers(column: exp.Column) -> list[Decimal]:
    """The numbers that a column is compared with in such a comparison."""
    above = column.parent
    others = [] if above is None or isinstance(above, exp.Is) else above.iter_expressions()
    return [number for number in map(number_of, others) if number is not None]


def values_between(borders: Sequence[Decimal]) -> list[Decimal]:
    """Values for which comparisons with borders come out in every way that they can.

    >>> [str(value) for value in values_between([Decimal("2.5"), Decimal(4), Decimal("2.50")])]
    ['1.5', '2.5', '3.25', '4', '5']
    >>> values_between([])
    [Decimal('0')]
    """
    ordered = sorted(set(borders))
    if not ordered:
        return [Decimal(0)]
    inside = [value for low, high in pairwise(ordered) for value in (low, (low + high) / 2)]
    return [ordered[0] - 1, *inside, ordered[-1], ordered[-1] + 1]


def is_short(number: Decimal) -> bool:
    """Whether a DOUBLE tells it and the middle to the next such number apart, and every type has room for it."""
    return abs(number) < _FARTHEST and _decimals(number) <= _MOST_DECIMALS


def compared_with(column: exp.Column) -> str | None:
    """The number, as it is written, that a column is compared with; None: it is something else.

    >>> from sqlglot import parse_one
    >>> compared_with(parse_one("income >= 2500", read="duckdb").this)
    '2500'
    """
    compared = column.parent
    if compared is None or not isinstance(compared, tuple(_MIRRORED)):
        return None
    other = compared.expression if compared.this is column else compared.this
    return str(other.this) if isinstance(other, exp.Literal) and not other.is_string else None


def told(name: str, borders: Sequence[float]) -> str:
    """What is said of a measure that is compared with anything else than its borders."""
    listed = ", ".join(map(written, borders))
    return f"{name}; compare it by < and >= with {listed}, the borders of its bands (the upper one is not in a band)"


def written(border: float) -> str:
    """A border as it may be written in SQL.

    >>> written(10000.0), written(0.25), written(1e-7)
    ('10000', '0.25', '0.0000001')
    """
    return str(int(border)) if border == int(border) else format(Decimal(repr(border)), "f")


def bands_of(column: str, borders: Sequence[float]) -> list[str]:
    """SQL of conditions that together say in which band a value is."""
    return [f"{column} >= {written(border)}" for border in borders]


def _is_border(column: exp.Column, kind: type[exp.Expr], value: exp.Expr, borders: Sequence[float]) -> bool:
    """Whether the values for which ``measure <kind> value`` holds are those on one side of a border."""
    number = number_of(value)
    if number is None:
        return False
    behind = _decimals(number)
    if kind in (exp.GT, exp.LTE):
        # Of whole numbers those above 9999 are those from 10000 on; of floating-point ones there are some in between.
        finest = 0 if family(column) == "whole" else decimals(column)
        if finest is None or behind > finest or (finest and is_wide(column)):
            return False
        number += Decimal(1).scaleb(-finest)
    most = 0 if is_wide(column) else _MOST_ZEROS
    return any(number == border and behind <= max(most, _decimals(border)) for border in map(_exact, borders))


def _exact(border: float) -> Decimal:
    return Decimal(written(border))


def _decimals(number: Decimal) -> int:
    return -int(number.as_tuple().exponent)


def number_of(value: exp.Expr | None) -> Decimal | None:
    """A number that is written out, as it is, to the last digit.

    Not with an exponent: DuckDB compares a FLOAT with 7e-1 as a DOUBLE, and with 0.7 as a FLOAT, and who has 0.7 is on
    different sides. Nor with more zeros than a border needs: 0.0 with 34 zeros more is a DECIMAL(36, 35), to which no
    value from 1000 on can be cast, so that the condition is NULL for these. Who writes zeros would choose a border.
    """
    negative = isinstance(value, exp.Neg)
    literal = value.this if isinstance(value, exp.Neg) else value
    if not isinstance(literal, exp.Literal) or literal.is_string or not _PLAIN.fullmatch(literal.this):
        return None
    number = Decimal(literal.this)
    return -number if negative else number
