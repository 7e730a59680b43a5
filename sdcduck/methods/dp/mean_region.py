"""The mean of several columns whose covariance is known, released by itself after the columns were made alike.

Records are x in R^k with covariance Sigma. The mean of z = Sigma^(-1/2) (x - c) gets equal noise on each coordinate and
is turned back: the noise has the shape of the data, and the region around the mean is smallest (Shoham & Rinott 2022,
PSD, section 3, theorems 3 and 4). Two neighbours, of n records each, differ in one: if |z| is at most R, the mean of z
moves by at most 2 R / n.

The paper cuts nothing off and promises its privacy only where the replaced records do not lie too far apart, which
fails with probability gamma (random differential privacy): r^2 is the quantile of chi^2 with k degrees of freedom, and
twice that over n the square of the sensitivity of the scaled mean. `compared` has its figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]

_LEAST = 1e-12
"""An eigenvalue below this part of the largest is none."""
_PIECES = 80
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(120)


@dataclass(frozen=True)
class Shape:
    """A covariance matrix and its roots: (k, k) each."""

    covariance: Floats
    root: Floats
    inverse_root: Floats
    eigenvalues: Floats

    @classmethod
    def of(cls, covariance: Floats) -> Shape:
        """Of a symmetric matrix.

        Raises:
            ValueError: it is no covariance matrix, or columns follow from others.
        """
        if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0):
            raise ValueError("a covariance matrix is symmetric")
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        if not values[0] > _LEAST * values[-1]:
            raise ValueError("a covariance matrix has only positive eigenvalues: no column may follow from others")
        roots = np.sqrt(values)
        return cls(covariance, (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T, values)


def random_bound(columns: int, gamma: float) -> float:
    """R of a pair of records that lie as far apart as nearly all do: twice it is the root of 2 r^2.

    >>> round(2 * random_bound(3, 0.001) / 1000**0.5, 6)
    0.180368
    """
    return math.sqrt(float(scipy.stats.chi2.isf(gamma, columns)) / 2)


@dataclass(frozen=True)
class Region:
    """The noisy mean, turned back, and what is known around it.

    Attributes:
        mean: (k,) the estimate.
        of_mean: (k, k) Sigma / n, the covariance of the mean without noise.
        sigma: sigma_g, the noise in standard deviations of the mean.
    """

    mean: Floats
    of_mean: Floats
    sigma: float

    @classmethod
    def around(cls, shape: Shape, center: Floats, scaled: Floats, noise: float, records: int) -> Region:
        """From the noisy mean of z, where ``noise`` is the standard deviation of the noise of their sum."""
        return cls(center + shape.root @ scaled, shape.covariance / records, noise / math.sqrt(records))

    @property
    def noise(self) -> Floats:
        """(k,) the standard deviations of the noise alone."""
        return np.asarray(self.sigma * np.sqrt(np.diag(self.of_mean)))

    @property
    def deviations(self) -> Floats:
        """(k,) those of the estimate around the mean of the law that records come from."""
        return np.asarray(np.sqrt((1 + self.sigma**2) * np.diag(self.of_mean)))

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """The intervals for each column by itself."""
        half = self.deviations * scipy.stats.norm.isf((1 - confidence) / 2)
        return self.mean - half, self.mean + half

    def ellipsoid(self, confidence: float) -> Floats:
        """(k, k) A of the region of all means m with (mean - m)' A (mean - m) of at most 1."""
        size = float(scipy.stats.chi2.ppf(confidence, len(self.mean))) * (1 + self.sigma**2)
        return np.asarray(np.linalg.inv(self.of_mean) / size)


def weighted_chi2_sf(x: float, weights: Floats) -> float:
    """P(Q > x) of Q = sum of weights times squares of standard normal numbers (Imhof 1961).

    The integrand changes its sign about every 2 pi / x, the more regularly the farther; what lies beyond the last of
    these pieces is found by averages of the sums up to each.

    >>> round(weighted_chi2_sf(5.991465, np.array([1.0, 1.0])), 6)
    0.05
    """
    ends = 2 * math.pi / x * np.arange(_PIECES)[:, None]
    u = ends + math.pi / x * (_NODES + 1)
    angle = 0.5 * np.arctan(u[..., None] * weights).sum(axis=-1) - 0.5 * x * u
    fall = np.exp(0.25 * np.log1p((u[..., None] * weights) ** 2).sum(axis=-1))
    sums = np.cumsum((np.sin(angle) / (u * fall)) @ _NODE_WEIGHTS * (math.pi / x))[_PIECES // 2 :]
    while len(sums) > 1:
        sums = (sums[1:] + sums[:-1]) / 2
    return float(0.5 + sums[0] / math.pi)


def weighted_chi2_quantile(probability: float, weights: Floats) -> float:
    """The x below which Q lies with this probability, of at least a half."""
    scale = float(weights.max())
    # Q lies between the largest term alone and the sum of as many that are as large.
    low, high = (float(scipy.stats.chi2.ppf(probability, terms)) for terms in (1, len(weights)))
    if float(weights.min()) == scale:
        return scale * high

    def beyond(x: float) -> float:
        return weighted_chi2_sf(x, weights / scale) - (1 - probability)

    return scale * float(scipy.optimize.brentq(beyond, low, high, xtol=1e-12, rtol=1e-12))


@dataclass(frozen=True)
class Way:
    """One way to release the mean.

    Attributes:
        name: 'adjusted', 'raw' (the query as it stands, private on the same pairs) or 'raw, own pairs'.
        sensitivity: of what gets the noise.
        sigma: the noise.
        spread: (k, k) the covariance of the estimate around the mean that is looked for.
    """

    name: str
    sensitivity: float
    sigma: float
    spread: Floats

    @property
    def volume(self) -> float:
        """In proportion to the volume of a region of any level."""
        return math.exp(0.5 * float(np.linalg.slogdet(self.spread)[1]))

    def power(self, eta: Floats, level: float) -> float:
        """The chance to tell a mean of ``eta`` from 0."""
        apart = math.sqrt(float(eta @ np.linalg.solve(self.spread, eta)))
        return float(scipy.stats.norm.sf(scipy.stats.norm.isf(level) - apart))


def compared(covariance: Floats, records: int, gamma: float, epsilon: float, delta: float) -> list[Way]:
    """The paper's way beside its competitors, in random differential privacy: nothing is cut off."""
    shape = Shape.of(covariance)
    of_mean, values = covariance / records, shape.eigenvalues / records
    ratio = gaussian_ratio(epsilon, delta)
    r2 = float(scipy.stats.chi2.isf(gamma, len(values)))
    adjusted = math.sqrt(2 * r2 / records)
    same = math.sqrt(float(values.max())) * adjusted
    own = math.sqrt(weighted_chi2_quantile(1 - gamma, 2 * values / records))
    identity = np.eye(len(values))
    return [
        Way("adjusted", adjusted, adjusted / ratio, (1 + (adjusted / ratio) ** 2) * of_mean),
        Way("raw", same, same / ratio, of_mean + (same / ratio) ** 2 * identity),
        Way("raw, own pairs", own, own / ratio, of_mean + (own / ratio) ** 2 * identity),
    ]
