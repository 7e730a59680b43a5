"""Do two groups have the same means? Hotelling's test from private means and covariances, with a private bootstrap.

Dunsche, Kutta & Dette (2022), algorithms 1 to 3. The means of both groups get Laplace noise, their covariances that of
`covariance.private_covariance`, each at a quarter of epsilon. The noise makes the law of the statistic another one than
that of chi-squared, so the critical value comes from a bootstrap that repeats the noise. It sees private numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sdcduck.methods.dp.covariance import private_covariance
from sdcduck.methods.dp.moments import Moments
from sdcduck.methods.dp.noise import Floats, Sampler
from sdcduck.methods.numerics import scipy

MODES = ("safe", "literal")
CORRECTIONS = ("paper", "full")


def mean_scale(bound: float, columns: int, records: int, epsilon: float) -> float:
    """Of the Laplace noise of each mean, where all means of entries in [-bound, bound] cost ``epsilon`` together.

    A mean is off by rounding, which neighbours need not share: by at most 2^-53 of the bound.

    >>> round(mean_scale(3**0.5, 1, 1000, 1 / 4), 7)
    0.0138564
    """
    return 2 * bound * columns / (records * epsilon) * (1 + records * 2.0**-51)


def critical_index(rounds: int, alpha: float) -> int:
    """Which of the sorted statistics of the bootstrap is the critical value, counted from 1: floor((1 - alpha) B).

    alpha is the decimal number that was written, so that no digit behind it counts.

    >>> critical_index(200, 0.05), critical_index(1000, 0.01)
    (190, 990)
    """
    return int((1 - Fraction(repr(alpha))) * rounds)


def pooled(first: Floats, second: Floats, n1: int, n2: int, *, unequal: bool = False) -> Floats:
    """The common covariance of two groups; for unequal ones what the difference of their means has, but for a factor.

    >>> pooled(np.eye(1), 4 * np.eye(1), 10, 20, unequal=True)
    array([[2.]])
    """
    if unequal:
        return np.asarray((n2 * first + n1 * second) / (n1 + n2))
    return np.asarray(((n1 - 1) * first + (n2 - 1) * second) / (n1 + n2 - 2))


def hotelling(difference: Floats, covariance: Floats, n1: int, n2: int) -> Floats:
    """t^2 of differences of means (.., d), under a common covariance (d, d).

    >>> round(float(hotelling(np.array([1.5]), np.array([[2.6]]), 4, 3)), 6)
    1.483516
    """
    solved = np.linalg.solve(covariance, difference.T).T
    return np.asarray(n1 * n2 / (n1 + n2) * (difference * solved).sum(axis=-1))


@dataclass(frozen=True)
class MeanTest:
    """A private test.

    Attributes:
        t2: the private statistic.
        critical: what the bootstrap has at the level.
        p: the share of the bootstrap that is at least as large, itself counted.
        p_asymptotic: by the law of chi-squared, which noise does not follow but for large groups.
        means: private means of both groups, (d,) each.
    """

    t2: float
    critical: float
    p: float
    p_asymptotic: float
    means: tuple[Floats, Floats]

    @property
    def reject(self) -> bool:
        """Whether the means differ, at the level."""
        return self.t2 > self.critical


def private_mean_test(
    first: Moments, second: Moments, epsilon: float, sampler: Sampler, generator: np.random.Generator, *,
    bound: float = 1.0, alpha: float = 0.05, rounds: int = 200, mode: str = "safe", correction: str = "paper",
    unequal: bool = False, check: Callable[[], object] = lambda: None,
) -> MeanTest:  # fmt: skip
    """The test that costs ``epsilon``, of two groups of at least two records with entries in [-bound, bound].

    Args:
        generator: of the bootstrap, which costs nothing and needs no secret randomness.
        mode: 'safe', or 'literal': the covariances as printed, where the sensitivity is that about a known mean.
        correction: what noise adds to the covariance: 'paper', or 'full', as much as it does.
        unequal: whether the groups may have different covariances.
    """
    groups, part, columns = (first, second), epsilon / 4, first.columns
    n1, n2 = first.n, second.n
    scales = [mean_scale(bound, columns, group.n, part) for group in groups]
    means = [sampler.laplace(group.means, scale) for group, scale in zip(groups, scales, strict=True)]
    length = 2 * bound if mode == "safe" else bound
    covariances = [private_covariance(group.covariance, group.n, length, part, sampler, check) for group in groups]
    # From here on nothing looks at the data.
    added = sum(2 * scale * scale for scale in scales) * (n1 * n2 / (n1 + n2) if correction == "full" else 1)
    common = pooled(covariances[0], covariances[1], n1, n2, unequal=unequal) + added * np.eye(columns)
    t2 = float(hotelling(means[0] - means[1], common, n1, n2))
    drawn = [
        generator.standard_normal((rounds, columns)) @ root_of(covariance / group.n)
        + generator.laplace(scale=scale, size=(rounds, columns))
        for group, covariance, scale in zip(groups, covariances, scales, strict=True)
    ]
    repeated = np.sort(hotelling(drawn[0] - drawn[1], common, n1, n2))
    return MeanTest(
        t2, float(repeated[critical_index(rounds, alpha) - 1]), float((1 + (repeated >= t2).sum()) / (rounds + 1)),
        float(scipy.stats.chi2.sf(t2, columns)), (means[0], means[1]),
    )  # fmt: skip


def root_of(covariance: Floats) -> Floats:
    """The symmetric square root of a matrix without eigenvalues below 0 but by rounding.

    >>> root_of(np.diag([4.0, 9.0])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
