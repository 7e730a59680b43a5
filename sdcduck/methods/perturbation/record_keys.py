"""Whether numbers can be record keys: spread evenly, as random numbers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

PARTS = 16
"""Of the scale of the keys, in which they are counted."""
_BY_CHANCE = 1e-9


def are_spread(counts: NDArray[np.int64]) -> bool:
    """Whether so many keys in each part of their scale may be random numbers.

    Keys that are identifiers, ages or all the same lie in few parts. By chance no part has so many of them, at a level
    of 1e-9 for all parts together, of a binomial distribution each (Bonferroni).

    Args:
        counts: shape (parts,), keys in each of at least two parts of equal size.

    >>> are_spread(np.array([7, 3, 6, 4])), are_spread(np.array([40, 0, 0, 0])), are_spread(np.array([1, 0, 0, 0]))
    (True, False, True)
    """
    parts = len(counts)
    return bool(binom.sf(counts.max() - 1, counts.sum(), 1 / parts) * parts > _BY_CHANCE)
