"""One block over unit-level records: its joins and conditions checked, its aggregates protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import (
    RELEASED,
    column_names,
    conjuncts,
    grouping_sets,
    has_aggregate,
    is_query,
    owner,
    typed,
)
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.conditions import asked, where
from sdcduck.guard.protect.figures import FIGURES
from sdcduck.guard.protect.groups import (
    Released,
    group_keys,
    grouped,
    groups_records,
    has_one_row,
    identifying,
    is_per_unit,
    of_records,
    of_units,
    refuse_unknown_aggregates,
    settle_group_by_all,
)
from sdcduck.guard.protect.joins import check_joins, order_joins
from sdcduck.guard.protect.numbers import OfRecords, OfUnits
from sdcduck.guard.protect.numbers_of_kinds import OfKinds
from sdcduck.guard.protect.one_row import without_groups
from sdcduck.guard.protect.per_unit import brought_together
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.protect.scope import Scope, aliased
from sdcduck.guard.protect.split import Split
from sdcduck.guard.protect.together import agreed
from sdcduck.guard.protect.unit_windows import with_windows
from sdcduck.guard.protect.values import named, with_values
from sdcduck.guard.refusals import Refused, refuse_own_name
from sdcduck.guard.relations import Added, Label, Relation, Role
from sdcduck.quoting import folded, identifier

_ROW_CLAUSES = ("distinct", "limit", "offset", "order", "qualify", "having", "windows", "kind", "hint")


class Block:
    """A SELECT over unit-level relations of the same units, and public ones joined to them."""

    def __init__(
        self,
        progress: Progress,
        select: exp.Select,
        sources: Mapping[str, Relation],
        units: Sequence[str],
        known: Mapping[str, Relation],
        original: exp.Select | None,
    ) -> None:
        settle_group_by_all(select)
        self.scope = Scope(progress, select, sources, units, known, original)
        order_joins(self.scope)  # what stands in ON comes into WHERE
        self.scope.answer_under(*_common_policy(self.scope))
        check_joins(self.scope)
        condition = select.args.get("where")
        if condition is not None:
            condition.set("this", where(self.scope, condition.this))

    @property
    def is_aggregate(self) -> bool:
        """Whether it aggregates, by GROUP BY, DISTINCT or an aggregate function."""
        return groups_records(self.scope.select)

    @property
    def is_per_unit(self) -> bool:
        """Whether it groups by the unit."""
        return is_per_unit(self.scope)

    def records(self) -> Relation:
        """A block that only filters, joins and projects: still unit-level. What protection needs is carried along."""
        if self._has_windows():
            relation = with_windows(self.scope)
            return self._over(relation).records()
        roles: dict[str, Role] = {}
        measures: dict[str, str] = {}
        missing: set[str] = set()
        added: dict[str, Added] = {}
        counts: set[str] = set()
        bounds: dict[str, tuple[float, ...]] = {}
        bands: dict[str, tuple[float, ...]] = {}
        totals: dict[str, tuple[float, ...]] = {}
        others: dict[str, int] = {}
        owned: set[str] = set()
        identifying: set[str] = set()
        projections: list[exp.Expr] = []
        hidden = [exp.column(name, self.scope.alias, quoted=True) for name in self.scope.method.hidden()]
        for item in self.scope.select.expressions:
            value, name = item.unalias(), item.alias_or_name
            unit = self.scope.unit_of(value) if isinstance(value, exp.Coalesce) else None
            if unit is not None:  # of (a JOIN b USING (unit)) AS q
                value, item = unit, exp.alias_(unit, name, quoted=True)
            refuse_own_name(name)
            if folded(name) in roles:
                raise Refused("SDC031", name)
            if self.scope.counts_rows(value):
                counts.add(folded(name))
            if isinstance(value, exp.Column):
                roles[folded(name)] = self.scope.role(value)
                if self.scope.is_owned(value):
                    owned.add(folded(name))
                if self.scope.identifies(value):
                    identifying.add(folded(name))
                if roles[folded(name)] is Role.MEASURE:
                    measures[folded(name)] = self.scope.called(value)
                    self.scope.refuse_repeated(value)
                    bounds[folded(name)], bands[folded(name)] = self.scope.bounds(value), self.scope.bands(value)
                    totals[folded(name)] = self.scope.totals(value)
                    of_rows = self.scope.added(value)
                    if of_rows is not None:
                        carried = replace(of_rows, rows=f"{CARRIED}{len(hidden)}")
                        hidden.append(exp.maybe_parse(of_rows.rows, dialect="duckdb"))
                        if of_rows.known is not None:
                            carried = replace(carried, known=f"{CARRIED}{len(hidden)}")
                            hidden.append(exp.maybe_parse(of_rows.known, dialect="duckdb"))
                        added[folded(name)] = carried
                if roles[folded(name)] is Role.OTHER:
                    others[folded(name)] = self.scope.kind_of(value)
                if roles[folded(name)] is Role.UNIT and self.scope.unit_of(value) is None:
                    missing.add(folded(name))
                if roles[folded(name)] is Role.UNIT and self.scope.method.from_cells:
                    item = exp.alias_(exp.Null(), name, quoted=True)  # cells have no unit; it can still be counted
                projections.append(item)
            elif isinstance(value, exp.Null):
                roles[folded(name)] = Role.COMPUTED
                projections.append(exp.alias_(value, name, quoted=True))
            elif value.find(exp.Query) is not None:
                roles[folded(name)] = Role.COMPUTED
                called = exp.to_identifier(name, quoted=True)
                projections.append(exp.Alias(this=asked(self.scope, value), alias=called))
            else:
                roles[folded(name)] = Role.COMPUTED
                checked = typed(self.scope.over_dimensions(value), value)
                projections.append(exp.alias_(checked, name, quoted=True))
        for clause in _ROW_CLAUSES:
            if self.scope.select.args.get(clause) is not None:
                instead = "; the values of a dimension: SELECT DISTINCT" if self.scope.policy.privacy.holds else ""
                raise Refused("SDC045", f"{clause}{instead if clause in ('limit', 'order') else ''}")
        for place, column in enumerate(hidden):
            projections.append(exp.alias_(column, f"{CARRIED}{place}", quoted=True))
        self.scope.select.set("expressions", projections)
        self.scope.read_from_method()
        return Relation(
            Label.UNIT, frozenset(roles), roles, self.scope.policy,
            rows_of=self.scope.rows_of, tables=self.scope.tables, missing=frozenset(missing),
            measures=measures, added=added, counts=frozenset(counts), bounds=bounds, bands=bands, totals=totals,
            others=others, owned=frozenset(owned), identifying=frozenset(identifying),
        )  # fmt: skip

    def _has_windows(self) -> bool:
        parts = [*self.scope.select.expressions, *filter(None, [self.scope.select.args.get("qualify")])]
        return any(isinstance(node, exp.Window) for part in parts for node in part.walk(prune=is_query))

    def _over(self, relation: Relation) -> Block:
        """The same block over figures of its units."""
        scope = self.scope
        return Block(scope.progress, scope.select, {FIGURES: relation}, [FIGURES], scope.known, None)

    def per_unit(self) -> Relation:
        """A block that groups by the unit: what each unit has, still unit-level."""
        if self.scope.method.from_cells and not self.scope.has_several:
            kept = without_groups(self.scope, grouped(self.scope))
            if kept is not None:
                narrowed = self.scope.select.args.get("where")
                conditions = [self.scope.condition(kept), *([narrowed.this] if narrowed is not None else [])]
                self.scope.select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
            return self.records()
        relation = brought_together(self.scope, grouped(self.scope))
        return self._over(relation).records()

    def aggregate(self) -> Relation:
        """A block that aggregates: split into protected aggregates and what is written around them."""
        select = self.scope.select
        if select.args.get("kind") or select.args.get("hint"):
            raise Refused("SDC005", "an unusual clause")
        refuse_unknown_aggregates(select)
        one_row = has_one_row(select)
        keys = group_keys(self.scope)
        identified_by = identifying(self.scope, keys)
        numbers = _numbers(self.scope)
        released = Released(keys, numbers)
        split = Split(self.scope, released)
        self.scope.progress.statistics[id(select)] = split.described.columns
        outer_items = [
            exp.Alias(this=split.outer(item.unalias()), alias=exp.to_identifier(item.alias_or_name, quoted=True))
            for item in select.expressions
        ]
        condition = split.outer(select.args["having"].this) if select.args.get("having") is not None else None
        qualify = select.args.get("qualify")
        if qualify is not None:
            qualify.set("this", split.outer(qualify.this))
        for window in select.args.get("windows") or []:
            window.replace(split.window(window))
        names = {item.alias_or_name for item in select.expressions}
        order = select.args.get("order")
        distinct = select.args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        sorted_by = [ordered.this for ordered in order.expressions] if order is not None else []
        for by in [*sorted_by, *(on.expressions if on is not None else [])]:
            shown = [not column.table and column.name in names for column in by.find_all(exp.Column)]
            if not shown or not all(shown) or has_aggregate(by):
                by.replace(split.outer(_written_out(by, select)))
        inner = self._numbers_of(released, split.values)
        for clause in ("joins", "where", "group", "having"):
            select.set(clause, None)
        select.set("expressions", outer_items)
        select.set("from_", exp.From(this=inner))
        if condition is not None:
            select.set("where", exp.Where(this=condition))
        self.scope.progress.blocks[id(select)] = self.scope.policy
        brought = ", the rows of a unit brought together" if self.scope.several else ""
        self.scope.progress.notes.append(
            f"{self.scope.policy.name}: {len(keys)} group keys, {len(released.aggregates)} numbers protected by "
            f"{self.scope.policy.method}{brought}"
        )
        hides_few = self.scope.policy.min_units > 1 and not self.scope.method.from_cells
        return Relation(
            Label.RELEASED, column_names(select), identified_by=identified_by, hides_few=hides_few, one_row=one_row
        )

    def _numbers_of(self, released: Released, values: Mapping[str, exp.Select]) -> exp.Expr:
        """What is published of the block: a table, or a subquery with what is worked out of counts of values."""
        scope, numbers = self.scope, released.numbers
        scope.works_out_values = bool(values)
        if not released.aggregates and not released.keys:
            if not values:
                raise Refused("SDC045", "nothing is counted or added up")
            if scope.policy.privacy.holds:  # a number that nobody asked for would take its share of the question
                return with_values(scope, (), None, values)
            released.published(numbers.count("true"))  # one row
        if values and scope.policy.privacy.holds and grouping_sets(scope.select.args.get("group")) is not None:
            released.published(numbers.count("true"))  # which subtotals there are is known of counts
        made = of_units(scope, released, numbers) if isinstance(numbers, OfUnits) else of_records(scope, released)
        table = scope.progress.numbered(made)
        return with_values(scope, made.columns, table, values) if values else named(table, RELEASED)


def _numbers(scope: Scope) -> OfUnits | OfRecords:
    """What makes the SQL of aggregates."""
    if scope.policy.kinds and scope.method.brings_together:
        units = [f"{scope.records_sql}.{identifier(name)}" for name in scope.method.hidden()[1::2]]
        return OfKinds(scope.policy, units)
    return OfUnits(scope.policy) if scope.several else OfRecords(scope.method, scope.records_sql)


def narrow_joins(
    progress: Progress, select: exp.Select, sources: dict[str, Relation], known: Mapping[str, Relation]
) -> None:
    """Write what ON says of the records behind LEFT JOIN alone as a WHERE of theirs, in place.

    ::

        FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_priority <> 'LOW'
        FROM customer LEFT JOIN (SELECT o_custkey, .. FROM orders WHERE o_priority <> 'LOW') AS orders ON ..
    """
    for join in select.args.get("joins") or []:
        alias, on = join.this.alias_or_name, join.args.get("on")
        if join.side != "LEFT" or on is None or sources[alias].label is not Label.UNIT:
            continue
        parts = [(part, {column.table for column in part.find_all(exp.Column)}) for part in conjuncts(on)]
        own = [part for part, tables in parts if tables == {alias} and part.find(exp.Query) is None]
        if not own or len(own) == len(parts):
            continue
        columns = [column for column in select.find_all(exp.Column) if column.table == alias]
        named = {folded(column.name): column for column in columns if owner(column) is select}
        items = [typed(exp.alias_(column.copy(), column.name, quoted=True), column) for column in named.values()]
        narrowed = exp.Select(expressions=items, from_=exp.From(this=join.this), where=exp.Where(this=exp.and_(*own)))
        progress.made_around(narrowed)
        sources[alias] = Block(progress, narrowed, {alias: sources[alias]}, [alias], known, None).records()
        join.set("this", aliased(narrowed, alias))
        join.set("on", exp.and_(*(part for part, _ in parts if all(part is not one for one in own)), copy=False))


def _common_policy(scope: Scope) -> tuple[Policy, set[int]]:
    """The policy that a block is answered under, and of which relations: of the first, as strict as any of them."""
    parts = filter(None, [scope.select.args.get("where"), *scope.select.expressions])
    beside = [relation for part in parts for relation in scope.progress.compared(part)]
    relations = [*(scope.sources[alias] for alias in scope.units), *beside]
    policies = [policy for relation in relations if (policy := relation.policy) is not None]
    return agreed(policies), {id(relation) for relation in relations}


def _written_out(by: exp.Expr, select: exp.Select) -> exp.Expr:
    """An expression of ORDER BY with what is selected in place of its name, which stands in it beside other things."""
    items = {item.alias_or_name: item.unalias() for item in select.expressions}
    if len(items) < len(select.expressions):  # two of one name
        return by

    def meant(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column) and not node.table and node.name in items
        return items[node.name].copy() if is_name else node

    return by.transform(meant)
