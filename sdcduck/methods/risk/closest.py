"""Distances of synthetic records to the closest original ones, judged by a holdout that the generator never saw.

A fresh sample is as close to the original records as to any other sample of their size: what is closer than that was
learned by heart. Platzer (2020), ANITA deliverable D2.2; Platzer and Reutterer (2021); Minieri (2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import scipy

ROUNDING = 1e-12
"""Distances that differ by less are equal: their terms were added in another order."""
_FEW_CHANCES = 1e-3
Distances = NDArray[np.float64]


def nearest_ratio(first: Distances, second: Distances) -> Distances:
    """NNDR: the distance to the nearest over that to the next; 1 where both are 0, NaN where there is no next one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isinf(second), np.nan, np.where(second == 0, 1.0, first / second))


def quantiles(distances: Distances, shares: tuple[float, ...]) -> list[float | None]:
    """Quantiles (type 7); None of nothing."""
    known = distances[~np.isnan(distances)]
    return [float(value) for value in np.quantile(known, shares)] if len(known) else [None] * len(shares)


def smaller(one: Distances, other: Distances) -> float | None:
    """p-value of the one-sided test of Mann and Whitney against values of the first that tend to be smaller.

    The normal approximation, corrected for ties and continuity; None of nothing.
    """
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    if not len(one) or not len(other):
        return None
    if min(one.min(), other.min()) == max(one.max(), other.max()):
        return 1.0
    _, places, counts = np.unique(np.concatenate([one, other]), return_inverse=True, return_counts=True)
    n, m = float(len(one)), float(len(other))
    last = np.cumsum(counts).astype(np.float64)
    middle = last - (counts - 1) / 2
    above = n * m - (float(middle[places[: len(one)]].sum()) - n * (n + 1) / 2)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum())
    spread = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    return 0.5 * math.erfc((above - n * m / 2 - 0.5) / spread / math.sqrt(2))


def at_least(successes: int, trials: int, chance: float) -> float:
    """The probability of so many successes or more, each of this chance."""
    return float(scipy.special.betainc(successes, trials - successes + 1, chance)) if successes else 1.0


@dataclass(frozen=True)
class Share:
    """How many records are closer to the training records than to the holdout.

    Attributes:
        closer_original, closer_holdout, ties: numbers of records.
        strict: the share that is closer to the training records.
        share: the same with the expected share of the ties.
        expected: of a fresh sample: the training records among training and holdout.
        low, high: confidence interval of ``share``.
        p_value: of the binomial test, among records without ties, against a share above the expected one.
    """

    closer_original: int
    closer_holdout: int
    ties: int
    strict: float | None
    share: float | None
    expected: float
    low: float | None
    high: float | None
    p_value: float | None


def holdout_share(
    to_original: Distances, to_holdout: Distances, originals: int, holdouts: int, confidence: float
) -> Share:
    """Compare the distances of n records to the nearest of each table.

    Args:
        to_original, to_holdout: distances; differences up to `ROUNDING` are ties.
        originals, holdouts: numbers of records of the tables, not both 0.
        confidence: of the interval, between 0 and 1.
    """
    expected = originals / (originals + holdouts)
    with np.errstate(invalid="ignore"):
        apart = np.where(to_original == to_holdout, 0.0, to_original - to_holdout)
    closer, farther = int((apart < -ROUNDING).sum()), int((apart > ROUNDING).sum())
    records = len(apart)
    if not records:
        return Share(0, 0, 0, None, None, expected, None, None, None)
    ties = records - closer - farther
    share = (closer + expected * ties) / records
    spread = (closer + expected**2 * ties) / records - share**2
    half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(max(spread, 0.0) / records)
    p_value = at_least(closer, closer + farther, expected) if closer + farther else None
    return Share(
        closer,
        farther,
        ties,
        closer / records,
        share,
        expected,
        max(0.0, share - half),
        min(1.0, share + half),
        p_value,
    )


def overlaps(matches: int, holdouts: int, doubles: int, originals: int) -> bool:
    """Whether a holdout holds training records: more of it are in the training table than that repeats records itself.

    Args:
        matches: records of the holdout that equal a training record, of so many ``holdouts``.
        doubles: training records that equal another one, of so many ``originals``.
    """
    if not holdouts or not originals or not matches:
        return False
    chance = min((doubles + 1) / (originals + 1), 1.0)
    return at_least(matches, holdouts, chance) < _FEW_CHANCES and matches / holdouts > 1.5 * chance


def quantile_places(values: Distances, buckets: int) -> Distances:
    """Numbers by the quantiles between which they lie: up to the upper one, in the first from the lower one on.

    NaN stays NaN; of equal quantiles there is one, so there may be fewer places than buckets.

    >>> quantile_places(np.array([1.0, 2.0, 3.0, 4.0, np.nan]), 2).tolist()
    [1.0, 1.0, 2.0, 2.0, nan]
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return values
    edges = np.unique(np.quantile(known, np.linspace(0, 1, buckets + 1)))
    places = np.maximum(np.searchsorted(edges, values, side="left"), 1).astype(np.float64)
    return np.where(np.isnan(values), np.nan, places)
