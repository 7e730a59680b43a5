"""The maximum-entropy noise law of one row of a perturbation table.

Among the laws of a noise v on a given grid with mean 0 and a bounded variance, take the one with the
largest entropy (Fraser & Wooton 2005; Marley & Leaver 2011; Giessing & Tent 2019).  The R package `ptable`
hands this problem to SLSQP; here it is solved exactly through its dual, a smooth convex function of two or
three multipliers (sum, mean, variance), whatever the number of targets.

Given the multipliers (a, b, c) the best law is known in closed form: log p_v = a + b v + c v^2.  Under the
monotone condition, log p is the isotonic regression of that quadratic over the targets up to v = 0, which
pools a single block: the last one of the chain if the quadratic is concave, the first one if it is convex.
Bounds on p clip.  What is left is Newton's method on the multipliers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLOOR = 1e-8
"""Smallest probability of a target, as in `ptable`: the unit of the bounds of cell-key intervals."""

_LOG_FLOOR = float(np.log(FLOOR))
_RESIDUAL = 1e-13  # accepted error of sum, mean and variance, the last two standardised
_STALLED = 1e-10  # the same once rounding errors stop Newton's method
_ITERATIONS = 200  # ten are usual; more than 30 only next to infeasibility


class NoConvergence(ArithmeticError):
    """Newton's method neither reached the optimum nor proved that there is none.  No such case is known."""


def reachable_variance(v: Array, mono: bool) -> tuple[float, float]:
    """Smallest and largest variance of a law with mean 0 and p >= FLOOR on the targets.

    Parameters
    ----------
    v : (K,) noise of the targets, strictly increasing
    mono : p_v must not decrease from the first target up to v = 0 (no effect when 0 is not a target)

    Raises
    ------
    ValueError
        no law on the targets has mean 0.

    Above the floor, every law is a mixture of point masses and, under `mono`, of uniform laws on v_k..0.
    Given sum and mean, the extremes of the variance need at most two components.
    """
    chain = _chain_length(v, mono)
    sizes = np.arange(chain, 0, -1)
    means, squares = v.copy(), v * v
    means[:chain] = np.cumsum(means[:chain][::-1])[::-1] / sizes
    squares[:chain] = np.cumsum(squares[:chain][::-1])[::-1] / sizes

    above_floor = 1.0 - FLOOR * v.size
    mean = -FLOOR * float(v.sum()) / above_floor
    left, right, balanced = means < mean, means > mean, means == mean
    weight = (means[right] - mean) / (means[right] - means[left][:, None])
    mixtures = weight * squares[left][:, None] + (1.0 - weight) * squares[right]
    extremes = np.concatenate([mixtures.ravel(), squares[balanced]])
    if extremes.size == 0 or above_floor <= 0.0:
        raise ValueError(f"no law on {v.size} targets between {v[0]:g} and {v[-1]:g} has mean 0")
    variances = FLOOR * float(v @ v) + above_floor * extremes
    return float(variances.min()), float(variances.max())


def maximum_entropy_law(v: Array, variance: float, *, exact: bool, mono: bool, stay: float = FLOOR) -> Array | None:
    """The law of largest entropy with mean 0 and p >= FLOOR on the targets.

    Parameters
    ----------
    v : (K,) noise of the targets, strictly increasing
    variance : upper bound of sum v^2 p_v, in squared units of v
    exact : sum v^2 p_v must be equal to `variance`
    mono : p_v must not decrease from the first target up to v = 0 (no effect when 0 is not a target)
    stay : lower bound of p_0 (no effect when 0 is not a target)

    Returns
    -------
    (K,) probabilities, moments and optimum accurate to about 1e-11; None if no law is feasible, or if sum,
    mean and variance lie within some 1e-8 of what no law attains.

    Raises
    ------
    NoConvergence
        see there.
    """
    dual = _Dual(v, mono, max(stay, FLOOR))
    law = dual.minimise(None)
    if law is None:
        return None
    excess = float(v * v @ law) - variance
    if abs(excess) <= 1e-11 * max(1.0, variance) or (excess < 0.0 and not exact):
        return law
    if variance > float((v * v).max()):
        return None
    return dual.minimise(variance)


def _chain_length(v: Array, mono: bool) -> int:
    """How many targets, counted from the first, the monotone condition orders: those up to v = 0, or none."""
    return int(np.searchsorted(v, 0.0)) + 1 if mono and 0.0 in v else 0


