"""A threshold: original numbers, of groups with enough units. No protection against differences of two answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Steps, Total, both, chosen, zero_where_none
from sdcduck.guard.methods.carried import CARRIED, FIRST
from sdcduck.guard.methods.checks import Checks
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import identifier

if TYPE_CHECKING:
    from sdcduck.guard.methods import Method


@dataclass(frozen=True)
class Threshold:
    """Each aggregate is NULL where fewer than `min_units` units stand behind it."""

    name: ClassVar[str] = "threshold"
    shows: ClassVar[str] = "exact"
    words: ClassVar[str] = "groups of enough units only"
    from_cells: ClassVar[bool] = False
    brings_together: ClassVar[bool] = False
    uses_ptables: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    sums: ClassVar[bool] = True
    quantiles: ClassVar[bool] = False
    groups_tell: ClassVar[bool] = True
    needs_all_groups: ClassVar[bool] = True
    checks: ClassVar[type[Checks]] = Checks

    policy: Policy
    weighted: bool = True
    steps: Steps = field(default_factory=Steps, compare=False)

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> Threshold:
        """For a table, or for a subquery that carries the hidden columns along."""
        policy = replace(policy, one_row_per_unit=not several and not policy.kinds)
        if not carried:
            return cls(policy)
        kinds = tuple(replace(kind, unit=f"{CARRIED}{place}") for place, kind in enumerate(policy.kinds))
        return cls(replace(policy, unit=FIRST, kinds=kinds))

    def source(self) -> str:
        """The records."""
        return identifier(self.policy.name)

    def hidden(self) -> tuple[str, ...]:
        """The units of each kind."""
        return self.policy.identifiers

    @property
    def hides_few(self) -> bool:
        """Whether there is a threshold at all."""
        return any(units > 1 for units in [kind.min_units for kind in self.policy.kinds] or [self.policy.min_units])

    def _enough(self, records: str, condition: str, value: str) -> str:
        enough = self._are_enough(records, condition)
        if not self.hides_few:
            return self.steps.call(value)  # every number as it is, also of nobody
        return f"CASE WHEN {enough} THEN {self.steps.call(value)} END"

    def _counts_only(self, added: str | None = None) -> None:
        """Refuse numbers that tell more than how many there are, where the sequence of answers is limited to counts.

        Args:
            added: what is added up for each record alone; None: something else.

        Raises:
            Refused: it is.
        """
        if self.policy.sequence.mode == "rank" and added is not None:
            self.steps.added[added] = None
        elif self.policy.sequence.holds:
            raise Refused("SDC071", "anything but counts")

    def _are_enough(self, records: str, condition: str) -> str:
        """Whether there are enough units of each kind."""
        self.steps.counted[condition] = None
        least = [kind.min_units for kind in self.policy.kinds] or [self.policy.min_units]
        behind = [self.steps.call(self._number(records, condition, place)) for place in range(len(least))]
        return " AND ".join(f"{number} >= {units}" for number, units in zip(behind, least, strict=True))

    def _number(self, records: str, condition: str, kind: int) -> str:
        unit = f"{records}.{identifier(self.policy.identifiers[kind])}"
        one = chosen(condition, unit)  # where each unit has one row, there is none to be found twice
        return f"count({one})" if self.policy.one_row_per_unit else f"count(DISTINCT {one})"

    def count(self, records: str, condition: str) -> str:
        """The number of records."""
        return self._enough(records, condition, f"count({chosen(condition, '1')})")

    def rows(self, records: str, number: str) -> str:
        """The sum of the rows, where enough units have any."""
        self._counts_only()
        if self.policy.min_units <= 1:
            return self.steps.call(f"sum({number})::BIGINT")
        return self._enough(records, f"{number} > 0", f"sum({number})::BIGINT")

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The number of units."""
        return self._enough(records, condition, self._number(records, condition, kind))

    def different(self, records: str, value: str, condition: str) -> str:
        """The number of different values, each of one unit, where enough units have one."""
        if self.policy.one_row_per_unit:
            return self.count(records, both(condition, f"{value} IS NOT NULL"))
        self._counts_only()
        counted = f"count(DISTINCT {chosen(condition, value)})"
        return self._enough(records, both(condition, f"{value} IS NOT NULL"), counted)

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """The sum, where enough units have a value; the order of records must not show in its last digits."""
        self._counts_only(measure)
        known = both(condition, f"{measure} IS NOT NULL")
        values = chosen(condition, measure)
        return Total(self._enough(records, known, f"sum({values})" if exact else f"_sdc_sum_in_any_order({values})"))

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """The variance, where enough units have a value; added up in the order of the values, see `total`."""
        self._counts_only(measure)
        known = both(condition, f"{measure} IS NOT NULL")
        values = chosen(condition, measure)
        return self._enough(records, known, f"var_samp({values} ORDER BY {values})")

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered: it would be the value of a record."""
        raise Refused("SDC052", "a median or another quantile of a measure; of dimensions they are answered")

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value."""
        return self.count(records, both(condition, f"{measure} IS NOT NULL"))

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """NULL for nobody as for few: 0 beside NULL would tell which of the small groups are empty."""
        return zero_where_none(value, some, self.policy.min_units)

    def kept(self, records: str) -> str:
        """Groups with enough units."""
        return self._are_enough(records, "true")


METHOD: type[Method] = Threshold
