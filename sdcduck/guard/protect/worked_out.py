"""Measures that a subquery works out: written where they are added up.

::

    SELECT region, sum(v) FROM (SELECT region, income * (1 - discount) AS v FROM people) GROUP BY region

    SELECT region, sum(income * (1 - discount)) FROM (SELECT region, income, discount FROM people) GROUP BY region

So there is one way to ask for a number, and one noise. The same holds for WITH, and for subqueries in subqueries.

What is one column of UNION ALL and several measures is each of them by itself, so that their sums are those that each
table has. There may be NULL, or 0, in place of one::

    SELECT sum(v) FROM (SELECT id, price AS v FROM sales UNION ALL SELECT id, refund FROM returned)

    SELECT sum(coalesce(v_1, v_2)) FROM (
        SELECT id, price AS v_1, NULL AS v_2 FROM sales UNION ALL SELECT id, NULL, refund FROM returned
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import has_aggregate, is_query, is_zero, owner, tables_of, typed
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
        measures: by the folded names of those that are measures of records, what the custodian calls them.
        worked_out: by folded name, what is made of measures: expressions over columns of the relation.
    """

    measures: dict[str, str] = field(default_factory=dict)
    worked_out: dict[str, exp.Expr] = field(default_factory=dict)


def write_out_measures(tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    """Write expressions of measures that subqueries have as columns where these are used, in place.

    Args:
        policies: by lower-case name.

    Raises:
        Refused: one would be something else there.
    """
    measures = {
        name: _Columns({folded(measure): folded(measure) for measure in policy.measures})
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
        return _together(node, visible, is_source=is_source)
    if not isinstance(node, exp.Select):
        return _Columns()
    sources = _written(node, visible)
    return _columns_of(node, sources) if is_source else _Columns()


def _written(select: exp.Select, visible: Mapping[str, _Columns]) -> dict[str, _Columns]:
    """The relations of a SELECT, by alias, with what they have worked out written where it is used."""
    sources = _sources(select, visible)
    in_from = {id(table) for table in tables_of(select)}
    for inner in _queries(select, in_from):
        _query(inner, visible, is_source=False)
    _write_in(select, sources)
    return sources


def _together(node: exp.SetOperation, visible: Mapping[str, _Columns], *, is_source: bool) -> _Columns:
    """The columns of a set operation; those of UNION ALL that are several measures give way to each of them."""
    sides = _sides(node)
    selects = [side for side in sides if isinstance(side, exp.Select) and _has_all_records(side)]
    alike = len({len(select.expressions) for select in selects}) == 1
    if not is_source or len(selects) < len(sides) or not alike or not _is_of_all(node):
        for side in sides:
            _query(side, visible, is_source=False)
        return _Columns()
    sources = [_written(select, visible) for select in selects]
    found = _Columns()
    taken = {folded(name) for name in selects[0].named_selects}
    written: list[list[exp.Expr]] = [[] for _ in selects]
    for place, first in enumerate(list(selects[0].expressions)):
        items = [select.expressions[place] for select in selects]
        parts = _Parts(items, sources, taken)
        if parts.are_several:
            found.worked_out[folded(first.alias_or_name)] = parts.whole()
            found.measures.update((folded(name), called) for name, (_, called) in parts.names.items())
        elif parts.called[0] is not None and set(parts.called) == {parts.called[0]}:
            found.measures[folded(first.alias_or_name)] = parts.called[0]
        for nth, item in enumerate(items):
            written[nth] += parts.of_side(nth) if parts.are_several else [item]
    for select, columns in zip(selects, written, strict=True):
        select.set("expressions", columns)
    return found


def _sides(node: exp.Expr) -> list[exp.Expr]:
    """What a set operation of set operations is made of."""
    if isinstance(node, exp.SetOperation):
        return _sides(node.this) + _sides(node.expression)
    return [node]


def _has_all_records(select: exp.Select) -> bool:
    return all(clause in _OF_RECORDS and clause != "with_" for clause, value in select.args.items() if value)


def _is_of_all(node: exp.Expr) -> bool:
    """Whether a set operation has all rows of all sides, by place."""
    if not isinstance(node, exp.SetOperation):
        return True
    plain = isinstance(node, exp.Union) and not node.args.get("distinct") and not node.args.get("by_name")
    return plain and _is_of_all(node.this) and _is_of_all(node.expression)


class _Parts:
    """One column of UNION ALL, of which each side is a measure, NULL or 0; the parts are columns of their own.

    Attributes:
        called: of each side what the custodian calls the measure; None: it is none.
        names: of the parts, with a column of each and what that is called.
        are_several: whether there are measures, and not one alone.
    """

    def __init__(self, items: Sequence[exp.Expr], sources: Sequence[Mapping[str, _Columns]], taken: set[str]) -> None:
        self._values = [item.unalias() for item in items]
        self.called = [_called(value, source) for value, source in zip(self._values, sources, strict=True)]
        others = [value for value, called in zip(self._values, self.called, strict=True) if called is None]
        self._has_zero = any(map(_is_nought, others))
        plain = all(isinstance(value, exp.Null) or _is_nought(value) for value in others)
        some = [called for called in self.called if called is not None]
        self.are_several = bool(some) and plain and (bool(others) or len(set(some)) > 1)
        self.names: dict[str, tuple[exp.Expr, str]] = {}
        self._part: dict[tuple[str, str], str] = {}
        if not self.are_several:
            return
        for value, called in zip(self._values, self.called, strict=True):
            if called is not None and self._kind(value, called) not in self._part:
                name = self._part[self._kind(value, called)] = _free(items[0].alias_or_name, taken)
                self.names[name] = (value, called)
        self._nought = _free(items[0].alias_or_name, taken) if self._has_zero else ""

    @staticmethod
    def _kind(value: exp.Expr, called: str) -> tuple[str, str]:
        return called, "" if value.type is None else value.type.sql("duckdb")

    def of_side(self, side: int) -> list[exp.Expr]:
        """What stands in one side in place of the column."""
        value, called = self._values[side], self.called[side]
        own = None if called is None else self._part[self._kind(value, called)]
        columns = [exp.alias_(value if name == own else exp.Null(), name, quoted=True) for name in self.names]
        if self._has_zero:
            mark = _WHOLE.copy() if _is_nought(value) else exp.Null()
            columns.append(exp.alias_(mark, self._nought, quoted=True))
        return columns

    def whole(self) -> exp.Expr:
        """The column, of its parts."""
        parts: list[exp.Expr] = [
            typed(exp.column(name, "_", quoted=True), value) for name, (value, _) in self.names.items()
        ]
        if self._has_zero:  # 0 in the rows that are marked, NULL in others
            mark = typed(exp.column(self._nought, "_", quoted=True), _WHOLE)
            parts.append(typed(exp.Mul(this=exp.Literal.number(0), expression=mark), _WHOLE))
        first, *others = parts
        return typed(exp.Coalesce(this=first, expressions=others), first) if others else first


_WHOLE = exp.Literal.number(0)
_WHOLE.type = exp.DataType.build("INT", dialect="duckdb")


def _is_nought(value: exp.Expr) -> bool:
    """Whether this is 0, whatever type it is cast to."""
    while isinstance(value, (exp.Cast, exp.Paren)):
        value = value.this
    return is_zero(value)


def _free(name: str, taken: set[str]) -> str:
    """A name that no other column has."""
    number = 1
    while folded(f"{name}_{number}") in taken:
        number += 1
    taken.add(folded(f"{name}_{number}"))
    return f"{name}_{number}"


def _called(value: exp.Expr, sources: Mapping[str, _Columns]) -> str | None:
    """What the custodian calls a measure of records; None: it is none."""
    source = sources.get(value.table) if isinstance(value, exp.Column) else None
    return None if source is None else source.measures.get(folded(value.name))


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
            called = _called(value, sources)
            if called is not None:
                found.measures[name] = called
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
        called = _called(node, sources)
        if called is not None:
            found.measures[folded(names[node])] = called
        return typed(exp.column(names[node], "_", quoted=True), node)

    return over_names


def _is_worked_out(value: exp.Expr, sources: Mapping[str, _Columns]) -> bool:
    """Whether an expression has the values of measures in it, and is of one record each."""
    if has_aggregate(value) or value.find(exp.Query) is not None:
        return False
    return any(_is_measure(column, sources) and not _is_told(column) for column in value.find_all(exp.Column))


def _is_measure(column: exp.Column, sources: Mapping[str, _Columns]) -> bool:
    return _called(column, sources) is not None


def _is_told(column: exp.Column) -> bool:
    """Whether a column stands where a measure may be a dimension: in IS NULL, or compared with a border."""
    return is_compared(column) or (isinstance(column.parent, exp.Is) and isinstance(column.parent.expression, exp.Null))
