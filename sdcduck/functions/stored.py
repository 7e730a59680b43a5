"""The macros that a database stores: which they are, whether it has them, and how they get there.

They stand in the schema ``main`` of the database, where each connection to it and each cursor finds them. What some of
them call is Python, which a process brings (`sdcduck.functions.install`); none has data or a secret in it.
``sdc.settings`` says which sdcduck wrote them (``sql``) and what they are called (``macros``), so that a macro of the
user is told from one of ours.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import sql_of
from sdcduck.functions.registry import Family, Session, create_functions
from sdcduck.functions.template_database import TemplateDatabase, kept_beside
from sdcduck.quoting import folded, identifier

_FOLDERS = (
    "perturbation", "suppression", "synthesis", "dp", "masking", "risk", "sequence", "guard", "hierarchy", "utility",
    "models", "trips", "encrypted", "text", "report", "reference",
)  # fmt: skip
"""The folders of ``udfs/``, which stand above this module and are found by their names."""
FAMILIES: tuple[Family, ...] = tuple(
    family for name in _FOLDERS for family in import_module(f"sdcduck.udfs.{name}").FAMILIES
)

VERSION = version("sdcduck")
_MACRO = re.compile(r"^CREATE (?:OR REPLACE )?MACRO (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
_BODY = re.compile(r"^CREATE OR REPLACE MACRO (\w+)\((?:[^()]|\([^()]*\))*\) AS(?: TABLE)?\b(.*?);$", re.M | re.S)
_CREATE_MACRO = re.compile(r"^CREATE( OR REPLACE)? MACRO( IF NOT EXISTS)?", re.MULTILINE)
TEMPORARY = "CREATE OR REPLACE TEMP MACRO"
_CATALOG_IN_MEMORY = "sdc"
_PARSED: dict[str, list[duckdb.Statement]] = {}


@cache
def _text() -> str:
    """All statements: pure SQL first, since what needs Python may be made of it."""
    files = [*(file for one in FAMILIES for file in one.stored), *(file for one in FAMILIES for file in one.temporary)]
    return "\n".join(map(sql_of, files))


@cache
def names() -> frozenset[str]:
    """The names of all macros, folded."""
    return frozenset(map(folded, _MACRO.findall(_text())))


@cache
def _pure_names() -> frozenset[str]:
    return frozenset(folded(name) for one in FAMILIES for file in one.stored for name in _MACRO.findall(sql_of(file)))


@cache
def _written_by() -> str:
    return f"{VERSION} {hashlib.sha256(_text().encode()).hexdigest()[:16]}"


def _statements(con: duckdb.DuckDBPyConnection) -> list[duckdb.Statement]:
    """DuckDB reads the text once for all databases: that takes as long as creating what is in it."""
    if _text() not in _PARSED:
        _PARSED[_text()] = con.extract_statements(_text())
    return _PARSED[_text()]


def has_catalog(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database has the table of settings."""
    row = catalog.first_row(
        con,
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = 'sdc' AND table_name = 'settings'",
    )
    return row is not None and bool(row[0])


