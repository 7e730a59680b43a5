"""What belongs to one unit is joined and grouped with that unit: an order of one customer, a stay of one patient.

The custodian says of which columns that holds, and it was looked at in all tables of the population (`sdc_protect`). So
the equality of units says nothing more of the rows, and if it did, rows of two units would not meet all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, is_aggregate, is_query, tables_of, text
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.owned_columns import OwnedColumns
from sdcduck.quoting import folded

_OF_RECORDS = frozenset(["expressions", "from_", "joins", "where", "with_"])
_OF_GROUPS = _OF_RECORDS | {"group", "distinct", "having"}
_ONE_OF_THEM = (exp.Min, exp.Max, exp.AnyValue, exp.ArgMin, exp.ArgMax)


def join_on_units(draft: Draft) -> None:
    """Equalities of what belongs to one unit say that the units are equal, too; groups of it are groups of its units.

    ::

        FROM orders o JOIN lines l ON l.order_id = o.order_id
        FROM orders o JOIN lines l ON l.order_id = o.order_id AND l.customer_id = o.customer_id

        WHERE o.order_id IN (SELECT r.order_id FROM returned r)
        WHERE (o.order_id, o.customer_id) IN (SELECT r.order_id, r.customer_id FROM returned r)

        SELECT avg(b.n) FROM (SELECT count(*) AS n FROM lines l GROUP BY l.order_id) b
        SELECT avg(b.n) FROM (SELECT count(*) AS n FROM lines l GROUP BY l.order_id, l.customer_id) b

    >>> after(join_on_units, "SELECT count(*) AS n FROM regions")
    SELECT COUNT(*) AS "n" FROM "regions" AS "regions"
    """
    columns = OwnedColumns.of(draft.tree, draft.named, draft.types)
    if columns is None:
        return
    selects = list(draft.tree.find_all(exp.Select))
    for select in selects:
        _group_by_units(columns, select)
    for select in selects:
        held = [*(select.args.get("joins") or []), *filter(None, [select.args.get("where")])]
        for clause in held:
            condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause.this
            if condition is not None:
                known = {text(part) for part in conjuncts(condition)}
                for equality in list(_equalities(condition)):
                    _tie(columns, equality, known)
                for looked_for, is_known in list(_looked_for(condition)):
                    _look_for_units(columns, looked_for, is_known=is_known)


def _equalities(node: exp.Expr) -> Iterator[exp.EQ]:
    """Equalities of two columns that stand under AND and OR alone: where they are NULL or false is one there."""
    if isinstance(node, (exp.And, exp.Or)):
        yield from _equalities(node.this)
        yield from _equalities(node.expression)
    elif isinstance(node, exp.Paren):
        yield from _equalities(node.this)
    elif isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
        yield node


def _looked_for(node: exp.Expr, *, is_known: bool = False) -> Iterator[tuple[exp.In, bool]]:
    """Where something is looked for among others, and whether it makes a difference there that it is NULL."""
    if isinstance(node, (exp.And, exp.Or)):
        yield from _looked_for(node.this, is_known=is_known)
        yield from _looked_for(node.expression, is_known=is_known)
    elif isinstance(node, (exp.Paren, exp.Not)):
        yield from _looked_for(node.this, is_known=is_known or isinstance(node, exp.Not))
    elif isinstance(node, exp.In):
        yield node, is_known


def _tie(columns: OwnedColumns, equality: exp.EQ, known: set[str]) -> None:
    one, other = columns.owned(equality.this), columns.owned(equality.expression)
    if one is None or other is None or one.of == other.of or one.kind != other.kind:
        return
    units = columns.unit(one), columns.unit(other)
    if units[0] is None or units[1] is None:
        return
    said = [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in (units, reversed(units)) if a and b]
    if not known.intersection(map(text, said)):
        equality.replace(exp.Paren(this=exp.And(this=equality.copy(), expression=said[0])))


def _look_for_units(columns: OwnedColumns, node: exp.In, *, is_known: bool) -> None:
    """``order_id IN (SELECT order_id ..)``, which holds or does not, and is not asked what it is where it is NULL.

    Args:
        is_known: whether it is asked so, as behind NOT: then none of both may be missing.
    """
    query = _query_of(node)
    if query is None or len(query.selects) != 1 or _is_distinct_on(query):
        return
    item = query.selects[0].unalias()
    one, other = columns.owned(node.this), columns.owned(item)
    if one is None or other is None or one.kind != other.kind or other.of[0] != id(query):
        return
    if is_known and not (one.never_missing and other.never_missing):
        return
    unit = columns.unit(one)
    query.set("distinct", None)  # which says nothing of what is among the values
    if unit is None or columns.shown(query, columns.unit(other)) is None:
        return
    node.set("this", exp.Tuple(expressions=[node.this, unit.copy()]))


def _is_distinct_on(query: exp.Select) -> bool:
    """Whether it keeps one of several rows, so that others than those are not among its values."""
    distinct = query.args.get("distinct")
    return distinct is not None and distinct.args.get("on") is not None


def _query_of(node: exp.In) -> exp.Select | None:
    query = node.args["query"].unnest() if node.args.get("query") is not None else None
    return query if isinstance(query, exp.Select) else None


def _group_by_units(columns: OwnedColumns, select: exp.Select) -> None:
    """Group by the unit, too, where groups are of what belongs to it and are counted or averaged by a query around it.

    Each would be published by itself else, one unit behind it: hidden, or with noise as large as it is. Where a number
    may be missing it stays so, since records without one are one group.
    """
    if any(value and part not in _OF_GROUPS for part, value in select.args.items()):
        return
    keys = _keys(select)
    owned = [found for found in map(columns.owned, keys) if found is not None and found.of[0] == id(select)]
    owned = [found for found in owned if found.never_missing]
    if not owned or not (_is_added_up(select) or _is_looked_in(columns, select)):
        return
    unit = columns.unit(owned[0])
    group = select.args.get("group")
    if unit is None or any(text(key) == text(unit) for key in keys):
        return
    if group is None or group.args.get("all"):
        columns.add(select, unit)
    else:
        group.append("expressions", unit.copy())


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The columns that a query groups by, where it has no subtotals."""
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if distinct is not None and (group is not None or distinct.args.get("on") is not None):
        return []
    if distinct is not None or (group is not None and group.args.get("all")):
        return [item.unalias() for item in select.selects if isinstance(item.unalias(), exp.Column)]
    if group is None or any(value and part != "expressions" for part, value in group.args.items()):
        return []
    return [key for key in group.expressions if isinstance(key, exp.Column)]


