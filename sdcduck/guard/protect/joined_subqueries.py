"""Subqueries of one table each that are joined under differential privacy stand as joins of the tables themselves.

::

    SELECT p.region, count(*) FROM people p JOIN (SELECT person_id FROM visits WHERE kind = 'er') v
        ON v.person_id = p.person_id GROUP BY p.region

    SELECT p.region, count(*) FROM people p JOIN visits v ON v.person_id = p.person_id
    WHERE v.kind = 'er' GROUP BY p.region

Where there is one row of each unit already, and beside it what the unit has elsewhere, both are brought together, so
that there is still one row of each::

    SELECT p.region, avg(t.n) FROM people p JOIN (SELECT person_id, count(*) AS n FROM visits GROUP BY person_id) t
        ON t.person_id = p.person_id GROUP BY p.region

    SELECT p.region, avg(p.n) FROM (
        SELECT p.person_id, max(p.region) AS region, count(*) AS n
        FROM people p JOIN visits _t ON _t.person_id = p.person_id GROUP BY p.person_id
    ) p GROUP BY p.region
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import conjuncts, has_aggregate, is_aggregate, is_zero, owner, tables_of, typed
from sdcduck.guard.refusals import Refused, unknown_column
from sdcduck.quoting import folded

_PLAIN = frozenset(["expressions", "from_", "where"])
_OF_UNITS = _PLAIN | {"group", "having"}
_INNER = "_t"
AROUND_LEFT = (
    "conditions on {0} alone, of which LEFT JOIN keeps a row for nobody: say them in each number, count({0}.x) FILTER "
    "(WHERE ..), or in a subquery that groups by the unit"
)


def is_record(table: exp.Expr, private: Mapping[str, Policy]) -> bool:
    """Whether this is a table of records by its name."""
    return isinstance(table, exp.Table) and folded(table.name) in private


def as_tables(select: exp.Select, private: Mapping[str, Policy]) -> None:
    """Put the tables of records in place of subqueries that filter and rename them, in place."""
    every = tables_of(select)
    inside = [(table, inner) for table in every if (inner := _inside(table, private, _PLAIN)) is not None]
    if len(inside) + sum(is_record(table, private) for table in every) < 2:
        return
    for table, inner in inside:
        join = table.parent if isinstance(table.parent, exp.Join) else None
        where = inner.args.get("where")
        if where is not None and join is not None and join.side:
            raise Refused("SDC081", AROUND_LEFT.format(table.alias_or_name))
        alias = table.alias_or_name
        moved = inner.copy()
        _call(moved, alias)
        replace_columns(select, alias, {folded(item.alias_or_name): item.unalias() for item in moved.expressions})
        source = moved.args["from_"].this
        source.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        table.replace(source)
        if where is not None:
            _narrow(select, [moved.args["where"].this])


def per_unit(select: exp.Select, private: Mapping[str, Policy]) -> None:
    """Bring what units have elsewhere together with the one row that they have, in place.

    Raises:
        Refused: a number that is NULL behind LEFT JOIN, where nobody has any.
    """
    tables = tables_of(select)
    found = [(table, inner) for table in tables if (inner := _inside(table, private, _OF_UNITS)) is not None]
    first = [table for table in tables if is_record(table, private)]
    if len(found) != 1 or len(first) != 1 or private[folded(first[0].name)].privacy.contributions > 1:
        return
    (table, inner), one = found[0], first[0]
    if isinstance(table.parent, exp.From) and isinstance(one.parent, exp.Join) and not one.parent.side:
        from_, behind = table.parent, one.parent  # either may stand first
        from_.set("this", one)
        behind.set("this", table)
    join = table.parent
    if not isinstance(join, exp.Join) or join.method or (join.side, join.kind) not in (
        ("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER"),
    ) or (isinstance(one.parent, exp.Join) and one.parent.side):  # fmt: skip
        return
    alias, other = one.alias_or_name, table.alias_or_name
    unit, its = (str(private[folded(of.name)].unit) for of in (one, inner.args["from_"].this))
    keys = [folded(item.alias_or_name) for item in inner.expressions if _is_column(item.unalias(), its)]
    conditions = list(conjuncts(join.args["on"])) if join.args.get("on") is not None else []
    tie = next((part for part in conditions if _ties(part.unnest(), (alias, unit), other, keys)), None)
    if tie is None or (join.side and (len(conditions) > 1 or inner.args.get("having") is not None)):
        return
    sides = [tie.unnest().this, tie.unnest().expression]
    mine, theirs = sides if sides[0].table == alias else sides[::-1]
    rest = [part for part in conditions if part is not tie]
    join.set("on", None)
    _narrow(select, rest)
    group = _together(select, one, inner, join, mine, theirs, its, keys)
    one.replace(exp.Subquery(this=group, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
    select.set("joins", [left for left in select.args["joins"] if left is not join])


def _together(
    select: exp.Select, one: exp.Expr, inner: exp.Select, join: exp.Join, mine: exp.Column, theirs: exp.Column,
    its: str, keys: list[str],
) -> exp.Select:  # fmt: skip
    """The SELECT of one row of each unit; the columns of both are those of it from now on."""
    alias, other = one.alias_or_name, join.this.alias_or_name
    columns = [column for column in select.find_all(exp.Column) if column.table == alias and owner(column) is select]
    shown = {folded(mine.name): exp.alias_(mine.copy(), mine.name, quoted=True)}
    for column in columns:
        largest = typed(exp.Max(this=column.copy()), column)
        shown.setdefault(folded(column.name), typed(exp.alias_(largest, column.name, quoted=True), column))
    made: dict[str, exp.Expr] = dict.fromkeys(keys, mine)
    inner = inner.copy()
    _call(inner, _INNER)
    where = inner.args.get("where")
    for item in inner.expressions:
        name = folded(item.alias_or_name)
        if name in keys:
            continue
        value = item.unalias()
        if join.side:
            _check_known(select, other, item)
            value = _of_those(value, None if where is None else where.this, theirs, its)
        called = item.alias_or_name if name not in shown else f"{other}.{item.alias_or_name}"
        shown[folded(called)] = typed(exp.alias_(value, called, quoted=True), item)
        made[name] = typed(exp.column(called, alias, quoted=True), item.unalias())
    if join.side:
        made = {name: value for name, value in made.items() if name not in keys}
    source = inner.args["from_"].this
    source.set("alias", exp.TableAlias(this=exp.to_identifier(_INNER, quoted=True)))
    equal = exp.EQ(this=mine.copy(), expression=typed(exp.column(its, _INNER, quoted=True), theirs))
    tied = exp.Join(this=source, on=equal, side=join.side or None)
    group = exp.Select(
        expressions=list(shown.values()), from_=exp.From(this=one.copy()), joins=[tied],
        group=exp.Group(expressions=[mine.copy()]),
    )  # fmt: skip
    if not join.side:
        group.set("where", where)
        group.set("having", inner.args.get("having"))
    replace_columns(select, other, made)
    return group


def _of_those(value: exp.Expr, where: exp.Expr | None, theirs: exp.Column, its: str) -> exp.Expr:
    """An aggregate over the rows that there are behind LEFT JOIN, and for which a condition holds."""
    value = value.copy()
    for count in [one for one in value.find_all(exp.Count) if isinstance(one.this, exp.Star)]:
        count.set("this", typed(exp.column(its, _INNER, quoted=True), theirs))
    if where is None:
        return value
    around = exp.Paren(this=value)
    for call in [one for one in around.walk() if is_aggregate(one) and not isinstance(one, exp.Filter)]:
        if isinstance(call.parent, exp.Filter):
            already = call.parent.expression
            already.set("this", exp.and_(already.this, where.copy(), copy=False))
        else:
            place = exp.Null()
            call.replace(place)
            place.replace(typed(exp.Filter(this=call, expression=exp.Where(this=where.copy())), call))
    found: exp.Expr = around.this
    return found


def _check_known(select: exp.Select, alias: str, item: exp.Expr) -> None:
    """Take a number of rows for 0 where a unit has none, as ``coalesce(t.n, 0)`` says, in place.

    Raises:
        Refused: it would be NULL there.
    """
    if not item.find(exp.Count, exp.CountIf):
        return
    name = item.alias_or_name
    for column in [one for one in select.find_all(exp.Column) if one.table == alias and owner(one) is select]:
        if folded(column.name) != folded(name):
            continue
        around = column.parent
        if not isinstance(around, exp.Coalesce) or len(around.expressions) != 1 or not is_zero(around.expressions[0]):
            raise Refused("SDC081", f"{name}, which is NULL for who has none: write coalesce({alias}.{name}, 0)")
        around.replace(column)


def replace_columns(select: exp.Select, alias: str, made: Mapping[str, exp.Expr]) -> None:
    """Put expressions in place of the columns of a relation of a SELECT, by their lower-case names, in place.

    Raises:
        Refused: a column has none.
    """
    for item in select.expressions:
        if isinstance(item, exp.Column) and item.table == alias:
            item.replace(typed(exp.alias_(item.copy(), item.name, quoted=True), item))
    for column in [one for one in select.find_all(exp.Column) if one.table == alias and owner(one) is select]:
        value = made.get(folded(column.name))
        if value is None:
            raise unknown_column(column.name, made)
        put = value.copy() if isinstance(value, exp.Column) else exp.paren(value.copy(), copy=False)
        column.replace(typed(put, column))


def _inside(table: exp.Expr, private: Mapping[str, Policy], clauses: frozenset[str]) -> exp.Select | None:
    """The SELECT of a subquery over one table of records with no more than these clauses; None: it is another one."""
    inner = table.this if isinstance(table, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or any(
        value for part, value in table.args.items() if part not in ("this", "alias")
    ):
        return None
    if any(value and part not in clauses for part, value in inner.args.items()) or inner.args.get("from_") is None:
        return None
    source = inner.args["from_"].this
    if not is_record(source, private) or any(part.find(exp.Query, exp.Window) for part in _parts(inner)):
        return None
    is_group = inner.args.get("group") is not None
    if clauses is _PLAIN:
        return None if is_group or any(map(has_aggregate, inner.expressions)) else inner
    keys = inner.args["group"].expressions if is_group else []
    only = is_group and not any(value for part, value in inner.args["group"].args.items() if part != "expressions")
    unit = str(private[folded(source.name)].unit)
    return inner if only and len(keys) == 1 and _is_column(keys[0], unit) else None


def _parts(inner: exp.Select) -> list[exp.Expr]:
    clauses = (inner.args.get(part) for part in ("where", "group", "having"))
    return [*inner.expressions, *(clause for clause in clauses if clause is not None)]


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and folded(node.name) == folded(name)


def _ties(node: exp.Expr, one: tuple[str, str], other: str, keys: list[str]) -> bool:
    """Whether this is the equality of the unit of a table with that of a relation of units."""
    sides = [node.this, node.expression] if isinstance(node, exp.EQ) else []
    if not all(isinstance(side, exp.Column) for side in sides) or len(sides) < 2:
        return False
    named = [(side.table, folded(side.name)) for side in sides]
    return any((one[0], folded(one[1])) == a and b[0] == other and b[1] in keys for a, b in (named, named[::-1]))


def _call(inner: exp.Select, alias: str) -> None:
    """Name the one relation that a SELECT reads, where its columns say which it is."""
    for column in inner.find_all(exp.Column):
        if column.table:
            column.set("table", exp.to_identifier(alias, quoted=True))


def _narrow(select: exp.Select, conditions: list[exp.Expr]) -> None:
    """Conditions more in WHERE."""
    where = select.args.get("where")
    every = [*([where.this] if where is not None else []), *conditions]
    if every:
        select.set("where", exp.Where(this=exp.and_(*every, copy=False)))
