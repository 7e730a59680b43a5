"""Linear regression by noisy sufficient statistics: least squares of a matrix of products that has noise.

Of each record there is v = (1, x, y), with entries in [-1, 1]; the mean of vv' gets noise on its upper triangle, but
for the 1 in its corner, and all that follows is made of the noisy matrix. With q entries in v, one record in the place
of another changes the sum of the triangle by U, where

    2 U^2 = |vv' - ww'|^2 + sum of (v_i^2 - w_i^2)^2 <= 2 q^2 + q - 1         (the sum of squares)
    U_1 <= 2 floor(q^2 / 4) + q - 1                                          (the sum of absolute values)

The first uses that |vv' - ww'|^2 = |v|^4 + |w|^4 - 2 (v'w)^2. Of the second the part beside the diagonal is convex in
each entry, so that it is largest at corners, where a entries have other signs and a (q - a) products do; an entry of
the diagonal changes by 1 at most.

The coefficients b solve A b = c. Noise E on A and e on c moves them by about A^-1 (e - E b): entries i and k of that
vector have the covariance s^2 (b_i b_k), as they share E_ik, and the variance s^2 (1 + the sum of b_j^2). Sampling adds
what least squares has without noise. Where A is not clearly larger than its noise neither holds: its eigenvalues are
then raised to the size of the noise (a ridge), coefficients are too small, and there is no standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.dp.moments import mirrored
from sdcduck.methods.dp.noise import Floats, Sampler
from sdcduck.methods.dp.smaller_noise import SmallerNoise
from sdcduck.methods.numerics import scipy

_CLEAR = 4.0
"""How many times the norm of its noise the smallest eigenvalue of A has to be."""


def product_changes(entries: int) -> tuple[float, float]:
    """By how much the sum of the triangle changes: as sum of absolute values, and as root of the sum of squares.

    >>> product_changes(2)
    (3.0, 2.1213203435596424)
    """
    return 2.0 * (entries**2 // 4) + entries - 1, math.sqrt(entries**2 + (entries - 1) / 2)


def product_noise(entries: int, records: int, epsilon: float, delta: float) -> SmallerNoise:
    """The noise of each entry of the mean of products of so many records, of which one is replaced.

    Entries are off by rounding, which neighbours need not share.

    >>> product_noise(3, 1000, 1, 0).law, product_noise(10, 1000, 1, 1e-6).law
    ('laplace', 'normal')
    """
    absolute, euclidean = (change / records * (1 + records * 2.0**-50) for change in product_changes(entries))
    return SmallerNoise.of(absolute, euclidean, epsilon, delta)


def noisy_products(products: Floats, noise: SmallerNoise, sampler: Sampler) -> Floats:
    """The mean of vv' (q, q), with noise everywhere but in the corner that is 1."""
    triangle = products[np.triu_indices(len(products))][1:]
    return mirrored(np.concatenate([[1.0], noise.put_on(triangle, sampler)]))


@dataclass(frozen=True)
class Fit:
    """Coefficients from a noisy mean of products, the constant first.

    Attributes:
        coefficients: (p,).
        of_noise: (p, p) the covariance that the noise gives them; NaN where the noise is too large to say.
        of_sampling: (p, p) that of least squares itself.
        shrunk: whether the matrix had to be made larger.
    """

    coefficients: Floats
    of_noise: Floats
    of_sampling: Floats
    shrunk: bool

    @property
    def errors(self) -> Floats:
        """(p,) the standard errors, of noise and sampling; NaN where there are none."""
        return np.asarray(np.sqrt(np.diag(self.of_noise + self.of_sampling)))

    def half_widths(self, confidence: float) -> Floats:
        """(p,) of the intervals."""
        return np.asarray(self.errors * float(scipy.special.ndtri((1 + confidence) / 2)))

    @classmethod
    def of(cls, noisy: Floats, records: int, sd: float) -> Fit:
        """From the noisy mean of vv' (q, q), the outcome last, and the standard deviation of its noise."""
        products, with_outcome, square = noisy[:-1, :-1], noisy[:-1, -1], float(noisy[-1, -1])
        count = len(products)
        values, vectors = np.linalg.eigh(products)
        # The norm of a symmetric matrix of independent entries is about twice the root of its size.
        least = 2 * math.sqrt(count) * sd
        shrunk = bool(values[0] < _CLEAR * least)
        raised = np.maximum(values, max(least, 1e-12)) if shrunk else values
        inverse = (vectors / raised) @ vectors.T
        found = inverse @ with_outcome
        if shrunk:
            unknown = np.full((count, count), math.nan)
            return cls(found, unknown, unknown, shrunk)
        # The constant is known to be 1 in the corner: no noise there.
        moved = np.outer(found, found)
        np.fill_diagonal(moved, 1 + (found**2).sum())
        moved[0, 0] -= found[0] ** 2
        left = max(square - 2 * float(found @ with_outcome) + float(found @ products @ found), 0.0)
        return cls(
            found, sd**2 * inverse @ moved @ inverse, left / max(records - count, 1) * inverse, shrunk
        )  # fmt: skip

    def in_units(self, centres: Floats, units: Floats) -> Fit:
        """The same of columns that were (value - centre) / unit, the outcome last."""
        turned = np.zeros((len(self.coefficients),) * 2)
        np.fill_diagonal(turned, units[-1] / np.concatenate([[1.0], units[:-1]]))
        turned[0, 1:] = -centres[:-1] * units[-1] / units[:-1]
        coefficients = turned @ self.coefficients
        coefficients[0] += centres[-1]
        spread = [turned @ one @ turned.T for one in (self.of_noise, self.of_sampling)]
        return Fit(coefficients, spread[0], spread[1], self.shrunk)
