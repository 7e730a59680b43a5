"""A guard over a connection, or over a file that it alone holds."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa

from sdcduck.catalog import WRONG_OPTIMIZERS, switch_off
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.errors import SDCError
from sdcduck.functions.above import previews, rehearses
from sdcduck.guard.guard import Guard
from sdcduck.quoting import sql_value


def open_guard(
    database: duckdb.DuckDBPyConnection | str | Path,
    *,
    role: str = "",
    seconds: float | None = None,
    memory: str | None = None,
    log: str | Path | AuditLog | None = None,
    raw: bool = False,
    plans_only: bool = False,
    allow_dirs: Sequence[str | Path] = (),
    records: object | None = None,
) -> Guard:
    """A guard over a connection that sdcduck is installed on, or over a file.

    A file is opened for reading in an instance of its own that nobody else holds, with access to files, network,
    extensions and Python objects switched off and its settings locked. Of a connection of yours one setting is changed,
    for its whole instance: optimizers of DuckDB that change answers are added to ``disabled_optimizers``.

    Args:
        database: the connection, or the file; it must have policies (`sdc_protect`).
        role: whose policies hold: `sdc_protect(.., role := ..)`; those for everybody hold where there is none.
        seconds: a query that runs longer is stopped.
        memory: limit of the instance, such as ``2GB``, only with a file; None: half of the machine's memory. What an
            answer needs on its way out comes on top of it.
        log: file for the audit log; an `AuditLog` where it has a size and a quota of its own, or several guards of this
            process write to it.
        raw: show the records of every table of the file as they are; see `Guard`.
        plans_only: answer nothing about records but the steps of plans (`sdc_plan_seal`).
        allow_dirs: folders that views of the file may read, such as those of Parquet files; only with a file. Whoever
            asks names no file.
        records: the engine that has the records, where they are not in the database: a backend of ibis, a session of
            DataFusion, a file of DuckDB, or the address of a PostgreSQL; see `docs/engines.md`.
    """
    written = log if log is None or isinstance(log, AuditLog) else AuditLog(log)
    if isinstance(database, duckdb.DuckDBPyConnection):
        if memory is not None:
            raise SDCError("a memory limit goes with a file: a connection has the limits of its database")
        if raw:
            raise SDCError("raw records are shown of a file only: a connection shows them anyway")
        if allow_dirs:
            raise SDCError("folders are allowed with a file: a connection reads what its database may")
        switch_off(database.cursor(), _WRONG)
        return Guard(database, role=role, seconds=seconds, log=written, plans_only=plans_only, records=records)
    if raw and records is not None:
        raise SDCError("raw records are shown of a file only: those of an engine its own users see")
    if not Path(database).is_file():
        raise SDCError("there is no such database file")
    config, folders = locked(memory), _folders(allow_dirs)
    later = {name: config.pop(name) for name in ("enable_external_access", "lock_configuration") if folders}
    try:
        con = duckdb.connect(str(database), read_only=True, config=config)
        if folders:
            _lock(con, folders, later)
    except (duckdb.ConnectionException, duckdb.InvalidInputException):
        raise SDCError(
            "this process has the file open with other settings: guards of one file share one instance and take the "
            "same memory and folders; close the other guard or connection first"
        ) from None
    except duckdb.CatalogException:  # what DuckDB would read as a table, such as JSON
        raise SDCError("the file is no database of DuckDB") from None
    try:
        return Guard(
            con, role=role, seconds=seconds, log=written, raw=raw, plans_only=plans_only, records=records, own=True
        )
    except BaseException:
        con.close()
        raise


def _folders(given: Sequence[str | Path]) -> list[str]:
    """The folders, as DuckDB compares them.

    Raises:
        SDCError: one is none.
    """
    folders = []
    for one in [given] if isinstance(given, str | Path) else given:
        if not Path(one).is_dir():
            raise SDCError("argument 'allow_dirs' must list folders that are there")
        folders.append(f"{Path(one).resolve()}".rstrip("/") + "/")
    return sorted(set(folders))


_OPENING = threading.Lock()


def _lock(con: duckdb.DuckDBPyConnection, folders: list[str], settings: Mapping[str, object]) -> None:
    """Allow folders and nothing else: DuckDB takes them only after it has opened the file.

    Raises:
        duckdb.InvalidInputException: another guard of the file has other folders.
    """
    with _OPENING:
        is_locked, allowed = con.execute(
            "SELECT current_setting('lock_configuration'), current_setting('allowed_directories')"
        ).fetchall()[0]
        if not is_locked:
            con.execute(f"SET allowed_directories = {sql_value(folders)}")
            for name, value in settings.items():
                con.execute(f"SET {name} = {sql_value(value)}")
        elif not set(folders) <= set(allowed) or len(allowed) > len(folders) + 1:  # and one of DuckDB's own
            con.close()
            raise duckdb.InvalidInputException


@rehearses
def rehearsal(
    con: duckdb.DuckDBPyConnection, log: str, table: str, login: str | None, *, role: str, mode: str,
    secrets: Sequence[str], least_error: float, min_units: int | None, granted: str | None,
) -> pa.Table:  # fmt: skip
    """`Guard.sequence_rehearsal` for whoever has a connection."""
    with closing(open_guard(con, role=role)) as guard:
        return guard.sequence_rehearsal(
            log, table, login, mode=mode, secrets=secrets, least_error=least_error, min_units=min_units, granted=granted
        )


@previews
def preview(con: duckdb.DuckDBPyConnection, question: str, login: str, *, role: str) -> pa.Table:
    """`Guard.dp_preview` for whoever has a connection."""
    with closing(open_guard(con, role=role)) as guard:
        return guard.dp_preview(question, user=login)


def locked(memory: str | None = None) -> dict[str, str | bool | int | float | list[str]]:
    """The settings of an instance that only a guard holds: all connections of a process to one file have the same.

    Args:
        memory: its limit; None: half of the machine's memory.

    Raises:
        SDCError: a limit that DuckDB would not understand, or take for none, as -1GB.
    """
    if memory is None:
        limit = half_of_memory()
    else:
        size = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
        if size is None or not 0 < float(size[1]) * _UNITS[size[2][:1].upper()] <= _MOST:
            raise SDCError("argument 'memory' must be a size such as '2GB' or '500MB', or a share such as '50%'")
        limit = _of_memory(float(size[1]) / 100) if size[2] == "%" else memory
    return {**LOCKED, "memory_limit": limit}


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B)\s*", re.ASCII | re.IGNORECASE)

_MOST = 1e18  # bytes: more than any machine has, and less than DuckDB can count

_UNITS = {"%": _MOST / 100, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def half_of_memory() -> str:
    """Half of the machine's memory, or of what its container has of it: DuckDB, which looks there, takes 80 %."""
    return _of_memory(0.5)


@cache
def _of_memory(share: float) -> str:
    """A share of the machine's memory; DuckDB 1 takes no percents."""
    with duckdb.connect() as con:
        size, unit = con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
    return f"{float(size) / 0.8 * share:.1f}{unit}"


LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "lock_configuration": True,
}
"""What an instance may not do that only a guard holds."""
_WRONG: list[str] = []
if duckdb.__version__.startswith("2.0."):
    # Several count(DISTINCT ..) of one table become joins of aggregates there, and joins of such with each other can
    # end the instance for everybody ("dict-surviving cache: global dictionary column changed identity"). Without the
    # rewriting they do not, and it gains nothing that could be measured.
    # And a sum is taken to be 0 behind a LEFT JOIN of which the other side is empty by the least and largest values
    # that DuckDB keeps of a column: HAVING sum(..) > 300 finds nothing, ORDER BY fails, if nobody is beyond a border.
    # DuckDB 1.5 loses rows of recursive queries without it.
    _WRONG += ["distinct_aggregate_rewrite", "statistics_propagation"]
_WRONG += WRONG_OPTIMIZERS
if _WRONG:
    LOCKED["disabled_optimizers"] = ",".join(_WRONG)
