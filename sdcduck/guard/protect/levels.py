"""What is known without records of a SELECT over those of one table: which columns, and whether units have one row."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import conjuncts, has_aggregate, is_query
from sdcduck.guard.methods.dp import SUM_OF_ROWS, sums_of
from sdcduck.guard.protect.bands import is_asked_whether
from sdcduck.guard.protect.bins import is_binned, within
from sdcduck.guard.protect.days import step_of
from sdcduck.quoting import folded

PLACE = "_sdc_place"


@dataclass
class Level:
    """A SELECT over the records of one table, in which each has one row at most.

    Attributes:
        select: it.
        policy: of the table.
        alias: what its records are called.
        inner: the SELECT that they come from; None: they are the table itself.
        known: the lower-case names of columns that records without a row have, too.
        public: the aliases of public relations that can be joined without records.
        private: the lower-case names of columns that may be grouped by though nobody may know their values.
        beside: the aliases of public relations that are joined by these.
        measures: the measures of which comparisons with written numbers and steps are known, by their lower-case names:
            those of the policy, in lower case, too.
        units: the lower-case names of columns that say which unit a row is of.
        brings_together: whether this SELECT groups by the unit.
        single: whether there is one row of each unit, whose rows were brought together here or inside.
        moments: the same for dimensions of moments, of which days, hours and comparisons with written ones are known.
        places: what is made of all rows of a unit, by the aliases of the relations that have what it can be.
        over: items with columns of these in its place, by the identity of the item.
    """

    select: exp.Select
    policy: Policy
    alias: str
    inner: Level | None
    known: frozenset[str]
    public: set[str] = field(default_factory=set)
    private: frozenset[str] = frozenset()
    beside: set[str] = field(default_factory=set)
    measures: dict[str, str] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)
    units: frozenset[str] = frozenset()
    brings_together: bool = False
    single: bool = False
    places: dict[str, exp.Expr] = field(default_factory=dict)
    over: dict[int, exp.Expr] = field(default_factory=dict)

    @property
    def items(self) -> list[exp.Expr]:
        """What is shown, with places for what is made of all rows of a unit."""
        return [self.over.get(id(item), item) for item in self.select.expressions]

    def replace_by_places(self, item: exp.Expr, nodes: set[int]) -> None:
        """Write what is made of all rows of a unit as a column of a relation that has what it can be.

        Args:
            nodes: the identities of these in an item.
        """
        if not nodes:
            return
        made = item.copy()
        copies = list(made.walk(prune=is_query))
        for node, copied in zip(list(item.walk(prune=is_query)), copies, strict=True):
            if id(node) in nodes:
                alias = f"{PLACE}{len(self.places)}"
                self.places[alias] = node
                self.public.add(alias)
                copied.replace(exp.column(PLACE, alias, quoted=True))
        self.over[id(item)] = made

    def _knows_column(self, column: exp.Column) -> bool:
        if column.table != self.alias:
            return column.table in self.public
        if folded(column.name) in self.moments:
            return step_of(column) is not None
        return folded(column.name) in self.known or (
            self.is_measure(column) and (is_binned(column) or (is_asked_whether(column) and within(column) is None))
        )

    def is_moment(self, column: exp.Column) -> bool:
        """Whether this is a moment as the table has it."""
        return column.table == self.alias and folded(column.name) in self.moments

    def is_measure(self, column: exp.Column) -> bool:
        """Whether this is a measure as the table has it."""
        return column.table == self.alias and folded(column.name) in self.measures

    def knows(self, node: exp.Expr) -> bool:
        """Whether an expression can be worked out without records."""
        return all(map(self._knows_column, columns_of(node)))

    def unknown(self, node: exp.Expr) -> exp.Column | None:
        """A column of an expression that is not known without records, and may not be grouped by in spite of that."""
        return next((column for column in columns_of(node) if not self.may_group(column)), None)

    def may_group(self, node: exp.Expr) -> bool:
        """Whether an expression is known without records, or groups that nobody may know may be made of it."""
        return all(
            self._knows_column(column)
            or (folded(column.name) in self.private if column.table == self.alias else column.table in self.beside)
            for column in columns_of(node)
        )

    @property
    def is_known(self) -> bool:
        """Whether all conditions can be looked at without records."""
        where = self.select.args.get("where")
        return where is None or self.knows(where.this)

    def conditions(self) -> list[exp.Expr]:
        """Those of WHERE that can be looked at without records."""
        where = self.select.args.get("where")
        return [part for part in (conjuncts(where.this) if where is not None else []) if self.knows(part)]


def columns_of(node: exp.Expr) -> list[exp.Column]:
    """The columns in an expression, but for those in subqueries: these are of public tables alone."""
    return [part for part in node.walk(prune=is_query) if isinstance(part, exp.Column)]


def shown_measures(select: exp.Select, alias: str, measures: dict[str, str]) -> dict[str, str]:
    """The measures of what a SELECT reads that it shows as they are, by the names that they have there."""
    shown = [(item.alias_or_name, item.unalias()) for item in select.expressions]
    return {
        folded(name): measures[folded(column.name)]
        for name, column in shown
        if isinstance(column, exp.Column) and column.table == alias and folded(column.name) in measures
    }


def shown_moments(level: Level) -> dict[str, str]:
    """The moments of what a SELECT shows, as they are, or the first and the last of each unit, by their names there."""
    found = shown_measures(level.select, level.alias, level.moments)
    for item in level.select.expressions if level.brings_together else []:
        node = item.unalias()
        if isinstance(node, (exp.Min, exp.Max)) and isinstance(node.this, exp.Column) and level.is_moment(node.this):
            found[folded(item.alias_or_name)] = level.moments[folded(node.this.name)]
    return found


def shown_sums(select: exp.Select, alias: str, measures: dict[str, str], policy: Policy) -> dict[str, str]:
    """The sums of a measure that units have, by the names that they have, and what they are called."""
    found, bounds = {}, bounds_of(policy)
    for item in select.expressions if select.args.get("group") is not None else []:
        columns = [column for column in columns_of(item) if column.table == alias and folded(column.name) in measures]
        called = {folded(sums_of(measures[folded(column.name)])) for column in columns}
        if len(called) == 1 and _is_sum(item) and called <= bounds.keys():
            found[folded(item.alias_or_name)] = called.pop()
    return found


def _is_sum(node: exp.Expr) -> bool:
    return any(one.name == SUM_OF_ROWS for one in node.find_all(exp.Anonymous))


def bounds_of(policy: Policy) -> dict[str, tuple[float, float]]:
    return {folded(name): (ends[0], ends[1]) for name, ends in policy.bounds}


def is_unit_of(level: Level, node: exp.Expr) -> bool:
    """Whether this is a column that says which unit a row is of."""
    return isinstance(node, exp.Column) and node.table == level.alias and folded(node.name) in level.units


def shown_units(level: Level) -> frozenset[str]:
    """The columns that a SELECT shows which say what unit a row is of; of one unit that is the largest, too."""

    def is_of_unit(node: exp.Expr) -> bool:
        of_rows = level.brings_together and isinstance(node, exp.Max)
        return is_unit_of(level, node.this if of_rows else node)

    return frozenset(folded(item.alias_or_name) for item in level.select.expressions if is_of_unit(item.unalias()))


def is_known_of_units(level: Level, node: exp.Expr) -> bool:
    """Whether it is known without records which values there may be of what a SELECT shows."""
    if not level.brings_together or not has_aggregate(node):
        return level.knows(node)
    return isinstance(node, (exp.Count, exp.CountIf)) or (isinstance(node, _ONE_OF) and level.knows(node))


_ONE_OF = (exp.Max, exp.Min, exp.AnyValue)
"""Aggregates whose result is one of the values, or NULL."""
