"""What belongs to one unit is joined with that unit: an order of one customer, a stay of one patient.

The custodian says of which columns that holds, and it was looked at in all tables of the population (`sdc_protect`). So
the equality of units says nothing more of the rows, and if it did, rows of two units would not meet all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import conjuncts, owner, tables_of, text
from sdcduck.guard.passes.draft import Draft
from sdcduck.quoting import folded

_OF_ROWS = frozenset(["expressions", "from_", "joins", "where"])
"""The clauses of a subquery whose rows are records; groups of them are an answer of their own."""


def join_on_units(draft: Draft) -> None:
    """Equalities of what belongs to one unit say that the units are equal, too.

    ::

        FROM orders o JOIN lines l ON l.order_id = o.order_id
        FROM orders o JOIN lines l ON l.order_id = o.order_id AND l.customer_id = o.customer_id

        WHERE o.order_id IN (SELECT r.order_id FROM returned r)
        WHERE (o.order_id, o.customer_id) IN (SELECT r.order_id, r.customer_id FROM returned r)

    >>> after(join_on_units, "SELECT count(*) AS n FROM regions")
    SELECT COUNT(*) AS "n" FROM "regions" AS "regions"
    """
    ctes = {folded(cte.alias) for cte in draft.tree.find_all(exp.CTE)}
    named = [policy for policy in draft.named if policy.owned and folded(policy.name) not in ctes]
    if not named:
        return
    tables = _Tables({folded(policy.name): policy for policy in named}, draft.types)
    for select in list(draft.tree.find_all(exp.Select)):
        held = [*(select.args.get("joins") or []), *filter(None, [select.args.get("where")])]
        for clause in held:
            condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause.this
            if condition is not None:
                known = {text(part) for part in conjuncts(condition)}
                for equality in list(_equalities(condition)):
                    _tie(tables, equality, known)
                for part in conjuncts(condition):
                    if isinstance(part, exp.In):
                        _look_for_units(tables, part)


@dataclass(frozen=True)
class _Owned:
    """A column of what belongs to one unit.

    Attributes:
        of: the SELECT and the alias of its table.
        kind: what it identifies, and of which tables.
        unit: the column of the unit beside it.
    """

    of: tuple[int, str]
    kind: tuple[str, str]
    unit: exp.Column


class _Tables:
    """The tables that have such columns: their policies, and the types of all columns, by folded name."""

    def __init__(self, policies: Mapping[str, Policy], types: Mapping[str, Mapping[str, exp.DataType]]) -> None:
        self.policies, self.types = policies, types

    def owned(self, node: exp.Expr) -> _Owned | None:
        """What a column of one of the tables identifies; None: nothing that belongs to one unit."""
        select = owner(node) if isinstance(node, exp.Column) and node.table else None
        if select is None or not isinstance(node, exp.Column):
            return None
        table = next((one for one in tables_of(select) if one.alias_or_name == node.table), None)
        policy = self.policies.get(folded(table.name)) if isinstance(table, exp.Table) else None
        called = {folded(name): what for name, what in policy.owned}.get(folded(node.name)) if policy else None
        if policy is None or policy.unit is None or called is None:
            return None
        unit = exp.column(policy.unit, node.table, quoted=True)
        types = {folded(name): kind for name, kind in self.types[folded(policy.name)].items()}
        unit.type = types.get(folded(policy.unit))
        among = f"table {folded(policy.name)}" if policy.population is None else f"population {policy.population}"
        return _Owned((id(select), node.table), (folded(called), among), unit)


def _equalities(node: exp.Expr) -> Iterator[exp.EQ]:
    """Equalities of two columns that stand under AND and OR alone: where they are NULL or false is one there."""
    if isinstance(node, (exp.And, exp.Or)):
        yield from _equalities(node.this)
        yield from _equalities(node.expression)
    elif isinstance(node, exp.Paren):
        yield from _equalities(node.this)
    elif isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
        yield node


def _tie(tables: _Tables, equality: exp.EQ, known: set[str]) -> None:
    one, other = tables.owned(equality.this), tables.owned(equality.expression)
    if one is None or other is None or one.of == other.of or one.kind != other.kind:
        return
    said = [exp.EQ(this=a.unit.copy(), expression=b.unit.copy()) for a, b in ((one, other), (other, one))]
    if not known.intersection(map(text, said)):
        equality.replace(exp.Paren(this=exp.And(this=equality.copy(), expression=said[0])))


def _look_for_units(tables: _Tables, node: exp.In) -> None:
    """``order_id IN (SELECT order_id ..)``, which holds or does not, and is not asked what it is where it is NULL."""
    query = node.args["query"].unnest() if node.args.get("query") is not None else None
    if not isinstance(query, exp.Select) or len(query.selects) != 1:
        return
    if any(value and part not in _OF_ROWS for part, value in query.args.items()):
        return
    item = query.selects[0].unalias()
    one, other = tables.owned(node.this), tables.owned(item)
    if one is None or other is None or one.kind != other.kind or other.of[0] != id(query):
        return
    node.set("this", exp.Tuple(expressions=[node.this, one.unit.copy()]))
    query.append("expressions", exp.alias_(other.unit.copy(), other.unit.name, quoted=True))
