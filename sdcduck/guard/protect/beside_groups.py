"""Subqueries that name a group: they are worked out beside the answer, for each of its rows.

::

    SELECT region, count(*) / (SELECT pop FROM regions WHERE regions.region = p.region) AS rate
    FROM people p GROUP BY region

    SELECT b.region, b._a0 / (SELECT pop FROM regions WHERE regions.region = b.region) AS rate
    FROM (SELECT p.region, count(*) AS _a0 FROM people p GROUP BY p.region) AS b

What such a subquery names are group keys, which are published beside the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sdcduck.guard.protect.around_groups import AroundGroups, columns_of_subqueries, grouped_by

BESIDE = "_sdc_b"
"""What groups are called that subqueries stand beside."""


def ask_beside_groups(select: exp.Select, number: Callable[[], int]) -> None:
    """Put the groups of a SELECT over records into a subquery of its own where subqueries name them, in place.

    Args:
        select: its names in full.
        number: gives another number for a name.
    """
    if select.args.get("group") is None:
        return
    named = columns_of_subqueries(select)
    group = grouped_by(select) if named else None
    if group is None:
        return
    around = AroundGroups(select, group, f"{BESIDE}{number()}")
    if all(map(around.has, named)):
        around.put(around.taken_out())
