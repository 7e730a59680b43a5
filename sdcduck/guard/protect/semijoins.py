"""SEMI JOIN, ANTI JOIN and correlated EXISTS as IN: conditions on single records that a table of its own answers.

::

    FROM people SEMI JOIN cold USING (region)
    WHERE EXISTS (SELECT 1 FROM cold WHERE cold.region = people.region)

    WHERE people.region IN (SELECT cold.region FROM cold WHERE cold.region IS NOT NULL)

So is a JOIN with one row for each group that nothing else is taken from, as BI tools write "the five largest"::

    FROM people JOIN (SELECT region AS r, count(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 5) AS top
      ON people.region = top.r

Tableau writes ``IS NOT DISTINCT FROM`` there, with which NULL is a group like others::

    WHERE people.region IN (SELECT top.r FROM (SELECT ..) AS top WHERE top.r IS NOT NULL)
      OR (people.region IS NULL AND EXISTS (SELECT 1 FROM (SELECT ..) AS top WHERE top.r IS NULL))

Only equalities can tie the two sides. Everything else stays as it is, to be refused where records are concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, has_aggregate, owner, tables_of, typed, whole_number

_KEY = "_k"
_NEVER_NULL = "never NULL"
_NULLS_AT_MOST = 3  # ties that also hold between NULLs: each doubles what is asked

PLAIN = frozenset(["expressions", "from_", "joins", "where", "distinct"])
"""The clauses of a subquery of which the rows are those of its relations, under conditions."""


_OF_GROUPS = ("group", "limit", "offset", "order")


def without_semi_joins(select: exp.Select, is_unit: Callable[[exp.Expr], bool] | None = None) -> None:
    """Write SEMI and ANTI JOIN of a SELECT as conditions, in place.

    Args:
        is_unit: which columns tell units apart, where JOIN with DISTINCT ones is a condition too; None: it stays.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        return
    kept = []
    for join in joins:
        only_narrows = join.kind in ("SEMI", "ANTI") or _picks_groups(join, select, is_unit)
        condition = _condition_of(join) if only_narrows else None
        if condition is None:
            kept.append(join)
            continue
        if join.kind not in ("SEMI", "ANTI") and isinstance(join.this, exp.Subquery):
            join.this.this.set("distinct", None)  # whether there is one is asked, not how many
        where = select.args.get("where")
        whole = condition if where is None else exp.and_(where.this, condition, copy=False)
        select.set("where", exp.Where(this=whole))
    select.set("joins", kept)


def without_missing_rows(select: exp.Select, holds_records: Callable[[exp.Expr], bool]) -> None:
    """Write public rows LEFT JOIN records of which there is none as ANTI JOIN, in place.

    ::

        FROM regions r LEFT JOIN people p ON p.region = r.region WHERE p.region IS NULL
        FROM regions r ANTI JOIN people p ON p.region = r.region
    """
    where, from_ = select.args.get("where"), select.args.get("from_")
    if where is None or from_ is None or holds_records(from_.this):
        return
    conditions = list(conjuncts(where.this))
    for join in select.args.get("joins") or []:
        alias = join.this.alias_or_name
        if (join.side, join.kind, join.method) not in (("LEFT", "", ""), ("LEFT", "OUTER", "")):
            continue
        if join.args.get("on") is None or not holds_records(join.this):
            continue
        pairs = [pair for one in conjuncts(join.args["on"]) if (pair := _tied(one, [alias])) is not None]
        missing = [exp.Is(this=mine, expression=exp.Null()) for mine, _ in pairs]
        found = [one for one in conditions if one.unnest() in missing]
        own = {id(column) for part in (join, *found) for column in part.find_all(exp.Column)}
        if not found or any(column.table == alias and id(column) not in own for column in select.find_all(exp.Column)):
            continue
        join.set("side", None)
        join.set("kind", "ANTI")
        conditions = [one for one in conditions if all(one is not other for other in found)]
    select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None)


