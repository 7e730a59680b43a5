"""How much normal noise makes a query private: sigma from epsilon, delta and sensitivity, by three rules.

A query that changes by at most D in the Euclidean norm between neighbours, with normal noise of standard deviation
sigma on each coordinate, is (epsilon, delta)-private if and only if, with x = D / sigma,

    Phi(x/2 - epsilon/x) - e^epsilon Phi(-x/2 - epsilon/x) <= delta      (Balle & Wang 2018, theorem 8)

The left side rises in x, so there is a largest one; the rule 'analytic' takes it. 'zcdp' goes by rho = x^2/2 and the
conversion of Canonne, Kamath & Steinke (2020, proposition 12), 'classic' is theorem A.1 of Dwork & Roth (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sdcduck.errors import SDCError
from sdcduck.methods.numerics import scipy

RULES = ("analytic", "zcdp", "classic")
_MARGIN = 1e-12
"""What a root may be off by, relatively: noise errs to the side of more."""
_TINY = 1e-8
_FARTHEST = 700.0
"""Where roots are looked for: between e^-700 and e^700."""


def log_delta(ratio: float, epsilon: float) -> float:
    """The logarithm of the delta of normal noise with ``ratio`` = sensitivity / sigma at an epsilon of at least 0.

    For a tiny ratio both terms are the same but for rounding; what lies between them is then bounded by its width and
    the largest density, which is never less.

    >>> round(math.exp(log_delta(0.268051123, 1.0)), 10)
    1e-05
    """
    if ratio < _TINY:
        nearest = max(0.0, epsilon / ratio - ratio / 2)
        return math.log(ratio) - (math.log(2 * math.pi) + nearest * nearest) / 2
    above = float(scipy.special.log_ndtr(ratio / 2 - epsilon / ratio))
    below = epsilon + float(scipy.special.log_ndtr(-ratio / 2 - epsilon / ratio))
    if below >= above:  # equal but for rounding
        return -math.inf
    return above + math.log(-math.expm1(below - above))


def _root(rising: Callable[[float], float], side: float) -> float:
    """Where a rising function of the logarithm crosses 0; a little to the side, -1 below or 1 above.

    Raises:
        SDCError: it does so farther out than there are numbers.
    """
    low, high = -1.0, 1.0
    while rising(low) > 0 and low > -_FARTHEST:
        low = max(2 * low, -_FARTHEST)
    while rising(high) < 0 and high < _FARTHEST:
        high = min(2 * high, _FARTHEST)
    if rising(low) > 0 or rising(high) < 0:
        raise SDCError("argument 'epsilon' or 'delta' is so small or so large that there is no such noise")
    found = math.exp(scipy.optimize.brentq(rising, low, high, xtol=1e-14, rtol=1e-14))
    return float(found * (1 + side * _MARGIN))


def gaussian_ratio(epsilon: float, delta: float) -> float:
    """Lambda: the largest sensitivity / sigma that is (epsilon, delta)-private. epsilon above 0, 0 < delta < 1.

    >>> round(gaussian_ratio(1, 1e-5), 7)
    0.2680511
    """
    wanted = math.log(delta)
    return _root(lambda at: max(log_delta(math.exp(at), epsilon), -1e300) - wanted, -1)


def gaussian_epsilon(ratio: float, delta: float) -> float:
    """The least epsilon of normal noise with ``ratio`` = sensitivity / sigma, at a delta.

    >>> round(gaussian_epsilon(0.268051123, 1e-5), 6)
    1.0
    """
    wanted = math.log(delta)
    if ratio == 0 or log_delta(ratio, 0.0) <= wanted:
        return 0.0
    return _root(lambda at: wanted - max(log_delta(ratio, math.exp(at)), -1e300), 1)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon at a delta that follows from rho-zCDP (Canonne, Kamath & Steinke 2020, proposition 12).

    Each order alpha gives a bound that holds, so that it does not matter how close the best one is found.

    >>> round(zcdp_epsilon(0.1, 1e-6), 4)
    2.1419
    """
    return 0.0 if rho == 0 else max(0.0, _best_order(rho, delta)[1])


def zcdp_order(rho: float, delta: float) -> float:
    """The order alpha of the Renyi divergence from which that epsilon follows. rho above 0.

    >>> round(zcdp_order(0.1, 1e-6), 2)
    11.66
    """
    return 1 + math.exp(_best_order(rho, delta)[0])


def _best_order(rho: float, delta: float) -> tuple[float, float]:
    """The logarithm of alpha - 1 that gives the least epsilon, and that."""

    def bound(at: float) -> float:
        more = math.exp(at)  # alpha - 1
        tail = -math.log(delta) - at + (more + 1) * (at - math.log1p(more))
        return (more + 1) * rho + tail / more

    best = scipy.optimize.minimize_scalar(bound, bounds=(-20.0, 60.0), method="bounded", options={"xatol": 1e-10})
    # The expansion above is convex only near its minimum; the order of the plain conversion is tried, too.
    plain = max(-20.0, min(60.0, 0.5 * math.log(-math.log(delta) / rho) if delta < 1 else 0.0))
    return min((float(best.x), float(best.fun)), (plain, bound(plain)), key=lambda found: found[1])


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion gives (epsilon, delta)."""
    return _root(lambda at: zcdp_epsilon(math.exp(at), delta) - epsilon, -1)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float, rule: str = "analytic") -> float:
    """The standard deviation of the noise on each coordinate of a query of this sensitivity, by one of `RULES`.

    >>> [round(gaussian_sigma(1, 1e-5, 1, rule), 3) for rule in RULES]
    [3.731, 4.045, 4.845]
    """
    if rule == "analytic":
        return sensitivity / gaussian_ratio(epsilon, delta)
    if rule == "zcdp":
        return sensitivity / math.sqrt(2 * zcdp_rho(epsilon, delta))
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
