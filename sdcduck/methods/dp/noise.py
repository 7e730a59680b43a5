"""Noise from OpenDP: the one place where it is drawn, and what OpenDP certifies that it costs.

OpenDP takes its randomness from the operating system: there is no seed, and none can be given.

What is released is mostly a sum of whole numbers of steps of a grid, and its noise is a whole number of steps, too:
both are added without rounding, so that no low digit of the result tells which of two sums it came from (Mironov 2012).
The step is chosen from what is public. Kernels over real numbers take a `Sampler`, so that a test can give them numbers
that it knows; what they are given for a release is `Released`.

For exact calibrations of normal noise the step is a power of two. OpenDP draws the discrete normal law. With a standard
deviation of s steps its chance of each step differs from that of a normal number rounded to steps by a factor of at
most 1 + (t^2 + 1) / 24 s^2 up to t standard deviations, and beyond all t that matter there is nothing. With s of at
least 2^34 that is less than what `KEPT` leaves of epsilon and delta, so that the exact calibration of normal noise
holds.

For totals whose costs add up, noise with a delta is discrete Gaussian and costs are rho of zero-concentrated
differential privacy, which add up whatever is asked next (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020);
without one it is discrete Laplace and costs are epsilons. Of one rho Gaussian noise is always the smaller of the two:
rho buys a variance of 1 / (2 rho) for one number of sensitivity 1, where Laplace noise of epsilon = sqrt(2 rho) has
1 / rho. Of one epsilon it is not: Laplace noise needs no delta, and what delta buys is for many numbers.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.methods.dp.calibration import gaussian_epsilon, gaussian_ratio, zcdp_order
from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]

KEPT = 1 - 1e-9
"""The part of epsilon and delta that normal noise is calibrated for; the rest pays for the grid and for rounding."""
LEAST_STEPS = 2.0**34
"""Steps of the grid in the standard deviation of normal noise that is calibrated exactly, at least."""
MOST = 2**62
"""Totals are taken for no more than this, which no neighbour makes differ by more than before."""
LAPLACE_STEPS = 2.0**20
"""The same of Laplace noise: it is exact on any grid, and is to look like what it is on a fine one."""
_FINEST_RANGE = 2.0**30
"""Steps of the grid in the range of a value, at least."""
_MOST_STEPS = 2.0**57
"""Of the standard deviation: 64 of them are still whole numbers of 64 bits."""
_MOST_OF_RECORD = 2.0**62
"""Of what a record adds: more would fail, and the failure would tell of the record."""
_HALVINGS = 24
_BATCH = 1 << 15  # numbers that OpenDP gets in one call: about half a second


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as missing:
        raise SDCError(f"differential privacy needs the package '{missing.name}': pip install 'sdcduck[dp]'") from None
    dp.enable_features("contrib")
    return dp


@lru_cache(1000)
def measurement(scale: float, *, gaussian: bool, whole: bool) -> Any:
    """OpenDP's measurement that adds independent noise of a scale to numbers, and knows what that costs.

    Args:
        scale: of Gaussian noise the standard deviation.
        gaussian: else it is Laplace noise.
        whole: discrete noise for whole numbers; else on OpenDP's grid of floating-point numbers.
    """
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64) if whole else dp.atom_domain(T=dp.f64, nan=False))
    if gaussian:
        return dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64 if whole else dp.f64), scale)


def draw(noise: Any, values: Sequence[Any], check: Callable[[], object] = lambda: None) -> list[Any]:
    """Values with the noise of a `measurement`, a batch at a time; ``check`` can stop it after each."""
    noisy: list[Any] = []
    for first in range(0, len(values), _BATCH):
        noisy += noise(values[first : first + _BATCH])
        check()
    return noisy


def step_of(width: float, deviation: float, reach: float | None = None, *, steps: float = LEAST_STEPS) -> float:
    """The step of the grid for a number that changes by at most ``width``, and its noise: a power of two.

    What a record adds is as many steps as 64 bits hold: it is at most ``reach`` in size, if not ``width``. There are so
    many ``steps`` in the deviation at least.

    >>> step_of(100.0, 40.0) == 2.0**-29
    True
    """
    step = 2.0 ** math.floor(math.log2(min(width / _FINEST_RANGE, deviation / steps)))
    if step < 1e-290 or not deviation / step <= _MOST_STEPS or not (reach or width) / step <= _MOST_OF_RECORD:
        raise SDCError("argument 'epsilon' is so small or so large that there is no such noise")
    return step


def with_noise(steps: Sequence[int], scales: Sequence[float], *, gaussian: bool = True) -> list[int]:
    """Whole numbers of steps, each with noise of its own scale, in steps: of normal noise the standard deviation."""
    drawn = {
        scale: iter(draw(measurement(scale, gaussian=gaussian, whole=True), [0] * count))
        for scale, count in Counter(scales).items()
    }
    return [value + next(drawn[scale]) for value, scale in zip(steps, scales, strict=True)]


def grid_noise(deviation: float, count: int = 1) -> list[int]:
    """Independent normal noise in steps, of a standard deviation in steps."""
    return draw(measurement(deviation, gaussian=True, whole=True), [0] * count)


def noisy(totals: Sequence[int], scale: float, *, gaussian: bool) -> list[int]:
    """Whole totals with independent noise."""
    held = [max(-MOST, min(MOST, total)) for total in totals]
    return draw(measurement(scale, gaussian=gaussian, whole=True), held)


class Sampler(Protocol):
    """What a private statistic draws."""

    def laplace(self, values: Floats, scale: float) -> Floats:
        """The values (k,) with independent Laplace noise of this scale."""

    def normal(self, values: Floats, sd: float) -> Floats:
        """The values (k,) with independent normal noise of this standard deviation."""

    def uniform(self, count: int) -> Floats:
        """Numbers between 0 and 1, without the ends."""


class Released:
    """Noise on OpenDP's grid of floating-point numbers, and uniform numbers of the system's random source."""

    def laplace(self, values: Floats, scale: float) -> Floats:
        """Two-sided geometric noise on the grid."""
        return np.array(draw(measurement(scale, gaussian=False, whole=False), values.tolist()))

    def normal(self, values: Floats, sd: float) -> Floats:
        """Discrete Gaussian noise on the grid."""
        return np.array(draw(measurement(sd, gaussian=True, whole=False), values.tolist()))

    def uniform(self, count: int) -> Floats:
        """Of 52 random bits each, in the middle of their intervals: never 0 and never 1."""
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(12)
        return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)


def normals(sampler: Sampler, count: int) -> Floats:
    """Standard normal numbers, by the inverse of their distribution function."""
    return np.asarray(scipy.special.ndtri(sampler.uniform(count)))


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


@lru_cache(1000)
def cost_of(sensitivity: float, scale: float, *, gaussian: bool) -> float:
    """What OpenDP certifies that whole totals with noise of this scale cost."""
    distance = float(sensitivity) if gaussian else math.ceil(sensitivity)
    return float(measurement(scale, gaussian=gaussian, whole=True).map(distance))


@lru_cache(1000)
def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon that a total cost of ``rho`` has at ``delta``, as OpenDP converts it."""
    if rho <= 0:
        return 0.0
    gaussian = measurement(math.sqrt(1 / (2 * rho)), gaussian=True, whole=True)
    return float(_opendp().c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta))


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


