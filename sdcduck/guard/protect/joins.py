"""The joins of a block: public relations and answers n:1 by equality, records on the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.guard.expressions import EQUAL, conjuncts, factored, family, is_of, is_wide, ties, typed
from sdcduck.guard.protect.groups import grouped, is_per_unit
from sdcduck.guard.protect.intervals import Border, border_of, in_two, interval_ties
from sdcduck.guard.protect.materialize import compared, joined, set_apart
from sdcduck.guard.protect.scalar_subqueries import JOINED
from sdcduck.guard.protect.scope import Scope, source_of
from sdcduck.guard.refusals import NO_RECORDS_BESIDE, Refused
from sdcduck.guard.relations import Label, Unique
from sdcduck.quoting import folded, identifier

_INNER = (("", "", ""), ("", "INNER", ""), ("", "CROSS", ""))
_ASOF = (("", "", "ASOF"), ("", "INNER", "ASOF"), ("LEFT", "", "ASOF"), ("LEFT", "OUTER", "ASOF"))
_EACH = "one equality in each side of OR may find two rows: LEFT JOIN once for each of them, and coalesce"
_TIES = (
    "tie it to the others by a column of its own, {0}.x = .., or by both borders of an interval, "
    "or group by what tells its rows apart"
)
_NOT_BY_ITSELF = (exp.Query, exp.Placeholder, exp.Parameter, exp.Lambda)
_INTERVALS = ("whole", "decimal", "real", "date", "timestamp")


def order_joins(scope: Scope) -> None:
    """Write inner joins as: the unit-level table, then each other with the equalities that tie it to those before.

    FROM a, b WHERE a.x = b.x and a public table that stands first mean the same; outer joins are left as they are, and
    what comes behind them stays there.
    """
    every: list[exp.Join] = scope.select.args.get("joins") or []
    # What is looked up for each record, behind the joins that the analyst wrote, stays there.
    joins = [join for join in every if not join.this.alias_or_name.startswith(JOINED)]
    if not joins or any((join.side, join.kind, join.method) not in _INNER or join.args.get("using") for join in joins):
        _tie_behind(scope, every, joins)
        return
    where = scope.select.args.get("where")
    conditions = [*conjuncts(factored(where.this))] if where is not None else []
    for join in joins:
        if join.args.get("on") is not None:
            conditions.extend(conjuncts(factored(join.args["on"])))
    tables = {table.alias_or_name: table for table in [scope.select.args["from_"].this, *(join.this for join in joins)]}
    waiting = {alias: table for alias, table in tables.items() if alias != scope.alias}
    ordered, conditions = _tied(scope, [scope.alias], waiting, conditions)
    scope.select.set("from_", exp.From(this=tables[scope.alias]))
    scope.select.set("joins", [*ordered, *(join for join in every if join not in joins)])
    scope.select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None)


def _tie_behind(scope: Scope, every: Sequence[exp.Join], joins: Sequence[exp.Join]) -> None:
    """Join what stands behind outer joins with a comma by the equalities of WHERE, in place.

    ::

        FROM sales LEFT JOIN returned ON .., reasons WHERE returned.reason = reasons.id
        FROM sales LEFT JOIN returned ON .. JOIN reasons ON returned.reason = reasons.id
    """
    behind: list[exp.Join] = []
    for join in reversed(joins):
        if (join.side, join.kind, join.method) not in _INNER or join.args.get("using") or join.args.get("on"):
            break
        behind.insert(0, join)
    where = scope.select.args.get("where")
    if not behind or where is None:
        return
    before = [join.this.alias_or_name for join in joins if all(join is not other for other in behind)]
    placed = [scope.select.args["from_"].this.alias_or_name, *before]
    waiting = {join.this.alias_or_name: join.this for join in behind}
    ordered, conditions = _tied(scope, placed, waiting, [*conjuncts(factored(where.this))])
    kept = [join for join in joins if all(join is not other for other in behind)]
    scope.select.set("joins", [*kept, *ordered, *(join for join in every if all(join is not one for one in joins))])
    scope.select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None)


def _tied(
    scope: Scope, placed: list[str], waiting: dict[str, exp.Expr], conditions: list[exp.Expr]
) -> tuple[list[exp.Join], list[exp.Expr]]:
    """Relations as joins, each by what ties it to those before, equalities and intervals; and the conditions left.

    An answer of one row needs none.

    Raises:
        Refused: one is tied to none.
    """
    ordered: list[exp.Join] = []
    conditions = in_two(conditions)
    while waiting:
        tied = {
            alias: [
                *(c for c in conditions if ties(c, alias, placed)),
                # Between records of a unit borders are conditions like others.
                *(interval_ties(conditions, alias, placed) if scope.sources[alias].label is not Label.UNIT else ()),
            ]
            for alias in waiting
        }
        alias = next((alias for alias in waiting if tied[alias]), None)
        beside = next((alias for alias in waiting if scope.sources[alias].one_row), None)
        if alias is None and beside is not None:
            ordered.append(exp.Join(this=waiting.pop(beside), kind="CROSS"))
            placed.append(beside)
            continue
        if alias is None:
            beside_each = {alias: _beside(scope, alias, conditions, placed) for alias in waiting}
            # One with borders first: what stands beside each record may be tied by what comes later.
            alias = max(
                (alias for alias in waiting if _keys_of(scope, alias)),
                key=lambda one: bool(beside_each[one]),
                default=None,
            )
            tied = beside_each
        if alias is None:
            first = next(iter(waiting))
            raise Refused("SDC034", f"{first}: {_EACH if _in_or(conditions, list(waiting)) else _TIES.format(first)}")
        ties_it = tied[alias]
        conditions = [c for c in conditions if all(c is not tie for tie in ties_it)]
        how = {"on": exp.and_(*ties_it, copy=False)} if ties_it else {"kind": "CROSS"}
        ordered.append(exp.Join(this=waiting.pop(alias), **how))
        placed.append(alias)
    return ordered, conditions


def _beside(scope: Scope, alias: str, conditions: Sequence[exp.Expr], placed: Sequence[str]) -> list[exp.Expr]:
    """The comparisons of a relation with those before, where a record may find several rows of it, each in a group."""
    borders = [(part, border_of(part, alias)) for part in conditions]
    return [part for part, border in borders if border is not None and is_of(border.value, placed)]


def _in_or(conditions: Sequence[exp.Expr], waiting: Sequence[str]) -> bool:
    """Whether equalities that may tie the others stand in OR."""
    return any(
        isinstance(condition.unnest(), exp.Or)
        and any(ties(equality, alias, [equality.this.table, equality.expression.table]) for alias in waiting)
        for condition in conditions
        for equality in condition.find_all(exp.EQ)
        if isinstance(equality.this, exp.Column) and isinstance(equality.expression, exp.Column)
    )


def check_joins(scope: Scope) -> None:
    """Public relations are joined n:1, by equality with all of a key, and unit-level ones on the unit."""
    from_ = scope.select.args["from_"].this
    if from_.alias_or_name != scope.alias:
        raise Refused("SDC033", "start FROM with the unit-level table")
    placed = [scope.alias]
    for join in scope.select.args.get("joins") or []:
        placed.append(join.this.alias_or_name)
        if _check_join(scope, join, placed):
            join.set("this", _apart(scope, join.this))


def _check_join(scope: Scope, join: exp.Join, placed: Sequence[str]) -> bool:
    """Check a join, the last of those placed; returns whether the relation is to stand apart."""
    kind = (join.side or "", join.kind or "", join.method or "")
    if kind not in (*_INNER, *_ASOF, ("LEFT", "", ""), ("LEFT", "OUTER", "")):
        raise Refused("SDC033", folded(" ".join(filter(None, kind))))
    alias = placed[-1]
    relation = scope.sources[alias]
    is_public = relation.label is Label.PUBLIC
    if scope.policy.privacy.holds and not (is_public and relation.source is not None):
        raise Refused("SDC081", NO_RECORDS_BESIDE)
    groups = _own_groups(scope, alias) if is_public and relation.source is not None and kind in _INNER else ()
    if join.args.get("on") is None:
        if relation.one_row and kind == _INNER[2]:
            return True
        if not groups or relation.source is None:
            raise Refused("SDC034", alias)
        # Each record finds each row of it, one in each group.
        scope.progress.unique.append(Unique(relation.source, groups, groups=groups))
        return relation.table is None
    if relation.source is None and is_public:
        raise Refused("SDC034", alias)
    tied = _Ties()
    conditions = in_two(conjuncts(join.args["on"]))
    join.set("on", exp.and_(*conditions, copy=False))
    for condition in conditions:
        _refuse_later(scope, condition, placed)
        _check_condition(scope, condition, placed, tied, nearest=kind in _ASOF)
    if not tied.pairs and not tied.borders:
        equalities = any(isinstance(condition, EQUAL) for condition in conditions)
        raise Refused("SDC034", _untied(alias) if equalities else alias)
    if relation.label is Label.UNIT:
        if kind in _ASOF:
            raise Refused("SDC033", "ASOF JOIN of records: a public table has to stand behind it")
        if not any(scope.is_unit(mine) and scope.is_unit(other) for mine, other in tied.pairs):
            raise Refused("SDC035", f"join {alias} on the unit")
        return False
    if kind in _ASOF:
        _check_nearest(scope, alias, tied.identifying, [border for border, _ in tied.borders])
    elif relation.source is not None:
        scope.progress.unique.append(_found_once(scope, alias, relation.source, tied, groups))
    elif not relation.identified_by or not relation.identified_by <= {folded(mine.name) for mine, _ in tied.pairs}:
        raise Refused("SDC034", f"{alias}: join the answer on all that it is grouped by")
    return relation.table is None


@dataclass
class _Ties:
    """What ties a relation to those before: equalities, as columns and as SQL, and borders with their conditions."""

    pairs: list[tuple[exp.Column, exp.Expr]] = field(default_factory=list)
    identifying: list[tuple[str, str]] = field(default_factory=list)
    borders: list[tuple[Border, exp.Expr]] = field(default_factory=list)


def _check_condition(scope: Scope, condition: exp.Expr, placed: Sequence[str], tied: _Ties, *, nearest: bool) -> None:
    """Check what ON says: it narrows, in place, or ties the last relation of those placed to the others."""
    alias = placed[-1]
    relation = scope.sources[alias]
    narrows_rows = not nearest and not _ties_one(condition, alias)
    if relation.label is Label.PUBLIC and {column.table for column in condition.find_all(exp.Column)} == {alias}:
        condition.replace(scope.condition(condition))  # narrows the public side only
    elif relation.label is Label.UNIT and narrows_rows:
        condition.replace(scope.condition(condition))  # which of their records are put beside each other
    elif (border := border_of(condition, alias)) is not None and relation.source is not None:
        tied.borders.append((border, condition))
    elif narrows_rows and is_of(condition, placed):
        condition.replace(scope.condition(condition))  # narrows as WHERE does, also behind LEFT JOIN
    else:
        tied.pairs.append(_joined_columns(scope, condition, alias))
        tied.identifying.append(_compared_as_known(scope, *tied.pairs[-1]))


def _found_once(scope: Scope, alias: str, source: str, tied: _Ties, groups: tuple[tuple[str, str], ...]) -> Unique:
    """What must hold of a public relation so that a record finds one row of it, or one in each group."""
    borders = [border for border, _ in tied.borders]
    if tied.pairs and not groups and not _is_interval(borders):
        for _, condition in tied.borders:  # of the one row that the equalities find
            condition.replace(scope.condition(condition))
        borders = []
    interval, meet = _interval(scope, alias, borders, several=bool(groups)) if borders else (None, True)
    columns = groups if borders and interval is None else tuple(tied.identifying)
    return Unique(source, columns, interval, meet, groups)


def _refuse_later(scope: Scope, condition: exp.Expr, placed: Sequence[str]) -> None:
    """Refuse what ON says of a relation that is joined behind it, which DuckDB does not know there."""
    later = [one.table for one in condition.find_all(exp.Column) if one.table in scope.sources]
    behind = next((alias for alias in later if alias not in placed), None)
    if behind is not None:
        raise Refused("SDC034", f"{behind} in ON of {placed[-1]}, which stands before it: join {behind} first")


def _ties_one(condition: exp.Expr, alias: str) -> bool:
    """Whether this is an equality of a column of a relation with something of others, which may be a key of it."""
    if not isinstance(condition, EQUAL):
        return False
    sides = (condition.this, condition.expression)
    mine = [isinstance(side, exp.Column) and side.table == alias for side in sides]
    if mine[0] is mine[1]:
        return False
    return all(column.table != alias for column in sides[mine.index(False)].find_all(exp.Column))


def _untied(alias: str) -> str:
    return f"{alias}: {_TIES.format(alias)}; what else is said of {alias} goes into a subquery"


def _joined_columns(scope: Scope, condition: exp.Expr, alias: str) -> tuple[exp.Column, exp.Expr]:
    """Both sides of an equality that joins a relation: its own column, and what is looked up of those before."""
    pair = (condition.this, condition.expression) if isinstance(condition, EQUAL) else (None, None)
    mine = [side for side in pair if isinstance(side, exp.Column) and side.table == alias]
    other = [side for side in pair if side is not None and all(side is not one for one in mine)]
    if len(mine) != 1 or len(other) != 1 or not is_of(other[0], [name for name in scope.sources if name != alias]):
        raise Refused("SDC034", _untied(alias))
    null_is_equal = isinstance(condition, exp.NullSafeEQ)
    if scope.is_unit(mine[0]) and scope.is_unit(other[0]) and not null_is_equal:
        return mine[0], other[0]
    scope.dimension(mine[0])
    looked_up = _looked_up(scope, other[0])
    if null_is_equal and (mine[0].type != looked_up.type or is_wide(mine[0]) or family(mine[0]) not in _NEVER_FAIL):
        # What fails to be of the other type would be NULL, and found.
        raise Refused(
            "SDC034",
            f"{alias}: IS NOT DISTINCT FROM of columns of two types, or of numbers that are not whole: write =",
        )
    if _compared_kind(mine[0], looked_up) in (None, "real"):
        raise Refused("SDC034", f"{alias}: columns of different types; cast one in a subquery")
    return mine[0], looked_up


def _looked_up(scope: Scope, node: exp.Expr) -> exp.Expr:
    """What is looked up in a relation: a dimension, or something worked out of dimensions that cannot fail."""
    if isinstance(node, exp.Column):
        scope.dimension(node)
        return node
    place = exp.Null()
    node.replace(place)
    checked = typed(scope.over_dimensions(node), node)
    place.replace(checked)
    return checked


def _compared_kind(mine: exp.Expr, other: exp.Expr) -> str | None:
    """The family of types that two sides are compared in; None: they have none in common, or none that is known."""
    kinds = (family(mine), family(other))
    return "timestamp" if set(kinds) == {"date", "timestamp"} else kinds[0] if kinds[0] == kinds[1] else None


def _interval(
    scope: Scope, alias: str, borders: Sequence[Border], *, several: bool
) -> tuple[tuple[str, str] | None, bool]:
    """The SQL of the borders that a value lies between, and whether one interval may end where another begins.

    Args:
        several: whether a value may lie in several rows; then there may be one border, and no interval.
    """
    is_interval = _is_interval(borders)
    if not is_interval and not several:
        raise Refused(
            "SDC034",
            f"{alias}: an interval has two borders, {alias}.low <= x AND x < {alias}.high; "
            f"or group by what tells the rows of {alias} apart",
        )
    found = [_border(scope, alias, one) for one in sorted(borders, key=lambda one: not one.is_lower)]
    return (found[0], found[1]) if is_interval else None, not all(one.has_border for one in borders)


def _is_interval(borders: Sequence[Border]) -> bool:
    """Whether these are the two borders that one value lies between."""
    return len(borders) == 2 and borders[0].is_lower is not borders[1].is_lower and borders[0].value == borders[1].value


def _border(scope: Scope, alias: str, one: Border) -> str:
    """The SQL of a border, of the type of what it is compared with."""
    scope.dimension(one.border)
    value = _looked_up(scope, one.value)
    if _compared_kind(one.border, value) not in _INTERVALS:
        raise Refused("SDC034", f"{alias}: borders of the type of what lies between them; cast them in a subquery")
    return _compared_as_known(scope, one.border, value)[1]


def _own_groups(scope: Scope, alias: str) -> tuple[tuple[str, str], ...]:
    """What of a public relation alone are group keys, as written and as its SQL, whether they tell its rows apart.

    ::

        SELECT t.x, count(*) FROM people JOIN (VALUES (30), (50)) t(x) ON age < t.x GROUP BY t.x

    A record is in several groups, and once in each of them, where no two rows are in one group: the number of a group
    is then that of a question with what ON says as its WHERE, with the same noise. With subtotals a record would be in
    one of them twice, and noise that is drawn is for records that are in one group.
    """
    holds = scope.policy.privacy.holds or is_per_unit(scope)
    return () if holds else tuple((key.name or _bare(key), _bare(key)) for key in _keys_of(scope, alias))


def _bare(key: exp.Expr) -> str:
    """The SQL of something of one relation, for that alone."""
    return key.transform(lambda node: exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node).sql(
        "duckdb"
    )


def _keys_of(scope: Scope, alias: str) -> list[exp.Expr]:
    """The group keys that are of a relation alone, columns or worked out of them, where there are no subtotals."""
    group = scope.select.args.get("group")
    if group is None or any(value for part, value in group.args.items() if part not in ("expressions", "all")):
        return []
    if group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is not None:
        return []
    return [
        key
        for key in grouped(scope)
        if {column.table for column in key.find_all(exp.Column)} == {alias} and not key.find(*_NOT_BY_ITSELF)
    ]


def _check_nearest(scope: Scope, alias: str, identifying: Sequence[tuple[str, str]], borders: Sequence[Border]) -> None:
    """ASOF JOIN finds the nearest row of a public table: which one is known where no two are equally near."""
    source = scope.sources[alias].source
    if source is None or len(borders) != 1:
        raise Refused("SDC033", f"ASOF JOIN of anything but a public table by one border: x >= {alias}.low")
    border = borders[0]
    nearest = (border.border.name, _border(scope, alias, border))
    scope.progress.unique.append(Unique(source, (*identifying, nearest)))


_NEVER_FAIL = ("whole", "text", "truth", "date")
"""Families in which any value of one type has an equal one in the larger of two, but for wide ones."""


def _compared_as_known(scope: Scope, mine: exp.Column, other: exp.Expr) -> tuple[str, str]:
    """Compare columns of anything but tables in a type that is known; the relation's own, and its SQL alone.

    Columns of tables, too, where DuckDB would cast one to the type of the other and there are values that this fails
    for: that it fails would tell of them.
    """
    kind = family(mine) if scope.is_unit(mine) else _compared_kind(mine, other)
    own = identifier(mine.name)
    if kind is None:
        return mine.name, own
    may_fail = kind not in _NEVER_FAIL or is_wide(mine) or is_wide(other)
    differ = not isinstance(other, exp.Column) or (mine.type != other.type and may_fail)
    if scope.is_unit(mine):
        if differ:
            raise Refused(
                "SDC034", f"{mine.name}: units of different types, of which one has values that the other has not"
            )
        return mine.name, own
    for side in (mine, other):
        if differ or (isinstance(side, exp.Column) and scope.sources[side.table].table is None):
            side.replace(compared(side.copy(), kind))
            if side is mine:
                own = compared(exp.column(mine.name, quoted=True), kind).sql("duckdb")
    return mine.name, own


def _apart(scope: Scope, relation: exp.Expr) -> exp.Table:
    """The table that stands in place of a public relation that is none, under the same name."""
    alias = relation.args.get("alias") or exp.TableAlias(this=exp.to_identifier(relation.alias_or_name, quoted=True))
    source = scope.sources[relation.alias_or_name].source
    if scope.policy.privacy.holds and isinstance(relation, exp.Table) and source is not None:
        # What stands in a WITH farther out is not there where noise is drawn.
        query = joined(source_of(source).copy())
        scope.progress.made(query)
    else:
        query = joined(relation)
    scope.progress.made_around(query)
    table = set_apart(scope.select, query, scope.progress.number())
    table.set("alias", exp.TableAlias(this=alias.this.copy()))
    scope.progress.made(table)
    return table
