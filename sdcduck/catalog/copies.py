"""Whether two tables that have nothing in common have the same records: one is a copy of the other.

That is looked up in the records: people who are in both, and have the same amounts there, or belong to the same groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from sdcduck.catalog.database import first_row
from sdcduck.catalog.relations import Kind, Policy
from sdcduck.quoting import folded, identifier

_ENOUGH, _MOST_OF = 20, 0.95
"""So many units have to be in both tables, and so large a part of them be alike: somebody may have corrected a few."""


def copied(con: duckdb.DuckDBPyConnection, one: Policy, mine: Kind, other: Policy, its: Kind) -> str | None:
    """A column that units of two relations share as records do that were copied; None: there is none.

    Amounts are compared whatever they are called, groups by columns of one name. All rows of one table may be in the
    other several times. Each table is read once.
    """
    groups = [(mine, its) for mine in one.dimensions for its in other.dimensions if folded(mine) == folded(its)]
    amounts = [(place, there) for place in range(len(one.measures)) for there in range(len(other.measures))]
    a = _units("a", one.name, mine.unit, one.measures, [ours for ours, _ in groups])
    b = _units("b", other.name, its.unit, other.measures, [theirs for _, theirs in groups])
    tried = [
        (one.measures[ours], _equal(f"a_v{ours}", f"b_v{theirs}"), f"count(DISTINCT a_v{ours}) >= 10")
        for ours, theirs in amounts
    ] + [
        (ours, f"a_g{place} IS NOT DISTINCT FROM b_g{place}", _is_mixed(place))
        for place, (ours, _) in enumerate(groups)
    ]
    if not tried:
        return None
    looked = " UNION ALL ".join(
        f"SELECT {place} AS place, {spread} AND count(*) >= {_ENOUGH} "
        f"AND count(*) FILTER (times = usual AND {alike}) >= {_MOST_OF} * count(*) AS is_copy FROM alike"
        for place, (_, alike, spread) in enumerate(tried)
    )
    try:
        row = first_row(
            con,
            f"WITH a AS MATERIALIZED {a}, b AS MATERIALIZED {b}, "
            "found AS MATERIALIZED (SELECT *, b_n / a_n AS times FROM a JOIN b USING (unit)), "
            "alike AS (SELECT *, (SELECT mode(times) FROM found) AS usual FROM found) "
            f"SELECT min(place) FROM ({looked}) WHERE is_copy",
        )
    except (duckdb.CatalogException, duckdb.BinderException):
        return None
    return None if row is None or row[0] is None else tried[row[0]][0]


def _units(side: str, name: str, unit: str, measures: Sequence[str], groups: Sequence[str]) -> str:
    """How many rows each unit has, of each measure the total, which cannot overflow, and the least of its groups."""
    columns = [f"fsum({identifier(measure)}::DOUBLE) AS {side}_v{place}" for place, measure in enumerate(measures)]
    columns += [f"min({identifier(column)})::VARCHAR AS {side}_g{place}" for place, column in enumerate(groups)]
    shown = ", ".join([f"{identifier(unit)}::VARCHAR AS unit", f"count(*) AS {side}_n", *columns])
    return f"(SELECT {shown} FROM {identifier(name)} GROUP BY 1)"


def _equal(ours: str, theirs: str) -> str:
    """Whether two totals are alike; added up in another order, or several times, they differ in their last digits."""
    once = f"{theirs} / times"
    return f"({ours} IS NOT DISTINCT FROM {once} OR abs({ours} - {once}) <= 1e-9 * abs({ours}))"


def _is_mixed(place: int) -> str:
    """Groups are alike by chance where nearly everybody is in one of them."""
    most = f"(SELECT max(k) / sum(k) FROM (SELECT count(*) AS k FROM b GROUP BY b_g{place}))"
    return f"count(DISTINCT a_g{place}) >= 2 AND {most} < 0.8"
