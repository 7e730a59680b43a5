"""What the columns of an answer are called."""

from __future__ import annotations

import re
from dataclasses import replace

from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.spelling import spell
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

_STRING = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")""")  # or a name, which stays: it may have a ' in it


def spell_names(draft: Draft) -> None:
    """The columns of the answer, with the capitals that DuckDB would show.

    >>> after(spell_names, "SELECT Count(*) AS Number FROM people")
    SELECT "_sdc"."_a0" AS "Number" FROM "a block" AS "_sdc"
    """
    spell(draft.tree, draft.names)


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
