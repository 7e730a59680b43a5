"""Writes the table functions for Python, from the comments in ``sql/``: ``make examples``."""

from __future__ import annotations

import keyword
from pathlib import Path

from ibis_functions import filled, signature, summary_of, value_in_python

import sdcduck
from sdcduck.functions.reference import SQLFunction, sql_functions

FILE = Path(__file__).parent.parent / "sdcduck" / "functions" / "tables.py"
_HEAD = '''"""The `sdc_*` table functions as functions of Python, on a connection of DuckDB; `sdcduck` has them by the same names.

    sdcduck.protect(con, "people", unit="person_id", dimensions=["region", "sex"], measures=["income"])

Arguments, defaults and columns are those of SQL (`sdcduck functions sdc_protect`). A call runs at once and returns its
rows as a relation, with ``.df()``, ``.fetchall()`` and whatever else DuckDB has.

`make examples` writes this file from the comments in ``sql/``; `help` has what they say of arguments and columns.
"""
# fmt: off

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb import DuckDBPyConnection, DuckDBPyRelation

from sdcduck.functions.calling import table_function
'''
_SINGLE = {
    "VARCHAR": "str", "DOUBLE": "float", "INTEGER": "int", "BIGINT": "int", "BOOLEAN": "bool", "BLOB": "bytes",
    "DATE": "datetime.date", "LIST": "Sequence[Any]", "STRUCT": "Mapping[str, Any]", "them": "Mapping[str, Any]",
}  # fmt: skip


def called(function: SQLFunction) -> str:
    """What a function is called in Python."""
    return function.name.removeprefix("sdc_")


def table_functions() -> list[SQLFunction]:
    """Those that return a table, by name."""
    return sorted((one for one in sql_functions() if one.kind == "table"), key=called)


def of_the_package() -> list[str]:
    """Those that `sdcduck` has, too: all but those whose names mean something else there."""
    others = {*sdcduck.__all__, *(path.stem for path in FILE.parent.parent.iterdir())}
    return [called(function) for function in table_functions() if called(function) not in others]


def written() -> str:
    """The file."""
    names = filled([f'"{name}"' for name in of_the_package()])
    return "\n\n".join([_HEAD, *map(_function, table_functions()), f"__all__ = [\n{names},\n]\n"])


def _function(function: SQLFunction) -> str:
    return f'@table_function("{function.name}")\n{_signature(function)}:\n{summary_of(function)}\n'


def in_python(argument: str) -> str:
    """What an argument is called, which Python may have another meaning for."""
    name = argument.strip('"')
    return f"{name}_" if keyword.iskeyword(name) else name


def _signature(function: SQLFunction) -> str:
    kinds = dict(function.types)
    parts = ["con: DuckDBPyConnection", "/"]
    for name, default in function.parameters:
        kind = " | ".join(dict.fromkeys(map(_kind, kinds[name].split(" or "))))
        value = "" if default is None else value_in_python(default)
        parts.append(f"{in_python(name)}: {kind}{' | None' if value == 'None' else ''}{value and f' = {value}'}")
    start, end = f"def {called(function)}(", ") -> DuckDBPyRelation"
    return signature(start, parts, end)


def _kind(declared: str) -> str:
    """A type of SQL as Python has it."""
    if declared.endswith("[]"):
        return f"Sequence[{_kind(declared[:-2])}]"
    if declared.startswith("list of pairs"):
        return "Sequence[tuple[float, float]]"
    if declared.startswith("pair"):
        return "tuple[float, float]"
    return _SINGLE[declared.partition(" of ")[0]]


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
