"""LATERAL: subqueries in FROM that may name what stands before them. DuckDB needs no word for that, sqlglot does."""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import LATERAL, is_lateral, typed
from sdcduck.guard.refusals import Refused


def without_laterals(tree: exp.Expr) -> None:
    """Write LATERAL as subqueries that are marked, in place: all else about them is as of others.

    >>> tree = exp.maybe_parse("SELECT l.x FROM t, LATERAL (SELECT t.n + 1 AS x) AS l", dialect="duckdb")
    >>> without_laterals(tree)
    >>> print(tree.sql("duckdb"))
    SELECT l.x FROM t, (SELECT t.n + 1 AS x) AS l

    Raises:
        Refused: there is anything but a subquery or a series behind it.
    """
    for lateral in list(tree.find_all(exp.Lateral)):
        inner, alias = lateral.this, lateral.args.get("alias")
        if isinstance(inner, exp.GenerateSeries):
            lateral.replace(exp.Table(this=inner, alias=alias))
            continue
        if not isinstance(inner, exp.Subquery) or inner.args.get("alias") or lateral.args.get("view"):
            raise Refused("SDC022", "LATERAL of anything but a subquery in brackets")
        inner.set("alias", alias)
        _name_columns(inner)
        mark(inner)
        lateral.replace(inner)


def _name_columns(subquery: exp.Subquery) -> None:
    """Write the names that an alias gives to columns where these are selected, in place: there sqlglot finds them."""
    alias, query = subquery.args.get("alias"), subquery.this
    names = list(alias.args.get("columns") or []) if alias is not None else []
    while isinstance(query, exp.SetOperation):
        query = query.this
    if alias is None or not names:
        return
    items = query.expressions if isinstance(query, exp.Select) else []
    if len(names) > len(items) or any(item.is_star or item.find(exp.Columns) is not None for item in items):
        raise Refused("SDC022", "names for the columns of LATERAL: write SELECT .. AS name in it")
    named = [exp.alias_(item.unalias(), name, copy=False) for item, name in zip(items, names, strict=False)]
    query.set("expressions", [*named, *items[len(names) :]])
    alias.set("columns", None)


def mark(subquery: exp.Subquery) -> None:
    """Note that a subquery in FROM may name what stands before it."""
    subquery.meta[LATERAL] = True


def with_laterals(tree: exp.Expr) -> None:
    """Write LATERAL where it is marked, in place, for sqlglot to find what names mean."""
    for subquery in [found for found in tree.find_all(exp.Subquery) if is_lateral(found)]:
        inner = exp.Subquery(**{part: value for part, value in subquery.args.items() if part != "alias"})
        subquery.replace(exp.Lateral(this=inner, alias=subquery.args.get("alias")))


def again_without(tree: exp.Expr) -> None:
    """The marks again, in place of what `with_laterals` wrote."""
    for lateral in list(tree.find_all(exp.Lateral)):
        inner = typed(exp.Subquery(this=lateral.this.this, alias=lateral.args.get("alias")), lateral.this)
        mark(inner)
        lateral.replace(inner)
