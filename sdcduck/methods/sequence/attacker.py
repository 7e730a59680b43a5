"""What somebody makes of many counts with noise: the best linear guess of single cells, and what an error leaves."""

from __future__ import annotations

import math
from statistics import NormalDist

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


def right_at_error(error: float, chance: float) -> float:
    """How often somebody is right, at most, of a person of whom all answers together leave this error.

    Least squares makes of all answers one number for the person: whether the property holds, 0 or 1, plus noise of a
    variance v, nearly normal where there are many answers. The property is guessed where the number lies above
    1/2 + v log((1 - p) / p), with p the chance, which is known.

    The error is a share of what it was for somebody who takes the chance to be 1/2: e^2 = w / (1/4 + w), with w the
    variance of this noise for him. Who knows the chance doubts less about all others, so that v is smaller than w. It
    is not below 4 p (1 - p) w, which it would be if all doubts and the noise of the answers were so much smaller.

    Args:
        error: as a share of the one before all answers, above 0 and below 1.
        chance: with which a person has the property, above 0 and below 1.

    >>> [round(right_at_error(error, 0.3) - 0.7, 3) for error in (0.9, 0.8, 0.5)]
    [0.053, 0.122, 0.274]
    """
    if not (0 < error < 1 and 0 < chance < 1):
        raise ValueError("an error and a chance must lie above 0 and below 1")
    variance = chance * (1 - chance) * error**2 / (1 - error**2)
    least, spread = 0.5 + variance * math.log((1 - chance) / chance), math.sqrt(variance)
    below = NormalDist(0, spread).cdf
    return (1 - chance) * below(least) + chance * (1 - below(least - 1))
