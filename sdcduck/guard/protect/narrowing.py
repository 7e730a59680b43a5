"""Public relations that only narrow the records of a SELECT without numbers: they are looked in, and not joined.

::

    SELECT DISTINCT city FROM people, stock, days
    WHERE people.shop = stock.shop AND stock.day = days.day AND days.year = 2001

    SELECT DISTINCT city FROM people
    WHERE people.shop IN (SELECT stock.shop FROM stock, days WHERE stock.day = days.day AND days.year = 2001 ..)

How often a record finds something there says nothing of which groups there are, so that this is no join that would have
to be n:1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, conjuncts, factored, tables_of
from sdcduck.guard.protect.semijoins import in_rows

_CLAUSES = ("expressions", "group", "having", "qualify", "order", "distinct", "windows")
_INNER = (("", "", ""), ("", "INNER", ""), ("", "CROSS", ""))


def without_narrowing_joins(select: exp.Select, holds_records: Callable[[exp.Expr], bool]) -> None:
    """Write such relations of a SELECT over records as conditions, in place.

    Args:
        holds_records: whether something in FROM may have unit-level records.
    """
    shown = [part for clause in _CLAUSES for part in _parts(select, clause)]
    lists_groups = select.args.get("group") is not None or select.args.get("distinct") is not None
    if not lists_groups or any(map(aggregates, shown)) or any(part.find(exp.Query, exp.Window) for part in shown):
        return
    joins: list[exp.Join] = select.args.get("joins") or []
    if any((join.side, join.kind, join.method) not in _INNER or join.args.get("using") for join in joins):
        return
    tables = {table.alias_or_name: table for table in tables_of(select)}
    if len(tables) < 2 or not any(map(holds_records, tables.values())):
        return
    conditions = [
        part
        for clause in (*(join.args.get("on") for join in joins), *(where.this for where in _parts(select, "where")))
        if clause is not None
        for part in conjuncts(factored(clause.copy()))  # as it was, where nothing is to be done
    ]
    kept = {alias for alias, table in tables.items() if holds_records(table)}
    kept |= {column.table for part in shown for column in part.find_all(exp.Column)}
    kept |= {column.table for one in conditions if one.find(exp.Query) for column in one.find_all(exp.Column)}
    groups = _groups([alias for alias in tables if alias not in kept], conditions)
    looked_in = [(found, ties) for found in groups if (ties := _ties(found, conditions))]
    if not looked_in:
        return
    for aliases, pairs in looked_in:
        mine = [one for one in conditions if _of(one) & set(aliases)]
        inside = [one for one in mine if _of(one) <= set(aliases)]
        query = exp.Select(expressions=[], from_=exp.From(this=tables[aliases[0]]))
        query.set("joins", [exp.Join(this=tables[alias]) for alias in aliases[1:]])
        conditions = [one for one in conditions if all(one is not other for other in mine)]
        conditions.append(in_rows(pairs, query, inside))
    gone = {alias for aliases, _ in looked_in for alias in aliases}
    first, *others = [table for alias, table in tables.items() if alias not in gone]
    select.set("from_", exp.From(this=first))
    select.set("joins", [exp.Join(this=table) for table in others])
    select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))


def _parts(select: exp.Select, clause: str) -> list[exp.Expr]:
    value = select.args.get(clause)
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr)]


def _of(condition: exp.Expr) -> set[str]:
    return {column.table for column in condition.find_all(exp.Column)}


def _groups(aliases: Sequence[str], conditions: Sequence[exp.Expr]) -> list[list[str]]:
    """These relations, those together that conditions tie to each other."""
    groups = [[alias] for alias in aliases]
    for condition in conditions:
        met = [group for group in groups if _of(condition).intersection(group)]
        if len(met) > 1:
            groups = [group for group in groups if group not in met] + [[alias for group in met for alias in group]]
    return groups


def _ties(aliases: Sequence[str], conditions: Sequence[exp.Expr]) -> list[tuple[exp.Column, exp.Column]]:
    """The equalities of columns that tie relations to others, their own first; none where anything else does, too."""
    found = []
    for condition in conditions:
        if not _of(condition).intersection(aliases) or _of(condition) <= set(aliases):
            continue
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        own = [side for side in sides if isinstance(side, exp.Column) and side.table in aliases]
        other = [side for side in sides if isinstance(side, exp.Column) and side.table not in aliases]
        if len(own) != 1 or len(other) != 1:
            return []
        found.append((own[0], other[0]))
    return found
