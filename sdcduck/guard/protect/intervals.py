"""Joins with the interval that a value lies in: bands of ages, periods of rates.

::

    FROM people JOIN bands ON age >= bands.low AND age < bands.high

A record finds one row at most if no two intervals overlap, which is looked up when the question is asked: intervals are
public. Two conditions say that an interval is meant, one for each border; with one alone a record would find many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sdcduck.guard.expressions import is_of

_LARGER = (exp.GT, exp.GTE)
_COMPARED = (*_LARGER, exp.LT, exp.LTE)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}


@dataclass(frozen=True)
class Border:
    """One border of an interval.

    Attributes:
        border: the column of the relation that is joined.
        value: what lies in the interval.
        is_lower: whether values are above it.
        has_border: whether the border is in the interval.
    """

    border: exp.Column
    value: exp.Expr
    is_lower: bool
    has_border: bool


def border_of(node: exp.Expr, alias: str) -> Border | None:
    """What a comparison of a column of a relation with something of others says; None: it is none.

    >>> from sqlglot import condition
    >>> found = border_of(condition("bands.high > people.age"), "bands")
    >>> str(found.border), str(found.value), found.is_lower, found.has_border
    ('bands.high', 'people.age', False, False)
    """
    if not isinstance(node, _COMPARED):
        return None
    kind: type[exp.Expr] = type(node)
    border, value = node.expression, node.this
    if not isinstance(border, exp.Column) or border.table != alias:
        border, value, kind = value, border, _MIRRORED[kind]
    of = {column.table for column in value.find_all(exp.Column)}
    if not isinstance(border, exp.Column) or border.table != alias or alias in of or not is_of(value, [*of]):
        return None
    return Border(border, value, kind in _LARGER, kind in (exp.GTE, exp.LTE))


def in_two(conditions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Conditions, with BETWEEN of two columns as the two comparisons that it is.

    >>> from sqlglot import condition
    >>> [str(part) for part in in_two([condition("a BETWEEN b AND c"), condition("a BETWEEN 1 AND c")])]
    ['a >= b', 'a <= c', 'a BETWEEN 1 AND c']
    """
    found: list[exp.Expr] = []
    for node in conditions:
        borders = [node.args.get("low"), node.args.get("high")] if isinstance(node, exp.Between) else []
        if not borders or node.args.get("symmetric") or not all(isinstance(b, exp.Column) for b in borders):
            found.append(node)
            continue
        low, high = borders
        found += [exp.GTE(this=node.this, expression=low), exp.LTE(this=node.this.copy(), expression=high)]
    return found


def interval_ties(conditions: Sequence[exp.Expr], alias: str, placed: Sequence[str]) -> list[exp.Expr]:
    """The comparisons that look up a value of the relations before in an interval; none where there is one border."""
    borders = [(part, border) for part in conditions if (border := border_of(part, alias)) is not None]
    mine = [(part, border) for part, border in borders if is_of(border.value, placed)]
    return [part for part, _ in mine] if {border.is_lower for _, border in mine} == {True, False} else []
