"""Conditions on the columns of a table and nothing else, which whoever reads them can judge without another table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier

_KINDS = frozenset(
    (
        "BETWEEN",
        "CASE",
        "CAST",
        "COLLATE",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "FUNCTION",
        "OPERATOR",
        "TYPE",
    )
)
_MACROS = frozenset(("if", "nullif", "split_part"))
"""DuckDB's own, of which the text is an expression of their arguments."""
_SETTINGS = frozenset(("current_setting", "getvariable"))
"""DuckDB 1 has them among the functions that always give the same."""


def parsed(cursor: duckdb.DuckDBPyConnection, statement: str) -> dict[str, Any]:
    """One statement as DuckDB's parser reads it, without the places of its words; empty if it is none, or several."""
    row = first_row(cursor, "SELECT json_serialize_sql(?)", [statement])
    tree = json.loads(row[0], object_hook=_without_places) if row else {}
    found = tree.get("statements", [])
    return found[0] if len(found) == 1 else {}


def _without_places(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in ("query_location", "query_location_length")}


def expression(cursor: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any] | None:
    """A text as DuckDB's parser reads it as one expression; None if it is none."""
    given, plain = parsed(cursor, f"SELECT ({text}\n)"), parsed(cursor, "SELECT (1)")
    shown = (given.get("node") or {}).get("select_list") or []
    plain["node"]["select_list"] = shown
    return shown[0] if given == plain and len(shown) == 1 else None


def check_reads_columns_only(
    cursor: duckdb.DuckDBPyConnection, condition: str, columns: Sequence[str], argument: str
) -> None:
    """That a condition which binds reads the columns alone: no other table, setting or clock.

    Raises:
        SDCError: it could read something else.
    """
    names = ", ".join(map(identifier, columns)) or "nothing"
    some = f"({names})" if len(columns) > 1 else names
    values = "((.., ..), (.., ..))" if len(columns) > 1 else "(.., ..)"
    wanted = (
        f"argument '{argument}' must be a condition on {names} alone, without subqueries: "
        f"write the combinations out, as in {some} IN {values}"
    )
    read = expression(cursor, condition)
    if read is None:
        raise SDCError(wanted)
    known, functions = set(map(folded, columns)), set()
    for part in _parts(read):
        if part["class"] not in _KINDS:
            raise SDCError(wanted)
        if part["class"] == "COLUMN_REF" and not known & set(map(folded, part["column_names"])):
            raise SDCError(f"{wanted}; '{'.'.join(part['column_names'])}' is no column")
        if part["class"] == "FUNCTION":
            # DuckDB 1 writes the schema itself where a function stands for a form of SQL, as row does for brackets.
            if folded(part.get("schema") or "main") != "main" or part.get("catalog"):
                raise SDCError(wanted)
            functions.add(folded(part["function_name"]))
    for name in sorted(functions - _of_arguments_only(cursor, functions)):
        raise SDCError(f"{wanted}; '{name}' may read something else than its arguments")


def _parts(node: object) -> Iterator[dict[str, Any]]:
    """All expressions of a tree."""
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for value in node.values():
            yield from _parts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value)


def _of_arguments_only(cursor: duckdb.DuckDBPyConnection, names: set[str]) -> set[str]:
    """Those of the functions that are DuckDB's own and always give the same for the same arguments."""
    if not names:  # to list DuckDB's functions takes longer than all else that is asked of a condition
        return set()
    found = cursor.execute(
        "SELECT lower(function_name) FROM duckdb_functions() WHERE list_contains(?, lower(function_name)) GROUP BY 1 "
        "HAVING bool_and(internal AND (function_type = 'scalar' AND stability = 'CONSISTENT' "
        "OR function_type = 'macro' AND list_contains(?, lower(function_name))))",
        [sorted(names), sorted(_MACROS)],
    ).fetchall()
    return {row[0] for row in found} - _SETTINGS
