"""Cell-key perturbation: the same records, the same noise, whatever query selects them."""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.catalog import Policy, identifier, literal


@dataclass(frozen=True)
class CellKey:
    """Aggregates that carry the sum of the record keys (see ``sql/perturbation.sql``)."""

    policy: Policy

    def source(self) -> str:
        """The records."""
        return identifier(self.policy.name)

    def hidden(self) -> tuple[str, ...]:
        """The record key, and the unit."""
        return (str(self.policy.record_key), str(self.policy.unit))

    def _key(self, records: str) -> str:
        return f"{records}.{identifier(str(self.policy.record_key))}"

    def count(self, records: str, condition: str) -> str:
        """``sdc_count``."""
        ptable = literal(str(self.policy.ptable))
        return f"sdc_count({self._key(records)}, ptable := {ptable}, filter := {condition})"

    def units(self, records: str, condition: str) -> str:
        """``sdc_count_units``; with one row a unit the same as the records."""
        if self.policy.one_row_per_unit:
            return self.count(records, condition)
        unit = f"{records}.{identifier(str(self.policy.unit))}"
        ptable = literal(str(self.policy.ptable))
        return f"sdc_count_units({unit}, {self._key(records)}, ptable := {ptable}, filter := {condition})"

    def total(self, records: str, measure: str, condition: str) -> str:
        """``sdc_sum``."""
        ptable = literal(str(self.policy.magnitude_ptable))
        return f"sdc_sum({measure}, {self._key(records)}, ptable := {ptable}, filter := {condition})"

    def known(self, records: str, measure: str, condition: str) -> str:
        """A published count: the sum over the original one would give the original count away."""
        return self.count(records, f"({condition}) AND {measure} IS NOT NULL")

    def kept(self, records: str) -> str:
        """Groups that are published as 0 do not appear, nor those of too few units."""
        unit = f"{records}.{identifier(str(self.policy.unit))}"
        few = f" AND count(DISTINCT {unit}) >= {self.policy.min_units}" if self.policy.min_units > 1 else ""
        return f"{self.units(records, 'true')} > 0{few}"
