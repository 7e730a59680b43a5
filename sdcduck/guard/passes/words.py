"""The words of a text, as sqlglot reads them."""

from __future__ import annotations

import re

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

_DUCKDB = Dialect.get_or_raise("duckdb")


def words_of(text: str) -> list[Token]:
    """The words of a text as sqlglot reads them.

    After a $ it takes an empty text at the very end for one without an end: a line more, and it is not the end.

    >>> [word.text for word in words_of("SELECT $1, ''")]
    ['SELECT', '$', '1', ',', '']
    """
    found: list[Token] = _DUCKDB.tokenize(f"{text}\n")
    return found


_CLOSE = re.compile(r"\$\w+(?=[^\s\w$][^\s$]*\$)")
_APART = re.compile(
    r"""E'(?:[^'\\]|\\.|'')*'|'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|(\$[^\W\d]\w*\$|\$\$).*?\1|(\$\w+)(?=[^\s\w$])""",
    re.I | re.S,
)


def with_blanks(text: str) -> str:
    """A text in which a blank follows each parameter, where sqlglot takes what is between two for the tag of a text.

    >>> with_blanks("SELECT count(*) FROM t WHERE a IN ($1,$2) AND b <> '$3,$4'")
    "SELECT count(*) FROM t WHERE a IN ($1 ,$2 ) AND b <> '$3,$4'"
    >>> with_blanks("SELECT count(*) FROM t WHERE a IN ($1, $2)")
    'SELECT count(*) FROM t WHERE a IN ($1, $2)'
    """
    if not _CLOSE.search(text):
        return text
    return _APART.sub(lambda found: f"{found[2]} " if found[2] else found[0], text)
