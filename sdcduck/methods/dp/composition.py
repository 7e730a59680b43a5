"""What several private releases cost together, by four rules.

Each release is (epsilon, delta)-private; one of normal noise alone may say so by its ratio of sensitivity to sigma, any
by the rho of its zero-concentrated privacy (delta is then what it has beside rho).

* basic: the sums of epsilon and delta (Dwork, McSherry, Nissim & Smith 2006). It holds also where what is asked next
  depends on the answers so far.
* advanced: theorem 3.5 of Kairouz, Oh & Viswanath (2015), for releases of different epsilon.
* zcdp: the sum of rho (epsilon^2 / 2 where none is given: Bun & Steinke 2016, proposition 1.4), converted once.
* gaussian: if all are normal noise alone, exactly: together they are normal noise whose ratio is the root of the sum of
  squares (Balle & Wang 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.dp.calibration import gaussian_epsilon, zcdp_epsilon

Floats = NDArray[np.float64]

RULES = ("basic", "advanced", "zcdp", "gaussian")


@dataclass(frozen=True)
class Releases:
    """Releases of the same records.

    Attributes:
        epsilon: (k,) of each; NaN where it is known by rho or ratio alone.
        delta: (k,) beside epsilon or rho.
        rho: (k,) NaN where it is not known.
        ratio: (k,) sensitivity / sigma of normal noise, NaN for other noise.
    """

    epsilon: Floats
    delta: Floats
    rho: Floats
    ratio: Floats

    @property
    def concentrated(self) -> Floats:
        """(k,) the rho of each: the least that is known of it."""
        known = np.stack([self.rho, self.ratio**2 / 2, self.epsilon**2 / 2])
        return np.asarray(np.where(np.isnan(known), np.inf, known).min(axis=0))

    def basic(self) -> tuple[float, float]:
        """Epsilon and delta by the sums."""
        return float(self.epsilon.sum()), min(1.0, float(self.delta.sum()))

    def advanced(self, beside: float) -> tuple[float, float]:
        """Epsilon and delta, with ``beside`` of delta for what the sum of losses may be beyond."""
        squares = float((self.epsilon**2).sum())
        # tanh(x/2) = (e^x - 1) / (e^x + 1), the loss that is expected.
        expected = float((np.tanh(self.epsilon / 2) * self.epsilon).sum())
        root = math.sqrt(squares)
        spreads = (math.log(math.e + root / beside), -math.log(beside))
        least = min(float(self.epsilon.sum()), *(expected + math.sqrt(2 * squares * one) for one in spreads))
        with np.errstate(divide="ignore"):  # a delta of 1
            return least, float(-np.expm1(np.log1p(-self.delta).sum() + math.log1p(-beside)))

    def zcdp(self, beside: float) -> tuple[float, float]:
        """Epsilon and delta by the sum of rho."""
        return zcdp_epsilon(float(self.concentrated.sum()), beside), min(1.0, beside + float(self.delta.sum()))

    def gaussian(self, beside: float) -> tuple[float, float]:
        """Epsilon and delta of normal noise alone; NaN if a release has other noise."""
        ratio = math.sqrt(float((self.ratio**2).sum()))
        return (math.nan if math.isnan(ratio) else gaussian_epsilon(ratio, beside)), beside

    def by(self, rule: str, beside: float) -> tuple[float, float]:
        """Epsilon and delta by one of `RULES`; epsilon is NaN where the rule does not say.

        >>> ten = Releases(*(np.full(10, one) for one in (0.1, 0.0, np.nan, np.nan)))
        >>> [round(ten.by(rule, 1e-6)[0], 3) for rule in RULES]
        [1.0, 1.0, 1.472, nan]
        """
        return self.basic() if rule == "basic" else getattr(self, rule)(beside)
