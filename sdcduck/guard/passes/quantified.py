"""Comparisons with a list that is written out: ANY, SOME, ALL and IN (VALUES ..) as IN, or as comparisons of each."""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_MOST = 2_000
"""Parts of a comparison that is written out for each value; IN takes as many values as a text has."""


def settle_quantified(tree: exp.Expr) -> None:
    """Write comparisons with lists in one form, in place.

    >>> tree = exp.maybe_parse("SELECT a <> ALL(ARRAY[1, 2]), a = SOME([1]), a > ANY([1, 2])", dialect="duckdb")
    >>> settle_quantified(tree)
    >>> print(tree.sql("duckdb"))
    SELECT (NOT a IN (1, 2)), a IN (1), (a > 1 OR a > 2)
    >>> tree = exp.maybe_parse("SELECT a IN (VALUES (1), (2)), (a, b) IN (VALUES (1, 'x'))", dialect="duckdb")
    >>> settle_quantified(tree)
    >>> print(tree.sql("duckdb"))
    SELECT a IN (1, 2), (a, b) IN ((1, 'x'))

    Raises:
        Refused: the list is empty, or very long.
    """
    for among in tree.find_all(exp.In):
        _settle_values(among)
    for node in reversed(list(tree.find_all(*_COMPARISONS))):  # what is within comes first, as it is copied
        of_all, values = _listed(node.expression)
        if values is None:
            continue
        if not values:
            raise Refused("SDC005", "a comparison with an empty list, which is true or false for all: leave it out")
        if isinstance(node, exp.NEQ if of_all else exp.EQ):
            among = exp.In(this=node.this.copy(), expressions=[value.copy() for value in values])
            node.replace(exp.Paren(this=exp.Not(this=among)) if of_all else among)
            continue
        if len(values) * sum(1 for _ in node.this.walk()) > _MOST:
            raise Refused("SDC002", "a comparison with very many values")
        each = [type(node)(this=node.this.copy(), expression=value.copy()) for value in values]
        together = (exp.and_ if of_all else exp.or_)(*each, copy=False)
        node.replace(exp.Paren(this=together.unnest()))


def _settle_values(among: exp.In) -> None:
    """IN (VALUES (1), (2)) as IN (1, 2), in place; rows of several values in brackets."""
    listed = among.expressions
    if len(listed) != 1 or not isinstance(listed[0], exp.Values) or listed[0].args.get("alias"):
        return
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in listed[0].expressions]
    among.set("expressions", [row[0] if len(row) == 1 else exp.Tuple(expressions=row) for row in rows])


def _listed(quantified: exp.Expr) -> tuple[bool, list[exp.Expr] | None]:
    """Whether it is ALL, and the values of a list; None: it is something else."""
    of_all, array = isinstance(quantified, exp.All), None
    if isinstance(quantified, (exp.Any, exp.All)):
        array = quantified.this
    elif isinstance(quantified, exp.Anonymous) and folded(quantified.name) in ("all", "some"):
        of_all = folded(quantified.name) == "all"
        array = quantified.expressions[0] if len(quantified.expressions) == 1 else None
    while isinstance(array, exp.Paren):
        array = array.this
    return of_all, list(array.expressions) if isinstance(array, exp.Array) else None
