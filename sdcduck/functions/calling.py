"""Table functions called from Python: made from signatures without a body (`sdcduck.functions.tables`).

A relation of DuckDB (``con.sql``) does nothing until somebody looks at it, and an answer that was not fetched is in the
way of the next statement. A call is over when it returns: what it writes is written, and its rows are there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.install import install
from sdcduck.functions.reference import documentation
from sdcduck.quoting import identifier, sql_value

_PLACE = "\n\nLINE "
"""What DuckDB says of the place of an error in a statement, which nobody wrote here."""

_P = ParamSpec("_P")
_Called = Callable[Concatenate[duckdb.DuckDBPyConnection, _P], duckdb.DuckDBPyRelation]


def table_function(name: str) -> Callable[[_Called[_P]], _Called[_P]]:
    """A function that calls the SQL function of that name with what it is given, and with nothing that it is not.

    Args:
        name: of the SQL function, ``sdc_..``.

    Raises:
        SDCError: what the SQL function says of its arguments, one that it does not have, or that SQL has no value for.
        duckdb.Error: whatever else DuckDB says.
    """

    def calls(declared: _Called[_P]) -> _Called[_P]:
        signature = inspect.signature(declared)
        kept = {one.name for one in signature.parameters.values() if str(one.annotation).startswith("tuple")}

        @wraps(declared)
        def call(con: duckdb.DuckDBPyConnection, /, *args: _P.args, **named: _P.kwargs) -> duckdb.DuckDBPyRelation:
            for argument in named.keys() - signature.parameters.keys():
                raise unknown("argument", argument, list(signature.parameters)[1:], where=f"{name}()")
            _, *given = signature.bind(con, *args, **named).arguments.items()
            written = []
            for argument, value in given:
                named_in_sql = argument.removesuffix("_")
                text = _written(name, named_in_sql, value, is_pair=argument in kept)
                required = signature.parameters[argument].default is inspect.Parameter.empty
                written.append(text if required else f"{identifier(named_in_sql)} := {text}")
            return _answer(con, name, f"FROM {name}({', '.join(written)})")

        call.__doc__ = documentation(name, str(declared.__doc__), [("con", "TABLE: the connection")])
        return call

    return calls


def _written(function: str, argument: str, value: Any, *, is_pair: bool) -> str:
    if isinstance(value, tuple) and not is_pair:
        value = list(value)
    try:
        return sql_value(value)
    except TypeError:
        kind = type(value).__name__
        raise SDCError(
            f"{function}: argument '{argument}' cannot be a {kind}, but a number, a text, a date, or a list or dict of "
            "these. Records are given by the name of their table, or as a query in parentheses: a data frame becomes a "
            "table by con.execute('CREATE TABLE people AS FROM frame')"
        ) from None


def _answer(con: duckdb.DuckDBPyConnection, name: str, statement: str) -> duckdb.DuckDBPyRelation:
    """The rows of a statement, all of them; the functions are installed where the connection has none yet."""
    try:
        try:
            return _rows(con, statement)
        except duckdb.CatalogException:
            if con.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [name]).fetchall():
                raise
            return _rows(install(con), statement)
    except duckdb.Error as problem:
        _, ours, said = str(problem).partition(f"{name}: ")
        if not ours:
            raise
        raise SDCError(f"{name}: {said.split(_PLACE)[0]}") from None


def _rows(con: duckdb.DuckDBPyConnection, statement: str) -> duckdb.DuckDBPyRelation:
    """A relation that holds the rows: one of DuckDB 1 would run the statement again whenever they are asked for."""
    if duckdb.__version__.startswith("1."):
        return con.from_arrow(con.execute(statement).to_arrow_table())
    con.abort()  # what was not fetched of an earlier answer, as `execute` does
    return con.sql(statement).materialize()
