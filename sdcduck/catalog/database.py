"""What is asked of any connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from sdcduck.errors import SDCError
from sdcduck.quoting import folded


def first_row(con: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, or None; the connection is free again afterwards (`fetchone` leaves it busy)."""
    rows = con.execute(sql, list(parameters)).fetchall()
    return rows[0] if rows else None


@contextmanager
def transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All that is written within it, or nothing.

    Where DuckDB has given the transaction up by itself, as on a full disk, the error is still the one that says why.
    """
    con.begin()
    try:
        yield
        con.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):
            con.rollback()
        raise


HIDDEN = "_sdcduck"
"""A database in memory, which all connections to a database see."""


def attach_hidden(con: duckdb.DuckDBPyConnection, name: str = HIDDEN) -> None:
    """Have the hidden database, or another one like it."""
    con.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {name} (HIDDEN, READ_WRITE)")


def current_database(con: duckdb.DuckDBPyConnection) -> str:
    """The name of the database that a connection works in."""
    row = first_row(con, "SELECT current_database()")
    assert row is not None
    return str(row[0])


def check_name(con: duckdb.DuckDBPyConnection) -> None:
    """Refuse a database that is called as its schema is in which everything is stored: DuckDB takes sdc.x for neither.

    Raises:
        SDCError: it is.
    """
    if folded(current_database(con)) == "sdc":
        raise SDCError(
            "the database is called sdc, as the schema in which sdcduck keeps what it knows: give the file another name"
        )


def is_read_only(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database is open for reading only."""
    row = first_row(con, "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()")
    return row is not None and bool(row[0])


def cannot_change(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether nobody can change what is read while the database is open: it is read-only, and no view reads files."""
    if not is_read_only(con):
        return False
    own = "rtrim(current_setting('temp_directory'), '/') || '/'"
    row = first_row(
        con,
        f"""SELECT (current_setting('enable_external_access') OR len(list_filter(current_setting('allowed_directories'),
            lambda folder: folder NOT IN ({own}))) > 0)
            AND EXISTS (FROM duckdb_views() WHERE NOT internal AND schema_name <> 'sdc')""",
    )
    return row is not None and not row[0]


def file_of(con: duckdb.DuckDBPyConnection) -> Path | None:
    """The file of the database that a connection works in; None: it is in memory alone."""
    row = first_row(con, "SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    return Path(row[0]).absolute() if row is not None and row[0] else None