def _condition_of(join: exp.Join) -> exp.Expr | None:
    if join.side or join.method or join.args.get("on") is None:
        return None
    if not isinstance(join.this, (exp.Table, exp.Subquery)):
        return None
    alias = join.this.alias_or_name
    if isinstance(join.args["on"].unnest(), exp.NullSafeEQ):
        if join.kind not in ("", "INNER") or _sides(join.args["on"].unnest(), [alias]) is None:
            return None
        query = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=join.this))
        query.set("where", exp.Where(this=join.args["on"]))
        return exp.Exists(this=query)  # written as two by `_tie_by_equality`
    pairs: list[tuple[exp.Column, exp.Column]] = []
    narrowing: list[exp.Expr] = []
    beside: list[exp.Expr] = []
    for condition in conjuncts(join.args["on"]):
        if condition.find(exp.Query) is not None:
            return None
        if {column.table for column in condition.find_all(exp.Column)} == {alias}:
            narrowing.append(condition)
            continue
        if all(column.table != alias for column in condition.find_all(exp.Column)):
            beside.append(exp.Coalesce(this=exp.paren(condition), expressions=[exp.false()]))
            continue
        pair = _tied(condition, [alias])
        if pair is None:
            return None
        pairs.append(pair)
    if not pairs:
        return None
    query = exp.Select(expressions=[], from_=exp.From(this=join.this))
    found = exp.paren(exp.and_(*beside, in_rows(pairs, query, narrowing), copy=False), copy=False)
    return exp.Not(this=found) if join.kind == "ANTI" else found


def _picks_groups(join: exp.Join, select: exp.Select, is_unit: Callable[[exp.Expr], bool] | None) -> bool:
    """Whether an inner join only asks for some groups: it has each once, and nothing else of it is used."""
    if join.side or join.method or join.kind not in ("", "INNER") or join.args.get("on") is None:
        return False
    query = join.this.this if isinstance(join.this, exp.Subquery) else None
    wanted = None if query is None else _different_by(query, is_unit)
    if query is None or wanted is None:
        return False
    alias = join.this.alias_or_name
    own = {id(column) for part in (join.this, join.args["on"]) for column in part.find_all(exp.Column)}
    if any(column.table == alias and id(column) not in own for column in select.find_all(exp.Column)):
        return False
    tied = {
        side.name
        for condition in (part.unnest() for part in conjuncts(join.args["on"]))
        if isinstance(condition, (exp.EQ, exp.NullSafeEQ))
        for side, other in ((condition.this, condition.expression), (condition.expression, condition.this))
        if isinstance(side, exp.Column) and side.table == alias and _is_one_value(other, side, alias)
    }
    keys = [item.unalias() for item in query.selects if item.alias_or_name in tied]
    return bool(keys) and all(any(key == one for key in keys) for one in wanted)


def _is_one_value(other: exp.Expr, side: exp.Column, alias: str) -> bool:
    """Whether one value at most of a column is equal to this: a column of elsewhere, or a literal.

    What is made of the joined columns themselves is equal to many: ``top.k = coalesce(top.k, 'x')``. Texts are
    compared with a number as numbers, of which '1' and '01' are the same.
    """
    if isinstance(other, exp.Column):
        return other.table != alias
    text = side.type is None or side.is_type(*exp.DataType.TEXT_TYPES, exp.DataType.Type.UNKNOWN)
    return isinstance(other, exp.Literal) and (other.is_string or (not text and whole_number(other) is not None))


def _different_by(query: exp.Expr, is_unit: Callable[[exp.Expr], bool] | None) -> list[exp.Expr] | None:
    """What no two rows of a subquery have alike: its group keys, or all that DISTINCT shows of units."""
    if not isinstance(query, exp.Select):
        return None
    group, distinct = query.args.get("group"), query.args.get("distinct")
    if distinct is not None:
        shown = [item.unalias() for item in query.selects]
        plain = {part for part, value in query.args.items() if value} <= PLAIN and not distinct.args.get("on")
        return shown if plain and is_unit is not None and any(map(is_unit, shown)) else None
    if group is None or any(value for part, value in group.args.items() if part != "expressions"):
        return None
    return list(group.expressions)


def without_correlation(select: exp.Select, wanted: Callable[[exp.Expr], bool] | None = None) -> None:
    """Write EXISTS with equalities that reach for the records of a SELECT as IN, in place.

    Args:
        wanted: which subqueries; None: all of them.
    """
    _tie_by_equality(select)
    for exists in exists_of(select):
        query = exists.this
        if not isinstance(query, exp.Select) or (wanted is not None and not wanted(query)):
            continue
        tied = None if any(map(has_aggregate, query.expressions)) else ties(query, select)
        if tied is not None:
            pairs, others = tied
            query.set("distinct", None)
            exists.replace(in_rows(pairs, query, others))


