"""UNION, INTERSECT and EXCEPT of records of one population: records again, of the units that their rows had.

::

    SELECT what, count(DISTINCT id) FROM (
        SELECT id, 'visit' AS what FROM visits UNION ALL SELECT id, 'stay' FROM stays
    ) GROUP BY what

    .. WHERE id IN (SELECT id FROM visits INTERSECT SELECT id FROM stays)

With UNION ALL a unit has the rows of both sides, which are of different tables, so that no record is there twice. Where
rows are compared with each other they have the unit in them and no measure, so that no row of one unit decides whether
one of another is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import family, is_wide
from sdcduck.guard.methods import method_class
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.inner_cells import refuse_beside_others
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label, Relation, Role
from sdcduck.quoting import folded


def agreed(policies: Sequence[Policy]) -> Policy:
    """The policy that records of several tables are answered under: the first, as strict as any of them.

    Raises:
        Refused: they are of different units, of several kinds of them, or protected in different ways.
    """
    refuse_beside_others(policies)
    first = policies[0]
    if len(policies) > 1 and any(policy.kinds for policy in policies):
        raise Refused("SDC035", _OF_KINDS)
    for other in policies[1:]:
        alike = (first.method, first.ptable, first.magnitude_ptable, first.base, first.publication)
        alone = first.population is None or first.population != other.population
        if method_class(first).from_cells:
            raise Refused("SDC035", "a publication has cells, and no units")
        if alone and folded(first.name) != folded(other.name):
            raise Refused("SDC035", "records of different units")
        if alike != (other.method, other.ptable, other.magnitude_ptable, other.base, other.publication):
            raise Refused("SDC035", "tables protected in different ways")
    return replace(first, min_units=max(policy.min_units for policy in policies))


_OF_KINDS = (
    "records with several kinds of units, beside other records: what one person has elsewhere may come from another "
    "firm; a view of both, with all its units, can be protected"
)


def together(node: exp.SetOperation, left: Relation, right: Relation) -> Relation:
    """The relation of a set operation of records.

    Raises:
        Refused: the sides are not both records of the same units, or their columns are not of one kind.
    """
    if left.label is not Label.UNIT or right.label is not Label.UNIT:
        raise Refused("SDC043", "records beside what is none")
    assert left.policy is not None
    assert right.policy is not None
    if method_class(left.policy).from_cells:
        raise Refused("SDC043", "a publication has cells, and no records: add up the answers")
    policy = agreed([left.policy, right.policy])
    if node.args.get("by_name") or any(node.args.get(part) for part in ("on", "limit", "offset", "order")):
        raise Refused("SDC043", "BY NAME, ORDER BY or LIMIT of records")
    sides = [
        [item for item in side.selects if not item.alias_or_name.startswith(CARRIED)]
        for side in (node.this, node.expression)
    ]
    if len(sides[0]) != len(sides[1]) or left.added or right.added:
        raise Refused("SDC043", "different columns, or sums that units have")
    roles: dict[str, Role] = {}
    measures: dict[str, str] = {}
    missing: set[str] = set()
    for place, (one, other) in enumerate(zip(*sides, strict=True)):
        name, beside = folded(one.alias_or_name), folded(other.alias_or_name)
        ours, theirs = (_values(side, place) for side in (node.this, node.expression))
        roles[name] = _role(left, name if ours else None, right, beside if theirs else None)
        if not all(are_of_one_type(*pair) for pair in pairwise([*ours, *theirs])):
            raise Refused("SDC043", f"{name}: columns of different types; cast one")
        if roles[name] is Role.MEASURE:
            measures[name] = left.measures[name] if ours else right.measures[beside]
        if name in left.missing or beside in right.missing:
            missing.add(name)
    rows_of = max(left.rows_of, right.rows_of, key=len) or (folded(policy.name),)
    of_units = set(roles.values()) == {Role.UNIT}
    if isinstance(node, exp.Union) and of_units and _is_looked_in(node):
        node.set("distinct", True)
    if not (isinstance(node, exp.Union) and not node.args.get("distinct")):
        _refuse_compared(node, roles, missing)
        if of_units:
            rows_of = ()
    if isinstance(node, exp.Union) and not (of_units and node.args.get("distinct")):
        _refuse_repeated(policy, left.tables, right.tables)
    policy = replace(policy, one_row_per_unit=not rows_of)
    return Relation(
        Label.UNIT, frozenset(roles), roles, policy, rows_of=rows_of, tables=left.tables | right.tables,
        missing=frozenset(missing), measures=measures,
    )  # fmt: skip


def _values(side: exp.Expr, place: int) -> list[exp.Expr]:
    """What one column of a set operation is in each of its sides; where it is NULL, it is nothing."""
    if isinstance(side, exp.SetOperation):
        return _values(side.this, place) + _values(side.expression, place)
    inner = side.unnest()
    if isinstance(inner, exp.SetOperation):
        return _values(inner, place)
    value = inner.selects[place].unalias() if isinstance(inner, exp.Query) else inner
    return [] if isinstance(value, exp.Null) else [value]


def _role(left: Relation, name: str | None, right: Relation, beside: str | None) -> Role:
    """The role of a column; a name that is None: it is NULL in all rows of that side."""
    found = [(left, name), (right, beside)]
    roles = {relation.roles[column] for relation, column in found if column is not None}
    if Role.MEASURE in roles:
        # One measure has one noise: what has another name is another one.
        called = {relation.measures.get(column) for relation, column in found if column is not None}
        if roles != {Role.MEASURE} or len(called) > 1:
            raise Refused("SDC043", f"{name or beside}: a measure, and something else: add up each by itself")
        return Role.MEASURE
    if Role.UNIT in roles:
        if roles != {Role.UNIT} or name is None or beside is None:
            raise Refused("SDC043", f"{name or beside}: the unit, and something else")
        return Role.UNIT
    return Role.DIMENSION if roles == {Role.DIMENSION} and name and beside else Role.COMPUTED


def _is_looked_in(node: exp.Expr) -> bool:
    """Whether units are only looked for in this: ``id IN (SELECT id .. UNION ALL SELECT id ..)``."""
    parent = node.parent
    while isinstance(parent, (exp.SetOperation, exp.Subquery)) and not parent.alias:
        node, parent = parent, parent.parent
    return isinstance(parent, exp.In) and node.arg_key == "query"


def _refuse_repeated(policy: Policy, left: frozenset[str], right: frozenset[str]) -> None:
    """Refuse to repeat records where numbers are not exact.

    Rounded to 5, five copies of the records of n units are 5 n rows: they say n. With noise, each number of copies
    would have a sum with other digits left off, and two copies a count with another noise than one.
    """
    method = method_class(policy)
    if method.shows == "rounded":
        raise Refused("SDC043", "rows of a unit that come together, where rows are rounded: UNION of the units alone")
    if (method.from_cells or method.shows != "exact") and (not left or not right or left & right):
        twice = ", ".join(sorted(left & right))
        raise Refused(
            "SDC043", f"{twice}: records that may be there twice; ask with OR, or CASE, or UNION of the units"
        )


def _refuse_compared(node: exp.SetOperation, roles: dict[str, Role], missing: set[str]) -> None:
    """Refuse to compare rows that have no unit, or measures."""
    if not node.args.get("distinct"):
        raise Refused("SDC043", "INTERSECT ALL or EXCEPT ALL of records")
    known = {name for name, role in roles.items() if role is Role.UNIT} - missing
    if not known or missing or Role.MEASURE in roles.values():
        raise Refused("SDC043", "rows compared without their unit, or by measures: UNION ALL, or SELECT the unit, too")


def are_of_one_type(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether the columns become one without a cast that could fail."""
    kinds = (family(one), family(other))
    if None in kinds or kinds[0] != kinds[1]:
        return False
    return one.type == other.type or (kinds[0] != "decimal" and not (is_wide(one) or is_wide(other)))
