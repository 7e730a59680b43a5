"""Comparisons with ANY, SOME and ALL of a list that is written out: as IN, or as one comparison for each value."""

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

    Raises:
        Refused: the list is empty, or very long.
    """
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
