"""Questions for the columns alone: answered without a look at a table."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, has_aggregate, is_number
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.reading import read
from sdcduck.guard.passes.spelling import spell
from sdcduck.guard.passes.validate import check_query
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import identifier


def answer_probes(draft: Draft) -> None:
    """SELECT .. LIMIT 0, or .. WHERE 1 = 0, as a query without rows that has the same columns.

    >>> after(answer_probes, "SELECT region, count(*) AS n FROM people GROUP BY 1 LIMIT 0")
    SELECT CAST(NULL AS VARCHAR) AS "region", CAST(NULL AS BIGINT) AS "n" LIMIT 0
    """
    if not draft.probes or not _asks_for_columns(draft.tree):
        return
    parameters, whole = draft.reading.parameters(), draft.start.without_probes(draft.asked, draft.policies)
    if parameters and whole is not None:  # the types of its columns are up to them
        draft.answer = whole
        return
    spell(draft.tree, draft.names)
    empty = _empty(draft.tree, draft.start.types(whole), parameters)
    check_query(read(draft.con, empty))
    tables = tuple(policy.name for policy in draft.named)
    draft.answer = Rewritten(empty, ("only the columns are asked for",), (), tables, (), (), schemas=draft.schemas)


def _asks_for_columns(tree: exp.Expr) -> bool:
    """Whether this is SELECT .. LIMIT 0, or .. WHERE 1 = 0: how programs ask for the columns of a table or a query."""
    if not isinstance(tree, exp.Select):
        return False
    limit = tree.args.get("limit")
    if isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal) and limit.expression.this == "0":
        return True
    group, from_ = tree.args.get("group"), tree.args.get("from_")
    if group is None and (tree.args.get("having") is not None or any(map(has_aggregate, tree.selects))):
        return False  # there is one row, of nobody
    if group is not None and (not group.expressions or group.find(exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
        return False  # there may be a row of the whole
    where = tree.args.get("where")
    if where is not None and any(_is_never(condition) for condition in conjuncts(where.this)):
        return True
    inner = from_.this if from_ is not None and not tree.args.get("joins") else None
    return isinstance(inner, exp.Subquery) and _asks_for_columns(inner.this)


def _is_never(condition: exp.Expr) -> bool:
    """FALSE, and 1 = 0."""
    if isinstance(condition, exp.Boolean):
        return condition.this is False
    if not isinstance(condition, exp.EQ):
        return False
    left, right = condition.this, condition.expression
    plain = all(is_number(side) and side.this.isdecimal() for side in (left, right))
    return plain and int(left.this) != int(right.this)


def _empty(tree: exp.Expr, types: Sequence[str], parameters: Sequence[str]) -> str:
    """A query without rows that has the columns of another, and looks at no table.

    Args:
        types: of the columns, as DuckDB has them; of as many as there are, or they are not known.
        parameters: that it is asked with: DuckDB takes no values for what does not occur.
    """
    assert isinstance(tree, exp.Select)
    columns = []
    known = types if len(types) == len(tree.selects) else [""] * len(tree.selects)
    for item, written_type in zip(tree.selects, known, strict=True):
        kind = item.unalias().type
        sql = written_type or "VARCHAR"
        if (
            not written_type
            and kind is not None
            and kind.this not in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL)
        ):
            kind = kind.copy()
            for field in kind.find_all(exp.ColumnDef):
                field.set("this", exp.to_identifier(field.name, quoted=True))
            sql = kind.sql("duckdb")
        columns.append(f"CAST(NULL AS {sql}) AS {identifier(item.alias_or_name)}")
    given = " OR ".join(f"${name} IS NULL" for name in dict.fromkeys(parameters))
    return f"SELECT {', '.join(columns)}{' WHERE ' if given else ''}{given} LIMIT 0"
