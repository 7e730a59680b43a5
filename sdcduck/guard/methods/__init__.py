"""The methods that can stand behind a protected aggregate: one module each, with one interface."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Steps, Total
from sdcduck.guard.methods import cell_key, rounding, suppression, threshold
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import identifier


class Method(Protocol):
    """SQL of the protected aggregates.

    ``records`` is the alias of the records, ``condition`` what FILTER said, or ``true``. ``called`` is what the
    custodian calls a measure, whatever it is called in a query.
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

    def units(self, records: str, condition: str) -> str:
        """The number of units."""

    def total(self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool) -> Total:
        """The sum of a measure; ``exact``: of whole or decimal numbers.

        Args:
            repeated: how many rows of its unit are in a value, on average, of those with a value that is not 0; empty
                where it is one.
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


CARRIED = "_sdc_h"
"""What hidden columns are called when a subquery carries them along; no analyst's column may be called so."""


def method_of(policy: Policy, *, carried: bool, several: bool) -> Method:
    """The method of a unit-level table, for the table itself or for a subquery that carries its hidden columns.

    Args:
        several: whether a unit may have several rows.
    """
    first, second = (f"{CARRIED}{place}" for place in (0, 1))
    if policy.method == "cell_key":
        return cell_key.CellKey(_carried(policy, record_key=first, unit=second) if carried else policy)
    if policy.method == "suppression":
        return suppression.Suppression(policy, first, second) if carried else suppression.Suppression(policy)
    if policy.method == "threshold":
        return threshold.Threshold(replace(policy, unit=first) if carried else policy)
    if policy.method == "rounding":
        if policy.record_key is None:
            raise Refused("SDC060", f"{policy.name}: it was protected before rounding was random, sdc_protect")
        policy = replace(policy, one_row_per_unit=not several)
        return rounding.Rounding(_carried(policy, record_key=first, unit=second) if carried else policy)
    raise Refused("SDC052", f"method of {identifier(policy.name)}")


def _carried(policy: Policy, **changes: Any) -> Policy:
    """A policy for a subquery, in which a column may be another than that of the table."""
    return replace(policy, **changes, without_null=frozenset(), without_zero=frozenset())


def cell_key_of_units(policy: Policy) -> cell_key.CellKey:
    """The method for records that are units: their rows brought together, with the hidden columns carried along."""
    first, second = (f"{CARRIED}{place}" for place in (0, 1))
    return cell_key.CellKey(_carried(policy, record_key=first, unit=second, one_row_per_unit=True))
