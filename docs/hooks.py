"""Writes the SQL reference while the site is built: one page a family, from the comments beside the macros."""

from __future__ import annotations

from itertools import groupby

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sdcduck.functions.reference import SQLFunction, sql_functions


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference in a tab of its own."""
    config.nav = [
        *(config.nav or []),
        {"Reference": [{_title(family): _path(family)} for family, _ in _families()]},
    ]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    for family, functions in _families():
        files.append(File.generated(config, _path(family), content=family_page(family, functions)))
    return files


def _families() -> list[tuple[str, list[SQLFunction]]]:
    by_family = groupby(sql_functions(), key=lambda function: function.family)
    return [(family, list(functions)) for family, functions in by_family]


def _path(family: str) -> str:
    return f"reference/{family}.md"


def _title(family: str) -> str:
    return "About the functions" if family == "reference" else family.replace("_", " ").capitalize()


def family_page(family: str, functions: list[SQLFunction]) -> str:
    """The page of one family: a list of its functions, then each of them whole."""
    rows = [f"| [`{function.name}`](#{function.name}) | {_cell(function.summary)} |" for function in functions]
    parts = [f"# SQL reference: {_title(family).lower()}", "\n".join(["| function | |", "|---|---|", *rows])]
    return "\n\n".join([*parts, *(_section(function) for function in functions)]) + "\n"


def _section(function: SQLFunction) -> str:
    parts = [
        f"## {function.name} {{#{function.name}}}",
        f"```sql\n{_wrapped(function.signature)}\n```",
        function.summary,
        function.description,
        _table("argument", function.arguments),
        _table("column", function.columns),
        f"```sql\n{function.example}\n```",
        f"```text\n{function.output}\n```",
        f"Source: {function.source}.",
        "Needs a connection with sdcduck." if function.needs_python else "Pure SQL: works in any DuckDB shell.",
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(signature: str, width: int = 88) -> str:
    """A long signature on several lines."""
    if len(signature) <= width:
        return signature
    name, rest = signature.split("(", 1)
    arguments, result = rest.rsplit(")", 1)
    lines = [""]
    for argument in arguments.split(", "):
        if len(lines[-1]) + len(argument) > width:
            lines.append("")
        lines[-1] += f"{argument}, "
    body = "\n".join(f"    {line.rstrip()}" for line in lines).rstrip(",")
    return f"{name}(\n{body}\n){result}"


def _table(what: str, pairs: tuple[tuple[str, str], ...]) -> str:
    if not pairs:
        return ""
    rows = []
    for name, meaning in pairs:
        sql_type, colon, text = meaning.partition(": ")
        if not colon:
            sql_type, text = "", meaning
        rows.append(f"| `{name}` | {_cell(sql_type)} | {_cell(text)} |")
    return "\n".join([f"| {what} | type | |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
