"""From an analyst's query to one that only ever shows protected numbers: label, check, protect.

Labels flow bottom-up. Unit-level records become released numbers in one place only: a block that aggregates them. Such
a block is split in two::

    SELECT region, count(*) AS n FROM people GROUP BY region HAVING count(*) > 9 ORDER BY n

    SELECT _sdc._g0 AS region, _sdc._a0 AS n
    FROM (SELECT people.region AS _g0, sdc_count(people.record_key, ..) AS _a0 FROM people GROUP BY ..) _sdc
    WHERE _sdc._a0 > 9 ORDER BY n

The inner part holds group keys and protected aggregates, and nothing else. The outer part sees released numbers, so
that whatever the analyst wrote around them is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import (
    QUANTILES,
    as_quantile,
    as_written,
    case,
    column_names,
    constant_factor,
    is_lateral,
    is_number,
    normalize,
    owner,
    tables_of,
    value_of,
)
from sdcduck.guard.protect.beside_groups import ask_beside_groups
from sdcduck.guard.protect.beside_records import without_laterals
from sdcduck.guard.protect.block import Block, narrow_joins
from sdcduck.guard.protect.composed import is_composed
from sdcduck.guard.protect.distinct_windows import as_groups
from sdcduck.guard.protect.empty_groups import settle_empty_groups, with_empty_groups
from sdcduck.guard.protect.full_joins import join_both_sides, left_for_right
from sdcduck.guard.protect.groups import has_one_row, without_order
from sdcduck.guard.protect.inlined import inline_records
from sdcduck.guard.protect.joined_records import join_records
from sdcduck.guard.protect.labelled import ask_each_label
from sdcduck.guard.protect.lifted import holds_records, lift_subqueries
from sdcduck.guard.protect.looked_for import as_group
from sdcduck.guard.protect.narrowing import without_narrowing_joins
from sdcduck.guard.protect.own_records import without_ties
from sdcduck.guard.protect.plain_aggregates import settle_aggregates
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.protect.recursion import is_recursive, recursive
from sdcduck.guard.protect.scalar_subqueries import settle_values, without_correlated_values
from sdcduck.guard.protect.semijoins import (
    publish_sides,
    publish_values,
    without_correlation,
    without_missing_rows,
    without_semi_joins,
)
from sdcduck.guard.protect.statistics import is_statistic
from sdcduck.guard.protect.together import together
from sdcduck.guard.protect.total import shorten_searches
from sdcduck.guard.protect.unit_windows import without_distinct_on
from sdcduck.guard.protect.worked_out import write_out_measures
from sdcduck.guard.refusals import Refused, unknown_column
from sdcduck.guard.relations import Label, Relation, of_policy
from sdcduck.quoting import folded, identifier


class Protection:
    """Protects one query.

    Args:
        policies: by lower-case name.
        columns: that analysts see of these tables.
        tables: the lower-case names of those that are no views.
        collated: whether DuckDB may take texts for one that differ.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        columns: Mapping[str, frozenset[str]],
        tables: frozenset[str],
        *,
        collated: bool,
    ) -> None:
        self.progress = Progress(policies, columns, tables, collated)
        self.progress.query = self.query
        self._result: int | None = None
        self._over_units: set[int] = set()
        self._read_often = False

    def protect(self, tree: exp.Expr) -> Relation:
        """Label and protect a whole query, in place.

        Raises:
            Refused: it cannot be shown to be safe, or some part of it was not looked at.
        """
        normalize(tree)
        ask_each_label(tree, self.progress.policies, self.progress.number)
        for select in list(tree.find_all(exp.Select)):
            without_laterals(select, self.progress.number, partial(self._holds_records, {}))
        write_out_measures(tree, self.progress.policies)
        inline_records(tree, self.progress.policies)
        join_records(tree, self.progress)
        self._result = id(tree.unnest())
        recursive_ = any(with_.args.get("recursive") for with_ in tree.find_all(exp.With))
        self._read_often = recursive_ or any(map(_names_others, tree.find_all(exp.Select)))
        relation = self.query(tree, {})
        if relation.label is Label.UNIT:
            raise Refused("SDC040")
        for node in tree.find_all(exp.Select, exp.Table):
            if id(node) not in self.progress.seen:
                raise Refused("SDC046", "a subquery in an unusual place")
        if self.progress.subqueries:
            raise Refused("SDC044")
        return relation

    def query(self, node: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        """Label a query and protect what it aggregates, in place; its relation."""
        visible = dict(known)
        with_ = node.args.get("with_")
        if with_ is not None:
            for cte in with_.expressions:
                if is_recursive(cte):
                    itself = recursive(cte, visible, self.query, self._over_units)
                    visible[folded(cte.alias)] = self._with_source(itself, cte, visible)
                    continue
                found = self._with_source(self.query(cte.this, visible), cte.this, visible)
                if self._read_often and found.label is Label.RELEASED:
                    cte.set("materialized", True)
                visible[folded(cte.alias)] = found
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            for key, value in node.args.items():
                if key not in ("this", "expression", "with_", "alias"):
                    for part in value if isinstance(value, list) else [value]:
                        if isinstance(part, exp.Expr) and part.find(exp.Query) is not None:
                            raise Refused("SDC046", "a subquery in LIMIT or ORDER BY")
        if isinstance(node, exp.Subquery):
            relation = self.query(node.this, visible)
            if relation.label is Label.UNIT:
                _refuse_more(node)
            return relation
        if isinstance(node, exp.SetOperation):
            publish_sides(node, partial(self._holds_records, visible), self._is_unit)
            sides = [self.query(side, visible) for side in (node.this, node.expression)]
            labels = [side.label for side in sides]
            if Label.UNIT in labels:
                return together(node, *sides)
            return Relation(Label.RELEASED if Label.RELEASED in labels else Label.PUBLIC, column_names(node))
        if isinstance(node, exp.Select):
            return self._select(node, visible)
        raise Refused("SDC005", folded(type(node).__name__))

    # --- SELECT ---------------------------------------------------------------------------------------------------

    def _select(self, select: exp.Select, known: Mapping[str, Relation]) -> Relation:
        self.progress.seen.add(id(select))
        holds = partial(self._holds_records, known)
        if any(map(holds, tables_of(select))):
            as_groups(select)
            ask_beside_groups(select, self.progress.number)
            without_laterals(select, self.progress.number, holds)
        if any(map(holds, tables_of(select))):
            shorten_searches(select)
            left_for_right(select)
            settle_aggregates(select)
        lift_subqueries(select, self.progress.number, holds)
        without_missing_rows(select, holds)
        with_empty_groups(select, holds)
        private = any(policy.method == "dp" for policy in self.progress.policies.values())
        without_semi_joins(select, self._is_unit if private else None)
        without_narrowing_joins(select, holds)
        # Records are looked at once more to count values; protecting a query changes it.
        original = select.copy() if any(map(self._looks_at_values, select.find_all(exp.AggFunc))) else None
        sources: dict[str, Relation] = {}
        self._label(tables_of(select), known, sources)
        settle_empty_groups(select, sources)
        if select.args.get("laterals"):
            raise Refused("SDC022", "lateral")
        units = [alias for alias, relation in sources.items() if relation.label is Label.UNIT]
        self._refuse_laterals(select, over_units=bool(units))
        if units:
            self._over_units.add(id(select))
            units = join_both_sides(self.progress, select, sources, known)
            without_distinct_on(select)
            if id(select) == self._result:
                as_group(select)
            without_correlation(select)
            self.progress.ties.update(without_ties(select, self.progress.number))
        else:
            publish_values(select, holds)
        joins = without_correlated_values(select, self.progress.number, None if units else holds)
        self._label([join.this for join in joins], known, sources)
        joined = [sources[join.this.alias_or_name] for join in joins]
        settle_values(select, joins, joined)
        units += [join.this.alias_or_name for join, of in zip(joins, joined, strict=True) if of.label is Label.UNIT]
        if units and id(select) not in self._over_units:
            raise Refused("SDC044")
        for column in select.find_all(exp.Column):
            # A name that its source does not have would be looked for further out by DuckDB.
            unknown = column.table in sources and folded(column.name) not in sources[column.table].columns
            if unknown and owner(column) is select:
                raise unknown_column(column.name, sources[column.table].columns)
        self._subqueries(select, known)
        if not units:
            if any(join.method == "ASOF" for join in select.args.get("joins") or []):
                raise Refused("SDC022", "asof join without records: which of equally near rows it finds is not known")
            as_written(select)
            labels = {relation.label for relation in sources.values()}
            label = Label.RELEASED if Label.RELEASED in labels else Label.PUBLIC
            return Relation(label, column_names(select), one_row=has_one_row(select))
        narrow_joins(self.progress, select, sources, known)
        block = Block(self.progress, select, sources, units, known, original)
        if id(select) != self._result and (not block.is_aggregate or block.is_per_unit):
            without_order(select)
        if not block.is_aggregate:
            return block.records()
        if not block.is_per_unit:
            return block.aggregate()
        if id(select) == self._result:  # whatever else is to be said of it
            raise Refused("SDC040", _AROUND)
        return block.per_unit()

    def _refuse_laterals(self, select: exp.Select, *, over_units: bool) -> None:
        """Refuse subqueries in FROM that name what stands before them, where there are records on either side.

        Answers that they read have a name, in a WITH that is worked out on its own.
        """
        for table in filter(is_lateral, tables_of(select)):
            inside = {id(inner) for inner in table.find_all(exp.Select)}
            owners = [owner(column) for column in table.find_all(exp.Column) if column.table]
            reaches = any(owner is None or id(owner) not in inside for owner in owners)
            if reaches and (over_units or inside & self._over_units):
                raise Refused("SDC044", "LATERAL beside records: put the answers that it names into a WITH before it")

    def _holds_records(self, known: Mapping[str, Relation], source: exp.Expr) -> bool:
        policies = [policy for policy in self.progress.policies.values() if policy.label != "public"]
        units = frozenset(folded(unit) for policy in policies for unit in policy.identifiers)
        names = {folded(policy.name) for policy in policies}

        def is_record(name: str) -> bool:
            return known[name].label is Label.UNIT if name in known else name in names

        return holds_records(source, is_record, units)

    def _is_unit(self, column: exp.Expr) -> bool:
        """Whether a column has the name of a unit."""
        units = {folded(unit) for policy in self.progress.policies.values() for unit in policy.identifiers}
        return isinstance(column, exp.Column) and folded(column.name) in units

    def _looks_at_values(self, aggregate: exp.Expr) -> bool:
        """Whether an aggregate may be one of published values, or of what is published for each of them."""
        if value_of(aggregate) is not None or is_statistic(aggregate) or is_composed(aggregate):
            return True
        aggregate = as_quantile(aggregate)
        if not isinstance(aggregate, (exp.Sum, exp.Avg, *QUANTILES)) or aggregate.this is None:
            return False
        _, added, _ = case(constant_factor(aggregate.this)[0])
        if is_number(added):
            return False
        measures = (policy.measures for name, policy in self.progress.policies.items() if name in self.progress.columns)
        return not isinstance(added, exp.Column) or all(
            folded(added.name) not in {folded(measure) for measure in those} for those in measures
        )

    def _label(self, tables: Sequence[exp.Expr], known: Mapping[str, Relation], found: dict[str, Relation]) -> None:
        """Add relations of FROM and JOIN to those that are found, by alias."""
        for table in tables:
            if table.args.get("joins") or table.args.get("pivots") or table.args.get("sample"):
                raise Refused("SDC022", "pivot, sample or nested join")
            if table.alias_or_name in found or not table.alias_or_name:
                raise Refused("SDC031", table.alias_or_name)
            if isinstance(table, exp.Table):
                self.progress.seen.add(id(table))
                if table.alias_column_names:
                    raise Refused("SDC022", "new column names after a table")
                if table.args.get("db") or table.args.get("catalog") or not isinstance(table.this, exp.Identifier):
                    raise Refused("SDC020")
                name = folded(table.name)
                if name in known:
                    found[table.alias_or_name] = known[name]
                elif name in self.progress.policies:
                    found[table.alias_or_name] = of_policy(
                        self.progress.policies[name], self.progress.columns[name], is_table=name in self.progress.tables
                    )
                else:
                    raise Refused("SDC020", table.name)
            elif isinstance(table, exp.Subquery):
                found[table.alias_or_name] = self._with_source(self.query(table, known), table.this, known)
            elif isinstance(table, exp.Values) and table.find(exp.Query, exp.Column) is None:
                names = frozenset(folded(name) for name in table.alias_column_names)
                source = f"(FROM {table.sql('duckdb')})"
                one_row = len(table.expressions) == 1
                found[table.alias_or_name] = Relation(Label.PUBLIC, names, source=source, one_row=one_row)
            else:
                raise Refused("SDC005", folded(type(table).__name__))

    def _with_source(self, relation: Relation, query: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        """The relation of a subquery, with its SQL if that is about public tables and nothing else.

        A query around it may give the name of a public table to something else.

        Args:
            query: it; of WITH RECURSIVE all that stands there.
        """
        itself = {folded(query.alias)} if isinstance(query, exp.CTE) else set()
        tables = {folded(table.name) for table in query.find_all(exp.Table)} - itself
        public = {name for name, policy in self.progress.policies.items() if policy.label == "public"} - set(known)
        if relation.label is Label.PUBLIC and tables <= public and query.find(exp.Placeholder, exp.Parameter) is None:
            sql = query.sql("duckdb")
            if itself:
                sql = f"WITH RECURSIVE {sql} FROM {identifier(query.alias)}"
            return replace(relation, source=f"({sql})")
        return relation

    def _subqueries(self, select: exp.Select, known: Mapping[str, Relation]) -> None:
        """Protect the subqueries in expressions; what touches unit-level records stands on its own."""
        in_from = {id(table) for table in tables_of(select)}
        if id(select) in self._over_units:
            for subquery in select.find_all(exp.Subquery):
                if subquery.find_ancestor(exp.Select) is select:
                    _refuse_more(subquery)
        for query in list(_outermost_queries(select, in_from)):
            inside = {id(inner) for inner in query.find_all(exp.Select)}
            owners = [owner(column) for column in query.find_all(exp.Column) if column.table]
            outer = [owner for owner in owners if owner is None or id(owner) not in inside]
            relation = self.query(query, known)
            label = relation.label
            if label is Label.UNIT:
                if id(select) not in self._over_units:
                    raise Refused("SDC044")
                self.progress.subqueries[id(query)] = (query, relation)
            # Answers that it reads are worked out before, in a WITH; none is asked for each row around it.
            over_units = any(owner is None or id(owner) in self._over_units for owner in outer)
            if outer and (over_units or inside & self._over_units or id(select) in self._over_units):
                raise Refused("SDC044")


def _names_others(select: exp.Select) -> bool:
    """Whether a subquery names something around it, so that it is worked out for each row of that."""
    own = {table.alias_or_name for table in tables_of(select)}
    columns = (column for column in select.find_all(exp.Column) if column.table)
    return any(column.table not in own and column.find_ancestor(exp.Select) is select for column in columns)


def _refuse_more(subquery: exp.Subquery) -> None:
    """Refuse ORDER BY, LIMIT and the like behind the brackets of a subquery: they would be left out, or cut records."""
    more = [part for part, value in subquery.args.items() if value and part not in ("this", "alias", "with_")]
    if more:
        raise Refused("SDC045", f"{more[0]} behind the brackets of a subquery")


_AROUND = "one for each unit: SELECT n, count(*) FROM (SELECT .., count(*) AS n .. GROUP BY the unit) GROUP BY n"


def _outermost_queries(select: exp.Select, skip: set[int]) -> list[exp.Expr]:
    """Queries inside the expressions of a SELECT, not those in FROM, WITH, or in other queries."""
    found: list[exp.Expr] = []
    waiting = [
        child
        for key, value in select.args.items()
        if key != "with_"
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, exp.Expr)
    ]
    while waiting:
        node = waiting.pop()
        if id(node) in skip:
            continue
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            found.append(node)
            continue
        waiting.extend(node.iter_expressions())
    return found
