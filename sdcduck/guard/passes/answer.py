"""What is known of an answer before it is there, and what it depends on."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from sdcduck.guard.expressions import RELEASED
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.output_names import output_names
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import folded, identifier

_LONGEST_CONSTANT = 1000  # characters
_STRING = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")""")  # or a name, which stays: it may have a ' in it


def foresee(draft: Draft) -> None:
    """Find out, while the tree is there, what its columns are called, and whether its rows are groups or constants."""
    draft.columns_now = output_names(draft.tree)
    draft.grouped, draft.constant = _is_grouped(draft.tree), _is_constant(draft.tree)


def name_columns(draft: Draft) -> None:
    """The columns of the answer, called as DuckDB calls them.

    >>> after(name_columns, "SELECT count(*) AS N, sum(income) AS n FROM people")
    SELECT "_sdc"."_a0" AS "N", "_sdc"."_a1" AS "n" FROM (SELECT CASE WHEN "_sdc_n"."_f0_0" >= 3 THEN
    "_sdc_n"."_f0_1" END AS "_a0", CASE WHEN "_sdc_n"."_f0_2" >= 3 THEN "_sdc_n"."_f0_3" END AS "_a1" FROM (SELECT
    COUNT(CASE WHEN NOT "people"."income" IS NULL THEN "people"."id" END) AS "_f0_2",
    SUM("people"."income") AS "_f0_3", COUNT("people"."id") AS "_f0_0", COUNT(1) AS "_f0_1" FROM
    "memory"."main"."people" AS "people") AS "_sdc_n") AS "_sdc"
    """
    sql, names, now = draft.text.sql, draft.names, draft.columns_now
    draft.grouped = draft.grouped and "unnest" not in folded(_STRING.sub(r"\1", sql))
    if draft.words and (
        any(f'"{word}"' in folded(sql) for word in draft.words) or draft.schema.have_column(draft.named, draft.words)
    ):
        raise Refused("SDC010", f"{min(draft.words)}, beside a column of that name")
    draft.sql = sql
    if now is not None and names != now and len(names) == len(now) == len(set(map(folded, now))):
        shown = ", ".join(f"{identifier(old)} AS {identifier(new)}" for old, new in zip(now, names, strict=True))
        draft.sql = f"SELECT {shown} FROM ({sql})"
        draft.lineage = tuple(replace(column, name=name) for column, name in zip(draft.lineage, names, strict=False))


def finish(draft: Draft) -> None:
    """The query that may run, with what it depends on."""
    policies, protection = draft.named, draft.protection
    draft.answer = Rewritten(
        draft.sql,
        tuple(protection.progress.notes),
        tuple(protection.progress.unique),
        tuple(policy.name for policy in policies),
        tuple(sorted({policy.method for policy in policies if policy.method is not None})),
        tuple(policy for policy in policies if policy.label == "unit-level"),
        columns=draft.lineage,
        grouped=draft.grouped,
        constant=draft.constant and len(draft.sql) <= _LONGEST_CONSTANT,
        shapes=draft.shapes,
        rows=draft.rows,
        sets=draft.sets,
        releases=draft.releases,
    )


def _is_grouped(tree: exp.Expr) -> bool:
    """Whether the rows of a protected query are those of one block, or some of them, where none is unnested."""
    if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("laterals"):
        return False
    from_ = tree.args.get("from_")
    inner = from_.this if from_ is not None else None
    if not isinstance(inner, (exp.Subquery, exp.Table)):
        return False
    return inner.alias == RELEASED or (isinstance(inner, exp.Subquery) and _is_grouped(inner.this))


def _is_constant(tree: exp.Expr) -> bool:
    """Whether this is SELECT and literals, and nothing else.

    >>> texts = ("SELECT 1, 'a' AS b", "SELECT now()", "SELECT 1 LIMIT 0")
    >>> [_is_constant(exp.maybe_parse(text, dialect="duckdb")) for text in texts]
    [True, False, False]
    """
    if not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name != "expressions"):
        return False
    return all(isinstance(item.unalias(), (exp.Literal, exp.Boolean, exp.Null)) for item in tree.expressions)
