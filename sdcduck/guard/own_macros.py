"""Whether the macros of a database are those of the sdcduck that runs.

Everything protected is computed by macros that are stored in the custodian's file. Those of an older sdcduck know less
or compute something else, and one that somebody replaced changes numbers without a word. Those with the numbers of
p-tables are looked at where one is used (`sdcduck.guard.ptables`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import duckdb

from sdcduck import catalog

NOT_OURS = (
    "the functions in the file are not those of this sdcduck: open it once with sdcduck.connect; "
    "where somebody replaced them, sdcduck.uninstall and install"
)

_FILES = ("perturbation.sql", "suppression.sql", "guard.sql")

_Macro = tuple[str, str, str]
"""Name, parameters, and what it stands for as DuckDB spells it."""

# DuckDB lists all its functions whatever is asked of them, and that takes longest: once, and the rest is done here.
_STORED = """
SELECT function_name, lower(function_name), internal, CASE WHEN NOT internal THEN parameters::VARCHAR END,
    CASE WHEN internal THEN NULL WHEN starts_with(function_name, '_sdc_ptable_') THEN 'SELECT 0'
        WHEN function_type = 'macro' THEN 'SELECT ' || macro_definition ELSE macro_definition END
FROM duckdb_functions()
WHERE internal OR (
    function_type IN ('macro', 'table_macro') AND database_name = current_database() AND schema_name = 'main'
)"""
_OURS = re.compile("_?sdc_")

_PLACES = frozenset(["query_location", "query_location_length", "syntax_type"])
"""Where a text stands, and how a lambda is spelled: not what it means."""

_OPPOSITE = {
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHANOREQUALTO", "COMPARE_LESSTHAN": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHAN",
    "COMPARE_EQUAL": "COMPARE_NOTEQUAL", "COMPARE_NOTEQUAL": "COMPARE_EQUAL",
}  # fmt: skip
"""What DuckDB 1.5 writes for NOT of a comparison."""


@dataclass(frozen=True)
class Macros:
    """The macros in a database that a guard has to know of."""

    own: tuple[_Macro, ...]
    """Those with our names."""
    shadowing: tuple[str, ...]
    """Names of those that have the name of a function of DuckDB: they run in its place."""

    def are_ours(self) -> bool:
        """Whether a database has all macros that a protected answer is made with, as they come with this sdcduck.

        DuckDB spells a macro in another way once it was in a file, and each version in its own: so they are compared as
        trees, once for all databases of a process that spell them alike.
        """
        return _are_ours(self.own)


def macros_of(con: duckdb.DuckDBPyConnection) -> Macros:
    """The macros in the database that a connection works in."""
    rows = con.execute(_STORED).fetchall()
    of_duckdb = {name for _, name, internal, _, _ in rows if internal}
    macros = sorted((row[0], *row[3:], row[1]) for row in rows if not row[2])
    return Macros(
        tuple((name, *means) for name, *means, lower in macros if _OURS.match(lower) and lower not in of_duckdb),
        tuple(dict.fromkeys(name for name, *_, lower in macros if lower in of_duckdb)),
    )


@lru_cache(100)
def _are_ours(stored: tuple[_Macro, ...]) -> bool:
    with duckdb.connect() as own:
        for name in _FILES:
            own.execute((files("sdcduck.sql") / name).read_text(encoding="utf-8"))
        # Most are spelled alike; a tree takes longer than all else.
        spelled = set(stored)
        others = [macro for macro in macros_of(own).own if macro not in spelled]
        called = {(name, parameters) for name, parameters, _ in others}
        ours, theirs = _trees(own, others), _trees(own, [macro for macro in stored if macro[:2] in called])
    return all(theirs.get(macro) == tree for macro, tree in ours.items())


def _trees(con: duckdb.DuckDBPyConnection, macros: Sequence[_Macro]) -> dict[tuple[str, str], object]:
    texts = [text for _, _, text in macros]
    rows = con.execute("SELECT json_serialize_sql(unnest(?::VARCHAR[]))", [texts]).fetchall()
    read = zip(macros, rows, strict=True)
    return {(name, parameters): _meaning(json.loads(tree)) for (name, parameters, _), (tree,) in read}


def mean_the_same(con: duckdb.DuckDBPyConnection, one: catalog.Definition, other: catalog.Definition) -> bool:
    """Whether views and macros are the same but for how DuckDB spells them."""
    if one == other:
        return True
    ours, theirs = _trees(con, one), _trees(con, other)
    # Of what DuckDB does not read as a query there is no tree, but a message.
    readable = all(isinstance(tree, dict) and not tree.get("error") for tree in ours.values())
    return len(one) == len(other) == len(ours) and readable and ours == theirs


def _meaning(node: Any) -> Any:
    """A part of DuckDB's tree without places, and with constants in one spelling.

    >>> texts = ("SELECT main.abs(1_000), NOT 1 < 2", "SELECT abs(1000), 1 >= 2")
    >>> one, other = _trees(duckdb.connect(), [("a", "[]", texts[0]), ("b", "[]", texts[1])]).values()
    >>> one == other
    True
    """
    if isinstance(node, list):
        return [_meaning(part) for part in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _meaning(part) for name, part in node.items() if name not in _PLACES}
    if plain.get("schema") == "main":
        plain["schema"] = ""
    if isinstance(path := plain.get("path"), list) and path[:1] == ["main"] and len(path) > 1:
        plain["path"] = path[1:]
    literal = plain.get("literal")
    if isinstance(literal, dict):
        kind, text = literal["kind"], literal["text"].replace("_", "")
        if kind == "NUMERIC" and "e" in text:
            return ["DOUBLE", float(text)]
        return [kind, literal["text"] if kind == "STRING" else text]
    if plain.get("type") == "OPERATOR_CAST" and isinstance(plain["child"], list):
        return _cast(plain, *plain["child"])
    if plain.get("type") == "OPERATOR_NOT" and plain["children"][0].get("type") in _OPPOSITE:
        (compared,) = plain["children"]
        return {**compared, "type": _OPPOSITE[compared["type"]]}
    return plain


def _cast(cast: dict[str, Any], kind: str, text: object) -> object:
    """A cast of a constant, or the constant that it is."""
    to = cast.get("type_expr", {}).get("type_name")
    if (kind, to) == ("NUMERIC", "DOUBLE"):
        return ["DOUBLE", float(str(text))]
    if (kind, to) == ("STRING", "BOOLEAN") and text in ("t", "f"):
        return ["BOOLEAN", "true" if text == "t" else "false"]
    return cast
