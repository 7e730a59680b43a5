"""Keys that are missing where others are: new records of a table that has its column."""

from __future__ import annotations

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier
from sdcduck.udfs.source import Source


def lacks_keys(session: Session, table: Source, column: str) -> bool:
    """Whether there are records without a key in a column that holds keys."""
    row = catalog.first_row(
        session.cursor(),
        f"SELECT count(*) FILTER ({column} IS NULL), any_value(typeof({column})) FROM {table.sql}",
    )
    return row is not None and bool(row[0]) and row[1] in ("INTEGER", "BIGINT")


def check_same_keys(cursor: duckdb.DuckDBPyConnection, table: Source, column: str, made: str, key_type: str) -> None:
    """That the keys that are there are those that would be made now, which fit in: a unit has one key.

    Raises:
        SDCError: they are not, or do not.
    """
    if key_type == "BIGINT" and table.type_of(column) == "INTEGER":
        raise SDCError(f"column '{column}' of {table.described} is INTEGER: keys of 10 digits or more are BIGINT")
    row = catalog.first_row(cursor, f"SELECT count(*) FROM {table.sql} WHERE {identifier(column)} <> {made}")
    if row is not None and row[0]:
        raise SDCError(
            f"{table.described} has keys in {identifier(column)} that are not those of this secret, unit and number of "
            "digits: keys that are missing are filled beside the same ones only"
        )
