"""Cell keys where a record is of units of several kinds, such as a person and a firm.

What is added up are the rows of the units of the first kind, among which each record is once. The noise is made of all
units: its key is the sum of the record keys of all of them, its size that of the largest contribution of any. So it is
another one without any person and without any firm, and never smaller than what either has.
"""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.guard.calls import chosen
from sdcduck.guard.methods.carried import SECOND
from sdcduck.guard.methods.cell_key import CellKey
from sdcduck.quoting import identifier, literal


@dataclass(frozen=True)
class CellKeyOfKinds(CellKey):
    """Units of all kinds, their rows brought together: each with its key, and with which of the kinds it is of."""

    def once(self, records: str, values: str) -> str:
        """The values of the units of the first kind."""
        return chosen(f"{self._kind(records)} = 0", values)

    def _kind(self, records: str) -> str:
        return f"{records}.{identifier(SECOND)}"

    def number(self, records: str, figure: str, kind: int) -> str:
        """Rows or units, of which each unit has so many: their sum over the units of one kind, with noise."""
        call, column, key = self.steps.call, self.steps.column, self._key(records)
        some, of = f"({figure}) > 0", self._kind(records)
        every = range(len(self.policy.kinds))
        behind = [call(f"count(CASE WHEN {of} = {place} AND {some} THEN 1 END)") for place in every]
        ones, keys = chosen(some, "1"), chosen(some, key)
        units = f"typeof({call(f'max({key})')}), {call(f'count({ones})')}, {call(f'count({keys})')}"
        added = call(f"sum(CASE WHEN {of} = {kind} THEN {figure} END)::BIGINT")
        fewest = column(1, f"least({', '.join(behind)})")
        rows = f"{call(f'sum({keys})')}, {added}, {call(f'max({figure})')}, {fewest}"
        tables = f"{literal(str(self.policy.ptable))}, {literal(str(self.policy.magnitude_ptable))}"
        return column(2, f"_sdc_stepped_rows_of_kinds({units}, {rows}, {tables}, {self._own_of_rows()})")
