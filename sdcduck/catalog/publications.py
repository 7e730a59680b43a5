"""``sdc.publications``: publications, with the tables of their cells and of their inner cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import first_row, transaction
from sdcduck.catalog.settings import set_setting, setting
from sdcduck.errors import unknown
from sdcduck.quoting import folded, folded_sql, identifier, literal


@dataclass(frozen=True)
class StoredPublication:
    """A publication that the catalog holds.

    Attributes:
        name: under which functions find it.
        query: the SELECT.
        arguments: JSON, how it was suppressed; None: it was only named, not published.
        fingerprint: of the inner cells it was published from.
    """

    name: str
    query: str
    arguments: str | None
    fingerprint: str | None


def publication(con: duckdb.DuckDBPyConnection, name: str) -> StoredPublication:
    """A stored publication, under the name that it was stored under last, whatever the case of its letters: its tables
    have the same names then.

    Raises:
        SDCError: there is none of that name.
    """
    stored = publications(con)
    for one in stored:
        if folded(one.name) == folded(name):
            return one
    raise unknown("publication", name, [one.name for one in stored])


def publications(con: duckdb.DuckDBPyConnection) -> list[StoredPublication]:
    """All stored publications, by name."""
    rows = con.execute("SELECT name, query, arguments, fingerprint FROM sdc.publications ORDER BY name").fetchall()
    return [StoredPublication(*row) for row in rows]


def store_publication(
    con: duckdb.DuckDBPyConnection,
    name: str,
    query: str,
    arguments: str | None = None,
    fingerprint: str | None = None,
) -> None:
    """Store a publication, replacing one of the same name."""
    con.execute(_DELETE_PUBLICATION, [folded(name)])
    con.execute("INSERT INTO sdc.publications VALUES (?, ?, ?, ?)", [name, query, arguments, fingerprint])


_DELETE_PUBLICATION = f"DELETE FROM sdc.publications WHERE {folded_sql('name')} = ?"
EXPORT = "readme"
EXPORT_SAYS = "What the tables of this file are, with a query on each (made by sdc_export)"
"""The table of an exported file that says what is in it, and its comment, by which such a file is known."""


def is_export(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database is a file that `sdc_export` made."""
    row = first_row(
        con,
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        f"AND table_name = {literal(EXPORT)} AND comment = {literal(EXPORT_SAYS)}",
    )
    return row is not None and bool(row[0])


def cells_table(name: str) -> str:
    """The quoted name of the table that holds the cells of a publication as published."""
    return f"sdc.{identifier(name + '_cells')}"


def stencil_table(name: str) -> str:
    """The quoted name of the table that holds the inner cells of a publication with their stencil."""
    return f"sdc.{identifier(name + '_stencil')}"


def stencil_digest_query(name: str, columns: Iterable[str]) -> str:
    """SQL of the fingerprint of the stored inner cells of a publication, stencil and all: another once one is another.

    Args:
        columns: of the publication.
    """
    listed = ", ".join(map(identifier, (*columns, "stencil")))
    return f"SELECT count(*) || ' ' || coalesce(sum(hash({listed})), 0) FROM {stencil_table(name)}"


def note_stencil(con: duckdb.DuckDBPyConnection, name: str, columns: Iterable[str]) -> None:
    """Store that fingerprint; within the transaction that stores the inner cells."""
    row = first_row(con, stencil_digest_query(name, columns))
    assert row is not None
    set_setting(con, _stencil_of(name), str(row[0]))


def stencil_digest(con: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """That fingerprint as it was stored; None: an older version published."""
    return setting(con, _stencil_of(name))


def _stencil_of(name: str) -> str:
    return f"stencil {folded(name)}"


def drop_publication(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a publication with its tables; all or nothing."""
    with transaction(con):
        con.execute(_DELETE_PUBLICATION, [folded(name)])
        con.execute("DELETE FROM sdc.settings WHERE name = ?", [_stencil_of(name)])
        con.execute(f"DROP TABLE IF EXISTS {cells_table(name)}")
        con.execute(f"DROP TABLE IF EXISTS {stencil_table(name)}")
