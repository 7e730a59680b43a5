"""The laws that synthetic counts are drawn from, and the exact law of their mean over several releases.

Each has the original count as its mean (Jackson, Mitra, Francis and Dove 2022, PSD; definitions of PIG and Delaporte as
in R package gamlss.dist):

    poisson     variance mu
    nbi         negative binomial, variance mu + sigma mu^2
    pig         Poisson with an inverse Gaussian mean, variance mu + sigma mu^2
    delaporte   Poisson(mu nu) + NBI(mu (1 - nu), sigma), variance mu + sigma mu^2 (1 - nu)^2

The sum of m independent counts has a law of the same family: m mu, sigma / m, and nu as it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]

MODELS = ("poisson", "nbi", "pig", "delaporte")
SMALLEST_SIGMA = 1e-4
"""Below it a law is taken for Poisson, as in gamlss.dist."""
LARGEST_SIGMA = 1e6
_LATTICE = 1e-9  # 50 (1 + 0.16) is 57.99999999999999 in floating point
_LONGEST_WINDOW = 50_000_000  # values of a sum that are looked at one by one


@dataclass(frozen=True)
class Law:
    """One of the `MODELS`, with its dispersion sigma >= 0 and, for Delaporte, its share 0 < nu < 1.

    Raises:
        ValueError: an unknown model, or a parameter out of its range.
    """

    model: str
    sigma: float = 0.0
    nu: float | None = None

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError("model must be one of " + ", ".join(f"'{name}'" for name in MODELS))
        if not 0 <= self.sigma <= LARGEST_SIGMA:
            raise ValueError(f"sigma must be a number between 0 and {LARGEST_SIGMA:g}")
        if (self.model == "delaporte") != (self.nu is not None):
            raise ValueError("nu goes with model := 'delaporte', and only with it")
        if self.nu is not None and not 0 < self.nu < 1:
            raise ValueError("nu must lie between 0 and 1")

    @property
    def is_poisson(self) -> bool:
        """Whether nothing but the Poisson part is left."""
        return self.model == "poisson" or self.sigma <= SMALLEST_SIGMA

    @property
    def dispersion(self) -> float:
        """What mu^2 is multiplied with in the variance."""
        if self.is_poisson:
            return 0.0
        return self.sigma * (1 - (self.nu or 0.0)) ** 2

    def variance(self, mu: ArrayLike) -> Floats:
        """Variance of one count with mean mu."""
        means = np.asarray(mu, dtype=np.float64)
        return np.asarray(means + self.dispersion * means**2, dtype=np.float64)

    def window(self, mu: ArrayLike, m: int, k: float, d: float) -> Floats:
        """P(|mean of m counts - k| <= d) for each mean mu, exactly.

        mu: J means >= 0. Returns J probabilities, 0 where no multiple of 1 / m lies in the window.
        """
        low, high = math.ceil(m * (k - d) - _LATTICE), math.floor(m * (k + d) + _LATTICE)
        return self.sum_between(mu, m, max(low, 0), high)

    def sum_between(self, mu: ArrayLike, m: int, low: int, high: int) -> Floats:
        """P(low <= sum of m counts <= high) for each mean mu; 0 <= low."""
        means = np.asarray(mu, dtype=np.float64)
        if high < low:
            return np.zeros(len(means))
        if high > _LONGEST_WINDOW and self.model in ("pig", "delaporte") and not self.is_poisson:
            raise ValueError(f"m (k + d) must not exceed {_LONGEST_WINDOW} for this model")
        positive = means > 0
        found = np.where(low == 0, 1.0, 0.0) * np.ones(len(means))  # a count of mean 0 is 0
        found[positive] = self._sum_between(m * means[positive], m, low, high)
        return found

    def _sum_between(self, mu: Floats, m: int, low: int, high: int) -> Floats:
        if self.is_poisson:
            return np.asarray(
                scipy.special.pdtr(high, mu) - (scipy.special.pdtr(low - 1, mu) if low > 0 else 0.0), dtype=np.float64
            )
        if self.model == "nbi":
            return _nbi_between(mu, self.sigma / m, low, high)
        if self.model == "pig":
            return _pig_between(mu, self.sigma / m, low, high)
        assert self.nu is not None
        return _delaporte_between(mu, self.sigma / m, self.nu, low, high)

    def normal_window(self, mu: ArrayLike, m: int, k: float, d: float) -> Floats:
        """The normal approximation of `window` (equations 2 and 3 of the paper)."""
        means = np.asarray(mu, dtype=np.float64)
        sd = np.sqrt(self.variance(means) / m)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = scipy.special.ndtr((k + d - means) / sd) - scipy.special.ndtr((k - d - means) / sd)
        return np.where(sd > 0, inside, np.where(np.abs(means - k) <= d, 1.0, 0.0)).astype(np.float64)


def _nbi_cdf(y: ArrayLike, mu: Floats, sigma: float) -> Floats:
    at = np.asarray(y, dtype=np.float64)
    inside = scipy.special.betainc(1 / sigma, np.maximum(at, 0) + 1, 1 / (1 + sigma * mu))
    return np.where(at < 0, 0.0, inside).astype(np.float64)


def _nbi_between(mu: Floats, sigma: float, low: int, high: int) -> Floats:
    return _nbi_cdf(high, mu, sigma) - _nbi_cdf(low - 1, mu, sigma)


@njit(cache=True)
def _pig_between(mu: Floats, sigma: float, low: int, high: int) -> Floats:
    """Sums of the recursion of the probabilities, as ratios of neighbours: nothing overflows, p0 may underflow."""
    found = np.zeros(len(mu))
    for place in range(len(mu)):
        t = 1.0 + 2.0 * sigma * mu[place]
        log_p = (1.0 - math.sqrt(t)) / sigma
        if low == 0:
            found[place] = math.exp(log_p)
        ratio = mu[place] / math.sqrt(t)
        for y in range(1, high + 1):
            if y > 1:
                ratio = (2.0 * sigma * mu[place] / t) * (1.0 - 1.5 / y) + mu[place] * mu[place] / t / (
                    y * (y - 1.0)
                ) / ratio
            log_p += math.log(ratio)
            if y >= low:
                found[place] += math.exp(log_p)
    return found


def _delaporte_between(mu: Floats, sigma: float, nu: float, low: int, high: int) -> Floats:
    """Over the Poisson part a: P(a) P(low - a <= NBI <= high - a)."""
    found = np.zeros(len(mu))
    for place, mean in enumerate(mu):
        # Beyond 12 standard deviations nothing is left of the Poisson part.
        rate = mean * nu
        spread = 12 * math.sqrt(rate + 1) + 12
        a = np.arange(max(0, math.floor(rate - spread)), min(high, math.ceil(rate + spread)) + 1, dtype=np.float64)
        share = np.exp(a * math.log(rate) - rate - scipy.special.gammaln(a + 1))
        rest = np.full(len(a), mean * (1 - nu))
        found[place] = share @ (_nbi_cdf(high - a, rest, sigma) - _nbi_cdf(low - 1 - a, rest, sigma))
    return found


def student_quantiles(probability: Floats, degrees: Floats) -> Floats:
    """Quantiles of Student's t, element by element; infinite degrees of freedom are the normal law, NaN is not known.

    >>> student_quantiles(np.array([0.975, 0.975]), np.array([10.0, np.inf])).round(4).tolist()
    [2.2281, 1.96]
    """
    # stdtrit knows no infinity; from 10^12 on nothing changes in 12 digits.
    with np.errstate(invalid="ignore"):
        values: Floats = scipy.special.stdtrit(np.minimum(degrees, 1e12), probability)
    return values
