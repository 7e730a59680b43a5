"""Whether relations have records that the same people see under another policy, with other noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import duckdb

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded


class OneNoise:
    """Looks once, and again when a policy or a view changes, or the number of records; with the connection held.

    Args:
        con: the guard's own connection.
        unchanging: nobody can change the database.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, *, unchanging: bool) -> None:
        self._con, self._unchanging = con, unchanging
        self._seen: tuple[object, set[str]] = (None, set())

    def forget(self, name: str) -> None:
        """Look at a relation again."""
        self._seen[1].discard(name)

    def check(
        self, policies: Sequence[Policy], held: Mapping[str, Policy], version: str, tables: Collection[str]
    ) -> None:
        """Refuse relations that have records of others under another policy, as a view that was replaced.

        Args:
            held: all policies that hold, by folded name.
            version: another one when they changed.
            tables: the folded names of what is no view.

        Raises:
            Refused: one has.
        """
        protected = {name for name, policy in held.items() if policy.label == "unit-level"}
        if len(protected) < 2 or protected <= set(tables):
            return  # no two tables have a record in common
        views = [] if self._unchanging else self._con.execute(_VIEWS).fetchall()
        if self._seen[0] != (version, views):
            self._seen = ((version, views), set())
        for name in (folded(policy.name) for policy in policies):
            own = held.get(name)
            if own is None or own.label != "unit-level" or own.name in self._seen[1]:
                continue
            found = catalog.open_in_role(self._con, own, dict(held))
            if found is not None:
                other = f"{found.other} has the same records with another policy or other keys, sdc_protect"
                raise Refused("SDC060", f"{own.name}: {other}")
            self._seen[1].add(own.name)


_VIEWS = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
