"""Sums of expressions of measures, as sums of terms: each is published, and they are added up outside.

::

    sum(2 * income + bonus - 10)  ->  sum(income) * 2 + sum(bonus) - count(*) * 10, of rows that have both

So the parts agree, and nothing is told that they do not tell. With noise of its own for the same records, a sum of
``income * 1.001`` beside that of ``income`` would be another draw for one question, and ``income - 3000`` one that is
small where the amounts are near 3000.

A few functions of measures are terms, too. They have no parameter that whoever asks could choose: there would be as
many draws as one likes, and a function can be so steep that it is a condition. Each has noise of its own, as a measure
of another name has: not less than its range between the bounds that the custodian declared, whatever values there are,
so that no value stands out of it. What is beyond the bounds counts as they do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from sqlglot import exp

from sdcduck.guard.calls import Total, both
from sdcduck.guard.expressions import bounded, duckdb_name, family, is_number, is_wide, keeps_numbers, text
from sdcduck.guard.protect.bands import written
from sdcduck.guard.protect.numbers import Numbers
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Role
from sdcduck.quoting import folded

_MOST_TERMS = 10
_NUMBER = re.compile(r"(?=.{1,18}$)\d+(?:\.\d+)?")
_LEAST_RANGE, _MOST_RANGE = 0.1, 9e14  # on the grid of four decimals that floating-point numbers are added up on


@dataclass(frozen=True)
class Function:
    """A function of measures that nothing can make fail.

    Attributes:
        sql: of the values within their bounds.
        called: what its noise is made of.
        columns: the measures.
        most: how far from 0 it can be.
    """

    sql: str
    called: str
    columns: tuple[exp.Column, ...]
    most: float


@dataclass(frozen=True)
class Term:
    """What is added up: a measure or a function of measures; None: rows are counted.

    Attributes:
        scale: what its published number is multiplied by, as SQL to be written behind it.
        instead_of: measures in whose place it is taken, where these are missing: ``coalesce(income, bonus)``.
        needed: of each of these one measure has to be there for a row to be added up; None: all of its own.
    """

    scale: str
    value: exp.Column | Function | None
    instead_of: tuple[exp.Column, ...] = ()
    needed: tuple[tuple[exp.Column, ...], ...] | None = None

    @property
    def columns(self) -> tuple[exp.Column, ...]:
        """The measures in it."""
        if isinstance(self.value, Function):
            return self.value.columns
        return () if self.value is None else (self.value,)

    @property
    def is_filled(self) -> bool:
        """Whether it is 0 in some of the rows that are added up: something else is there, or the analyst wrote 0."""
        return self.needed is not None


def terms_of(scope: Scope, node: exp.Expr) -> list[Term] | None:
    """The terms of a sum of measures and functions of them, times constants; None: it is none."""
    if not scope.has_measure(node):
        return None
    found = _terms(scope, node, "")
    if found is not None and len(found) > _MOST_TERMS:
        raise Refused("SDC002", "a sum of many terms")
    return found


def _terms(scope: Scope, node: exp.Expr, scale: str) -> list[Term] | None:
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and keeps_numbers(node)):
        node = node.this
    if not scope.has_measure(node):
        return None if constant_value(node) is None else [Term(f"{scale} * {_written(node)}", None)]
    if isinstance(node, exp.Column):
        return [Term(scale, node)]
    if isinstance(node, exp.Coalesce):
        return _first_known(scope, node, scale)
    found = function_of_measures(scope, node)
    if found is not None:
        return [Term(f"{scale}{found.scale}", found.value)]
    if isinstance(node, exp.Neg):
        return _terms(scope, node.this, f"{scale} * -1")
    if isinstance(node, (exp.Add, exp.Sub)):
        one = _terms(scope, node.this, scale)
        other = _terms(scope, node.expression, scale if isinstance(node, exp.Add) else f"{scale} * -1")
        return None if one is None or other is None else [*one, *other]
    if isinstance(node, (exp.Mul, exp.Div)):
        with_measure, factor, sign = node.this, node.expression, "/" if isinstance(node, exp.Div) else "*"
        if sign == "*" and scope.has_measure(factor):
            with_measure, factor = factor, with_measure
        constant = None if scope.has_measure(factor) else constant_value(factor)
        if constant is not None and (sign == "*" or constant != 0):
            return _terms(scope, with_measure, f"{scale} {sign} {_written(factor)}")
    return None


def _first_known(scope: Scope, node: exp.Coalesce, scale: str) -> list[Term] | None:
    """The terms of ``coalesce(one, other, .., 0)``: each measure of the rows in which those before it are missing.

    In place of 0 there may be ``0 * dimension``, which is NULL where the dimension is.
    """
    parts = [node.this, *node.expressions]
    has_zero, nought = constant_value(parts[-1]) == 0, _nought_where(scope, parts[-1])
    measures = parts[:-1] if has_zero or nought is not None else parts
    columns = [column for part in measures if (column := _measure(scope, part)) is not None]
    if len(columns) < len(measures):
        return None
    if scope.method.from_cells:
        raise Refused("SDC052", "coalesce among terms: a publication has sums of cells, and no records without a value")
    for column in columns:
        scope.refuse_filled(column)
    needed = () if has_zero else ((*columns, *filter(None, [nought])),)
    return [Term(scale, column, tuple(columns[:place]), needed) for place, column in enumerate(columns)]


def _nought_where(scope: Scope, node: exp.Expr) -> exp.Column | None:
    """The column of ``0 * column``, a dimension of whole numbers; None: it is something else."""
    if not isinstance(node, exp.Mul) or constant_value(node.this) != 0:
        return None
    column = node.expression
    if not isinstance(column, exp.Column) or family(column) != "whole" or scope.has_measure(column):
        return None
    scope.check(column)
    return column


def constant_value(node: exp.Expr) -> Fraction | None:
    """The value of arithmetic with numbers that are written out; None: it is something else, or divides by 0."""
    if isinstance(node, exp.Paren):
        return constant_value(node.this)
    if is_number(node):
        return Fraction(node.this) if _NUMBER.fullmatch(node.this) else None
    if isinstance(node, exp.Neg):
        value = constant_value(node.this)
        return None if value is None else -value
    if not isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return None
    one, other = constant_value(node.this), constant_value(node.expression)
    if one is None or other is None:
        return None
    if isinstance(node, exp.Div):
        return None if other == 0 else one / other
    return one + other if isinstance(node, exp.Add) else one - other if isinstance(node, exp.Sub) else one * other


def _written(constant: exp.Expr) -> str:
    return text(constant) if is_number(constant) else f"({text(constant)})"


# --- Functions ------------------------------------------------------------------------------------------------------


def function_of_measures(scope: Scope, node: exp.Expr) -> Term | None:
    """A function of measures as a term; None: it is none of those that are answered.

    Raises:
        Refused: it is one that the bounds of its measures do not allow, or there are none.
    """
    if isinstance(node, exp.Abs):
        return _of_one(scope, node, node.this, "abs", "abs({})", abs, -math.inf)
    if isinstance(node, exp.Sqrt) or (isinstance(node, exp.Pow) and constant_value(node.expression) == Fraction(1, 2)):
        return _of_one(scope, node, node.this, "sqrt", "sqrt({})", math.sqrt, 0)
    if isinstance(node, exp.Pow) and constant_value(node.expression) == 2:
        return _product(scope, node, [node.this, node.this])
    if isinstance(node, exp.Mul):
        return _product(scope, node, [node.this, node.expression])
    if isinstance(node, exp.Ln):
        return _logarithm(scope, node, node.this, "")
    if isinstance(node, exp.Log):
        base = Fraction(10) if node.expression is None else constant_value(node.this)
        if base is None or base <= 1:
            return None
        return _logarithm(scope, node, node.expression or node.this, f" / {math.log(base)!r}")
    return None


def _logarithm(scope: Scope, node: exp.Expr, of: exp.Expr, scale: str) -> Term | None:
    """``ln(x)`` or ``ln(x + 1)``, whose least value is that of x = 0; logarithms of other bases are parts of them."""
    of = of.unnest()
    if isinstance(of, exp.Add) and 1 in (constant_value(of.this), constant_value(of.expression)):
        one = of.this if constant_value(of.expression) == 1 else of.expression
        return _of_one(scope, node, one, "ln of 1 +", "ln({} + 1)", math.log1p, 0, scale)
    return _of_one(scope, node, of, "ln", "ln({})", math.log, math.ulp(0.0), scale)


def _of_one(
    scope: Scope,
    node: exp.Expr,
    of: exp.Expr,
    called: str,
    sql: str,
    function: Callable[[float], float],
    least: float,
    scale: str = "",
) -> Term | None:
    """A function of one measure; ``least``: that it has a value for."""
    column = _measure(scope, of)
    if column is None:
        return None
    low, high = _bounds(scope, node, column)
    if low < least:
        values = "above 0" if called == "ln" else "of 0 or more"
        also = f"; ln({column.name} + 1) takes 0" if called == "ln" and low == 0 else ""
        said = f"{duckdb_name(node)} takes values {values}, and the bounds of '{column.name}' begin at {written(low)}"
        raise Refused("SDC041", f"{said}{also}")
    if called == "abs" and low >= 0:  # the measure itself, with its noise
        return Term(scale, column)
    most = max(abs(function(low)), abs(function(high)))
    within = sql.format(_within(column, low, high))
    return Term(scale, _function(node, within, f"{called} {scope.called(column)}", (column,), most))


def _product(scope: Scope, node: exp.Expr, of: Sequence[exp.Expr]) -> Term | None:
    """The product of two measures, or the square of one."""
    columns = [_measure(scope, factor) for factor in of]
    one, other = columns
    if one is None or other is None:
        return None
    one, other = sorted((one, other), key=lambda column: (scope.called(column), text(column)))
    ends = [_bounds(scope, node, column) for column in (one, other)]
    most = max(abs(low * high) for low, high in product(*ends))
    sql = " * ".join(_within(column, *end) for column, end in zip((one, other), ends, strict=True))
    called = f"product of {scope.called(one)} and {scope.called(other)}"
    return Term("", _function(node, f"({sql})", called, (one, other), most))


def _function(node: exp.Expr, sql: str, called: str, columns: tuple[exp.Column, ...], most: float) -> Function:
    if not _LEAST_RANGE <= most <= _MOST_RANGE:
        raise Refused("SDC041", f"{_shown(node)} between the bounds is less than {_LEAST_RANGE}, or more than 9e14")
    return Function(sql, called, columns, most)


def _measure(scope: Scope, node: exp.Expr) -> exp.Column | None:
    """A measure, in brackets and casts that keep its values."""
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and keeps_numbers(node)):
        node = node.this
    return node if isinstance(node, exp.Column) and scope.role(node) is Role.MEASURE else None


def _bounds(scope: Scope, node: exp.Expr, column: exp.Column) -> tuple[float, float]:
    """The bounds of a measure of records.

    Raises:
        Refused: it is none, or there are none.
    """
    if scope.added(column) is not None:
        raise Refused("SDC052", f"{_shown(node)}: '{column.name}' is a sum that units have")
    if scope.method.from_cells:
        raise Refused("SDC052", f"{_shown(node)}: a publication has sums of cells, and no values")
    bounds = scope.bounds(column)
    if not bounds:
        wanted = f"sdc_protect(.., bounds := {{'{scope.called(column)}': [.., ..]}})"
        raise Refused(
            "SDC041", f"{_shown(node)} needs bounds of '{column.name}', which the custodian declares: {wanted}"
        )
    return bounds[0], bounds[1]


def _within(column: exp.Column, low: float, high: float) -> str:
    """A measure within its bounds, as a floating-point number; NaN is the upper one."""
    value = f"CAST({text(column)} AS DOUBLE)"
    return f"(CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, {low!r}), {high!r}) END)"


def _shown(node: exp.Expr) -> str:
    return "a product of measures" if isinstance(node, (exp.Mul, exp.Pow)) else f"{duckdb_name(node)} of a measure"


# --- Their numbers --------------------------------------------------------------------------------------------------


def total_of(scope: Scope, value: exp.Column | Function, condition: str, numbers: Numbers) -> tuple[Total, str]:
    """The protected sum of a measure or a function of measures, and the SQL of what is added up."""
    if isinstance(value, Function):
        total = numbers.total(value.sql, condition, value.called, "", exact=False, least=value.most)
        return total, value.sql
    # Cell keys clip the largest contribution of a cell themselves, which costs less than every record.
    safe = scope.method.clips and not scope.several
    wide = is_wide(value) and not scope.method.from_cells
    added = bounded(text(value)) if wide or (family(value) == "real" and not safe) else text(value)
    exact = family(value) in ("whole", "decimal") and not wide
    of_rows = scope.added(value)
    if of_rows is not None:
        exact = of_rows.exact
    rows = "" if of_rows is None else of_rows.rows
    return numbers.total(added, condition, scope.called(value), rows, exact=exact), added


def where_known(scope: Scope, measure: exp.Column, there: str | None, condition: str) -> str:
    """A condition, and that there is a value; the condition alone where no record lacks one."""
    complete = {folded(name) for name in scope.policy.without_null if scope.relation.table is not None}
    if there is None and measure.table == scope.alias and folded(measure.name) in complete:
        return condition
    return both(condition, f"{text(measure)} IS NOT NULL" if there is None else there)


def known_rows(scope: Scope, terms: Sequence[Term], condition: str, numbers: Numbers) -> str:
    """The condition for the rows that have all measures of these terms.

    Raises:
        Refused: the method does not know.
    """
    needed: dict[str, tuple[exp.Column, ...]] = {}
    for term in terms:
        some_of = [(column,) for column in term.columns] if term.needed is None else term.needed
        needed.update((" ".join(map(text, columns)), columns) for columns in some_of)
    for columns in needed.values():
        if len(terms) > 1 or isinstance(terms[0].value, Function):
            for column in columns:
                scope.refuse_filled(column)
        if scope.method.from_cells:
            numbers.known(text(columns[0]), condition)
        elif len(columns) == 1:
            condition = where_known(scope, columns[0], None, condition)
        else:
            some = " OR ".join(f"{text(column)} IS NOT NULL" for column in columns)
            condition = both(condition, f"({some})")
    return condition


def sum_of_terms(scope: Scope, terms: Sequence[Term], condition: str, numbers: Numbers, *, mean: bool) -> str:
    """The protected sum or mean of the terms, over the rows for which a condition holds and that have all measures."""
    rows = known_rows(scope, terms, condition, numbers)
    if len(terms) == 1 and not isinstance(terms[0].value, Function):
        rows = condition  # as the measure alone is added up
    parts = []
    for term in terms:
        if term.value is None:
            parts.append(f"1{term.scale}" if mean else f"{numbers.count(rows)}{term.scale}")
            continue
        if term.is_filled:
            among = rows
            for column in term.instead_of:
                among = both(among, f"{text(column)} IS NULL")
            total, _ = total_of(scope, term.value, among, numbers)
            filled = f"({numbers.or_zero(total.sql, numbers.some(rows), rows)})"
            among_them = f" / nullif({numbers.count(rows)}, 0)" if mean else ""
            parts.append(f"{filled}{among_them}{term.scale}")
            continue
        total, added = total_of(scope, term.value, rows, numbers)
        sql = total.mean(numbers.known(added, rows), numbers.method.steps) if mean else total.sql
        parts.append(f"{sql}{term.scale}")
    return f"({' + '.join(parts)})"
