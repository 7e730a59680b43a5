"""The custodian's database as pages read it: what it holds, and the statements that told so."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from sdcduck.desk import statements
from sdcduck.desk.guesses import ROLES, Column, guessed
from sdcduck.desk.work import Worker
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.install import connect
from sdcduck.quoting import identifier

_TABLES = """FROM duckdb_tables() SELECT table_name AS name, 'table' AS kind, estimated_size AS records
WHERE NOT internal AND schema_name = 'main' AND database_name = current_database()
UNION ALL
FROM duckdb_views() SELECT view_name, 'view', NULL
WHERE NOT internal AND schema_name = 'main' AND database_name = current_database()
ORDER BY name"""


@dataclass
class Reading:
    """What one page asks the database, and what it asked."""

    cursor: duckdb.DuckDBPyConnection
    asked: list[str] = field(default_factory=list)

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """The rows of a statement, which the page shows."""
        self.asked.append(statement)
        result = self.cursor.execute(statement)
        columns = [column[0] for column in result.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]


class Register:
    """A database that is open for as long as the desk is."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            raise SDCError(f"there is no file '{file}'; sdcduck sql {file} --create makes one")
        self.file = file
        self._con = connect(file, progress=self._progress)
        with suppress(duckdb.Error):  # a locked configuration
            # Else DuckDB would take a table that is not there for a variable of our own source text.
            self._con.execute("SET python_enable_replacements = false")
        # What the first page would wait for otherwise: the planners are loaded when one of them is asked.
        self._con.execute(statements.call("sdc_rule_sets")).fetchall()
        self.worker = Worker(self._con)
        self._guesses: dict[tuple[str, object], tuple[str, list[Column]]] = {}
        self._roles: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def _progress(self, share: float) -> None:
        self.worker.progress(share)

    def close(self) -> None:
        """Stop what runs, and let go of the file."""
        self.worker.close()
        self._con.close()

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """A cursor for one page."""
        cursor = self._con.cursor()
        try:
            with suppress(duckdb.Error):
                cursor.execute("SET python_enable_replacements = false")
            yield Reading(cursor)
        finally:
            cursor.close()

    def tables(self, reading: Reading) -> list[dict[str, Any]]:
        """The tables and views of the custodian: name, kind, and about how many records."""
        return reading.rows(_TABLES)

    def table(self, reading: Reading, name: str) -> dict[str, Any]:
        """One of them.

        Raises:
            SDCError: there is none of that name.
        """
        tables = self.tables(reading)
        for table in tables:
            if table["name"] == name:
                return table
        raise unknown("table", name, [table["name"] for table in tables])

    def columns(self, reading: Reading, name: str) -> list[Column]:
        """The columns of a table, with what they are taken for: guessed, and then as the custodian says."""
        table = self.table(reading, name)
        key = (name, table["records"])
        statement = statements.summary(name)
        described = reading.rows(f"DESCRIBE {identifier(name)}")
        types = {row["column_name"]: row["column_type"] for row in described}
        with self._lock:
            known = self._guesses.get(key)
        if known is None or {one.name: one.sql_type for one in known[1]} != types:
            known = statement, guessed(reading.rows(statement))
            with self._lock:
                self._guesses[key] = known
        else:
            reading.asked.append(known[0])
        return [self._corrected(name, column) for column in known[1]]

    def check_columns(self, reading: Reading, table: str, names: Sequence[str]) -> None:
        """That a table has all of these.

        Raises:
            SDCError: there is no such table, or it has no such column.
        """
        known = [column.name for column in self.columns(reading, table)]
        for name in names:
            if name not in known:
                raise unknown("column", name, known, where=f"'{table}'")

    def _corrected(self, table: str, column: Column) -> Column:
        role = self._roles.get((table, column.name))
        if role is None or role == column.role:
            return column
        return Column(column.name, column.sql_type, column.distinct, column.nulls, role, "you said so")

    def correct(self, table: str, column: str, role: str) -> None:
        """What the custodian says that a column is.

        Raises:
            SDCError: no such role.
        """
        if role not in ROLES:
            raise unknown("role of a column", role, ROLES)
        self._roles[table, column] = role

    def script(self, *, empty: bool) -> str:
        """All that the session changed, as SQL.

        Args:
            empty: begin with an empty database, and take the records from the register.
        """
        written = list(self.worker.written)
        made = {name for one in written for name in one.makes}
        tables = list(dict.fromkeys(name for one in written for name in one.tables if name not in made))
        file = "release.duckdb --create" if empty else self.file.name
        # The name of a file may have a line break, which would end the comment.
        lines = [
            f"-- The desk of sdcduck {version('sdcduck')}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"-- Run: sdcduck sql {' '.join(file.split())} - < script.sql",
            "",
        ]
        if empty:
            lines.append(statements.from_empty(str(self.file.resolve()), tables))
        for one in written:
            lines += [f"-- {' '.join(one.title.split())}", f"{one.statement};", ""]
        return "\n".join(lines)
