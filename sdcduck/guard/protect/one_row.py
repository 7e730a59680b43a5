"""GROUP BY the unit where each unit has one row, and its cells are all that is read: the rows as they are.

::

    FROM (SELECT person_id, min(region) AS region, count(*) AS n FROM people GROUP BY person_id HAVING max(age) > 60)

    FROM (SELECT person_id, region, CASE WHEN true THEN 1 ELSE 0 END AS n FROM people WHERE age > 60)

Inner cells of a publication have no units, so that nothing could be brought together; here nothing has to be.
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import case, duckdb_name, is_aggregate, is_query, text, typed, without_nulls
from sdcduck.guard.protect.figures import refuse_clauses
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Role

_TAKEN = frozenset(["with_", "expressions", "from_", "joins", "where", "group", "having", "distinct"])
_ITSELF = (exp.Min, exp.Max, exp.AnyValue, exp.LogicalOr, exp.LogicalAnd, exp.Mode)


def without_groups(scope: Scope, keys: list[exp.Expr]) -> exp.Expr | None:
    """Write a block that groups by the unit as one of its rows, in place; the condition of its HAVING.

    Args:
        keys: the grouping expressions, of which one is the unit.

    Raises:
        Refused: a clause or an aggregate that would make something else of it.
    """
    select = scope.select
    refuse_clauses(select, _TAKEN, "beside GROUP BY the unit")
    every = {text(key) for key in keys}
    items = [
        exp.alias_(_of_one_row(scope, item.unalias(), every), item.alias_or_name, quoted=True)
        for item in select.expressions
    ]
    having = select.args.get("having")
    kept = None if having is None else _of_one_row(scope, having.this, every)
    for clause in ("group", "having", "distinct"):
        select.set(clause, None)
    select.set("expressions", [typed(item, item.unalias()) for item in items])
    return kept


def _of_one_row(scope: Scope, node: exp.Expr, keys: set[str]) -> exp.Expr:
    def of_row(part: exp.Expr) -> exp.Expr:
        if text(part) in keys or scope.unit_of(part) is not None:
            return part.copy()
        if is_query(part) or isinstance(part, (exp.Window, exp.Grouping)):
            raise Refused("SDC045", "a window, GROUPING or a subquery beside GROUP BY the unit")
        inner, condition = without_nulls(part), None
        if isinstance(part, exp.Filter):
            inner, condition = without_nulls(part.this), part.expression.this
        if isinstance(part, exp.Column):
            raise Refused("SDC042", part.name)
        return _value(scope, inner, condition) if is_aggregate(inner) else part

    return node.copy().transform(of_row)


def _value(scope: Scope, node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """What an aggregate of one row is."""
    if isinstance(node, (exp.Count, exp.CountIf)):
        conditions = [part for part in (condition, _counted(node)) if part is not None]
        asked = exp.and_(*(part.copy() for part in conditions), copy=False) if conditions else exp.true()
        one, zero = exp.Literal.number(1), exp.Literal.number(0)
        return typed(exp.Case(ifs=[exp.If(this=asked, true=one)], default=zero), node)
    measure = isinstance(node.this, exp.Column) and scope.role(node.this) is Role.MEASURE
    if isinstance(node, exp.Sum) and condition is None and measure:
        column: exp.Expr = node.this
        return column
    if scope.has_measure(node):
        raise Refused("SDC041", f"{duckdb_name(node)} of a measure for each unit")
    others = any(value for part, value in node.args.items() if part != "this")
    if not isinstance(node, _ITSELF) or others or isinstance(node.this, (exp.Order, exp.Distinct)):
        raise Refused("SDC052", f"{duckdb_name(node)} for each unit: a publication has cells, and no units")
    if condition is None:
        return exp.Paren(this=node.this) if not isinstance(node.this, exp.Column) else node.this
    return typed(exp.Case(ifs=[exp.If(this=condition.copy(), true=node.this)]), node)


def _counted(node: exp.Expr) -> exp.Expr | None:
    """The condition under which a row counts; None: it does."""
    if isinstance(node, exp.CountIf):
        condition: exp.Expr = node.this
        return condition
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if node.expressions or (isinstance(node.this, exp.Distinct) and len(node.this.expressions) != 1):
        raise Refused("SDC051", "count of several columns")
    if value is None or isinstance(value, (exp.Star, exp.Literal)):
        return None
    asked, shown, otherwise = case(value)
    if asked is not None and not otherwise and isinstance(shown, exp.Literal):
        return asked
    return exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
