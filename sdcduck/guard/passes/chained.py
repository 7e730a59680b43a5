"""Functions written behind what they are of, as DuckDB lets: sum(x).round(1) is round(sum(x), 1)."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sdcduck.guard.refusals import Refused


def settle_chained_calls(tree: exp.Expr) -> None:
    """Write functions in front of what they are of, in place.

    Behind a column DuckDB takes the name before the dot for that of a schema first: there they stay, and are refused.
    That DuckDB reads what is left as it read the text is looked at for the text as a whole (`same_reading`).

    >>> tree = parse_one("SELECT sum(x).round(1), (a || b).upper().length(), a.upper() FROM t", read="duckdb")
    >>> settle_chained_calls(tree)
    >>> print(tree.sql("duckdb"))
    SELECT ROUND(SUM(x), 1), LENGTH(UPPER(a || b)), a.upper() FROM t

    Raises:
        Refused: sqlglot cannot read it so.
    """
    for dot in sorted(tree.find_all(exp.Dot), key=lambda found: -found.depth):
        call = dot.expression
        if isinstance(call, exp.Anonymous) and call.name.isidentifier() and isinstance(dot.this, _FIRST):
            given = [dot.this.this if isinstance(dot.this, exp.Paren) else dot.this, *call.expressions]
            try:
                written = ", ".join(one.sql("duckdb") for one in given)
                dot.replace(parse_one(f"{call.name}({written})", read="duckdb"))
            except SqlglotError:
                raise Refused("SDC005", f"a function behind another one: write {call.name}(..) in front") from None


_FIRST = (exp.Func, exp.Paren, exp.Literal, exp.Subquery)
"""What DuckDB takes for nothing but the first argument."""
