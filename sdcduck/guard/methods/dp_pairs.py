"""Correlations, covariances and regression lines of two measures: formulas over noisy sums.

What is drawn are the number of records that have both values, and of these the sums of the distances from the middle
of the bounds, of their squares and of their products: of a covariance four numbers, of a line five, of a correlation
six. Several statistics of the same two measures share them, in whatever order they were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ALL = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
    "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One of two measures.

    Attributes:
        column: its SQL.
        called: what the custodian calls it.
        ends: its bounds.
        distance: the SQL of the distance of its values from the middle of these.
    """

    column: str
    called: str
    ends: tuple[float, float]
    distance: str

    @property
    def middle(self) -> float:
        """Of the bounds."""
        return (self.ends[0] + self.ends[1]) / 2

    @property
    def within(self) -> tuple[float, float]:
        """What distances are between, as DuckDB subtracts them: rounding keeps the order of numbers."""
        return self.ends[0] - self.middle, self.ends[1] - self.middle

    @property
    def farthest(self) -> float:
        """How far a value is from the middle at most."""
        return max(map(abs, self.within))


class Sums(Protocol):
    """Noisy numbers of the records that have both values."""

    def number(self) -> str:
        """How many records these are."""

    def sum(self, value: str, low: float, high: float, of: str) -> str:
        """The sum of an expression that is between two numbers."""


class Pair:
    """The statistics of ``y`` over ``x``, as `regr_slope(y, x)` names them."""

    def __init__(self, y: Side, x: Side, sums: Sums) -> None:
        self.y, self.x, self._sums = y, x, sums

    @property
    def _sides(self) -> list[Side]:
        """Both in one order: what is the same of either has the same noise."""
        return sorted((self.x, self.y), key=lambda side: side.column)

    def statistic(self, name: str) -> str:
        """The SQL of a statistic; NULL where the noisy sums say of a spread or a number that there is none."""
        found: str = getattr(self, f"_{name}")()
        return found

    def _number(self) -> str:
        return self._sums.number()

    def _sum(self, side: Side) -> str:
        return self._sums.sum(side.distance, *side.within, side.called)

    def _mean(self, side: Side) -> str:
        low, high = side.ends
        mean = f"greatest(least({side.middle!r} + {self._sum(side)} / {self._number()}, {high!r}), {low!r})"
        return f"(CASE WHEN {self._number()} > 0 THEN {mean} END)"

    def _squares(self, side: Side) -> str:
        """The sum of squared distances from the mean, between 0 and what the bounds allow."""
        number, total, most = self._number(), self._sum(side), side.farthest * side.farthest
        squares = self._sums.sum(f"({side.distance} * {side.distance})", 0.0, most, side.called)
        found = f"greatest(least({squares} - {total} * {total} / {number}, {most!r} * {number}), 0)"
        return f"(CASE WHEN {number} > 0 THEN {found} END)"

    def _products(self) -> str:
        """The sum of products of distances from the means, between what the bounds allow."""
        if self.x.column == self.y.column:
            return self._squares(self.x)
        number, (one, other) = self._number(), self._sides
        most = one.farthest * other.farthest
        product = f"({one.distance} * {other.distance})"
        products = self._sums.sum(product, -most, most, f"{one.called} and {other.called}")
        found = f"{products} - {self._sum(one)} * {self._sum(other)} / {number}"
        found = f"greatest(least({found}, {most!r} * {number}), -({most!r} * {number}))"
        return f"(CASE WHEN {number} > 0 THEN {found} END)"

    def _regr_count(self) -> str:
        return self._number()

    def _regr_avgx(self) -> str:
        return self._mean(self.x)

    def _regr_avgy(self) -> str:
        return self._mean(self.y)

    def _regr_sxx(self) -> str:
        return self._squares(self.x)

    def _regr_syy(self) -> str:
        return self._squares(self.y)

    def _regr_sxy(self) -> str:
        return self._products()

    def _covar_pop(self) -> str:
        return f"(CASE WHEN {self._number()} > 0 THEN {self._products()} / {self._number()} END)"

    def _covar_samp(self) -> str:
        return f"(CASE WHEN {self._number()} > 1 THEN {self._products()} / ({self._number()} - 1) END)"

    def _regr_slope(self) -> str:
        squares = self._squares(self.x)
        return f"(CASE WHEN {squares} > 0 THEN {self._products()} / {squares} END)"

    def _regr_intercept(self) -> str:
        return f"({self._mean(self.y)} - {self._regr_slope()} * {self._mean(self.x)})"

    def _corr(self) -> str:
        one, other = map(self._squares, self._sides)
        found = f"greatest(least({self._products()} / (sqrt({one}) * sqrt({other})), 1), -1)"
        return f"(CASE WHEN {one} > 0 AND {other} > 0 THEN {found} END)"

    def _regr_r2(self) -> str:
        correlation = self._corr()
        return f"({correlation} * {correlation})"
