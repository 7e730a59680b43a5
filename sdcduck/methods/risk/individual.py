"""The risk of a record of a sample: the chance that it is linked rightly with its person in the population.

Of a class with f records in the sample, F in the population is unknown. Under the model of Benedetti and Franconi
(1998) F given f is negative binomial with f successes of probability p, the sampled share, and the risk is

    E[1/F | f] = (p^f / f) 2F1(f, f; f + 1; q) = (p / f) 2F1(1, 1; f + 1; q),    q = 1 - p,

by Euler's transformation. The last series has positive terms only. f need not be whole, where records
with missing values count in part: it is also the integral of p u^(f-1) / (p + q u) from 0 to 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

_SMALL_CLASS = 20.0
_NEGLIGIBLE = 1e-17
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@njit(cache=True, nogil=True)
def _integral(f, p):  # type: ignore[no-untyped-def]
    """p times the integral of u^(f-1) / (p + q u) from 0 to 1, for 1 <= f < 2.

    Over x = log u, where it has no pole nearer than pi: pieces of length 2 from 0 down to where nothing is left.
    """
    q = 1.0 - p
    low, total = 0.0, 0.0
    while low > math.log(p) - 40.0:
        for place in range(len(_NODES)):
            x = low - 1.0 + _NODES[place]
            total += _WEIGHTS[place] * math.exp(f * x) / (p + q * math.exp(x))
        low -= 2.0
    return p * total


@njit(cache=True, nogil=True)
def _expected_inverse(f, p):  # type: ignore[no-untyped-def]
    """E[1/F | f], exact to rounding."""
    if p >= 1.0:
        return 1.0 / f
    q = 1.0 - p
    if p < 0.5 and f < _SMALL_CLASS:
        # The integral behind the series obeys r(f) = (p / q) (1 / (f - 1) - r(f - 1)): errors shrink by p / q < 1.
        # The series itself would need some 1 / p terms.
        part = f - math.floor(f)
        risk = -p * math.log(p) / q if part == 0.0 else _integral(1.0 + part, p)
        for size in range(1, int(f)):
            risk = p / q * (1.0 / (size + part) - risk)
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
    records: NDArray[np.int64] | NDArray[np.float64], population: NDArray[np.float64], *, approximate: bool = False
) -> NDArray[np.float64]:
    """Risk of each record of n classes, between 0 and 1.

    Args:
        records: f, number of records of the class in the sample, at least 1; not whole where some count in part.
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
        np.require(records, np.float64, ["C", "W"]), np.require(population, requirements=["C", "W"]), approximate, risk
    )
    return risk
