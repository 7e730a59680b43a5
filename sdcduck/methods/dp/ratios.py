"""A mean where the number of records is a secret, too: a noisy sum over a noisy number of records.

The sum is about the middle of the bounds. One record then changes it by half their width at most, and what the noise of
the number of records does to the mean is in proportion to how far the mean is from the middle, not from 0. The interval
is Fieller's (1954): all t for which the sum less t times the number of records may be noise alone. It holds the mean at
least as often as it says, whatever the number of records is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy


@dataclass(frozen=True)
class Ratio:
    """A noisy sum and a noisy number of records, with the standard deviations of their independent normal noise."""

    total: float
    records: float
    total_sd: float
    records_sd: float

    def estimate(self, half: float) -> float | None:
        """The mean, of values in [-half, half]; None where the noisy number of records is not above 0.

        >>> Ratio(50, 100, 1, 1).estimate(2), Ratio(5, -1, 1, 1).estimate(2)
        (0.5, None)
        """
        return max(-half, min(half, self.total / self.records)) if self.records > 0 else None

    def deviation(self, mean: float) -> float:
        """The standard deviation of the noise of a mean, to first order: right where there are many records."""
        return math.hypot(self.total_sd, mean * self.records_sd) / self.records

    def ends(self, confidence: float, half: float) -> tuple[float, float]:
        """Fieller's interval within [-half, half]; all of that where there may be no record.

        >>> [round(end, 4) for end in Ratio(50, 100, 1, 0).ends(0.95, 2)]
        [0.4804, 0.5196]
        >>> Ratio(5, 1, 1, 1).ends(0.95, 2)
        (-2, 2)
        """
        z = -float(scipy.special.ndtri((1 - confidence) / 2))
        if self.records <= z * self.records_sd:
            return -half, half
        square = self.records**2 - (z * self.records_sd) ** 2
        middle = self.total * self.records / square
        reach = z / square * math.sqrt(
            self.total_sd**2 * square + (self.total * self.records_sd) ** 2
        )  # fmt: skip
        low, high = (max(-half, min(half, end)) for end in (middle - reach, middle + reach))
        return low, high
