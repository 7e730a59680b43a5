"""Noise with a seed, and exact sums of records, for tests of private statistics: OpenDP takes no seed."""

from __future__ import annotations

import numpy as np

from sdcduck.methods.dp.moments import GRID, Moments, upper


class Seeded:
    """A sampler of kernels, with a seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        """With Laplace noise."""
        return values + self.generator.laplace(scale=scale, size=len(values))

    def normal(self, values: np.ndarray, sd: float) -> np.ndarray:
        """With normal noise."""
        return values + self.generator.normal(scale=sd, size=len(values))

    def uniform(self, count: int) -> np.ndarray:
        """Between 0 and 1."""
        return self.generator.random(count)


def moments_of(values: np.ndarray) -> Moments:
    """The exact sums of numbers (n, d), rounded to steps; of up to 8 in size."""
    steps = np.rint(values * GRID).astype(np.int64)
    assert np.abs(steps).max(initial=0) <= 8 * GRID
    pairs = upper(values.shape[1])
    products = sum(
        (steps[first : first + 256].T @ steps[first : first + 256]).astype(object)
        for first in range(0, len(steps), 256)
    )
    return Moments(len(steps), tuple(map(int, steps.sum(axis=0))), tuple(int(products[pair]) for pair in pairs))
