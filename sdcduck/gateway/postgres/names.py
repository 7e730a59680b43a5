"""What PostgreSQL calls the columns of an answer that the question gives no name.

DuckDB calls them by their text (``count_star()``); programs that were written for PostgreSQL look for ``count``. The
names come from the question alone.

Source: PostgreSQL documentation, chapter "Select Lists", section "Column Labels"; what PostgreSQL 15 answers.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from sdcduck.gateway.postgres.dialect import UNREADABLE, ended, is_large
from sdcduck.gateway.postgres.types import type_of
from sdcduck.quoting import folded

_NAMELESS = "?column?"
_WRITTEN: Mapping[type[exp.Expr], str] = {
    exp.Count: "count", exp.Extract: "extract", exp.Substring: "substring", exp.StrPosition: "position",
    exp.GroupConcat: "string_agg", exp.Array: "array", exp.Exists: "exists", exp.Interval: "interval",
    exp.CurrentDate: "current_date", exp.CurrentTime: "current_time", exp.CurrentTimestamp: "current_timestamp",
    exp.Localtime: "localtime", exp.Localtimestamp: "localtimestamp", exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user", exp.CurrentSchema: "current_schema", exp.CurrentCatalog: "current_catalog",
    exp.AtTimeZone: "timezone", exp.Grouping: "grouping", exp.Tuple: "row",
    exp.JSONArrayAgg: "json_agg",
}  # fmt: skip
"""What is written in a way of its own, not as a name before a bracket."""
_AROUND = (exp.Paren, exp.Filter, exp.Window, exp.WithinGroup, exp.Collate, exp.IgnoreNulls, exp.RespectNulls)
_MOST = 1_000


def names_of(sql: str) -> tuple[str | None, ...]:
    """The names of the columns, None where the question has one or nobody here can tell; empty: for none of them.

    >>> names_of("SELECT region, count(*), sum(a) FILTER (WHERE b), a + 1, age::text, CASE WHEN b THEN 1 END FROM t")
    (None, 'count', 'sum', '?column?', 'age', 'case')
    >>> names_of("SELECT * FROM (SELECT date_trunc('day', born), (SELECT 1), '1'::int FROM t) u")
    ('date_trunc', '?column?', 'int4')
    >>> names_of("SELECT *, 1 FROM t")
    ()
    """
    if is_large(sql):
        return ()
    text = ended(sql)
    try:
        trees = sqlglot.parse(text, read="postgres")
    except UNREADABLE:
        return ()
    return _of_query(trees[0], text) if len(trees) == 1 else ()


def _of_query(tree: exp.Expr | None, text: str) -> tuple[str | None, ...]:
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    if isinstance(tree, exp.Values):
        first = tree.expressions[0]
        return tuple(f"column{place + 1}" for place in range(len(first.expressions)))
    if not isinstance(tree, exp.Select) or len(tree.expressions) > _MOST:
        return ()
    source = tree.args.get("from_")
    inner = source.this if source is not None and not tree.args.get("joins") else None
    star = tree.expressions[0] if len(tree.expressions) == 1 else None
    if isinstance(inner, exp.Subquery) and isinstance(star, exp.Star) and not any(star.args.values()):
        as_they_are = not inner.alias_column_names and not inner.args.get("pivots")
        return _of_query(inner.this, text) if as_they_are else ()
    if any(item.is_star for item in tree.expressions):
        return ()
    return tuple(None if isinstance(item, (exp.Alias, exp.Column)) else _name(item, text) for item in tree.expressions)


def _name(item: exp.Expr, text: str) -> str | None:
    return own_name(item, text) or _of_type(item) or ("case" if isinstance(item, exp.Case) else _NAMELESS)


def own_name(item: exp.Expr, text: str) -> str:
    """The name that an expression has of what it is, whatever is around it; empty: none.

    Args:
        text: which it was read from.
    """
    while isinstance(item, _AROUND):
        item = item.this
    if isinstance(item, exp.Column):
        return folded(item.name) if not item.this.quoted else str(item.name)
    if isinstance(item, exp.Cast):
        return own_name(item.this, text)
    if isinstance(item, exp.Case):
        otherwise = item.args.get("default")
        return own_name(otherwise, text) if otherwise is not None else ""
    if isinstance(item, exp.Dot):
        return own_name(item.expression, text) if isinstance(item.expression, exp.Func) else folded(item.name)
    if isinstance(item, exp.Bracket):
        return own_name(item.this, text)
    if isinstance(item, exp.Subquery):
        inner = item.this
        first = inner.expressions[0] if isinstance(inner, exp.Select) and inner.expressions else None
        return "" if first is None or first.is_star else str(first.alias) or own_name(first, text)
    if isinstance(item, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(item.args.get("position")).upper(), "btrim")
    if "start" in item.meta and isinstance(item, exp.Func):
        written = text[item.meta["start"] : item.meta["end"] + 1]
        return written[1:-1].replace('""', '"') if written.startswith('"') else folded(written)
    return _WRITTEN.get(type(item), "") or (
        item.sql_name().lower() if isinstance(item, exp.Func) and _is_called(item) else ""
    )


def _is_called(item: exp.Func) -> bool:
    """Whether it is a function, and not an operator that sqlglot takes for one."""
    return not isinstance(item, (exp.Binary, exp.Unary, exp.Connector))


def _of_type(item: exp.Expr) -> str:
    while isinstance(item, exp.Paren):
        item = item.this
    if not isinstance(item, exp.Cast):
        return ""
    to = item.to
    while to.this == exp.DataType.Type.ARRAY and to.expressions:
        to = to.expressions[0]
    kind = to.sql("postgres").lower().partition("(")[0]
    return _TYPES.get(kind) or (type_of(to.sql("duckdb")).name if "." not in kind else kind.rpartition(".")[2])


_TYPES = {
    **{kind: kind for kind in ("text", "oid", "name", "regclass", "regtype", "regproc", "json", "jsonb")},
    "char": "bpchar",
}
