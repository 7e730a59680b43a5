"""Private means of columns with known bounds, all with one noise: Laplace, or normal where that is less."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy

from sdcduck.methods.dp.calibration import gaussian_ratio, gaussian_sigma
from sdcduck.methods.dp.mean_test import mean_scale
from sdcduck.methods.dp.noise import Floats, Sampler


@dataclass(frozen=True)
class MeanNoise:
    """The noise of means of entries in [-1, 1].

    Attributes:
        law: 'laplace' or 'normal'.
        scale: of Laplace noise, or the standard deviation of normal noise.
        ratio: sensitivity / sigma of normal noise.
    """

    law: str
    scale: float
    ratio: float | None = None

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return self.scale * (math.sqrt(2) if self.law == "laplace" else 1)

    def half_width(self, confidence: float) -> float:
        """Noise is not farther from 0 than this, in so many of all draws.

        >>> round(MeanNoise("laplace", 1).half_width(0.95), 4), round(MeanNoise("normal", 1).half_width(0.95), 4)
        (2.9957, 1.96)
        """
        return self.scale * (
            -math.log1p(-confidence) if self.law == "laplace" else float(scipy.special.ndtri((1 + confidence) / 2))
        )

    def put_on(self, means: Floats, sampler: Sampler) -> Floats:
        """The means (d,) with noise."""
        return (sampler.laplace if self.law == "laplace" else sampler.normal)(means, self.scale)


def mean_noise(columns: int, records: int, epsilon: float, delta: float) -> MeanNoise:
    """What the means of so many columns need when one of the records is replaced: by a delta above 0 the smaller noise.

    >>> mean_noise(1, 1000, 1, 1e-6).law, mean_noise(100, 1000, 1, 1e-6).law
    ('laplace', 'normal')
    """
    laplace = MeanNoise("laplace", mean_scale(1.0, columns, records, epsilon))
    if delta == 0:
        return laplace
    change = 2 * math.sqrt(columns) / records * (1 + records * 2.0**-51)
    normal = MeanNoise("normal", gaussian_sigma(epsilon, delta, change), gaussian_ratio(epsilon, delta))
    return normal if normal.sd < laplace.sd else laplace
