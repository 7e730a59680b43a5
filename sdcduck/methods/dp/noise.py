"""Normal noise from OpenDP on a grid of whole steps, and the grid that a number needs.

What is released is a sum of whole numbers of steps, and the noise is a whole number of steps, too: both are added
without rounding, so that no low digit of the result tells which of two sums it came from (Mironov 2012). The step is a
power of two, chosen from what is public.

OpenDP draws the discrete normal law. With a standard deviation of s steps its chance of each step differs from that of
a normal number rounded to steps by a factor of at most 1 + (t^2 + 1) / 24 s^2 up to t standard deviations, and beyond
all t that matter there is nothing. With s of at least 2^34 that is less than what `KEPT` leaves of epsilon and delta,
so that the exact calibration of normal noise holds.

OpenDP takes its randomness from the operating system: there is no seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sdcduck.errors import SDCError

KEPT = 1 - 1e-9
"""The part of epsilon and delta that noise is calibrated for; the rest pays for the grid and for rounding."""
LEAST_STEPS = 2.0**34
"""Steps of the grid in the standard deviation of the noise, at least."""
_FINEST_RANGE = 2.0**30
"""Steps of the grid in the range of a value, at least."""
_MOST_STEPS = 2.0**57
"""Of the standard deviation: 64 of them are still whole numbers of 64 bits."""
_MOST_OF_RECORD = 2.0**62
"""Of what a record adds: more would fail, and the failure would tell of the record."""
_BATCH = 1 << 16


def step_of(width: float, deviation: float, reach: float | None = None) -> float:
    """The step of the grid for a number that changes by at most ``width``, and its noise: a power of two.

    What a record adds is as many steps as 64 bits hold: it is at most ``reach`` in size, if not ``width``.

    >>> step_of(100.0, 40.0) == 2.0**-29
    True
    """
    step = 2.0 ** math.floor(math.log2(min(width / _FINEST_RANGE, deviation / LEAST_STEPS)))
    if step < 1e-290 or not deviation / step <= _MOST_STEPS or not (reach or width) / step <= _MOST_OF_RECORD:
        raise SDCError("argument 'epsilon' is so small or so large that there is no such noise")
    return step


def _measurement(deviation: float) -> Any:
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as missing:
        raise SDCError(f"differential privacy needs the package '{missing.name}': pip install 'sdcduck[dp]'") from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    return dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), deviation)


def grid_noise(deviation: float, count: int = 1, check: Callable[[], object] = lambda: None) -> list[int]:
    """Independent noise in steps, of a standard deviation in steps."""
    measurement = _measurement(deviation)
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += measurement([0] * min(_BATCH, count - len(drawn)))
        check()
    return drawn


def with_noise(steps: Sequence[int], deviations: Sequence[float]) -> list[int]:
    """Whole numbers of steps, each with noise of its own standard deviation, in steps."""
    drawn = {deviation: iter(grid_noise(deviation, count)) for deviation, count in Counter(deviations).items()}
    return [value + next(drawn[deviation]) for value, deviation in zip(steps, deviations, strict=True)]
