"""JOIN .. USING and NATURAL JOIN where sqlglot ties other columns than DuckDB, or shows others: refused.

For DuckDB the column on the left is that of the relations behind the last comma, it is the one that earlier joins made
of several, and it must be one. sqlglot takes the first relation of FROM that has one of this name, also where that is
NULL behind FULL or RIGHT JOIN; and of every relation further on it hides the column behind a star.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from sqlglot import exp

from sdcduck.guard.expressions import column_names, tables_of
from sdcduck.guard.passes.columns import cte_of
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_TIED = "tied"
_NATURAL = "natural"
_BARE = "bare"
_WRITTEN = "written"


def note_using(tree: exp.Expr) -> None:
    """Note what joins are tied by, and which names stand alone, before sqlglot writes either in full.

    Raises:
        Refused: two relations have one name.
    """
    for coalesce in tree.find_all(exp.Coalesce):
        coalesce.meta[_WRITTEN] = True
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        tied = [join for join in joins if join.args.get("using") or join.method == "NATURAL"]
        for join in tied:
            if join.method == "ASOF":
                raise Refused("SDC022", "ASOF JOIN with USING: write ON a.k = b.k AND a.t >= b.t")
            join.meta[_TIED] = [folded(name.name) for name in join.args.get("using") or []]
            join.meta[_NATURAL] = join.method == "NATURAL"
        if tied:
            columns = select.find_all(exp.Column)
            alone = {folded(column.name) for column in columns if not column.table}
            select.meta[_BARE] = None if any(item.is_star for item in select.expressions) else alone
            # Subqueries without a name get one each.
            called = [folded(relation.alias_or_name) for relation in tables_of(select) if relation.alias_or_name]
            if len(called) > len(set(called)):
                raise Refused("SDC031", "two relations of one name beside USING or NATURAL; give them other names")


def take_left(tree: exp.Expr) -> None:
    """The column of USING is the one on the left, as it is for DuckDB; sqlglot writes COALESCE of both, in place.

    So the unit stays the unit in a subquery over tables that are joined on it. Behind FULL and RIGHT JOIN it may be
    either.

    >>> from sqlglot import parse_one
    >>> from sqlglot.optimizer.qualify import qualify
    >>> schema = {name: {"k": "INT"} for name in "abc"}
    >>> tree = parse_one("SELECT k FROM a JOIN b USING (k) LEFT JOIN c USING (k)", dialect="duckdb")
    >>> note_using(tree)
    >>> tree = qualify(tree, schema=schema, quote_identifiers=False)
    >>> take_left(tree)
    >>> print(tree.sql("duckdb"))
    SELECT a.k AS k FROM a AS a JOIN b AS b ON a.k = b.k LEFT JOIN c AS c ON a.k = c.k

    Args:
        tree: of which `note_using` made notes, with all its names in full.
    """
    for select in tree.find_all(exp.Select):
        if _BARE not in select.meta:
            continue
        same: set[tuple[exp.Expr, exp.Expr]] = set()
        for join in select.args.get("joins") or []:
            condition = join.args.get("on")
            if condition is None or _TIED not in join.meta:
                continue
            _take_left(select, condition, same)
            if join.side in ("", "LEFT") and join.kind in ("", "INNER"):
                name = join.alias_or_name
                parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
                both = [(part.this, part.expression) for part in parts if isinstance(part, exp.EQ)]
                same.update((left, right) for left, right in both if getattr(right, "table", "") == name)
        _take_left(select, select, same)


def _take_left(select: exp.Select, within: exp.Expr, same: Collection[tuple[exp.Expr, exp.Expr]]) -> None:
    """Of names in this SELECT alone: in one inside it, the same names may be of other relations."""
    for coalesce in list(within.find_all(exp.Coalesce)):
        left, others = coalesce.this, coalesce.expressions
        own = _WRITTEN not in coalesce.meta and coalesce.parent_select is select
        if own and others and all((left, other) in same for other in others):
            coalesce.replace(left)


def refuse_other_using(tree: exp.Expr, schema: Mapping[str, Collection[str]]) -> None:
    """Refuse joins that DuckDB would tie otherwise.

    >>> from sqlglot import parse_one
    >>> from sqlglot.optimizer.qualify import qualify
    >>> schema = {"a": {"k": "INT"}, "b": {"k": "INT"}, "c": {"k": "INT"}}
    >>> tree = parse_one("SELECT k FROM a FULL JOIN b USING (k) JOIN c USING (k)", dialect="duckdb")
    >>> note_using(tree)
    >>> try:
    ...     refuse_other_using(qualify(tree, schema=schema, dialect="duckdb"), schema)
    ... except Refused as refused:
    ...     print(refused.code)
    SDC022

    Args:
        tree: of which `note_using` made notes, with all its names in full.
        schema: the columns of the tables that are visible.

    Raises:
        Refused: there are such joins.
    """
    for select in tree.find_all(exp.Select):
        if _BARE in select.meta:
            _check(select, schema)


def _check(select: exp.Select, schema: Mapping[str, Collection[str]]) -> None:
    here = Counter(_names(select.args["from_"].this, schema))
    """How many columns of a name there are since the last comma: several that are tied are one."""
    before, made = Counter[str](), set[str]()
    either = set[str]()
    for join in select.args.get("joins") or []:
        names = _names(join.this, schema)
        if _TIED not in join.meta:
            if not any(join.args.get(part) for part in ("kind", "side", "method", "on")):  # a comma
                before, here = before + here, Counter()
            here.update(() if join.kind in ("SEMI", "ANTI") else names)
            continue
        natural = join.meta[_NATURAL]
        for name in names & {*before, *here} if natural else join.meta[_TIED]:
            if before[name] or here[name] != 1:
                raise Refused("SDC031", f"'{name}' of several relations before USING or NATURAL; write ON")
            if name in either:
                raise Refused("SDC022", f"USING ({name}) after a FULL or RIGHT JOIN: write ON coalesce(a.x, b.x) = c.x")
            made.add(name)
            if join.side in ("FULL", "RIGHT"):
                either.add(name)
        if join.kind not in ("SEMI", "ANTI"):
            here.update(names - made if natural else names - set(join.meta[_TIED]))
    several = {name for name in made if (before + here)[name] > 1}
    bare = select.meta[_BARE]
    if several and (bare is None or bare & several):
        raise Refused("SDC031", f"'{min(several)}', of USING and of another relation; write the names of the columns")


def _names(relation: exp.Expr, schema: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The lower-case names of the columns of what stands in FROM."""
    renamed = relation.alias_column_names
    if renamed:
        return frozenset(folded(name) for name in renamed)
    query = relation.this
    if isinstance(relation, exp.Table):
        cte = cte_of(relation)
        if cte is None:
            return frozenset(schema.get(folded(relation.name), ()))
        query = cte.this
    return column_names(query) if isinstance(query, exp.Query) else frozenset()
