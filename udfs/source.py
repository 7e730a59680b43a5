"""Table arguments: a string that names a table or a view, or holds a query in parentheses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.catalog import first_row
from sdcduck.catalog.engines import marked_tables
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import needed, wrong

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
           "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")  # fmt: skip
"""SQL types of numbers, without their parameters."""


_WORD = re.compile(r"[A-Za-z_]\w*")  # also a word of SQL, such as order: quoted it is a name


def is_number(sql_type: str) -> bool:
    """Whether the values of a type are numbers.

    >>> is_number("DECIMAL(9,2)"), is_number("INTEGER[]"), is_number("INTERVAL")
    (True, False, False)
    """
    return sql_type.split("(")[0] in NUMBERS and not sql_type.endswith("]")


@dataclass(frozen=True)
class Source:
    """A relation that a statement named.

    Attributes:
        text: as the user wrote it.
        sql: to stand after FROM.
        columns: SQL type by column name.
        records: SQL of how many records a row stands for, where it is not one.
    """

    text: str
    sql: str
    columns: dict[str, str]
    records: str = "1"

    @property
    def counted(self) -> str:
        """SQL that counts records."""
        return "count(*)" if self.records == "1" else f"sum({self.records})::BIGINT"

    def column(self, name: str | None, argument: str) -> str:
        """The quoted name of one of the columns; any case will do.

        Raises:
            SDCError: there is no such column.
        """
        if name is None:
            raise wrong(argument, f"name a column of {self.described}")
        for known in self.columns:
            if folded(known) == folded(name):
                return identifier(known)
        raise unknown("column", name, self.columns, where=self.described)

    def number(self, name: str | None, argument: str) -> str:
        """The quoted name of one of the columns of numbers; any case will do.

        Raises:
            SDCError: there is no such column, or it holds something else.
        """
        found = self.column(name, argument)
        sql_type = self.type_of(str(name))
        if not is_number(sql_type) and sql_type != '"NULL"':
            held = sql_type.split("(")[0]  # labels are data
            raise SDCError(
                f"argument '{argument}' must name a column of numbers: '{name}' of {self.described} is {held}"
            )
        return found

    def named(self, names: Sequence[str | None] | None, argument: str, taken: Sequence[str] = ()) -> tuple[str, ...]:
        """The columns of an argument that lists them, as the relation calls them; any case will do.

        Args:
            taken: names of the result's columns, in lower case, which none of them may have.

        Raises:
            SDCError: no such column, one named twice, or one that is taken.
        """
        found: list[str] = []
        for name in names or ():
            if name is None:
                raise SDCError(f"argument '{argument}' holds a NULL")
            self.column(name, argument)
            known = next(known for known in self.columns if folded(known) == folded(name))
            if known in found:
                raise SDCError(f"argument '{argument}' names column '{known}' twice")
            refuse_taken([known], taken)
            found.append(known)
        return tuple(found)

    def check_names(self, names: Sequence[str]) -> None:
        """That none of these columns has a name that only the statements of sdcduck give.

        Raises:
            SDCError: one has.
        """
        for name in names:
            if folded(name).startswith("_sdc_"):
                raise SDCError(f"a column may not begin with _sdc_: '{name}'; give it another name in a query")

    def type_of(self, name: str) -> str:
        """The SQL type of a column that is known to exist."""
        return next(sql_type for known, sql_type in self.columns.items() if folded(known) == folded(name))

    def check_condition(
        self, cursor: duckdb.DuckDBPyConnection, condition: str, columns: Sequence[str], what: str
    ) -> None:
        """That a condition is one of records, on some of the columns.

        Text is none: what is not the word of a truth value would be told by an error of its cast.

        Args:
            what: of the message, e.g. "argument 'subset' must be a condition".

        Raises:
            SDCError: it does not bind, or is neither true nor false.
        """
        shown = "".join(f"{identifier(name)}, " for name in columns)
        within = ", ".join(map(identifier, columns)) or "1"
        try:
            described = cursor.execute(
                f"DESCRIBE SELECT {shown}({condition}) AS _sdc_condition FROM (SELECT {within} FROM {self.sql})"
            ).fetchall()
        except duckdb.Error as problem:
            raise SDCError(f"{what}: {str(problem).splitlines()[0]}") from None
        kind = described[-1][1]
        if kind not in ("BOOLEAN", '"NULL"') and not is_number(kind):
            raise SDCError(f"{what}, which is true or false: it is {kind.split('(')[0]}")

    @property
    def described(self) -> str:
        """The source in words, for messages."""
        return "the query" if self.text.startswith("(") else f"'{self.text}'"


def source(
    cursor: duckdb.DuckDBPyConnection, text: str | None, argument: str, *, elsewhere: bool = False
) -> Source:  # fmt: skip
    """Resolve a table argument.

    Args:
        elsewhere: whether the records may be on another engine, where the table here is empty.

    Raises:
        SDCError: no such table, a query that does not bind, or records that are not here.
    """
    if text is None or not text.strip():
        raise SDCError(f"argument '{argument}' must name a table or view, or hold a query in parentheses")
    text = text.strip()
    if text.startswith("("):
        sql = text
    elif _WORD.fullmatch(text):
        sql = identifier(text)
    else:
        # Looking through all tables takes longer than all the rest of a planner.
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
    found = Source(text, sql, {row[0]: row[1] for row in described})
    if not elsewhere and (marked := read_elsewhere(cursor, found, argument)):
        raise SDCError(
            f"argument '{argument}': the records of '{marked[0]}' are on another engine, and the table here is empty; "
            "take a sample of them into a table of this database by sdc_sample (docs/engines.md)"
        )
    return found


def read_elsewhere(cursor: duckdb.DuckDBPyConnection, relation: Source, argument: str) -> list[str]:
    """The empty tables that it reads, which stand for those of another engine.

    Raises:
        SDCError: DuckDB does not tell.
    """
    try:
        return marked_tables(cursor, f"FROM {relation.sql}")
    except duckdb.Error:
        raise SDCError(
            f"argument '{argument}': tables here stand for others on another engine, and DuckDB does not tell whether "
            "the query reads one; put its rows into a table"
        ) from None


def stands_for(cursor: duckdb.DuckDBPyConnection, relation: Source, table: str) -> bool:
    """Whether a relation is this empty table itself, and no view or query of it."""
    [(database,)] = cursor.execute("SELECT current_database()").fetchall()
    homes = [f"{home}{schema}" for home in (f"{database}.", f"{identifier(database)}.") for schema in ("", "main.")]
    spelled = (f"{home}{name}" for home in ("", "main.", *homes) for name in (table, identifier(table)))
    return folded(relation.sql) in map(folded, spelled)


def refuse_taken(columns: Iterable[str], taken: Collection[str]) -> None:
    """That no column has the name of one of the result.

    Args:
        taken: these names, in lower case.

    Raises:
        SDCError: one has.
    """
    for name in columns:
        if folded(name) in taken:
            raise SDCError(f"a column called '{name}' is also one of the result; give it another name in a query")


def shared_columns(
    tables: Mapping[str, Source], columns: Sequence[str | None] | None, argument: str = "columns", *,
    leaving_out: Sequence[str] = (),
) -> tuple[str, ...]:  # fmt: skip
    """The columns by which tables are compared, as the first one calls them: those named, or all that every one has.

    Args:
        tables: by the argument that names them.
        leaving_out: columns that are compared only if they are named.

    Raises:
        SDCError: a column that one of them has not, one named twice, or none at all.
    """
    first, *others = tables.values()
    if columns:
        named = first.named(columns, argument)
        for table in others:
            table.named(columns, argument)
        return named
    left = {folded(name) for name in leaving_out}
    known = [{folded(name) for name in table.columns} for table in others]
    found = [name for name in first.columns if folded(name) not in left and all(folded(name) in one for one in known)]
    if not found:
        raise SDCError(f"{' and '.join(tables)} have no column in common")
    return tuple(found)


_NOT_VISIBLE = "(temporary tables, names of WITH, data frames and what is not committed are not visible here)"


def _unknown_table(text: str, cursor: duckdb.DuckDBPyConnection) -> SDCError:
    if text.startswith("("):
        return SDCError(f"the query names a table that is not there {_NOT_VISIBLE}")
    names = cursor.execute(
        "SELECT CASE WHEN table_schema = current_schema() THEN table_name ELSE table_schema || '.' || table_name END "
        "FROM information_schema.tables WHERE table_catalog = current_database()"
    ).fetchall()
    # The nearest name may be that of a table in another schema.
    known = {row[0]: row[0] for row in names} | {row[0].split(".")[-1]: row[0] for row in names}
    near = difflib.get_close_matches(folded(text), [folded(name) for name in known], n=1)
    if near:
        found = next(full for name, full in known.items() if folded(name) == near[0])
        error = SDCError(f"unknown table '{text}'; did you mean '{found}'?")
    else:
        error = unknown("table", text, [row[0] for row in names])
    return SDCError(f"{error} {_NOT_VISIBLE}")


def read_file(cursor: duckdb.DuckDBPyConnection, path: str | None, columns: str) -> Any:
    """Of the one file that a path names, what DuckDB says: its file systems and its limits on external access hold.

    Args:
        columns: of `read_blob`: `content`, or `filename, size`, for which the file must be there, too.

    Raises:
        SDCError: the path names none, or several.
    """
    needed(path, "path", "name a file")
    try:
        files = cursor.execute(f"SELECT {columns} FROM read_blob(?)", [path]).fetchall()
    except duckdb.IOException:
        files = []
    if not files:
        raise SDCError(f"there is no file '{path}', or it cannot be read")
    if len(files) > 1:
        raise wrong("path", "name one file")
    return files[0][0]
