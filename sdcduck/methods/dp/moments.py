"""Means and covariances from sums of whole numbers: exact, in any order, and so what a bound says of them is true.

Values are whole multiples of 1 / `GRID` of their unit. Floating-point sums depend on their order, and change by more
between neighbours than the mathematics allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sdcduck.methods.dp.noise import Floats

GRID = 1 << 24
"""Steps of one unit."""


@dataclass(frozen=True)
class Moments:
    """Sums over records, in whole steps.

    Attributes:
        n: records.
        sums: of each column.
        products: of each pair of columns, the upper triangle row by row.
    """

    n: int
    sums: tuple[int, ...]
    products: tuple[int, ...]

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self.sums)

    @property
    def means(self) -> Floats:
        """(d,), in units."""
        return np.array([float(Fraction(total, self.n * GRID)) for total in self.sums])

    @property
    def covariance(self) -> Floats:
        """(d, d) with divisor n - 1, in squared units."""
        below = self.n * (self.n - 1) * GRID * GRID
        return mirrored(
            [
                float(Fraction(self.n * product - self.sums[i] * self.sums[j], below))
                for (i, j), product in zip(upper(self.columns), self.products, strict=True)
            ]
        )

    def second(self, records: int | None = None) -> Floats:
        """(d, d), the mean of the products, not about a mean; per so many records, if not per `n`."""
        below = (self.n if records is None else records) * GRID * GRID
        return mirrored([float(Fraction(product, below)) for product in self.products])


def upper(columns: int) -> list[tuple[int, int]]:
    """The pairs of the upper triangle, row by row.

    >>> upper(2)
    [(0, 0), (0, 1), (1, 1)]
    """
    return [(i, j) for i in range(columns) for j in range(i, columns)]


def mirrored(values: Sequence[float] | Floats) -> Floats:
    """The symmetric matrix of an upper triangle.

    >>> mirrored([1, 2, 3]).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    columns = int((np.sqrt(8 * len(values) + 1) - 1) / 2)
    made = np.zeros((columns, columns))
    made[np.triu_indices(columns)] = values
    return np.asarray(made + np.triu(made, 1).T)