class _Dual:
    """The dual problem of one row: from multipliers to the law, and the minimum over the multipliers."""

    def __init__(self, v: Array, mono: bool, stay: float) -> None:
        self.v = v
        self.chain = _chain_length(v, mono)
        self.zero = int(np.searchsorted(v, 0.0)) if 0.0 in v else None
        self.log_stay = float(np.log(stay))

    def minimise(self, variance: float | None) -> Array | None:
        """Optimal law with mean 0 and, unless None, with the variance; None if that is infeasible."""
        v = self.v
        squares = v * v
        unit = float(squares.max())
        if variance is not None:  # the smallest noise must not vanish beside the others, nor explode
            unit = min(unit, max(variance, float(squares[squares > 0.0].min())))
        x = v / np.sqrt(unit)
        if variance is None:
            features, moments = np.column_stack([np.ones_like(x), x]), np.array([1.0, 0.0])
        else:
            features = np.column_stack([np.ones_like(x), x, x * x])
            moments = np.array([1.0, 0.0, variance / unit])
        y = np.zeros(moments.size)
        y[0] = -np.log(v.size)

        law, slopes, value = self._law(features, moments, y)
        error, length, longest = np.inf, 1.0, 1.0
        for _ in range(_ITERATIONS):
            gradient = features.T @ law - moments
            previous, error = error, float(np.abs(gradient).max())
            if error <= _RESIDUAL or (error <= _STALLED and error >= previous):
                return law
            # A gradient that a whole step hardly changes tells of a long way, perhaps without an end.
            longest = 4.0 * longest if length == longest and error > 0.9 * previous else 1.0
            # Clipping and pooling can leave the dual flat in some direction: damp, less and less.
            hessian = slopes.T @ (law[:, None] * slopes)
            damping = max(1e-7 * error, 1e-15) * float(np.trace(hessian)) + 1e-30
            step = np.linalg.solve(hessian + damping * np.eye(y.size), -gradient)
            descent = float(gradient @ step)
            rounding = 1e-13 * (1.0 + abs(value))
            length = longest
            trial = self._law(features, moments, y + length * step)
            while not trial[2] <= value + 1e-4 * length * descent + rounding:
                length /= 2.0
                if length < 1e-15:
                    raise NoConvergence(f"no descent at an error of {error:.1e} in the moments")
                trial = self._law(features, moments, y + length * step)
            y = y + length * step
            law, slopes, value = trial
            # Weak duality: if all moments within r of the wanted ones are feasible, value >= r max|y|,
            # as entropies are not negative.
            if value < FLOOR * float(np.abs(y).max()):
                return None
        raise NoConvergence(f"error of {error:.1e} in the moments after {_ITERATIONS} iterations")

    def _law(self, features: Array, moments: Array, y: Array) -> tuple[Array, Array, float]:
        """Law maximising the Lagrangian at multipliers y, derivative of log p by y, value of the dual."""
        theta = features @ y
        log_p, slopes = theta.copy(), features.copy()
        convex = y.size > 2 and y[2] > 0.0
        _pool(log_p, slopes, self.chain, convex)
        if self.zero is not None and log_p[self.zero] < self.log_stay:
            # p_0 is at its bound; the targets left of it are ordered among themselves and below that bound.
            ordered = max(self.chain - 1, 0)
            log_p[:ordered], slopes[:ordered] = theta[:ordered], features[:ordered]
            _pool(log_p, slopes, ordered, convex)
            at_bound = np.flatnonzero(log_p[:ordered] > self.log_stay)
            log_p[at_bound], slopes[at_bound] = self.log_stay, 0.0
            log_p[self.zero], slopes[self.zero] = self.log_stay, 0.0
        at_floor = log_p < _LOG_FLOOR
        log_p[at_floor], slopes[at_floor] = _LOG_FLOOR, 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # an overflowing trial step is shortened
            law = np.exp(log_p)
            value = float(law @ (theta - log_p) + law.sum() - 1.0 - y @ moments)
        return law, slopes, value


def _pool(log_p: Array, slopes: Array, length: int, convex: bool) -> None:
    """Isotonic regression, in place, of the first `length` values of a quadratic and of their derivatives."""
    if length < 2:
        return
    sizes = np.arange(1, length + 1)
    if convex:
        averages = np.cumsum(log_p[:length]) / sizes
        block = slice(0, int(np.argmin(averages)) + 1)
    else:
        averages = np.cumsum(log_p[:length][::-1]) / sizes
        block = slice(length - 1 - int(np.argmax(averages)), length)
    log_p[block] = log_p[block].mean()
    slopes[block] = slopes[block].mean(axis=0)
