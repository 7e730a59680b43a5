"""What the parameters of a macro are: their types and default values, which DuckDB's list of functions leaves out.

It names them where it refuses a call: so each is called with an argument too many.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence

import duckdb

from sdcduck.quoting import identifier

Variant = tuple[str, str, str, str, Sequence[str]]
"""Of a variant of a macro, as `duckdb_functions()` has it: database, schema, name, kind and parameters."""

_TOLD = "Candidate macros:\n\t"


def refused_calls(variants: Iterable[Variant]) -> dict[tuple[str, str, str, str], str]:
    """By database, schema, name and kind, a call of each macro that none of its variants takes.

    They are worked out here: as an expression of SQL they took longer than to list all functions. Macros are named in
    full, since one may have the name of a function of DuckDB.
    """
    most: dict[tuple[str, str, str, str], int] = {}
    for *macro, parameters in variants:
        database, schema, name, kind = map(str, macro)
        place = database, schema, name, kind
        most[place] = max(most.get(place, 0), len(parameters))
    return {place: _call(place, number + 1) for place, number in most.items()}


def _call(macro: tuple[str, str, str, str], arguments: int) -> str:
    *path, kind = macro
    asked = "FROM" if kind == "table_macro" else "SELECT"
    return f"{asked} {'.'.join(map(identifier, path))}({', '.join(['NULL'] * arguments)})"


def signatures(con: duckdb.DuckDBPyConnection, calls: Sequence[str]) -> list[str]:
    r"""The parameters of all variants of macros, by such calls of them.

    Where DuckDB does not tell them it is another text each time: nobody knows whether they are what they were.

    >>> con = duckdb.connect()
    >>> _ = con.execute("CREATE MACRO f(a) AS a, (a, b := 'it''s') AS b")
    >>> place = "memory", "main", "f", "macro"
    >>> call = refused_calls([(*place, ["a"]), (*place, ["a", "b"])])[place]
    >>> call, signatures(con, [call])
    ('SELECT "memory"."main"."f"(NULL, NULL, NULL)', ["f(a)\n\tf(a, b := 'it''s')"])
    """
    rows = con.execute("SELECT system.main.json_serialize_plan(unnest(?::VARCHAR[]))", [list(calls)]).fetchall()
    told = [str(json.loads(refusal).get("error_message", "")).partition(_TOLD)[2] for (refusal,) in rows]
    return [parameters or secrets.token_hex() for parameters in told]


def signature(con: duckdb.DuckDBPyConnection, call: str) -> str:
    """The same of one macro."""
    return signatures(con, [call])[0]
