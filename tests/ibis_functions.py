"""Writes the functions for ibis, from the comments in ``sql/``: ``make examples``."""

from __future__ import annotations

import re
import textwrap
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path

from sdcduck.functions.reference import SQLFunction, sql_functions

FILE = Path(__file__).parent.parent / "sdcduck" / "ibis" / "functions.py"
WIDTH = 120
_QUOTES = '"' * 3
_HEAD = '''"""The `sdc_*` SQL functions with types, for expressions on an ordinary ibis connection that sdcduck is installed on.

    people.group_by("region").agg(n=sdc_count(people.record_key), income=sdc_sum(people.income, people.record_key))

Arguments, defaults and results are those of SQL (`sdcduck functions sdc_sum`); the argument `filter` is `where` here,
as everywhere in ibis. What DuckDB does with a bad argument it does here: an error when the expression runs.

`make examples` writes this file from the comments in ``sql/``; `help` has what they say of arguments.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.types as ir

from sdcduck.ibis.calls import Column, Condition, Value, aggregate, scalar
'''
_PYTHON = {
    "VARCHAR": "str", "DOUBLE": "float", "INTEGER": "int", "BIGINT": "int", "BOOLEAN": "bool",
    "DOUBLE[]": "Sequence[float]", "VARCHAR[]": "Sequence[str]",
}  # fmt: skip
_IBIS = {
    "BIGINT": ("Integer", "int64"), "DOUBLE": ("Floating", "float64"), "BOOLEAN": ("Boolean", "boolean"),
    "VARCHAR": ("String", "string"), "STRUCT": ("Struct", ""),
}  # fmt: skip


def expressions() -> list[SQLFunction]:
    """The SQL functions that stand in an expression."""
    return sorted((one for one in sql_functions() if one.kind != "table"), key=lambda one: one.name)


def written() -> str:
    """The file."""
    functions = expressions()
    names = filled([f'"{function.name}"' for function in functions])
    return "\n\n".join([_HEAD, *map(_function, functions), f"__all__ = [\n{names},\n]\n"])


def _function(function: SQLFunction) -> str:
    return f"@{function.kind}({_kind(function)})\n{_signature(function)}:\n{summary_of(function)}\n"


def summary_of(function: SQLFunction) -> str:
    """The docstring in the file; the rest is told by `documentation`."""
    return wrapped(f"{_QUOTES}{function.summary}{_QUOTES}", 4, 4)


def _signature(function: SQLFunction) -> str:
    kinds = dict(function.types)
    parts, optional = [], False
    for name, default in function.parameters:
        if default is not None and not optional:
            parts.append("*")
            optional = True
        kind = _python(function.kind, kinds[name], required=default is None)
        value = "" if default is None else value_in_python(default)
        nothing = " | None" if value == "None" else ""
        parts.append(f"{_named(name)}: {kind}{nothing}{value and f' = {value}'}")
    shape = "Scalar" if function.kind == "aggregate" else "Value"
    start, end = f"def {function.name}(", f") -> ir.{_IBIS[_declared(function)][0]}{shape}"
    return signature(start, parts, end)


def signature(start: str, parts: Sequence[str], end: str) -> str:
    """The arguments of a function on one line, or on as many as they need."""
    listed = ", ".join(parts)
    return f"{start}{listed}{end}" if len(f"{start}{listed}{end}:") <= WIDTH else f"{start}\n{filled(parts)}\n{end}"


def _declared(function: SQLFunction) -> str:
    return function.signature.rpartition("-> ")[2]


def _kind(function: SQLFunction) -> str:
    """The type of the result, as ibis names it."""
    declared = _declared(function)
    if declared != "STRUCT":
        return f'"{_IBIS[declared][1]}"'
    whole = f"struct<{', '.join(f'{name}: {_IBIS[kind][1]}' for name, kind in function.types_of_columns)}>"
    lines = textwrap.wrap(whole, WIDTH - 7, drop_whitespace=False)
    return f'"{whole}"' if len(lines) == 1 else "".join(f'\n    "{line}"' for line in lines) + "\n"


def _python(kind: str, declared: str, *, required: bool) -> str:
    if declared.endswith("column"):
        return "Column"
    if "expression" in declared or (kind == "scalar" and declared == "BOOLEAN"):
        return "Condition"
    return "Value" if kind == "scalar" and required else _PYTHON[declared]


def value_in_python(sql: str) -> str:
    """A default as Python has it: nothing that could be changed."""
    if sql.startswith("["):
        return repr(tuple(literal_eval(sql)))
    if sql.startswith("'"):
        return '"' + sql[1:-1] + '"'
    return {"NULL": "None", "true": "True", "false": "False"}.get(sql, sql)


def _named(name: str) -> str:
    return "where" if name == "filter" else name


def wrapped(text: str, first: int, others: int) -> str:
    """Lines that are not too long; what is in backticks stays together."""
    kept = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        kept, WIDTH, initial_indent=" " * first, subsequent_indent=" " * others, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def filled(parts: Sequence[str]) -> str:
    """Lines of what stands between commas, none of it broken."""
    return wrapped(", ".join(part.replace(" ", "\0") for part in parts), 4, 4)


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
