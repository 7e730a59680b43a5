"""What differentially private releases are charged to, and the budget of a table (``sql/private_synthesis.sql``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.udfs.arguments import choice, number, share, wrong
from sdcduck.udfs.source import Source, source

NEIGHBOURS = {
    "add_remove": "tables that differ by one record, there or not there",
    "replace": "tables of the same number of records that differ in one record",
}
_WITHOUT_RECORDS = frozenset({
    "DUMMY_SCAN", "EXPRESSION_SCAN", "COLUMN_DATA_SCAN", "CHUNK_SCAN", "EMPTY_RESULT", "CTE_SCAN", "DELIM_SCAN",
    "RANGE", "GENERATE_SERIES",
})  # fmt: skip
"""Leaves of a plan that read nothing but what the statement or another part of the plan says."""


def _leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not node["children"]:
        yield node
    for child in node["children"]:
        yield from _leaves(child)


def tables_read(cursor: duckdb.DuckDBPyConnection, relation: Source) -> tuple[str, ...]:
    """The tables that a source reads, through views, macros and queries, as the ledger names them.

    A table of the current database is named without it: a file may be called something else tomorrow. What is no table
    goes by the text of the source; so does a source without any table.
    """
    cursor.execute("SET explain_output = 'all'")
    plans = dict(cursor.execute(f"EXPLAIN (FORMAT json) FROM {relation.sql}").fetchall())
    row = catalog.first_row(cursor, "SELECT current_database()")
    assert row is not None
    found = set()
    for plan in json.loads(plans["logical_plan"]):
        for leaf in _leaves(plan):
            told = leaf["extra_info"]
            table = told.get("Table") if isinstance(told, dict) else None
            if table:
                found.add(str(table).removeprefix(f"{row[0]}.").removeprefix("main."))
            elif leaf["name"].strip() not in _WITHOUT_RECORDS:
                found.add(relation.text)
    return tuple(sorted(found or {relation.text}))


def plan_synth_dp_budget(
    session: Session, data: str | None, epsilon: float | None, neighbours: str | None, delta: float | None
) -> Rows:
    """``sdc_synth_dp_budget``: stores it, or takes it away."""
    relation_of = choice(neighbours, "neighbours", NEIGHBOURS)
    budget = None if epsilon is None else number(epsilon, "epsilon", least=0, why="NULL for no budget")
    beside = share(delta, "delta", one=False)
    cursor = session.cursor()
    relation = source(cursor, data, "data")
    tables = tables_read(cursor, relation)
    if len(tables) > 1:
        raise wrong("data", "name one table; it reads " + ", ".join(f"'{name}'" for name in tables))
    if tables[0] == relation.text and relation.text.startswith("("):
        raise wrong("data", "name a table of the database", "nobody can follow what is read from files")
    if catalog.is_read_only(cursor):
        raise SDCError("a budget is stored in the database, which is open for reading only")

    def store() -> pa.Table:
        catalog.set_private_budget(session.cursor(), tables[0], relation_of, budget, beside)
        both = pa.array([budget], pa.float64()), pa.array([None if budget is None else beside], pa.float64())
        return pa.table({"data": [tables[0]], "neighbours": [relation_of], "budget": both[0], "budget_delta": both[1]})

    return Rows(store)


BUDGET = planner(plan_synth_dp_budget)  # fmt: skip
