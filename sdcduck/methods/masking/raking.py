"""Weights that fit known totals: raking, also called iterative proportional fitting.

Deming and Stephan (1940), "On a least squares adjustment of a sampled frequency table when the expected marginal totals
are known". All records of a cell, which have the same categories in all margins, have the same factor: cells are raked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Raked:
    """What raking has found.

    Attributes:
        factors: of each cell.
        cycles: how often all margins were gone through.
        converged: whether all gaps are within the tolerance.
        before, gaps: of each margin the largest difference of a total from its target, as a share of the target (of the
            target of all, where it is 0), before and after.
    """

    factors: Vector
    cycles: int
    converged: bool
    before: Vector
    gaps: Vector


def rake(
    weights: Vector, codes: Sequence[Indices], targets: Sequence[Vector], *, bounds: tuple[float, float] | None = None,
    tolerance: float = 1e-6, most_cycles: int = 100, check: Callable[[int, int], None] = lambda done, total: None,
) -> Raked:  # fmt: skip
    """Factors by which the totals of all margins become their targets, or as near as it goes.

    Args:
        weights: of n cells, at least 0.
        codes: of each margin the category of each cell, numbers from 0 on.
        targets: of each margin the total of each category, at least 0; a positive one needs a cell with weight.
        bounds: the least and the largest factor; where one is reached, others have to make up for it.
        tolerance: of the largest gap.
        most_cycles: after so many it ends, converged or not.
        check: called with how many cycles are done, and how many there may be.

    >>> rake(np.array([1.0, 1, 1, 1]), [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])],
    ...     [np.array([3.0, 1]), np.array([2.0, 2])]).factors.tolist()
    [1.5, 1.5, 0.5, 0.5]
    """
    factors = np.ones(len(weights))
    before = gaps = _gaps(weights, codes, targets)
    cycles = 0
    while cycles < most_cycles and gaps.max(initial=0.0) > tolerance:
        for category, target in zip(codes, targets, strict=True):
            now = np.bincount(category, weights * factors, minlength=len(target))
            factors *= np.divide(target, now, out=np.ones(len(target)), where=now > 0)[category]
            if bounds is not None:
                np.clip(factors, *bounds, out=factors)
        cycles += 1
        gaps = _gaps(weights * factors, codes, targets)
        check(cycles, most_cycles)
    return Raked(factors, cycles, bool(gaps.max(initial=0.0) <= tolerance), before, gaps)


def _gaps(weights: Vector, codes: Sequence[Indices], targets: Sequence[Vector]) -> Vector:
    """The largest gap of each margin."""
    found = []
    for category, target in zip(codes, targets, strict=True):
        now = np.bincount(category, weights, minlength=len(target))
        under = np.where(target > 0, target, target.sum() or 1.0)
        found.append(float((np.abs(now - target) / under).max(initial=0.0)))
    return np.array(found)
