"""Variances, shapes, entropies, correlations, regression lines of dimensions, from the counts of their values.

::

    SELECT stddev(age) FROM people

    SELECT sqrt((sum(n * age^2) - sum(n * age)^2 / sum(n)) / (sum(n) - 1))
    FROM (SELECT age, count(*) AS n FROM people GROUP BY age)

So they agree with avg(age) and with the table, and have no noise but that of the counts. Squares are those of the
distance from the middle between the least and the largest value of a group: dates in seconds would keep few digits.
One of two columns may be a measure where no square of it is needed: the slope of income over age is made of sum(income)
and count(income) GROUP BY age. With the noise of a sum of products for itself, one large contribution would show beside
the others.
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from sdcduck.guard.expressions import VALUES, duckdb_name, family, text
from sdcduck.guard.protect.groups import Released
from sdcduck.guard.protect.scope import Scope, refuse_query
from sdcduck.guard.protect.values import from_groups, group_by, same_groups, where_all_are
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Role

_SPREADS = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)
_SHAPES = (exp.Skewness, exp.Kurtosis)
_PAIRS = (
    exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrAvgx, exp.RegrAvgy,
    exp.RegrCount, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
_SQUARED = (exp.Corr, exp.RegrR2, exp.RegrSyy)
"""Those with a square of the first column, which a measure has none of here (`composed`)."""

_NAMED = ("entropy", "geomean", "geometric_mean")

_MOST = "9e14"  # as of sums of them


def is_statistic(node: exp.Expr) -> bool:
    """Whether an aggregate may be a statistic of dimensions."""
    return isinstance(node, (*_SPREADS, *_SHAPES, *_PAIRS)) or _is_named(node)


def _is_named(node: exp.Expr) -> bool:
    return isinstance(node, exp.AnonymousAggFunc) and node.name in _NAMED and len(node.expressions) == 1


def statistic(scope: Scope, node: exp.Expr, condition: exp.Expr | None, released: Released) -> exp.Select | None:
    """A statistic of dimensions, made of what is published for each of their values; None: it is something else."""
    if not is_statistic(node):
        return None
    columns = node.expressions or [node.this]
    if isinstance(node, _PAIRS):
        columns = [node.this, node.expression]
    spread_of_values = isinstance(node, _SPREADS) and isinstance(node.this, exp.Distinct)
    if spread_of_values or (not isinstance(node, (*_PAIRS, *_SHAPES)) and scope.has_measure(columns[0])):
        return None
    if any(isinstance(column, exp.Distinct) for column in columns):
        raise Refused("SDC051", f"{duckdb_name(node)} of DISTINCT")
    refuse_query(*columns, condition)
    if not scope.method.weighted:
        raise Refused("SDC052", f"{duckdb_name(node)} of dimensions: count(*) GROUP BY them")
    measure = _measure(scope, node, columns)
    wanted = None if condition is None else condition.copy()
    groups = same_groups(scope, released.keys, wanted, duckdb_name(node))
    figures: dict[str, exp.Expr] = {}
    for place, column in enumerate(columns):
        if column is measure:
            continue
        scope.check(column)
        if _is_named(node) and node.name == "entropy":
            figures[f"_v{place}"] = column.copy()
            continue
        if family(column) not in ("whole", "real", "decimal"):
            raise Refused("SDC052", f"{duckdb_name(node)} of what is no number")
        number = f"CAST({text(column)} AS DOUBLE)"
        figures[f"_v{place}"] = parse_one(f"CASE WHEN abs({number}) <= {_MOST} THEN {number} END", read="duckdb")
    known = " AND ".join(f"{VALUES}.{name} IS NOT NULL" for name in figures)
    rows = "count(*)" if measure is None else f"count({text(measure)})"
    groups.append("expressions", parse_one(f"{rows} AS _n", read="duckdb"))
    if measure is not None:
        groups.append("expressions", parse_one(f"sum({text(measure)}) AS _m", read="duckdb"))
    group_by(scope, groups, released.keys, figures)

    def added(product: str) -> str:
        return f"fsum(CASE WHEN {known} THEN {product} END)"

    n, x = f"{VALUES}._n", f"{VALUES}._v{len(columns) - 1}"
    number = added(n)
    centers = {} if _is_named(node) else {f"_c{name[2:]}": _middle(known, f"{VALUES}.{name}") for name in figures}
    near_x = f"({x} - {VALUES}._c{len(columns) - 1})"
    sum_near = added(f"{n} * {near_x}")
    sxx = f"greatest({added(f'{n} * {near_x} * {near_x}')} - {sum_near} * {sum_near} / nullif({number}, 0), 0)"
    if _is_named(node) and node.name == "entropy":
        shown = _of_shares(number, added(f"{n} * log2(greatest({n}, 1))"))
    elif _is_named(node):
        zeros, logarithms = added(f"CASE WHEN {x} = 0 THEN {n} ELSE 0 END"), added(f"{n} * {_LOGARITHM.format(x)}")
        below = added(f"CASE WHEN {x} < 0 THEN {n} ELSE 0 END")
        shown = f"CASE WHEN {zeros} > 0 AND NOT {below} > 0 THEN 0 ELSE exp({logarithms} / nullif({number}, 0)) END"
    elif isinstance(node, _SHAPES):
        shown = _shape(node, number, *(added(f"{n}{f' * {near_x}' * power}") for power in (1, 2, 3, 4)))
    elif isinstance(node, _SPREADS):
        shown = _spread(node, number, sxx)
    else:
        y, near_y = f"{VALUES}._v0", f"({VALUES}._v0 - {VALUES}._c0)"
        sum_x, sum_y = added(f"{n} * {x}"), added(f"{n} * {y}" if measure is None else f"{VALUES}._m")
        sum_near_y = added(f"{n} * {near_y}") if measure is None else sum_y
        sum_xy = added(f"{n} * {near_x} * {near_y}" if measure is None else f"{near_x} * {VALUES}._m")
        syy = f"greatest({added(f'{n} * {near_y} * {near_y}')} - {sum_near_y} * {sum_near_y} / nullif({number}, 0), 0)"
        sxy = f"({sum_xy} - {sum_near} * {sum_near_y} / nullif({number}, 0))"
        shown = _of_pairs(node, number, sum_x, sum_y, sxx, syy, sxy)
    shown = where_all_are(scope, groups, shown, released, wanted)
    return from_groups(scope, groups, parse_one(shown, read="duckdb"), released, centers)


def _middle(known: str, value: str) -> str:
    """What lies between the least and the largest value of a group, for a window over it."""
    value = f"CASE WHEN {known} THEN {value} END"
    return f"(min({value}) OVER ({{0}}) + max({value}) OVER ({{0}})) / 2"


def _measure(scope: Scope, node: exp.Expr, columns: list[exp.Expr]) -> exp.Expr | None:
    """The first of two columns, if that is a measure; it has to be alone, and nothing may need its square."""
    if not any(map(scope.has_measure, columns)):
        return None
    alone = isinstance(columns[0], exp.Column) and scope.role(columns[0]) is Role.MEASURE
    if not alone or scope.has_measure(columns[-1]) or isinstance(node, _SQUARED):
        if isinstance(node, _SHAPES):
            raise Refused("SDC052", f"{duckdb_name(node)} of a measure: its variance and quantiles are answered")
        slope = "one of two columns may be a measure by itself, the first of regr_slope, regr_intercept and covariances"
        raise Refused("SDC052", f"{duckdb_name(node)} of a measure: {slope}")
    if family(columns[0]) not in ("whole", "real", "decimal"):
        raise Refused("SDC052", f"{duckdb_name(node)} of what is no number")
    scope.refuse_filled(columns[0])
    return columns[0]


_LOGARITHM = "CASE WHEN {0} > 0 THEN ln({0}) ELSE 'nan'::DOUBLE END"


def _of_shares(number: str, of_logarithms: str) -> str:
    """Shannon's entropy in bits, of what is published of each value."""
    return f"coalesce(greatest(log2(nullif(greatest({number}, 0), 0)) - {of_logarithms} / {number}, 0), 0)"


