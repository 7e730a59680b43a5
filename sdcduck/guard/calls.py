"""Protected numbers as formulas over calls, each of which stands once: planning one takes longer than adding it up.

SELECT _g0, CASE WHEN _c0 > 0 THEN _c1 END AS _a0, CASE WHEN _c0 > 0 THEN _c1 END / nullif(_c0, 0) AS _a1
FROM (SELECT region AS _g0, sdc_count(..) AS _c0, sdc_sum(..) AS _c1 FROM people GROUP BY region) _sdc_n
WHERE _c0 > 0
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one

from sdcduck.guard.refusals import Refused

NUMBERS = "_sdc_n"
"""The alias of the calls of a block."""


def with_numbers(grouped: exp.Select, formulas: Mapping[str, str], kept: str) -> exp.Select:
    """A SELECT of the group keys and the numbers of a block.

    Args:
        grouped: of the group keys, all of them with a name.
        formulas: SQL of the numbers, and their names.
        kept: SQL of the condition for a group to appear.
    """
    keys = [item.alias for item in grouped.expressions]
    parsed = parse_one(f"SELECT {', '.join([*formulas, kept])}", read="duckdb").expressions
    calls: dict[exp.Expr, str] = {}

    def lifted(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, _CALLS):
            return node
        return exp.column(calls.setdefault(node, f"_c{len(calls)}"), NUMBERS, quoted=True)

    *numbers, condition = [formula.transform(lifted, copy=False) for formula in parsed]
    if any(column.table != NUMBERS for part in (*numbers, condition) for column in part.find_all(exp.Column)):
        raise Refused("SDC005", "a number that depends on single records")
    for call, name in calls.items():
        grouped.append("expressions", exp.alias_(call, name, quoted=True, copy=False))
    alias = exp.TableAlias(this=exp.to_identifier(NUMBERS, quoted=True))
    made = exp.Select(
        expressions=[exp.column(key, NUMBERS, quoted=True) for key in keys],
        from_=exp.From(this=exp.Subquery(this=grouped, alias=alias)),
    )
    for number, name in zip(numbers, formulas.values(), strict=True):
        made.append("expressions", exp.alias_(number, name, quoted=True, copy=False))
    if kept != "true":
        made.set("where", exp.Where(this=condition))
    return made


_CALLS = (exp.AggFunc, exp.Anonymous, exp.Filter, exp.WithinGroup)
