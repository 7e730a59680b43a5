"""SQL as PostgreSQL programs write it, into that of DuckDB, before the guard sees it.

What DuckDB reads as it was meant stays as it is, to the letter. The guard judges what comes out of here like any other
text, so nothing here decides what is safe.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sdcduck.catalog import folded
from sdcduck.gateway.dialect import ended, is_large

SCHEMA = "public"
_OUR_SCHEMAS = frozenset([SCHEMA, "main"])
_LONGEST_KNOWN = 20_000
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
    if is_large(sql):
        return sql
    dialect = "postgres" if _ONLY_POSTGRES.search(sql) else "duckdb"
    schemas = {*_OUR_SCHEMAS, folded(database)}
    changed = _LIST.search(sql) is not None or any(
        f"{schema}." in sql.lower().replace('"', "").replace(" ", "") for schema in schemas
    )
    try:
        if dialect == "duckdb" and not changed:
            sqlglot.parse(ended(sql), read="duckdb")
            return sql
        trees = sqlglot.parse(ended(sql), read=dialect)
    except (SqlglotError, RecursionError):
        return _read_as_postgres(sql, database)
    return _written(trees, sql, database)


_known = lru_cache(maxsize=2000)(_read)


def _read_as_postgres(sql: str, database: str) -> str:
    try:
        return _written(sqlglot.parse(ended(sql), read="postgres"), sql, database)
    except (SqlglotError, RecursionError):
        return sql


def _write_out(moment: exp.Expr) -> None:
    """A text that is read with a format, both as they stand in the question, becomes the moment that is meant.

    The guard lets nothing read texts over records, as that can fail on one of them; this is how filters over time come.
    """
    text, form = moment.this, moment.args.get("format")
    if not isinstance(text, exp.Literal) or not isinstance(form, exp.Literal):
        return
    try:
        meant = datetime.strptime(text.name, form.name)
    except (ValueError, re.error):
        return
    if meant.tzinfo is not None:
        return
    if isinstance(moment, exp.StrToTime):
        moment.replace(exp.cast(exp.Literal.string(meant.isoformat(" ")), "timestamp"))
    else:
        moment.replace(exp.cast(exp.Literal.string(meant.date().isoformat()), "date"))


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
    for moment in list(tree.find_all(exp.StrToTime, exp.StrToDate, exp.TsOrDsToDate)):
        _write_out(moment)
    for text in list(tree.find_all(exp.ByteString)):  # E'..', as psycopg2 writes texts with a backslash
        text.replace(exp.Literal.string(text.name))
    for kind in tree.find_all(exp.DataType):
        if kind.sql("postgres").lower() in ("name", "bpchar"):
            kind.replace(exp.DataType.build("text"))
    try:
        return tree.sql("duckdb", comments=False)
    except (SqlglotError, RecursionError, ValueError):
        return sql
