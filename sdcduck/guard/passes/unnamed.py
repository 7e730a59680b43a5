"""What DuckDB calls the columns of an answer that have no name: as it writes the expression itself.

``now()`` is ``now()``, which sqlglot has as CURRENT_TIMESTAMP, and ``1+1`` is ``(1 + 1)``. DuckDB makes the text of its
own tree, of a SELECT of nothing: no table is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from sdcduck.guard.passes.reading import Reading
from sdcduck.guard.running import in_memory

_SELECT = "SELECT "
_NAMED = frozenset(["COLUMN_REF", "STAR"])
_STAR = '"class": "STAR"'
"""Of COLUMNS(..), which has the names of the columns that it stands for, in an expression too."""


def names_in_duckdb(con: duckdb.DuckDBPyConnection, reading: Reading, said: Sequence[str]) -> list[str]:
    """The names of the columns of a query, those without one called as DuckDB calls them.

    >>> from sdcduck.guard.passes.reading import read
    >>> con = duckdb.connect()
    >>> names_in_duckdb(con, read(con, "SELECT a, 1+1 AS two, 1+1, len('A'), 3::int"), ["a", "two", "x", "y", "z"])
    ['a', 'two', '(1 + 1)', "len('A')", 'CAST(3 AS INTEGER)']
    >>> names_in_duckdb(con, read(con, "SELECT max(COLUMNS('inc.*')), 1+1"), ["income", "x"])
    ['income', '(1 + 1)']
    >>> names_in_duckdb(con, read(con, "SELECT a, count(*) FROM t GROUP BY ALL ORDER BY ALL"), ["a", "x"])
    ['a', 'count_star()']

    Args:
        reading: of the query by DuckDB's parser.
        said: the names of all columns, as far as they are known; what DuckDB does not tell stays.
    """
    listed = _listed(reading)
    unnamed = [
        place for place, item in enumerate(listed)
        if not item.get("alias") and item.get("class") not in _NAMED and _STAR not in json.dumps(item)
    ]  # fmt: skip
    if len(listed) != len(said) or not unnamed or any(item.get("class") == "STAR" for item in listed):
        return list(said)
    root, node = reading.items[0], _leftmost(reading)
    trees = [_of_nothing(root, node, listed[place]) for place in unnamed]
    try:
        with in_memory():
            called = ", ".join(["system.main.json_deserialize_sql(?::JSON)"] * len(trees))
            texts = con.execute(f"SELECT {called}", trees).fetchall()[0]
    except duckdb.Error:
        return list(said)
    made = dict(zip(unnamed, texts, strict=True))
    return [
        made[place].removeprefix(_SELECT) if place in made and made[place].startswith(_SELECT) else name
        for place, name in enumerate(said)
    ]


def _leftmost(reading: Reading) -> dict[str, Any]:
    """The SELECT that names the columns of a query; empty where there is none."""
    statements = reading.items[0].get("statements") if reading.items else None
    node = statements[0].get("node") if statements else None
    while isinstance(node, dict) and node.get("type") in ("SET_OPERATION_NODE", "CTE_NODE"):
        sides = node.get("children")
        node = node.get("left") or node.get("child") or (sides[0] if sides else None)
    return node if isinstance(node, dict) and node.get("type") == "SELECT_NODE" else {}


def _listed(reading: Reading) -> list[dict[str, Any]]:
    return list(_leftmost(reading).get("select_list") or [])


def _of_nothing(root: dict[str, Any], node: dict[str, Any], item: dict[str, Any]) -> str:
    """DuckDB's tree of a SELECT of one expression, from no table."""
    kept = {"type", "select_list", "from_table", "group_expressions", "group_sets"}
    empty = {"type": "EMPTY", "alias": "", "sample": None}
    bare: dict[str, Any] = {name: value for name, value in node.items() if name in kept}
    bare |= {"select_list": [item], "from_table": empty, "group_expressions": [], "group_sets": []}
    bare |= {
        "aggregate_handling": "STANDARD_HANDLING",  # GROUP BY ALL is written behind the expression
        "modifiers": [],
        "cte_map": {"map": []},
        "where_clause": None,
        "having": None,
        "sample": None,
        "qualify": None,
    }
    return json.dumps({**root, "statements": [{**root["statements"][0], "node": bare}]})