def _is_looked_in(columns: OwnedColumns, select: exp.Select) -> bool:
    """Whether WHERE looks for what belongs to one unit among these groups, of which one column is shown."""
    holder = select.parent.parent if isinstance(select.parent, exp.Subquery) else select.parent
    group = select.args.get("group")
    if not isinstance(holder, exp.In) or len(select.selects) != 1 or group is None or group.args.get("all"):
        return False
    clause = holder.find_ancestor(exp.Where, exp.Select)
    asked = [is_known for found, is_known in _looked_for(clause.this) if found is holder] if clause is not None else []
    one, other = columns.owned(holder.this), columns.owned(select.selects[0].unalias())
    if not isinstance(clause, exp.Where) or not asked or one is None or other is None or one.kind != other.kind:
        return False
    return not asked[0] or (one.never_missing and other.never_missing)


def _is_added_up(select: exp.Select, read: frozenset[str] = frozenset()) -> bool:
    """Whether all that reads a query counts its rows or adds them up.

    Args:
        read: what the rows that it reads call figures of one unit.
    """
    holder = select.parent
    figures = _figures(select, read)
    if isinstance(holder, exp.Subquery):
        around = holder.find_ancestor(exp.Select)
        return (
            isinstance(holder.parent, (exp.From, exp.Join))
            and around is not None
            and _adds_up(around, holder, _named(holder, select, figures))
        )
    if isinstance(holder, exp.CTE):
        readers = [table for table in select.root().find_all(exp.Table) if folded(table.name) == folded(holder.alias)]
        found = [(table.find_ancestor(exp.Select), table) for table in readers]
        named = _named(holder, select, figures)
        return bool(found) and all(around is not None and _adds_up(around, table, named) for around, table in found)
    return False


def _figures(select: exp.Select, read: frozenset[str]) -> list[bool]:
    """Which items of a query are figures of one unit other than counts: aggregates, or made of such that it reads."""
    return [
        any(
            (is_aggregate(node) and not isinstance(node, (exp.Count, exp.CountIf)))
            or (isinstance(node, exp.Column) and folded(node.name) in read)
            for node in item.walk()
        )
        for item in select.selects
    ]


def _named(holder: exp.Subquery | exp.CTE, select: exp.Select, figures: list[bool]) -> frozenset[str]:
    """What the query around calls figures: by names of its own, where it gives some."""
    given = [column.name for column in holder.args["alias"].columns] if holder.args.get("alias") is not None else []
    names = given + [item.alias_or_name for item in select.selects][len(given) :]
    return frozenset(folded(name) for name, is_figure in zip(names, figures, strict=False) if is_figure)


def _adds_up(around: exp.Select, source: exp.Expr, figures: frozenset[str]) -> bool:
    """Whether a query aggregates the rows of a source, or hands them on to one that does, and shows none of them."""
    if all(source is not one for one in tables_of(around)):
        return False
    parts = [*around.expressions, *filter(None, [around.args.get("having"), around.args.get("order")])]
    aggregates = [node for part in parts for node in part.walk(prune=is_query) if is_aggregate(node)]
    for node in aggregates:
        if isinstance(node, _ONE_OF_THEM) and any(folded(one.name) in figures for one in node.find_all(exp.Column)):
            return False  # the largest of all sums is one of a unit
    if aggregates or around.args.get("group") is not None or around.args.get("distinct") is not None:
        return True
    return all(part in _OF_RECORDS for part, value in around.args.items() if value) and _is_added_up(around, figures)