def is_current(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database has exactly the macros of this sdcduck.

    Raises:
        SDCError: those of a newer one.
    """
    stored = catalog.setting(con, "sql") if has_catalog(con) else None
    if stored is not None and _release(stored.split()[0]) > _release(VERSION):
        raise SDCError(f"this database was written by sdcduck {stored.split()[0]}; this is {VERSION}: please update")
    return stored == _written_by()


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _ours(con: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of macros of the database that are ours, folded, if they are there.

    An older sdcduck did not write down what it stored: pure SQL, which a DuckDB shell may have read from ``sql/``, too.
    """
    if not has_catalog(con):
        return frozenset()
    written = catalog.setting(con, "macros")
    return _pure_names() if written is None else frozenset(written.split())


_WORD = re.compile(r"\w+")
_LAYOUT = frozenset(["as", "cast", "main"])
"""Words that DuckDB puts in or leaves out."""
_IN_OTHER_WORDS = frozenset([
    "_sdc_apriori_in", "_sdc_combined", "_sdc_variance_between", "sdc_class_risk", "sdc_combine", "sdc_draw_count",
    "sdc_rounding_ptable",
])  # fmt: skip
"""Macros that the DuckDB of today spells with other expressions than we do: at these it need not be asked how."""
_POLICIES = "guard"
"""The folder of what says how tables are protected."""


@lru_cache(2000)
def _words(text: str) -> tuple[str, ...]:
    """The words of a macro; nearly all are the same in all databases."""
    return tuple(word for word in _WORD.findall(folded(text)) if word not in _LAYOUT)


@cache
def _called() -> dict[str, tuple[str, ...]]:
    """The words of the macros that call Python, by their names."""
    texts = "\n".join(sql_of(file) for one in FAMILIES for file in one.temporary)
    return {name: _words(body) for name, body in _BODY.findall(texts) if name not in _IN_OTHER_WORDS}


@cache
def _of_policies() -> frozenset[str]:
    """The names of those that say how tables are protected, folded, and of what all that call Python go through."""
    families = import_module(f"sdcduck.udfs.{_POLICIES}").FAMILIES
    found = [name for one in families for file in one.temporary for name in _MACRO.findall(sql_of(file))]
    return frozenset(map(folded, [*found, "_sdc_with_python"]))


def _defined(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """Name, meaning and kind of each macro of the database, as DuckDB spells it."""
    return con.execute(
        "SELECT function_name, macro_definition, function_type FROM duckdb_functions() WHERE NOT internal AND "
        "database_name = current_database() AND schema_name = 'main' AND function_type IN ('macro', 'table_macro')"
    ).fetchall()


@cache
def _spelled_here() -> frozenset[tuple[str, tuple[str, ...]]]:
    """Name and words of our macros as this DuckDB spells them when they are created, and when read from a file.

    None where there is no place for a file: then what it spells otherwise is not taken for ours.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "spelled.duckdb")
            with duckdb.connect(file) as con:
                _make_template(con)
                spelled = _defined(con)
            with duckdb.connect(file) as con:
                spelled += _defined(con)
    except (OSError, duckdb.IOException):
        return frozenset()
    return frozenset((folded(name), _words(definition)) for name, definition, _ in spelled)


def has_all(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the macros that call Python are all there, as ours; at those of protected answers looks the guard.

    What one stands for is compared word by word: DuckDB spells it with brackets and casts of its own. Where words
    differ, as they may with a later one, it is asked how it spells ours.
    One that somebody replaced is named in a warning.

    Raises:
        SDCError: one that says how tables are protected is not what this sdcduck stores.
    """
    found: set[str] = set()
    replaced: list[str] = []
    for name, definition, kind in _defined(con):
        called, words = folded(name), _words(definition)
        if called not in _called():
            continue
        found.add(called)
        if words == _called()[called] or (called, words) in _spelled_here():
            continue
        if called in _of_policies():
            what = "MACRO TABLE" if kind == "table_macro" else "MACRO"
            raise SDCError(
                f"somebody replaced sdcduck's {name} in this database: DROP {what} {identifier(name)} there, with "
                "plain DuckDB, and connect again: that stores ours"
            )
        replaced.append(name)
    if replaced:
        warnings.warn(
            f"somebody replaced {', '.join(sorted(replaced))} of sdcduck in this database: they are ours again",
            stacklevel=4,
        )
    return found == set(_called()) and not replaced


def _there(con: duckdb.DuckDBPyConnection, database: str) -> list[tuple[str, str]]:
    """Name and kind of each macro in a database."""
    return con.execute(
        "SELECT DISTINCT function_name, function_type FROM duckdb_functions() WHERE database_name = ? "
        "AND schema_name = 'main' AND function_type IN ('macro', 'table_macro') AND NOT internal ORDER BY ALL",
        [database],
    ).fetchall()


def _drop(con: duckdb.DuckDBPyConnection, database: str, dropped: frozenset[str]) -> None:
    for name, kind in _there(con, database):
        if folded(name) in dropped:
            what = "MACRO TABLE" if kind == "table_macro" else "MACRO"
            con.execute(f"DROP {what} IF EXISTS {identifier(database)}.main.{identifier(name)}")


def store(con: duckdb.DuckDBPyConnection, database: str, *, new: bool = False) -> None:
    """Store the macros in the database, all or nothing, in place of those of another sdcduck.

    Args:
        database: the name of the one that the connection works in.
        new: nothing is in the database yet, so nothing is looked for.

    Raises:
        SDCError: the database has a macro with the name of one of ours that is not ours.
    """
    if not new:
        _refuse_others(con, database)
    if (new or not has_catalog(con)) and _TEMPLATE.copy_to(con, database):
        return
    # A cursor starts in the schema main, wherever the connection is.
    with con.cursor() as cursor:
        cursor.execute(f"USE {identifier(database)}.main")
        _store_one_by_one(cursor)


def _refuse_others(con: duckdb.DuckDBPyConnection, database: str) -> None:
    taken = names() - _ours(con)
    theirs = [name for name, _ in _there(con, database) if folded(name) in taken]
    if theirs:
        raise SDCError(
            f"the database has a macro {theirs[0]!r} that is not of sdcduck, which has a function of that name: "
            f"give yours another one, DROP MACRO {identifier(theirs[0])}, and connect again"
        )


def _store_one_by_one(con: duckdb.DuckDBPyConnection) -> None:
    database, statements = catalog.current_database(con), _statements(con)
    with catalog.transaction(con):
        gone = _ours(con) - names()
        if gone:
            _drop(con, database, gone)
        for statement in statements:
            con.execute(statement)
        catalog.rewrite_ptable_macros(con)
        catalog.note_columns(con)
        catalog.note_definitions(con)
        catalog.set_setting(con, "macros", " ".join(sorted(names())))
        catalog.set_setting(con, "sql", _written_by())


def _make_template(con: duckdb.DuckDBPyConnection) -> None:
    """DuckDB creates a macro only where the functions are that it calls; nobody calls these."""
    create_functions(con, cast("Session", None), FAMILIES)
    _store_one_by_one(con)


def _made_by() -> Iterator[str]:
    """What decides how a template looks: the SQL, and the modules that run it and add to it, as they are now."""
    yield _written_by()
    for package in ("functions", "catalog", "udfs"):
        for folder in import_module(f"sdcduck.{package}").__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                found = file.stat()
                yield f"{file} {found.st_size} {found.st_mtime_ns}"


_TEMPLATE = TemplateDatabase(_make_template, lambda: kept_beside(__file__, _made_by))
_STORAGE = "v1.0.0"
"""Files of this storage version open in DuckDB 1.0 and later, also in a 1.5 shell. A file keeps what it began with."""
_FILE = TemplateDatabase(_make_template, lambda: kept_beside(__file__, _made_by, "file"), _STORAGE)
_PLAIN_PATH = re.compile(r"(?!~)[^:?*\[\]{}]+")


def begin_file(path: Path, config: Mapping[str, Any]) -> bool:
    """Make a new file for a connection that will have these settings; whether it has all macros from the beginning.

    The connection itself does not ask for a storage version: all connections of a process to one file must have the
    same settings. What DuckDB may not take for a path as Python does, it makes itself, and so it does where a setting
    may decide how a file looks or be none, or where a log is left of one that was there.
    """
    plain = not config and _PLAIN_PATH.fullmatch(str(path)) and not Path(f"{path}.wal").exists()
    if plain and _FILE.begin(path):
        return True
    duckdb.connect(str(path), config={"storage_compatibility_version": _STORAGE, **config}).close()
    return False


def remove(con: duckdb.DuckDBPyConnection, *, purge: bool) -> None:
    """Take the macros out of the database again, and with ``purge`` all else that is stored."""
    _drop(con, catalog.current_database(con), _ours(con))
    if purge:
        con.execute("DROP SCHEMA IF EXISTS sdc CASCADE")
    elif has_catalog(con):
        con.execute("DELETE FROM sdc.settings WHERE name = 'sql'")
        catalog.set_setting(con, "macros", "")


def temporary(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """The macros as temporary ones, for a database that cannot be written to.

    The p-tables are those of the database. Where it has no catalog, one in memory is attached under the name of the
    schema, so that everything finds ``sdc.ptables``.
    """
    statements = [statement.query.strip() for statement in _statements(con)]
    if not has_catalog(con):
        con.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_CATALOG_IN_MEMORY} (READ_WRITE)")
        for statement in statements:
            if not _CREATE_MACRO.search(statement) and "CREATE SCHEMA" not in statement:
                con.execute(statement)
    macros = [
        _CREATE_MACRO.sub(TEMPORARY, statement, count=1) for statement in statements if _CREATE_MACRO.search(statement)
    ]
    ptables = [(table.name, table.lookup()) for table in catalog.stored_ptables(con)]
    return (*macros, *catalog.ptable_macros(ptables, create=TEMPORARY))


def remove_temporary(con: duckdb.DuckDBPyConnection, *, read_only: bool) -> None:
    """Take the temporary macros of a connection away, and the catalog in memory."""
    _drop(con, "temp", names())
    if read_only:
        con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG_IN_MEMORY}")
