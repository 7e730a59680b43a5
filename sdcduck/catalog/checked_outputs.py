"""``sdc.outputs``: outputs that were checked, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import first_row, transaction
from sdcduck.errors import SDCError


@dataclass(frozen=True)
class Output:
    """An output that was checked.

    Attributes:
        name: of the output.
        kind: the check.
        checked: the call of the check, SQL.
        status: 'pass', 'review' or 'fail'.
        cells, failed, review: numbers of its cells.
        why: the rules that they failed, in words.
        fingerprint: SHA-256 of the call and of what it said of every cell.
        submitted_by: who asked.
        exception: why it should go though it does not pass.
        decision: 'approve', 'reject', or None.
        replaces: the fingerprint of what was submitted under this name before, where that was something else.
    """

    name: str
    kind: str
    checked: str
    status: str
    cells: int
    failed: int
    review: int
    why: str | None
    fingerprint: str
    submitted_by: str
    exception: str | None
    decision: str | None = None
    replaces: str | None = None


def outputs(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of all outputs."""
    return [row[0] for row in con.execute("SELECT name FROM sdc.outputs ORDER BY name").fetchall()]


def output(con: duckdb.DuckDBPyConnection, name: str) -> Output | None:
    """An output, if there is one of that name."""
    row = first_row(
        con,
        "SELECT name, kind, checked, status, cells, failed, review, why, fingerprint, submitted_by, exception, "
        "decision, replaces FROM sdc.outputs WHERE name = ?",
        [name],
    )
    return None if row is None else Output(*row)


def store_output(con: duckdb.DuckDBPyConnection, output: Output) -> None:
    """Store an output that is not decided, replacing one of the same name, all or nothing.

    Raises:
        SDCError: it was decided in the meantime.
    """
    with transaction(con):
        asked = "SELECT decision, fingerprint, replaces FROM sdc.outputs WHERE name = ?"
        decision, fingerprint, replaces = first_row(con, asked, [output.name]) or (None, output.fingerprint, None)
        if decision is not None:
            raise SDCError(f"output '{output.name}' is decided already")
        if fingerprint != output.fingerprint:
            replaces = fingerprint
        con.execute("DELETE FROM sdc.outputs WHERE name = ?", [output.name])
        con.execute(
            "INSERT INTO sdc.outputs BY NAME SELECT ? AS name, ? AS kind, ? AS checked, ? AS status, ? AS cells, "
            "? AS failed, ? AS review, ? AS why, ? AS fingerprint, ? AS submitted_by, ? AS exception, ? AS replaces, "
            "now()::TIMESTAMP AS submitted_at",
            [output.name, output.kind, output.checked, output.status, output.cells, output.failed, output.review,
             output.why, output.fingerprint, output.submitted_by, output.exception, replaces],
        )  # fmt: skip


def decide_output(
    con: duckdb.DuckDBPyConnection, seen: Output, decision: str, decided_by: str, reason: str | None
) -> None:
    """Write down what was decided of an output as it was seen, once.

    Raises:
        SDCError: it was decided, or is another one, in the meantime.
    """
    written = first_row(
        con,
        "UPDATE sdc.outputs SET decision = ?, decided_by = ?, reason = ?, decided_at = now()::TIMESTAMP "
        "WHERE name = ? AND decision IS NULL AND fingerprint = ?",
        [decision, decided_by, reason, seen.name, seen.fingerprint],
    )
    if written != (1,):
        raise SDCError(f"output '{seen.name}' was decided, dropped or submitted again in the meantime")


def drop_output(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove an output."""
    con.execute("DELETE FROM sdc.outputs WHERE name = ?", [name])
