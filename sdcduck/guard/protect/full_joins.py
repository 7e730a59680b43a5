"""RIGHT JOIN and FULL JOIN of records: LEFT JOIN from the other side, and one relation of the units of both.

::

    SELECT count(*) FROM visits v FULL JOIN stays s ON v.id = s.id WHERE s.ward IS NULL

    SELECT count(*) FROM (
        SELECT s.ward AS ward, coalesce(v._sdc_h0, s._sdc_h0) AS _sdc_h0, coalesce(v._sdc_h1, s._sdc_h1) AS _sdc_h1, ..
        FROM (SELECT v.id AS id, .. FROM visits v) AS v
        FULL JOIN (SELECT s.ward AS ward, s.id AS _f2, .. FROM stays s) AS s ON v.id = s._f2
    ) AS f WHERE f.ward IS NULL

The two sides are tied by the unit, so that each row is of one unit and made of that unit's records alone: whether a
unit has none on one side is said by what is NULL, as behind LEFT JOIN. The unit of a row is that of whichever side is
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sdcduck.guard.expressions import owner, tables_of, typed
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.block import Block
from sdcduck.guard.protect.joins import check_joins
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.protect.scope import Scope, aliased
from sdcduck.guard.protect.together import agreed
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Added, Label, Relation, Role
from sdcduck.quoting import folded

_BOTH = "_sdc_f"
_UNIT = "_u"


def left_for_right(select: exp.Select) -> None:
    """Write a RIGHT JOIN that stands first as a LEFT JOIN from the other side, in place."""
    joins: list[exp.Join] = select.args.get("joins") or []
    if joins and (joins[0].side, joins[0].kind) in (("RIGHT", ""), ("RIGHT", "OUTER")):
        first, join = select.args["from_"].this, joins[0]
        select.set("from_", exp.From(this=join.this))
        join.set("this", first)
        join.set("side", "LEFT")


def join_both_sides(
    progress: Progress, select: exp.Select, sources: dict[str, Relation], known: Mapping[str, Relation]
) -> list[str]:
    """Write what stands before a FULL JOIN of records, and behind it, as one relation, in place.

    Args:
        sources: the relations of the SELECT, by alias, changed with it.

    Returns:
        The aliases of those of records.
    """
    while True:
        joins: list[exp.Join] = select.args.get("joins") or []
        place = next((place for place, join in enumerate(joins) if join.side == "FULL"), None)
        if place is None or sources[joins[place].this.alias_or_name].label is not Label.UNIT:
            break
        before = [table.alias_or_name for table in tables_of(select)[: place + 1]]
        if all(sources[alias].label is not Label.UNIT for alias in before):
            break
        _Both(progress, select, sources, known, place).write()
    return [alias for alias, relation in sources.items() if relation.label is Label.UNIT]


class _Both:
    """A FULL JOIN of a SELECT: its two sides, and what is made of them."""

    def __init__(
        self,
        progress: Progress,
        select: exp.Select,
        sources: dict[str, Relation],
        known: Mapping[str, Relation],
        place: int,
    ) -> None:
        self.progress, self.select, self.sources, self.known = progress, select, sources, known
        joins: list[exp.Join] = select.args["joins"]
        self.join, self.before, self.behind = joins[place], joins[:place], joins[place + 1 :]
        self.left = {table.alias_or_name for table in tables_of(select)[: place + 1]}
        self.right = {self.join.this.alias_or_name}
        self.alias = f"{_BOTH}{progress.number()}"
        self.names: dict[tuple[str, str], str] = {}
        self.sides = (select.args["from_"].this.alias_or_name, self.join.this.alias_or_name)
        self.columns: dict[str, list[exp.Expr]] = {side: [] for side in self.sides}
        if self.join.args.get("on") is None or self.join.args["on"].find(exp.Query) is not None:
            raise Refused("SDC035", f"join {self.join.this.alias_or_name} on the unit")

    def write(self) -> None:
        """Write both sides and the relation of them, in place of what stood there."""
        select, (one, other) = self.select, self.sides
        for item in [item for item in select.expressions if isinstance(item, exp.Column)]:
            item.replace(typed(exp.alias_(item.copy(), item.alias_or_name, quoted=True), item))
        self._replace_units()
        inside = {id(column) for column in self.join.args["on"].find_all(exp.Column)}
        kept = {id(column) for join in self.before for column in join.find_all(exp.Column)}
        every = [column for column in select.find_all(exp.Column) if id(column) not in kept]
        for column in [column for column in every if owner(column) is select]:
            if column.table in self.left | self.right:
                side = one if column.table in self.left else other
                name = self._named(side, column)
                column.replace(
                    typed(exp.column(name, side if id(column) in inside else self.alias, quoted=True), column)
                )
        self.progress.both[self.alias] = {
            item.alias: item.this.copy() for side in self.sides for item in self.columns[side]
        }
        left = exp.Select(expressions=self.columns[one], from_=select.args["from_"], joins=self.before)
        right = exp.Select(expressions=self.columns[other], from_=exp.From(this=self.join.this))
        sides = {one: self._records(left, self.left), other: self._records(right, self.right)}
        self._check_repeated(sides)
        made = exp.Select(expressions=[], from_=exp.From(this=aliased(left, one)))
        tie = exp.Join(this=aliased(right, other), side="LEFT", on=self.join.args["on"])
        made.set("joins", [tie])
        self.progress.made_around(made)
        scope = Scope(self.progress, made, sides, self.sides, self.known, None)
        policies = [policy for relation in sides.values() if (policy := relation.policy) is not None]
        scope.answer_under(agreed(policies), set(map(id, sides.values())))
        check_joins(scope)
        tied = list(tie.args["on"].find_all(exp.Column))
        alone = len(tied) == 2 and all(folded(column.name) not in sides[column.table].missing for column in tied)
        tie.set("side", "FULL")
        relation = self._relation(made, scope, sides, alone=alone)
        for alias in self.left | self.right:
            del self.sources[alias]
        others = dict(self.sources)
        self.sources.clear()
        self.sources.update({self.alias: relation, **others})
        select.set("from_", exp.From(this=aliased(made, self.alias)))
        select.set("joins", self.behind)

    def _replace_units(self) -> None:
        """Write what says of which unit a row is, whichever side is there, as the unit: coalesce(left.id, right.id)."""
        behind = {join.this.alias_or_name for join in self.before if join.side}
        there = (self.left - behind, self.right)
        for node in list(self.select.find_all(exp.Coalesce, exp.Case)):
            units = _either(node)
            if not units or any(owner(unit) is not self.select for unit in units):
                continue
            mine = [unit for unit in units if unit.table in self.left | self.right]
            whole = [unit for unit in mine if self._is_unit(unit)]
            if any(self._is_unit(unit) is None for unit in units) or not all(
                any(unit.table in of for unit in whole) for of in there
            ):
                continue
            unit = typed(exp.column(_UNIT, self.alias, quoted=True), node)
            others = [other.copy() for other in units if other.table not in self.left | self.right]
            node.replace(typed(exp.Coalesce(this=unit, expressions=others), node) if others else unit)

    def _is_unit(self, column: exp.Column) -> bool | None:
        """Whether a column is the unit of each row of its relation; None: it is no unit."""
        relation = self.sources.get(column.table)
        if relation is None or relation.roles.get(folded(column.name)) is not Role.UNIT:
            return None
        return folded(column.name) not in relation.missing

    def _named(self, side: str, column: exp.Column) -> str:
        key = (column.table, folded(column.name))
        if key not in self.names:
            taken = column.name.startswith("_") or folded(column.name) in map(folded, self.names.values())
            self.names[key] = f"_f{len(self.names)}" if taken else column.name
            self.columns[side].append(typed(exp.alias_(column.copy(), self.names[key], quoted=True), column))
        return self.names[key]

    def _records(self, side: exp.Select, aliases: set[str]) -> Relation:
        self.progress.made_around(side)
        sources = {alias: relation for alias, relation in self.sources.items() if alias in aliases}
        units = [alias for alias, relation in sources.items() if relation.label is Label.UNIT]
        return Block(self.progress, side, sources, units, self.known, None).records()

    def _check_repeated(self, sides: Mapping[str, Relation]) -> None:
        """Refuse sums that units have where other rows of them repeat these, as beside any join."""
        for side, other in (self.sides, self.sides[::-1]):
            if sides[side].added and sides[other].several:
                raise Refused(
                    "SDC052", "a sum that units have, repeated for other rows of them: add it up where it is joined"
                )

    def _relation(self, made: exp.Select, scope: Scope, sides: Mapping[str, Relation], *, alone: bool) -> Relation:
        """What both are together, with its columns; ``alone``: they are tied by the unit that each row has, alone."""
        hidden = scope.method.hidden()
        items = [exp.alias_(self._either_of(name), name, quoted=True) for name in hidden]
        items.append(exp.alias_(self._either_of(hidden[-1]), _UNIT, quoted=True))
        roles, missing = {_UNIT: Role.UNIT}, set[str]()
        added: dict[str, Added] = {}
        number = len(hidden)
        for side, relation in sides.items():
            for item in self.columns[side]:
                name = folded(item.alias_or_name)
                items.append(typed(exp.alias_(exp.column(name, side, quoted=True), name, quoted=True), item))
                roles[name] = relation.roles[name]
                if roles[name] is Role.UNIT:
                    missing.add(name)
            for name, of_rows in relation.added.items():
                carried = []
                for column in filter(None, (of_rows.rows, of_rows.known)):
                    carried.append(f"{CARRIED}{number}")
                    items.append(exp.alias_(exp.column(column, side, quoted=True), carried[-1], quoted=True))
                    number += 1
                added[name] = Added(carried[0], of_rows.exact, carried[1] if len(carried) > 1 else None)
        made.set("expressions", items)
        left, right = sides.values()
        rows_of = scope.rows_of if alone or scope.rows_of else (folded(scope.policy.name),)
        return Relation(
            Label.UNIT, frozenset(roles), roles, replace(scope.policy, one_row_per_unit=not rows_of),
            rows_of=rows_of, tables=scope.tables, missing=frozenset(missing), measures=left.measures | right.measures,
            added=added, bounds=left.bounds | right.bounds, bands=left.bands | right.bands,
            counts=frozenset(() if right.several else left.counts) | frozenset(() if left.several else right.counts),
        )  # fmt: skip

    def _either_of(self, name: str) -> exp.Expr:
        """A column of both sides, from whichever is there."""
        one, other = (exp.column(name, side, quoted=True) for side in self.sides)
        return exp.Coalesce(this=one, expressions=[other])


def _either(node: exp.Expr) -> list[exp.Column]:
    """The columns of which a value is the first that is known, as ``coalesce(a, b)`` or a CASE; else nothing."""
    sides: list[exp.Expr | None] = []
    if isinstance(node, exp.Coalesce):
        sides = [node.this, *node.expressions]
    elif isinstance(node, exp.Case) and node.this is None and len(node.args["ifs"]) == 1:
        one = node.args["ifs"][0]
        shown, otherwise, asked = one.args["true"], node.args.get("default"), one.this.unnest()
        if isinstance(asked, exp.Not):
            asked = asked.this.unnest()
        else:
            shown, otherwise = otherwise, shown
        if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null) and asked.this == shown:
            sides = [shown, otherwise]
    columns = [side for side in sides if isinstance(side, exp.Column)]
    return columns if len(columns) == len(sides) else []
