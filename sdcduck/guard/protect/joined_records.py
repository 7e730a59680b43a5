"""Tables of one population under differential privacy that are joined on the unit stand as one table.

::

    SELECT p.region, count(*), sum(v.cost) FROM people p JOIN visits v ON v.person_id = p.person_id AND v.kind = 'er'
    GROUP BY p.region

    SELECT p.region, count(*), sum(p.cost) FROM "people JOIN visits" p WHERE p.kind = 'er' GROUP BY p.region

What follows is what there is of one table (`sdcduck.guard.methods.dp_joined`). Behind LEFT JOIN the unit of the other
table says whether there is a row of it: ``v.person_id IS NULL``, ``count(v.person_id)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.costs import check_alike
from sdcduck.guard.expressions import conjuncts, family, owner, tables_of, typed
from sdcduck.guard.methods.dp_joined import JoinedPolicy, joined_policy
from sdcduck.guard.protect.full_joins import left_for_right
from sdcduck.guard.protect.joined_subqueries import AROUND_LEFT, as_tables, is_record, per_unit
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.refusals import Refused, unknown_column
from sdcduck.quoting import folded

_INNER, _LEFT = (("", ""), ("", "INNER"), ("", "CROSS")), (("LEFT", ""), ("LEFT", "OUTER"))
_MOST_ROWS = 1000


def join_records(tree: exp.Expr, progress: Progress) -> None:
    """Put one table in place of those of records that are joined on the unit.

    Raises:
        Refused: they are of different units, or joined by anything else.
    """
    private = {name: policy for name, policy in progress.policies.items() if policy.privacy.holds}
    if any(folded(cte.alias) in progress.policies for cte in tree.find_all(exp.CTE)):
        return  # of which table a name is, is seen later, and refused there
    if sum(is_record(table, private) for table in tree.find_all(exp.Table)) < 2:
        return
    for select in list(tree.find_all(exp.Select)):
        left_for_right(select)
        as_tables(select, private)
        per_unit(select, private)
    for select in list(tree.find_all(exp.Select)):
        if sum(is_record(table, private) for table in tables_of(select)) > 1:
            _join(select, private, progress)


@dataclass
class _Joined:
    """Tables of a SELECT that are one.

    Attributes:
        policies: of the tables, by alias; the first is the one that has the rows.
        left: the aliases of those of which there may be no row.
        where: what else their ON says.
        said: what ties them, which the joined table says itself.
    """

    policies: dict[str, Policy]
    left: set[str] = field(default_factory=set)
    where: list[exp.Expr] = field(default_factory=list)
    said: list[exp.Expr] = field(default_factory=list)

    def unit_of(self, node: exp.Expr) -> str | None:
        """The alias of the table whose unit a column is."""
        if not isinstance(node, exp.Column) or node.table not in self.policies:
            return None
        return node.table if folded(node.name) == folded(str(self.policies[node.table].unit)) else None

    def ties(self, condition: exp.Expr, alias: str) -> bool:
        """Whether this is the equality of the unit of a table with that of those before it, of which there is a row."""
        condition = condition.unnest()
        if not isinstance(condition, exp.EQ):
            return False
        sides = {self.unit_of(condition.this), self.unit_of(condition.expression)}
        if None in sides or alias not in sides or len(sides) < 2 or not sides.isdisjoint(self.left):
            return False
        kinds = family(condition.this), family(condition.expression)
        if kinds[0] != kinds[1] or kinds[0] in (None, "real"):
            raise Refused("SDC035", f"{alias}: units of different types")
        return True


def _join(select: exp.Select, private: Mapping[str, Policy], progress: Progress) -> None:
    joins: list[exp.Join] = select.args.get("joins") or []
    if any(join.side == "FULL" and is_record(join.this, private) for join in joins):
        raise Refused("SDC081", "FULL JOIN of records: LEFT JOIN, or ask for each table by itself")
    if any(join.method or join.side in ("RIGHT", "FULL") or join.args.get("using") for join in joins):
        return
    narrowing = [join for join in joins if (join.side or "", join.kind or "") not in (*_INNER, *_LEFT)]
    tables = [
        table
        for table in tables_of(select)
        if is_record(table, private) and all(table is not join.this for join in narrowing)
    ]
    names = [folded(table.name) for table in tables]
    if len(tables) < 2 or len(set(names)) < len(names):
        return  # rows of one table joined with each other are refused
    first = tables[0]
    if any(join.this is first and join.side for join in joins):
        return
    _check([private[name] for name in names])
    found = _Joined({first.alias_or_name: private[names[0]]})
    where = select.args.get("where")
    conditions = list(conjuncts(where.this)) if where is not None else []
    waiting = [join for join in joins if any(join.this is table for table in tables[1:])]
    every = {table.alias_or_name: private[name] for table, name in zip(tables, names, strict=True)}
    while waiting:
        join = next((one for one in waiting if _tie(found, one, every, conditions)), None)
        if join is None:
            raise Refused("SDC035", f"join {waiting[0].this.alias_or_name} on the unit")
        waiting = [one for one in waiting if one is not join]
    conditions += found.where
    select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None)
    policy = _named(found, progress)
    _group_by_unit(select, found)
    _rename(select, found, policy, first.alias_or_name)
    table = exp.Table(this=exp.to_identifier(policy.name, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(first.alias_or_name, quoted=True)))
    first.replace(table)
    select.set("joins", [join for join in joins if join.this.alias_or_name not in every or join.this is table])


def _check(policies: list[Policy]) -> None:
    """Refuse tables whose units are not the same, or whose costs are not counted alike."""
    if policies[0].population is None or any(policy.population != policies[0].population for policy in policies):
        raise Refused("SDC035", "records of different units")
    check_alike(policies)
    rows = math.prod(policy.privacy.contributions for policy in policies)
    if rows > _MOST_ROWS:
        raise Refused("SDC081", f"a join in which a unit may have {rows} rows: {_MOST_ROWS} at most")


def _tie(found: _Joined, join: exp.Join, every: Mapping[str, Policy], conditions: list[exp.Expr]) -> bool:
    """Take a table to those that are one, if an equality of units ties it to them."""
    alias, on = join.this.alias_or_name, join.args.get("on")
    own = list(conjuncts(on)) if on is not None else []
    found.policies[alias] = every[alias]
    is_left = bool(join.side)
    tie = next((one for one in (own if is_left else [*own, *conditions]) if found.ties(one, alias)), None)
    if tie is None:
        del found.policies[alias]
        return False
    rest = [one for one in own if one is not tie]
    if is_left and rest:
        raise Refused("SDC081", AROUND_LEFT.format(alias))
    if is_left:
        found.left.add(alias)
    found.where += rest
    found.said.append(tie)
    conditions[:] = [one for one in conditions if one is not tie]
    return True


def _named(found: _Joined, progress: Progress) -> JoinedPolicy:
    """The policy of the joined table, which is known from now on."""
    parts: list[str] = []
    for alias, policy in found.policies.items():
        parts.append(f"{' LEFT JOIN ' if alias in found.left else ' JOIN '}{policy.name}" if parts else policy.name)
    policy = joined_policy("".join(parts), [(one, alias in found.left) for alias, one in found.policies.items()])
    name = folded(policy.name)
    if name in progress.policies and progress.policies[name] != policy:
        raise Refused("SDC031", policy.name)
    columns = {folded(str(policy.unit)), *(folded(side.there) for side in policy.sides if side.there)}
    for side in policy.sides:
        seen = progress.columns[folded(side.policy.name)]
        columns |= {folded(called) for own, called in side.columns if folded(own) in seen}
    progress.policies = {**progress.policies, name: policy}
    progress.columns = {**progress.columns, name: frozenset(columns)}
    progress.tables = progress.tables | {name}
    return policy


def _group_by_unit(select: exp.Select, found: _Joined) -> None:
    """Leave out group keys beside the unit of which each unit has one value, so that it is in one group, in place.

    ::

        SELECT p.id, p.region, count(*) AS n FROM people p JOIN visits v ON v.id = p.id GROUP BY p.id, p.region
        SELECT p.id, max(p.region) AS region, count(*) AS n FROM people p JOIN visits v ON v.id = p.id GROUP BY p.id
    """
    group = select.args.get("group")
    if group is None or any(value for part, value in group.args.items() if part != "expressions"):
        return
    units = [key for key in group.expressions if found.unit_of(key) not in (None, *found.left)]
    others = [key for key in group.expressions if all(key is not unit for unit in units)]
    of_one = [alias for alias, policy in found.policies.items() if policy.privacy.contributions == 1]
    if not units or any(
        not isinstance(key, exp.Column) or key.table not in of_one or key.table in found.left for key in others
    ):
        return
    named = [part for part in (*select.expressions, select.args.get("having")) if part is not None]
    if any(
        column in others and (not isinstance(part, (exp.Column, exp.Alias)) or part.unalias() is not column)
        for part in named
        for column in part.find_all(exp.Column)
    ):
        return
    for item in select.expressions:
        if item.unalias() in others:
            largest = typed(exp.Max(this=item.unalias().copy()), item.unalias())
            item.replace(typed(exp.alias_(largest, item.alias_or_name, quoted=True), largest))
    group.set("expressions", units[:1])


def _rename(select: exp.Select, found: _Joined, policy: JoinedPolicy, alias: str) -> None:
    """Name all columns of the tables as those of the joined one, in place."""
    sides = dict(zip(found.policies, policy.sides, strict=True))
    said = {id(column) for tie in found.said for column in tie.find_all(exp.Column)}

    def its_columns() -> list[exp.Column]:
        every = [one for one in select.find_all(exp.Column) if one.table in sides and id(one) not in said]
        return [one for one in every if owner(one) is select]

    for item in select.expressions:
        if isinstance(item, exp.Column) and item.table in sides:
            item.replace(typed(exp.alias_(item.copy(), item.name, quoted=True), item))
    for coalesce in [one for one in select.find_all(exp.Coalesce) if found.unit_of(one.this) is not None]:
        # What sqlglot makes of the column of JOIN .. USING.
        if all(map(found.unit_of, coalesce.expressions)) and found.unit_of(coalesce.this) not in found.left:
            coalesce.replace(coalesce.this)
    for column in its_columns():
        side = sides[column.table]
        if found.unit_of(column) is not None and not side.there:
            column.replace(typed(exp.column(str(policy.unit), alias, quoted=True), column))
        elif found.unit_of(column) is not None:
            _say_whether_there(column, exp.column(side.there, alias, quoted=True), policy, alias)
        else:
            name = next((called for own, called in side.columns if folded(own) == folded(column.name)), None)
            if name is None:
                raise unknown_column(column.name, [own for own, _ in side.columns])
            column.replace(typed(exp.column(name, alias, quoted=True), column))


def _say_whether_there(column: exp.Column, there: exp.Column, policy: JoinedPolicy, alias: str) -> None:
    """The unit of a table behind LEFT JOIN, in place of which stands whether there is a row of it.

    Raises:
        Refused: something else is made of it.
    """
    there.type = exp.DataType.build("boolean")
    around = column.parent
    if isinstance(around, exp.Is) and isinstance(around.expression, exp.Null):
        around.replace(exp.Not(this=there))
        return
    distinct = isinstance(around, exp.Distinct) and len(around.expressions) == 1
    counted = around.parent if distinct and around is not None else around
    if not isinstance(counted, exp.Count) or (not distinct and counted.this is not column):
        raise Refused(
            "SDC081", f"{column.table}.{column.name}, which is behind LEFT JOIN: take that of the table before it"
        )
    unit = typed(exp.column(str(policy.unit), alias, quoted=True), column)
    if distinct:
        column.replace(unit)
    else:
        counted.set("this", exp.Star())
    if isinstance(counted.parent, exp.Filter):
        where = counted.parent.expression
        where.set("this", exp.and_(where.this, there, copy=False))
    else:
        place = exp.Null()
        counted.replace(place)
        place.replace(typed(exp.Filter(this=counted, expression=exp.Where(this=there)), counted))
