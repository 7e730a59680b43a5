"""Tables of the same units under differential privacy, joined on them: one table, of which a unit has as many rows.

::

    people p JOIN visits v ON v.person_id = p.person_id

    (SELECT _0.person_id, _0.region, _1.cost FROM (the people) AS _0 JOIN (the visits that are looked at) AS _1
        ON _0.person_id = _1.person_id)

Each row of it is of one unit and made of the rows of this unit alone, so that who is replaced, or comes, or goes,
changes no row of anybody else. Of a unit there are as many rows at most as those that are looked at in each table,
multiplied: behind LEFT JOIN too, where one row stands for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sdcduck.catalog import Policy
from sdcduck.quoting import folded, identifier


@dataclass(frozen=True)
class Side:
    """One of the tables.

    Attributes:
        policy: of it.
        columns: of each of its dimensions and measures the name here, and that in the joined table.
        there: the column of the joined table that says whether there is a row of this one; empty: there always is.
    """

    policy: Policy
    columns: tuple[tuple[str, str], ...]
    there: str = ""

    def called(self, name: str) -> str:
        """What one of its columns is called in the joined table."""
        return dict(self.columns)[name]


@dataclass(frozen=True)
class JoinedPolicy(Policy):
    """What analysts may ask about several tables that are joined on the unit."""

    sides: tuple[Side, ...] = ()

    def source(self, of: Callable[[Policy], str]) -> str:
        """The SQL of the joined table.

        Args:
            of: the SQL of the records of one table that are looked at.
        """
        first, unit = self.sides[0], identifier(str(self.sides[0].policy.unit))
        shown, tables = [f"_0.{unit}"], [f"{of(first.policy)} AS _0"]
        for place, side in enumerate(self.sides):
            its = f"_{place}.{identifier(str(side.policy.unit))}"
            shown += [f"_{place}.{identifier(name)} AS {identifier(called)}" for name, called in side.columns]
            if side.there:
                shown.append(f"{its} IS NOT NULL AS {identifier(side.there)}")
            if place:
                kind = "LEFT JOIN" if side.there else "JOIN"
                tables.append(f"{kind} {of(side.policy)} AS _{place} ON _0.{unit} = {its}")
        return f"(SELECT {', '.join(shown)} FROM {' '.join(tables)})"


def joined_policy(name: str, tables: Sequence[tuple[Policy, bool]]) -> JoinedPolicy:
    """The policy of a joined table.

    Args:
        name: of it.
        tables: the policies, and whether there may be no row of the table, as behind LEFT JOIN; of the first there is.
    """
    first = tables[0][0]
    taken = {folded(str(first.unit))}
    sides = []
    for policy, is_left in tables:
        columns = []
        for column in (*policy.dimensions, *policy.measures):
            columns.append((column, _free(column, f"{policy.name}.{column}", taken)))
        there = _free(f"in {policy.name}", f"is in {policy.name}", taken) if is_left else ""
        sides.append(Side(policy, tuple(columns), there))
    privacy = first.privacy
    known = tuple((side.called(of), *rest) for side in sides for of, *rest in side.policy.privacy.domains)
    there_or_not = tuple((side.there, "BOOLEAN", ("false", "true")) for side in sides if side.there)
    rows = math.prod(side.policy.privacy.contributions for side in sides)
    return JoinedPolicy(
        **{
            **{field: getattr(first, field) for field in Policy.__dataclass_fields__},
            "name": name,
            "dimensions": _of(sides, lambda policy: policy.dimensions) + tuple(name for name, *_ in there_or_not),
            "measures": _of(sides, lambda policy: policy.measures),
            "one_row_per_unit": rows == 1,
            "bounds": tuple((side.called(of), ends) for side in sides for of, ends in side.policy.bounds),
            "privacy": replace(
                privacy,
                domains=cast("tuple[tuple[str, str, tuple[str, ...]], ...]", known) + there_or_not,
                contributions=rows,
                private=_of(sides, lambda policy: policy.privacy.private),
                days=cast(
                    "tuple[tuple[str, str, str, str], ...]",
                    tuple((side.called(of), *rest) for side in sides for of, *rest in side.policy.privacy.days),
                ),
            ),
        },
        sides=tuple(sides),
    )  # fmt: skip


def _of(sides: Sequence[Side], names: Callable[[Policy], Sequence[str]]) -> tuple[str, ...]:
    return tuple(side.called(name) for side in sides for name in names(side.policy))


def _free(name: str, otherwise: str, taken: set[str]) -> str:
    """A name that no other column has."""
    found = name if folded(name) not in taken else otherwise
    while folded(found) in taken:
        found += "'"
    taken.add(folded(found))
    return found
