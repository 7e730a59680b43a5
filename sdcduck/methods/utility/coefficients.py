"""The coefficients of a regression on original and on synthetic records, one beside the other.

Several synthetic sets have one estimate, the mean of theirs, with the mean of their variances times k / n, or, for the
population, k / n + 1 / sets (Raab, Nowok and Dibben 2016). The overlap of intervals is that of Karr et al. (2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.utility.intervals import overlap
from sdcduck.methods.utility.logit import Fit

_SEPARATED = 25.0  # times the original's standard error: a coefficient that runs away


@dataclass(frozen=True)
class Coefficient:
    """One coefficient on both; None where there is no such number.

    Attributes:
        term: its name.
        cio, cio_raw: overlap of the two intervals, as 0 to 1 and as it comes out; 0 where no synthetic one is known.
        z: distance of the estimates in standard errors of the original one.
        warning: why there is no number, or why it is to be taken with care.
    """

    term: str
    estimate_original: float | None = None
    se_original: float | None = None
    estimate_synthetic: float | None = None
    se_synthetic: float | None = None
    ratio_estimate: float | None = None
    ratio_se: float | None = None
    cio: float | None = None
    cio_raw: float | None = None
    z: float | None = None
    same_sign: bool | None = None
    warning: str | None = None


def compared_coefficients(
    original: Fit | None, synthetic: Sequence[Fit | None], names: Sequence[str], *, ratio: float, population: bool,
    quantile: float,
) -> list[Coefficient]:  # fmt: skip
    """Each coefficient on both.

    Args:
        synthetic: the fit to each synthetic set; None: to that set there is none.
        ratio: synthetic records over original ones.
        population: whether intervals are those for the population rather than for the original's estimate.
        quantile: half the width of an interval, in standard errors.
    """
    usable = [fit for fit in synthetic if fit is not None]
    return [
        _compared(original, usable if len(usable) == len(synthetic) else [], name, place, ratio, population, quantile)
        for place, name in enumerate(names)
    ]


def _compared(
    original: Fit | None, fits: Sequence[Fit], name: str, place: int, ratio: float, population: bool, quantile: float
) -> Coefficient:
    if original is None or math.isnan(original.coefficients[place]):
        return Coefficient(name, warning="the original does not determine it")
    estimate, error = float(original.coefficients[place]), float(original.errors[place])
    values = [float(fit.coefficients[place]) for fit in fits]
    if not values or any(math.isnan(value) for value in values):
        return Coefficient(name, estimate, error, cio=0.0, warning="the synthetic records do not determine it")
    other = float(np.mean(values))
    variance = float(np.mean([fit.errors[place] ** 2 for fit in fits]))
    other_error = math.sqrt(variance * (ratio + (1 / len(fits) if population else 0.0)))
    raw = overlap(
        estimate - quantile * error, estimate + quantile * error, other - quantile * other_error,
        other + quantile * other_error,
    )  # fmt: skip
    same_sign, cio, warning = (other > 0) == (estimate > 0), max(raw, 0.0), None
    if not all(fit.converged for fit in fits) or other_error > _SEPARATED * error:
        cio = 0.0
        warning = "the groups are separated: the interval is without bounds, and its overlap counts as 0"
    elif estimate and not same_sign and abs(estimate) > quantile * error:
        warning = "the sign of a clear effect is turned round"
    return Coefficient(
        name, estimate, error, other, other_error,
        ratio_estimate=other / estimate if estimate else None,
        ratio_se=other_error / error if error else None,
        cio=cio, cio_raw=raw,
        z=(other - estimate) / (error / math.sqrt(len(fits))) if error else None,
        same_sign=same_sign, warning=warning,
    )  # fmt: skip
