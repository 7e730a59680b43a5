"""What each unit has: a block that groups by the unit brings the rows of one together, and is still unit-level.

::

    SELECT n, count(*) AS patients FROM (SELECT patient_id, count(*) AS n FROM visits GROUP BY patient_id) GROUP BY n

The inner block has one row for each patient, made of that patient's rows alone. So its figures are attributes of units
like any other: what is made of dimensions is a dimension, a sum of a measure is a measure. Nothing is published there;
the block around it is protected as always. It is split in two::

    SELECT _sdc_p._p0 AS patient_id, _sdc_try(_sdc_p._p1 > 2) AS often, _sdc_p._sdc_h0 AS _sdc_h0, ..
    FROM (SELECT visits.patient_id AS _p0, count(*) AS _p1, max(visits.key) AS _sdc_h0, .. FROM visits GROUP BY ..)
        AS _sdc_p
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.catalog.relations import total_of
from sdcduck.guard.calls import both, chosen
from sdcduck.guard.expressions import (
    bounded,
    case,
    duckdb_name,
    family,
    is_aggregate,
    is_query,
    is_wide,
    is_zero,
    text,
    without_nulls,
)
from sdcduck.guard.methods.dp import SUM_OF_ROWS, DifferentialPrivacy, ends_of_unit, sums_of, within_ends
from sdcduck.guard.protect.bands import borders_for, is_band, is_compared, told
from sdcduck.guard.protect.figures import Figures, refuse_clauses, refuse_queries
from sdcduck.guard.protect.scope import FILLED, Scope
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Added, Relation, Role
from sdcduck.quoting import folded

_TAKEN = frozenset(["with_", "expressions", "from_", "joins", "where", "group", "having", "distinct"])
_PLACE_OF = "the place of a query"
_OF_BOUNDED: dict[type[exp.Expr], str] = {
    exp.Avg: f"{SUM_OF_ROWS}({{0}}) / nullif(count({{0}}), 0)", exp.Max: "max({0})", exp.Min: "min({0})",
}  # fmt: skip
_BESIDE: dict[type[exp.Expr], str] = {exp.ArgMin: "min", exp.ArgMax: "max"}


def brought_together(scope: Scope, keys: list[exp.Expr]) -> Relation:
    """Write a block that groups by the unit as one over the figures of each unit, in place; their relation.

    Args:
        keys: the grouping expressions, of which one is the unit.

    Raises:
        Refused: a clause or an aggregate that would make something else of it.
    """
    select, groups = scope.select, _Groups(scope, keys)
    taken = _TAKEN - {"distinct"} if select.args.get("group") is not None else _TAKEN
    refuse_clauses(select, taken, "beside GROUP BY the unit")
    items = [exp.alias_(groups.around(item.unalias()), item.alias_or_name, quoted=True) for item in select.expressions]
    having = select.args.get("having")
    kept = None if having is None else groups.condition(having)
    groups.figures.write(items, kept, groups.columns)
    return groups.figures.relation(several=groups.several, one_row_per_unit=not groups.several)


class _Groups:
    """The groups of a block, of which each has rows of one unit, and their figures.

    Attributes:
        columns: the names of the grouping expressions.
        several: whether a unit may be in several groups: they are grouped by more than units have one of.
    """

    def __init__(self, scope: Scope, keys: list[exp.Expr]) -> None:
        self.scope, self.figures = scope, Figures(scope)
        self._keys: dict[str, str] = {}
        for node in keys:
            unit, role = scope.unit_of(node), Role.COMPUTED
            if unit is None and isinstance(node, exp.Column) and scope.kind_of(node) > 0:
                unit, role = node, Role.OTHER
            elif unit is not None:
                role = Role.UNIT
            elif isinstance(node, exp.Column):
                role = scope.role(node)
            sql = self.figures.one_of_equal(node) if unit is None else text(unit)
            name = self._keys[text(node)] = self.figures.column(sql, role)
            if scope.is_owned(node):
                self.figures.owned.add(name)
            if role is Role.OTHER:
                self.figures.others[name] = scope.kind_of(node)
        self.columns = list(self.figures.columns.values())
        self._unit = next(name for name, role in self.figures.roles.items() if role is Role.UNIT)
        # What has one row of each unit has one value for it; a public table, or one behind LEFT JOIN, has one for each
        # row that it is joined to.
        several = {alias for alias in scope.units if scope.sources[alias].several}
        of_one_row = {*scope.units} - several - scope.maybe_missing
        # A unit of one kind has a group for each of another that it is tied to.
        self.several = bool(scope.policy.kinds) or (
            bool(several)
            and not all(
                scope.unit_of(column) is not None or column.table in of_one_row
                for node in keys
                for column in node.find_all(exp.Column)
            )
        )

    def around(self, node: exp.Expr, *, is_condition: bool = False) -> exp.Expr:
        """An expression over the rows of a unit as one over its figures."""
        made = node.copy().transform(self._replaced)
        columns = {column.name for column in made.find_all(exp.Column)}
        # What is compared with numbers is looked at outside, as a condition over any measure.
        is_outside = is_condition and self.scope.policy.privacy.holds
        if not is_outside and not isinstance(made, exp.Column) and not columns.isdisjoint(self.figures.measures):
            self._refuse_measures(made, node)
        return made

    def _refuse_measures(self, made: exp.Expr, node: exp.Expr) -> None:
        """Refuse measures of units in an expression, but for totals that are compared with a declared border."""
        for column in [one for one in made.find_all(exp.Column) if one.name in self.figures.measures]:
            borders = self.figures.bands.get(column.name, ())
            if is_compared(column) and is_band(column, borders):
                if self.figures.added[column.name].known is not None:
                    raise Refused("SDC052", FILLED)
                continue
            asked, called = borders_for(column), total_of(self.figures.measures[column.name])
            instead = (
                f"; bands of it are declared: sdc_protect(.., bands := {{'{called}': [.., {', '.join(asked)}, ..]}})"
            )
            wanted = (
                told(f"; {called}", borders)
                if borders
                else instead
                if asked and column.name in self.figures.added
                else ""
            )
            raise Refused("SDC041", f"{folded(node.sql('duckdb'))} of each unit{wanted}")

    def condition(self, having: exp.Expr) -> exp.Expr:
        """The condition of HAVING over the figures of a unit; what they are compared with stays the same node."""
        queries = _queries(having)
        for number, query in enumerate(queries):
            place = exp.Placeholder()
            place.meta[_PLACE_OF] = number
            query.replace(place)
        made = self.around(having.this, is_condition=True)
        for place in [found for found in made.find_all(exp.Placeholder) if _PLACE_OF in found.meta]:
            place.replace(queries[place.meta[_PLACE_OF]])
        return made

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        refuse_queries(node)
        if isinstance(node, exp.Grouping):
            raise Refused("SDC042", "GROUPING beside GROUP BY the unit")
        if isinstance(node, exp.Window):
            raise Refused("SDC045", "a window beside GROUP BY the unit, or DISTINCT: it goes into a subquery")
        name = self._unit if self.scope.unit_of(node) is not None else self._keys.get(text(node))
        inner, condition = without_nulls(node), "true"
        if isinstance(node, exp.Filter):
            inner, condition = without_nulls(node.this), self.scope.condition_sql(node.expression.this)
        if name is None and is_aggregate(inner):
            name = self._figure(inner, condition)
        if name is None and isinstance(node, exp.Column):
            raise Refused("SDC042", node.name)
        return node if name is None else self.figures.shown(name, node)

    def _figure(self, node: exp.Expr, condition: str) -> str:
        if type(node) in _BESIDE and node.expression is not None and not node.args.get("count"):
            shown, by = self.figures.value(node.this), self.figures.value(node.expression)
            # Of several rows with the same least y that with the least x: not the one that happens to come first.
            known = both(condition, f"{shown} IS NOT NULL AND {by} IS NOT NULL")
            pair = chosen(known, f"struct_pack(y := {by}, x := {shown})")
            return self.figures.column(f"struct_extract({_BESIDE[type(node)]}({pair}), 'x')")
        if isinstance(node, (exp.First, exp.Last)) and isinstance(node.this, exp.Order):
            if isinstance(node.this.this, exp.Distinct):
                raise Refused("SDC051", f"{duckdb_name(node)} of DISTINCT")
            shown = self.figures.value(node.this.this)
            by = ", ".join([*self.figures.order(node.this), *self.figures.ties()])
            only = "" if condition == "true" else f" FILTER (WHERE {condition})"
            return self.figures.column(f"{duckdb_name(node)}({shown} ORDER BY {by}){only}")
        if isinstance(node, exp.Sum):
            asked, value, otherwise = case(node.this)
            filled = isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0])
            value = value.this if filled else value
            if isinstance(value, exp.Column) and self._is_added_up(value):
                wanted = "true" if asked is None else self.scope.condition_sql(asked)
                return self._sum_of_measure(value, condition, wanted, filled=filled, otherwise=otherwise)
        method = self.scope.method
        if isinstance(method, DifferentialPrivacy) and type(node) in _OF_BOUNDED and self._is_bounded(node.this):
            return self._of_measure(method, node, condition)
        name = self.figures.column(self.figures.aggregate(node, condition))
        # Noise that is drawn goes by how large a number may be, and different values are no more than rows.
        different = self.scope.policy.privacy.holds and isinstance(node, exp.Count)
        if different or self.figures.counts_rows(node):
            self.figures.counts.add(name)
        return name

    def _is_added_up(self, column: exp.Column) -> bool:
        """Whether sums of a column are measures of units: of a measure, and of what has ends that noise goes by."""
        of_domain = self.scope.policy.privacy.holds and not self.scope.counts_rows(column)
        return self.scope.role(column) is Role.MEASURE or (of_domain and self.scope.of_domain(column) is not None)

    def _is_bounded(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column):
            return False
        return self.scope.role(node) is Role.MEASURE and self.scope.added(node) is None

    def _of_measure(self, method: DifferentialPrivacy, node: exp.Expr, condition: str) -> str:
        """A mean or an extreme of a measure within its bounds, among the rows of a unit: it is between them, too."""
        called = self.scope.called(node.this)
        value = chosen(condition, self._within_bounds(method, node.this, called)[0])
        name = self.figures.column(f"({_OF_BOUNDED[type(node)].format(value)})", Role.MEASURE)
        self.figures.measures[name] = called
        return name

    def _sum_of_measure(
        self, measure: exp.Column, condition: str, wanted: str, *, filled: bool, otherwise: bool
    ) -> str:
        """The sum of a measure, with what it takes to have the noise of the sum of all these rows: see `Added`.

        Args:
            wanted: the condition of a CASE.
            filled: whether the analyst wrote 0 for missing values.
            otherwise: whether the analyst wrote 0 for rows that are not wanted.
        """
        self.scope.refuse_repeated(measure)
        before = self.scope.added(measure)
        exact = family(measure) in ("whole", "decimal") and not is_wide(measure) if before is None else before.exact
        one = text(measure) if exact else bounded(text(measure))
        called = self.scope.called(measure)
        if isinstance(self.scope.method, DifferentialPrivacy) and before is None:
            one, called, exact = *self._within_bounds(self.scope.method, measure, called), False
        every = both(wanted, condition)
        value = chosen(every, one)
        # Where there is noise, in the digits that sums of these rows have outside (`OfUnits`).
        added_up = "_sdc_grid_sum" if self.scope.method.brings_together else SUM_OF_ROWS
        total = f"sum({value})" if exact else bounded(f"{added_up}({value})")
        known = self._known(condition, wanted, one, before, filled=filled, otherwise=otherwise)
        # Of one sum with 0 for other rows and one without, two columns.
        name = self.figures.column(total if known is None else f"({total})", Role.MEASURE)
        there = both(every, f"({one}) <> 0")
        rows = f"count({chosen(there, '1')})" if before is None else f"sum({chosen(every, before.rows)})"
        self.figures.measures[name] = called
        self.figures.added[name] = Added(self.figures.column(rows), exact, known)
        if before is None:
            self.figures.bands[name] = self.scope.totals(measure)
        return name

    def _within_bounds(self, method: DifferentialPrivacy, measure: exp.Column, called: str) -> tuple[str, str]:
        """The SQL of a measure within its bounds, as a row counts; and what its sums are called."""
        low, high = method.ends_of(called)
        rows = self.scope.policy.privacy.contributions
        of_sums = sums_of(called)
        self.figures.declared[of_sums] = ends_of_unit(low, high, rows)
        return within_ends(f"CAST({text(measure)} AS DOUBLE)", low, high), of_sums

    def _known(
        self, condition: str, wanted: str, one: str, before: Added | None, *, filled: bool, otherwise: bool
    ) -> str | None:
        """The column with whether a sum is known, where the analyst wrote 0 for rows that do not count."""
        was = None if before is None else before.known
        if not (filled or otherwise or was is not None):
            return None
        there = "true" if filled else (was or f"{one} IS NOT NULL")
        if wanted != "true":
            there = f"CASE WHEN {wanted} THEN {there} ELSE {otherwise} END"
        return self.figures.column(f"count({chosen(both(condition, f'({there})'), '1')}) > 0")


def _queries(node: exp.Expr) -> list[exp.Expr]:
    """The outermost subqueries in an expression."""
    return [part for part in node.walk(prune=is_query) if is_query(part)]
