"""LATERAL beside records: what it works out of each record is a column of the records, or a join.

::

    SELECT t.k, u.n, count(*) FROM people AS p, LATERAL (SELECT p.age // 10 AS k) AS t,
        LATERAL (SELECT count(*) AS n FROM visits AS v WHERE v.id = p.id) AS u GROUP BY ALL

    SELECT r.k, r.n, count(*) FROM (
        SELECT p.age // 10 AS k, (SELECT count(*) FROM visits AS v WHERE v.id = p.id) AS n FROM people AS p
    ) AS r GROUP BY ALL

Rows that equalities tie are joined by these, ``LATERAL (SELECT r.name FROM regions AS r WHERE r.region = p.region)``;
of the first of them, ``ORDER BY v.day LIMIT 1``, those with the lowest ``row_number()``. What may stand in such columns
and joins is decided where these are labelled and checked.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sdcduck.guard.expressions import (
    LATERAL,
    aggregates,
    has_aggregate,
    is_lateral,
    owner,
    tables_of,
    typed,
)
from sdcduck.guard.protect.groups import MAKE_ROWS, has_one_row
from sdcduck.guard.protect.lifted import LIFTED, with_columns
from sdcduck.guard.protect.semijoins import rows_of, ties
from sdcduck.quoting import folded

_OF_ROWS = frozenset(["expressions", "from_", "joins", "where"])


def without_laterals(select: exp.Select, number: Callable[[], int], holds_records: Callable[[exp.Expr], bool]) -> None:
    """Write each LATERAL of a SELECT without it where there are records beside or in it, in place.

    Args:
        select: its names in full.
        number: gives another number for a name.
        holds_records: whether something in FROM has unit-level records.
    """
    joins = [join for join in select.args.get("joins") or [] if is_lateral(join.this) and _is_plain(join)]
    if joins and not any(map(holds_records, tables_of(select))):
        joins = [join for join in joins if any(map(holds_records, join.this.find_all(exp.Table)))]
    for join in reversed(joins):
        query = join.this.this
        parts = {part for part, value in query.args.items() if value}
        first = parts - _OF_ROWS == {"order", "limit"} and rows_of(query.args["limit"]) is not None
        if not isinstance(query, exp.Select) or join.this.args.get("with_") or not (first or parts <= _OF_ROWS):
            return
        of_each = "from_" not in parts
        if query.find(*MAKE_ROWS) is not None or (of_each and any(map(has_aggregate, query.expressions))):
            return  # which are of that one row, and would be of all records
        if not first and has_one_row(query):
            inner = _as_columns(select, join, query, f"{LIFTED}{number()}")
            if inner is None:
                return
            select = inner  # which has those before it
        elif not any(map(aggregates, query.expressions)):
            _as_join(select, join, query)


def _is_plain(join: exp.Join) -> bool:
    on = join.args.get("on")
    always = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
    return always and join.side in ("", "LEFT") and join.kind in ("", "INNER", "CROSS", "OUTER") and not join.method


def _as_columns(select: exp.Select, join: exp.Join, query: exp.Select, alias: str) -> exp.Select | None:
    """What has one row for each record, as columns of the records; the SELECT of these; None: a join speaks of it."""
    called = join.this.alias_or_name
    asked = [column for column in select.find_all(exp.Column) if column.table == called and owner(column) is select]
    values = {folded(item.alias_or_name): (item.alias_or_name, item.unalias()) for item in query.expressions}
    conditions = [other.args["on"] for other in select.args["joins"] if other.args.get("on") is not None]
    in_joins = {id(column) for on in conditions for column in on.find_all(exp.Column)}
    if any(id(column) in in_joins or folded(column.name) not in values for column in asked):
        return None
    others = {folded(column.name) for column in select.find_all(exp.Column) if column.table != called}
    columns: dict[str, exp.Expr] = {}
    for column in asked:
        shown, value = values[folded(column.name)]
        name = shown if folded(shown) not in others else f"_q{list(values).index(folded(shown))}"
        columns[name] = value.copy() if query.args.get("from_") is None else _scalar(query, value)
        column.replace(typed(exp.column(name, alias, quoted=True), value))
    select.set("joins", [other for other in select.args["joins"] if other is not join])
    return with_columns(select, alias, columns)


def _scalar(query: exp.Select, value: exp.Expr) -> exp.Subquery:
    """One column of a subquery alone."""
    one = query.copy()
    one.set("expressions", [typed(exp.alias_(value.copy(), "_v", quoted=True), value)])
    return typed(exp.Subquery(this=one), value)


def _as_join(select: exp.Select, join: exp.Join, query: exp.Select) -> None:
    """Rows that equalities tie, or the first of them, as a join by these."""
    order, limit = query.args.pop("order", None), query.args.pop("limit", None)
    tied = ties(query, select)
    if tied is None:
        query.set("order", order)
        query.set("limit", limit)
        return
    pairs, others = tied
    called = join.this.alias_or_name
    equal = []
    for place, (mine, other) in enumerate(pairs):
        query.append("expressions", typed(exp.alias_(mine.copy(), f"_k{place}", quoted=True), mine))
        equal.append(exp.EQ(this=typed(exp.column(f"_k{place}", called, quoted=True), mine), expression=other.copy()))
    if order is not None:
        keys = [mine.copy() for mine, _ in pairs]
        shown = {item.alias_or_name: item.unalias() for item in query.expressions}
        for column in [column for column in order.find_all(exp.Column) if not column.table and column.name in shown]:
            column.replace(shown[column.name].copy())
        number = exp.Window(this=exp.RowNumber(), partition_by=keys, order=order, over="OVER")
        place_of_row = typed(number, limit.expression)
        query.set("qualify", exp.Qualify(this=exp.LTE(this=place_of_row, expression=limit.expression)))
    query.set("where", exp.Where(this=exp.and_(*others, copy=False)) if others else None)
    del join.this.meta[LATERAL]
    join.set("on", exp.and_(*equal, copy=False))
    join.set("kind", None)
