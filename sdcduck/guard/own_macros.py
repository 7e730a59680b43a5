"""Whether the macros of a database are those of the sdcduck that runs.

Everything protected is computed by macros that are stored in the custodian's file. Those of an older sdcduck know less
or compute something else, and one that somebody replaced changes numbers without a word. Those with the numbers of
p-tables are looked at where one is used (`sdcduck.guard.ptables`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.quoting import folded, identifier

NOT_OURS = (
    "the functions in the file are not those of this sdcduck: open it once with sdcduck.connect; "
    "where somebody replaced them, sdcduck.uninstall and install"
)

_FILES = ("perturbation.sql", "suppression.sql", "guard.sql")

_Macro = tuple[str, str, str]
"""Name, parameters with their default values, and what it stands for as DuckDB spells it."""

# DuckDB lists all its functions whatever is asked of them, and that takes longest: once, and the rest is done here,
# where no macro of the database runs in place of a function.
_STORED = """
SELECT internal, database_name, schema_name, function_name, function_type,
    CASE WHEN NOT internal THEN parameters END, CASE WHEN NOT internal THEN parameter_types END,
    CASE WHEN NOT internal THEN macro_definition END
FROM system.main.duckdb_functions()
WHERE internal OR (
    function_type IN ('macro', 'table_macro') AND database_name = system.main.current_database()
    AND schema_name = 'main'
)"""
_OURS = re.compile("_?sdc_")
_CREATED = re.compile(r"^CREATE OR REPLACE MACRO (\w+)", re.MULTILINE)

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
    read = _read(*_stored(con))
    told = dict(zip(read.calls, catalog.signatures(con, list(read.calls.values())), strict=True))
    return Macros(read.with_parameters(told), read.shadowing)


@dataclass(frozen=True)
class _Variant:
    """One variant of a macro: where it is, its parameters with their types where they have one, and its query."""

    place: catalog.Variant
    types: tuple[str | None, ...]
    text: str

    @property
    def name(self) -> str:
        return self.place[2]

    @property
    def macro(self) -> tuple[str, str, str, str]:
        return self.place[:4]


_Listed = tuple[str, str, str, str, tuple[str, ...], tuple[str | None, ...], str]
"""A variant of a macro as DuckDB lists it: database, schema, name, kind, parameters, their types, and its text."""


def _stored(con: duckdb.DuckDBPyConnection) -> tuple[tuple[_Listed, ...], frozenset[str]]:
    """The macros of a database, and the names of DuckDB's functions."""
    rows = con.execute(_STORED).fetchall()
    macros = [
        (database, schema, name, kind, tuple(parameters), tuple(types), text)
        for internal, database, schema, name, kind, parameters, types, text in rows
        if not internal
    ]
    return tuple(macros), frozenset([row[3] for row in rows if row[0]])


@dataclass(frozen=True)
class _Read:
    """What follows from the list of functions alone."""

    own: tuple[_Variant, ...]
    """Those with our names."""
    listed: dict[tuple[str, str, str, str], str]
    """Their parameters without default values."""
    calls: dict[tuple[str, str, str, str], str]
    """Calls that DuckDB refuses, of those of them that have default values."""
    shadowing: tuple[str, ...]

    def with_parameters(self, told: Mapping[tuple[str, str, str, str], str]) -> tuple[_Macro, ...]:
        """The macros with what DuckDB tells of their parameters, and the others as they are listed."""
        return tuple(sorted((one.name, told.get(one.macro, self.listed[one.macro]), one.text) for one in self.own))


@lru_cache(20)
def _read(macros: tuple[_Listed, ...], of_duckdb: frozenset[str]) -> _Read:
    """Read a list of functions, once for all databases of a process that have the same."""
    others, internal = _variants(macros), frozenset(map(folded, of_duckdb))
    own = [one for one in others if _OURS.match(folded(one.name)) and folded(one.name) not in internal]
    asked = [one for one in own if folded(one.name) in _with_defaults()]
    return _Read(
        tuple(own),
        _listed(own),
        catalog.refused_calls(one.place for one in asked),
        tuple(sorted({one.name for one in others if folded(one.name) in internal})),
    )


def _variants(macros: Sequence[_Listed]) -> list[_Variant]:
    return [
        _Variant((database, schema, name, kind, parameters), types, _query(name, kind, text))
        for database, schema, name, kind, parameters, types, text in macros
    ]


def _query(name: str, kind: str, text: str) -> str:
    """What a macro stands for as a query; numbers of p-tables are looked at elsewhere."""
    if name.startswith("_sdc_ptable_"):
        return "SELECT 0"
    return f"SELECT {text}" if kind == "macro" else text


