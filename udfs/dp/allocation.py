"""How numbers share noise, without any data: ``sdc_dp_allocation``."""

from __future__ import annotations

import math

import numpy as np

from sdcduck.functions.declared import planners
from sdcduck.udfs.arguments import is_finite, share, wrong
from sdcduck.udfs.dp.arguments import Given, Purpose, cost, size


def plan_dp_allocation(
    session: object, sensitivities: Given, epsilon: float | None, delta: float | None, objective: str | None,
    weights: Given, eta: Given, confidence: float | None, level: float | None,
) -> str:  # fmt: skip
    """``sdc_dp_allocation``: a row a number."""
    given = sensitivities or []
    if not given or not all(is_finite(one) and one >= 0 for one in given if one is not None) or None in given:
        raise wrong("sensitivities", "hold numbers of at least 0")
    if not all(size(one) for one in given if one is not None):
        raise wrong("sensitivities", "hold numbers that are 0, or from 1e-100 to 1e+100")
    changes = np.array(given, dtype=np.float64)
    if not changes.any():
        raise wrong("sensitivities", "hold a number above 0", "what never changes needs no noise")
    spent = cost(epsilon, delta)
    held = share(confidence, "confidence", zero=False, one=False)
    risk = share(level, "level", zero=False, one=False)
    purpose = Purpose.read(objective, weights, eta, len(changes))
    found = purpose.share(changes, *spent)
    all_asked = bool((found.shares[changes > 0] > 0).all())
    whole = (
        found.sigma,
        found.volume(held) if all_asked else None,
        found.volume_ratio if all_asked else None,
        None if purpose.eta is None else found.power(purpose.eta, risk),
    )
    axes = found.half_axes(held) if all_asked else [None] * len(changes)
    rows = [
        (place + 1, *map(sql_number, (changes[place], found.xi[place], found.deviations[place], axes[place], *whole)))
        for place in range(len(changes))
    ]
    values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return (
        "SELECT place::BIGINT AS place, sensitivity, xi, noise_sd, sigma, half_axis, volume, volume_ratio, power "
        f"FROM (VALUES {values}) "
        "t(place, sensitivity, xi, noise_sd, half_axis, sigma, volume, volume_ratio, power) ORDER BY place"
    )


def sql_number(value: float | None) -> str:
    """A number in SQL; NULL for what is none."""
    return f"{'NULL' if value is None or not math.isfinite(value) else repr(float(value))}::DOUBLE"


PLANNERS = planners(plan_dp_allocation)
