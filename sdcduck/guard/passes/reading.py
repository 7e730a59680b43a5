"""What DuckDB's own parser makes of a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.guard.refusals import Refused
from sdcduck.guard.running import in_memory


@dataclass(frozen=True)
class Reading:
    """What DuckDB's parser makes of a text.

    Attributes:
        items: every object in its tree, the outer ones before those within.
        statements: how many.
        problem: why it cannot be shown as a tree, if that is no error of syntax: it is no query.
    """

    items: list[dict[str, Any]]
    statements: int
    problem: str = ""

    def parameters(self) -> list[str]:
        """The names or numbers of parameters, one after the other."""
        return [str(item.get("identifier")) for item in self.items if item.get("class") == "PARAMETER"]


def read(con: duckdb.DuckDBPyConnection, sql: str) -> Reading:
    """Refuse what DuckDB's parser does not read: it answers soon, where sqlglot's tries some wrong texts for ever."""
    return readings(con, sql)[0]


def readings(con: duckdb.DuckDBPyConnection, *queries: str) -> list[Reading]:
    """What DuckDB's parser makes of queries: one question, as each takes its time."""
    try:
        with in_memory():
            called = ", ".join(["system.main.json_serialize_sql(?)"] * len(queries))
            row = con.execute(f"SELECT {called}", list(queries)).fetchall()[0]
    except duckdb.Error:
        raise Refused("SDC001") from None
    return [_reading(text) for text in row]


def _reading(text: str) -> Reading:
    items: list[dict[str, Any]] = []

    def noted(item: dict[str, Any]) -> dict[str, Any]:
        items.append(item)
        return item

    # The hook sees every object of the tree, wherever it stands, and costs less than a walk through it.
    tree = json.loads(text, object_hook=noted)
    if not tree.get("error"):
        return Reading(items[::-1], len(tree["statements"]))
    if tree.get("error_type") != "not implemented":
        raise Refused("SDC001")
    return Reading([], 0, str(tree.get("error_message")))
