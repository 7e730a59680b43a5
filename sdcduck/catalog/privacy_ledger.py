"""``sdc.dp_releases`` and ``sdc.dp_budgets``: what differentially private releases cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import first_row, is_read_only, transaction
from sdcduck.errors import SDCError


@dataclass(frozen=True)
class PrivateRelease:
    """A differentially private release.

    Attributes:
        data: what it reads: tables, as the ledger names them.
        neighbours: 'add_remove' or 'replace'.
        epsilon: what it costs under this relation.
        what: was drawn, in words.
        source: as it stood in the call.
        delta: what it costs beside epsilon.
        rho: its zero-concentrated privacy, where that is less than follows from epsilon.
    """

    data: tuple[str, ...]
    neighbours: str
    epsilon: float
    what: str
    source: str
    delta: float = 0.0
    rho: float | None = None


_LEDGER = threading.Lock()
"""Only one process writes to a database; of its threads two could find the same budget left."""
_ROUNDING = 1e-9
"""Of a budget: three thirds are certified as a little more than one."""


def check_private_release(con: duckdb.DuckDBPyConnection, release: PrivateRelease) -> None:
    """Refuse a release that costs more than what is left of a budget, or whose cost could not be written down.

    Raises:
        SDCError: it is refused.
    """
    if is_read_only(con):
        raise SDCError("what a private release costs is written down in the database, which is open for reading only")
    for data in release.data:
        row = first_row(
            con,
            "SELECT b.neighbours, b.epsilon, coalesce((SELECT sum(_sdc_dp_cost(r.epsilon, r.neighbours, b.neighbours)) "
            "FROM sdc.dp_releases r WHERE r.data = b.data), 0), _sdc_dp_cost(?, ?, b.neighbours), b.delta, "
            "coalesce((SELECT sum(_sdc_dp_delta(r.epsilon, r.delta, r.neighbours, b.neighbours)) "
            "FROM sdc.dp_releases r WHERE r.data = b.data), 0), _sdc_dp_delta(?, ?, ?, b.neighbours) "
            "FROM sdc.dp_budgets b WHERE b.data = ?",
            [release.epsilon, release.neighbours, release.epsilon, release.delta, release.neighbours, data],
        )
        if row is None:
            continue
        neighbours, budget, spent, cost, *deltas = row
        if not spent + cost <= budget * (1 + _ROUNDING):
            why = (
                "it would tell the exact number of records, which that relation protects"
                if cost == float("inf")
                else f"it would cost {cost:.6g} more"
            )
            raise SDCError(
                f"the releases of '{data}' may cost {budget:.6g} together under neighbours := '{neighbours}', and have "
                f"cost {spent:.6g}; {why} (see sdc_synth_dp_ledger, sdc_synth_dp_budget)"
            )
        allowed, gone, more = deltas
        if not gone + more <= allowed * (1 + _ROUNDING):
            raise SDCError(
                f"the releases of '{data}' may cost a delta of {allowed:.6g} together under neighbours := "
                f"'{neighbours}', and have cost {gone:.6g}; it would cost {more:.6g} more (see sdc_synth_dp_ledger, "
                "sdc_synth_dp_budget)"
            )


def charge_private_release(con: duckdb.DuckDBPyConnection, release: PrivateRelease) -> None:
    """Write down what a release costs, unless a budget does not allow it; to be called before its noise is drawn.

    Raises:
        SDCError: it is refused.
    """
    with _LEDGER, transaction(con):
        check_private_release(con, release)
        con.execute(
            "INSERT INTO sdc.dp_releases BY NAME SELECT "
            "(SELECT coalesce(max(release), 0) + 1 FROM sdc.dp_releases) AS release, unnest(?::VARCHAR[]) AS data, "
            "? AS neighbours, ? AS epsilon, ? AS what, ? AS source, now()::TIMESTAMP AS charged_at, ? AS delta, "
            "? AS rho",
            [
                list(release.data),
                release.neighbours,
                release.epsilon,
                release.what,
                release.source,
                release.delta,
                release.rho,
            ],
        )


def set_private_budget(
    con: duckdb.DuckDBPyConnection, data: str, neighbours: str, epsilon: float | None, delta: float = 0.0
) -> None:
    """Give a table a budget, in the place of the one that it had; None: it has none."""
    with _LEDGER, transaction(con):
        con.execute("DELETE FROM sdc.dp_budgets WHERE data = ?", [data])
        if epsilon is not None:
            con.execute("INSERT INTO sdc.dp_budgets VALUES (?, ?, ?, ?)", [data, neighbours, epsilon, delta])
