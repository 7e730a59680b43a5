"""The risk of a record of a sample: the chance that it is linked rightly with its person in the population.

Of a class with f records in the sample, F in the population is unknown. Under the model of Benedetti and Franconi
(1998) F given f is negative binomial with f successes of probability p, the sampled share, and the risk is

    E[1/F | f] = (p^f / f) 2F1(f, f; f + 1; q) = (p / f) 2F1(1, 1; f + 1; q),    q = 1 - p,

by Euler's transformation. The last series has positive terms only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

_SMALL_CLASS = 20.0
_NEGLIGIBLE = 1e-17


@njit(cache=True, nogil=True)
def _expected_inverse(f, p):  # type: ignore[no-untyped-def]
    """E[1/F | f], exact to rounding."""
    if p >= 1.0:
        return 1.0 / f
    q = 1.0 - p
    if p < 0.5 and f < _SMALL_CLASS:
        # The integral behind the series obeys r(f) = (p / q) (1 / (f - 1) - r(f - 1)): errors shrink by p / q < 1.
        # The series itself would need some 1 / p terms.
        risk = -p * math.log(p) / q
        for size in range(1, int(f)):
            risk = p / q * (1.0 / size - risk)
        return risk
    term, total, k = 1.0, 1.0, 0.0
    while term > _NEGLIGIBLE * total:
        term *= q * (k + 1.0) / (f + 1.0 + k)
        total += term
        k += 1.0
    return p / f * total


@njit(cache=True, nogil=True)
def _fill(records, population, approximate, risk):  # type: ignore[no-untyped-def]
    for place in range(len(records)):
        f = float(records[place])
        p = f / population[place]
        if approximate and f > 2.0:
            risk[place] = min(p / (f - (1.0 - p)), 1.0 / f) if p < 1.0 else 1.0 / f
        else:
            risk[place] = _expected_inverse(f, p)


def class_risk(
    records: NDArray[np.int64], population: NDArray[np.float64], *, approximate: bool = False
) -> NDArray[np.float64]:
    """Risk of each record of n classes, between 0 and 1.

    Args:
        records: f, number of records of the class in the sample, at least 1.
        population: estimate of F, such as the sum of the weights, positive. Where it is f or less, the risk is 1/f.
        approximate: p / (f - (1 - p)) for f > 2, as mu-ARGUS and sdcMicro do; exact otherwise.

    Raises:
        ValueError: a class without records, or a population that is not positive.
    """
    if not (records >= 1).all():
        raise ValueError("a class has at least one record")
    if not ((population > 0) & np.isfinite(population)).all():
        raise ValueError("the population of a class must be a positive number")
    risk = np.empty(len(records))
    _fill(
        np.require(records, requirements=["C", "W"]), np.require(population, requirements=["C", "W"]), approximate, risk
    )
    return risk
