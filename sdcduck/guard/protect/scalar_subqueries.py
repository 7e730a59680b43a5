"""Correlated scalar subqueries as LEFT JOIN: an aggregate of the rows of another table that belong to each record.

::

    FROM patients WHERE (SELECT count(*) FROM visits WHERE visits.patient_id = patients.id) > 2

    FROM patients
    LEFT JOIN (SELECT visits.patient_id AS _k0, count(*) AS n FROM visits GROUP BY visits.patient_id) AS c
    ON c._k0 = patients.id WHERE coalesce(c.n, 0) > 2

A column of a public table that has one row for each of them, or of a row that the unit has once, is joined without
GROUP BY. The relation is then labelled and checked as if the analyst had joined it: what is an answer stays one. Only
equalities can tie the two sides. Everything else stays as it is, to be refused where records are concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sdcduck.guard.expressions import (
    aggregates,
    duckdb_name,
    is_aggregate,
    tables_of,
    text,
    typed,
    without_nulls,
)
from sdcduck.guard.protect.semijoins import ties
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label, Relation

JOINED = "_sdc_c"
"""What relations are called that stand in place of scalar subqueries."""


_PLAIN = "plain"
"""Under this a join remembers that it is of a column and not of an aggregate."""
_NO_SCALARS = (exp.In, exp.Exists, exp.Any, exp.All, exp.From, exp.Join, exp.Subquery)


def without_correlated_values(
    select: exp.Select, number: Callable[[], int], holds_records: Callable[[exp.Expr], bool] | None
) -> list[exp.Join]:
    """Write the correlated scalar subqueries of a SELECT over records as joins, in place; these joins.

    Args:
        select: whose subqueries in WHERE, and in SELECT and QUALIFY where it does not aggregate, are looked at.
        number: gives another number for a name.
        holds_records: where the SELECT is over none, whether something in FROM has some: only those are written so.
    """
    found = []
    for subquery in list(_scalars(select)):
        query = subquery.unnest()
        if holds_records is not None and not (
            isinstance(query, exp.Select) and any(map(holds_records, tables_of(query)))
        ):
            continue
        join = _join(subquery, select, number)
        if join is not None:
            select.append("joins", join)
            found.append(join)
    return found


def settle_values(select: exp.Select, joins: Sequence[exp.Join], relations: Sequence[Relation]) -> None:
    """Take care of what is known of such joins only when they are labelled, in place.

    A count is 0 where there are no rows, but not where groups of few units are missing like those of nobody.

    Raises:
        Refused: a scalar subquery may have several rows for a record, which a join would repeat.
    """
    for join, relation in zip(joins, relations, strict=True):
        if join.meta.get(_PLAIN) and (relation.label is Label.RELEASED or relation.several):
            raise Refused("SDC044", "a subquery that may have several rows: take max(..) or count(..) of them")
        if relation.label is Label.RELEASED:
            alias = join.this.alias_or_name
            for count in list(select.find_all(exp.Coalesce)):
                if isinstance(count.this, exp.Column) and count.this.table == alias:
                    count.replace(count.this if relation.hides_few else _zero_where_none(count, alias))


def _zero_where_none(count: exp.Coalesce, alias: str) -> exp.Expr:
    """A published number, which may be NULL, or 0 where there is no group."""
    none = exp.Is(this=exp.column("_k0", alias, quoted=True), expression=exp.Null())
    return typed(exp.Case(ifs=[exp.If(this=none, true=exp.Literal.number(0))], default=count.this), count)


def _scalars(select: exp.Select) -> Iterator[exp.Subquery]:
    grouped = select.args.get("group") is not None or select.args.get("distinct") is not None
    of_rows = not grouped and not any(map(aggregates, select.expressions))
    clauses = ["where", "expressions", "qualify"] if of_rows else ["where"]
    for clause in clauses:
        value = select.args.get(clause) or []
        for part in value if isinstance(value, list) else [value]:
            for subquery in part.find_all(exp.Subquery):
                parent = subquery.parent
                in_list = isinstance(parent, exp.In) and subquery.arg_key == "this"
                plain = in_list or not isinstance(parent, _NO_SCALARS)
                if plain and subquery.find_ancestor(exp.Select) is select:
                    yield subquery


def _join(subquery: exp.Subquery, select: exp.Select, number: Callable[[], int]) -> exp.Join | None:
    query = subquery.unnest()
    if subquery.args.get("with_") is not None or not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    tied = ties(query, select)
    if tied is None:
        return None
    pairs, others = tied
    value = query.expressions[0].unalias()
    made = _Values(f"{JOINED}{number()}")
    plain = not aggregates(value) and value.find(exp.Query, exp.Window) is None
    name = value.name if isinstance(value, exp.Column) else "_v0"  # which a refusal may speak of
    around = made.column(name, value) if plain else made.around(value.copy())
    if around is None:
        return None
    keys = list({text(mine): mine for mine, _ in pairs}.values())
    names = {text(mine): f"_k{place}" for place, mine in enumerate(keys)}
    for mine in keys:
        _append(query, mine, names[text(mine)])
    query.set("expressions", query.expressions[1:])
    for sql, aggregate in made.aggregates.items():
        _append(query, aggregate, made.names[sql])
    query.set("where", exp.Where(this=exp.and_(*others, copy=False)) if others else None)
    if plain:  # the table has one row for each key, or the join is refused
        _append(query, value, name)
    else:
        query.set("group", exp.Group(expressions=[mine.copy() for mine in keys]))
    on = exp.and_(
        *(exp.EQ(this=made.column(names[text(mine)], mine), expression=other.copy()) for mine, other in pairs),
        copy=False,
    )
    subquery.replace(around if isinstance(around, (exp.Column, exp.Coalesce)) else exp.Paren(this=around))
    alias = exp.TableAlias(this=exp.to_identifier(made.alias, quoted=True))
    join = exp.Join(this=exp.Subquery(this=query, alias=alias), side="LEFT", on=on)
    join.meta[_PLAIN] = plain
    return join


def _append(query: exp.Select, value: exp.Expr, name: str) -> None:
    query.append("expressions", typed(exp.alias_(value.copy(), name, quoted=True), value))


class _Values:
    """The aggregates of a subquery as columns of a relation."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.aggregates: dict[str, exp.Expr] = {}
        self.names: dict[str, str] = {}

    def column(self, name: str, of: exp.Expr) -> exp.Column:
        return typed(exp.column(name, self.alias, quoted=True), of)

    def around(self, value: exp.Expr) -> exp.Expr | None:
        """What is written around the aggregates; None: other columns, or none of these, stand in it."""
        if not aggregates(value) or value.find(exp.Query, exp.Window) is not None:
            return None
        made = value.transform(self._replaced)
        whole = all(column.table == self.alias for column in made.find_all(exp.Column))
        return made if whole else None

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        function = without_nulls(node.this if isinstance(node, exp.Filter) else node)
        if not is_aggregate(function):
            return node
        sql = text(node)
        self.aggregates[sql] = node
        name = f"{duckdb_name(function)}_of_each"
        if name in self.names.values():
            name = f"{name}_{len(self.names)}"
        column = self.column(self.names.setdefault(sql, name), function)
        if not isinstance(function, exp.Count):  # which alone is 0 and not NULL where there are no rows
            return column
        return typed(exp.Coalesce(this=column, expressions=[exp.Literal.number(0)]), function)
