"""Putting the SQL functions on a DuckDB connection: `connect`, `install`, `uninstall`, and the secret.

The pure-SQL functions are stored in the database (they work in any DuckDB shell that opens the file later); functions
that call Python are temporary macros of the connection. `install` may be called as often as one likes.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import weakref
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.registry import Family, create_functions
from sdcduck.udfs import perturbation, reference

FAMILIES: tuple[Family, ...] = (perturbation.FAMILY, reference.FAMILY)

_VERSION = version("sdcduck")
_STORAGE = "v1.0.0"  # files of this storage version open in DuckDB 1.0 and later, also in a 1.5 shell
_OLDEST_DUCKDB = (1, 5)


class DatabaseSession:
    """What the Python functions of one database share: a way to get cursors, and the secret.

    DuckDB keeps the functions as long as the database is open, so the session holds the user's connections weakly:
    closing them closes the database and releases the file.
    """

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self.functions: list[str] = []
        self._connections: list[weakref.ref[duckdb.DuckDBPyConnection]] = []
        self._secret: bytes | None = None

    def add(self, con: duckdb.DuckDBPyConnection) -> None:
        """Remember a connection that cursors may be taken from."""
        alive = [connection for connection in self._connections if connection() is not None]
        if not any(connection() is con for connection in alive):
            alive.append(weakref.ref(con))
        self._connections = alive

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor of the database."""
        for connection in self._connections:
            con = connection()
            if con is not None:
                try:
                    cursor = con.cursor()
                except duckdb.ConnectionException:
                    continue
                _create_temporary(cursor)
                return cursor
        raise SDCError("the connection that sdcduck was installed on is closed; call sdcduck.install(con) on this one")

    def secret(self) -> bytes | None:
        """The secret given to the session, or named by the environment, or stored in the database, in this order."""
        if self._secret is not None:
            return self._secret
        if text := os.environ.get("SDCDUCK_SECRET"):
            return _checked_secret(text)
        if path := os.environ.get("SDCDUCK_SECRET_FILE"):
            return _checked_secret(Path(path).read_text().strip())
        stored = catalog.setting(self.cursor(), "secret")
        self._secret = None if stored is None else _checked_secret(stored)
        return self._secret

    def give_secret(self, secret: str | bytes) -> None:
        """Use this secret until the database is closed."""
        self._secret = _checked_secret(secret)


_SESSIONS: weakref.WeakValueDictionary[str, DatabaseSession] = weakref.WeakValueDictionary()