def _spread(node: exp.Expr, number: str, squares: str) -> str:
    if isinstance(node, (exp.VariancePop, exp.StddevPop)):
        variance = f"{squares} / nullif({number}, 0)"
    else:
        variance = f"CASE WHEN {number} > 1 THEN {squares} / ({number} - 1) END"
    return variance if isinstance(node, (exp.Variance, exp.VariancePop)) else f"sqrt({variance})"


def _shape(node: exp.Expr, number: str, one: str, two: str, three: str, four: str) -> str:
    """Skewness and excess kurtosis of a sample, as DuckDB has them, from the sums of powers of a value."""
    mean = f"({one} / nullif({number}, 0))"
    second = f"greatest({two} / nullif({number}, 0) - {mean}**2, 0)"
    if isinstance(node, exp.Skewness):
        third = f"({three} / {number} - 3 * {two} / {number} * {mean} + 2 * {mean}**3)"
        found = f"sqrt({number} * ({number} - 1)) / ({number} - 2) * {third} / nullif({second}, 0)**1.5"
        return f"CASE WHEN {number} > 2 THEN {found} END"
    fourth = f"({four} / {number} - 4 * {three} / {number} * {mean} + 6 * {two} / {number} * {mean}**2 - 3 * {mean}**4)"
    found = f"(({number} + 1) * {fourth} / nullif({second}, 0)**2 - 3 * ({number} - 1))"
    return f"CASE WHEN {number} > 3 THEN ({number} - 1) * {found} / (({number} - 2) * ({number} - 3)) END"


def _of_pairs(node: exp.Expr, number: str, sum_x: str, sum_y: str, sxx: str, syy: str, sxy: str) -> str:
    slope = f"{sxy} / nullif({sxx}, 0)"
    alike = f"{sxy} / (sqrt({sxx}) * sqrt({syy}))"
    made: dict[type[exp.Expr], str] = {
        exp.CovarPop: f"{sxy} / nullif({number}, 0)",
        exp.CovarSamp: f"CASE WHEN {number} > 1 THEN {sxy} / ({number} - 1) END",
        # Without values there is none, where least and greatest would leave a NULL out.
        exp.Corr: f"CASE WHEN {sxx} > 0 AND {syy} > 0 THEN greatest(least({alike}, 1), -1) END",
        exp.RegrSlope: slope,
        exp.RegrIntercept: f"({sum_y} - {slope} * {sum_x}) / nullif({number}, 0)",
        exp.RegrAvgx: f"{sum_x} / nullif({number}, 0)",
        exp.RegrAvgy: f"{sum_y} / nullif({number}, 0)",
        exp.RegrCount: f"CAST(coalesce({number}, 0) AS BIGINT)",
        exp.RegrSxx: f"CASE WHEN {number} > 0 THEN {sxx} END",
        exp.RegrSxy: f"CASE WHEN {number} > 0 THEN {sxy} END",
        exp.RegrSyy: f"CASE WHEN {number} > 0 THEN {syy} END",
        exp.RegrR2: f"CASE WHEN {sxx} > 0 THEN coalesce(least({sxy} * {sxy} / nullif({sxx} * {syy}, 0), 1), 1) END",
    }
    return made[type(node)]
