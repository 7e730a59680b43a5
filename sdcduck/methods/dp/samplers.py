"""Where the noise of a private statistic comes from: OpenDP, and the random source of the system for directions.

Kernels take a `Sampler`, so that a test can give them numbers that it knows. What they are given for a release is
`Released`: there is no seed, and none can be given.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from sdcduck.errors import SDCError

Floats = NDArray[np.float64]


class Sampler(Protocol):
    """What a private statistic draws."""

    def laplace(self, values: Floats, scale: float) -> Floats:
        """The values (k,) with independent Laplace noise of this scale."""

    def normal(self, values: Floats, sd: float) -> Floats:
        """The values (k,) with independent normal noise of this standard deviation."""

    def uniform(self, count: int) -> Floats:
        """Numbers between 0 and 1, without the ends."""


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as missing:
        raise SDCError(f"differential privacy needs the package '{missing.name}': pip install 'sdcduck[dp]'") from None
    dp.enable_features("contrib")
    return dp


class Released:
    """Noise of OpenDP, which draws on a grid with the randomness of the system; uniform numbers from the latter."""

    def laplace(self, values: Floats, scale: float) -> Floats:
        """Two-sided geometric noise on OpenDP's grid of floating-point numbers."""
        dp = _opendp()
        domain = dp.vector_domain(dp.atom_domain(T=dp.f64, nan=False))
        return np.array(dp.m.make_laplace(domain, dp.l1_distance(T=dp.f64), scale)(values.tolist()))

    def normal(self, values: Floats, sd: float) -> Floats:
        """Discrete Gaussian noise on the same grid."""
        dp = _opendp()
        domain = dp.vector_domain(dp.atom_domain(T=dp.f64, nan=False))
        return np.array(dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), sd)(values.tolist()))

    def uniform(self, count: int) -> Floats:
        """Of 52 random bits each, in the middle of their intervals: never 0 and never 1."""
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(12)
        return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)


def normals(sampler: Sampler, count: int) -> Floats:
    """Standard normal numbers, by the inverse of their distribution function."""
    return np.asarray(scipy.special.ndtri(sampler.uniform(count)))
