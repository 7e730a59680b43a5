"""The noise of several numbers that are released together: Laplace, or normal where a delta makes that the smaller."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sdcduck.methods.dp.calibration import gaussian_ratio, gaussian_sigma
from sdcduck.methods.dp.noise import Floats, Sampler
from sdcduck.methods.numerics import scipy


@dataclass(frozen=True)
class SmallerNoise:
    """The noise of each of the numbers.

    Attributes:
        law: 'laplace' or 'normal'.
        scale: of Laplace noise, or the standard deviation of normal noise.
        ratio: sensitivity / sigma of normal noise.
    """

    law: str
    scale: float
    ratio: float | None = None

    @classmethod
    def of(cls, absolute: float, euclidean: float, epsilon: float, delta: float) -> SmallerNoise:
        """For numbers that one record changes by so much, as sum of absolute values and as root of the sum of squares.

        >>> SmallerNoise.of(1, 1, 1, 0), SmallerNoise.of(1, 1, 1, 1e-6).law, SmallerNoise.of(100, 10, 1, 1e-6).law
        (SmallerNoise(law='laplace', scale=1.0, ratio=None), 'laplace', 'normal')
        """
        laplace = cls("laplace", absolute / epsilon)
        if delta == 0:
            return laplace
        normal = cls("normal", gaussian_sigma(epsilon, delta, euclidean), gaussian_ratio(epsilon, delta))
        return normal if normal.sd < laplace.sd else laplace

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return self.scale * (math.sqrt(2) if self.law == "laplace" else 1)

    def half_width(self, confidence: float) -> float:
        """Noise is not farther from 0 than this, in so many of all draws.

        >>> round(SmallerNoise("laplace", 1).half_width(0.95), 4), round(SmallerNoise("normal", 1).half_width(0.95), 4)
        (2.9957, 1.96)
        """
        return self.scale * (
            -math.log1p(-confidence) if self.law == "laplace" else float(scipy.special.ndtri((1 + confidence) / 2))
        )

    def put_on(self, values: Floats, sampler: Sampler) -> Floats:
        """The numbers (k,) with noise."""
        return (sampler.laplace if self.law == "laplace" else sampler.normal)(values, self.scale)
