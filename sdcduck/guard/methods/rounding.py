"""Rounding: counts to a multiple of a base, at random and without bias; sums are not answered.

Which of the two multiples it becomes is up to the keys of the records, as with `sdc_rounding_ptable`: the same records
are always rounded the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Steps, Total, both, chosen, zero_where_none
from sdcduck.guard.methods.carried import FIRST, SECOND, carried_along
from sdcduck.guard.methods.checks import Checks
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import identifier

if TYPE_CHECKING:
    from sdcduck.guard.methods import Method


@dataclass(frozen=True)
class Rounding:
    """Counts rounded to multiples of `base`."""

    name: ClassVar[str] = "rounding"
    shows: ClassVar[str] = "rounded"
    words: ClassVar[str] = "rounded"
    from_cells: ClassVar[bool] = False
    brings_together: ClassVar[bool] = False
    uses_ptables: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    sums: ClassVar[bool] = False
    quantiles: ClassVar[bool] = False
    groups_tell: ClassVar[bool] = True
    needs_all_groups: ClassVar[bool] = False
    checks: ClassVar[type[Checks]] = Checks

    policy: Policy
    weighted: bool = True
    steps: Steps = field(default_factory=Steps, compare=False)

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> Rounding:
        """For a table, or for a subquery that carries the hidden columns along."""
        if policy.record_key is None:
            raise Refused("SDC060", f"{policy.name}: it was protected before rounding was random, sdc_protect")
        policy = replace(policy, one_row_per_unit=not several)
        return cls(carried_along(policy, record_key=FIRST, unit=SECOND) if carried else policy)

    def source(self) -> str:
        """The records."""
        return identifier(self.policy.name)

    def hidden(self) -> tuple[str, ...]:
        """The record key, and the unit."""
        return (str(self.policy.record_key), str(self.policy.unit))

    def _enough(self, records: str, condition: str, value: str) -> str:
        """NULL where the rounded number of units is below `min_units`.

        By the original number it would be NULL exactly when one person is not among them. Nobody is answered like too
        few: a 0 beside NULLs would tell that there is somebody where there is NULL.
        """
        if self.policy.min_units <= 1:
            return value
        return f"CASE WHEN {self._rounded_units(records, condition)} >= {self.policy.min_units} THEN {value} END"

    def _rounded(self, number: str, keys: str) -> str:
        return f"_sdc_randomly_rounded({self.steps.call(number)}, {self.steps.call(keys)}, {self.policy.base})"

    def _rounded_rows(self, records: str, condition: str) -> str:
        return self._rounded(f"count({chosen(condition, '1')})", f"sum({chosen(condition, self._key(records))})")

    def _rounded_units(self, records: str, condition: str) -> str:
        if self.policy.one_row_per_unit:
            return self._rounded_rows(records, condition)
        unit = f"{records}.{identifier(str(self.policy.unit))}"
        # Two units may share a key, and both count: else this were another number than that of one row for each unit.
        keys = f"_sdc_unit_number({unit}, {self._key(records)}, 8, 100000000)"
        return self._rounded(f"count(DISTINCT {chosen(condition, unit)})", f"sum(DISTINCT {chosen(condition, keys)})")

    def _key(self, records: str) -> str:
        return f"{records}.{identifier(str(self.policy.record_key))}"

    def count(self, records: str, condition: str) -> str:
        """The number of records."""
        return self._enough(records, condition, self._rounded_rows(records, condition))

    def rows(self, records: str, number: str) -> str:
        """The sum of the rows, rounded as each of them brings its key along."""
        added = f"coalesce(sum({number}), 0)::BIGINT"
        keys = f"sum({number} * {self._key(records)}::HUGEINT)"
        return self._enough(records, f"{number} > 0", self._rounded(added, keys))

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The number of units."""
        return self._enough(records, condition, self._rounded_units(records, condition))

    def different(self, records: str, value: str, condition: str) -> str:
        """The number of different values, each of one unit: rounded as that of a table with one record for each."""
        if self.policy.one_row_per_unit:
            return self.count(records, both(condition, f"{value} IS NOT NULL"))
        known = both(condition, f"{value} IS NOT NULL")  # who has none brings no key along
        keys = f"_sdc_unit_number({value}, {self._key(records)}, 8, 100000000)"
        counted, key = f"count(DISTINCT {chosen(known, value)})", f"sum(DISTINCT {chosen(known, keys)})"
        return self._enough(records, known, self._rounded(counted, key))

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """Refused: a sum is not protected by rounding it."""
        raise Refused("SDC052", "a sum or a mean: rounding answers counts")

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """Not answered."""
        raise Refused("SDC052", "a variance: rounding answers counts")

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered: it would be the value of a record."""
        raise Refused(
            "SDC052",
            "a median or another quantile of a measure; of dimensions they are answered: rounding answers counts",
        )

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value, rounded."""
        return self.count(records, both(condition, f"{measure} IS NOT NULL"))

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """0 where nobody is published who has a figure; with `min_units` that is hidden as few are."""
        return zero_where_none(value, some, self.policy.min_units)

    def kept(self, records: str) -> str:
        """Groups that are published as 0 do not appear, nor those of too few units."""
        return f"{self.units(records, 'true')} > 0"


METHOD: type[Method] = Rounding
