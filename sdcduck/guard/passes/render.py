"""The text of a protected query: its parts are written and read each on its own, and put together."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sdcduck.guard.calls import Numbered, Sets
from sdcduck.guard.passes.draft import Draft, Written
from sdcduck.guard.passes.normalize import bracket_keys
from sdcduck.guard.passes.subscripts import settle_subscripts
from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Counted

_DUCKDB = Dialect.get_or_raise("duckdb")
_NAME = re.compile(r'"(_sdc_[0-9a-f]{24})"')


def render(draft: Draft) -> None:
    """Write what runs, and see that it reads as it is meant.

    >>> after(render, "SELECT count(*) AS n FROM people WHERE age > 3")
    SELECT "_sdc"."_a0" AS "n" FROM (SELECT CASE WHEN "_sdc_n"."_f0_0" >= 3 THEN "_sdc_n"."_f0_1" END AS "_a0" FROM
    (SELECT COUNT("people"."id") AS "_f0_0", COUNT(1) AS "_f0_1" FROM "memory"."main"."people" AS "people"
    WHERE TRY(CAST("people"."age" > 3 AS BOOLEAN))) AS "_sdc_n") AS "_sdc"
    """
    draft.sets = tuple(_sets(made.sets, draft) for made in draft.protection.progress.numbers.values() if made.sets)
    text = written(draft.tree, draft.protection.progress.numbers, subscripts=draft.subscripts)
    if text is not None:
        draft.text = text
    elif draft.again or draft.plain == draft.query:
        raise Refused("SDC005", "text that reads in two ways")
    else:  # some words have another one that is written in their place: a query of those is judged from the start
        draft.answer = draft.start.rewrite(draft.plain, draft.policies, probes=draft.probes, again=True)


def _sets(sets: Sets, draft: Draft) -> Counted:
    """The query for what a block counts.

    Raises:
        Refused: its text does not read as its tree.
    """
    given = sorted({node.name for node in sets.query.find_all(exp.Parameter, exp.Placeholder)})
    sql = _rendered(sets.query, draft.subscripts)
    if sql is None:
        raise Refused("SDC071", "text that reads in two ways")
    return Counted(sets.policy, sql, tuple(given))


def written(tree: exp.Expr, numbers: Mapping[str, Numbered], *, subscripts: bool = False) -> Written | None:
    """The text of trees that were checked, which are used up; None if a text does not read as its tree.

    Args:
        tree: the query, in which tables stand for the blocks.
        numbers: of the blocks, by the names of these tables.
        subscripts: whether there are any, which have to be brought into one form.
    """
    outer, *grouped = (_rendered(part, subscripts) for part in (tree, *(made.grouped for made in numbers.values())))
    texts = [text for text in grouped if text is not None]
    if outer is None or len(texts) < len(grouped):
        return None
    blocks = dict(zip(numbers, texts, strict=True))

    def whole(text: str) -> str:
        return _NAME.sub(block, text)

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in numbers:
            return found[0]
        before, after = numbers[name].around
        return f"({before}{whole(blocks[name])}{after}{numbers[name].order})"

    return Written(outer, tuple(texts), whole(outer))


def _rendered(tree: exp.Expr, subscripts: bool) -> str | None:
    """The text of a tree; None if the text does not read as that tree.

    sqlglot writes some parts of a tree as they are; what stands in them must not become SQL. Trees are equal where
    their hashes are, which are over everything in them and salted in each process. That of the checked tree is taken
    before it is written, for sqlglot changes it as it writes.
    """
    if subscripts:
        settle_subscripts(tree)
    bracket_keys(tree)
    _as_calls(tree)
    checked = type(tree), hash(tree)
    sql = tree.sql("duckdb", comments=False, copy=False)
    try:
        again = _DUCKDB.parser().parse(words_of(sql), sql)
    except SqlglotError:
        return None
    if again and again[0] is not None:
        _as_calls(again[0])
        if subscripts:
            settle_subscripts(again[0])
    return sql if len(again) == 1 and (type(again[0]), hash(again[0])) == checked else None


def _as_calls(tree: exp.Expr) -> None:
    """Write aggregates as any functions that sqlglot reads so, in place; approx_quantile it writes in another way."""
    for call in list(tree.find_all(exp.AnonymousAggFunc, exp.ApproxQuantile)):
        if isinstance(call, exp.ApproxQuantile):
            arguments = [call.args[part] for part in call.arg_types if call.args.get(part) is not None]
            call.replace(exp.Anonymous(this="APPROX_QUANTILE", expressions=arguments))
        else:
            call.replace(exp.Anonymous(this=call.name.upper(), expressions=call.expressions))
