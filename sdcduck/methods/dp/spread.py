"""How far from 0 noise is at most, with a given probability: for intervals around what was released.

For discrete noise of whole steps the answer is a whole number of steps: the smallest that the noise goes beyond with no
more than the probability that is left.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

_SUMMED = 1000.0
"""Standard deviations up to which chances are added up one by one; beyond, the bound is within one step of them."""
_FARTHEST = 40  # standard deviations: what is beyond is no number


def spread(scale: float, level: float, *, gaussian: bool) -> int:
    """Steps within which noise of a scale stays with probability ``level`` at least.

    Discrete Laplace noise goes beyond q steps with probability 2 a^(q + 1) / (1 + a), a = exp(-1 / scale). Discrete
    Gaussian noise reaches m with no more than the probability with which normal noise reaches m - 1 (Canonne, Kamath
    and Steinke 2020, proposition 25).

    >>> spread(2.0, 0.95, gaussian=False), spread(2.0, 0.95, gaussian=True), spread(1e6, 0.95, gaussian=True)
    (6, 4, 1959964)
    """
    beyond = 1 - level
    if not gaussian:
        ratio = math.exp(-1 / scale)
        steps = max(0, math.ceil(scale * math.log(2 / ((1 + ratio) * beyond))) - 1)
        # Of logarithms the last digit may be wrong, and a step more is never too few.
        return steps if 2 * math.exp(-(steps + 1) / scale) / (1 + ratio) <= beyond else steps + 1
    if scale > _SUMMED:
        return math.ceil(scale * NormalDist().inv_cdf(1 - beyond / 2))
    weights = np.exp(-0.5 * (np.arange(math.ceil(_FARTHEST * scale) + 2) / scale) ** 2)
    tails = 2 * np.cumsum(weights[::-1])[::-1]  # of q and more, on both sides
    return int(np.argmax(np.append(tails[1:], 0.0) <= beyond * (tails[0] - weights[0])))
