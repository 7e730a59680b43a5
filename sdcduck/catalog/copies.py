"""Whether two tables that have nothing in common have the same records: one is a copy of the other.

That is looked up in the records: people who are in both, and have the same amounts there, or belong to the same groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from sdcduck.catalog.database import first_row
from sdcduck.catalog.relations import Kind, Policy
from sdcduck.quoting import folded, identifier

_ENOUGH, _MOST_OF = 20, 0.95
"""So many units have to be in both tables, and so large a part of them be alike: somebody may have corrected a few."""


def copied(con: duckdb.DuckDBPyConnection, one: Policy, mine: Kind, other: Policy, its: Kind) -> str | None:
    """A column that units of two relations share as records do that were copied; None: there is none.

    Amounts are compared whatever they are called, groups by columns of one name.
    """
    for ours, theirs in _pairs(one, other):
        is_amount = ours in one.measures
        added = "sum({})::DOUBLE" if is_amount else "min({})::VARCHAR"
        units = [
            f"(SELECT {identifier(kind.unit)}::VARCHAR AS unit, count(*) AS n, "
            f"{added.format(identifier(column))} AS value FROM {identifier(name)} GROUP BY 1)"
            for name, kind, column in ((one.name, mine, ours), (other.name, its, theirs))
        ]
        # Groups are alike by chance where nearly everybody is in one of them.
        by_chance = "0" if is_amount else "(SELECT max(k) FROM (SELECT count(*) AS k FROM b GROUP BY value)) / count(*)"
        different = 10 if is_amount else 2
        alike = "a.n = b.n AND a.value IS NOT DISTINCT FROM b.value"
        try:
            row = first_row(
                con,
                f"WITH a AS MATERIALIZED {units[0]}, b AS MATERIALIZED {units[1]} "
                f"SELECT count(*) >= {_ENOUGH} AND count(DISTINCT a.value) >= {different} "
                f"AND count(*) FILTER ({alike}) >= {_MOST_OF} * count(*) AND {by_chance} < 0.8 "
                "FROM a JOIN b USING (unit)",
            )
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.OutOfRangeException):
            continue
        if row is not None and row[0]:
            return ours
    return None


def _pairs(one: Policy, other: Policy) -> Iterator[tuple[str, str]]:
    yield from ((mine, its) for mine in one.measures for its in other.measures)
    yield from ((mine, its) for mine in one.dimensions for its in other.dimensions if folded(mine) == folded(its))
