"""How several numbers of one release share its noise, so that it serves a purpose best at no more cost in privacy.

Number i changes by at most psi_i between neighbours, and gets normal noise of standard deviation sd_i. The release is
private if and only if the root of the sum of (psi_i / sd_i)^2 is at most Lambda (`calibration.gaussian_ratio`): the
share of a number is its part of that sum. In the words of the source the query is rescaled by the root of xi_i, gets
noise of one sigma = |psi| / Lambda, and is scaled back: sd_i = sigma / root of xi_i.

Laplace noise is shared in the same way, as far as it can be: number i gets the part epsilon_i of epsilon and noise of
scale psi_i / epsilon_i, where psi_i is by how much it changes as sum of absolute values over all groups. What serves
'volume' is the same part for each; 'mse' takes parts in proportion to the cube root of w_i psi_i^2.

Source: Shoham & Rinott (2022), PSD; theorem 1 ('volume'), theorem 2 ('lrt'); 'mse' and Laplace noise: this project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]

OBJECTIVES = ("volume", "mse", "lrt", "none")
NOISES = ("least", "normal", "laplace")


@dataclass(frozen=True)
class Allocation:
    """How noise is shared.

    Attributes:
        sensitivities: (k,) psi, at least 0.
        shares: (k,) with sum 1; 0: the number is not asked, or never changes.
        ratio: Lambda.
    """

    sensitivities: Floats
    shares: Floats
    ratio: float

    @property
    def sigma(self) -> float:
        """The noise of the rescaled query on each coordinate."""
        return float(np.linalg.norm(self.sensitivities) / self.ratio)

    @property
    def xi(self) -> Floats:
        """(k,) by what the squares of the numbers are rescaled; NaN for one that never changes."""
        squares = self.sensitivities**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(squares > 0, self.shares * squares.sum() / squares, np.nan))

    @property
    def deviations(self) -> Floats:
        """(k,) the standard deviations of the noise: 0 for what never changes, infinite for what is not asked."""
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = self.sensitivities / (self.ratio * np.sqrt(self.shares))
        return np.asarray(np.where(self.sensitivities > 0, noise, 0.0))

    def half_widths(self, confidence: float) -> Floats:
        """(k,) of the interval around each answer that holds the true number with this chance."""
        return np.asarray(self.deviations * scipy.stats.norm.isf((1 - confidence) / 2))

    def half_axes(self, confidence: float, groups: int = 1) -> Floats:
        """(k,) of the ellipsoid around the answer that holds all true numbers together with this chance.

        Args:
            groups: in how many of them each number is asked, with noise of its own.
        """
        numbers = groups * int((self.sensitivities > 0).sum())
        return np.asarray(self.deviations * math.sqrt(scipy.stats.chi2.ppf(confidence, numbers)))

    def volume(self, confidence: float) -> float:
        """The volume of that ellipsoid, in the dimensions that have noise."""
        axes = self.half_axes(confidence)[self.sensitivities > 0]
        half = len(axes) / 2
        return float(np.exp(half * math.log(math.pi) - math.lgamma(half + 1) + np.log(axes).sum()))

    @property
    def volume_ratio(self) -> float:
        """The volume beside that of the query as it stands, where each number gets the same noise."""
        noise = self.deviations[self.sensitivities > 0]
        return float(np.exp(np.log(noise / self.sigma).sum()))

    def signal(self, eta: Floats) -> float:
        """How many standard deviations the likelihood ratio of H0: 0 against H1: ``eta`` lies apart."""
        noisy = self.sensitivities > 0
        return float(np.sqrt((self.xi[noisy] * eta[noisy] ** 2).sum()) / self.sigma)

    def power(self, eta: Floats, level: float) -> float:
        """The chance that the test of H0: 0 at this level finds H1: ``eta``."""
        return float(scipy.stats.norm.sf(scipy.stats.norm.isf(level) - self.signal(eta)))

    def p_value(self, eta: Floats, found: Floats) -> float:
        """Of the likelihood-ratio test of H0: 0 against H1: ``eta``, for the numbers that are asked.

        NaN where what is asked is the same under both.
        """
        return float(self.p_values(eta, found[None])[0])

    def p_values(self, eta: Floats, found: Floats) -> Floats:
        """(r,) of the same test, of what was found (r, k) each time."""
        noisy = (self.sensitivities > 0) & (self.shares > 0)
        weights = self.xi[noisy] * eta[noisy]
        apart = math.sqrt(float((weights * eta[noisy]).sum()))
        told = found[:, noisy] @ weights
        return np.asarray(scipy.stats.norm.sf(told / (self.sigma * apart)) if apart else np.full(len(found), math.nan))


def allocate(
    sensitivities: Floats, ratio: float, objective: str = "volume", *, weights: Floats | None = None,
    eta: Floats | None = None,
) -> Allocation:  # fmt: skip
    """Share the noise by one of `OBJECTIVES`.

    ``eta`` is needed for 'lrt'; ``weights`` are those of 'mse', of squared errors. At least one sensitivity is
    above 0; for 'lrt' ``eta`` is not 0 where one is.

    >>> allocate(np.array([3.0, 4.0]), 0.268051123).deviations.round(6).tolist()
    [15.82773, 21.103639]
    """
    noisy = sensitivities > 0
    if objective == "volume":
        raw = noisy.astype(np.float64)
    elif objective == "mse":
        raw = sensitivities * (1.0 if weights is None else np.sqrt(weights))
    elif objective == "lrt":
        assert eta is not None
        told = np.divide(np.abs(eta), sensitivities, out=np.full(len(eta), -1.0), where=noisy)
        raw = (np.arange(len(eta)) == int(told.argmax())).astype(np.float64)
    else:
        raw = (sensitivities / sensitivities.max()) ** 2
    return Allocation(sensitivities, raw / raw.sum(), ratio)


@dataclass(frozen=True)
class LaplaceAllocation:
    """How Laplace noise is shared.

    Attributes:
        sensitivities: (k,) psi, at least 0: as sums of absolute values.
        epsilons: (k,) the parts of epsilon; 0: the number never changes.
    """

    sensitivities: Floats
    epsilons: Floats

    @property
    def scales(self) -> Floats:
        """(k,) of the noise: 0 for what never changes."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(self.sensitivities > 0, self.sensitivities / self.epsilons, 0.0))

    @property
    def deviations(self) -> Floats:
        """(k,) the standard deviations of the noise."""
        return np.asarray(math.sqrt(2) * self.scales)

    def half_widths(self, confidence: float) -> Floats:
        """(k,) of the interval around each answer that holds the true number with this chance."""
        return np.asarray(-self.scales * math.log1p(-confidence))

    def half_axes(self, confidence: float, groups: int = 1) -> Floats:
        """(k,) half the sides of the box around the answer that holds all true numbers together with this chance.

        Args:
            groups: in how many of them each number is asked, with noise of its own.

        >>> LaplaceAllocation(np.ones(2), np.ones(2)).half_axes(0.9025).round(4).tolist()
        [2.9957, 2.9957]
        """
        numbers = groups * int((self.sensitivities > 0).sum())
        return np.asarray(-self.scales * math.log(-math.expm1(math.log(confidence) / numbers)))


def allocate_laplace(
    sensitivities: Floats, epsilon: float, objective: str = "volume", *, weights: Floats | None = None
) -> LaplaceAllocation:
    """Share Laplace noise by one of `OBJECTIVES`, but 'lrt'. At least one sensitivity is above 0.

    >>> allocate_laplace(np.array([1.0, 8.0]), 3.0, "mse").epsilons.round(6).tolist()
    [0.6, 2.4]
    """
    if objective == "volume":
        raw = (sensitivities > 0).astype(np.float64)
    elif objective == "mse":
        raw = np.cbrt(sensitivities**2 * (1.0 if weights is None else weights))
    else:
        raw = sensitivities
    return LaplaceAllocation(sensitivities, epsilon * raw / raw.sum())


def is_smaller(one: Allocation | LaplaceAllocation, other: Allocation | LaplaceAllocation) -> bool:
    """Whether the noise of one is the smaller, of the same numbers: the product of its standard deviations is.

    >>> one = np.ones(3)
    >>> is_smaller(allocate_laplace(one, 1.0), allocate(one, 0.268))
    True
    """
    noisy = one.deviations > 0
    return float(np.log(one.deviations[noisy] / other.deviations[noisy]).sum()) < 0
