"""WITH RECURSIVE: over answers and public tables, as every row that comes out of it goes into it again.

No block stands in the part that repeats, so that nothing is protected more than once; answers that it reads come from a
WITH before it, which DuckDB works out on its own. The rows come in no order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from sdcduck.guard.expressions import column_names
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label, Relation
from sdcduck.quoting import folded


def is_recursive(cte: exp.Expr) -> bool:
    """Whether a query of WITH RECURSIVE reads itself."""
    with_ = cte.parent
    if not isinstance(with_, exp.With) or not with_.args.get("recursive"):
        return False
    return any(folded(table.name) == folded(cte.alias) for table in cte.this.find_all(exp.Table))


def recursive(
    cte: exp.Expr,
    known: Mapping[str, Relation],
    label: Callable[[exp.Expr, Mapping[str, Relation]], Relation],
    over_units: Collection[int],
) -> Relation:
    """Label a query that reads itself.

    Args:
        label: labels a query and protects what it aggregates.
        over_units: the identities of the SELECTs that read records, so far.

    Raises:
        Refused: there are records in it, or it is no UNION of a beginning and what repeats.
    """
    union = cte.this
    more = [part for part, value in union.args.items() if value and part not in ("this", "expression", "distinct")]
    if not isinstance(union, exp.Union) or more or cte.args.get("key_expressions"):
        raise Refused("SDC005", "WITH RECURSIVE takes a beginning, UNION or UNION ALL, and a SELECT that repeats")
    first = label(union.this, known)
    columns = column_names(union.this)
    itself = Relation(first.label if first.label is not Label.UNIT else Label.RELEASED, columns)
    before = len(over_units)
    again = label(union.expression, {**known, folded(cte.alias): itself})
    if Label.UNIT in (first.label, again.label) or len(over_units) > before:
        raise Refused("SDC044", "WITH RECURSIVE over records: put the answers that it reads into a WITH before it")
    released = Label.RELEASED in (first.label, again.label)
    return Relation(Label.RELEASED if released else Label.PUBLIC, columns)
