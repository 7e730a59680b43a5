"""Whether numbers can be record keys: spread evenly, and different, as random numbers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import scipy

PARTS = 16
"""Of the scale of the keys, in which they are counted."""
_BY_CHANCE = 1e-9
_FEW = 9


def are_spread(counts: NDArray[np.int64], different: int, modulus: int) -> bool:
    """Whether so many keys in each part of their scale may be random numbers.

    Keys that are identifiers, ages or all the same lie in few parts, or few of them differ. By chance no part has so
    many of them, at a level of 1e-9 for all parts together, of a binomial distribution each (Bonferroni); and of n
    keys modulus * (1 - exp(-n / modulus)) differ.

    Args:
        counts: shape (parts,), keys in each of at least two parts of equal size.
        different: how many of all keys differ.
        modulus: keys run from 0 to modulus - 1.

    >>> are_spread(np.array([7, 3, 6, 4]), 20, 10**8), are_spread(np.array([40, 0, 0, 0]), 40, 10**8)
    (True, False)
    >>> are_spread(np.array([10, 10, 10, 10]), 4, 10**8), are_spread(np.array([1, 0, 0, 0]), 1, 10**8)
    (False, True)
    """
    parts, keys = len(counts), int(counts.sum())
    expected = -modulus * np.expm1(-keys / modulus)
    if keys >= _FEW and different < expected / 2:
        return False
    # The tail of the binomial distribution, without scipy.stats, which takes as long to import as all the rest.
    return bool(scipy.special.bdtrc(counts.max() - 1, keys, 1 / parts) * parts > _BY_CHANCE)
