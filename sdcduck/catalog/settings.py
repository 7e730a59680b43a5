"""``sdc.settings``: names and values."""

from __future__ import annotations

import duckdb

from sdcduck.catalog.database import first_row


def setting(con: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """A stored setting, or None."""
    row = first_row(con, "SELECT value FROM sdc.settings WHERE name = ?", [name])
    return None if row is None else str(row[0])


def set_setting(con: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    """Store a setting."""
    con.execute("DELETE FROM sdc.settings WHERE name = ?", [name])
    con.execute("INSERT INTO sdc.settings VALUES (?, ?)", [name, value])