def connect(
    path: str | Path = ":memory:", *, secret: str | bytes | None = None, read_only: bool = False, **duckdb_options: Any
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB database with the ``sdc_*`` SQL functions.

    A new file is written so that DuckDB 1.5 and later open it, their shells too.

    Args:
        path: a file, or ``:memory:``.
        secret: from which the record keys are made (at least 16 bytes); else the environment variables SDCDUCK_SECRET
            or SDCDUCK_SECRET_FILE, else the one stored in the file, if it was.
        read_only: open the file for reading only.
        duckdb_options: as of `duckdb.connect`: ``config={..}``, or options of DuckDB by name (``threads=2``).

    Raises:
        SDCError: a secret that is too short, a DuckDB that is too old, a file written by a newer sdcduck.

    >>> con = connect()
    >>> con.execute("SELECT sdc_ckm_count(0, 0)").fetchall()
    [(0,)]
    """
    config = {**duckdb_options.pop("config", {}), **duckdb_options}
    new = str(path) != ":memory:" and not Path(path).exists()
    if new:
        config.setdefault("storage_compatibility_version", _STORAGE)
    con = duckdb.connect(str(path), read_only=read_only, config=config)
    try:
        return install(con, secret=secret)
    except BaseException:
        con.close()
        raise


def install(con: duckdb.DuckDBPyConnection, *, secret: str | bytes | None = None) -> duckdb.DuckDBPyConnection:
    """Put the ``sdc_*`` SQL functions on an open connection; returns the connection.

    Idempotent. A cursor is a connection of its own to DuckDB: call `install` on it too if it needs the functions that
    run Python (``sdc_functions()`` says which). On a read-only database that has no functions yet, all of them are
    temporary.
    """
    _check_duckdb()
    session = _session_of(con)
    session.add(con)
    if secret is not None:
        session.give_secret(secret)
    _store_pure_sql(con)
    _create_temporary(con)
    return con


def uninstall(con: duckdb.DuckDBPyConnection, *, purge: bool = False) -> duckdb.DuckDBPyConnection:
    """Take the SQL functions off a connection and its database again; returns the connection.

    Args:
        purge: also drop the schema ``sdc`` with everything stored in it.
    """
    rows = con.execute(
        "SELECT DISTINCT function_name, function_type, database_name FROM duckdb_functions() "
        "WHERE function_type IN ('macro', 'table_macro') AND regexp_matches(function_name, '^_?sdc_') "
        "AND (database_name = current_database() OR database_name = 'temp') "
        "ORDER BY function_name"
    ).fetchall()
    for name, kind, database in rows:
        what = "MACRO TABLE" if kind == "table_macro" else "MACRO"
        con.execute(f"DROP {what} IF EXISTS {catalog.identifier(database)}.main.{catalog.identifier(name)}")
    session = _known_session(con)
    if session is not None:
        for name in session.functions:
            con.remove_function(name)
        session.functions = []
    if not _is_read_only(con):
        if purge:
            con.execute("DROP SCHEMA IF EXISTS sdc CASCADE")
        else:
            con.execute("DELETE FROM sdc.settings WHERE name = 'sql'")
    return con


def set_secret(con: duckdb.DuckDBPyConnection, secret: str | bytes, *, store: bool = False) -> None:
    """Give the secret from which record keys are made.

    Args:
        secret: at least 16 bytes; `sdcduck.new_secret()` makes one.
        store: also write it into the database, for custodians who accept that whoever reads the file reads it.
    """
    session = _known_session(con)
    if session is None:
        raise SDCError("sdcduck is not installed on this connection: call sdcduck.install(con)")
    session.give_secret(secret)
    if store:
        catalog.set_setting(con, "secret", _checked_secret(secret).decode())


def new_secret() -> str:
    """A fresh secret of 256 bits, as text."""
    return secrets.token_hex(32)


def _checked_secret(secret: str | bytes) -> bytes:
    value = secret.encode() if isinstance(secret, str) else secret
    if len(value) < 16:
        raise SDCError("the secret needs at least 16 bytes; sdcduck.new_secret() makes one")
    return value


def _check_duckdb() -> None:
    numbers = tuple(int(part) for part in re.findall(r"\d+", duckdb.__version__)[:2])
    if numbers < _OLDEST_DUCKDB:
        raise SDCError(f"sdcduck needs DuckDB 1.5 or later, this is {duckdb.__version__}")


def _known_session(con: duckdb.DuckDBPyConnection) -> DatabaseSession | None:
    row = catalog.first_row(
        con,
        "SELECT replace(function_name, '_sdc_session_', '') FROM duckdb_functions() "
        "WHERE starts_with(function_name, '_sdc_session_') LIMIT 1",
    )
    return None if row is None else _SESSIONS.get(row[0])


def _session_of(con: duckdb.DuckDBPyConnection) -> DatabaseSession:
    session = _known_session(con)
    if session is None:
        session = DatabaseSession()
        session.functions = create_functions(con, session, FAMILIES)
        # A function whose name tells which session a database has; its closure keeps the session alive that long.
        name = f"_sdc_session_{session.name}"
        keep = session
        con.create_function(name, lambda: keep.name, [], "VARCHAR")
        session.functions.append(name)
        _SESSIONS[session.name] = session
    return session


def _create_temporary(con: duckdb.DuckDBPyConnection) -> None:
    """Create the macros that call Python; temporary macros belong to one connection."""
    con.execute(_sql(tuple(name for family in FAMILIES for name in family.temporary)))


@cache
def _sql(names: tuple[str, ...]) -> str:
    return "\n".join((files("sdcduck.sql") / name).read_text(encoding="utf-8") for name in names)


def _statements(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> list[str]:
    return [statement.query.strip() for statement in con.extract_statements(_sql(names))]


def _is_read_only(con: duckdb.DuckDBPyConnection) -> bool:
    row = catalog.first_row(con, "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()")
    return row is not None and bool(row[0])


def _store_pure_sql(con: duckdb.DuckDBPyConnection) -> None:
    """Store the pure-SQL functions in the database unless it has exactly these already."""
    names = tuple(name for family in FAMILIES for name in family.stored)
    current = f"{_VERSION} {hashlib.sha256(_sql(names).encode()).hexdigest()[:16]}"
    has_catalog = catalog.first_row(
        con,
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = 'sdc' AND table_name = 'settings'",
    )
    stored = catalog.setting(con, "sql") if has_catalog and has_catalog[0] else None
    if stored == current:
        return
    if stored is not None and _release(stored.split()[0]) > _release(_VERSION):
        raise SDCError(f"this database was written by sdcduck {stored.split()[0]}; this is {_VERSION}: please update")
    statements = _statements(con, names)
    if _is_read_only(con):
        for statement in statements:
            if " MACRO " in statement[:40]:
                con.execute(
                    re.sub(r"^CREATE( OR REPLACE)? MACRO( IF NOT EXISTS)?", "CREATE OR REPLACE TEMP MACRO", statement)
                )
        return
    own = not _in_transaction(con)
    if own:
        con.begin()
    try:
        for statement in statements:
            con.execute(statement)
        catalog.rewrite_ptable_macros(con)
        catalog.set_setting(con, "sql", current)
        if own:
            con.commit()
    except BaseException:
        if own:
            con.rollback()
        raise


def _in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    try:
        con.begin()
    except duckdb.TransactionException:
        return True
    con.rollback()
    return False


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