def _tie_by_equality(select: exp.Select) -> None:
    """Write EXISTS of which a tie also holds where both sides are NULL as two that are tied by equality, in place.

    ::

        EXISTS (SELECT 1 FROM top WHERE people.region = top.r OR (people.region IS NULL AND top.r IS NULL))
        EXISTS (SELECT 1 FROM top WHERE people.region = top.r)
          OR (people.region IS NULL AND EXISTS (SELECT 1 FROM top WHERE top.r IS NULL))
    """
    waiting = [(exists, _NULLS_AT_MOST) for exists in exists_of(select)]
    while waiting:
        exists, left = waiting.pop()
        where = exists.this.args.get("where") if isinstance(exists.this, exp.Select) else None
        if where is None or not left:
            continue
        names = [table.alias_or_name for table in tables_of(exists.this)]
        conditions = list(conjuncts(where.this))
        found = next((place for place, one in enumerate(conditions) if _equal_or_null(one, names)), None)
        pair = _equal_or_null(conditions[found], names) if found is not None else None
        if found is None or pair is None:
            continue
        mine, other = pair
        sides = []
        for tie in (exp.EQ(this=mine, expression=other), exp.Is(this=mine, expression=exp.Null())):
            one = exists.copy()
            every = [*conditions[:found], tie, *conditions[found + 1 :]]
            one.this.set("where", exp.Where(this=exp.and_(*(part.copy() for part in every), copy=False)))
            sides.append(one)
        neither = exp.and_(exp.Is(this=other.copy(), expression=exp.Null()), sides[1], copy=False)
        exists.replace(exp.paren(exp.or_(sides[0], neither, copy=False), copy=False))
        waiting.extend((side, left - 1) for side in sides)


def _equal_or_null(condition: exp.Expr, inner: Sequence[str]) -> tuple[exp.Column, exp.Column] | None:
    """The two columns that are equal or both NULL, that of the inner relations first."""
    node = condition.unnest()
    if isinstance(node, exp.NullSafeEQ):
        return _sides(node, inner)
    parts = [node.this.unnest(), node.expression.unnest()] if isinstance(node, exp.Or) else []
    equal = next((part for part in parts if isinstance(part, exp.EQ)), None)
    nulls = next((part for part in parts if isinstance(part, exp.And)), None)
    pair = _sides(equal, inner) if equal is not None else None
    if pair is None or nulls is None:
        return None
    missing = [part.unnest() for part in (nulls.this, nulls.expression)]
    wanted = [exp.Is(this=side.copy(), expression=exp.Null()) for side in pair]
    return pair if missing in (wanted, wanted[::-1]) else None


def publish_values(select: exp.Select, holds_records: Callable[[exp.Expr], bool]) -> None:
    """Compare public rows and answers with the values of records that are published, as SELECT DISTINCT has them.

    EXISTS becomes IN, where equalities tie it. Where nothing does, it says whether their published number is above 0::

        SELECT EXISTS (SELECT 1 FROM people WHERE age > 90), 'North' IN (SELECT region FROM people)

        SELECT coalesce((SELECT count(*) > 0 FROM people WHERE age > 90), false),
            'North' IN (SELECT DISTINCT region FROM people)

    Args:
        select: over no records, changed in place.
        holds_records: whether something in FROM has them.
    """

    def plain(query: exp.Expr) -> bool:
        return _has_records(query, holds_records)

    without_correlation(select, plain)
    for exists in exists_of(select):
        query = exists.this
        limit = query.args.get("limit") if isinstance(query, exp.Select) else None
        if limit is not None and (rows_of(limit) or 0) > 0:
            query.set("limit", None)  # one row is enough
        if plain(query):
            some = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(0))
            query.set("distinct", None)
            query.set("expressions", [exp.alias_(some, _KEY, quoted=True)])
            exists.replace(exp.Coalesce(this=exp.Subquery(this=query), expressions=[exp.false()]))
    for found in select.find_all(exp.In):
        query = found.args["query"].unnest() if found.args.get("query") is not None else None
        if query is not None and found.find_ancestor(exp.Select) is select and plain(query):
            query.set("distinct", exp.Distinct())


def rows_of(limit: exp.Expr) -> int | None:
    """How many rows LIMIT leaves; None: that does not stand in the query, or is a part of them.

    >>> from sqlglot import parse_one
    >>> [rows_of(parse_one(f"FROM t LIMIT {most}", read="duckdb").args["limit"]) for most in ("5", "5%", "5 + 1")]
    [5, None, None]
    """
    options = limit.args.get("limit_options")
    of_all = options is not None and options.args.get("percent")
    return None if of_all else whole_number(limit.args.get("expression"))


