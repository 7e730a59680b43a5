"""Public rows LEFT JOIN records: the groups of the public table, each with what is published of its records.

::

    SELECT r.region, count(p.id) AS n FROM regions r LEFT JOIN people p ON p.region = r.region GROUP BY r.region

    SELECT g._g0 AS region, CASE WHEN t._there THEN t._a0 ELSE 0 END AS n
    FROM (SELECT r.region AS _g0 FROM regions r GROUP BY r.region) AS g
    LEFT JOIN (
        SELECT r.region AS _g0, count(p.id) AS _a0, true AS _there
        FROM regions r JOIN people p ON p.region = r.region GROUP BY r.region
    ) AS t ON g._g0 IS NOT DISTINCT FROM t._g0

Groups of which nothing is published have 0. Where `min_units` hides groups of few they have NULL, for these are missing
like those of nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from sdcduck.guard.expressions import (
    aggregates,
    conjuncts,
    grouping_sets,
    is_aggregate,
    leaves,
    owner,
    refuse_more_keys,
    tables_of,
    text,
    typed,
    without_nulls,
)
from sdcduck.guard.protect.scope import aliased
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Relation

_GROUPS, _NUMBERS = "_sdc_g", "_sdc_t"
_THERE = "_there"
_TAKEN = frozenset(["with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"])
_OF_ANY_ROWS = (exp.Min, exp.Max, exp.AnyValue)
"""What is the same however often each row is there: of public columns it is worked out without the records."""
_ONE_COLUMN = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop)


def with_empty_groups(select: exp.Select, holds_records: Callable[[exp.Expr], bool]) -> None:
    """Write a SELECT that groups public rows with the records that are joined to them, in place.

    Args:
        holds_records: whether something in FROM may have unit-level records.

    Raises:
        Refused: it is one of these, and asks for something else than figures of the records in groups of public rows.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    group = select.args.get("group")
    if not joins or group is None or not any(join.side == "LEFT" for join in joins):
        return
    records = joins[-1]
    public = [table for table in tables_of(select) if table is not records.this]
    if records.side != "LEFT" or any(map(holds_records, public)) or not holds_records(records.this):
        return
    _Groups(select, records).write()


def settle_empty_groups(select: exp.Select, sources: Mapping[str, Relation]) -> None:
    """Leave NULL, in place of 0, where groups of few are missing like those of nobody."""
    numbers = sources.get(_NUMBERS)
    if numbers is not None and numbers.hides_few:
        for case in list(select.find_all(exp.Case)):
            there = case.args["ifs"][0].this
            if isinstance(there, exp.Column) and (there.table, there.name) == (_NUMBERS, _THERE):
                case.replace(case.args["ifs"][0].args["true"])


