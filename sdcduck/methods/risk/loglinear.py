"""How many uniques of a sample are unique in the population, by a log-linear model of the frequencies of the classes.

The frequency of a class in the population is Poisson with a mean that main effects and interactions of the keys
explain. Of a class with one record in the sample, sampled with probability pi, the rest in the population is Poisson
with mean m = lambda (1 - pi), and

    P(F = 1 | f = 1) = exp(-m),        E(1/F | f = 1) = (1 - exp(-m)) / m.

Source: Skinner and Shlomo (2008), Journal of the American Statistical Association 103; Clogg and Eliason (1987),
Sociological Methods & Research 16, of an exposure that differs from cell to cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CYCLES = 500
_CLOSE = 1e-9  # of a margin, as a share of the total


def expected_frequencies(
    observed: Floats, terms: Sequence[tuple[int, ...]], trends: Mapping[int, Floats], check: Callable[[], None],
    *, exposure: Floats | None = None, covariate: Floats | None = None,
) -> Floats:  # fmt: skip
    """The maximum-likelihood frequencies of a log-linear model, by iterative proportional fitting.

    Args:
        observed: frequencies of all combinations of the keys, one axis a key; not all zero.
        terms: axes whose margins the model keeps.
        trends: scores of the categories of an axis whose effect is linear in them: the model keeps their mean.
        check: called once a cycle; it may raise to end the fit.
        exposure: by cell, above 0, what the frequencies are proportional to besides: its logarithm is an offset.
        covariate: by cell, a number with a linear effect: the model keeps its mean.
    """
    axes = range(observed.ndim)
    total = observed.sum()
    fitted = np.full(observed.shape, total / observed.size)
    if exposure is not None:
        fitted = exposure * (total / exposure.sum())
    kept = [(term, observed.sum(axis=tuple(a for a in axes if a not in term), keepdims=True)) for term in terms]
    scaled = {}
    for axis, scores in trends.items():
        spread = float(np.ptp(scores))
        scaled[axis] = (scores - scores.min()) / spread if spread else np.zeros(len(scores))
    means = {
        axis: float(observed.sum(axis=tuple(a for a in axes if a != axis)) @ scores / total)
        for axis, scores in scaled.items()
    }
    tilt = None if covariate is None else (covariate - covariate.min()) / (float(np.ptp(covariate)) or 1.0)
    for _ in range(_CYCLES if tilt is None else 10 * _CYCLES):
        check()
        off = 0.0
        for term, margin in kept:
            now = fitted.sum(axis=tuple(a for a in axes if a not in term), keepdims=True)
            off = max(off, float(np.abs(margin - now).max()))
            fitted *= np.divide(margin, now, out=np.zeros_like(now), where=now > 0)
        for axis, scores in scaled.items():
            now = fitted.sum(axis=tuple(a for a in axes if a != axis))
            factor = np.exp(_slope(now, scores, means[axis]) * scores)
            factor *= total / (now @ factor)
            off = max(off, float(np.abs(now * (factor - 1)).max()))
            fitted *= factor.reshape([-1 if a == axis else 1 for a in axes])
        if tilt is not None:
            mean = float((observed * tilt).sum() / total)
            factor = np.exp(_slope(fitted.ravel(), tilt.ravel(), mean) * tilt)
            factor *= total / (fitted * factor).sum()
            off = max(off, float(np.abs(fitted * (factor - 1)).max()))
            fitted *= factor
        if off <= _CLOSE * total:
            break
    return fitted


def _slope(weights: Floats, scores: Floats, mean: float) -> float:
    """The tilt of a distribution over scores that gives it a mean; Newton's method, on a convex function."""
    slope = 0.0
    for _ in range(100):
        tilted = weights * np.exp(slope * (scores - mean))
        mass = tilted.sum()
        gap = float(tilted @ (scores - mean) / mass)
        variance = float(tilted @ (scores - mean) ** 2 / mass) - gap**2
        if abs(gap) < 1e-14 or variance <= 0:
            break
        slope -= float(np.clip(gap / variance, -5, 5))
    return slope


def unique_risks(population: Floats, sampled: Floats) -> tuple[Floats, Floats]:
    """For classes of one record: the chance that it is the only one of the population, and of a right match.

    Args:
        population: expected frequency in the population.
        sampled: the probability with which one of the class is in the sample, above 0, at most 1.
    """
    others = population * (1 - sampled)
    alone = np.exp(-others)
    match = np.divide(-np.expm1(-others), others, out=np.ones_like(others), where=others > 0)
    return alone, match


def deviance(observed: Floats, fitted: Floats) -> float:
    """Twice the logarithm of the likelihood ratio of the saturated model and the fitted one."""
    some = observed > 0
    ratio = float((observed[some] * np.log(observed[some] / fitted[some])).sum())
    return max(0.0, 2 * (ratio - float(observed.sum() - fitted.sum())))
