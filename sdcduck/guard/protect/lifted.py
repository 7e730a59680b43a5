"""Subqueries beside records anywhere but in WHERE: they become columns of the records, in a subquery of their own.

::

    SELECT id IN (SELECT id FROM visits) AS came, count(*) FILTER (WHERE age > (SELECT avg(age) FROM ages)) AS old
    FROM people GROUP BY 1

    SELECT r._q0 AS came, count(*) FILTER (WHERE r.age > r._q1) AS old
    FROM (SELECT age, id IN (SELECT id FROM visits) AS _q0, (SELECT avg(age) FROM ages) AS _q1 FROM people) AS r
    GROUP BY r._q0

In group keys, CASE, FILTER, aggregates and conditions put together of others they are dimensions then as any that a
subquery has worked out, and what may stand in them is decided where these are labelled and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, conjuncts, is_aggregate, leaves, owner, tables_of, text, typed
from sdcduck.guard.protect.groups import groups_records
from sdcduck.quoting import folded

LIFTED = "_sdc_r"
"""What records are called that have such columns."""

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CLAUSES = ("expressions", "group", "having", "qualify", "order", "distinct", "windows")
_TRUTH = exp.DataType.build("boolean")


def lift_subqueries(select: exp.Select, number: Callable[[], int], holds_records: Callable[[exp.Expr], bool]) -> None:
    """Make columns of the subqueries of a SELECT over records that stand where none can be worked out, in place.

    Args:
        number: gives another number for a name.
        holds_records: whether something in FROM may have unit-level records.
    """
    parts = [part for clause in (*_CLAUSES, "where") for part in _parts(select, clause)]
    if not any(part.find(exp.Query) is not None for part in parts):
        return
    if not any(map(holds_records, tables_of(select))):
        return
    lifting = _Lifting(select, number)
    if lifting.lift():
        with_columns(select, lifting.alias, dict(lifting.columns.values()))


def holds_records(source: exp.Expr, is_record: Callable[[str], bool], units: frozenset[str]) -> bool:
    """Whether something in FROM has unit-level records, as far as names tell.

    Args:
        is_record: whether a name stands for records.
        units: what units are called.
    """
    if isinstance(source, exp.Table):
        return is_record(folded(source.name))
    query = source.unnest()
    found: dict[str, bool] = {}

    def has_records(name: str) -> bool:
        return found[name] if name in found else is_record(name)

    for with_ in filter(None, (source.args.get("with_"), query.args.get("with_") if query is not source else None)):
        for cte in with_.expressions:
            found[folded(cte.alias)] = holds_records(cte.this, has_records, units)
    if isinstance(query, exp.SetOperation):
        return any(holds_records(side, has_records, units) for side in (query.this, query.expression))
    if not isinstance(query, exp.Select) or not any(holds_records(one, has_records, units) for one in tables_of(query)):
        return False
    return not groups_records(query) or any(folded(column.name) in units for column in _keys_of(query))


def _keys_of(select: exp.Select) -> Iterator[exp.Column]:
    group = select.args.get("group")
    keys = [leaf for item in group.expressions for leaf in leaves(item)] if group is not None else []
    for key in keys or select.expressions:
        yield from key.find_all(exp.Column)


def _parts(select: exp.Select, clause: str) -> list[exp.Expr]:
    value = select.args.get(clause)
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, exp.Expr)]


class _Lifting:
    """The subqueries of a SELECT that become columns."""

    def __init__(self, select: exp.Select, number: Callable[[], int]) -> None:
        self.select, self.alias = select, f"{LIFTED}{number()}"
        self.columns: dict[str, tuple[str, exp.Expr]] = {}

    def lift(self) -> bool:
        """Put columns in place of what is lifted; whether there is any."""
        where = self.select.args.get("where")
        if where is not None:
            for condition in conjuncts(where.this):
                for atom in list(_atoms(condition)):
                    if not self._stays(atom):
                        self._lifted(atom)
        if groups_records(self.select):
            self._lift_keys()
            for clause in ("expressions", "having", "qualify", "order"):
                for part in _parts(self.select, clause):
                    for aggregate in [node for node in part.find_all(exp.AggFunc) if is_aggregate(node)]:
                        if aggregate.find_ancestor(exp.Select) is self.select:
                            self._lifted(_with_filter(aggregate))
        else:
            parts = [part for clause in ("expressions", "qualify", "windows") for part in _parts(self.select, clause)]
            plain = all(part.find(exp.Window) is None for part in parts)
            for part in parts:
                for atom in list(_atoms(part.this if isinstance(part, (exp.Alias, exp.Qualify)) else part)):
                    if not plain or not (self._stays(atom) or _is_scalar(atom)):
                        self._lifted(atom)
        return bool(self.columns)

    def _lift_keys(self) -> None:
        """Those of group keys, also where SELECT and ORDER BY repeat them."""
        group = self.select.args.get("group")
        if group is None or group.args.get("all") is True:
            plain = group is not None or not any(map(aggregates, self.select.expressions))
            for item in self.select.expressions if plain else []:
                if not aggregates(item):
                    self._lifted(item.unalias())
            return
        lifted: dict[str, exp.Expr] = {}
        for leaf in [leaf for item in group.expressions for leaf in leaves(item)]:
            if leaf.find(exp.Query) is not None:
                written = text(leaf)
                lifted[written] = self._lifted(leaf)
        if lifted:
            for clause in ("expressions", "having", "qualify", "order"):
                for part in _parts(self.select, clause):
                    _replace_all(part, lifted)

    def _stays(self, atom: exp.Expr) -> bool:
        """Whether a condition is one that WHERE can be asked as it is."""
        if isinstance(atom, exp.Exists) or (isinstance(atom, exp.In) and atom.args.get("query") is not None):
            return True
        if isinstance(atom, exp.Coalesce) and isinstance(atom.this, exp.In):
            return True
        if isinstance(atom, _COMPARISONS):
            sides = (atom.this, atom.expression)
            if any(isinstance(side, exp.Column) for side in sides) and any(map(_is_scalar, sides)):
                return True
        return all(_is_scalar(found) and self._is_tied(found) for found in _queries(atom))

    def _is_tied(self, subquery: exp.Expr) -> bool:
        return any(owner(column) is self.select for column in subquery.find_all(exp.Column))

    def _lifted(self, node: exp.Expr) -> exp.Expr:
        """An expression with columns in place of its subqueries, where it stands."""
        for found in list(_queries(node)):
            name, _ = self.columns.setdefault(text(found), (f"_q{len(self.columns)}", found.copy()))
            column = exp.column(name, self.alias, quoted=True)
            query = found.unnest() if isinstance(found, exp.Subquery) else None
            if isinstance(query, exp.Query):
                typed(column, query.selects[0].unalias())
            else:
                column.type = _TRUTH.copy()
            if found is node:
                node.replace(column)
                return column
            found.replace(column)
        return node


def with_columns(select: exp.Select, alias: str, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """Put the records of a SELECT into a subquery with all columns that are asked for, and more, in place; that one.

    Args:
        alias: what the subquery is called; the SELECT speaks of the columns so already.
        columns: those that are added, by name.
    """
    inner = exp.Select(expressions=[], from_=select.args["from_"])
    if select.args.get("joins"):
        inner.set("joins", select.args["joins"])
    where = select.args.get("where")
    conditions = [] if where is None else conjuncts(where.this)
    outside = [one for one in conditions if any(column.table == alias for column in one.find_all(exp.Column))]
    inside = [one for one in conditions if all(one is not other for other in outside)]
    own = {table.alias_or_name for table in tables_of(select)}
    names: dict[tuple[str, str], str] = {}
    shown = [part for clause in _CLAUSES for part in _parts(select, clause)]
    for column in [column for part in (*shown, *outside) for column in part.find_all(exp.Column)]:
        if column.table not in own or owner(column) is not select:
            continue
        of = (column.table, folded(column.name))
        if of not in names:
            taken = {folded(name) for name in names.values()}
            names[of] = f"_c{len(names)}" if folded(column.name) in taken else column.name
            inner.append("expressions", typed(exp.alias_(column.copy(), names[of], quoted=True), column))
        column.replace(typed(exp.column(names[of], alias, quoted=True), column))
    for name, found in columns.items():
        inner.append("expressions", exp.Alias(this=found, alias=exp.to_identifier(name, quoted=True)))
    inner.set("where", exp.Where(this=exp.and_(*inside, copy=False)) if inside else None)
    select.set("joins", None)
    called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=called)))
    select.set("where", exp.Where(this=exp.and_(*outside, copy=False)) if outside else None)
    return inner


def _atoms(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND, OR and NOT put together, those with subqueries."""
    if isinstance(node, (exp.And, exp.Or)):
        yield from _atoms(node.this)
        yield from _atoms(node.expression)
    elif isinstance(node, (exp.Not, exp.Paren)):
        yield from _atoms(node.this)
    elif node.find(exp.Query) is not None:
        yield node


def _queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """IN, EXISTS and scalar subqueries in an expression, not those inside of others."""
    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        yield node
    elif isinstance(node, exp.Query):
        if _is_scalar(node):
            yield node
    else:
        for child in node.iter_expressions():
            yield from _queries(child)


def _is_scalar(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Subquery) or isinstance(node.parent, (exp.Any, exp.All)):
        return False
    query = node.unnest()
    return isinstance(query, exp.Query) and len(query.selects) == 1


def _with_filter(aggregate: exp.Expr) -> exp.Expr:
    node = aggregate
    while isinstance(node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)) and node.arg_key == "this":
        node = node.parent
    return node


def _replace_all(part: exp.Expr, lifted: Mapping[str, exp.Expr]) -> None:
    """Put group keys with columns in place of those with subqueries."""
    for node in list(part.walk()):
        if node.find(exp.Query) is not None and text(node) in lifted and node.parent is not None:
            node.replace(lifted[text(node)].copy())
