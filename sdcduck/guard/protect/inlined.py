"""Queries of WITH that are records, or have a row for each unit, stand where they are read, if noise is drawn outside.

::

    WITH old AS (SELECT * FROM people WHERE age > 60) SELECT region, count(*) FROM old GROUP BY region

    SELECT region, count(*) FROM (SELECT * FROM people WHERE age > 60) AS old GROUP BY region

The numbers of a block are worked out on their own then, before the rest of the query is, and nothing may stand outside.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.protect.groups import groups_records
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.quoting import folded


def inline_records(tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    """Put queries of WITH that filter, join and rename records in place of their names.

    Args:
        policies: by folded name.
    """
    private = {name: folded(str(policy.unit)) for name, policy in policies.items() if policy.privacy.holds}
    if any(folded(table.name) in private for table in tree.find_all(exp.Table)):
        inline(tree, policies, lambda cte: _is_records(cte, private))


def inline(tree: exp.Expr, policies: Container[str], is_chosen: Callable[[exp.CTE], bool]) -> None:
    """Put queries of WITH in place of their names.

    Where a name stands for two things in a query nothing is moved, and whoever looks at records there refuses it.

    Args:
        policies: the folded names of tables.
        is_chosen: whether one of the queries is moved.
    """
    every = [folded(cte.alias) for cte in tree.find_all(exp.CTE)]
    if len(set(every)) < len(every) or any(name in policies for name in every):
        return
    # Of other columns for a name, as in FROM c AS t(a, b), nothing is moved either.
    renamed = {folded(table.name) for table in tree.find_all(exp.Table) if table.alias_column_names} if every else set()
    while True:
        found = (cte for cte in tree.find_all(exp.CTE) if folded(cte.alias) not in renamed and is_chosen(cte))
        cte = next(found, None)
        if cte is None:
            return
        _put(tree, cte)


def _is_records(cte: exp.CTE, private: Mapping[str, str]) -> bool:
    """Whether a query of WITH is records of one table, read once: its copies do not grow with each other."""
    select = cte.this
    if cte.alias_column_names or is_recursive(cte) or not isinstance(select, exp.Select):
        return False
    from_ = select.args.get("from_")
    read = [table for table in select.find_all(exp.Table) if folded(table.name) in private]
    if groups_records(select) and not any(_groups_by(select, private[folded(table.name)]) for table in read):
        return False
    return len(read) == 1 and from_ is not None and any(table is read[0] for table in from_.find_all(exp.Table))


def _groups_by(select: exp.Select, unit: str) -> bool:
    """Whether a SELECT groups by a column of this name, or has DISTINCT rows with it; that it is one is seen later."""
    group = select.args.get("group")
    by = select.expressions if group is None and select.args.get("distinct") is not None else []
    by = [item.unalias() for item in by] if group is None else group.expressions
    return any(isinstance(node, exp.Column) and folded(node.name) == unit for node in by)


def _put(tree: exp.Expr, cte: exp.CTE) -> None:
    name, with_ = folded(cte.alias), cte.parent
    assert isinstance(with_, exp.With)
    whole = with_.parent
    cte.pop()
    if not with_.expressions and whole is not None:
        whole.set("with_", None)
    for table in [table for table in tree.find_all(exp.Table) if folded(table.name) == name]:
        called = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
        made = exp.Subquery(this=cte.this.copy(), alias=called)
        for part, value in table.args.items():
            if value and part not in ("this", "alias"):  # such as a sample, which is refused where it stands
                made.set(part, value)
        table.replace(made)
