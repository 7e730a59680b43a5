"""EXISTS among the records of one unit, tied by more than equality: an earlier visit, another within thirty days.

::

    FROM visits v
    WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.ward = 'A' AND w.day > v.day)

    FROM visits v
    WHERE EXISTS (SELECT 1 FROM (SELECT w.patient_id, w.day FROM visits w WHERE w.ward = 'A') AS e
                  WHERE e.patient_id = v.patient_id AND e.day > v.day)

What is looked for is a query of its own, labelled and checked as any other. The conditions that tie it to each record
are checked with the block around it, which sees the columns of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, conjuncts, owner, text, typed
from sdcduck.guard.protect.semijoins import PLAIN, exists_of
from sdcduck.quoting import folded

LOOKED_FOR = "_sdc_e"
"""What relations are called that records are looked for in."""


@dataclass(frozen=True)
class Tied:
    """What ties the records that are looked for to those around them.

    Attributes:
        alias: of the records that are looked for.
        conditions: over columns of these and of the records around them.
    """

    alias: str
    conditions: tuple[exp.Expr, ...]


def without_ties(select: exp.Select, number: Callable[[], int]) -> dict[int, Tied]:
    """Take what reaches for the records of a SELECT out of each EXISTS; by the identity of its subquery.

    Args:
        select: a SELECT over records, changed in place.
        number: gives another number for a name.
    """
    found: dict[int, Tied] = {}
    for exists in exists_of(select):
        query = exists.this
        if isinstance(query, exp.Select):
            tied = _tied(query, select, number)
            if tied is not None:
                found[id(query)] = tied
    return found


def _tied(query: exp.Select, select: exp.Select, number: Callable[[], int]) -> Tied | None:
    where = query.args.get("where")
    if where is None or any(value and part not in PLAIN for part, value in query.args.items()):
        return None
    if any(map(aggregates, query.expressions)):
        return None
    inside = {id(one) for one in query.find_all(exp.Select)}
    outer = {id(column): owner(column) for column in query.find_all(exp.Column) if id(owner(column)) not in inside}
    own: list[exp.Expr] = []
    ties: list[exp.Expr] = []
    for condition in conjuncts(where.this):
        (ties if any(id(column) in outer for column in condition.find_all(exp.Column)) else own).append(condition)
    reaching = {id(column) for condition in ties for column in condition.find_all(exp.Column)} & outer.keys()
    if not ties or reaching != outer.keys() or any(one is not select for one in outer.values()):
        return None
    if any(condition.find(exp.Query) is not None for condition in ties):
        return None
    tied = Tied(f"{LOOKED_FOR}{number()}", tuple(ties))
    names: dict[str, str] = {}
    items = []
    for column in [column for condition in ties for column in condition.find_all(exp.Column)]:
        if id(column) in outer:
            continue
        if text(column) not in names:
            taken = {folded(name) for name in names.values()}
            names[text(column)] = f"_k{len(names)}" if folded(column.name) in taken else column.name
            items.append(typed(exp.alias_(column.copy(), names[text(column)], quoted=True), column))
        column.replace(typed(exp.column(names[text(column)], tied.alias, quoted=True), column))
    query.set("expressions", items or [exp.alias_(exp.Literal.number(1), "_k0", quoted=True)])
    query.set("distinct", None)
    query.set("where", exp.Where(this=exp.and_(*own, copy=False)) if own else None)
    return tied
