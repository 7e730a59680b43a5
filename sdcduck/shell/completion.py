"""What may come next: commands, tables, columns, functions and words of SQL; only what the user may see and ask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sdcduck.guard.allowed import FUNCTIONS
from sdcduck.quoting import folded, identifier
from sdcduck.shell.results import MODES
from sdcduck.shell.shell import COMMANDS
from sdcduck.shell.sources import Table

_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "WITH", "AS", "JOIN", "LEFT JOIN",
    "CROSS JOIN", "SEMI JOIN", "ANTI JOIN", "USING", "ON", "UNION", "ALL", "INTERSECT", "EXCEPT", "DISTINCT", "CASE",
    "WHEN", "THEN", "ELSE", "END", "AND", "OR", "NOT", "IN", "EXISTS", "BETWEEN", "LIKE", "ILIKE", "IS", "NULL", "TRUE",
    "FALSE", "ASC", "DESC", "NULLS FIRST", "NULLS LAST", "FILTER", "OVER", "PARTITION BY", "ROWS", "QUALIFY", "WINDOW",
    "CUBE", "ROLLUP", "GROUPING SETS", "PIVOT", "UNPIVOT", "VALUES", "CAST", "DATE", "INTERVAL", "EXPLAIN",
    "DESCRIBE", "SHOW TABLES", "SUMMARIZE",
)  # fmt: skip
_FIRST_WORDS = {word.split()[0] for word in _WORDS}
_NAMES = sorted(name for name in FUNCTIONS if re.fullmatch(r"[a-z]\w+", name))
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORD = re.compile(r"\w*\Z")
_OWNER = re.compile(r"(\w+)\.\w*\Z")
_TABLE_NEXT = re.compile(r"\b(from|join|describe|summarize)\s+(?:\w+\s*,\s*)*\w*\Z", re.I)
_IN_TEXT = re.compile(r"(?:[^'\"]|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")*(['\"])(?:(?!\1).)*\Z", re.S)
_MENTIONED = re.compile(r"\b(?:from|join|,)\s+\"?(\w+)\"?(?:\s+(?:as\s+)?(\w+))?", re.I)
_COMMAND = re.compile(r"\s*\.(\w*)(\s+)?(.*)\Z", re.S)

Option = tuple[str, str]


def completions(before: str, statement: str, tables: Sequence[Table]) -> tuple[str, list[Option]]:
    """The beginning of the word at the cursor, and what it may become, each with what it is.

    Args:
        before: what stands before the cursor.
        statement: all that was typed: tables are mentioned after columns.
    """
    command = _COMMAND.match(before)
    if command is not None:
        if command[2] is None:
            return command[1], _beginning(command[1], [(name, about.about) for name, about in COMMANDS.items()])
        if command[1] not in ("explain", "rewrite"):
            return _of_command(command[1], command[3], tables)
        before = command[3]
    inside = _IN_TEXT.match(before)
    if inside is not None:
        return _quoted_name(before[inside.start(1) :], tables) if inside[1] == '"' else ("", [])
    found = _WORD.search(before)
    word = "" if found is None else found[0]
    mentioned = _mentioned(statement, tables)
    owner = _OWNER.search(before)
    if owner is not None:
        table = mentioned.get(owner[1].lower())
        return word, [] if table is None else _beginning(word, _columns([table]))
    named = [(_identifier(table.name), table.about) for table in tables]
    if _TABLE_NEXT.search(before):
        return word, _beginning(word, named)
    seen = list({table.name: table for table in mentioned.values()}.values()) or list(tables)
    if not word and not mentioned:
        return word, []
    columns = _columns(seen)
    words = [(folded(name) if word[:1].islower() else name, "") for name in _WORDS]
    functions = [(name, "function") for name in _NAMES]
    return word, _beginning(word, columns + named + ([*words, *functions] if word else []))


def _quoted_name(typed: str, tables: Sequence[Table]) -> tuple[str, list[Option]]:
    """The same inside of quotes for names, which are closed."""
    known = [(table.name, table.about) for table in tables]
    known += [(name, use) for table in tables for name, _, use in table.columns]
    return typed, _beginning(typed, sorted({identifier(name): about for name, about in known}.items()))


def _of_command(name: str, typed: str, tables: Sequence[Table]) -> tuple[str, list[Option]]:
    values: list[Option] = []
    if name in ("columns", "describe"):
        values = [(table.name, table.about) for table in tables]
    elif name == "mode":
        values = [(mode, "") for mode in MODES]
    elif name == "timer":
        values = [("on", ""), ("off", "")]
    elif name in ("read", "once", "output"):
        values = _files(typed)
    return typed, _beginning(typed, values)


def _files(typed: str) -> list[Option]:
    """What is in the folder whose name was typed so far."""
    folder = typed[: typed.rfind("/") + 1]
    try:
        found = sorted(Path(folder).expanduser().iterdir())
    except OSError:
        return []
    return [(f"{folder}{path.name}{'/' if path.is_dir() else ''}", "") for path in found if path.name[0] != "."]


def _mentioned(statement: str, tables: Sequence[Table]) -> dict[str, Table]:
    """The tables of a statement, by name and by alias."""
    known = {folded(table.name): table for table in tables}
    found: dict[str, Table] = {}
    for name, alias in _MENTIONED.findall(statement):
        table = known.get(folded(name))
        if table is not None:
            found[folded(name)] = table
            if alias and alias.upper() not in _FIRST_WORDS:
                found[folded(alias)] = table
    return found


def _columns(tables: Sequence[Table]) -> list[Option]:
    uses = {_identifier(name): use for table in tables for name, _, use in table.columns}
    return sorted(uses.items())


def _beginning(word: str, options: Sequence[Option]) -> list[Option]:
    """The options that begin so; a name in quotes may be begun without them."""
    start = word.lower()
    return [one for one in options if one[0].lower().startswith(start) or one[0].lower().startswith(f'"{start}')]


def _identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.upper() not in _FIRST_WORDS else identifier(name)
