"""The protected SQL of an aggregate over records."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sdcduck.guard.calls import Total, both
from sdcduck.guard.expressions import (
    QUANTILES,
    as_quantile,
    bounded,
    case,
    constant_factor,
    duckdb_name,
    family,
    is_histogram,
    is_zero,
    share_of,
    text,
    value_of,
)
from sdcduck.guard.methods.dp import DifferentialPrivacy
from sdcduck.guard.methods.dp_pairs import ALL as PAIRS
from sdcduck.guard.methods.threshold import Threshold
from sdcduck.guard.protect.numbers import Numbers
from sdcduck.guard.protect.numbers_of_days import number_of_days
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.protect.terms import known_rows, sum_of_terms, terms_of, total_of, where_known
from sdcduck.guard.protect.values import NO_NUMBER, owned_values
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label, Role

_LARGEST_SQUARED = "1e11"  # of larger values the squares could overflow where many are added up, and tell of them
_OF_PARTS = (exp.Case, exp.If, exp.Greatest, exp.Least)
_BY_PARTS = "; add up each part by itself: sum(x) FILTER (WHERE x < 3000) + 3000 * count(*) FILTER (WHERE x >= 3000)"
_OF_ANY_ROW = (exp.Min, exp.Max, exp.AnyValue, exp.LogicalAnd, exp.LogicalOr)


def number(scope: Scope, node: exp.Expr, condition: exp.Expr | None, numbers: Numbers) -> str:
    """The protected SQL of one aggregate."""
    sql = "true" if condition is None else scope.condition_sql(condition)
    if isinstance(node, exp.CountIf):
        whole = node.this if condition is None else exp.and_(condition.copy(), node.this.copy())
        rows = both(sql, f"({scope.condition_sql(node.this)}) IS NOT NULL")
        return _of_rows(scope, numbers.count(scope.condition_sql(whole)), rows, numbers)
    if isinstance(node, exp.Count):
        if node.expressions:
            raise Refused("SDC051", "count of several columns")
        found = owned_values(scope, node)
        if found is not None:
            value, chosen = found
            return numbers.different(text(value), sql if chosen is None else both(sql, scope.condition_sql(chosen)))
        if isinstance(node.this, exp.Distinct):
            return numbers.units(*_with_units(scope, node.this, sql))
        if isinstance(node.this, exp.Star) or node.this is None or isinstance(node.this, exp.Literal):
            return numbers.count(sql)
        chosen, column, otherwise = case(node.this)
        if otherwise:  # 0 is a value: what is counted are not the rows for which the condition holds
            column = node.this
        elif chosen is not None:
            sql = f"({sql}) AND {scope.condition_sql(chosen)}"
        if isinstance(column, exp.Literal):
            return numbers.count(sql)
        if isinstance(column, exp.Column) and scope.role(column) is Role.MEASURE:
            known = scope.known_sum(column)
            return numbers.known(text(column), sql) if known is None else numbers.count(both(sql, known))
        if isinstance(column, exp.Column) and scope.kind_of(column) >= 0:
            return numbers.count(_where_unit(scope, column, sql))
        terms = None if isinstance(column, exp.Column) else terms_of(scope, column)
        if terms is not None:
            return numbers.count(known_rows(scope, terms, sql, numbers))
        return numbers.count(f"({sql}) AND {scope.over_dimensions(column).sql('duckdb')} IS NOT NULL")
    if isinstance(node, (exp.Sum, exp.Avg)):
        return _sum_or_mean(scope, node, sql, numbers)
    if isinstance(node, (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)):
        return _spread(scope, node, sql, numbers)
    if isinstance(scope.method, DifferentialPrivacy) and duckdb_name(node) in PAIRS:
        return _pair(scope, scope.method, node, sql)
    quantile = as_quantile(node)
    if isinstance(quantile, QUANTILES):
        return _quantile(scope, quantile, sql, numbers)
    if isinstance(node, _OF_ANY_ROW) and isinstance(node.this, (exp.Literal, exp.Boolean)) and not node.expressions:
        # max(1), which is 1 wherever there are rows: some programs ask so whether there are any.
        return f"(CASE WHEN {numbers.count(sql)} > 0 THEN {text(node.this)} END)"
    raise Refused("SDC050", _instead(scope, node))


def _of_rows(scope: Scope, counted: str, rows: str, numbers: Numbers) -> str:
    """A sum of ones, which is NULL of no row where nothing is hidden; elsewhere the count says what there is to say."""
    if not isinstance(scope.method, Threshold) or scope.method.hides_few:
        return counted
    return f"(CASE WHEN {numbers.count(rows)} > 0 THEN {counted} END)"


def distinct_values(scope: Scope, node: exp.Expr, condition: exp.Expr | None) -> str:
    """The number of different values of dimensions among records, where that is a number with noise of its own.

    Raises:
        Refused: it is another aggregate of dimensions, or of another method.
    """
    if not isinstance(scope.method, DifferentialPrivacy) or not isinstance(node, exp.Count):
        raise Refused("SDC081", f"{duckdb_name(node)} of dimensions{_of_groups_instead(scope, node)}")
    [asked] = node.this.expressions
    parts = asked.expressions if isinstance(asked, exp.Tuple) else [asked]
    values = [scope.over_dimensions(part).sql("duckdb") for part in parts]
    value = f"row({', '.join(values)})" if isinstance(asked, exp.Tuple) else values[0]
    return scope.method.values(value, "true" if condition is None else scope.condition_sql(condition))


def _of_groups_instead(scope: Scope, node: exp.Expr) -> str:
    """What to write in place of an aggregate of the values of a dimension, behind its name; empty: it is not known."""
    value = value_of(node)
    if not isinstance(scope.method, DifferentialPrivacy) or not isinstance(value, exp.Column):
        return ""
    name = value.name
    if isinstance(node, (exp.Max, exp.Min)) and scope.of_domain(value) is not None:
        return f"; write quantile_cont({name}, {'0.95' if isinstance(node, exp.Max) else '0.05'})"
    if scope.sources[value.table].label is Label.PUBLIC:
        return f"; write {name} alone, and GROUP BY .., {name}"
    return f"; write SELECT {name}, count(*) .. GROUP BY {name}"


def _instead(scope: Scope, node: exp.Expr) -> str:
    """The name of an aggregate that is not answered, and what to write in its place where it is of a measure."""
    of = node.expressions[0] if isinstance(node, exp.AnonymousAggFunc) and node.expressions else node.this
    name, column = duckdb_name(node), value_of(node) or of
    if isinstance(scope.method, DifferentialPrivacy) and name in _WRITTEN and isinstance(column, exp.Column):
        return f"{name}; write {_WRITTEN[name].format(column.name)}"
    if isinstance(column, exp.Column) and scope.role(column) is Role.DIMENSION and name in _OF_A_DIMENSION:
        return f"{name}; write {_OF_A_DIMENSION[name].format(column.name)}"
    if not isinstance(column, exp.Column) or scope.role(column) is not Role.MEASURE or not scope.method.sums:
        return name
    if isinstance(scope.method, DifferentialPrivacy) and (isinstance(node, exp.Mode) or is_histogram(node)):
        bins = f"floor({column.name} / 1000) * 1000"
        return f"{name}; write SELECT {bins}, count(*) .. GROUP BY {bins}"
    if scope.method.quantiles and isinstance(node, (exp.Max, exp.Min)) and not node.expressions:
        share = "0.95" if isinstance(node, exp.Max) else "0.05"
        return f"{name}; write quantile_cont({column.name}, {share})"
    if scope.method.quantiles and name == "mad":
        return f"{name}; write {_WRITTEN[name].format(column.name)}"
    return f"{name}; write sum({column.name}) or avg({column.name})"


_WRITTEN = {
    "entropy": "SELECT {0}, count(*) .. GROUP BY {0}",
    "first": "mode({0}), or SELECT {0}, count(*) .. GROUP BY {0}",
    "last": "mode({0}), or SELECT {0}, count(*) .. GROUP BY {0}",
    "mad": "quantile_cont({0}, 0.75) - quantile_cont({0}, 0.25)",
    "skewness": "quantile_cont({0}, 0.05), median({0}) and quantile_cont({0}, 0.95)",
    "kurtosis": "quantile_cont({0}, 0.05), median({0}) and quantile_cont({0}, 0.95)",
    "geomean": "exp(avg(ln({0} + 1))) - 1, or without the 1 where the bounds are above 0",
    "geometric_mean": "exp(avg(ln({0} + 1))) - 1, or without the 1 where the bounds are above 0",
}
"""What to write in place of an aggregate of a column that is not answered under differential privacy."""
_OF_A_DIMENSION = {name: _WRITTEN[name] for name in ("first", "last", "mad")} | {"histogram": _WRITTEN["entropy"]}
"""The same of a dimension, under any method."""


def _with_units(scope: Scope, distinct: exp.Distinct, condition: str) -> tuple[str, int]:
    """The condition under which count(DISTINCT unit) counts a row, and which kind of unit this is."""
    column = distinct.expressions[0] if len(distinct.expressions) == 1 else None
    if isinstance(column, (exp.Case, exp.If)):
        chosen, value, otherwise = case(column)
        if chosen is not None and not otherwise:
            condition, column = both(condition, scope.condition_sql(chosen)), value
    if column is None or not (scope.kind_of(column) >= 0 or scope.unit_of(column) is not None):
        raise Refused("SDC051", "count(DISTINCT ..)")
    return _where_unit(scope, column, condition), max(scope.kind_of(column), 0)


def _where_unit(scope: Scope, column: exp.Expr, condition: str) -> str:
    """A condition, and that there is a unit; tables with units of several kinds are behind no LEFT JOIN."""
    if scope.kind_of(column) > 0:
        return condition
    return condition if scope.unit_of(column) is not None else both(condition, f"{text(column)} IS NOT NULL")


def _sum_or_mean(scope: Scope, node: exp.Sum | exp.Avg, condition: str, numbers: Numbers) -> str:
    if isinstance(node.this, exp.Distinct):
        raise Refused("SDC051", "sum or avg of DISTINCT")
    inner, factor = constant_factor(node.this)
    chosen, value, otherwise = case(inner)
    filtered = condition
    if chosen is not None:
        condition = both(condition, scope.condition_sql(chosen))
    value, more = constant_factor(value)
    scale = f"{factor}{more}"
    if isinstance(value, exp.Literal) and not value.is_string:
        counted = f"{numbers.count(condition)} * {value.this}"
        if isinstance(node, exp.Sum):
            return _of_rows(scope, f"{counted}{scale}", filtered if otherwise else condition, numbers)
        base = numbers.count(filtered if otherwise else condition)
        if isinstance(scope.method, DifferentialPrivacy):
            share = Total(counted, ends=(min(0.0, float(value.this)), max(0.0, float(value.this))))
            return f"{share.mean(base, numbers.method.steps)}{scale}"
        return f"{counted}{scale} / nullif({base}, 0)"
    every = condition
    elsewhere, filled = otherwise, False
    if isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0]):
        # A missing value counts as 0: the same sum, over more rows.
        otherwise, filled, value = True, True, value.this
    if scope.counts_rows(value):
        rows = numbers.rows(text(value), condition)
        if isinstance(node, exp.Sum):
            return f"{rows}{scale}"
        known = f"{text(value)} IS NOT NULL"
        if elsewhere and chosen is not None:
            known = f"({scope.condition_sql(chosen)}) IS NOT TRUE OR {known}"
        base = filtered if elsewhere else condition
        counted = numbers.count(base if filled else both(base, f"({known})"))
        if isinstance(scope.method, DifferentialPrivacy):
            within = Total(rows, ends=(0.0, float(scope.policy.privacy.contributions)))
            return f"{within.mean(counted, numbers.method.steps)}{scale}"
        return f"{rows}{scale} / nullif({counted}, 0)"
    if isinstance(scope.method, DifferentialPrivacy) and not isinstance(value, exp.Column) and not otherwise:
        found = number_of_days(scope, value)
        if found is not None:
            total = scope.method.total_between(found.sql, found.ends, condition, found.called)
            mean = total.mean(numbers.known(found.sql, condition), numbers.method.steps)
            return f"{total.sql if isinstance(node, exp.Sum) else mean}{scale}"
    if not isinstance(value, exp.Column) or not scope.is_amount(value):
        rest = _Rest(chosen, condition, filtered, filled=filled, elsewhere=elsewhere)
        return f"{_of_terms(scope, node, value, rest, numbers)}{scale}"
    total, added = total_of(scope, value, condition, numbers)
    there = scope.known_sum(value)
    has_zeros = otherwise or there is not None
    if isinstance(node, exp.Sum):
        if not has_zeros:
            return f"{total.sql}{scale}"
        rows = condition if filled else where_known(scope, value, there, condition)
        if elsewhere and chosen is not None:
            rows = filtered if rows == condition else _unless(scope, chosen, value, there, filtered)
        return f"({numbers.or_zero(total.sql, numbers.some(rows), condition)}){scale}"
    if otherwise and chosen is not None:
        raise Refused("SDC052", "avg of CASE .. ELSE 0 over a measure; use FILTER")
    if not has_zeros:
        return f"{total.mean(numbers.known(added, condition), numbers.method.steps)}{scale}"
    known = numbers.count(every if otherwise or there is None else both(every, there))
    return f"({numbers.or_zero(total.mean(known, numbers.method.steps), known, condition)}){scale}"


@dataclass(frozen=True)
class _Rest:
    """What was written around the terms of a sum.

    Attributes:
        chosen: the condition of a CASE.
        condition: for rows to be added up.
        filtered: what FILTER said of it.
        filled: whether the analyst wrote 0 where there is no value.
        elsewhere: whether the analyst wrote 0 where the condition of the CASE does not hold.
    """

    chosen: exp.Expr | None
    condition: str
    filtered: str
    filled: bool
    elsewhere: bool


def _of_terms(scope: Scope, node: exp.Sum | exp.Avg, value: exp.Expr, rest: _Rest, numbers: Numbers) -> str:
    """The sum or mean of an expression of measures."""
    terms = terms_of(scope, value)
    if terms is None and isinstance(scope.method, DifferentialPrivacy) and isinstance(value, exp.Column):
        raise Refused("SDC081", f"a number of '{value.name}', a dimension without a domain of whole numbers")
    if terms is None and family(value) is None and not scope.has_measure(value):
        raise Refused("SDC052", NO_NUMBER)
    if terms is None:
        parts = _BY_PARTS if isinstance(scope.method, DifferentialPrivacy) and value.find(*_OF_PARTS) else ""
        raise Refused(
            "SDC041", f"sum and avg take measures, also added up, times constants or in functions with bounds{parts}"
        )
    if not isinstance(node, exp.Sum):
        if rest.filled or rest.elsewhere:
            raise Refused("SDC052", "avg of CASE .. ELSE 0, or of coalesce; use FILTER")
        return sum_of_terms(scope, terms, rest.condition, numbers, mean=True)
    total = sum_of_terms(scope, terms, rest.condition, numbers, mean=False)
    if not (rest.filled or rest.elsewhere):
        return total
    rows = rest.condition if rest.filled else known_rows(scope, terms, rest.condition, numbers)
    if rest.elsewhere and rest.chosen is not None:
        known = known_rows(scope, terms, "true", numbers)
        rows = rest.filtered
        if not rest.filled and known != "true":
            rows = both(rows, f"(({scope.condition_sql(rest.chosen)}) IS NOT TRUE OR ({known}))")
    return f"({numbers.or_zero(total, numbers.some(rows), rest.condition)})"


def _unless(scope: Scope, chosen: exp.Expr, measure: exp.Column, there: str | None, filtered: str) -> str:
    """The rows for which CASE WHEN .. THEN measure ELSE 0 END is not NULL."""
    known = where_known(scope, measure, there, "true")
    return both(filtered, f"(({scope.condition_sql(chosen)}) IS NOT TRUE OR {known})")


def quantiles(node: exp.Expr) -> list[exp.Expr]:
    """Each of the quantiles of a list, as quantile_cont(x, [0.25, 0.75]) asks for them; none where it is no list."""
    of_list = isinstance(node, exp.AnonymousAggFunc) and node.name == "approx_quantile" and len(node.expressions) == 2
    if of_list:
        shares, part = node.expressions[1], ""
    elif isinstance(node, (exp.Quantile, exp.PercentileCont, exp.PercentileDisc)):
        part = "quantile" if node.args.get("quantile") is not None else "expression"
        shares = node.args.get(part)
    else:
        return []
    each: list[exp.Expr] = []
    for share in shares.expressions if isinstance(shares, exp.Array) else ():
        one = node.copy()
        if of_list:
            one.set("expressions", [node.expressions[0].copy(), share.copy()])
        else:
            one.set(part, share.copy())
        one.type = exp.DataType.build("DOUBLE")
        each.append(one)
    return each


def _quantile(scope: Scope, node: exp.AggFunc, condition: str, numbers: Numbers) -> str:
    """A median or another quantile of a measure or a numeric dimension."""
    share = share_of(node)
    chosen, value, otherwise = case(node.this)
    if chosen is not None and not otherwise:
        condition = both(condition, scope.condition_sql(chosen))
    if otherwise or not isinstance(share, exp.Literal) or share.is_string:
        raise Refused("SDC052", "a quantile of a share that is not a number, or of CASE .. ELSE 0")
    if isinstance(scope.method, DifferentialPrivacy) and not isinstance(value, exp.Column):
        found = number_of_days(scope, value)
        if found is not None:
            return scope.method.quantile_between(found.sql, found.ends, share.this, condition, found.called)
    if not isinstance(value, exp.Column) or family(value) not in ("whole", "real", "decimal"):
        raise Refused("SDC052", "a quantile of anything but a measure")
    scope.refuse_filled(value)
    if scope.kind_of(value) >= 0 or not 0 < float(share.this) < 1:
        raise Refused("SDC052", "a minimum, a maximum, or a quantile of units")
    if isinstance(scope.method, DifferentialPrivacy) and scope.is_amount(value):
        return scope.method.quantile_of(text(value), scope.called(value), share.this, condition)
    return numbers.quantile(text(value), share.this, condition)


def _spread(scope: Scope, node: exp.AggFunc, condition: str, numbers: Numbers) -> str:
    """A variance or standard deviation, of a sample unless the name says population."""
    chosen, value, otherwise = case(node.this)
    if otherwise:
        raise Refused("SDC052", "a variance of CASE .. ELSE 0; use FILTER")
    if chosen is not None:
        condition = both(condition, scope.condition_sql(chosen))
    value, factor = constant_factor(value)
    if factor or not isinstance(value, exp.Column) or family(value) not in ("whole", "real", "decimal"):
        raise Refused("SDC052", "a variance of anything but a measure")
    if not scope.is_amount(value):
        raise Refused("SDC052", "a variance of anything but a measure")
    scope.refuse_filled(value)
    if scope.method.brings_together and scope.added(value) is not None:
        # Where each unit has two rows it would be a second answer to what the variance of these rows says.
        raise Refused("SDC052", "a variance of sums that units have")
    column = text(value) if scope.policy.privacy.holds else bounded(text(value), _LARGEST_SQUARED)
    variance = numbers.variance(column, condition, scope.called(value))
    if isinstance(node, (exp.VariancePop, exp.StddevPop)):
        known = numbers.known(column, condition)
        if scope.method.shows == "exact":  # of one value alone: none among a sample, 0 among a population
            variance = f"coalesce({variance}, 0)"
        variance = f"({variance} * ({known} - 1) / nullif({known}, 0))"
    return variance if isinstance(node, (exp.Variance, exp.VariancePop)) else f"sqrt({variance})"


def _pair(scope: Scope, method: DifferentialPrivacy, node: exp.Expr, condition: str) -> str:
    """A correlation, covariance or number of a regression line, of two columns that are added up."""
    name, columns = duckdb_name(node), (node.this, node.expression)
    for column in columns:
        if isinstance(column, exp.Distinct):
            raise Refused("SDC051", f"{name} of DISTINCT")
        if not isinstance(column, exp.Column) or family(column) not in ("whole", "real", "decimal"):
            raise Refused("SDC052", f"{name} of anything but two columns; write conditions into FILTER (WHERE ..)")
        if not scope.is_amount(column):
            raise Refused("SDC081", f"{name} of '{column.name}', a dimension without a domain of whole numbers")
        scope.refuse_filled(column)
    y, x = ((text(column), scope.called(column)) for column in columns)
    return method.pair(scope.records_sql, name, y, x, condition)
