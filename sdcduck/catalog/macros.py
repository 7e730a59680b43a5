"""What the parameters of a macro are: their types and default values, which DuckDB's list of functions leaves out.

It names them where it refuses a call: so each is called with an argument too many.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

import duckdb

_QUOTED = "'\"' || system.main.replace({}, '\"', '\"\"') || '\"'"
_PATH = " || '.' || ".join(_QUOTED.format(name) for name in ("database_name", "schema_name", "function_name"))
_MOST = (
    "system.main.max(system.main.len(parameters)) "
    "OVER (PARTITION BY database_name, schema_name, function_name, function_type)"
)
CALL_OF_MACRO = (
    f"CASE function_type WHEN 'table_macro' THEN 'FROM ' ELSE 'SELECT ' END || {_PATH} "
    f"|| '(NULL' || system.main.repeat(', NULL', {_MOST}) || ')'"
)
"""An expression over `duckdb_functions()`: a call of the macro that none of its variants takes.

One of them may have the name of a function of DuckDB: so these are named in full."""

_TOLD = "Candidate macros:\n\t"


def signatures(con: duckdb.DuckDBPyConnection, calls: Sequence[str]) -> list[str]:
    r"""The parameters of all variants of macros, by such calls of them.

    Where DuckDB does not tell them it is another text each time: nobody knows whether they are what they were.

    >>> con = duckdb.connect()
    >>> _ = con.execute("CREATE MACRO f(a) AS a, (a, b := 'it''s') AS b")
    >>> listed = f"SELECT {CALL_OF_MACRO} FROM duckdb_functions() WHERE NOT internal AND function_name = 'f'"
    >>> call = con.execute(listed).fetchall()[0][0]
    >>> call, signatures(con, [call])
    ('SELECT "memory"."main"."f"(NULL, NULL, NULL)', ["f(a)\n\tf(a, b := 'it''s')"])
    """
    rows = con.execute("SELECT system.main.json_serialize_plan(unnest(?::VARCHAR[]))", [list(calls)]).fetchall()
    told = [str(json.loads(refusal).get("error_message", "")).partition(_TOLD)[2] for (refusal,) in rows]
    return [parameters or secrets.token_hex() for parameters in told]


def signature(con: duckdb.DuckDBPyConnection, call: str) -> str:
    """The same of one macro."""
    return signatures(con, [call])[0]
