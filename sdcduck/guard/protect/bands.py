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
    asked = _asked_for(column)
    return bool(asked) and all(_is_border(column, kind, value, borders) for kind, value in asked)


def _asked_for(column: exp.Column) -> list[tuple[type[exp.Expr], exp.Expr]]:
    """The borders of which a comparison says on which side of them a column is, as it is compared with them."""
    comparison = column.parent
    if isinstance(comparison, exp.Between):
        if column.arg_key != "this" or comparison.args.get("symmetric"):
            return []
        return [(exp.GTE, comparison.args["low"]), (exp.LTE, comparison.args["high"])]
    if not isinstance(comparison, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return []
    if column.arg_key == "this":
        return [(type(comparison), comparison.expression)]
    return [(_MIRRORED[type(comparison)], comparison.this)]


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


def borders_for(column: exp.Column) -> list[str]:
    """The borders that would make a comparison one of bands, as they are written; none where none would.

    >>> from sqlglot import parse_one
    >>> borders_for(parse_one("income >= 2500", read="duckdb").this)
    ['2500']
    >>> borders_for(parse_one("income BETWEEN 8 AND 8 + 10", read="duckdb").this)  # of what type is not known
    []
    """
    found = [_border(column, kind, value) for kind, value in _asked_for(column)]
    return [] if None in found else [format(border, "f") for border in found if border is not None]


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


def _border(column: exp.Column, kind: type[exp.Expr], value: exp.Expr) -> Decimal | None:
    """The border on one side of which those values are for which ``measure <kind> value`` holds; None: there is none.

    Of whole numbers those above 9999 are those from 10000 on; of floating-point ones there are some in between.
    """
    number = number_of(value)
    if number is None or kind not in (exp.GT, exp.LTE):
        return number
    finest = 0 if family(column) == "whole" else decimals(column)
    if finest is None or _decimals(number) > finest or (finest and is_wide(column)):
        return None
    return number + Decimal(1).scaleb(-finest)


def _is_border(column: exp.Column, kind: type[exp.Expr], value: exp.Expr, borders: Sequence[float]) -> bool:
    """Whether the values for which ``measure <kind> value`` holds are those on one side of a declared border."""
    number, found = number_of(value), _border(column, kind, value)
    if number is None or found is None:
        return False
    most = 0 if is_wide(column) else _MOST_ZEROS
    return any(found == border and _decimals(number) <= max(most, _decimals(border)) for border in map(_exact, borders))


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
    if isinstance(value, exp.Paren):
        return number_of(value.this)
    if isinstance(value, (exp.Add, exp.Sub)):
        return _added(value)
    negative = isinstance(value, exp.Neg)
    literal = value.this if isinstance(value, exp.Neg) else value
    if not isinstance(literal, exp.Literal) or literal.is_string or not _PLAIN.fullmatch(literal.this):
        return None
    number = Decimal(literal.this)
    return -number if negative else number


def _added(value: exp.Add | exp.Sub) -> Decimal | None:
    """``8 + 10`` of whole numbers, which DuckDB adds up to the number that would be written out."""
    parts = number_of(value.this), number_of(value.expression)
    if any(part is None or _decimals(part) != 0 or abs(part) >= _FARTHEST for part in parts):
        return None
    one, other = (part for part in parts if part is not None)
    return one + other if isinstance(value, exp.Add) else one - other
