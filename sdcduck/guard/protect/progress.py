"""What is known of a query while it is protected, and what was done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Numbered, unknown_name
from sdcduck.guard.protect.own_records import Tied
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Relation, Unique
from sdcduck.guard.worth import Terms


@dataclass
class Progress:
    """One query on its way: what is known of the database, and what was done.

    Attributes:
        policies: by lower-case name.
        columns: that analysts see of these tables.
        tables: the lower-case names of those that are no views.
        collated: whether DuckDB may take texts for one that differ.
        unit_expressions: expressions over single records, still to be checked by DuckDB's parser.
        unique: public relations with columns that must identify their rows, each time the query runs.
        notes: what was protected, for `Guard.explain`.
        counted: how many queries were made to count values; they stand inside each other.
        apart: how many relations were set apart from records.
        blocks: the policy of each SELECT that stands around protected numbers, by its identity.
        statistics: which each column of protected numbers is, of these SELECTs.
        numbers: the group keys and numbers of blocks, by the name of the table that stands for them until all is
            written: no name that a query could have.
        ties: what ties subqueries in EXISTS to the records around them, by their identity.
        subqueries: over units in WHERE, with their relations, by their identity.
        records: what stands in FROM for the records of a table, by its identity.
        looked_for: the policies of the records that units are looked for among, by the identity of the subquery.
        both: the columns of relations made of both sides of a FULL JOIN, as they were written, by alias and name.
        seen: the identities of the parts that were looked at.
        query: labels a query and protects what it aggregates, in place.
    """

    policies: Mapping[str, Policy]
    columns: Mapping[str, frozenset[str]]
    tables: frozenset[str]
    collated: bool = False
    unit_expressions: list[str] = field(default_factory=list)
    unique: list[Unique] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counted: int = 0
    apart: int = 0
    blocks: dict[int, Policy] = field(default_factory=dict)
    statistics: dict[int, dict[str, Terms]] = field(default_factory=dict)
    numbers: dict[str, Numbered] = field(default_factory=dict)
    ties: dict[int, Tied] = field(default_factory=dict)
    subqueries: dict[int, tuple[exp.Expr, Relation]] = field(default_factory=dict)
    records: dict[int, exp.Expr] = field(default_factory=dict)
    looked_for: dict[int, Policy] = field(default_factory=dict)
    both: dict[str, dict[str, exp.Column]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    query: Callable[[exp.Expr, Mapping[str, Relation]], Relation] = field(init=False)

    def of_units(self, query: exp.Expr) -> Relation | None:
        """The relation of a subquery over units in WHERE, which whoever asks has to take care of; None: it has none."""
        return self.subqueries.pop(id(query), (None, None))[1]

    def tied(self, query: exp.Expr) -> Tied | None:
        """What ties a subquery in EXISTS to the records around it; None: nothing does."""
        return self.ties.pop(id(query), None)

    def compared(self, where: exp.Expr) -> list[Relation]:
        """The relations of the subqueries over units in a WHERE."""
        return [self.subqueries[id(query)][1] for query in where.find_all(exp.Query) if id(query) in self.subqueries]

    def made(self, node: exp.Expr) -> None:
        """The guard wrote this part itself: it needs no look."""
        self.seen.update(id(part) for part in node.find_all(exp.Select, exp.Table))

    def as_written(self, select: exp.Select) -> None:
        """Name the columns of both sides of a FULL JOIN as whoever asks did, in place.

        Raises:
            Refused: the unit of whichever side is there, which is none of these.
        """
        while made := [column for column in select.find_all(exp.Column) if column.table in self.both]:
            for column in made:
                written = self.both[column.table].get(column.name)
                if written is None:
                    raise Refused("SDC052", "values beside the unit of either side of FULL JOIN")
                column.replace(written.copy())

    def numbered(self, numbers: Numbered) -> exp.Table:
        """The table that stands for the group keys and numbers of a block."""
        name = unknown_name()
        self.numbers[name] = numbers
        table = exp.Table(this=exp.to_identifier(name, quoted=True))
        self.made(table)
        return table

    def number(self) -> int:
        """Another number for what is set apart."""
        self.apart += 1
        return self.apart

    def made_around(self, select: exp.Select) -> None:
        """The guard wrote this SELECT around parts that were looked at."""
        self.seen.add(id(select))
