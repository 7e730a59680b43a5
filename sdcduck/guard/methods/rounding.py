"""Rounding: counts to the nearest multiple of a base, the same for the same group; sums are not answered.

It hides one small count. Several answers about nearly the same records show where a count steps over an edge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sdcduck.catalog import Policy, identifier
from sdcduck.guard.calls import Steps, both, chosen
from sdcduck.guard.refusals import Refused


@dataclass(frozen=True)
class Rounding:
    """Counts rounded half up to `base`."""

    policy: Policy
    weighted: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)

    def source(self) -> str:
        """The records."""
        return identifier(self.policy.name)

    def hidden(self) -> tuple[str, ...]:
        """The unit."""
        return (str(self.policy.unit),)

    def _rounded(self, records: str, condition: str, count: str) -> str:
        base = self.policy.base
        rounded = f"({self.steps.call(count)} + {base // 2}) // {base} * {base}"
        if self.policy.min_units <= 1:
            return rounded
        # By the original number it would be NULL exactly when one person is not among them. Nobody is answered like too
        # few: a 0 beside NULLs would tell that there is somebody where there is NULL.
        return f"CASE WHEN {self._units(records, condition)} >= {self.policy.min_units} THEN {rounded} END"

    def _units(self, records: str, condition: str) -> str:
        """The rounded number of units."""
        base, unit = self.policy.base, f"{records}.{identifier(str(self.policy.unit))}"
        behind = self.steps.call(f"count(DISTINCT {chosen(condition, unit)})")
        return f"({behind} + {base // 2}) // {base} * {base}"

    def count(self, records: str, condition: str) -> str:
        """The number of records."""
        return self._rounded(records, condition, f"count({chosen(condition, '1')})")

    def units(self, records: str, condition: str) -> str:
        """The number of units."""
        unit = f"{records}.{identifier(str(self.policy.unit))}"
        return self._rounded(records, condition, f"count(DISTINCT {chosen(condition, unit)})")

    def total(self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool) -> str:
        """Refused: a sum is not protected by rounding it."""
        raise Refused("SDC052", "a sum or a mean: rounding answers counts")

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """Not answered."""
        raise Refused("SDC052", "a variance: rounding answers counts")

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered: it would be the value of a record."""
        raise Refused("SDC052", "a median or another quantile: rounding answers counts")

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value, rounded."""
        return self.count(records, both(condition, f"{measure} IS NOT NULL"))

    def kept(self, records: str) -> str:
        """Groups that are published as 0 do not appear, nor those of too few units."""
        return f"{self.units(records, 'true')} > 0"
