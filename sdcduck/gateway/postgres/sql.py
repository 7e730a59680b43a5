"""SQL as PostgreSQL programs write it, into that of DuckDB, before the guard sees it.

What DuckDB reads as it was meant stays as it is, to the letter. The guard judges what comes out of here like any other
text, so nothing here decides what is safe.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp

from sdcduck.gateway.postgres import templates
from sdcduck.gateway.postgres.dialect import UNREADABLE, ended, is_large
from sdcduck.gateway.postgres.patterns import CALLED, LIKE, must_be_settled, settle_patterns
from sdcduck.quoting import folded

SCHEMA = "public"
_OUR_SCHEMAS = frozenset([SCHEMA, "main"])
_LONGEST_KNOWN = 20_000
_WITH_TEMPLATES = frozenset(["to_char", "to_timestamp", "to_date", "to_number"])
_APART = "_sdc_template_"
_ONLY_POSTGRES = re.compile(
    r"\bnow\s*\(\s*\)|\bE'|\b(to_char|to_date|to_number|make_interval)\s*\(|\bto_timestamp\s*\([^()]*(\([^()]*\)[^()]*)*,"
    r"|\bfetch\s+(first|next)\b|\bgenerate_series\b|\|/|\bisnull\b|\bnotnull\b|::\s*\"?(name|regclass|bpchar)\b",
    re.I,
)


_LOOSE = (exp.Where, exp.Having, exp.Connector, exp.Not, exp.Paren)  # around these IN means what = ANY does
_LIST = re.compile(r"=\s*any\s*\(\s*array\s*\[", re.I)


def to_duckdb(sql: str, database: str) -> str:
    """The text with which the guard is asked.

    Args:
        database: name under which clients know the database; with it and the schema ``public`` tables may be named.

    >>> to_duckdb("SELECT to_char(born, 'YYYY') FROM census.public.people", "census")
    "SELECT STRFTIME(born, '%Y') FROM people"
    >>> to_duckdb("SELECT count(*) FROM people WHERE born < to_timestamp('1990-05-01 06:00', 'YYYY-MM-DD HH24:MI')", "")
    "SELECT COUNT(*) FROM people WHERE born < CAST('1990-05-01 06:00:00' AS TIMESTAMP)"
    >>> to_duckdb("SELECT count(*) FROM people WHERE region = ANY (ARRAY['North', 'South'])", "census")
    "SELECT COUNT(*) FROM people WHERE region IN ('North', 'South')"
    >>> to_duckdb("FROM people SELECT count(*)", "census")
    'FROM people SELECT count(*)'
    """
    return _known(sql, database) if len(sql) <= _LONGEST_KNOWN else _read(sql, database)


def _read(sql: str, database: str) -> str:
    if is_large(sql) or CALLED.search(sql):
        return sql
    dialect = "postgres" if _ONLY_POSTGRES.search(sql) else "duckdb"
    schemas = {*_OUR_SCHEMAS, folded(database)}
    changed = _LIST.search(sql) is not None or any(
        f"{schema}." in sql.lower().replace('"', "").replace(" ", "") for schema in schemas
    )
    try:
        if dialect == "duckdb" and not changed:
            plain = sqlglot.parse(ended(sql), read="duckdb")
            if not LIKE.search(sql) or not any(must_be_settled(tree) for tree in plain if tree is not None):
                return sql
        trees = sqlglot.parse(ended(_renamed(sql, dialect)), read=dialect)
    except UNREADABLE:
        return _read_as_postgres(sql, database)
    return _written(trees, sql, database)


_known = lru_cache(maxsize=2000)(_read)


def _read_as_postgres(sql: str, database: str) -> str:
    try:
        return _written(sqlglot.parse(ended(_renamed(sql, "postgres")), read="postgres"), sql, database)
    except UNREADABLE:
        return sql


def _renamed(sql: str, dialect: str) -> str:
    """A text in which functions with templates have names that sqlglot does not know, so that it leaves them alone."""
    words = sqlglot.tokenize(sql, read=dialect)
    for word, after in reversed(list(pairwise(words))):
        is_name = word.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and folded(word.text) in _WITH_TEMPLATES
        if is_name and after.token_type == TokenType.L_PAREN:
            sql = f"{sql[: word.start]}{_APART}{folded(word.text)}{sql[word.end + 1 :]}"
    return sql


def _text_of(node: exp.Expr) -> str | None:
    is_text = isinstance(node, exp.ByteString) or (isinstance(node, exp.Literal) and node.is_string)
    return node.name if is_text else None


def _by_template(call: exp.Anonymous) -> exp.Expr | None:
    """A function with a template as DuckDB has it; None: nothing there means the same.

    A text that is read, as it stands in the question, becomes the moment that is meant: the guard lets nothing read
    texts over records, as that can fail on one of them; this is how filters over time come.
    """
    name = call.name.removeprefix(_APART)
    if len(call.expressions) != 2 or isinstance(call.parent, exp.Dot):
        return None
    value, template = call.expressions[0], _text_of(call.expressions[1])
    if template is None or name == "to_number":
        return None
    kind = "date" if name == "to_date" else "timestamp"
    text = _text_of(value)
    if text is not None and name != "to_char":
        meant = templates.moment(text, template)
        if meant is None:
            return None
        return exp.cast(exp.Literal.string(str(meant.date() if kind == "date" else meant)), kind)
    form = templates.written(template) if name == "to_char" else templates.read_format(template)
    if form is None:
        return None
    put = exp.Anonymous(
        this="STRFTIME" if name == "to_char" else "STRPTIME", expressions=[value, exp.Literal.string(form)]
    )
    return exp.cast(put, "date") if kind == "date" else put


def _put_templates(tree: exp.Expr) -> None:
    """Functions with templates get the names and formats of DuckDB, or names that the guard refuses with a lesson."""
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        if not call.name.startswith(_APART):
            continue
        put = _by_template(call)
        if put is not None:
            call.replace(put)
        else:
            name = call.name.removeprefix(_APART)
            call.set("this", "to_timestamp_by_template" if name == "to_timestamp" and call.expressions[1:] else name)


def _written(trees: list[exp.Expr | None], sql: str, database: str) -> str:
    """A statement as DuckDB has it, with tables by their plain names; what is not one query stays as it is."""
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return sql
    tree = trees[0]
    for node in list(tree.find_all(exp.Table, exp.Column)):
        schema, catalog = node.args.get("db"), node.args.get("catalog")
        ours = schema is not None and folded(schema.name) in _OUR_SCHEMAS
        if ours and (catalog is None or folded(catalog.name) == folded(database)):
            node.set("db", None)
            node.set("catalog", None)
    for several in list(tree.find_all(exp.EQ)):
        listed = several.expression.this if isinstance(several.expression, exp.Any) else None
        alone = isinstance(several.this, exp.Column) and isinstance(several.parent, _LOOSE)
        if alone and isinstance(listed, exp.Paren) and isinstance(listed.this, exp.Array) and listed.this.expressions:
            several.replace(exp.In(this=several.this, expressions=listed.this.expressions))
    _put_templates(tree)
    settle_patterns(tree)
    for text in list(tree.find_all(exp.ByteString)):  # E'..', as psycopg2 writes texts with a backslash
        text.replace(exp.Literal.string(text.name))
    for kind in tree.find_all(exp.DataType):
        if kind.sql("postgres").lower() in ("name", "bpchar"):
            kind.replace(exp.DataType.build("text"))
    try:
        return tree.sql("duckdb", comments=False)
    except UNREADABLE:
        return sql
