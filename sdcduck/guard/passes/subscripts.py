"""Subscripts and the fields of structs: what DuckDB and sqlglot read in two ways, brought into one form.

sqlglot counts the places of a subscript from 0, and knows by the type of what stands before it whether to count from 1
again when it writes; it takes the names of fields for names of columns, which have no capital letters. Here a subscript
is what the analyst wrote, and the name of a field is a text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.guard.refusals import Refused

_DUCKDB = Dialect.get_or_raise("duckdb")


def settle_subscripts(tree: exp.Expr) -> bool:
    """Bring subscripts and the names of fields into one form, in place, and say whether there are any.

    >>> tree = exp.maybe_parse("SELECT name[1], {'Name': name[2:3]} FROM t", dialect="duckdb")
    >>> settle_subscripts(tree)
    True
    >>> print([str(bracket.expressions[0]) for bracket in tree.find_all(exp.Bracket)], tree.sql("duckdb"))
    ['1', '2:3'] SELECT name[1], {'Name': name[2:3]} FROM t

    Raises:
        Refused: a field has no name; DuckDB has the column's.
    """
    found = list(tree.find_all(exp.Bracket, exp.Struct))
    for node in found:
        if isinstance(node, exp.Struct):
            for field in node.expressions:
                if not isinstance(field, exp.PropertyEQ):
                    raise Refused("SDC015", "a struct: give each field a name, as in {'n': count(*)}")
                if isinstance(field.this, exp.Identifier):
                    field.set("this", exp.Literal.string(field.this.this))
        elif isinstance(node, exp.Bracket) and not node.args.get("offset"):
            node.set("expressions", [_counted(place) for place in _DUCKDB.generator().bracket_offset_expressions(node)])
            node.set("offset", 1)
    for field in tree.find_all(exp.ColumnDef):  # of a type: no name of a column, its capital letters stay
        field.this.meta["case_sensitive"] = True
    return bool(found)


def _counted(place: exp.Expr) -> exp.Expr:
    """A place without the 0 that sqlglot adds to it: from 1 to 0 and back."""
    added = isinstance(place, exp.Add) and isinstance(place.expression, exp.Literal) and place.expression.this == "0"
    return place.this if added else place


def settle_fields(tree: exp.Expr, *, of_records: bool = False) -> bool:
    """Write fields of columns, which are in full already, as subscripts, in place: t.s.n as t.s['n']; are there any?

    >>> tree = exp.maybe_parse("SELECT (t.s).n.m", dialect="duckdb")
    >>> settle_fields(tree)
    True
    >>> print(tree.sql("duckdb"))
    SELECT (t.s)['n']['m']

    Args:
        of_records: whether unit-level tables are asked about: a whole row may be that of a unit.

    Raises:
        Refused: it is a whole row, or anything but a field of a column.
    """
    for row in tree.find_all(exp.TableColumn):
        instead = f"a row of {row.sql('duckdb')} as one value: write {row.sql('duckdb')}.*, or its columns"
        raise Refused("SDC040" if of_records else "SDC015", instead)
    dots = sorted(tree.find_all(exp.Dot), key=lambda found: -found.depth)
    for dot in dots:
        if not isinstance(dot.expression, exp.Identifier):
            raise Refused("SDC015", f"{dot.sql('duckdb')}: write its fields, s.n, or a function in front, f(x)")
        if not _has_fields(dot.this):
            raise Refused("SDC040", dot.sql("duckdb"))
        kind = dot.this.type
        if kind is not None and kind.this in _OTHER_FIELDS:
            raise Refused("SDC015", f"a field of a {kind.this.value}: ask the custodian for a column of its own")
        field = exp.Bracket(this=dot.this, expressions=[exp.Literal.string(dot.expression.this)], offset=1)
        field.type = dot.type
        dot.replace(field)
    return bool(dots)


_OTHER_FIELDS = {exp.DataType.Type.UNION, exp.DataType.Type.GEOMETRY}
"""Types whose fields DuckDB has as x.a, and not as a subscript x['a']."""


def _has_fields(node: exp.Expr) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return bool(node.table) and not node.args.get("db")
    return isinstance(node, (exp.Bracket, exp.Struct, exp.Func))


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
            raise Refused("SDC006", "x[1] of a column that is called as a type is: write table.column")
    kinds = [token.token_type for token in tokens]
    if TokenType.L_BRACKET not in kinds:
        return
    for before, token, after in zip([None, *kinds], tokens, [*kinds[1:], None], strict=False):
        if token.text.upper() in ("LIST", "ARRAY") and (
            before == TokenType.DOT or (token.token_type, after) not in _OWN_WORDS
        ):
            raise Refused("SDC006", "x[1] beside the name list or array: take another name")
        if (before, token.token_type) == (TokenType.L_BRACKET, TokenType.COLON) and after not in _AFTER_COLON:
            raise Refused("SDC006", "x[:n], which looks like a parameter: write x[1:n]")


_OWN_WORDS = {
    (TokenType.LIST, TokenType.L_PAREN), (TokenType.ARRAY, TokenType.L_PAREN), (TokenType.ARRAY, TokenType.L_BRACKET),
}  # fmt: skip
"""``list(``, ``array(`` and ``array[``, which DuckDB reads as sqlglot does."""
_AFTER_COLON = {TokenType.NUMBER, TokenType.DASH, TokenType.COLON, TokenType.L_PAREN, TokenType.R_BRACKET}
