"""The protected SQL of what is counted and added up, where a record is a unit and where a unit has several."""

from __future__ import annotations

from typing import Protocol

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Total, both, chosen
from sdcduck.guard.expressions import bounded
from sdcduck.guard.methods import Method
from sdcduck.guard.methods.cell_key import CellKey
from sdcduck.quoting import identifier

UNITS = "_sdc_u"
"""The alias of the units of a group, their rows brought together."""


class Numbers(Protocol):
    """The protected SQL of what is counted and added up.

    ``condition`` is over single rows; ``called`` is what the custodian calls a measure.
    """

    @property
    def method(self) -> Method:
        """What protects them."""

    def count(self, condition: str) -> str:
        """Rows."""

    def rows(self, number: str, condition: str) -> str:
        """Rows, of which there are so many behind each of those that are here."""

    def units(self, condition: str, kind: int = 0) -> str:
        """Units, of one of their kinds where there are several."""

    def different(self, value: str, condition: str) -> str:
        """What belongs to one unit each, by what tells it apart: those of one unit are not those of another."""

    def total(self, added: str, condition: str, called: str, rows: str, *, exact: bool, least: float = 0) -> Total:
        """A sum; ``exact``: of whole or decimal numbers; ``rows``: how many it has in each row, nothing for one.

        ``least``: its noise is that of a value of this size in each row at least.
        """

    def known(self, added: str, condition: str) -> str:
        """Rows with a value."""

    def some(self, condition: str) -> str:
        """A published number that says whether there are such rows."""

    def or_zero(self, value: str, some: str, condition: str) -> str:
        """A sum or mean in which other rows than those of the condition count as 0: 0 where those alone are there."""

    def variance(self, measure: str, condition: str, called: str) -> str:
        """The variance among records."""

    def quantile(self, measure: str, share: str, condition: str) -> str:
        """The value that this share of the records lies below."""

    def grouping(self, asked: str, width: int) -> str:
        """GROUPING of so many columns, which is about the group and not about its rows."""


def _repeated(condition: str, rows: str) -> str:
    """How many rows those units have on average that have any; nothing where each record is one."""
    number = chosen(condition, rows)
    return f"greatest(sum({number}) / nullif(count(CASE WHEN {number} > 0 THEN 1 END), 0), 1)" if rows else ""


class OfRecords:
    """Where every record is a unit."""

    def __init__(self, method: Method, records: str) -> None:
        self.method, self.records = method, records

    def count(self, condition: str) -> str:
        """Rows."""
        return self.method.count(self.records, condition)

    def rows(self, number: str, condition: str) -> str:
        """Rows that were counted before."""
        return self.method.rows(self.records, chosen(condition, number))

    def units(self, condition: str, kind: int = 0) -> str:
        """Units."""
        return self.method.units(self.records, condition, kind)

    def different(self, value: str, condition: str) -> str:
        """What belongs to one unit each."""
        return self.method.different(self.records, value, condition)

    def total(self, added: str, condition: str, called: str, rows: str, *, exact: bool, least: float = 0) -> Total:
        """A sum, which the method makes exact where it is not."""
        repeated, declared = _repeated(condition, rows), repr(least) if least else ""
        return self.method.total(self.records, added, condition, called, repeated, exact=exact, least=declared)

    def known(self, added: str, condition: str) -> str:
        """Rows with a value."""
        return self.method.known(self.records, added, condition)

    def some(self, condition: str) -> str:
        """Whether there are such rows, by their published number."""
        return self.count(condition)

    def or_zero(self, value: str, some: str, condition: str) -> str:
        """0 where the method may say so."""
        return self.method.or_zero(self.records, value, some, condition)

    def variance(self, measure: str, condition: str, called: str) -> str:
        """The variance among records."""
        return self.method.variance(self.records, measure, condition, called)

    def quantile(self, measure: str, share: str, condition: str) -> str:
        """The value that this share of the records lies below."""
        return self.method.quantile(self.records, measure, share, condition)

    def grouping(self, asked: str, width: int) -> str:
        """Which columns a group is of."""
        return asked


