"""The protected SQL of what is counted and added up, where a record is of units of several kinds.

::

    SELECT sector, count(*) FROM jobs GROUP BY sector  -- of persons and firms

    SELECT sector, <sum of _v0 of persons, with the keys of all and the largest _v0 of any>
    FROM (SELECT sector, <key of the unit>, <its kind>, count(1) AS _v0 FROM jobs
          GROUP BY sector, GROUPING SETS ((person_id), (firm_id))) GROUP BY sector
"""

from __future__ import annotations

from collections.abc import Sequence

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Total, both, chosen
from sdcduck.guard.methods.cell_key_of_kinds import CellKeyOfKinds
from sdcduck.guard.protect.numbers import UNITS, OfUnits
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import identifier

_UNITS = identifier(UNITS)
_ALONE = "where units are of several kinds: what one of them has in it is not known"


class OfKinds(OfUnits):
    """Under cell keys: figures of each unit of each kind, then protected figures of these.

    Args:
        units: SQL of the units of each kind, over records.
    """

    method: CellKeyOfKinds

    def __init__(self, policy: Policy, units: Sequence[str]) -> None:
        super().__init__(policy)
        self.method = CellKeyOfKinds.of_units(policy)
        self._units = units

    def _number(self, condition: str, kind: int) -> str:
        """The published number of units of a kind, whatever it is.

        To a unit of another kind belong as many of them as are gone without it.
        """
        figure = self._column(f"count(DISTINCT {chosen(condition, self._units[kind])})")
        return self.method.number(_UNITS, figure, kind)

    def _are_enough(self, condition: str) -> str:
        """Whether enough units of each kind are published."""
        kinds = self.method.policy.kinds
        return " AND ".join(f"{self._number(condition, place)} >= {kind.min_units}" for place, kind in enumerate(kinds))

    def _enough(self, condition: str, value: str, *, some: bool = False) -> str:
        """NULL where there are too few units of one kind, by their published numbers; ``some``: also where none."""
        few = [kind for kind in self.method.policy.kinds if kind.min_units > 1]
        return f"CASE WHEN {self._are_enough(condition)} THEN {value} END" if few or some else value

    def count(self, condition: str) -> str:
        """Rows."""
        figure = self._column(f"count({chosen(condition, '1')})")
        return self._enough(condition, self.method.number(_UNITS, figure, 0))

    def rows(self, number: str, condition: str) -> str:
        """Rows that were counted before, for a part of those of their unit each."""
        figure = self._column(f"coalesce(CAST(sum({chosen(condition, number)}) AS BIGINT), 0)")
        return self._enough(both(condition, f"({number}) > 0"), self.method.number(_UNITS, figure, 0))

    def units(self, condition: str, kind: int = 0) -> str:
        """Units of a kind."""
        return self._enough(condition, self._number(condition, kind))

    def kept(self) -> str:
        """Groups that have enough units of each kind, and some."""
        return self._are_enough("true")

    def total(self, added: str, condition: str, called: str, rows: str, *, exact: bool, least: float = 0) -> Total:
        """A sum, where enough units of each kind have a value."""
        figure, repeated, declared = self._sum(added, condition, rows, exact=exact, least=least)
        total = self.method.with_noise(_UNITS, figure, "true", called, repeated, exact=exact, least=declared)
        known = both(condition, f"({added}) IS NOT NULL")
        return total._replace(sql=self._enough(known, total.sql, some=True))

    def variance(self, measure: str, condition: str, called: str) -> str:
        """Not answered."""
        raise Refused("SDC052", f"a variance {_ALONE}")

    def quantile(self, measure: str, share: str, condition: str) -> str:
        """Not answered."""
        raise Refused("SDC052", f"a median or another quantile {_ALONE}")
