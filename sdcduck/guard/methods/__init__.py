"""The methods that can stand behind a protected aggregate: one module each, with one interface."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, Protocol, Self

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.guard.calls import Steps, Total
from sdcduck.guard.methods.checks import Checks


class Method(Protocol):
    """SQL of the protected aggregates.

    ``records`` is the alias of the records, ``condition`` what FILTER said, or ``true``. ``called`` is what the
    custodian calls a measure, whatever it is called in a query.

    Attributes:
        name: in `sdc_protect`.
        shows: what its numbers are to whoever sees them (`Origin.kind`).
        words: what is said beside them.
        from_cells: it answers from the inner cells of a publication, not from records.
        brings_together: the rows of a unit are brought together before there is noise.
        uses_ptables: its noise comes from the p-tables of the policy.
        clips: the largest contribution of a cell is bounded, so that single values need not be.
        sums: it answers sums of measures.
        quantiles: it answers their quantiles.
        groups_tell: that a group appears says that its records are published, so that groups may be counted.
        needs_all_groups: its numbers are exact, so that one that is made of what is published of groups is shown where
            none of them is hidden, and NULL else: it would be too small.
        checks: what is looked at before it answers.
    """

    name: ClassVar[str]
    shows: ClassVar[str]
    words: ClassVar[str]
    from_cells: ClassVar[bool]
    brings_together: ClassVar[bool]
    uses_ptables: ClassVar[bool]
    clips: ClassVar[bool]
    sums: ClassVar[bool]
    quantiles: ClassVar[bool]
    groups_tell: ClassVar[bool]
    needs_all_groups: ClassVar[bool]
    checks: ClassVar[type[Checks]]

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> Self:
        """The method of a unit-level table.

        Args:
            carried: it is for a subquery, which carries the hidden columns along as `CARRIED` and their place.
            several: whether a unit may have several rows.
        """

    @property
    def weighted(self) -> bool:
        """Whether figures may be added up, and measures times figures, by what is published for each figure."""

    @property
    def steps(self) -> Steps:
        """What its numbers are made of."""

    def source(self) -> str:
        """The table that answers: the records, or inner cells."""

    def hidden(self) -> tuple[str, ...]:
        """Columns that protection needs and analysts do not see."""

    def count(self, records: str, condition: str) -> str:
        """The number of records."""

    def rows(self, records: str, number: str) -> str:
        """The number of rows, where the records that are here have so many behind them: as of counting these."""

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The number of units, of one of their kinds where a policy has several."""

    def different(self, records: str, value: str, condition: str) -> str:
        """The number of different values, each of one unit."""

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """The sum of a measure; ``exact``: of whole or decimal numbers.

        Args:
            repeated: how many rows of its unit are in a value, on average, of those with a value that is not 0; empty
                where it is one.
            least: SQL, where it is not empty: there is noise as of a contribution of this size at least, and of all
                records that have a value, be it 0: it is for functions, of which none may come so near to 0 as to be
                shown.
        """

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """The variance of a measure among records."""

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """The value that this share of the records lies below."""

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value of a measure: what a mean divides by."""

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """A published sum or mean of records for which a condition holds, with 0 for others.

        NULL is made 0 where ``some``, the published number of all of them, is not 0: nothing is said that the two
        numbers do not say. Where NULL may also be a number that is hidden, it stays.
        """

    def kept(self, records: str) -> str:
        """Which groups appear, as a condition over aggregates."""


METHODS: dict[str, type[Method]] = {name: import_module(f"{__name__}.{name}").METHOD for name in catalog.METHODS}
"""By the name that `sdc_protect` takes, which is that of a module, too: each says which of its classes it is."""


def method_class(policy: Policy) -> type[Method]:
    """The method of a unit-level table; the policies that are read have one that there is."""
    return METHODS[str(policy.method)]
