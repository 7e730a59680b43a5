"""Subscripts: names before them that DuckDB and sqlglot read in two ways."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from sdcduck.guard.refusals import Refused

_DUCKDB = Dialect.get_or_raise("duckdb")


def refuse_other_readings(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse names before a subscript that are columns for DuckDB, and for sqlglot parts of its own language.

    It takes date[1] for a type and list[1] for a list of 1: it would not see that a column is asked for.

    >>> text = "SELECT list(n)[1], ARRAY[1], n::INTEGER[]"
    >>> refuse_other_readings(exp.maybe_parse(text, dialect="duckdb"), _DUCKDB.tokenize(text))

    Raises:
        Refused: there is such a name.
    """
    for kind in tree.find_all(exp.DataType):
        inside: exp.Expr = kind
        while isinstance(inside.parent, (exp.DataType, exp.ColumnDef)):
            inside = inside.parent
        if not isinstance(inside.parent, exp.Cast) or inside.arg_key != "to":
            raise Refused("SDC005", "x[1] of a column that is called as a type is: write table.column")
    kinds = [token.token_type for token in tokens]
    if TokenType.L_BRACKET not in kinds:
        return
    for before, token, after in zip([None, *kinds], tokens, [*kinds[1:], None], strict=False):
        if token.text.upper() in ("LIST", "ARRAY") and (
            before == TokenType.DOT or (token.token_type, after) not in _OWN_WORDS
        ):
            raise Refused("SDC005", "x[1] beside the name list or array: take another name")
        if (before, token.token_type) == (TokenType.L_BRACKET, TokenType.COLON) and after not in _AFTER_COLON:
            raise Refused("SDC005", "x[:n], which looks like a parameter: write x[1:n]")


_OWN_WORDS = {
    (TokenType.LIST, TokenType.L_PAREN), (TokenType.ARRAY, TokenType.L_PAREN), (TokenType.ARRAY, TokenType.L_BRACKET),
}  # fmt: skip
"""``list(``, ``array(`` and ``array[``, which DuckDB reads as sqlglot does."""
_AFTER_COLON = {TokenType.NUMBER, TokenType.DASH, TokenType.COLON, TokenType.L_PAREN, TokenType.R_BRACKET}
