"""Aggregates of records in the one form that others know: other words for the same number have the same noise.

::

    count(x ORDER BY y)                             count(x)
    approx_count_distinct(x)                        count(DISTINCT x)
    mode() WITHIN GROUP (ORDER BY x)                mode(x)
    avg(CASE WHEN c THEN 1 WHEN NOT c THEN 0 END)   avg(CASE WHEN c THEN 1 ELSE 0 END) FILTER (WHERE c IS NOT NULL)

The last is what dbplyr makes of ifelse(c, 1, 0).
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import is_aggregate, is_zero, text, typed

_WITHOUT_ORDER = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Variance, exp.VariancePop, exp.Stddev,
    exp.StddevPop, exp.StddevSamp,
)  # fmt: skip
_TWO_SIDED = (exp.Sum, exp.Avg)


def settle_aggregates(select: exp.Select) -> None:
    """Write the aggregates of a SELECT over records so, in place.

    >>> tree = exp.maybe_parse(
    ...     "SELECT count(DISTINCT x ORDER BY x), sum(CASE WHEN a > 1 THEN b WHEN NOT (a > 1) THEN 0 END) FROM t",
    ...     dialect="duckdb",
    ... )
    >>> settle_aggregates(tree)
    >>> print(tree.sql("duckdb"))
    SELECT COUNT(DISTINCT x), SUM(CASE WHEN a > 1 THEN b ELSE 0 END) FILTER(WHERE NOT (a > 1) IS NULL) FROM t
    """
    for aggregate in [found for found in select.find_all(exp.AggFunc) if found.parent_select is select]:
        order = aggregate.this
        if isinstance(aggregate, _WITHOUT_ORDER) and isinstance(order, exp.Order) and not aggregate.expressions:
            aggregate.set("this", order.this)
        around = aggregate.parent
        if isinstance(aggregate, exp.Mode) and isinstance(around, exp.WithinGroup) and not aggregate.this:
            _settle_mode(aggregate, around)
        if isinstance(aggregate, exp.ApproxDistinct) and is_aggregate(aggregate):
            different = exp.Distinct(expressions=[aggregate.this])
            aggregate.replace(typed(exp.Count(this=different, big_int=True), aggregate))
        if isinstance(aggregate, _TWO_SIDED) and is_aggregate(aggregate):
            _settle_two_sides(aggregate)


def _settle_mode(mode: exp.Mode, within: exp.WithinGroup) -> None:
    """The first of equally frequent values is that which the order says: the other way round it would be the last."""
    order = within.expression
    if isinstance(order, exp.Order) and len(order.expressions) == 1 and not order.expressions[0].args.get("desc"):
        mode.set("this", order.expressions[0].this)
        within.replace(mode)


def _settle_two_sides(aggregate: exp.Expr) -> None:
    condition = _of_two_sides(aggregate.this)
    if condition is None:
        return
    one = aggregate.this.unnest()
    one.set("default", one.args["ifs"].pop().args["true"])
    known = exp.Not(this=exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.Null()))
    around = aggregate.parent
    if isinstance(around, exp.Filter):
        where = around.expression
        where.set("this", exp.and_(where.this, known, copy=False))
        return
    filtered = typed(exp.Filter(expression=exp.Where(this=known)), aggregate)
    aggregate.replace(filtered)
    filtered.set("this", aggregate)


def _of_two_sides(node: exp.Expr | None) -> exp.Expr | None:
    """The condition of ``CASE WHEN c THEN v WHEN NOT c THEN 0 END``; None: it is something else."""
    node = None if node is None else node.unnest()
    if (
        not isinstance(node, exp.Case)
        or node.this is not None
        or len(node.args["ifs"]) != 2
        or node.args.get("default")
    ):
        return None
    first, second = node.args["ifs"]
    condition, otherwise = first.this.unnest(), second.this.unnest()
    if not isinstance(otherwise, exp.Not) or not is_zero(second.args["true"]) or condition.find(exp.Query):
        return None
    return condition if text(condition) == text(otherwise.this.unnest()) else None
