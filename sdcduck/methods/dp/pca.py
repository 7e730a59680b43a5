"""Principal components of a covariance matrix with noise, by four mechanisms, and what they still explain.

Zari, Parra-Arnau, Unsal, Strufe & Onen (2022). A is the mean of xx' over the records; the upper triangle gets noise,
and is mirrored. The entries of A change by at most R_i R_j / N between neighbours, where R_i is how wide the bounds of
column i are and 0 is within them; the rows of 'analyze_gauss' are at most ``norm`` long instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.dp.calibration import gaussian_sigma
from sdcduck.methods.dp.moments import mirrored
from sdcduck.methods.dp.noise import Floats, Sampler
from sdcduck.methods.numerics import scipy

MECHANISMS = ("laplace_scalar", "laplace_vector", "laplace_advanced", "analyze_gauss")
APPROXIMATE = ("laplace_advanced", "analyze_gauss")
"""Those of them that need a delta."""
_MOST_EACH = 709.0
"""Of epsilon, of which the exponential is a number still."""
_LEAST_TOLD = 0.9
"""Of the variance, by as many components as `utility` compares if not told how many."""


def advanced_epsilon(epsilon: float, queries: int, delta: float) -> float:
    """What each query may cost, so that all of them cost (epsilon, delta) by advanced composition: the root e of

    epsilon = sqrt(2 queries ln(1/delta)) e + queries e (exp(e) - 1).

    >>> round(advanced_epsilon(1, 105, 1e-3), 7)
    0.0245706
    """

    def lacking(each: float) -> float:
        return math.sqrt(2 * queries * -math.log(delta)) * each + queries * each * math.expm1(each) - epsilon

    # The first term alone is too much beyond the first end, the second beyond the other.
    end = min(epsilon / math.sqrt(-2 * queries * math.log(delta)), _MOST_EACH)
    if lacking(end) <= 0:  # but for rounding
        return end
    return float(scipy.optimize.brentq(lacking, 0.0, end, xtol=end * 1e-15, rtol=1e-14))


def crossing_epsilon(queries: int, delta: float) -> float:
    """Below this epsilon advanced composition lets each query cost more than an equal share does; 0: never.

    >>> round(crossing_epsilon(105, 1e-3), 3), crossing_epsilon(3, 1e-3)
    (51.768, 0.0)
    """
    inside = -2 * math.log(delta)
    return queries * math.log(2 - math.sqrt(inside / queries)) if queries > inside else 0.0


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with what is public of the data.

    Attributes:
        name: one of `MECHANISMS`.
        widths: R (d,), of the bounds of the columns.
        norm: how long a row is at most, for 'analyze_gauss'.
        records: N, public.
        epsilon, delta: what it may cost; delta 0 where none is needed.
        neighbours: 'replace' or 'add_remove', for 'analyze_gauss'.
        rule: of normal noise: 'analytic', or 'classic' as in the paper.
    """

    name: str
    widths: Floats
    norm: float
    records: int
    epsilon: float
    delta: float
    neighbours: str = "replace"
    rule: str = "analytic"

    @property
    def is_normal(self) -> bool:
        """Whether the noise is normal."""
        return self.name == "analyze_gauss"

    def scales(self) -> Floats:
        """(d, d): the scale of Laplace noise of each entry, or the standard deviation of normal noise.

        >>> Mechanism("laplace_scalar", np.array([4.0, 2.0]), 1, 4, 1, 0).scales().tolist()
        [[12.0, 6.0], [6.0, 3.0]]
        >>> Mechanism("laplace_vector", np.array([4.0, 2.0]), 1, 4, 1, 0).scales().tolist()
        [[7.0, 7.0], [7.0, 7.0]]
        """
        columns = len(self.widths)
        pairs = columns * (columns + 1) // 2
        changes = np.outer(self.widths, self.widths) / self.records
        if self.name == "laplace_scalar":
            return np.asarray(pairs * changes / self.epsilon)
        if self.name == "laplace_vector":
            return np.full((columns, columns), changes[np.triu_indices(columns)].sum() / self.epsilon)
        if self.name == "laplace_advanced":
            return np.asarray(changes / advanced_epsilon(self.epsilon, pairs, self.delta))
        return np.full((columns, columns), gaussian_sigma(self.epsilon, self.delta, self._change, self.rule))

    @property
    def _change(self) -> float:
        """Of A, as root of the sum of squares, for 'analyze_gauss'.

        One more row of length 1 changes A by a matrix of norm 1 / N; another one in its place by two such, at right
        angles at worst.
        """
        return self.norm**2 / self.records * (1 if self.neighbours == "add_remove" else math.sqrt(2))

    @property
    def ratio(self) -> float | None:
        """Sensitivity / sigma, of normal noise."""
        return self._change / float(self.scales()[0, 0]) if self.is_normal else None

    def noisy(self, second: Floats, sampler: Sampler) -> Floats:
        """A (d, d) with noise; symmetric, and some of its eigenvalues may be below 0.

        An entry is off by rounding, which neighbours need not share: the noise is larger by as much.
        """
        places = np.triu_indices(len(second))
        scales = self.scales()[places]
        draw = sampler.normal if self.is_normal else sampler.laplace
        # Of one scale: what changes by as much as the noise of an entry is wide is the same for all.
        return mirrored(scales * draw(second[places] / scales, 1 + self.records * 2.0**-50))


def components(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (d,) from the largest, and eigenvectors (d, d) as rows, the largest entry of each above 0.

    >>> components(np.array([[2.5, 2], [2, 2.5]]))[0].round(9).tolist()
    [4.5, 0.5]
    """
    values, vectors = np.linalg.eigh(matrix)
    rows = vectors.T[::-1]
    largest = np.take_along_axis(rows, np.argmax(np.abs(rows), axis=1)[:, None], axis=1)
    return values[::-1].copy(), np.asarray(rows * np.where(largest < 0, -1.0, 1.0))


def components_told(matrix: Floats, least: float = _LEAST_TOLD) -> int:
    """The smallest number of components that have this share of the variance."""
    values = np.maximum(components(matrix)[0], 0)
    return int(np.searchsorted(np.cumsum(values), least * values.sum() * (1 - 1e-12)) + 1)


def utility(matrix: Floats, loadings: Floats) -> float:
    """q: the variance that components (k, d) tell, of that which the best k tell. It is of the true A, and not private.

    >>> round(utility(np.array([[2.5, 2], [2, 2.5]]), np.array([[1.0, 0]])), 4)
    0.5556
    """
    best = components(matrix)[0][: len(loadings)].sum()
    return float(np.trace(loadings @ matrix @ loadings.T) / best)
