"""Protected numbers as formulas over calls, each of which stands once: planning one takes longer than adding it up.

SELECT _g0, CASE WHEN _f3_0 > 0 THEN _c1 END AS _a0, CASE WHEN _f3_0 > 0 THEN _c1 END / nullif(_f3_0, 0) AS _a1
FROM (SELECT *, _sdc_stepped_count(_c0, _f2_0, ..) AS _f3_0 FROM (SELECT *, _sdc_guide_code(.., _c2) AS _f2_0 FROM
    (SELECT region AS _g0, count(..) AS _c0, .. AS _c1, sum(..) AS _c2 FROM people GROUP BY region) ..) ..) _sdc_n
WHERE _f3_0 > 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

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
    # These are changed in place later on, so that they are good for no more questions.
    steps: list[dict[exp.Expr, str]] = []
    for place, functions in reversed(list(enumerate(_STEPS, 1))):
        found: dict[exp.Expr, str] = {}
        lifted = partial(_lifted, found=found, prefix=f"_f{place}_", is_one=partial(_is_of, functions))
        parsed = [lifted(part) for part in parsed]
        steps = [{lifted(value): name for value, name in step.items()} for step in steps]
        steps.insert(0, found)
    calls: dict[exp.Expr, str] = {}
    *numbers, condition = [_lifted(part, calls, "_c", _is_call) for part in parsed]
    columns = [{name: _lifted(value, calls, "_c", _is_call) for value, name in step.items()} for step in steps]
    for part in (*numbers, condition, *(value for step in columns for value in step.values())):
        if any(column.table != NUMBERS for column in part.find_all(exp.Column)):
            raise Refused("SDC005", "a number that depends on single records")
    for call, name in calls.items():
        grouped.append("expressions", exp.alias_(call, name, quoted=True, copy=False))
    source = _aliased(grouped)
    for step in filter(None, columns):
        shown = [exp.alias_(value, name, quoted=True, copy=False) for name, value in step.items()]
        source = _aliased(exp.Select(expressions=[exp.Star(), *shown], from_=exp.From(this=source)))
    made = exp.Select(expressions=[exp.column(key, NUMBERS, quoted=True) for key in keys], from_=exp.From(this=source))
    for number, name in zip(numbers, formulas.values(), strict=True):
        made.append("expressions", exp.alias_(number, name, quoted=True, copy=False))
    if kept != "true":
        made.set("where", exp.Where(this=condition))
    return made


def _aliased(query: exp.Select) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(NUMBERS, quoted=True)))


def _lifted(node: exp.Expr, found: dict[exp.Expr, str], prefix: str, is_one: Callable[[exp.Expr], bool]) -> exp.Expr:
    """The expression, changed in place: some parts, the outermost ones, become columns and are added to those found."""

    def lifted(part: exp.Expr) -> exp.Expr:
        if not is_one(part):
            return part
        return exp.column(found.setdefault(part, f"{prefix}{len(found)}"), NUMBERS, quoted=True)

    return node.transform(lifted, copy=False)


_STEPS = (
    frozenset(["_sdc_count_key", "_sdc_count_slot", "_sdc_sum_key", "_sdc_sum_slot"]),
    frozenset(["_sdc_guide_code", "_sdc_sum_upper"]),
    frozenset(["_sdc_stepped_count", "_sdc_stepped_sum"]),
)
"""Functions of what is called, that take long to plan themselves: those of a step are of the columns before it."""
_OF_NUMBERS = frozenset(["_sdc_clipped", "_sdc_ptable_most", "typeof"]).union(*_STEPS)


def _is_of(functions: frozenset[str], node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name in functions


def _is_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name not in _OF_NUMBERS
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup))
