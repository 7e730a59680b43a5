"""The text of a protected query: its parts are written and read each on its own, and put together."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from sdcduck.guard.calls import Numbered
from sdcduck.guard.readings import bracket_keys
from sdcduck.guard.subscripts import settle_subscripts

_DUCKDB = Dialect.get_or_raise("duckdb")
_NAME = re.compile(r'"(_sdc_[0-9a-f]{24})"')


def unknown_name() -> str:
    """A name for a table that stands for a block: nobody can have written it into a query, not even in a string."""
    return f"_sdc_{secrets.token_hex(12)}"


def words_of(text: str) -> list[Token]:
    """The words of a text as sqlglot reads them.

    After a $ it takes an empty text at the very end for one without an end: a line more, and it is not the end.

    >>> [word.text for word in words_of("SELECT $1, ''")]
    ['SELECT', '$', '1', ',', '']
    """
    found: list[Token] = _DUCKDB.tokenize(f"{text}\n")
    return found


@dataclass(frozen=True)
class Written:
    """The text of a query.

    Attributes:
        outer: the query over released numbers, in which tables stand for the blocks.
        grouped: the queries over records, which group them.
        sql: all of it.
    """

    outer: str
    grouped: tuple[str, ...]
    sql: str


def written(tree: exp.Expr, numbers: Mapping[str, Numbered], *, subscripts: bool = False) -> Written | None:
    """The text of trees that were checked, which are used up; None if a text does not read as its tree.

    Args:
        tree: the query, in which tables stand for the blocks.
        numbers: of the blocks, by the names of these tables.
        subscripts: whether there are any, which have to be brought into one form.
    """
    outer, *grouped = (_rendered(part, subscripts) for part in (tree, *(made.grouped for made in numbers.values())))
    texts = [text for text in grouped if text is not None]
    if outer is None or len(texts) < len(grouped):
        return None
    blocks = dict(zip(numbers, texts, strict=True))

    def whole(text: str) -> str:
        return _NAME.sub(block, text)

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in numbers:
            return found[0]
        before, after = numbers[name].around
        return f"({before}{whole(blocks[name])}{after}{numbers[name].order})"

    return Written(outer, tuple(texts), whole(outer))


def _rendered(tree: exp.Expr, subscripts: bool) -> str | None:
    """The text of a tree; None if the text does not read as that tree.

    sqlglot writes some parts of a tree as they are; what stands in them must not become SQL. Trees are equal where
    their hashes are, which are over everything in them and salted in each process. That of the checked tree is taken
    before it is written, for sqlglot changes it as it writes.
    """
    if subscripts:
        settle_subscripts(tree)
    bracket_keys(tree)
    checked = type(tree), hash(tree)
    sql = tree.sql("duckdb", comments=False, copy=False)
    try:
        again = _DUCKDB.parser().parse(words_of(sql), sql)
    except SqlglotError:
        return None
    if subscripts and again[0] is not None:
        settle_subscripts(again[0])
    return sql if len(again) == 1 and (type(again[0]), hash(again[0])) == checked else None
