"""Measures that a subquery works out: written where they are added up.

::

    SELECT region, sum(v) FROM (SELECT region, income * (1 - discount) AS v FROM people) GROUP BY region

    SELECT region, sum(income * (1 - discount)) FROM (SELECT region, income, discount FROM people) GROUP BY region

So there is one way to ask for a number, and one noise. The same holds for WITH, and for subqueries in subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import has_aggregate, is_query, owner, tables_of, typed
from sdcduck.guard.protect.bands import is_compared
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_OF_RECORDS = frozenset(["with_", "expressions", "from_", "joins", "where"])
"""The clauses of a SELECT that has the records of its source, each as it is."""
_STRICT = (exp.Column, exp.Identifier, exp.Literal, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)
"""Parts of an expression that is NULL where one of its columns is."""


@dataclass
class _Columns:
    """What is known of the columns of a relation.

    Attributes:
        measures: the folded names of those that are measures of records.
        worked_out: by folded name, what is made of measures: expressions over columns of the relation.
    """

    measures: set[str] = field(default_factory=set)
    worked_out: dict[str, exp.Expr] = field(default_factory=dict)


def write_out_measures(tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    """Write expressions of measures that subqueries have as columns where these are used, in place.

    Args:
        policies: by lower-case name.

    Raises:
        Refused: one would be something else there.
    """
    measures = {
        name: _Columns({folded(measure) for measure in policy.measures})
        for name, policy in policies.items()
        if policy.label == "unit-level" and policy.measures
    }
    if measures:
        _query(tree, measures, is_source=False)


def _query(node: exp.Expr, known: Mapping[str, _Columns], *, is_source: bool) -> _Columns:
    """The columns of a query, in which measures are written out; ``is_source``: it stands in FROM or WITH."""
    visible = dict(known)
    with_ = node.args.get("with_")
    for cte in with_.expressions if with_ is not None else ():
        renamed = bool(cte.args["alias"].args.get("columns"))
        visible[folded(cte.alias)] = _query(cte.this, visible, is_source=not renamed)
    if isinstance(node, exp.Subquery):
        return _query(node.this, visible, is_source=is_source)
    if isinstance(node, exp.SetOperation):
        for side in (node.this, node.expression):
            _query(side, visible, is_source=False)
        return _Columns()
    if not isinstance(node, exp.Select):
        return _Columns()
    sources = _sources(node, visible)
    in_from = {id(table) for table in tables_of(node)}
    for inner in _queries(node, in_from):
        _query(inner, visible, is_source=False)
    _write_in(node, sources)
    return _columns_of(node, sources) if is_source else _Columns()


def _sources(select: exp.Select, visible: Mapping[str, _Columns]) -> dict[str, _Columns]:
    """The relations of a SELECT, by alias."""
    found = {}
    for table in tables_of(select):
        if isinstance(table, exp.Table):
            found[table.alias_or_name] = visible.get(folded(table.name), _Columns())
        elif isinstance(table, exp.Subquery):
            found[table.alias_or_name] = _query(table, visible, is_source=not table.alias_column_names)
    return found


def _queries(select: exp.Select, skip: set[int]) -> Iterator[exp.Expr]:
    """The queries in the expressions of a SELECT, the outermost ones."""
    for clause, value in select.args.items():
        for part in value if isinstance(value, list) else [value]:
            if clause == "with_" or not isinstance(part, exp.Expr):
                continue
            for node in part.walk(prune=lambda node: is_query(node) or id(node) in skip):
                if is_query(node) and id(node) not in skip:
                    yield node


def _write_in(select: exp.Select, sources: Mapping[str, _Columns]) -> None:
    """Write what was worked out in the sources of a SELECT in place of its names."""
    if not any(source.worked_out for source in sources.values()):
        return
    may_miss = _may_miss(select)
    for item in list(select.expressions):
        if isinstance(item, exp.Column):
            item.replace(exp.alias_(item.copy(), item.name, quoted=True))
    for column in list(select.find_all(exp.Column)):
        source = sources.get(column.table)
        made = None if source is None else source.worked_out.get(folded(column.name))
        if made is None or owner(column) is not select:
            continue
        if column.table in may_miss and not all(isinstance(part, _STRICT) for part in made.walk()):
            raise Refused("SDC041", f"'{column.name}', worked out behind a LEFT JOIN: work it out where it is added up")
        written = made.copy()
        for inner in written.find_all(exp.Column):
            inner.set("table", column.args["table"].copy())
        column.replace(typed(exp.Paren(this=written), made))


def _may_miss(select: exp.Select) -> set[str]:
    """The relations of which some rows of a join have none."""
    joins = select.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        return {table.alias_or_name for table in tables_of(select)}
    return {join.this.alias_or_name for join in joins if join.side}


def _columns_of(select: exp.Select, sources: Mapping[str, _Columns]) -> _Columns:
    """The columns of a SELECT that stands in FROM; those that are worked out of measures give way to what they need."""
    found = _Columns()
    of_records = all(clause in _OF_RECORDS for clause, value in select.args.items() if value)
    made: dict[str, exp.Expr] = {}
    for item in select.expressions:
        value, name = item.unalias(), folded(item.alias_or_name)
        if isinstance(value, exp.Column):
            if _is_measure(value, sources):
                found.measures.add(name)
        elif of_records and _is_worked_out(value, sources):
            made[name] = value
    if not made:
        return found
    kept = [item for item in select.expressions if folded(item.alias_or_name) not in made]
    names = {item.unalias(): item.alias_or_name for item in reversed(kept) if isinstance(item.unalias(), exp.Column)}
    taken = {folded(item.alias_or_name) for item in select.expressions}
    for name, value in made.items():
        found.worked_out[name] = value.copy().transform(_over_names(kept, names, taken, sources, found))
    select.set("expressions", kept)
    return found


def _over_names(
    kept: list[exp.Expr],
    names: dict[exp.Expr, str],
    taken: set[str],
    sources: Mapping[str, _Columns],
    found: _Columns,
) -> Callable[[exp.Expr], exp.Expr]:
    """What writes columns of the sources as columns of the SELECT, which gets those that it has not."""

    def over_names(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node not in names:
            number, name = 1, node.name
            while folded(name) in taken:
                number, name = number + 1, f"{node.name}_{number}"
            taken.add(folded(name))
            names[node.copy()] = name
            kept.append(exp.alias_(node.copy(), name, quoted=True))
        if _is_measure(node, sources):
            found.measures.add(folded(names[node]))
        return typed(exp.column(names[node], "_", quoted=True), node)

    return over_names


def _is_worked_out(value: exp.Expr, sources: Mapping[str, _Columns]) -> bool:
    """Whether an expression has the values of measures in it, and is of one record each."""
    if has_aggregate(value) or value.find(exp.Query) is not None:
        return False
    return any(_is_measure(column, sources) and not _is_told(column) for column in value.find_all(exp.Column))


def _is_measure(column: exp.Column, sources: Mapping[str, _Columns]) -> bool:
    source = sources.get(column.table)
    return source is not None and folded(column.name) in source.measures


def _is_told(column: exp.Column) -> bool:
    """Whether a column stands where a measure may be a dimension: in IS NULL, or compared with a border."""
    return is_compared(column) or (isinstance(column.parent, exp.Is) and isinstance(column.parent.expression, exp.Null))
