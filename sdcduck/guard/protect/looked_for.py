"""A row that is looked for, and is known but for whether there is one: asked as a group.

BI tools look in this way for missing values, and programs for whether there is something at all::

    SELECT region FROM people WHERE region IS NULL LIMIT 1
    SELECT DISTINCT region FROM people WHERE region IS NULL LIMIT 1
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, conjuncts, whole_number
from sdcduck.guard.protect.semijoins import rows_of

_CLAUSES = frozenset(["expressions", "from_", "joins", "where", "limit", "offset", "with_"])

_CONSTANTS = (exp.Literal, exp.Null, exp.Parameter, exp.Placeholder)


def as_group(select: exp.Select) -> None:
    """Write the row that a SELECT of records with LIMIT 1 looks for as a group, in place."""
    limit, offset = select.args.get("limit"), select.args.get("offset")
    if not isinstance(limit, exp.Limit) or rows_of(limit) != 1:
        return
    if offset is not None and whole_number(offset.expression) != 0:
        return
    if any(value and part not in _CLAUSES for part, value in select.args.items()):
        return
    where = select.args.get("where")
    known = [column for one in (conjuncts(where.this) if where is not None else []) if (column := _known(one))]
    for item in select.expressions:
        if item.find(exp.Query, exp.Window, exp.Star) is not None or aggregates(item):
            return
        if any(column not in known for column in item.find_all(exp.Column)):
            return
    select.set("distinct", exp.Distinct())


def _known(condition: exp.Expr) -> exp.Column | None:
    """The column of which a condition says the value."""
    node = condition.unnest()
    if not isinstance(node, (exp.EQ, exp.Is)):
        return None
    sides = [side for side in (node.this, node.expression) if isinstance(side, exp.Column)]
    return sides[0] if len(sides) == 1 and isinstance(node.expression, _CONSTANTS) else None
