"""Relations beside records: worked out in full before any record is looked at, and compared in types that are known.

DuckDB reads of a joined relation only the rows that the records may need, and stops where there are none. So an
expression of an analyst that fails for one chosen row, or takes long, would tell whether somebody has that value::

    .. FROM people JOIN (SELECT x, CAST(CASE WHEN x = 99 THEN 'bad' END AS INTEGER) AS y FROM numbers) r ON age = x

What is no table is therefore set apart, in a WITH of the block that DuckDB works out on its own. Its columns are
compared as the type that the guard takes them for: what DuckDB would make of them may be another one, in which '20' and
'020' are one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sdcduck.guard.expressions import digits, typed
from sdcduck.guard.refusals import Refused

APART = "_sdc_m"
"""What relations are called that are set apart."""

_COLUMN = "_k"
_MOST_DIGITS = 15  # that DOUBLE has
_COMPARED_AS = {
    "whole": "HUGEINT", "real": "DOUBLE", "decimal": "DOUBLE", "text": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP", "truth": "BOOLEAN",
}  # fmt: skip


def compared(column: exp.Expr, kind: str) -> exp.Expr:
    """A column as a value of a family of types; NULL where it is none.

    >>> print(compared(exp.column("x"), "whole").sql("duckdb"))
    TRY_CAST(x AS INT128)

    Raises:
        Refused: a decimal number of so many digits that others next to it would be the same.
    """
    if digits(column) > _MOST_DIGITS:
        raise Refused("SDC005", f"a comparison of decimals of more than {_MOST_DIGITS} digits: cast to fewer")
    return exp.TryCast(this=column, to=exp.DataType.build(_COMPARED_AS[kind], dialect="duckdb"), safe=True)


def set_apart(select: exp.Select, query: exp.Query, number: int, *, columns: int = 0) -> exp.Table:
    """Put a query into the WITH of a block; the table that stands in its place.

    Args:
        columns: how many of its columns get names of their own.
    """
    name = exp.to_identifier(f"{APART}{number}", quoted=True)
    names = [exp.to_identifier(f"{_COLUMN}{place}", quoted=True) for place in range(columns)]
    alias = exp.TableAlias(this=name, columns=names) if names else exp.TableAlias(this=name)
    cte = exp.CTE(this=query, alias=alias, materialized=True)
    with_ = select.args.get("with_")
    if with_ is None:
        select.set("with_", exp.With(expressions=[cte]))
    else:
        with_.append("expressions", cte)
    return exp.Table(this=name.copy())


def joined(relation: exp.Expr) -> exp.Select:
    """All that stands in a relation of FROM."""
    if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Select) and not relation.args.get("with_"):
        return relation.this
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation))


def values_of(table: exp.Table, query: exp.Query, kinds: Sequence[str | None]) -> exp.Select:
    """What a subquery that was set apart is compared with: its columns, in types of these families."""
    shown = []
    for place, (item, kind) in enumerate(zip(query.selects, kinds, strict=True)):
        if kind is None:
            raise Refused("SDC046", "compare a column with a subquery of the same type")
        shown.append(compared(typed(exp.column(f"{_COLUMN}{place}", table.name, quoted=True), item), kind))
    return exp.Select(expressions=shown, from_=exp.From(this=table))
