"""Previews: a table of made-up rows that answers where somebody only wants to see what a table looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.reading import read
from sdcduck.guard.passes.validate import check_query
from sdcduck.guard.rewritten import PREVIEW, Origin, Rewritten
from sdcduck.quoting import folded, identifier

_CLAUSES = frozenset(["expressions", "from_", "limit", "offset"])


def answer_previews(draft: Draft) -> None:
    """SELECT .. LIMIT n of records, as made-up rows where the custodian has some.

    >>> after(answer_previews, "SELECT id, age FROM people LIMIT 5")
    SELECT TRY_CAST(NULL AS BIGINT) AS "id", TRY_CAST("age" AS BIGINT) AS "age" FROM "memory".main."made_up" LIMIT 5
    """
    if all(policy.preview is None for policy in draft.named):
        return
    preview = preview_of(draft.tree, draft.policies, draft.types, draft.names, draft.schema.database())
    if preview is None:
        return
    rows, limits, notice = preview
    sql = f"{rows} {limits}"
    check_query(read(draft.con, sql))
    schemas = draft.schemas + draft.schema.preview_schemas(draft.named[0], rows)
    made_up = frozenset((policy.name, PREVIEW) for policy in draft.named)
    columns = tuple(Origin(name, made_up, computed=True) for name in draft.names)
    tables = tuple(policy.name for policy in draft.named)
    draft.answer = Rewritten(
        sql, (notice,), (), tables, (PREVIEW,), (), notice, columns, schemas=schemas, preview=draft.named[0]
    )  # fmt: skip


def preview_of(
    tree: exp.Expr,
    policies: Mapping[str, Policy],
    schema: Mapping[str, Mapping[str, exp.DataType]],
    names: Sequence[str],
    database: str,
) -> tuple[str, str, str] | None:
    """What runs in place of SELECT columns FROM records, its LIMIT n, and the notice; None: it is something else.

    Nothing may be asked of the rows, so that nobody takes them for an answer: no condition, no aggregate, no order.
    There is no unit in them.

    Args:
        tree: with every column in full.
        schema: the types of the columns that analysts see, by table and column.
        names: of the answer's columns.
        database: in which the tables are.
    """
    if not isinstance(tree, exp.Select) or any(value and part not in _CLAUSES for part, value in tree.args.items()):
        return None
    from_ = tree.args.get("from_")
    table = from_.this if from_ is not None else None
    policy = policies.get(folded(table.name)) if isinstance(table, exp.Table) else None
    if table is None or policy is None or policy.label != "unit-level" or policy.preview is None:
        return None
    stands_for = policies.get(folded(policy.preview))
    if (stands_for is not None and stands_for.label == "unit-level") or any(
        table.args.get(part) for part in ("joins", "pivots", "sample", "db", "catalog")
    ):
        return None
    rows = [_number(tree.args.get(part)) for part in ("limit", "offset")]
    if rows[0] is None or (rows[1] is None and tree.args.get("offset") is not None):
        return None
    types = schema[folded(table.name)]
    columns = []
    for item, name in zip(tree.selects, names, strict=True):
        column = item.unalias()
        if not isinstance(column, exp.Column) or folded(column.name) not in types:
            return None
        is_unit = folded(column.name) in map(folded, policy.identifiers)
        shown = "NULL" if is_unit else identifier(column.name)
        columns.append(f"TRY_CAST({shown} AS {types[folded(column.name)].sql('duckdb')}) AS {identifier(name)}")
    limits = f"LIMIT {rows[0]}" + (f" OFFSET {rows[1]}" if rows[1] is not None else "")
    notice = f"a preview: rows of '{policy.preview}', which are made up; no record of '{policy.name}' is shown"
    rows_of = f"{identifier(database)}.main.{identifier(policy.preview)}"
    return f"SELECT {', '.join(columns)} FROM {rows_of}", limits, notice


def _number(clause: exp.Expr | None) -> int | str | None:
    """The whole number in LIMIT or OFFSET, or the parameter that is one, as drivers write it."""
    if clause is None or any(value and part != "expression" for part, value in clause.args.items()):
        return None  # a percentage, or more
    value = clause.expression
    if isinstance(value, (exp.Parameter, exp.Placeholder)) and value.name.isdecimal():
        return f"${value.name}"
    plain = isinstance(value, exp.Literal) and not value.is_string and value.this.isdecimal()
    return int(value.this) if plain else None