class _Groups:
    """A SELECT of public rows and the records that are joined to them."""

    def __init__(self, select: exp.Select, records: exp.Join) -> None:
        self.select, self.records = select, records
        self.alias = records.this.alias_or_name
        self.keys: dict[str, str] = {}
        self.numbers: dict[str, tuple[str, exp.Expr]] = {}
        self.public: dict[str, tuple[str, exp.Expr]] = {}

    def write(self) -> None:
        """Write it as groups and their numbers, in place."""
        select, group = self.select, self.select.args["group"]
        other = [part for part, value in select.args.items() if value and part not in _TAKEN]
        if other or grouping_sets(group) is not None:
            raise Refused("SDC033", "public rows LEFT JOIN records: GROUP BY their columns, without subtotals")
        where = select.args.get("where")
        keys = [leaf for item in group.expressions for leaf in leaves(item)]
        if group.args.get("all") is True:
            refuse_more_keys(select)
            keys = [item.unalias() for item in select.expressions if not aggregates(item)]
        for part in [*keys, *(conjuncts(where.this) if where is not None else [])]:
            if self._is_of_records(part):
                raise Refused(
                    "SDC033", f"public rows LEFT JOIN {self.alias}: what is said of {self.alias} goes into ON"
                )
        for key in keys:
            self.keys.setdefault(text(key), f"_g{len(self.keys)}")
        items = [
            exp.Alias(this=self._around(item.unalias()), alias=exp.to_identifier(item.alias_or_name, quoted=True))
            for item in select.expressions
        ]
        having = select.args.get("having")
        kept = None if having is None else exp.Where(this=self._around(having.this))
        names = {item.alias_or_name for item in select.expressions}
        for ordered in select.args["order"].expressions if select.args.get("order") is not None else []:
            if not (isinstance(ordered.this, exp.Column) and not ordered.this.table and ordered.this.name in names):
                ordered.set("this", self._around(ordered.this))
        shown = [exp.alias_(key.copy(), self.keys[text(key)], quoted=True) for key in self._each(keys)]
        joins = [join for join in select.args["joins"] if join is not self.records]
        by = exp.Group(expressions=[key.copy() for key in self._each(keys)])
        public = [exp.alias_(node.copy(), name, quoted=True) for name, node in self.public.values()]
        groups = exp.Select(expressions=[*shown, *public], from_=select.args["from_"].copy(), group=by)
        numbers = exp.Select(
            expressions=[
                *(item.copy() for item in shown),
                *(exp.alias_(node.copy(), name, quoted=True) for name, node in self.numbers.values()),
                exp.alias_(exp.true(), _THERE, quoted=True),
            ],
            from_=select.args["from_"],
            group=by.copy(),
        )
        inner = exp.Join(this=self.records.this, on=self.records.args.get("on"), using=self.records.args.get("using"))
        groups.set("joins", [join.copy() for join in joins])
        numbers.set("joins", [*joins, inner])
        if where is not None:
            groups.set("where", where.copy())
            numbers.set("where", where)
        same = [
            exp.NullSafeEQ(
                this=exp.column(name, _GROUPS, quoted=True), expression=exp.column(name, _NUMBERS, quoted=True)
            )
            for name in self.keys.values()
        ]
        select.set("expressions", items)
        select.set("from_", exp.From(this=aliased(groups, _GROUPS)))
        select.set("joins", [exp.Join(this=aliased(numbers, _NUMBERS), side="LEFT", on=exp.and_(*same, copy=False))])
        select.set("where", kept)
        select.set("group", None)
        select.set("having", None)

    def _each(self, keys: list[exp.Expr]) -> list[exp.Expr]:
        return list({text(key): key for key in keys}.values())

    def _is_of_records(self, node: exp.Expr) -> bool:
        return any(column.table == self.alias and owner(column) is self.select for column in node.find_all(exp.Column))

    def _around(self, node: exp.Expr) -> exp.Expr:
        """What is written around the numbers of a group."""
        return node.copy().transform(self._replaced)

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        name = self.keys.get(text(node)) if not isinstance(node, exp.Literal) else None
        if name is not None:
            return typed(exp.column(name, _GROUPS, quoted=True), node)
        function = without_nulls(node.this if isinstance(node, exp.Filter) else node)
        if is_aggregate(function):
            return self._number(node, function)
        if isinstance(node, exp.Column) and node.table not in (_GROUPS, _NUMBERS, ""):
            raise Refused("SDC042", node.name)
        if isinstance(node, exp.Query):
            raise Refused("SDC033", f"public rows LEFT JOIN {self.alias}, with a subquery beside them")
        return node

    def _number(self, node: exp.Expr, function: exp.Expr) -> exp.Expr:
        """An aggregate of a column of the records, which public rows without records have no value of."""
        tables = {column.table for column in node.find_all(exp.Column)}
        if isinstance(function, _OF_ANY_ROWS) and self.alias not in tables and node.find(exp.Query) is None:
            name, _ = self.public.setdefault(text(node), (f"_p{len(self.public)}", node))
            return typed(exp.column(name, _GROUPS, quoted=True), node)
        value = function.this
        if isinstance(value, exp.Distinct) and len(value.expressions) == 1 and isinstance(function, exp.Count):
            value = value.expressions[0]
        plain = isinstance(value, exp.Column) and value.table == self.alias
        if not plain or not isinstance(function, (exp.Count, *_ONE_COLUMN)) or function.expressions:
            raise Refused("SDC033", f"public rows LEFT JOIN {self.alias}: count and add up columns of {self.alias}")
        name, _ = self.numbers.setdefault(text(node), (f"_a{len(self.numbers)}", node))
        number = typed(exp.column(name, _NUMBERS, quoted=True), node)
        if not isinstance(function, exp.Count):
            return number
        there = typed(exp.column(_THERE, _NUMBERS, quoted=True), exp.true())
        return typed(exp.Case(ifs=[exp.If(this=there, true=number)], default=exp.Literal.number(0)), node)