def _has_records(query: exp.Expr, holds_records: Callable[[exp.Expr], bool]) -> bool:
    """Whether a query has the rows of its relations, among which are records."""
    if not isinstance(query, exp.Select) or any(query.args.get(part) for part in _OF_GROUPS):
        return False
    return not any(map(has_aggregate, query.expressions)) and any(map(holds_records, tables_of(query)))


def publish_sides(
    node: exp.SetOperation, holds_records: Callable[[exp.Expr], bool], is_unit: Callable[[exp.Expr], bool]
) -> None:
    """Have the sides of UNION, INTERSECT and EXCEPT the values of records that are published, in place.

    ::

        SELECT region FROM people UNION SELECT region FROM firms
        SELECT DISTINCT region FROM people UNION SELECT DISTINCT region FROM firms

    Where rows have their unit they stay records, of which no row of one decides whether one of another is there.
    """
    if not node.args.get("distinct"):
        return
    for side in (node.this, node.expression):
        if _has_records(side, holds_records) and not any(is_unit(item.unalias()) for item in side.expressions):
            side.set("distinct", exp.Distinct())


def exists_of(select: exp.Select) -> list[exp.Exists]:
    """Each EXISTS in the conditions on single records of a SELECT, which may stand in WHERE or be a column of it."""
    parts = [part for part in [*select.expressions, select.args.get("where")] if part is not None]
    found = [exists for part in parts for exists in part.find_all(exp.Exists)]
    return [exists for exists in found if exists.find_ancestor(exp.Select) is select]


def ties(query: exp.Select, select: exp.Select) -> tuple[list[tuple[exp.Column, exp.Column]], list[exp.Expr]] | None:
    """The equalities that tie a subquery to a SELECT around it, and its other conditions; None where more does."""
    where = query.args.get("where")
    if where is None or any(value and part not in PLAIN for part, value in query.args.items()):
        return None
    inside = {id(one) for one in query.find_all(exp.Select)}
    # ORDER BY has names of columns that are shown, which are not looked for further out.
    outer = {
        id(column)
        for column in query.find_all(exp.Column)
        if id(owner(column)) not in inside and not _is_sorted_by(column)
    }
    names = [table.alias_or_name for table in tables_of(query)]
    pairs: list[tuple[exp.Column, exp.Column]] = []
    others: list[exp.Expr] = []
    for condition in conjuncts(where.this):
        pair = _tied(condition, names)
        if pair is not None and id(pair[1]) in outer and owner(pair[1]) is select:
            pairs.append(pair)
            outer.remove(id(pair[1]))
        else:
            others.append(condition)
    return (pairs, others) if pairs and not outer else None


def _is_sorted_by(column: exp.Column) -> bool:
    """Whether this is the name of a column that is shown, in ORDER BY."""
    return not column.table and isinstance(column.find_ancestor(exp.Order, exp.Select), exp.Order)


def is_never_null(query: exp.Query) -> bool:
    """Whether a subquery is one that was made here, which leaves out what is NULL."""
    return bool(query.meta.get(_NEVER_NULL))


def _tied(condition: exp.Expr, inner: Sequence[str]) -> tuple[exp.Column, exp.Column] | None:
    """The two columns of an equality, that of the inner relations first."""
    return _sides(condition, inner) if isinstance(condition, exp.EQ) else None


def _sides(condition: exp.Expr, inner: Sequence[str]) -> tuple[exp.Column, exp.Column] | None:
    sides = (condition.this, condition.expression)
    mine = [side for side in sides if isinstance(side, exp.Column) and side.table in inner]
    other = [side for side in sides if isinstance(side, exp.Column) and side.table not in inner]
    return (mine[0], other[0]) if len(mine) == len(other) == 1 else None


def in_rows(pairs: list[tuple[exp.Column, exp.Column]], query: exp.Select, conditions: list[exp.Expr]) -> exp.Expr:
    """``(a, b) IN (SELECT x, y ..)`` that is never NULL."""
    items, known = [], []
    for place, (mine, _) in enumerate(pairs):
        items.append(typed(exp.alias_(mine.copy(), f"{_KEY}{place}", quoted=True), mine))
        known.append(exp.Not(this=exp.Is(this=mine.copy(), expression=exp.Null())))
    query.set("expressions", items)
    query.set("where", exp.Where(this=exp.and_(*conditions, *known, copy=False)))
    query.meta[_NEVER_NULL] = True
    others = [other.copy() for _, other in pairs]
    left = others[0] if len(others) == 1 else exp.Tuple(expressions=others)
    found = exp.In(this=left, query=exp.Subquery(this=query))
    return exp.Coalesce(this=found, expressions=[exp.false()])
