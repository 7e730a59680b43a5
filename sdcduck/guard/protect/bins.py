"""Bins of a measure: steps of it that are written with numbers alone, which may be groups.

::

    floor(income / 1000) * 1000    round(income, -3)    ceil((income - 500) / 250)    income // 1000, of whole numbers

A value beyond the bounds of its measure counts as the bound, as in a sum, and one that is no finite number as NULL. So
which bins there may be follows from the question and from what was declared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp, parse_one

from sdcduck.guard.expressions import family, text, whole_number
from sdcduck.guard.protect.bands import is_short, number_of, written
from sdcduck.guard.refusals import Refused

_CLIPPED = "within its bounds"
_MOST_BINS, _GOOD_NUMBER = 500, 50
_FARTHEST = 10**9  # from 0, in bins: a DOUBLE tells the middle of one from its borders
_MOST_DIGITS = 9
_FINITE = "1.7976931348623157e308"


@dataclass(frozen=True)
class Steps:
    """A step function of a column: it changes where ``factor * x + added`` is ``first`` and so many ``width`` more.

    Attributes:
        factor: what the column is multiplied by.
        added: what is added to that.
        first: where one step is.
        width: how far it is from one to the next.
    """

    factor: Fraction
    added: Fraction
    first: Fraction
    width: Fraction

    def borders(self, low: float, high: float) -> list[Decimal] | None:
        """The values between two others at which it changes; None: they are more than are answered."""
        ends = sorted(self.factor * Fraction(end) + self.added - self.first for end in (low, high))
        least, most = math.ceil(ends[0] / self.width), math.floor(ends[1] / self.width)
        if most - least >= _MOST_BINS or max(abs(least), abs(most)) > _FARTHEST:
            return None
        found = [(self.first + place * self.width - self.added) / self.factor for place in range(least, most + 1)]
        return [Decimal(one.numerator) / one.denominator for one in found]


def steps_of(column: exp.Expr) -> Steps | None:
    """The step function that a column, or what it is within its bounds, stands in; None: it stands in none.

    >>> for written in ("floor(x / 1000)", "ceil(5 - x / 500)", "round(x, -3)", "floor(x / y)", "x % 7", "x / 3"):
    ...     found = steps_of(parse_one(written, read="duckdb").find(exp.Column))
    ...     print(written, None if found is None else [str(Fraction(part)) for part in found.borders(0, 2500)][:3])
    floor(x / 1000) ['0', '1000', '2000']
    ceil(5 - x / 500) ['2500', '2000', '1500']
    round(x, -3) ['500', '1500', '2500']
    floor(x / y) None
    x % 7 None
    x / 3 None
    """
    factor, added, node = Fraction(1), Fraction(0), column
    while node.parent is not None:
        place, node = node.arg_key, node.parent
        other = number_of(node.this if place == "expression" else node.args.get("expression"))
        number = None if other is None or not is_short(other) else Fraction(other)
        if isinstance(node, exp.Paren):
            continue
        if isinstance(node, exp.Neg):
            factor, added = -factor, -added
        elif isinstance(node, exp.Add) and number is not None:
            added += number
        elif isinstance(node, exp.Sub) and number is not None:
            sign = 1 if place == "this" else -1
            factor, added = sign * factor, sign * (added - number)
        elif isinstance(node, exp.Mul) and number:
            factor, added = factor * number, added * number
        elif isinstance(node, exp.Div) and number and place == "this":
            factor, added = factor / number, added / number
        elif isinstance(node, exp.IntDiv) and number and place == "this":
            # Of numbers that are not whole, DuckDB's // is /.
            is_whole = family(column) == "whole" and all(part.denominator == 1 for part in (factor, added, number))
            return Steps(factor, added, Fraction(0), abs(number)) if is_whole else None
        else:
            return _rounded(node, factor, added) if place == "this" else None
    return None


def _rounded(node: exp.Expr, factor: Fraction, added: Fraction) -> Steps | None:
    """The steps of a function that rounds."""
    digits = 0 if node.args.get("decimals") is None else whole_number(node.args["decimals"])
    if (
        not isinstance(node, (exp.Floor, exp.Ceil, exp.Round, exp.Trunc))
        or digits is None
        or abs(digits) > _MOST_DIGITS
    ):
        return None
    if any(value for part, value in node.args.items() if part not in ("this", "decimals")):
        return None
    width = Fraction(10) ** -digits
    return Steps(factor, added, width / 2 if isinstance(node, exp.Round) else Fraction(0), width)


def within(column: exp.Column) -> exp.Case | None:
    """What a column is within its bounds, if it is a part of that."""
    case = column.find_ancestor(exp.Case)
    return case if case is not None and case.meta.get(_CLIPPED) else None


def is_binned(column: exp.Column) -> bool:
    """Whether a column, within its bounds, stands in a step function."""
    case = within(column)
    return case is not None and steps_of(case) is not None


def clip(column: exp.Column, low: float, high: float) -> None:
    """Take a column within its bounds, in place: in its own type, so that what is made of it has its type, too.

    Raises:
        Refused: its type is not known, or has no value between them.
    """
    kind, name, of = family(column), text(column), column.type
    if kind not in ("whole", "decimal", "real") or of is None:
        raise Refused("SDC081", f"groups of '{column.name}', which is no number")
    if kind == "whole":
        low, high = math.ceil(low), math.floor(high)
    if low > high:
        raise Refused("SDC081", f"groups of '{column.name}', which has no whole number between its bounds")
    least, most = (f"TRY_CAST('{written(end)}' AS {of.sql('duckdb')})" for end in (low, high))
    below, above = f"{name} < {written(low)}", f"{name} > {written(high)}"
    if kind == "real":
        below, above = f"{below} AND {name} >= -{_FINITE}", f"{above} AND {name} <= {_FINITE}"
    case = parse_one(
        f"CASE WHEN {name} BETWEEN {written(low)} AND {written(high)} THEN {name} WHEN {above} THEN {most} "
        f"WHEN {below} THEN {least} END",
        read="duckdb",
    )
    case.meta[_CLIPPED], case.type = True, of
    for part in case.find_all(exp.Column):
        part.type = of
    column.replace(case)


def borders_of(column: exp.Column, low: float, high: float) -> list[Decimal]:
    """The numbers at which a step function of a measure within its bounds changes, and these.

    Raises:
        Refused: they are very many.
    """
    case = within(column)
    steps = None if case is None else steps_of(case)
    if steps is None:
        return []
    found = steps.borders(low, high)
    if found is None:
        width = 10 ** math.ceil(math.log10((high - low) / _GOOD_NUMBER))
        step = written(float(Decimal(repr(width))))
        raise Refused(
            "SDC081",
            f"more than {_MOST_BINS} bins of '{column.name}' between its bounds; make them wider: "
            f"floor({column.name} / {step}) * {step}",
        )
    ends = [Decimal(written(end)) for end in (low, high)]
    return [*ends, *(border for border in found if ends[0] < border < ends[1])]
