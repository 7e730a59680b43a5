"""The text of a protected query: its parts are written and read each on its own, and put together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sdcduck.catalog import is_of_the_moment
from sdcduck.guard.allowed import WORDS_OF_TIME
from sdcduck.guard.calls import Drawn, Grouping, Numbered, unknown_name
from sdcduck.guard.expressions import RELEASED, TIMES
from sdcduck.guard.passes.barriers import BARRIER, may_fail
from sdcduck.guard.passes.draft import Draft, Written
from sdcduck.guard.passes.inner_sets import Named, SetsOf, sets_of
from sdcduck.guard.passes.normalize import bracket_keys
from sdcduck.guard.passes.output_names import output_names
from sdcduck.guard.passes.subscripts import settle_subscripts
from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Counted, Release
from sdcduck.quoting import folded

_DUCKDB = Dialect.get_or_raise("duckdb")
_NAME = re.compile(r'"(_sdc_[0-9a-f]{24})"')


def render(draft: Draft) -> None:
    """Write what runs, and see that it reads as it is meant.

    >>> after(render, "SELECT count(*) AS n FROM people WHERE age > 3")
    SELECT "_sdc"."_a0" AS "n" FROM (SELECT CASE WHEN "_sdc_n"."_f0_0" >= 3 THEN "_sdc_n"."_f0_1" END AS "_a0" FROM
    (SELECT COUNT("people"."id") AS "_f0_0", COUNT(1) AS "_f0_1" FROM "memory"."main"."people" AS "people"
    WHERE TRY(CAST("people"."age" > 3 AS BOOLEAN))) AS "_sdc_n") AS "_sdc"
    """
    _check_drawn(draft)
    draft.columns_now = output_names(draft.tree)
    draft.grouped, draft.constant = _is_grouped(draft.tree), _is_constant(draft.tree)
    sets = _sets(draft)
    queries = [_rendered(of.query, draft.subscripts) for _, _, of in sets]
    _times_alone(draft.tree)
    _words_of_time_apart(draft.tree)
    numbers = draft.protection.progress.numbers
    text = written(draft.tree, numbers, [query for query in queries if query], subscripts=draft.subscripts)
    if text is not None and None not in queries:
        draft.text, draft.releases = text, text.releases
        draft.sets = tuple(
            Counted(policy, sql, given, of.of, bool(of.reads))
            for (policy, given, of), sql in zip(sets, text.beside, strict=True)
        )
    elif draft.again or draft.plain == draft.query:
        raise Refused("SDC006" if text is None else "SDC071", "" if text is None else "text that reads in two ways")
    else:  # some words have another one that is written in their place: a query of those is judged from the start
        draft.answer = draft.start.rewrite(draft.plain, draft.policies, probes=draft.probes, again=True)


def _times_alone(tree: exp.Expr) -> None:
    """Show ``current_time`` without its zone, in place: Arrow has no type for both.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT CURRENT_TIME AS x, CAST(CURRENT_TIME AS TEXT) AS y")
    >>> _times_alone(tree)
    >>> print(tree.sql("duckdb"))
    SELECT CAST(CURRENT_TIME AS TIME) AS x, CAST(CURRENT_TIME AS TEXT) AS y
    """
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            shown = item.unalias()
            if isinstance(shown, exp.CurrentTime):
                shown.replace(exp.cast(shown.copy(), "TIME"))


def _words_of_time_apart(tree: exp.Expr) -> None:
    """Write ``current_date`` as a subquery where a column is called so, in place: DuckDB takes it for that column.

    >>> from sqlglot import parse_one
    >>> tree = parse_one('SELECT CURRENT_DATE AS "current_date", CURRENT_DATE + 1 AS x')
    >>> _words_of_time_apart(tree)
    >>> print(tree.sql())
    SELECT (SELECT CURRENT_DATE) AS "current_date", (SELECT CURRENT_DATE) + 1 AS x
    """
    for select in list(tree.find_all(exp.Select)):
        if WORDS_OF_TIME.isdisjoint(folded(item.alias) for item in select.expressions):
            continue
        for word in list(select.find_all(*TIMES)):
            if word.find_ancestor(exp.Select) is select:
                place = exp.Null()
                word.replace(place)
                place.replace(exp.Subquery(this=exp.Select(expressions=[word])))


def _sets(draft: Draft) -> list[tuple[str, tuple[str, ...], SetsOf]]:
    """What the blocks count, where that is limited: of each the policy, the parameters, and the SELECT of its sets.

    Raises:
        Refused: nobody knows what one of them tells.
    """
    numbers = draft.protection.progress.numbers
    if not any(made.sets for made in numbers.values()):
        return []

    def changes(relation: str) -> bool:
        is_table = folded(relation) in draft.protection.progress.tables
        return not is_table and is_of_the_moment(draft.con, relation)

    named = Named.of(draft.tree, draft.policies, numbers, changes)
    found: list[tuple[str, tuple[str, ...], SetsOf]] = []
    given: dict[str, set[str]] = {}
    for name, made in numbers.items():
        of = None if made.sets is None else sets_of(made.sets, made.grouped, named)
        given[name] = _parameters(made.grouped, given)
        if of is not None and made.sets is not None:
            if not given.keys() >= set(of.reads):
                raise Refused("SDC071", "answers that are worked out later: ask for them first")
            found.append((made.sets.policy.name, tuple(sorted(_parameters(of.query, given))), of))
    return found


def _parameters(tree: exp.Expr, given: Mapping[str, set[str]]) -> set[str]:
    """The parameters in a query, and in the blocks that it reads."""
    here = {node.name for node in tree.find_all(exp.Parameter, exp.Placeholder)}
    return here.union(*(given.get(table.name, ()) for table in tree.find_all(exp.Table)))


def written(
    tree: exp.Expr, numbers: Mapping[str, Numbered], beside: Sequence[str] = (), *, subscripts: bool = False
) -> Written | None:
    """The text of trees that were checked, which are used up; None if a text does not read as its tree.

    Args:
        tree: the query, in which tables stand for the blocks.
        numbers: of the blocks, by the names of these tables.
        beside: the texts of further queries in which they stand.
        subscripts: whether there are any, which have to be brought into one form.
    """
    trees = (tree, *(made.grouped for made in numbers.values()))
    kept_apart = BARRIER if any(map(may_fail, trees)) else ""
    outer, *grouped = (_rendered(part, subscripts) for part in trees)
    texts = [text for text in grouped if text is not None]
    if outer is None or len(texts) < len(grouped):
        return None
    blocks = dict(zip(numbers, texts, strict=True))
    releases: list[Release] = []
    for name, made in numbers.items():
        if made.drawn is None:
            continue
        together = []
        for grouping in made.drawn.groupings:
            exact = blocks[name] if grouping.grouped is made.grouped else _rendered(grouping.grouped, subscripts)
            cells = "" if grouping.cells is None else _rendered(grouping.cells, subscripts)
            if exact is None or cells is None:
                return None
            release = _drawn_once(_release(made.drawn, grouping, cells, exact), releases)
            before, after = grouping.around
            together.append(f"{before}{release.stands_for}{after}")
            texts += [text for text in (exact, cells) if text]
        blocks[name] = " UNION ALL ".join(together)

    def whole(text: str) -> str:
        return _NAME.sub(block, text)

    def block(found: re.Match[str]) -> str:
        name = found[1]
        if name not in numbers:
            return found[0]
        before, after = numbers[name].around
        return f"({before}{whole(blocks[name])}{after}{numbers[name].order}{kept_apart})"

    return Written(outer, tuple(texts), whole(outer), tuple(releases), tuple(map(whole, beside)))


def _release(drawn: Drawn, grouping: Grouping, cells: str, totals: str) -> Release:
    """What noise is drawn for, and the relation without rows that stands for it until then.

    Whatever looks at the query alone, to plan it or to say which columns it has, reads no record. Its name is one that
    nobody can have written, so that nothing else in the query is taken for it.
    """
    of = {False: "BIGINT", True: "DOUBLE"}
    shown = [f'"{key}"' for key in grouping.keys]
    shown += [
        f'CAST(NULL AS {of[noised.statistic != "count"]}) AS "{column}"' for column, noised in drawn.totals.items()
    ]
    source = f"({cells or totals})" if grouping.keys else "(SELECT 1)"
    stands_for = f'SELECT {", ".join(shown)} FROM {source} AS "{unknown_name()}" WHERE false'
    columns = (*drawn.totals.items(), *grouping.beside)
    return Release(
        drawn.policy, stands_for, cells, totals, grouping.keys, columns, grouping.adds_up, grouping.selects,
        len(drawn.totals), tables=drawn.tables, contributions=drawn.contributions,
    )  # fmt: skip


def _drawn_once(release: Release, releases: list[Release]) -> Release:
    """A release, or the same one that is there already: numbers that stand twice in a query are the same numbers."""
    for place, other in enumerate(releases):
        same = replace(release, stands_for=other.stands_for, adds_up=other.adds_up, twice=other.twice) == other
        if same:
            releases[place] = replace(other, adds_up=other.adds_up or release.adds_up, twice=True)
            return other
    releases.append(release)
    return release


def _check_drawn(draft: Draft) -> None:
    """Refuse a query that reads records of a method with noise outside of SQL anywhere but where noise is drawn."""
    private = {folded(policy.name) for policy in draft.named if policy.privacy.holds}
    if not private:
        return
    numbers = draft.protection.progress.numbers.values()
    elsewhere = [draft.tree, *(made.grouped for made in numbers if made.drawn is None)]
    if any(folded(table.name) in private for tree in elsewhere for table in tree.find_all(exp.Table)):
        raise Refused("SDC081", "records in a subquery: ask for counts of them")


def _rendered(tree: exp.Expr, subscripts: bool) -> str | None:
    """The text of a tree; None if the text does not read as that tree.

    sqlglot writes some parts of a tree as they are; what stands in them must not become SQL. Trees are equal where
    their hashes are, which are over everything in them and salted in each process. That of the checked tree is taken
    before it is written, for sqlglot changes it as it writes.
    """
    if subscripts:
        settle_subscripts(tree)
    bracket_keys(tree)
    _bracket_sides(tree)
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


def _bracket_sides(tree: exp.Expr) -> None:
    """Write sides of UNION, INTERSECT and EXCEPT that have a WITH of their own in brackets, in place.

    Without them that of the first side is read as one of both together.

    >>> from sqlglot import parse_one
    >>> side = parse_one("WITH m AS (SELECT 1 AS x) SELECT x FROM m")
    >>> tree = exp.Union(this=side, expression=parse_one("SELECT 2"), distinct=False)
    >>> _bracket_sides(tree)
    >>> print(tree.sql())
    (WITH m AS (SELECT 1 AS x) SELECT x FROM m) UNION ALL SELECT 2
    """
    for node in list(tree.find_all(exp.SetOperation)):
        for side in (node.this, node.expression):
            if side.args.get("with_") is not None and not isinstance(side, exp.Subquery):
                place = exp.Null()
                side.replace(place)
                place.replace(exp.Subquery(this=side))


def _as_calls(tree: exp.Expr) -> None:
    """Write aggregates as any functions that sqlglot reads so, in place; approx_quantile it writes in another way."""
    for call in list(tree.find_all(exp.AnonymousAggFunc, exp.ApproxQuantile)):
        if isinstance(call, exp.ApproxQuantile):
            arguments = [call.args[part] for part in call.arg_types if call.args.get(part) is not None]
            call.replace(exp.Anonymous(this="APPROX_QUANTILE", expressions=arguments))
        else:
            call.replace(exp.Anonymous(this=call.name.upper(), expressions=call.expressions))


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
