"""What was typed: where a statement ends, and which lines are commands of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)|;)*", re.S)
_PART = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|[eE]'(?:\\.|''|[^'\\])*(?:'|\Z)|'(?:''|[^'])*(?:'|\Z)|\"(?:\"\"|[^\"])*(?:\"|\Z)"
    r"|\$(?P<tag>[A-Za-z_]*)\$.*?(?:\$(?P=tag)\$|\Z)"
    r"|\w+|(?P<end>;)|.",
    re.S,
)
_QUESTION = re.compile(r"(?:select|with|from|values|table|pivot|unpivot|summarize|\()", re.I)
_COMMAND = re.compile(r"[.\\][^\n]*|(?:help|quit|exit)(?=\s*(?:;|\n|\Z))", re.I)
_SHOW_TABLES = re.compile(r"show\s+(all\s+)?tables\s*", re.I)
_DESCRIBE = re.compile(r"desc(?:ribe)?\s+((?:[\w.]|\"[^\"]+\")+)\s*", re.I)
_EXPLAIN = re.compile(r"explain\s+(?!\()(.+)", re.I | re.S)


def split(text: str) -> Iterator[str]:
    """The statements and the commands of a text, in order.

    A command is a line that begins with a point, or a word for which other shells need none.

    >>> list(split(".mode csv\\nSELECT ';' -- done;\\n; SELECT 2; quit"))
    ['.mode csv', "SELECT ';' -- done;", 'SELECT 2', 'quit']
    """
    place = _after_blank(text, 0)
    while place < len(text):
        end = _end_of_command(text, place) or _end(text, place) or len(text)
        yield text[place:end].strip()
        place = _after_blank(text, end)


def is_complete(text: str) -> bool:
    """Whether nothing more has to be typed: a command, or statements with a semicolon after each.

    >>> [is_complete(text) for text in (".help", "quit", "SELECT 1", "SELECT ';", "SELECT 1; -- done", "")]
    [True, True, False, False, True, True]
    """
    place = _after_blank(text, 0)
    while place < len(text):
        end = _end_of_command(text, place) or _end(text, place)
        if end is None:
            return False
        place = _after_blank(text, end)
    return True


def is_question(statement: str) -> bool:
    """Whether a statement asks for rows of tables, as far as its first word tells."""
    return _QUESTION.match(statement, _after_blank(statement, 0)) is not None


def command_of(statement: str) -> str | None:
    """The command that a text of `split` is, or that it stands for.

    >>> [command_of(text) for text in (".mode csv", "QUIT", "SHOW TABLES", "describe people", 'DESC "a b"', "SELECT 1")]
    ['.mode csv', '.quit', '.tables', '.columns people', '.columns "a b"', None]
    """
    if _COMMAND.match(statement):
        return statement if statement[0] in ".\\" else f".{statement.lower()}"
    if _SHOW_TABLES.fullmatch(statement):
        return ".tables"
    found = _DESCRIBE.fullmatch(statement)
    return f".columns {found[1]}" if found else None


def explained(statement: str) -> str | None:
    """The query that a plain EXPLAIN is about."""
    found = _EXPLAIN.match(statement, _after_blank(statement, 0))
    return found[1] if found else None


def _after_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()


def _end_of_command(text: str, place: int) -> int | None:
    found = _COMMAND.match(text, place)
    return None if found is None else found.end()


def _end(text: str, place: int) -> int | None:
    """The place of the semicolon that ends the statement from here."""
    return next((found.start() for found in _PART.finditer(text, place) if found["end"]), None)
