"""The words of a text, as sqlglot reads them."""

from __future__ import annotations

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
