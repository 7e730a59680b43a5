"""A random direction that prefers those in which a matrix is large: the exponential mechanism for eigenvectors.

The density of a unit vector u is in proportion to exp(weight u'Cu), a Bingham distribution. It is drawn by rejection
from an angular central Gaussian one (Kent, Ganeiber & Mardia 2013), whose density is in proportion to
(u'Wu)^(-q/2). The paper prints that factor upside down in the chance of acceptance; here it stands where the largest
ratio is 1.
"""

from __future__ import annotations

import math

import numpy as np

from sdcduck.methods.dp.noise import Floats, Sampler, normals
from sdcduck.methods.numerics import scipy

_AT_ONCE = 16  # candidates that are drawn together


def envelope(penalties: Floats) -> tuple[float, float]:
    """b and log M for penalties (q,) of at least 0, one of them 0: the best envelope of its kind.

    b is the root of sum 1 / (b + 2 penalty) = 1, between 0 and q.

    >>> envelope(np.zeros(3))
    (3.0, 0.0)
    """
    q = len(penalties)
    if not penalties.any():
        return float(q), 0.0
    # A penalty of 0 alone makes the sum 1 at b = 1, penalties that are 0 but for rounding at q: the ends lie beyond.
    b = min(
        float(q),
        float(
            scipy.optimize.brentq(
                lambda at: float((1 / (at + 2 * penalties)).sum()) - 1, 1.0 - 1e-12, q * (1 + 1e-12), xtol=1e-14
            )
        ),
    )
    return b, -(q - b) / 2 + q / 2 * math.log(q / b)


def direction(matrix: Floats, weight: float, sampler: Sampler) -> Floats:
    """A unit vector (q,) with density in proportion to exp(weight u'Cu), for a symmetric matrix C (q, q).

    Its sign is random, too, and of one dimension it is 1.
    """
    q = len(matrix)
    if q == 1:
        return np.ones(1)
    values, vectors = np.linalg.eigh(matrix)
    penalties = weight * (values[-1] - values)
    b, log_bound = envelope(penalties)
    widths = 1 + 2 * penalties / b
    while True:
        z = normals(sampler, _AT_ONCE * q).reshape(_AT_ONCE, q) / np.sqrt(widths)
        u = z / np.linalg.norm(z, axis=1, keepdims=True)
        squares = u * u
        chance = q / 2 * np.log(squares @ widths) - squares @ penalties - log_bound
        taken = np.flatnonzero(np.log(sampler.uniform(_AT_ONCE)) < chance)
        if len(taken):
            return np.asarray(vectors @ u[taken[0]])
