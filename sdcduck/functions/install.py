"""Putting the SQL functions on a DuckDB connection: `connect`, `install`, `uninstall`, and the secret.

The pure-SQL functions are stored in the database (they work in any DuckDB shell that opens the file later); functions
that call Python are temporary macros of the connection. `install` may be called as often as one likes.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import sql_of
from sdcduck.functions.jobs import Bar, Display, Report, Show
from sdcduck.functions.registry import Family, create_functions
from sdcduck.functions.shutdown import CALLS
from sdcduck.functions.template_database import TemplateDatabase
from sdcduck.quoting import identifier, literal

_FOLDERS = (
    "perturbation", "suppression", "synthesis", "risk", "guard", "hierarchy", "utility", "report", "reference",
)  # fmt: skip
"""The folders of ``udfs/``, which stand above this module and are found by their names."""
FAMILIES: tuple[Family, ...] = tuple(
    family for name in _FOLDERS for family in import_module(f"sdcduck.udfs.{name}").FAMILIES
)

_VERSION = version("sdcduck")
_STORAGE = "v1.0.0"  # files of this storage version open in DuckDB 1.0 and later, also in a 1.5 shell
_OLDEST_DUCKDB = (1, 5)
_CATALOG_IN_MEMORY = "sdc"
_HIDDEN = "_sdcduck"
_TEMPORARY_MACRO = re.compile(r"^CREATE OR REPLACE TEMP MACRO ", re.MULTILINE)
_CREATE_MACRO = re.compile(r"^CREATE( OR REPLACE)? MACRO( IF NOT EXISTS)?", re.MULTILINE)


class DatabaseSession:
    """What the Python functions of one database share: a way to get cursors, and the secret.

    It holds the user's connections weakly: closing them closes the database and releases the file. The other way round,
    whoever may still call the functions holds the session (`_hold`).
    """

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self.functions: dict[str, Callable[..., object]] = {}
        self.temporary: tuple[str, ...] = ()
        self._connections: list[weakref.ref[duckdb.DuckDBPyConnection]] = []
        self._secret: bytes | None = None
        self._macros = threading.Lock()
        self._search_path: str | None = None
        self._shown: Display | None = None
        self.progress: bool | Show | None = None

    def display(self, title: str) -> Display | None:
        """Where to show how far long work is: a line on the terminal, or the function that the user gave.

        One at a time: work that asks other functions shows how far it is itself.
        """
        if self._shown is not None and not self._shown.closed:
            return None
        wanted = sys.stderr.isatty() if self.progress is None else bool(self.progress)
        shown = Report(self.progress) if callable(self.progress) else Bar(title)
        self._shown = shown if wanted else None
        return self._shown

    def add(self, con: duckdb.DuckDBPyConnection) -> None:
        """Remember a connection that cursors may be taken from; the first one is the creator of the functions."""
        if not any(connection() is con for connection in self._connections):
            alive = [connection for connection in self._connections[1:] if connection() is not None]
            self._connections = [*self._connections[:1], *alive, weakref.ref(con)]
            CALLS.watch(con)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor of the database, on which all functions work.

        Temporary macros belong to one connection, and to create all of them takes longer than most queries (30 to 45
        ms). Cursors find theirs in a hidden database in memory instead, made when the first one asks.
        """
        cursor = self._bare_cursor()
        try:
            with self._macros:
                if self._search_path is None:
                    self._search_path = self._make_hidden_macros()
            cursor.execute(f"SET search_path = {literal(self._search_path)}")
        except duckdb.Error:  # a database that lets nothing be attached
            self.create_temporary(cursor)
        with suppress(duckdb.Error):  # a locked configuration
            # Else DuckDB would take a table that is not there for a variable of our own source text.
            cursor.execute("SET python_enable_replacements = false")
        return cursor

    def _make_hidden_macros(self) -> str:
        """Put the temporary macros into the hidden database; returns the path on which cursors find them."""
        cursor = self._bare_cursor()
        row = catalog.first_row(cursor, "SELECT current_database(), current_schema()")
        assert row is not None
        cursor.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_HIDDEN} (HIDDEN, READ_WRITE)")
        path = f"{identifier(row[0])}.{identifier(row[1])},{_HIDDEN}.main"
        cursor.execute(f"SET search_path = {literal(path)}")
        hidden = f"CREATE OR REPLACE MACRO {_HIDDEN}.main."
        if not _HIDDEN_MACROS.copy_to(cursor, _HIDDEN):
            for statement in _parsed(cursor, _TEMPORARY_MACRO.sub(hidden, _temporary_sql())):
                cursor.execute(statement)
        for text in self.temporary:
            cursor.execute(_TEMPORARY_MACRO.sub(hidden, text))
        return path

    def _bare_cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor without the macros that belong to one connection: they take longer than most queries."""
        for connection in self._connections:
            con = connection()
            if con is not None:
                try:
                    return con.cursor()
                except duckdb.ConnectionException:
                    continue
        raise SDCError("the connection that sdcduck was installed on is closed; call sdcduck.install(con) on this one")

    def create_temporary(self, con: duckdb.DuckDBPyConnection) -> None:
        """Create the macros that belong to one connection: those that call Python, and in a database that cannot be
        written to all the others too.
        """
        for statement in _parsed(con, _temporary_sql()):
            con.execute(statement)
        for text in self.temporary:
            con.execute(text)

    def remove_functions(self) -> None:
        """Take the Python functions off the database, and forget the secret.

        DuckDB lets only the connection that created a function remove it. Where that one is closed the functions stay
        until the database is closed, without macros that call them.
        """
        self._secret = self._search_path = None
        creator = self._connections[0]() if self._connections else None
        while creator is not None and self.functions:
            try:
                creator.remove_function(next(reversed(self.functions)))
            except (duckdb.ConnectionException, duckdb.InvalidInputException):
                return
            self.functions.popitem()

    def secret(self) -> bytes | None:
        """The secret given to the session, or named by the environment, or stored in the database, in this order."""
        if self._secret is not None:
            return self._secret
        if text := os.environ.get("SDCDUCK_SECRET"):
            return _checked_secret(text)
        if path := os.environ.get("SDCDUCK_SECRET_FILE"):
            try:
                return _checked_secret(Path(path).read_bytes().strip())
            except OSError as problem:
                raise SDCError(f"SDCDUCK_SECRET_FILE names a file that cannot be read: {problem.strerror}") from None
        stored = catalog.setting(self._bare_cursor(), "secret")
        self._secret = None if stored is None else _checked_secret(stored)
        return self._secret

    def give_secret(self, secret: str | bytes) -> None:
        """Use this secret until the database is closed."""
        self._secret = _checked_secret(secret)


_SESSIONS: weakref.WeakValueDictionary[str, DatabaseSession] = weakref.WeakValueDictionary()
_HELD_BY_CONNECTION: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, DatabaseSession] = weakref.WeakKeyDictionary()
_HELD_BY_FILE: dict[str, DatabaseSession] = {}


def _hold(con: duckdb.DuckDBPyConnection, session: DatabaseSession) -> None:
    """Keep the Python functions of a database alive as long as somebody can call them.

    DuckDB keeps a function in the database, but the Python object behind it only as long as the connection that created
    it is open; calling it from another connection after that would crash the process (duckdb-python issue 530). So
    every connection that sdcduck is installed on holds them, and so does a file, until it is opened anew.
    """
    _HELD_BY_CONNECTION[con] = session
    row = catalog.first_row(con, "SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    if row is not None and row[0] is not None:
        _HELD_BY_FILE[row[0]] = session


def connect(
    path: str | Path = ":memory:", *, secret: str | bytes | None = None, read_only: bool = False,
    progress: bool | Show | None = None, **duckdb_options: Any,
) -> duckdb.DuckDBPyConnection:  # fmt: skip
    """Open a DuckDB database with the ``sdc_*`` SQL functions.

    A new file is written so that DuckDB 1.5 and later open it, their shells too.

    Args:
        path: a file, or ``:memory:``.
        secret: from which the record keys are made (at least 16 bytes); else the environment variables SDCDUCK_SECRET
            or SDCDUCK_SECRET_FILE, else the one stored in the file, if it was.
        read_only: open the file for reading only.
        progress: whether a suppression of more than two seconds shows a line with the share of the cells decided and
            the time left, or a function that is called with the share, from 0 to 1, a few times a second and from a
            thread of its own; None: a line if standard error is a terminal.
        duckdb_options: as of `duckdb.connect`: ``config={..}``, or options of DuckDB by name (``threads=2``).

    Raises:
        SDCError: a secret that is too short, a DuckDB that is too old, a file written by a newer sdcduck.

    >>> con = connect()
    >>> con.execute("SELECT sdc_ckm_count(0, 0)").fetchall()
    [(0,)]
    """
    _check_duckdb()
    if secret is not None:
        _checked_secret(secret)
    config = {**duckdb_options.pop("config", {}), **duckdb_options}
    if not read_only and not str(path).startswith(":memory:") and not Path(path).exists():
        # A file keeps the storage version that it was created with. The connection itself does not ask for one: all
        # connections of a process to one file must have the same options.
        duckdb.connect(str(path), config={"storage_compatibility_version": _STORAGE, **config}).close()
    con = duckdb.connect(str(path), read_only=read_only, config=config)
    try:
        if str(path) == ":memory:":  # nobody else has it, and there is nothing in it
            return _set_up(con, _new_session(con), current=False, secret=secret, progress=progress)
        return install(con, secret=secret, progress=progress)
    except BaseException:
        con.close()
        raise


def install(
    con: duckdb.DuckDBPyConnection, *, secret: str | bytes | None = None, progress: bool | Show | None = None
) -> duckdb.DuckDBPyConnection:
    """Put the ``sdc_*`` SQL functions on an open connection; returns the connection.

    Idempotent. A cursor is a connection of its own to DuckDB: call `install` on it too if it needs the functions that
    run Python (``sdc_functions()`` says which). On a read-only database that has no functions yet, or those of another
    version, all of them are temporary. ``progress`` is as of `connect`, for the whole database; None leaves it as it
    is.

    Raises:
        SDCError: inside a transaction, whose end would undo half of it; a database written by a newer sdcduck, or by
            `sdc_export`.
    """
    _check_duckdb()
    if secret is not None:
        _checked_secret(secret)
    if catalog.is_export(con):
        # Its functions have the same names, and its numbers mean something to them only.
        raise SDCError("this file was made by sdc_export and has all that it needs: open it with duckdb.connect(..)")
    current = _has_current_sql(con)
    session = _known_session(con)
    if (session is None or not current) and _in_transaction(con):
        raise SDCError("sdcduck cannot be installed inside a transaction: commit or roll back first")
    return _set_up(con, session or _new_session(con), current=current, secret=secret, progress=progress)


def _set_up(
    con: duckdb.DuckDBPyConnection, session: DatabaseSession, *, current: bool, secret: str | bytes | None,
    progress: bool | Show | None,
) -> duckdb.DuckDBPyConnection:  # fmt: skip
    """Put the functions on a connection; ``current``: the database has the pure-SQL functions already."""
    session.add(con)
    _hold(con, session)
    if secret is not None:
        session.give_secret(secret)
    if progress is not None:
        session.progress = progress
    _set_scheduler(con, on=True)
    if not current:
        if catalog.is_read_only(con):
            session.temporary = _temporary_pure_sql(con)
        else:
            _store_pure_sql(con)
    session.create_temporary(con)
    return con


def uninstall(con: duckdb.DuckDBPyConnection, *, purge: bool = False) -> duckdb.DuckDBPyConnection:
    """Take the SQL functions off a connection and its database again; returns the connection.

    The temporary macros of other connections stay there until these are closed, and fail.

    Args:
        purge: also drop the schema ``sdc`` with everything stored in it.
    """
    read_only = catalog.is_read_only(con)
    rows = con.execute(
        "SELECT DISTINCT database_name, schema_name, function_name, function_type FROM duckdb_functions() "
        "WHERE function_type IN ('macro', 'table_macro') AND regexp_matches(function_name, '^_?sdc_') "
        "AND (database_name = current_database() AND NOT $read_only OR database_name = 'temp') "
        "ORDER BY ALL",
        {"read_only": read_only},
    ).fetchall()
    for *path, kind in rows:
        what = "MACRO TABLE" if kind == "table_macro" else "MACRO"
        con.execute(f"DROP {what} IF EXISTS {'.'.join(map(identifier, path))}")
    session = _known_session(con)
    if session is not None:
        session.remove_functions()
        _set_scheduler(con, on=False)
    con.execute(f"DETACH DATABASE IF EXISTS {_HIDDEN}")
    if read_only:
        con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG_IN_MEMORY}")
    elif purge:
        con.execute("DROP SCHEMA IF EXISTS sdc CASCADE")
    elif _has_catalog(con):
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
    value = _checked_secret(secret)
    if store:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise SDCError("only a secret that is text (UTF-8) can be stored") from None
        catalog.set_setting(con, "secret", text)
    session.give_secret(value)


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
    if row is None:
        return None
    if row[0] not in _SESSIONS:
        raise SDCError(
            "the connection that sdcduck was installed on is closed, and the database still open; "
            "close all connections to it and open it again"
        )
    return _SESSIONS[row[0]]


def _new_session(con: duckdb.DuckDBPyConnection) -> DatabaseSession:
    session = DatabaseSession()
    # A function whose name tells which session a database has: the first to come and the last to go.
    name = f"_sdc_session_{session.name}"

    def session_name() -> str:
        return session.name

    con.create_function(name, session_name, [], "VARCHAR")
    session.functions = {name: session_name, **create_functions(con, session, FAMILIES)}
    _SESSIONS[session.name] = session
    return session


def _set_scheduler(con: duckdb.DuckDBPyConnection, *, on: bool) -> None:
    """Have DuckDB's scheduler go well with statements that wait for others; an older DuckDB or a locked configuration
    is left as it is.

    A statement that calls Python waits in one of DuckDB's threads while what it calls asks DuckDB in its turn. It may
    be one of the threads that DuckDB counts on to work (all but the caller's, so the only one of two), and then
    everything asked takes as long as on one thread less: about every second call. With one more, all of them can work;
    a plain statement takes the same time.

    DuckDB looks whether a statement was interrupted in the main thread only, unless it looks between the chunks of a
    task: after Ctrl-C it waits until what other threads do is done. Grouping 20 million rows takes the same time with
    and without.
    """
    with suppress(duckdb.Error):
        row = catalog.first_row(con, "SELECT current_setting('external_threads')")
        if row == (1 if on else 0,):  # not where the user chose a number
            con.execute("SET external_threads = 0" if on else "RESET external_threads")
    with suppress(duckdb.Error):
        con.execute("SET scheduler_process_partial = true" if on else "RESET scheduler_process_partial")


@cache
def _sql(names: tuple[str, ...]) -> str:
    return "\n".join(map(sql_of, names))


_PARSED: dict[str, list[duckdb.Statement]] = {}


def _parsed(con: duckdb.DuckDBPyConnection, text: str) -> list[duckdb.Statement]:
    """The statements of a text of ours. DuckDB reads it once for all databases: that takes as long as creating them."""
    if text not in _PARSED:
        _PARSED[text] = con.extract_statements(text)
    return _PARSED[text]


def _has_catalog(con: duckdb.DuckDBPyConnection) -> bool:
    row = catalog.first_row(
        con,
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = 'sdc' AND table_name = 'settings'",
    )
    return row is not None and bool(row[0])


def _pure_sql() -> str:
    return _sql(tuple(name for family in FAMILIES for name in family.stored))


def _temporary_sql() -> str:
    return _sql(tuple(name for family in FAMILIES for name in family.temporary))


def _pure_sql_version() -> str:
    return f"{_VERSION} {hashlib.sha256(_pure_sql().encode()).hexdigest()[:16]}"


def _has_current_sql(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database has exactly these pure-SQL functions already."""
    stored = catalog.setting(con, "sql") if _has_catalog(con) else None
    if stored is not None and _release(stored.split()[0]) > _release(_VERSION):
        raise SDCError(f"this database was written by sdcduck {stored.split()[0]}; this is {_VERSION}: please update")
    return stored == _pure_sql_version()


def _store_pure_sql(con: duckdb.DuckDBPyConnection) -> None:
    """Store the pure-SQL functions in the database, all or nothing."""
    if _has_catalog(con) or not _PURE_SQL.copy_to(con, catalog.current_database(con)):
        _run_pure_sql(con)


def _run_pure_sql(con: duckdb.DuckDBPyConnection) -> None:
    statements = _parsed(con, _pure_sql())
    con.begin()
    try:
        for statement in statements:
            con.execute(statement)
        catalog.rewrite_ptable_macros(con)
        catalog.note_columns(con)
        catalog.set_setting(con, "sql", _pure_sql_version())
        con.commit()
    except BaseException:
        con.rollback()
        raise


def _make_hidden_template(con: duckdb.DuckDBPyConnection) -> None:
    """The temporary macros alone; what they call has to be there, or DuckDB would not create them."""
    here = f"{identifier(catalog.current_database(con))}.main"
    con.execute("ATTACH ':memory:' AS called")
    con.execute("USE called")
    create_functions(con, DatabaseSession(), FAMILIES)
    _run_pure_sql(con)
    con.execute(f"SET search_path = {literal(f'called.main,{here}')}")
    hidden = f"CREATE MACRO {here}."
    for statement in _parsed(con, _TEMPORARY_MACRO.sub(hidden, _temporary_sql())):
        con.execute(statement)


_PURE_SQL = TemplateDatabase(_run_pure_sql)
_HIDDEN_MACROS = TemplateDatabase(_make_hidden_template)


def _temporary_pure_sql(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """The pure-SQL functions as temporary macros, for a database that cannot be written to.

    The p-tables are those of the database. Where it has no catalog, one in memory is attached under the name of the
    schema, so that everything finds ``sdc.ptables``.
    """
    statements = [statement.query.strip() for statement in _parsed(con, _pure_sql())]
    if not _has_catalog(con):
        con.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_CATALOG_IN_MEMORY} (READ_WRITE)")
        for statement in statements:
            if not _CREATE_MACRO.search(statement) and "CREATE SCHEMA" not in statement:
                con.execute(statement)
    temporary = "CREATE OR REPLACE TEMP MACRO"
    macros = [
        _CREATE_MACRO.sub(temporary, statement, count=1) for statement in statements if _CREATE_MACRO.search(statement)
    ]
    ptables = [(table.name, table.lookup()) for table in catalog.stored_ptables(con)]
    return (*macros, *catalog.ptable_macros(ptables, create=temporary))


def _in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    # Outside of a transaction each statement has a number of its own.
    numbers = [catalog.first_row(con, "SELECT txid_current()") for _ in range(2)]
    return numbers[0] == numbers[1]


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
