"""A SELECT over records written as one around its groups, for what can only be asked of these.

::

    SELECT region, 2 * count(*) FROM people GROUP BY region HAVING count(*) > 9 ORDER BY avg(age)

    SELECT b.region, 2 * b._a0
    FROM (SELECT region, count(*) AS _a0, avg(age) AS _a1 FROM people GROUP BY region) AS b
    WHERE b._a0 > 9 ORDER BY b._a1

It is written so before anything is labelled or checked: both are judged as if the analyst had asked so.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, is_aggregate, is_query, leaves, owner, text, typed, without_nulls
from sdcduck.quoting import folded

_CLAUSES = ("expressions", "having", "qualify", "order", "distinct", "windows")


def grouped_by(select: exp.Select) -> exp.Group | None:
    """What a SELECT groups by, with GROUP BY ALL written out; None: by nothing, or by what a subquery finds."""
    group = select.args.get("group")
    if group is None:
        return None
    if group.args.get("all") is True:
        items = [item.unalias() for item in select.expressions if not aggregates(item) and item.find(exp.Query) is None]
        group = exp.Group(expressions=[item.copy() for item in items])
    return None if group.find(exp.Query) is not None else group


def columns_of_subqueries(select: exp.Select) -> list[exp.Column]:
    """The columns of a SELECT that subqueries in it name, those of its aggregates aside: they are asked of records."""
    return [column for part in _parts(select) for query in _queries(part) for column in _reached(select, query)]


class AroundGroups:
    """A SELECT that becomes one around its groups.

    Args:
        select: its names in full.
        group: what it groups by.
        alias: what its groups are called.
    """

    def __init__(self, select: exp.Select, group: exp.Group, alias: str) -> None:
        self._select, self._group, self._alias = select, group, alias
        self._keys = {text(key): key for item in group.expressions for key in leaves(item)}
        self._names: dict[str, str] = {}
        for place, (key, value) in enumerate(self._keys.items()):  # a refusal may speak of a column
            taken = {folded(name) for name in self._names.values()}
            known = isinstance(value, exp.Column) and folded(value.name) not in taken
            self._names[key] = value.name if known else f"_k{place}"
        self._numbers: dict[str, tuple[str, exp.Expr]] = {}

    def has(self, column: exp.Column) -> bool:
        """Whether a column is a group key."""
        return text(column) in self._names

    def taken_out(self) -> exp.Select:
        """The SELECT of the groups alone; the one around them, changed in place, has no FROM yet (`put`)."""
        select = self._select
        for part in _parts(select):
            self._name(part)
        shown = [(self._names[key], value) for key, value in self._keys.items()]
        items = [typed(exp.alias_(of.copy(), name, quoted=True), of) for name, of in [*shown, *self._numbers.values()]]
        inner = exp.Select(expressions=items, from_=select.args["from_"], group=self._group)
        for clause in ("joins", "where"):
            inner.set(clause, select.args.get(clause))
            select.set(clause, None)
        having = select.args.get("having")
        select.set("where", exp.Where(this=having.this) if having is not None else None)
        for clause in ("having", "group"):
            select.set(clause, None)
        return inner

    def put(self, groups: exp.Query) -> None:
        """Read the groups from a query."""
        alias = exp.TableAlias(this=exp.to_identifier(self._alias, quoted=True))
        self._select.set("from_", exp.From(this=exp.Subquery(this=groups, alias=alias)))

    def _name(self, node: exp.Expr) -> None:
        """Put columns of the groups in place of their keys and numbers."""
        if is_query(node):
            for column in _reached(self._select, node):
                column.replace(self._column(self._names[text(column)], column))
        elif isinstance(node, exp.Grouping) or is_aggregate(_within(node)):
            name, _ = self._numbers.setdefault(text(node), (f"_a{len(self._numbers)}", node.copy()))
            node.replace(self._column(name, node))
        elif text(node) in self._names and not isinstance(node, exp.Ordered):  # which may read as what it sorts by
            node.replace(self._column(self._names[text(node)], node))
        else:
            for child in list(node.iter_expressions()):
                self._name(child)

    def _column(self, name: str, of: exp.Expr) -> exp.Column:
        return typed(exp.column(name, self._alias, quoted=True), of)


def _parts(select: exp.Select) -> list[exp.Expr]:
    values = [select.args.get(clause) for clause in _CLAUSES]
    parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
    return [part for part in parts if isinstance(part, exp.Expr)]


def _queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The subqueries in an expression that do not stand in an aggregate."""
    if is_query(node):
        yield node
    elif not is_aggregate(node):
        for child in node.iter_expressions():
            yield from _queries(child)


def _reached(select: exp.Select, query: exp.Expr) -> list[exp.Column]:
    return [column for column in query.find_all(exp.Column) if column.table and owner(column) is select]


def _within(node: exp.Expr) -> exp.Expr:
    """An aggregate without FILTER and what is said of NULL."""
    return without_nulls(node.this if isinstance(node, exp.Filter) else node)
