"""Labels: what each relation of a query is, and what its columns are good for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from sdcduck.catalog import Policy
from sdcduck.catalog.relations import Limits, total_of
from sdcduck.quoting import folded, identifier

RAW = "raw"
"""The method of relations that are shown as they are to whoever may see the records themselves (`Guard`)."""


@dataclass(frozen=True)
class Unique:
    """What must hold of a relation so that each record finds one row of it at most.

    Attributes:
        source: the SQL of the relation.
        columns: those that are joined by equality, of each the name and the SQL.
        interval: the SQL of a lower and an upper border, where a value is looked up between them.
        meet: whether one interval may end where another begins; not where both have that border.
        groups: the name and the SQL of columns that are group keys. Where rows differ in these, a record may find
            several of them, one at most in each group.
    """

    source: str
    columns: tuple[tuple[str, str], ...]
    interval: tuple[str, str] | None = None
    meet: bool = True
    groups: tuple[tuple[str, str], ...] = ()

    def in_groups(self, written: str = "{}") -> str | None:
        """The SQL that finds out whether the rows differ in their groups; None: no group keys are theirs.

        Args:
            written: how columns are compared.
        """
        columns = [written.format(column) for _, column in self.groups]
        return _one_of_each(self.source, columns) if columns else None

    def query(self, written: str = "{}") -> str:
        """The SQL that finds out whether it holds.

        An interval without a border finds nothing, and neither does an empty one.

        Args:
            written: how columns are compared.
        """
        columns = [written.format(column) for _, column in self.columns]
        if self.interval is None:
            return _one_of_each(self.source, columns)
        listed = ", ".join(columns)
        low, high = self.interval
        filled, follows = ("<", "<=") if self.meet else ("<=", "<")
        of_each = f"PARTITION BY {listed} " if listed else ""
        before = f"max(_high) OVER ({of_each}ORDER BY _low, _high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        rows = f"SELECT *, {low} AS _low, {high} AS _high FROM {self.source}"
        return (
            f"SELECT coalesce(bool_and(coalesce(_before {follows} _low, true)), true) "
            f"FROM (SELECT _low, {before} AS _before FROM ({rows}) WHERE _low {filled} _high)"
        )


def _one_of_each(source: str, columns: Sequence[str]) -> str:
    """The SQL that finds out whether no two rows have the same values; without columns, whether there is one row."""
    by = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT coalesce(max(n), 0) <= 1 FROM (SELECT count(*) AS n FROM {source}{by})"


class Label(Enum):
    """What a relation holds."""

    PUBLIC = "public"
    RELEASED = "released"
    UNIT = "unit-level"


class Role(Enum):
    """What a column of unit-level records is good for."""

    DIMENSION = "dimension"
    MEASURE = "measure"
    UNIT = "unit"
    OTHER = "unit of another kind"
    COMPUTED = "computed"


@dataclass(frozen=True)
class Added:
    """What a measure is that was added up for each unit.

    Published, it gets the noise that the sum of all the rows behind it gets: with noise of its own there would be two
    answers to one question.

    Attributes:
        rows: the column with the number of rows behind it that are not 0.
        exact: whether it is of whole or decimal numbers.
        known: the column with whether it is a number for the analyst, who wrote 0 for rows that do not count. It is
            NULL where none counts: with 0 for everybody, all units would be behind the sum of it.
    """

    rows: str
    exact: bool
    known: str | None = None


@dataclass(frozen=True)
class Relation:
    """A labelled relation.

    Attributes:
        label: public, released or unit-level.
        columns: their lower-case names.
        roles: of the columns, for unit-level relations.
        measures: what the custodian calls the columns that are measures.
        added: of those that were added up for each unit, what they are.
        policy: of the table that unit-level records come from.
        table: its name in the database, where the relation is a table and not a query.
        rows_of: the tables of which a unit may have several rows in it, each as often as these were joined with others.
        tables: whose records are its rows; set operations may not repeat them.
        missing: columns of units that have none in some rows, as behind LEFT JOIN.
        identified_by: columns that tell its rows apart, where it is released and that is known: its group keys.
        hides_few: whether groups of few units are missing in it like those of nobody, where it is released.
        one_row: whether it has one row, whatever the records are: an answer without GROUP BY.
        source: SQL that stands for it in a query of its own, if it is public and needs nothing around it.
        counts: columns that say how many rows of its unit a row stands for. No row is behind two of them, so that a
            sum of them is a number of rows.
        bounds: of measures that are values of records, what the custodian declared that they are between.
        bands: of such measures, the declared borders.
        totals: the declared borders of what units have of such measures together.
        others: columns of units of another kind than the first: which of the kinds of the policy.
        owned: columns of what belongs to one unit, such as an order of a customer.
        identifying: those of them that each record had another value of when the policy was declared.
    """

    label: Label
    columns: frozenset[str]
    roles: dict[str, Role] = field(default_factory=dict)
    policy: Policy | None = None
    table: str | None = None
    rows_of: tuple[str, ...] = ()
    tables: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    source: str | None = None
    identified_by: frozenset[str] = frozenset()
    hides_few: bool = False
    one_row: bool = False
    measures: dict[str, str] = field(default_factory=dict)
    added: dict[str, Added] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    bounds: dict[str, tuple[float, ...]] = field(default_factory=dict)
    bands: dict[str, tuple[float, ...]] = field(default_factory=dict)
    totals: dict[str, tuple[float, ...]] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    identifying: frozenset[str] = frozenset()

    @property
    def several(self) -> bool:
        """Whether a unit may have several rows."""
        return bool(self.rows_of)


def of_policy(policy: Policy, columns: frozenset[str], *, is_table: bool) -> Relation:
    """The relation that a policy declares, with the columns that analysts see.

    Args:
        is_table: it is no view, whose expressions could fail for some rows.
    """
    if policy.label == "public":
        table = policy.name if is_table else None
        return Relation(Label.PUBLIC, columns, table=table, source=identifier(policy.name))
    roles = {folded(name): Role.DIMENSION for name in policy.dimensions}
    roles |= {folded(name): Role.MEASURE for name in policy.measures}
    if policy.unit is not None:
        roles[folded(policy.unit)] = Role.UNIT
    others = {folded(kind.unit): place for place, kind in enumerate(policy.kinds) if place}
    roles |= dict.fromkeys(others, Role.OTHER)
    measures = {folded(name): folded(name) for name in policy.measures}
    rows_of = () if policy.one_row_per_unit else (folded(policy.name),)
    bounds, bands = (
        {folded(name): numbers for name, numbers in limits if folded(name) in measures}
        for limits in (policy.bounds, policy.bands)
    )
    totals = {folded(name): numbers for name, numbers in _of_totals(policy)}
    return Relation(
        Label.UNIT, columns, roles, policy, policy.name, rows_of, frozenset([folded(policy.name)]),
        measures=measures, bounds=bounds, bands=bands, totals=totals, others=others,
        owned=frozenset(folded(name) for name, _ in policy.owned),
        identifying=frozenset(map(folded, policy.identifying)),
    )  # fmt: skip


def _of_totals(policy: Policy) -> Limits:
    """The borders of what a unit has of measures. One called 'sum(cost)' has those that are declared by this name."""
    declared = {folded(name): numbers for name, numbers in policy.bands}
    measures = {folded(name): name for name in policy.measures}
    return tuple(
        (name, declared[total])
        for lower, name in measures.items()
        if (total := total_of(lower)) in declared and total not in measures
    )


def about(policy: Policy) -> str:
    """What analysts are told of a table."""
    if policy.method == RAW:
        return "raw: the records as they are"
    return "public" if policy.label == "public" else "protected: counts and sums only"


def use_of(policy: Policy, column: str) -> str:
    """What analysts are told of a column: what it may be used for."""
    if policy.label == "public":
        return policy.method or "public"
    lower = folded(column)
    if lower in map(folded, policy.identifiers):
        return f"unit: count(DISTINCT {column})"
    if lower in [folded(name) for name in policy.measures]:
        said = ["measure: sum and avg"]
        for kind, limits, name in (
            ("bounds", policy.bounds, lower),
            ("bands at", policy.bands, lower),
            ("bands of the total of a unit at", _of_totals(policy), lower),
        ):
            numbers = {folded(limited): numbers for limited, numbers in limits}.get(name, ())
            if numbers:
                said.append(f"{kind} {', '.join(f'{number:.15g}' for number in numbers)}")
        return "; ".join(said)
    return "dimension: group by it, filter on it"
