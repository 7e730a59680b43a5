"""Columns of what belongs to one unit, of tables and of subqueries that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import owner, tables_of
from sdcduck.quoting import folded

_WITH_ANOTHER = frozenset(["expressions", "from_", "joins", "where", "with_", "group", "distinct", "having"])
"""The clauses of a subquery that may show one more column of each of its rows."""


@dataclass(frozen=True)
class Owned:
    """A column of what belongs to one unit.

    Attributes:
        of: the SELECT and the alias of its relation.
        kind: what it identifies, and of which tables.
        unit: the column of the unit beside it, of a table.
        never_missing: whether no record was without a value when the policy was declared.
        within: of a relation that is a subquery, the column that it shows, and the subquery.
    """

    of: tuple[int, str]
    kind: tuple[str, str]
    unit: exp.Column
    never_missing: bool
    within: tuple[Owned, exp.Select] | None = None


class OwnedColumns:
    """The tables that have such columns: their policies, and the types of all columns, by folded name."""

    def __init__(
        self, tree: exp.Expr, policies: Mapping[str, Policy], types: Mapping[str, Mapping[str, exp.DataType]]
    ) -> None:
        self.policies, self.types = policies, types
        every = [cte for cte in tree.find_all(exp.CTE) if not cte.args["alias"].args.get("columns")]
        names = [folded(cte.alias) for cte in every]
        self._ctes = {name: cte for name, cte in zip(names, every, strict=True) if names.count(name) == 1}

    @classmethod
    def of(
        cls, tree: exp.Expr, named: Sequence[Policy], types: Mapping[str, Mapping[str, exp.DataType]]
    ) -> Self | None:
        """Those of a query; None: none of its tables has any."""
        ctes = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
        policies = {folded(one.name): one for one in named if one.owned and folded(one.name) not in ctes}
        return cls(tree, policies, types) if policies else None

    def owned(self, node: exp.Expr) -> Owned | None:
        """What a column identifies; None: nothing that belongs to one unit."""
        select = owner(node) if isinstance(node, exp.Column) and node.table else None
        if select is None or not isinstance(node, exp.Column):
            return None
        relation = next((one for one in tables_of(select) if one.alias_or_name == node.table), None)
        of = (id(select), node.table)
        if isinstance(relation, exp.Table) and folded(relation.name) in self.policies:
            found = self._of_table(self.policies[folded(relation.name)], node, of)
            return replace(found, never_missing=False) if found and _may_be_missing(select, relation) else found
        query = relation.this if isinstance(relation, exp.Subquery) else self._cte(relation)
        if not isinstance(query, exp.Select) or query is select:
            return None
        shown = next((one for one in query.selects if folded(one.alias_or_name) == folded(node.name)), None)
        found = self.owned(shown.unalias()) if shown is not None else None
        if found is None or found.of[0] != id(query):
            return None
        never_missing = found.never_missing and not _may_be_missing(select, relation)
        return Owned(of, found.kind, found.unit, never_missing, (found, query))

    def _cte(self, relation: exp.Expr | None) -> exp.Expr | None:
        if not isinstance(relation, exp.Table) or relation.args.get("db"):
            return None
        found = self._ctes.get(folded(relation.name))
        return found.this if found is not None and _is_read_by(found, relation) else None

    def _of_table(self, policy: Policy, node: exp.Column, of: tuple[int, str]) -> Owned | None:
        called = {folded(name): what for name, what in policy.owned}.get(folded(node.name))
        if policy.unit is None or called is None:
            return None
        unit = exp.column(policy.unit, node.table, quoted=True)
        types = {folded(name): kind for name, kind in self.types[folded(policy.name)].items()}
        unit.type = types.get(folded(policy.unit))
        among = f"table {folded(policy.name)}" if policy.population is None else f"population {policy.population}"
        return Owned(of, (folded(called), among), unit, folded(node.name) in map(folded, policy.never_missing))

    def unit(self, owned: Owned) -> exp.Column | None:
        """The unit that something belongs to, which its subqueries show from then on; None: one of them cannot."""
        if owned.within is None:
            return owned.unit
        inner, query = owned.within
        unit = self.unit(inner)
        name = None if unit is None else self.shown(query, unit, may_be_missing=not inner.never_missing)
        if unit is None or name is None:
            return None
        column = exp.column(name, owned.of[1], quoted=True)
        column.type = unit.type
        return column

    def shown(self, query: exp.Select, column: exp.Column | None, *, may_be_missing: bool = False) -> str | None:
        """The name under which a subquery shows a column of its relations; None: its rows would be others with it.

        Args:
            may_be_missing: whether the records without what belongs to the unit are one group of several units.
        """
        if column is None:
            return None
        for item in query.selects:
            value = item.unalias()
            if isinstance(value, exp.Column) and (value.table, folded(value.name)) == (
                column.table,
                folded(column.name),
            ):
                return item.alias_or_name
        if any(value and part not in _WITH_ANOTHER for part, value in query.args.items()):
            return None
        group = query.args.get("group")
        keys = [] if group is None else group.expressions
        if query.args.get("distinct"):
            return None
        if group is not None and column not in keys and (may_be_missing or not group.args.get("all")):
            return None
        return self.add(query, column)

    def add(self, query: exp.Select, column: exp.Column) -> str:
        """Show one more column of the relations of a query; its name."""
        names = {folded(name) for name in query.named_selects}
        name, number = column.name, 1
        while folded(name) in names:
            name, number = f"{column.name}_{number}", number + 1
        query.append("expressions", exp.alias_(column.copy(), name, quoted=True))
        return name


def _may_be_missing(select: exp.Select, relation: exp.Expr | None) -> bool:
    """Whether rows of a query may have none of a relation, which an outer join says."""
    joins = select.args.get("joins") or []
    sides = [join.side for join in joins if join.side]
    return any(side != "LEFT" for side in sides) or any(join.this is relation and join.side for join in joins)


def _is_read_by(cte: exp.CTE, relation: exp.Expr) -> bool:
    """Whether a name stands where it means a query of WITH: in the query around it, or in a later one of the same."""
    node: exp.Expr | None = relation
    while node is not None and node is not cte:
        if cte.parent is not None and node is cte.parent.parent:
            return True
        if isinstance(node, exp.CTE) and node.parent is cte.parent and (node.index or 0) < (cte.index or 0):
            return False
        node = node.parent
    return False
