"""Noise of whole steps for exact totals, and what it costs: OpenDP's samplers and OpenDP's proofs.

Every total is a whole number of steps of a public grid, so that there is no floating-point number whose last digits
would tell (Mironov 2012). With a delta the noise is discrete Gaussian and costs are rho of zero-concentrated
differential privacy, which add up whatever is asked next (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020);
without one it is discrete Laplace and costs are epsilons.

Under costs that add up so, Gaussian noise is always the smaller of the two: rho buys a variance of 1 / (2 rho) for one
number of sensitivity 1, where Laplace noise has 1 / rho.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sdcduck.errors import SDCError

MOST = 2**62
"""Totals are taken for no more than this, which no neighbour makes differ by more than before."""
_HALVINGS = 24


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as missing:
        raise SDCError(f"differential privacy needs the package '{missing.name}': pip install 'sdcduck[dp]'") from None
    dp.enable_features("contrib")
    return dp


def _measurement(scale: float, gaussian: bool) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if gaussian:
        return dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale)


def _choice(scale: float, gaussian: bool) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    measure = dp.zero_concentrated_divergence() if gaussian else dp.max_divergence()
    return dp.m.make_noisy_max(domain, dp.linf_distance(T=dp.i64), measure, scale)


@lru_cache(1000)
def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon that a total cost of ``rho`` has at ``delta``, as OpenDP converts it."""
    if rho <= 0:
        return 0.0
    measurement = _opendp().c.make_zCDP_to_approxDP(_measurement(math.sqrt(1 / (2 * rho)), gaussian=True))
    return float(measurement.map(1.0).epsilon(delta))


@lru_cache(100)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest cost that has this epsilon at ``delta``, by halving an interval: never more than that."""
    known = math.log(1 / delta)
    low = (math.sqrt(known + epsilon) - math.sqrt(known)) ** 2  # by rho + 2 sqrt(rho log(1 / delta)), a looser bound
    high = low
    while epsilon_of(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return low


def scale_of(sensitivity: float, cost: float, *, gaussian: bool) -> float:
    """The scale of the noise, in steps, of totals that cost so much.

    Args:
        sensitivity: how far the totals of neighbours are apart, in steps: L2 of Gaussian noise, L1 of Laplace noise.
    """
    return sensitivity / math.sqrt(2 * cost) if gaussian else sensitivity / cost


def deviation(scale: float, *, gaussian: bool) -> float:
    """The standard deviation of noise of a scale, in steps; Gaussian noise has that of the continuous law at most."""
    if gaussian:
        return scale
    a = math.exp(-1 / scale)
    return math.sqrt(2 * a) / (1 - a)


def cost_of(sensitivity: float, scale: float, *, gaussian: bool) -> float:
    """What OpenDP certifies that it costs."""
    distance = float(sensitivity) if gaussian else math.ceil(sensitivity)
    return float(_measurement(scale, gaussian).map(distance))


def noisy(totals: Sequence[int], scale: float, *, gaussian: bool) -> list[int]:
    """Whole totals with independent noise, from the system's random source."""
    held = [max(-MOST, min(MOST, total)) for total in totals]
    return [int(total) for total in _measurement(scale, gaussian)(held)]


def choice_scale_of(sensitivity: float, cost: float, *, gaussian: bool) -> float:
    """The scale of a choice among numbers that costs so much.

    Args:
        sensitivity: how far apart neighbours are in how well a number fits.
    """
    return math.ceil(sensitivity) / math.sqrt(2 * cost) if gaussian else 2 * math.ceil(sensitivity) / cost


def choice_cost_of(sensitivity: float, scale: float, *, gaussian: bool) -> float:
    """What OpenDP certifies that it costs."""
    return float(_choice(scale, gaussian).map(math.ceil(sensitivity)))


def chosen(
    histograms: Sequence[Mapping[int, int]], positions: int, below: int, above: int, scale: float, *, gaussian: bool
) -> list[int]:
    """For each group a position on a grid, near that with ``below`` of ``below + above`` parts of the records below it.

    The exponential mechanism of Smith (2011, algorithm 2) on a grid, as report noisy max: a position fits by
    -|above * (records below it) - below * (records above it)|, and OpenDP chooses among all of them.

    Args:
        histograms: of each group, how many records have a position; others have none.
        positions: how many there are, from 0.
    """
    choice, found = _choice(scale, gaussian), []
    for histogram in histograms:
        counts = np.zeros(positions, np.int64)
        for position, number in histogram.items():
            counts[max(0, min(positions - 1, position))] += number
        under = np.cumsum(counts) - counts
        over = counts.sum() - under - counts
        found.append(int(choice((-np.abs(above * under - below * over)).tolist())))
    return found
