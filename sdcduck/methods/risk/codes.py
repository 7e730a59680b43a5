"""Rows as codes of 16 bits, whose distances never exceed the true ones: few rows are left to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

LARGEST_CODE = 65535
_LARGEST_WEIGHT = 16383


@dataclass(frozen=True)
class Coding:
    """Rows as codes of 16 bits, whose distances are at most ``unit`` times the true ones, plus ``slack``.

    Attributes:
        scales, weights, lows: by column of the tables.
        columns: those of the codes as columns of the tables: categories come first.
        categories: how many they are.
        caps: by column of the codes, the largest difference of two, and what two categories differ by.
        unit: what the distance 1 is in codes.
        slack: by how much rounding may lift a distance; 0: codes are as good as the distances themselves.
    """

    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    lows: NDArray[np.float64]
    columns: NDArray[np.int64]
    categories: int
    caps: NDArray[np.uint16]
    unit: float
    slack: float

    @classmethod
    def of(
        cls, queries: NDArray[np.float64], reference: NDArray[np.float64], scales: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> Coding:  # fmt: skip
        unit = min(LARGEST_CODE / weights.sum(), _LARGEST_WEIGHT / weights.max())
        unit = float(np.floor(unit)) if unit >= 1 else unit
        lows = np.array([_least(queries[:, place], reference[:, place]) for place in range(len(scales))])
        exact = not scales.any() and unit >= 1 and bool((weights == np.floor(weights)).all())
        slack = 0.0 if exact else float(np.count_nonzero(scales)) + 1e-3
        columns = np.argsort(scales > 0, kind="stable")
        caps = np.floor(weights * unit).astype(np.uint16)[columns]
        return cls(scales, weights, lows, columns, int((scales == 0).sum()), caps, unit, slack)

    def codes(self, table: NDArray[np.float64]) -> NDArray[np.uint16]:
        """The codes of rows."""
        found: NDArray[np.uint16] = _coded(
            table, self.columns, self.scales, self.weights * self.unit, self.lows, self.caps
        )
        return found


def _least(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.nan_to_num(np.fmin(np.fmin.reduce(one), np.fmin.reduce(other))))


@njit(cache=True, nogil=True)
def _coded(table, columns, scales, steps, lows, caps):  # type: ignore[no-untyped-def]
    found = np.empty(table.shape, np.uint16)
    for place, column in enumerate(columns):
        cap = np.int64(caps[place])
        most = LARGEST_CODE - cap
        for row in range(table.shape[0]):
            value = table[row, column]
            if scales[column] > 0.0:
                # NULL is as far from the last number as numbers can be.
                code = np.int64(LARGEST_CODE)
                if value == value:
                    code = np.int64(min(np.rint((value - lows[column]) / scales[column] * steps[column]), most))
            elif value != value:
                code = np.int64(0)
            elif value == np.floor(value) and abs(value) < 2.0**53:
                code = (np.int64(value) + 1) & LARGEST_CODE
            else:
                code = np.int64(np.float64(value).view(np.uint64) % np.uint64(65521))
            found[row, place] = code
    return found
