"""Suppression: the inner cells of a publication answer, and show a number if it follows from published ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import parse_one

from sdcduck.catalog import Policy, stencil_table
from sdcduck.guard.calls import Steps, Total
from sdcduck.guard.expressions import bounded
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

_LARGEST = "1e27"  # of floating-point numbers, so that the sum of all cells is no overflow


@dataclass(frozen=True)
class Suppression:
    """Aggregates over the stencil table of a stored publication (see ``sql/suppression.sql``)."""

    policy: Policy
    stencil: str = "stencil"
    records: str = "_sdc_n"
    weighted: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)

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

    def units(self, records: str, condition: str) -> str:
        """The records, where they are the units."""
        if not self.policy.one_row_per_unit:
            raise Refused("SDC052", "count(DISTINCT unit)")
        return self.count(records, condition)

    def total(self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool) -> Total:
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
