"""Putting the SQL functions on a DuckDB connection: `connect`, `install`, `uninstall`, and the secret.

The macros are stored in the database (`sdcduck.functions.stored`), so that all its connections and cursors have them;
the Python functions that some of them call are those of the process. `install` may be called as often as one likes.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import duckdb

from sdcduck import catalog
from sdcduck.catalog.database import HIDDEN, attach_hidden
from sdcduck.catalog.engines import Engine, engine_of, stand_in
from sdcduck.errors import SDCError
from sdcduck.functions import stored
from sdcduck.functions.jobs import Bar, Display, Report, Show
from sdcduck.functions.registry import create_functions
from sdcduck.functions.shutdown import CALLS
from sdcduck.functions.stored import FAMILIES
from sdcduck.quoting import identifier, literal

_OLDEST_DUCKDB = (1, 5)
_NAME_IN_MEMORY = "memory"
"""What DuckDB calls the database of ``:memory:``, which is always new and can be written to."""
_SCHEDULER = {"external_threads": 0, "scheduler_process_partial": True}
"""How DuckDB's scheduler goes well with statements that wait for others (`_set_scheduler`)."""
_INSTALLING = threading.RLock()


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
        self.engine: Engine | None = None
        self.switched_off: list[str] = []

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
        """A new cursor of the database, on which all functions work."""
        cursor = self._bare_cursor()
        if self.temporary:
            self._find_hidden(cursor)
        with suppress(duckdb.Error):  # a locked configuration
            # Else DuckDB would take a table that is not there for a variable of our own source text.
            cursor.execute("SET python_enable_replacements = false")
            unset = catalog.as_unset(cursor)
            if unset:
                cursor.execute(unset)
        return cursor

    def _find_hidden(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Have a cursor find the temporary macros of a database that cannot be written to.

        They belong to one connection, and to create all of them takes longer than most queries. Cursors find theirs in
        a hidden database in memory instead, made when the first one asks.
        """
        try:
            with self._macros:
                if self._search_path is None:
                    self._search_path = self._make_hidden_macros()
            cursor.execute(f"SET search_path = {literal(self._search_path)}")
        except duckdb.Error:  # a database that lets nothing be attached
            self.create_temporary(cursor)

    def _make_hidden_macros(self) -> str:
        """Put the temporary macros into the hidden database; returns the path on which cursors find them."""
        cursor = self._bare_cursor()
        row = catalog.first_row(cursor, "SELECT current_database(), current_schema()")
        assert row is not None
        attach_hidden(cursor)
        path = f"{identifier(row[0])}.{identifier(row[1])},{HIDDEN}.main"
        cursor.execute(f"SET search_path = {literal(path)}")
        for text in self.temporary:
            cursor.execute(text.replace(stored.TEMPORARY, f"CREATE OR REPLACE MACRO {HIDDEN}.main.", 1))
        return path

    def _bare_cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor without the macros that belong to one connection."""
        for connection in self._connections:
            con = connection()
            if con is not None:
                try:
                    return con.cursor()
                except duckdb.ConnectionException:
                    continue
        raise SDCError("the connection that sdcduck was installed on is closed; call sdcduck.install(con) on this one")

    def create_temporary(self, con: duckdb.DuckDBPyConnection) -> None:
        """Create the macros that belong to one connection, where the database cannot be written to."""
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


def _hold(con: duckdb.DuckDBPyConnection, session: DatabaseSession, *, in_memory: bool) -> None:
    """Keep the Python functions of a database alive as long as somebody can call them.

    DuckDB keeps a function in the database, but the Python object behind it only as long as the connection that created
    it is open; calling it from another connection after that would crash the process (duckdb-python issue 530). So
    every connection that sdcduck is installed on holds them, and so does a file, until it is opened anew.
    """
    _HELD_BY_CONNECTION[con] = session
    if in_memory:
        return
    row = catalog.first_row(con, "SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    if row is not None and row[0] is not None:
        _HELD_BY_FILE[row[0]] = session


def connect(
    path: str | Path = ":memory:", *, secret: str | bytes | None = None, read_only: bool = False,
    progress: bool | Show | None = None, records: object | None = None, **duckdb_options: Any,
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
        records: an engine that has the records, such as a backend of ibis, or the address of a PostgreSQL: an empty
            table stands for each of its tables here, which `sdc_protect`, `sdc_add_record_key` and
            `open_guard(.., records=..)` know by its name; see `docs/engines.md`.
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
    with _INSTALLING:  # a file that two threads make at once is made by one of them
        in_memory = str(path).startswith(":memory:")  # one with a name may have been opened before
        new = str(path) == ":memory:" or not (in_memory or Path(path).exists())
        begun = new and not in_memory and not read_only and stored.begin_file(Path(path), config)
        con = _opened(str(path), read_only, config)
    try:
        name = _NAME_IN_MEMORY if str(path) == ":memory:" else None
        installed = _install(con, secret=secret, progress=progress, new=new, begun=begun, name=name)
        if records is not None:
            session = _known_session(installed)
            assert session is not None
            session.engine = engine_of(records)
            stand_in(installed, session.engine)
        return installed
    except BaseException:
        con.close()
        raise


_PATIENCE, _AGAIN = 1.0, 0.02
"""Seconds that a file may take to be free again, and between two looks."""


def _opened(path: str, read_only: bool, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    if path == ":memory:":
        # No other connection must have the same options, and to change them later starts all threads anew.
        with suppress(duckdb.Error):  # a DuckDB that has no such options, or what is wrong in any case
            return duckdb.connect(path, read_only=read_only, config={**_SCHEDULER, **config})
    ended = time.monotonic() + _PATIENCE
    while True:
        try:
            return duckdb.connect(path, read_only=read_only, config=config)
        except duckdb.ConnectionException as problem:
            if "different configuration" not in str(problem) or time.monotonic() > ended:
                raise
        # What was opened with other settings, such as a guard's, may be held by a thread that ends, or by garbage.
        gc.collect()
        time.sleep(_AGAIN)


def install(
    con: duckdb.DuckDBPyConnection, *, secret: str | bytes | None = None, progress: bool | Show | None = None
) -> duckdb.DuckDBPyConnection:
    """Put the ``sdc_*`` SQL functions on an open connection, cursor, or connection of SQLAlchemy's driver; returns
    DuckDB's own connection.

    Idempotent. All connections and cursors of the database have the functions then, also those that other programs of
    this process make. They are stored in the database that the connection works in: call `install` again after ``USE``
    of another one. Where that is read-only and has none yet, or those of another version, they are temporary and
    belong to this connection or cursor alone. ``progress`` is as of `connect`, for the whole database; None leaves it
    as it is. An optimizer of DuckDB that gives wrong numbers is switched off for the whole instance (``common_subplan``
    in ``disabled_optimizers``), unless its settings are locked; `uninstall` switches it on again.

    Raises:
        SDCError: inside a transaction, whose end would undo half of it; a database written by a newer sdcduck, or by
        `sdc_export`; a macro of yours that is called like one of ours, or that replaced one.
    """
    _check_duckdb()
    if secret is not None:
        _checked_secret(secret)
    con = _of_duckdb(con)
    return _install(con, secret=secret, progress=progress, new=False)


def _of_duckdb(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """DuckDB's own connection: the driver of SQLAlchemy puts an object around it, which hands its methods out."""
    return con if isinstance(con, duckdb.DuckDBPyConnection) else cast(Any, con).execute.__self__


def _install(
    con: duckdb.DuckDBPyConnection, *, secret: str | bytes | None, progress: bool | Show | None, new: bool,
    begun: bool = False, name: str | None = None,
) -> duckdb.DuckDBPyConnection:  # fmt: skip
    """Put the functions on a connection.

    Args:
        new: nothing is in the database yet.
        begun: but the macros are.
        name: that of a database in memory that was opened just now, which need not be asked for anything; else None.
    """
    if name is None:
        catalog.check_name(con)
    if not new and catalog.is_export(con):
        # Its functions have the same names, and its numbers mean something to them only.
        raise SDCError("this file was made by sdc_export and has all that it needs: open it with duckdb.connect(..)")
    with _INSTALLING:
        current = not new and stored.is_current(con)
        in_transaction = not new and _in_transaction(con)
        # What fails in a transaction ends it, so nothing is tried there.
        first = None if in_transaction else _new_session(con)
        session = first or _known_session(con)
        if session is None or (in_transaction and not current):
            raise SDCError("sdcduck cannot be installed inside a transaction: commit or roll back first")
        session.add(con)
        _hold(con, session, in_memory=name is not None)
        if secret is not None:
            session.give_secret(secret)
        if progress is not None:
            session.progress = progress
        if name is None:
            _set_scheduler(con, on=True)
        with suppress(SDCError):  # what is locked stays as it is
            session.switched_off += catalog.switch_off(con, catalog.WRONG_OPTIMIZERS)
        if begun or (current and (first is None or stored.has_all(con))):
            return con
        if name is None and catalog.is_read_only(con):
            session.temporary = stored.temporary(con)
            session.create_temporary(con)
        else:
            stored.store(con, name or catalog.current_database(con), new=new)
        return con


def uninstall(con: duckdb.DuckDBPyConnection, *, purge: bool = False) -> duckdb.DuckDBPyConnection:
    """Take the SQL functions off a connection and its database again; returns the connection.

    Temporary macros of other connections stay there until these are closed, and fail. A macro of yours stays.

    Args:
        purge: also drop the schema ``sdc`` with everything stored in it.
    """
    read_only = catalog.is_read_only(con)
    stored.remove_temporary(con, read_only=read_only)
    if not read_only:
        stored.remove(con, purge=purge)
    session = _known_session(con)
    if session is not None:
        session.remove_functions()
        _set_scheduler(con, on=False)
        with suppress(duckdb.InvalidInputException):  # they have been locked
            catalog.switch_on(con, session.switched_off)
    con.execute(f"DETACH DATABASE IF EXISTS {HIDDEN}")
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
    """The session of a database that has one; None where it has no functions."""
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


def _new_session(con: duckdb.DuckDBPyConnection) -> DatabaseSession | None:
    """Python functions for a database that has none; None where it has."""
    session = DatabaseSession()
    try:
        session.functions = create_functions(con, session, FAMILIES)
    except (duckdb.CatalogException, duckdb.NotImplementedException):
        return None  # the first of them is there; to look for it takes longer than to try
    # A function whose name tells which session a database has.
    name = f"_sdc_session_{session.name}"
    session.functions[name] = lambda: session.name
    con.create_function(name, session.functions[name], [], "VARCHAR")
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


def _in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    # Outside of a transaction each statement has a number of its own.
    numbers = [catalog.first_row(con, "SELECT txid_current()") for _ in range(2)]
    return numbers[0] == numbers[1]
