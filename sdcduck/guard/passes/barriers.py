"""What keeps conditions over released numbers apart from the groups that are hidden.

DuckDB looks at a condition on the keys of groups before it makes the groups, where it thinks that this cannot fail::

    SELECT region, count(*) FROM people GROUP BY region HAVING to_timestamp(..) IS NOT NULL

Where it is mistaken (DuckDB 1.5 is about ``substring``, ``to_timestamp`` and others) the condition is worked out for
groups of few, too, and whether the question fails tells of them. Nothing is looked at before a LIMIT. So where a
condition does more than compare, each block ends in one that keeps all rows.
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import is_query

BARRIER = " LIMIT 9223372036854775807"

_CLAUSES = ("where", "having", "qualify", "on")
_COMPARING = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ,
    exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Exists,
    exp.Where, exp.Having, exp.Qualify, exp.Neg, exp.Parameter, exp.Placeholder, exp.Tuple,
)  # fmt: skip
"""What only compares values that are there."""


def may_fail(tree: exp.Expr) -> bool:
    """Whether a condition outside of TRY does more than compare.

    >>> from sqlglot import parse_one
    >>> may_fail(parse_one("SELECT 1 FROM t WHERE NOT a > 1 AND b IN ('x', 'y')"))
    False
    >>> may_fail(parse_one("SELECT 1 FROM t JOIN u ON chr(t.a) = u.b"))
    True
    """
    for select in tree.find_all(exp.Select, exp.Join):
        for condition in filter(None, map(select.args.get, _CLAUSES)):
            if any(map(_may_fail, condition.walk(prune=_settled))):
                return True
    return False


def _settled(node: exp.Expr) -> bool:
    """Whether what is below needs no look: it cannot fail, or is a query, whose conditions are looked at themselves."""
    return isinstance(node, exp.Try) or is_query(node)


def _may_fail(node: exp.Expr) -> bool:
    return not (isinstance(node, _COMPARING) or _settled(node) or isinstance(node, exp.Subquery))
