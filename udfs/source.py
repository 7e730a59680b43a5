"""Table arguments: a string that names a table or a view, or holds a query in parentheses."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import duckdb

from sdcduck.catalog import first_row, identifier
from sdcduck.errors import SDCError, unknown


@dataclass(frozen=True)
class Source:
    """A relation that a statement named.

    Attributes:
        text: as the user wrote it.
        sql: to stand after FROM.
        columns: SQL type by column name.
    """

    text: str
    sql: str
    columns: dict[str, str]

    def column(self, name: str | None, argument: str) -> str:
        """The quoted name of one of the columns; any case will do.

        Raises:
            SDCError: there is no such column.
        """
        if name is None:
            raise SDCError(f"argument '{argument}' must name a column of {self.described}")
        for known in self.columns:
            if known.lower() == name.lower():
                return identifier(known)
        raise unknown("column", name, self.columns, where=self.described)

    def type_of(self, name: str) -> str:
        """The SQL type of a column that is known to exist."""
        return next(sql_type for known, sql_type in self.columns.items() if known.lower() == name.lower())

    @property
    def described(self) -> str:
        """The source in words, for messages."""
        return "the query" if self.text.startswith("(") else f"'{self.text}'"


def source(cursor: duckdb.DuckDBPyConnection, text: str | None, argument: str) -> Source:
    """Resolve a table argument.

    Raises:
        SDCError: no such table, or a query that does not bind.
    """
    if text is None or not text.strip():
        raise SDCError(f"argument '{argument}' must name a table or view, or hold a query in parentheses")
    text = text.strip()
    if text.startswith("("):
        sql = text
    else:
        exact = first_row(
            cursor,
            "SELECT count(*) FROM information_schema.tables "
            "WHERE table_name = ? AND table_catalog = current_database()",
            [text],
        )
        sql = identifier(text) if exact and exact[0] else text
        if ";" in sql.replace(identifier(text), ""):
            raise SDCError(f"argument '{argument}' must name one table")
    try:
        described = cursor.execute(f"DESCRIBE FROM {sql}").fetchall()
    except duckdb.CatalogException:
        raise _unknown_table(text, cursor) from None
    except duckdb.ParserException as problem:
        if text.startswith("("):
            raise SDCError(f"argument '{argument}': {str(problem).splitlines()[0]}") from None
        raise SDCError(
            f"argument '{argument}' must name a table or view, or hold a query in parentheses; "
            "a file is read by one: (FROM 'folder/file.csv')"
        ) from None
    except duckdb.Error as problem:
        raise SDCError(f"argument '{argument}': {str(problem).splitlines()[0]}") from None
    return Source(text, sql, {row[0]: row[1] for row in described})


def _unknown_table(text: str, cursor: duckdb.DuckDBPyConnection) -> SDCError:
    if text.startswith("("):
        return SDCError("the query names a table that is not there (temporary tables are not visible here)")
    names = cursor.execute(
        "SELECT CASE WHEN table_schema = current_schema() THEN table_name ELSE table_schema || '.' || table_name END "
        "FROM information_schema.tables WHERE table_catalog = current_database()"
    ).fetchall()
    # The nearest name may be that of a table in another schema.
    known = {row[0]: row[0] for row in names} | {row[0].split(".")[-1]: row[0] for row in names}
    near = difflib.get_close_matches(text.lower(), [name.lower() for name in known], n=1)
    if near:
        found = next(full for name, full in known.items() if name.lower() == near[0])
        error = SDCError(f"unknown table '{text}'; did you mean '{found}'?")
    else:
        error = unknown("table", text, [row[0] for row in names])
    return SDCError(f"{error} (temporary tables are not visible here)")
