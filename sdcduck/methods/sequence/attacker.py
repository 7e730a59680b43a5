"""What somebody makes of many counts with noise: the best linear guess of single cells."""

from __future__ import annotations

import numpy as np

from sdcduck.methods.sequence.sets import Floats


def best_guess(asked: Floats, told: Floats, units: Floats, variance: float, chance: float) -> Floats:
    """Of each cell the share of units that have a property: float64 (c,), the mean of a normal posterior.

    Args:
        asked: float64 (k, c), which cells each count is about.
        told: float64 (k,), the counts, with noise.
        units: float64 (c,), units of each cell, above 0.
        variance: of the noise, above 0.
        chance: with which a unit has the property, as far as is known beforehand.

    >>> best_guess(np.eye(2), np.array([1.0, 0.0]), np.ones(2), 0.25, 0.5)
    array([0.75, 0.25])
    """
    weighted = asked * (units * chance * (1 - chance))
    inner = weighted @ asked.T + variance * np.eye(len(asked))
    moved = weighted.T @ np.linalg.solve(inner, told - asked @ (units * chance))
    return np.asarray(chance + moved / units, dtype=np.float64)
