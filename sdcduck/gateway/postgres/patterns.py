r"""Patterns of LIKE as PostgreSQL reads them: without ESCAPE, a backslash takes the sign after it as it is.

What a pattern is made of is a text when a question is asked, where it has nothing but texts and parameters in it: with
ESCAPE over records, the guard wants to see what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp

from sdcduck.gateway.postgres.dialect import UNREADABLE, ended, is_large, number_of
from sdcduck.guard import Refused
from sdcduck.guard.planned import about_plan

LIKE = re.compile(r"\bi?like\b|~~", re.I)
OPEN_END = "LIKE pattern must not end with escape character"
"""What PostgreSQL says, of a pattern with an escape of nothing at its end."""
CALLED = re.compile(
    r"(?:^|[(,=<>+*/|-]|\b(?:select|where|and|or|on|having|when|then|else|case|by|distinct))\s*(?:not\s+)?i?like\s*\(",
    re.I,
)
"""The function of that name, which sqlglot reads the wrong way round."""
_ESCAPE = re.compile(r"\bescape\b", re.I)
_LISTS = "like_with_a_list"
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)
_Value = Callable[[int], str | None]


def settle_patterns(tree: exp.Expr) -> None:
    r"""Write out what PostgreSQL means by patterns without ESCAPE and by lists of them, in place.

    >>> listed = "b NOT LIKE ALL (ARRAY['x', 'y'])"
    >>> tree = sqlglot.parse_one(f"SELECT a LIKE '50\\%', {listed}, c LIKE d, e LIKE $1", "duckdb")
    >>> settle_patterns(tree)
    >>> print(tree.sql("duckdb"))
    SELECT a LIKE '50\%' ESCAPE '\', (NOT b LIKE 'x' AND NOT b LIKE 'y'), c LIKE d ESCAPE '\', e LIKE $1
    """
    for like in reversed(list(tree.find_all(exp.Like, exp.ILike))):
        if isinstance(like.expression, (exp.Any, exp.All)):
            like.replace(_each(like))
    for plain in reversed(_without_escape(tree)):
        _put_escape(plain, _text(plain.expression, _no_value))


def must_be_settled(tree: exp.Expr) -> bool:
    """Whether `settle_patterns` would change something."""
    several = (exp.Any, exp.All)
    return bool(_without_escape(tree)) or any(
        isinstance(like.expression, several) for like in tree.find_all(exp.Like, exp.ILike)
    )


def with_patterns(sql: str, values: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    r"""A question with the patterns that it is asked with, where a backslash or ESCAPE may be in them.

    >>> with_patterns("SELECT n FROM t WHERE a LIKE $1 || '%' AND b = $2", {"1": "50\\%", "2": "x"})
    ("SELECT n FROM t WHERE a LIKE '50\\%%' ESCAPE '\\' AND b = $2", {'2': 'x'})
    >>> with_patterns("SELECT n FROM t WHERE a LIKE $1", {"1": "50%"})
    ('SELECT n FROM t WHERE a LIKE $1', {'1': '50%'})

    Raises:
        Refused: a pattern ends in its escape.
    """
    backslash = "\\" in sql or any(isinstance(value, str) and "\\" in value for value in values.values())
    if not LIKE.search(sql) or not (backslash or _ESCAPE.search(sql)) or about_plan(sql):
        return sql, dict(values)

    def value(number: int) -> str | None:
        found = values.get(str(number))
        return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else None

    tree = _bound(sql, value)
    if tree is None:
        return sql, dict(values)
    left = {str(number_of(node)) for node in tree.find_all(exp.Parameter, exp.Placeholder)}
    return tree.sql("duckdb", comments=False), {name: known for name, known in values.items() if name in left}


def described(sql: str) -> str:
    """A question with the same columns, in which no pattern with ESCAPE is a parameter.

    Raises:
        Refused: a pattern ends in its escape.
    """
    if not LIKE.search(sql) or not _ESCAPE.search(sql) or about_plan(sql):
        return sql
    tree = _bound(sql, lambda number: "")
    return sql if tree is None else tree.sql("duckdb", comments=False)


def _bound(sql: str, value: _Value) -> exp.Expr | None:
    """The tree of a question with patterns in the place of parameters; None: there is none to put."""
    if is_large(sql):
        return None
    try:
        trees = sqlglot.parse(ended(sql), read="duckdb")
    except UNREADABLE:
        return None
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        return None
    changed = False
    for like in reversed(list(tree.find_all(exp.Like, exp.ILike))):
        text, escaped = _text(like.expression, value), isinstance(like.parent, exp.Escape)
        escape = _text(like.parent.expression, _no_value) if isinstance(like.parent, exp.Escape) else "\\"
        if text is None:
            continue
        if escape and (len(text) - len(text.rstrip(escape))) % 2 == 1:
            raise Refused("SDC090", OPEN_END)
        if like.find(exp.Parameter, exp.Placeholder) is None or not (escaped or "\\" in text):
            continue
        changed = True
        if escaped:
            like.set("expression", exp.Literal.string(text))
        else:
            _put_escape(like, text)
    return tree if changed else None


def _without_escape(tree: exp.Expr) -> list[exp.Expr]:
    """Comparisons with a pattern in which a backslash may be, and which is known, or never will be."""
    found: list[exp.Expr] = []
    for like in tree.find_all(exp.Like, exp.ILike):
        if isinstance(like.parent, exp.Escape) or isinstance(like.expression, (exp.Any, exp.All, exp.Null)):
            continue
        text = _text(like.expression, _no_value)
        if "\\" in text if text is not None else _text(like.expression, lambda number: "") is None:
            found.append(like)
    return found


def _put_escape(like: exp.Expr, text: str | None) -> None:
    copy = like.copy()
    if text is not None:
        copy.set("expression", exp.Literal.string(text))
    escape: exp.Expr = exp.Escape(this=copy, expression=exp.Literal.string("\\"))
    within = isinstance(like.parent, exp.Binary) and not isinstance(like.parent, exp.Connector)
    like.replace(exp.Paren(this=escape) if within else escape)


def _each(like: exp.Expr) -> exp.Expr:
    """LIKE ANY and ALL of a list as comparisons with its parts, or what the guard refuses with a lesson."""
    several = like.expression
    listed = several.this
    while isinstance(listed, (exp.Paren, exp.Cast)):
        listed = listed.this
    parts = listed.expressions if isinstance(listed, (exp.Array, exp.Tuple)) else []
    if not parts or any(isinstance(part, (exp.Star, exp.Query)) for part in parts):
        return exp.Anonymous(this=_LISTS, expressions=[like.this.copy()])
    each: list[exp.Expr] = [type(like)(this=like.this.copy(), expression=part.copy()) for part in parts]
    if like.args.get("negate"):
        each = [exp.Not(this=one) for one in each]
    return exp.paren(exp.and_(*each) if isinstance(several, exp.All) else exp.or_(*each), copy=False)


def _no_value(number: int) -> str | None:
    return None


def _text(node: exp.Expr, value: _Value) -> str | None:
    """The text that an expression is, made of texts and parameters; None: something else is in it."""
    if isinstance(node, exp.ByteString) or (isinstance(node, exp.Literal) and node.is_string):
        return node.name
    if isinstance(node, exp.Paren):
        return _text(node.this, value)
    if type(node) is exp.Cast and node.to.this in _TEXTS and not node.to.expressions:
        return _text(node.this, value)
    if isinstance(node, (exp.DPipe, exp.Concat)):
        parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
        texts = [_text(part, value) for part in parts]
        return None if None in texts else "".join(text for text in texts if text is not None)
    if isinstance(node, (exp.Lower, exp.Upper)):
        text = _text(node.this, value)
        return None if text is None else text.lower() if isinstance(node, exp.Lower) else text.upper()
    number = number_of(node)
    return None if number is None else value(number)