def _listed(macros: Sequence[_Variant]) -> dict[tuple[str, str, str, str], str]:
    """The parameters of all variants of macros as they are listed, which leaves out default values.

    >>> one, other = (
    ...     _Variant(("db", "main", "f", "macro", names), types, "SELECT 1")
    ...     for names, types in [(("a", "b"), (None, "DATE")), (("a, b",), (None,))]
    ... )
    >>> _listed([one, other])
    {('db', 'main', 'f', 'macro'): '"f"("a", "b" DATE)\\n\\t"f"("a, b")'}
    """
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for one in macros:
        named = zip(one.place[4], one.types, strict=True)
        parameters = (identifier(name) + (f" {kind}" if kind else "") for name, kind in named)
        found.setdefault(one.macro, []).append(f"{identifier(one.name)}({', '.join(parameters)})")
    return {macro: "\n\t".join(variants) for macro, variants in found.items()}


@cache
def _texts() -> str:
    return "\n".join((files("sdcduck.sql") / name).read_text(encoding="utf-8") for name in _FILES)


@cache
def _needed() -> frozenset[str]:
    """The names of the macros that protected answers are made with."""
    return frozenset(map(folded, _CREATED.findall(_texts())))


@dataclass(frozen=True)
class _Ours:
    """The macros that protected answers are made with, as this DuckDB lists them where they were created just now."""

    macros: tuple[_Listed, ...]
    of_duckdb: frozenset[str]
    told: dict[tuple[str, str, str, str], str]
    """What DuckDB tells of their parameters."""


@cache
def _ours() -> _Ours:
    with duckdb.connect() as own:
        own.execute(_texts())
        macros, of_duckdb = _stored(own)
        needed = [one for one in _variants(macros) if folded(one.name) in _needed()]
        calls = catalog.refused_calls(one.place for one in needed)
        told = dict(zip(calls, catalog.signatures(own, list(calls.values())), strict=True))
    return _Ours(macros, of_duckdb, told)


@cache
def _with_defaults() -> frozenset[str]:
    """The names of those of them that have a default value, folded: DuckDB is asked for these, one by one.

    Whatever calls another one gives it all its parameters, so that nothing depends on a default value which it has not
    with us.
    """
    return frozenset(folded(name) for (_, _, name, _), parameters in _ours().told.items() if ":=" in parameters)


@lru_cache(100)
def _are_ours(stored: tuple[_Macro, ...]) -> bool:
    read = _read(_ours().macros, _ours().of_duckdb)
    ours = read.with_parameters({macro: _ours().told[macro] for macro in read.calls})
    # Most are spelled alike; a tree takes longer than all else.
    spelled = set(stored)
    others = [macro for macro in ours if macro not in spelled]
    names = {name for name, *_ in others}
    with duckdb.connect() as con:
        return _meanings(con, others) <= _meanings(con, [macro for macro in stored if macro[0] in names])


def _meanings(con: duckdb.DuckDBPyConnection, macros: Sequence[_Macro]) -> set[tuple[str, str, str]]:
    """Views and macros without how DuckDB spells them; what it does not read as a query, with that.

    >>> one, other, another = (
    ...     _meanings(duckdb.connect(), [("f", f"f(a, b := {default})", f"SELECT {text}")])
    ...     for default, text in [("1_000", "NOT 1 < 2"), ("1000", "1 >= 2"), ("1001", "1 >= 2")]
    ... )
    >>> one == other, one == another
    (True, False)
    """
    texts = [text for _, parameters, query in macros for text in (f"SELECT {parameters}", query)]
    rows = con.execute("SELECT json_serialize_sql(unnest(?::VARCHAR[]))", [texts]).fetchall()
    trees = [json.loads(tree) for (tree,) in rows]
    read = [
        text if tree.get("error") else json.dumps(_meaning(tree), sort_keys=True)
        for text, tree in zip(texts, trees, strict=True)
    ]
    return {(name, *meant) for (name, _, _), meant in zip(macros, zip(read[::2], read[1::2], strict=True), strict=True)}


def mean_the_same(con: duckdb.DuckDBPyConnection, one: catalog.Definition, other: catalog.Definition) -> bool:
    """Whether views and macros are the same but for how DuckDB spells them."""
    return one == other or _meanings(con, one) == _meanings(con, other)


def _meaning(node: Any) -> Any:
    """A part of DuckDB's tree without places, and with constants in one spelling.

    >>> _meaning({"type": "FUNCTION", "query_location": 7, "schema": "main", "path": ["main", "abs"]})
    {'type': 'FUNCTION', 'schema': '', 'path': ['abs']}
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
