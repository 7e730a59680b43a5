"""Statistics that are written in numbers which are answered: whoever asks for these knows the statistic, too.

::

    covar_pop(income, tax)   avg(income * tax) - avg(income) * avg(tax), of rows that have both
    corr(income, tax)        covar_pop(income, tax) / sqrt(var_pop(income) * var_pop(tax)), cut at 1
    corr(income, age)        sqrt(regr_slope(income, age) * covar_pop(income, age) / var_pop(income)), cut at 1
    sem(income)              stddev_pop(income) / sqrt(count(income))
    geomean(income)          exp(avg(ln(income)))
    weighted_avg(age, income)  sum(age * income) / sum(income), of rows that have both
    sum(income + age)        sum(income) + sum(age), of rows that have both
    avg(left_at - came_at)   avg(epoch(left_at) - epoch(came_at)), as an INTERVAL; avg(born) as a TIMESTAMP

The product of two measures has noise of its own, not less than what the bounds allow (`terms`), and so needs these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp, parse_one

from sdcduck.guard.expressions import Typed, case, duckdb_name, family, text, typed
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Role

_PAIRED = (
    exp.Corr, exp.RegrR2, exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept, exp.RegrAvgx, exp.RegrAvgy,
    exp.RegrCount, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
_OF_SQUARES = (exp.Corr, exp.RegrR2, exp.RegrSyy)
"""Those of a measure and a dimension that are not worked out for each value of the dimension."""

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Corr: exp.Corr, exp.CovarPop: exp.CovarPop, exp.CovarSamp: exp.CovarSamp, exp.RegrR2: exp.RegrR2,
    exp.RegrCount: exp.RegrCount, exp.RegrSxy: exp.RegrSxy, exp.RegrAvgx: exp.RegrAvgy, exp.RegrAvgy: exp.RegrAvgx,
    exp.RegrSxx: exp.RegrSyy, exp.RegrSyy: exp.RegrSxx,
}  # fmt: skip
"""What each is of the same two columns the other way round."""

_SLOPE = "_covariance / nullif(greatest(_x_variance, 0), 0)"
_PAIRS: dict[type[exp.Expr], str] = {
    exp.CovarPop: "_covariance",
    exp.CovarSamp: "CASE WHEN _rows > 1 THEN _covariance * _rows / (_rows - 1) END",
    exp.Corr: "CASE WHEN _x_variance > 0 AND _y_variance > 0 "
    "THEN greatest(least(_covariance / (sqrt(_x_variance) * sqrt(_y_variance)), 1), -1) END",
    exp.RegrR2: "CASE WHEN _x_variance > 0 THEN CASE WHEN _y_variance > 0 "
    "THEN least(_covariance * _covariance / (_x_variance * _y_variance), 1) ELSE 1 END END",
    exp.RegrSlope: _SLOPE,
    exp.RegrIntercept: f"_y_mean - {_SLOPE} * _x_mean",
    exp.RegrAvgx: "_x_mean",
    exp.RegrAvgy: "_y_mean",
    exp.RegrCount: "_rows",
    exp.RegrSxx: "_rows * _x_variance",
    exp.RegrSyy: "_rows * _y_variance",
    exp.RegrSxy: "_rows * _covariance",
}
_CUT = "CASE WHEN _y_variance > 0 THEN least(greatest(_slope * _covariance / _y_variance, 0), 1) END"
_OF_A_DIMENSION: dict[type[exp.Expr], str] = {
    exp.Corr: f"sign(_slope) * sqrt({_CUT})",
    exp.RegrR2: _CUT,
    exp.RegrSyy: "_rows * _y_variance",
}
"""Of a measure y and a dimension x."""

_NAMED = {
    "sem": "_spread / sqrt(nullif(_rows, 0))",
    "geomean": "exp(_of_logarithms)",
    "geometric_mean": "exp(_of_logarithms)",
    "weighted_avg": "_weighted / nullif(_weights, 0)",
    "wavg": "_weighted / nullif(_weights, 0)",
}
_OF_LOGARITHMS = ("geomean", "geometric_mean")
_COLUMNS = {"weighted_avg": 2, "wavg": 2}


_Part = Callable[[], tuple[exp.Expr, exp.Expr | None]]
"""A number of a formula, and the condition under which rows are in it."""


def is_composed(node: exp.Expr) -> bool:
    """Whether an aggregate may be written in others."""
    return isinstance(node, _PAIRED) or (isinstance(node, exp.AnonymousAggFunc) and node.name in _NAMED)


def of_other_numbers(scope: Scope, node: exp.Expr, condition: exp.Expr | None) -> exp.Expr | None:
    """A statistic in numbers that are answered; None: it is something else."""
    if not scope.method.groups_tell:
        return None
    if isinstance(node, exp.Avg) and (found := _of_times(node, condition)) is not None:
        return found
    if isinstance(node, (exp.Sum, exp.Avg)):
        return _of_addends(scope, node, condition)
    if not is_composed(node):
        return None
    columns = node.expressions or [node.this, node.expression]
    if any(isinstance(column, exp.Distinct) for column in columns):
        raise Refused("SDC051", f"{duckdb_name(node)} of DISTINCT")
    if isinstance(node, exp.AnonymousAggFunc):
        return _of_named(scope, node, condition)
    y, x = columns
    kind = type(node)
    if scope.has_measure(x) and not scope.has_measure(y):
        if kind in _TURNED:
            kind, y, x = _TURNED[kind], x, y
            if kind not in _OF_SQUARES:
                return _among(typed(kind(this=y.copy(), expression=x.copy()), node), condition)
        return _of_pair(_OF_A_DIMENSION.get(kind) or _PAIRS[kind], node, y, x, condition)
    if scope.has_measure(x):
        shown = _PAIRS[kind].replace("_covariance", "(_product - _y_mean * _x_mean)")
        return _of_pair(shown, node, y, x, condition)
    if scope.has_measure(y) and kind in _OF_SQUARES:
        return _of_pair(_OF_A_DIMENSION[kind], node, y, x, condition)
    return None


def _of_pair(shown: str, node: exp.Expr, y: exp.Expr, x: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    with_y, with_x, both = _known(condition, y), _known(condition, x), _known(_known(condition, y), x)
    return _written(
        shown,
        node,
        {
            "_rows": lambda: (exp.Count(this=exp.Star()), both),
            "_x_mean": lambda: (exp.Avg(this=x.copy()), with_y),
            "_y_mean": lambda: (exp.Avg(this=y.copy()), with_x),
            "_x_variance": lambda: (exp.VariancePop(this=x.copy()), with_y),
            "_y_variance": lambda: (exp.VariancePop(this=y.copy()), with_x),
            "_slope": lambda: (exp.RegrSlope(this=y.copy(), expression=x.copy()), condition),
            "_covariance": lambda: (exp.CovarPop(this=y.copy(), expression=x.copy()), condition),
            "_product": lambda: (exp.Avg(this=exp.Mul(this=_part(y), expression=_part(x))), condition),
        },
    )


def _of_named(scope: Scope, node: exp.AnonymousAggFunc, condition: exp.Expr | None) -> exp.Expr | None:
    name, columns = node.name, node.expressions
    of_dimensions = name in _OF_LOGARITHMS and not scope.has_measure(columns[0])
    if len(columns) != _COLUMNS.get(name, 1) or of_dimensions:
        return None
    one, other = columns[0], columns[-1]
    return _written(
        _NAMED[name],
        node,
        {
            "_rows": lambda: (exp.Count(this=one.copy()), condition),
            "_spread": lambda: (exp.StddevPop(this=one.copy()), condition),
            "_of_logarithms": lambda: (exp.Avg(this=exp.Ln(this=one.copy())), condition),
            "_weighted": lambda: (exp.Sum(this=exp.Mul(this=_part(one), expression=_part(other))), condition),
            "_weights": lambda: (exp.Sum(this=other.copy()), _known(condition, one)),
        },
    )


def _of_times(node: exp.Avg, condition: exp.Expr | None) -> exp.Expr | None:
    """The mean of dates, of timestamps, or of the time between two, from that of their seconds."""
    asked, value, otherwise = case(node.this)
    if asked is not None:
        condition = asked if condition is None else exp.and_(condition.copy(), asked.copy(), copy=False)
    value = value.unnest()
    kinds = [family(side) for side in (value.this, value.expression)] if isinstance(value, exp.Sub) else []
    is_between = "timestamp" in kinds and set(kinds) <= {"timestamp", "date"}
    if otherwise or isinstance(value, exp.Distinct) or (not is_between and family(value) not in ("timestamp", "date")):
        return None
    shown = "make_timestamp(CAST(round(_mean * 1e6) AS BIGINT))"
    seconds = _seconds(value.this) if is_between else _seconds(value)
    if is_between:
        shown = f"{shown} - make_timestamp(0)"
        seconds = _as_double(exp.Sub(this=seconds, expression=_seconds(value.expression)))

    def mean() -> tuple[exp.Expr, exp.Expr | None]:
        return _as_double(exp.Avg(this=seconds)), condition

    return _written(shown, node, {"_mean": mean})


def _seconds(moment: exp.Expr) -> exp.Expr:
    made = parse_one("epoch(_moment)", read="duckdb")
    column = made.find(exp.Column)
    assert column is not None
    column.replace(moment.copy())
    return _as_double(made)


def _as_double(node: Typed) -> Typed:
    node.type = exp.DataType.build("DOUBLE")
    return node


def _of_addends(scope: Scope, node: exp.Sum | exp.Avg, condition: exp.Expr | None) -> exp.Expr | None:
    """What is added up of measures and of figures of dimensions, each by itself.

    By the values of all figures together groups would be so small that most of them are not published.
    """
    if not isinstance(node.this, (exp.Add, exp.Sub, exp.Paren)) or not scope.has_measure(node.this):
        return None
    addends = _addends(node.this)
    groups: dict[tuple[frozenset[str], bool], list[tuple[bool, exp.Expr]]] = {}
    for minus, addend in addends:
        columns_of = addend.find_all(exp.Column)
        figures = frozenset(text(column) for column in columns_of if scope.role(column) is not Role.MEASURE)
        groups.setdefault((figures, not figures or scope.has_measure(addend)), []).append((minus, addend))
    alone = any(not measured for _, measured in groups)
    of_figures = {figures for figures, _ in groups if figures}
    if len(groups) < 2 or not (alone or len(of_figures) > 1):
        return None
    if not all(isinstance(one, _PLAIN) for one in node.this.walk()):
        return None
    columns = {text(column): column for column in node.this.find_all(exp.Column)}
    made: exp.Expr | None = None
    for parts in groups.values():
        added: exp.Expr | None = None
        for minus, addend in parts:
            added = _with(added, minus, typed(addend.copy(), addend), node.this)
        assert added is not None
        own = {text(column) for column in added.find_all(exp.Column)}
        among = condition
        for name, column in columns.items():
            if name not in own:
                among = _known(among, column)
        number = _among(typed(type(node)(this=added), node), among)
        made = number if made is None else typed(exp.Add(this=made, expression=number), node)
    return None if made is None else typed(exp.Paren(this=made), node)


_PLAIN = (exp.Column, exp.Identifier, exp.Literal, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren)
"""Of these an expression is NULL where a column in it is, and nowhere else."""


def _addends(node: exp.Expr, *, minus: bool = False) -> list[tuple[bool, exp.Expr]]:
    """What is added up, and of what the sign is turned."""
    if isinstance(node, exp.Paren):
        return _addends(node.this, minus=minus)
    if isinstance(node, (exp.Add, exp.Sub)):
        turned = minus != isinstance(node, exp.Sub)
        return _addends(node.this, minus=minus) + _addends(node.expression, minus=turned)
    return [(minus, node)]


def _with(added: exp.Expr | None, minus: bool, addend: exp.Expr, like: exp.Expr) -> exp.Expr:
    if added is None:
        return typed(exp.Neg(this=_part(addend)), like) if minus else addend
    kind = exp.Sub if minus else exp.Add
    return typed(kind(this=added, expression=addend), like)


def _written(
    shown: str, node: exp.Expr, parts: Mapping[str, Callable[[], tuple[exp.Expr, exp.Expr | None]]]
) -> exp.Expr:
    """A formula with each part that is named in it put in."""

    def put(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        number, among = parts[part.name]()
        return _among(typed(number, node), among)

    made: exp.Expr = parse_one(f"({shown})", read="duckdb").transform(put)
    return made


def _among(number: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    if condition is None:
        return number
    return exp.Filter(this=number, expression=exp.Where(this=condition.copy()))


def _part(factor: exp.Expr) -> exp.Expr:
    return factor.copy() if isinstance(factor, exp.Column) else typed(exp.Paren(this=factor.copy()), factor)


def _known(condition: exp.Expr | None, column: exp.Expr) -> exp.Expr:
    known: exp.Expr = exp.Not(this=exp.Is(this=_part(column), expression=exp.Null()))
    return known if condition is None else exp.and_(condition.copy(), known, copy=False)