class OfUnits:
    """Where a unit has several records, under cell keys: figures of each unit, then protected figures of these.

    Attributes:
        columns: SQL of the figures of a unit, over its records, and their names.
    """

    def __init__(self, policy: Policy) -> None:
        self.method: CellKey = CellKey.of_units(policy)
        self.columns: dict[str, str] = {}

    def _column(self, sql: str) -> str:
        return f'"{UNITS}"."{self.columns.setdefault(sql, f"_v{len(self.columns)}")}"'

    def count(self, condition: str) -> str:
        """Rows: the method knows how many of them a unit has at most."""
        return self.method.rows(identifier(UNITS), self._column(f"count({chosen(condition, '1')})"))

    def rows(self, number: str, condition: str) -> str:
        """Rows that were counted before, for a part of those of their unit each."""
        counted = f"coalesce(CAST(sum({chosen(condition, number)}) AS BIGINT), 0)"
        return self.method.rows(identifier(UNITS), self._column(counted))

    def kept(self) -> str:
        """Which groups appear, as a condition over aggregates."""
        return self.method.kept(identifier(UNITS))

    def units(self, condition: str, kind: int = 0) -> str:
        """Units."""
        if condition == "true":
            return self.method.count(identifier(UNITS), condition)
        rows = self._column(f"count({chosen(condition, '1')})")
        return self.method.count(identifier(UNITS), f"{rows} > 0")

    def different(self, value: str, condition: str) -> str:
        """What belongs to one unit each: added up over the units, as rows are."""
        return self.method.rows(identifier(UNITS), self._column(f"count(DISTINCT {chosen(condition, value)})"))

    def total(self, added: str, condition: str, called: str, rows: str, *, exact: bool, least: float = 0) -> Total:
        """A sum of the sums of units; a unit's own is the same in whatever order its records come."""
        figure, repeated, declared = self._sum(added, condition, rows, exact=exact, least=least)
        return self.method.total(identifier(UNITS), figure, "true", called, repeated, exact=exact, least=declared)

    def _sum(self, added: str, condition: str, rows: str, *, exact: bool, least: float) -> tuple[str, str, str]:
        """The sum that each unit has, how often rows repeat what it has, and the least size of the noise."""
        # The rows of a unit may repeat one value, which has the digits then that it has once: more of them would make
        # another key, and so another noise, of each number of rows.
        values = chosen(condition, added)
        figure = self._column(f"sum({values})" if exact else bounded(f"_sdc_grid_sum({values})"))
        there = both(condition, f"({added}) IS NOT NULL" if least else f"({added}) <> 0")
        # Of sums that units have all rows count: also where they come to 0, they are behind the sum of these sums.
        number = self._column(f"sum({chosen(condition, rows)})" if rows else f"count({chosen(there, '1')})")
        repeated = _repeated("true", self.method.once(identifier(UNITS), number))
        # For the unit with most rows: else joins that repeat rows would make it small beside their sum.
        declared = f"{least!r} * greatest(coalesce(max({number}), 1), 1)" if least else ""
        return figure, repeated, declared

    def known(self, added: str, condition: str) -> str:
        """Rows with a value."""
        return self.count(both(condition, f"({added}) IS NOT NULL"))

    def some(self, condition: str) -> str:
        """Whether there are such rows, by the published number of their units, as groups are there or not."""
        return self.units(condition)

    def or_zero(self, value: str, some: str, condition: str) -> str:
        """0 where the method may say so."""
        return self.method.or_zero(identifier(UNITS), value, some, condition)

    def variance(self, measure: str, condition: str, called: str) -> str:
        """The variance among rows, with the deviations of a unit's rows taken together."""
        values = chosen(condition, measure)
        rows, total = self._column(f"count({values})"), self._column(f"_sdc_exact_sum({values}, 4)")
        squares = self._column(f"_sdc_exact_squares({values})")
        return self.method.variance_of_units(identifier(UNITS), rows, total, squares, called)

    def quantile(self, measure: str, share: str, condition: str) -> str:
        """The value that this share of the rows lies below."""
        bins = self._column(f"_sdc_bins({chosen(condition, measure)})")
        return self.method.quantile_of_units(identifier(UNITS), bins, share)

    def grouping(self, asked: str, width: int) -> str:
        """Which columns a group is of: the same for all its units; without any it is the total."""
        return f"coalesce(min({self._column(asked)}), {2**width - 1})"
