"""How often rows of a unit stand in a block: once for each of the rows of other tables that they are joined with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, is_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Relation
from sdcduck.quoting import folded

_MOST_OF_A_TABLE, _MOST_OF_TABLES = 2, 3  # that have several rows of a unit, and are joined


def multiplying(select: exp.Select, sources: Mapping[str, Relation], units: Sequence[str]) -> tuple[str, ...]:
    """The relations of records whose rows tell all rows of a block apart: in the others there is one for each of them.

    ::

        FROM diagnoses d JOIN stays s ON s.stay_id = d.stay_id AND s.id = d.id

    Each diagnosis is of one stay, where each record of ``stays`` has a number of its own: rows of ``d`` are not
    repeated. Were that wrong, since records came after the policy was declared, some would be, and no number be wrong.
    """
    where = select.args.get("where")
    holds = [where.this] if where is not None else []
    of_one: dict[str, exp.Expr] = {}
    for join in select.args.get("joins") or []:
        on = join.args.get("on")
        if on is not None and not join.side and join.kind in ("", "INNER"):
            holds.append(on)
        elif on is not None and join.side == "LEFT" and join.kind in ("", "OUTER"):
            of_one[join.this.alias_or_name] = on  # which says what is found there, and nothing of other rows
    left = list(units)
    for alias in reversed(units):
        others = [one for one in left if one != alias]
        said = [*holds, *([of_one[alias]] if alias in of_one else [])]
        equalities = [part for one in said for part in conjuncts(one) if isinstance(part, exp.EQ)]
        if any(_finds_one(equality, alias, sources[alias], others) for equality in equalities):
            left = others
    return tuple(left)


def _finds_one(equality: exp.EQ, alias: str, relation: Relation, others: Sequence[str]) -> bool:
    """Whether an equality finds at most one row of a relation for rows of others."""
    sides = (equality.this, equality.expression)
    return any(
        isinstance(mine, exp.Column)
        and mine.table == alias
        and folded(mine.name) in relation.identifying
        and is_of(other, others)
        for mine, other in (sides, reversed(sides))
    )


def refuse_multiplied(rows_of: Sequence[str]) -> None:
    """Refuse rows of a unit that are joined with each other again and again.

    A unit with nine rows would have 387 million behind eight joins: how long that takes, or that it takes too long,
    would tell that there is such a unit. And each number of rows would be another question with another noise.
    """
    often = max(map(list(rows_of).count, rows_of), default=0)
    if often > _MOST_OF_A_TABLE or len(rows_of) > _MOST_OF_TABLES:
        raise Refused("SDC033", "rows of one unit joined with each other again and again: GROUP BY the unit first")
