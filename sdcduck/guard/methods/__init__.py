"""The methods that can stand behind a protected aggregate: one module each, with one interface."""

from __future__ import annotations

from typing import Protocol

from sdcduck.catalog import Policy, identifier
from sdcduck.guard.methods import cell_key, rounding, suppression, threshold
from sdcduck.guard.refusals import Refused


class Method(Protocol):
    """SQL of the protected aggregates.

    ``records`` is the alias of the records, ``condition`` what FILTER said, or ``true``.
    """

    def source(self) -> str:
        """The table that answers: the records, or inner cells."""

    def hidden(self) -> tuple[str, ...]:
        """Columns that protection needs and analysts do not see."""

    def count(self, records: str, condition: str) -> str:
        """The number of records."""

    def units(self, records: str, condition: str) -> str:
        """The number of units."""

    def total(self, records: str, measure: str, condition: str) -> str:
        """The sum of a measure."""

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value of a measure: what a mean divides by."""

    def kept(self, records: str) -> str:
        """Which groups appear, as a condition over aggregates."""


def method_of(policy: Policy) -> Method:
    """The method of a unit-level table."""
    if policy.method == "cell_key":
        return cell_key.CellKey(policy)
    if policy.method == "suppression":
        return suppression.Suppression(policy)
    if policy.method == "threshold":
        return threshold.Threshold(policy)
    if policy.method == "rounding":
        return rounding.Rounding(policy)
    raise Refused("SDC052", f"method of {identifier(policy.name)}")
