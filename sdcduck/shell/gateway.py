"""A gateway as the source of answers, through psycopg (`sdcduck serve`)."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sdcduck.client.address import address
from sdcduck.errors import SDCError
from sdcduck.guard import Origin
from sdcduck.guard.worth import worth_of_document
from sdcduck.shell.sources import Explained, Question, Table
from sdcduck.shell.statements import is_question

if TYPE_CHECKING:
    import psycopg

_ROWS = 10_000
_AS_TEXT = ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "uuid", "bytea", "json", "jsonb")
_TABLES = """
SELECT c.relname, obj_description(c.oid), a.attname, format_type(a.atttypid, a.atttypmod),
    col_description(c.oid, a.attnum)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = 'public' AND a.attnum > 0
ORDER BY c.relname, a.attnum
"""


class OfGateway:
    """A connection to a gateway, made anew where the gateway ended it.

    Args:
        url: ``postgresql://user@host:port/database`` or ``sdcduck://..``, as ibis takes it; the password in
            it, in PGPASSWORD, or asked for.

    Raises:
        SDCError: psycopg is missing, or the gateway cannot be reached or does not let the user in.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise SDCError("--connect needs the package 'psycopg': pip install 'sdcduck[shell]'") from None
        self._url, self._psycopg = address(url), psycopg
        self._con: psycopg.Connection[Any] | None = None
        self._notices: list[str] = []
        self.connection()

    def connection(self) -> psycopg.Connection[Any]:
        """The connection, open."""
        if self._con is None or self._con.closed:
            self._con = self._connected()
            self._con.add_notice_handler(lambda notice: self._notices.append(notice.message_primary or ""))
            for kind in _AS_TEXT:  # Python has no years before 1 and no infinite dates
                self._con.adapters.register_loader(kind, self._psycopg.types.string.TextLoader)
        return self._con

    def _connected(self) -> psycopg.Connection[Any]:
        try:
            return self._psycopg.connect(self._url, autocommit=True, application_name="sdcduck shell")
        except self._psycopg.Error as problem:
            if "no password" not in str(problem) or not sys.stdin.isatty():
                raise _failure(problem) from None
        password = getpass.getpass("Password: ")
        if not password:
            raise SDCError("no password was given")
        self._url = address(self._url, password=password)
        return self._connected()

    @property
    def who(self) -> str:
        """Database, host and user."""
        info = self.connection().info
        return f"{info.dbname} on {info.host}:{info.port}, asked as user {info.user}, through the gateway"

    @property
    def warning(self) -> str:
        """Nothing: the gateway is the wall."""
        return ""

    def tables(self) -> Sequence[Table]:
        """The relations that the user sees."""
        rows = self._rows(_TABLES)
        return [
            Table(name, about or "", tuple((column, kind, use or "") for _, _, column, kind, use in columns))
            for (name, about), columns in groupby(rows, key=lambda row: (row[0], row[1]))
        ]

    def question(self, sql: str) -> Question:
        """A question to the gateway."""
        self._notices.clear()
        return _Asked(self.connection(), sql, self._notices)

    def explain(self, sql: str) -> Explained:
        """What the gateway says it would do; nothing about what is no query."""
        if not is_question(sql):
            return Explained(True, (), ())
        try:
            told = json.loads(self._rows(f"EXPLAIN (FORMAT JSON) {sql}")[0][0])
        except ValueError as problem:
            if isinstance(problem, SDCError):
                raise
            raise SDCError("this gateway explains queries in a way that this shell does not know") from None
        columns = tuple(
            Origin(
                column["name"],
                frozenset((table, method) for table, method in column["protected"]),
                frozenset(column["grouped"]),
                column["computed"],
            )
            for column in told["columns"]
        )
        worth = tuple(map(worth_of_document, told["columns"]))
        return Explained(told["answered"], tuple(told["notes"]), columns, worth)

    def rewrite(self, sql: str) -> str:
        """Not shown to whoever is outside."""
        raise SDCError("a gateway does not show what runs in place of a query; .explain says what it does")

    def close(self) -> None:
        """Leave."""
        if self._con is not None:
            self._con.close()

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return self.connection().execute(sql.encode()).fetchall()
        except self._psycopg.Error as problem:
            raise _failure(problem) from None


class _Asked:
    """One statement on the gateway."""

    def __init__(self, con: psycopg.Connection[Any], sql: str, notices: Sequence[str]) -> None:
        import psycopg

        self._error = psycopg.Error
        self._con, self._sql, self._notices = con, sql, notices
        self._cursor = con.cursor()

    def ask(self) -> list[tuple[str, str]]:
        """Run it; the columns, none where the statement has no rows."""
        try:
            self._cursor.execute(self._sql.encode())
        except self._error as problem:
            raise _failure(problem) from None
        return [(column.name, self._type(column.type_code)) for column in self._cursor.description or []]

    def _type(self, number: int) -> str:
        known = self._con.adapters.types.get(number)
        if known is None:
            return ""
        return f"{known.name}[]" if number == known.array_oid else known.name

    def read(self) -> pa.RecordBatch | None:
        """The next rows."""
        rows = self._cursor.fetchmany(_ROWS) if self._cursor.description else []
        if not rows:
            return None
        columns = [_arrow(values) for values in zip(*rows, strict=True)]
        return pa.record_batch(columns, [f"c{place}" for place in range(len(columns))])

    @property
    def notice(self) -> str:
        """What the gateway said beside the answer."""
        return "; ".join(self._notices)

    def interrupt(self) -> None:
        """Ask the gateway to stop."""
        self._con.cancel_safe(timeout=5)

    def close(self) -> None:
        """Forget the rest."""
        self._cursor.close()


def _arrow(values: Sequence[object]) -> pa.Array:
    with suppress(pa.ArrowException, OverflowError):
        made = pa.array(values)
        if not pa.types.is_decimal256(made.type):  # more digits than DuckDB has, which writes the values
            return made
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _failure(problem: Exception) -> SDCError:
    """The gateway's own words, without the place in a statement that it did not send."""
    told = getattr(getattr(problem, "diag", None), "message_primary", None)
    return SDCError(told or " ".join(str(problem).split()))
