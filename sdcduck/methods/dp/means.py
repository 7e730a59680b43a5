"""Private means of columns with known bounds, all with one noise: Laplace, or normal where that is less."""

from __future__ import annotations

import math

from sdcduck.methods.dp.mean_test import mean_scale
from sdcduck.methods.dp.smaller_noise import SmallerNoise


def mean_noise(columns: int, records: int, epsilon: float, delta: float) -> SmallerNoise:
    """What the means of so many columns with entries in [-1, 1] need when one of the records is replaced.

    >>> mean_noise(1, 1000, 1, 1e-6).law, mean_noise(100, 1000, 1, 1e-6).law
    ('laplace', 'normal')
    """
    euclidean = 2 * math.sqrt(columns) / records * (1 + records * 2.0**-51)
    return SmallerNoise.of(mean_scale(1.0, columns, records, 1.0), euclidean, epsilon, delta)
