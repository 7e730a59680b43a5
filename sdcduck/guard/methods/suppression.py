"""Suppression: the inner cells of a publication answer, and show a number if it follows from published ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import duckdb
from sqlglot import parse_one

from sdcduck import catalog
from sdcduck.catalog import Policy, stencil_table
from sdcduck.errors import SDCError
from sdcduck.guard.allowed import WORDS_OF_TIME
from sdcduck.guard.calls import Steps, Total
from sdcduck.guard.expressions import bounded
from sdcduck.guard.methods.carried import FIRST, SECOND
from sdcduck.guard.methods.checks import Checks, Facts
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.publication import Publication, digest_query, read_publication

if TYPE_CHECKING:
    from sdcduck.guard.methods import Method

_LARGEST = "1e27"  # of floating-point numbers, so that the sum of all cells is no overflow


class _Publications(Checks):
    """The publication of a policy is of the data as they are."""

    def __init__(self) -> None:
        self._publications: dict[str, Publication] = {}
        self._up_to_date: set[str] = set()

    def of_records(self, facts: Facts, policy: Policy, rows: int) -> None:
        """Refuse to answer from a publication that counts other records than a table has.

        Raises:
            Refused: it does.
        """
        other = f"{policy.name}: its publication is not of these data, sdc_publish"
        counted = f"SELECT coalesce(sum({identifier(str(policy.count_column))}), 0)::BIGINT"
        if facts.value(f"{counted} FROM {stencil_table(str(policy.publication))}", other) != rows:
            raise Refused("SDC060", other)

    def each_time(self, facts: Facts, policy: Policy) -> None:
        """Refuse to answer from a publication that is not of the data as they are now, or has other columns by now.

        DuckDB has no number that changes with every write and is cheaper to look up: the fingerprint is compared for
        each question, and once where nobody can change the data.
        """
        name = str(policy.publication)
        if name in self._up_to_date:
            return
        other = f"{policy.name}: its publication is not of these data, sdc_publish"
        columns = f"{policy.name}: its publication has other columns, sdc_protect"
        try:
            with facts.alone:
                stored = catalog.publication(facts.con, name)
                known = self._publications.get(stored.query)
                if known is None:
                    known = self._publications[stored.query] = read_publication(facts.con, stored.query)
        except (SDCError, duckdb.CatalogException):
            raise Refused("SDC060", other) from None
        kinds = {kind: {one.name for one in known.measures if one.kind == kind} for kind in ("count", "sum")}
        if (
            not kinds["sum"].issuperset(policy.measures)
            or not set(policy.dimensions).issubset(known.dimensions)
            or policy.count_column not in kinds["count"]
            or not WORDS_OF_TIME.isdisjoint(map(folded, {*known.dimensions, *kinds["count"], *kinds["sum"]}))
        ):
            raise Refused("SDC060", columns)
        needed = ", ".join(map(identifier, (*policy.dimensions, *policy.measures, str(policy.count_column), "stencil")))
        facts.value(f"SELECT count(*) FROM (SELECT {needed} FROM {stencil_table(name)} LIMIT 0)", other)
        with facts.alone:
            stencil = catalog.stencil_digest(facts.con, stored.name)
        digests = [(digest_query(known), stored.fingerprint)]
        if stencil is not None:
            digests.append((catalog.stencil_digest_query(stored.name, known.columns), stencil))
        now = " || '; ' || ".join(f"({query})" for query, _ in digests)
        if facts.value(f"SELECT {now}", other) != "; ".join(str(kept) for _, kept in digests):
            raise Refused("SDC060", other)
        if facts.unchanging and facts.is_unchanging(stored.query):
            self._up_to_date.add(name)

    def is_settled(self, policy: Policy) -> bool:
        """Whether the publication cannot be of other data any more."""
        return policy.publication in self._up_to_date


@dataclass(frozen=True)
class Suppression:
    """Aggregates over the stencil table of a stored publication (see ``sql/suppression.sql``)."""

    name: ClassVar[str] = "suppression"
    shows: ClassVar[str] = "exact"
    words: ClassVar[str] = "what follows from the publication"
    from_cells: ClassVar[bool] = True
    brings_together: ClassVar[bool] = False
    uses_ptables: ClassVar[bool] = False
    clips: ClassVar[bool] = True
    sums: ClassVar[bool] = True
    quantiles: ClassVar[bool] = False
    groups_tell: ClassVar[bool] = True
    needs_all_groups: ClassVar[bool] = False
    checks: ClassVar[type[Checks]] = _Publications

    policy: Policy
    stencil: str = "stencil"
    records: str = "_sdc_n"
    weighted: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> Suppression:
        """For a table, or for a subquery that carries the hidden columns along."""
        return cls(policy, FIRST, SECOND) if carried else cls(policy)

    def source(self) -> str:
        """The inner cells, with original numbers and the stencil."""
        count = identifier(str(self.policy.count_column))
        return f"(SELECT *, {count} AS _sdc_n FROM {stencil_table(str(self.policy.publication))})"

    def hidden(self) -> tuple[str, ...]:
        """The stencil."""
        return (self.stencil, self.records)

    def count(self, records: str, condition: str) -> str:
        """``sdc_open_count``."""
        return self.steps.call(
            f"sdc_open_count({records}.{self.records}, {records}.{self.stencil}, filter := {condition})"
        )

    def rows(self, records: str, number: str) -> str:
        """Not answered: inner cells have no units."""
        raise Refused("SDC052", "rows of each unit")

    def different(self, records: str, value: str, condition: str) -> str:
        """Not answered: inner cells have no units."""
        raise Refused("SDC052", "what belongs to one unit each")

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The records, where they are the units."""
        if not self.policy.one_row_per_unit:
            raise Refused("SDC052", "count(DISTINCT unit)")
        return self.count(records, condition)

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """``sdc_open_sum``; of floating-point numbers in four decimals, as integers.

        Added up as they are, what is rounded on the way is up to each of them: the last digits of sums with other cells
        would tell of two suppressed cells what their sum does not.
        """
        stencil = f"{records}.{self.stencil}"
        if exact:
            return Total(self.steps.call(f"sdc_open_sum({measure}, {stencil}, filter := {condition})"))
        whole = f"CAST(round({bounded(measure, _LARGEST)} * 1e4) AS HUGEINT)"
        return Total(self.steps.call(f"CAST(sdc_open_sum({whole}, {stencil}, filter := {condition}) AS DOUBLE) / 1e4"))

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """Not answered."""
        raise Refused("SDC052", "variance")

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered: it would be the value of a record."""
        raise Refused("SDC052", "a median or another quantile")

    def known(self, records: str, measure: str, condition: str) -> str:
        """The records, where all of them have a value; inner cells do not say how many have."""
        name = parse_one(measure, read="duckdb").name
        if folded(name) not in {folded(complete) for complete in self.policy.complete}:
            raise Refused("SDC052", "count and avg of a measure with missing values")
        return self.count(records, condition)

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """0 where the sum is open and has no inner cells, which anybody sees; NULL where it is suppressed."""
        return f"CASE WHEN {self.count(records, condition)} >= 0 AND {some} > 0 THEN coalesce({value}, 0) END"

    def kept(self, records: str) -> str:
        """Every group that has inner cells."""
        return "true"


METHOD: type[Method] = Suppression