@lru_cache(100)
def normal_rho_of(epsilon: float, delta: float) -> float:
    """The cost of normal noise that has this epsilon at ``delta``, exactly: as half the square of its ratio.

    Normal noise on a grid fine enough (`finely_noisy`), however many questions it answers and however each follows from
    the answers before it, is as private as one number with the root of the sum of their squared ratios (Smith and
    Thakurta 2022, fully adaptive composition for Gaussian differential privacy). With other noise beside it that is not
    known, and the looser conversion of rho is taken.

    >>> 1.15 < normal_rho_of(1.0, 1e-6) / rho_of(1.0, 1e-6) < 1.3
    True
    """
    return gaussian_ratio(epsilon * KEPT, delta * KEPT) ** 2 / 2


@lru_cache(1000)
def normal_epsilon_of(rho: float, delta: float) -> float:
    """The epsilon that normal noise of such a cost has at ``delta``.

    >>> round(normal_epsilon_of(normal_rho_of(0.5, 1e-6), 1e-6), 6)
    0.5
    """
    return gaussian_epsilon(math.sqrt(2 * rho), delta * KEPT) / KEPT if rho > 0 else 0.0


def steps_of_one(scale: float) -> int:
    """Into how many steps `finely_noisy` divides one: a number of them that is half or more is rounded up.

    >>> steps_of_one(2.0**34), steps_of_one(2.0**33), steps_of_one(1.0) == 2**34
    (1, 2, True)
    """
    return 1 << max(0, math.ceil(math.log2(LEAST_STEPS / scale)))


def finely_noisy(totals: Sequence[int], scale: float) -> list[int]:
    """Whole totals with normal noise that is drawn on a grid of `LEAST_STEPS` in its deviation, and rounded after that.

    >>> len(finely_noisy([1, 2, 3], 0.5))
    3
    """
    finer = steps_of_one(scale)
    drawn = draw(measurement(scale * finer, gaussian=True, whole=True), [0] * len(totals))
    return [total + (noise + finer // 2) // finer for total, noise in zip(totals, drawn, strict=True)]


@lru_cache(100)
def order_of(rho: float, delta: float) -> float:
    """The order of the Renyi divergence at which so much rho has its epsilon at ``delta``."""
    return zcdp_order(rho, delta)


def _choice(scale: float, gaussian: bool) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    measure = dp.zero_concentrated_divergence() if gaussian else dp.max_divergence()
    return dp.m.make_noisy_max(domain, dp.linf_distance(T=dp.i64), measure, scale)


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
