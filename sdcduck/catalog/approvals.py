"""``sdc.approvals``: what was made to leave the house, and who approved which numbers of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import duckdb

from sdcduck.catalog.database import first_row
from sdcduck.catalog.publications import cells_table
from sdcduck.quoting import folded, identifier, literal

MARK = "Release:"
"""How the comment of a table begins that is to leave the house."""


@dataclass(frozen=True)
class Release:
    """What was made to leave the house.

    Attributes:
        name: of the publication or the table.
        kind: 'publication' or 'table'.
    """

    name: str
    kind: str

    @property
    def cells(self) -> str:
        """The quoted name of the table that holds its numbers."""
        return cells_table(self.name) if self.kind == "publication" else f"main.{identifier(self.name)}"


@dataclass(frozen=True)
class Approval:
    """Somebody approved the numbers of a release.

    Attributes:
        name: of the release.
        fingerprint: of the numbers.
        approved_by: who.
        approved_at: when, in UTC.
        note: what was said.
    """

    name: str
    fingerprint: str
    approved_by: str
    approved_at: datetime
    note: str | None


def releases(con: duckdb.DuckDBPyConnection) -> list[Release]:
    """All of them, by name: publications that were published, and tables whose comment says that they are to leave."""
    rows = con.execute(
        f"""SELECT p.name, 'publication' AS kind FROM sdc.publications p WHERE p.arguments IS NOT NULL
        UNION ALL
        SELECT table_name, 'table' FROM duckdb_tables()
        WHERE database_name = current_database() AND schema_name = 'main' AND starts_with(comment, {literal(MARK)})
        ORDER BY 1, 2"""
    ).fetchall()
    return [Release(*row) for row in rows]


def numbers_of(con: duckdb.DuckDBPyConnection, release: Release) -> tuple[int, str]:
    """How many rows a release has, and their fingerprint, in whatever order they are stored."""
    columns = {folded(one[0]) for one in con.execute(f"FROM {release.cells} LIMIT 0").description or ()}
    whole = "_row"
    while whole in columns:  # a column would be taken for the row, and the others could change unseen
        whole += "_"
    row = first_row(
        con,
        # A line of JSON has no line break; as bytes they have one order, whatever the collation.
        "SELECT count(*), coalesce(string_agg(line, chr(10) ORDER BY encode(line)), '') "
        f"FROM (SELECT to_json({whole})::VARCHAR AS line FROM {release.cells} {whole})",
    )
    assert row is not None
    return int(row[0]), sha256(str(row[1]).encode()).hexdigest()  # DuckDB's own takes longer than the rest


def approvals(con: duckdb.DuckDBPyConnection) -> list[Approval]:
    """All approvals, the first ones first."""
    try:
        rows = con.execute(
            "SELECT name, fingerprint, approved_by, approved_at, note FROM sdc.approvals ORDER BY approved_at, name"
        ).fetchall()
    except duckdb.CatalogException:  # a file of an older version that is open for reading only
        return []
    return [Approval(*row) for row in rows]


def approvals_of(stored: list[Approval], release: Release) -> list[Approval]:
    """Those of one release, whatever the case of its letters."""
    return [one for one in stored if folded(one.name) == folded(release.name)]


def store_approval(
    con: duckdb.DuckDBPyConnection, name: str, fingerprint: str, approved_by: str, note: str | None
) -> None:
    """Write down who approved what; now."""
    con.execute(
        "INSERT INTO sdc.approvals SELECT ?, ?, ?, (now() AT TIME ZONE 'UTC')::TIMESTAMP, ?",
        [name, fingerprint, approved_by, note],
    )
