"""A mean where the number of records is a secret, too: a noisy sum over a noisy number of records.

The sum is about the middle of the bounds. One record then changes it by half their width at most, and what the noise of
the number of records does to the mean is in proportion to how far the mean is from the middle, not from 0. The interval
is Fieller's (1954): all t for which the sum less t times the number of records may be noise alone. It holds the mean at
least as often as it says, whatever the number of records is. Of Laplace noise it is the same with the law of a
difference of two of them: where the number of records is clear it is an interval, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sdcduck.methods.numerics import scipy


@dataclass(frozen=True)
class Ratio:
    """A noisy sum and a noisy number of records, with the standard deviations of their independent noise."""

    total: float
    records: float
    total_sd: float
    records_sd: float
    laplace: bool = False

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
        if self.laplace:
            return self._laplace_ends(confidence, half)
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

    def _laplace_ends(self, confidence: float, half: float) -> tuple[float, float]:
        a, b, missed = self.total_sd / math.sqrt(2), self.records_sd / math.sqrt(2), 1 - confidence
        if (b and math.exp(-self.records / b) >= missed) or self.records <= 0:
            return -half, half
        mean = self.total / self.records

        def beyond(t: float) -> float:
            return two_laplace_tail(abs(self.total - t * self.records), a, abs(t) * b) - missed

        low, high = (
            end if beyond(end) >= 0 else float(scipy.optimize.brentq(beyond, mean, end)) for end in (-half, half)
        )
        # Where the mean lies beyond an end, so does the other root, or it lies on this side of it.
        return (max(-half, min(half, low)) if mean > -half else -half), (
            max(-half, min(half, high)) if mean < half else half
        )


def two_laplace_tail(distance: float, one: float, other: float) -> float:
    """The chance that the sum of two independent Laplace numbers of these scales is farther from 0; never less than it.

    >>> round(two_laplace_tail(2.0, 1.0, 0.0), 4), round(two_laplace_tail(2.0, 1.0, 1.0), 4)
    (0.1353, 0.2707)
    """
    large, small = max(one, other), min(one, other)
    if small > large * (1 - 1e-4):  # it is more the larger a scale is
        return (1 + distance / (2 * large)) * math.exp(-distance / large)
    if not small:
        return math.exp(-distance / large)
    above = large**2 * math.exp(-distance / large) - small**2 * math.exp(-distance / small)
    return above / (large**2 - small**2)
