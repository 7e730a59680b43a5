"""PostgreSQL's way of writing SQL, as sqlglot reads it."""

from __future__ import annotations

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sdcduck.quoting import folded

_POSTGRES = Dialect.get_or_raise("postgres")
READ_FOR_DUCKDB = Dialect.get_or_raise("postgres")
"""PostgreSQL's words in DuckDB's order: ORDER BY .. DESC has NULL last, whatever else stands in a question."""
READ_FOR_DUCKDB.NULL_ORDERING = "nulls_are_last"
UNREADABLE = (SqlglotError, RecursionError, TypeError, ValueError, AttributeError, LookupError)
"""What sqlglot raises for texts that it does not read, on purpose or not, as for TABLE ?"""


def ended(text: str) -> str:
    """A text that ends with its line: after a $, sqlglot takes an empty text at the very end for one without an end."""
    return f"{text}\n"


def semicolons(text: str) -> list[int] | None:
    """Where statements of a text end; None: it cannot be told."""
    try:
        found: list[int] = [
            word.start for word in _POSTGRES.tokenize(ended(text)) if word.token_type == TokenType.SEMICOLON
        ]
    except UNREADABLE:
        return None
    return found


_CLAUSES = frozenset([
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING,
    TokenType.LIMIT, TokenType.UNION, TokenType.JOIN, TokenType.ON, TokenType.CASE, TokenType.WHEN, TokenType.THEN,
    TokenType.ELSE, TokenType.END, TokenType.WITH,
])  # fmt: skip


def with_quoted_names(sql: str) -> str:
    """A text in which words that begin clauses are quoted where they name a column, as sqlglot wants them.

    >>> with_quoted_names("SELECT 1 AS select, region AS from FROM people")
    'SELECT 1 AS "select", region AS "from" FROM people'
    """
    try:
        words = _POSTGRES.tokenize(ended(sql))
    except UNREADABLE:
        return sql
    for before, word, after in reversed(list(zip(words, words[1:], [*words[2:], None], strict=False))):
        ends = after is None or after.token_type in (
            TokenType.COMMA,
            TokenType.FROM,
            TokenType.R_PAREN,
            TokenType.SEMICOLON,
        )
        if before.token_type == TokenType.ALIAS and word.token_type in _CLAUSES and ends:
            sql = f'{sql[: word.start]}"{folded(word.text)}"{sql[word.end + 1 :]}'
    return sql


_LONGEST = 100_000
_DEEPEST = 200
_DIGITS = 9


def is_large(text: str) -> bool:
    """Whether a text is longer or deeper than what the guard answers: then nobody needs to look into it."""
    if len(text) > _LONGEST:
        return True
    depth = deepest = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def number_of(node: exp.Expr) -> int | None:
    """The number of a parameter ``$1``; None for other nodes."""
    if isinstance(node, (exp.Parameter, exp.Placeholder)):
        name = node.name or (node.this.name if isinstance(node.this, exp.Expr) else "")
        return int(name) if name.isdecimal() and len(name) <= _DIGITS else None
    return None


def listed_in(comparison: exp.Expr) -> exp.Expr | None:
    """The array of ``= ANY (array)`` or ``<> ALL (array)``; None for other comparisons."""
    among = comparison.args.get("expression")
    if isinstance(comparison, exp.EQ):
        array = among.this if isinstance(among, exp.Any) else None
    elif isinstance(comparison, exp.NEQ) and isinstance(among, exp.Anonymous):
        array = among.expressions[0] if folded(among.name) == "all" and len(among.expressions) == 1 else None
    else:
        array = among.this if isinstance(comparison, exp.NEQ) and isinstance(among, exp.All) else None
    while isinstance(array, exp.Paren):
        array = array.this
    return array
