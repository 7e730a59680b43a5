"""Overlap of confidence intervals, sample curves that rise, and what share of correct guesses a file gives away.

Karr, Kohnen, Oganian, Reiter and Sanil (2006) for the overlap; Little, Elliot and Allmendinger (2022), PSD, for
samples as a yardstick, and Taub and Elliot (2019) for the targeted correct attribution probability (TCAP).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.utility.tables import Codes

Floats = NDArray[np.float64]


def overlap(low_o: float, high_o: float, low_s: float, high_s: float) -> float:
    """Mean share of two intervals that they have in common; negative for a gap between them.

    >>> overlap(0, 1, 0.25, 1.25), overlap(0, 1, -1, 3), overlap(0, 1, 2, 3)
    (0.75, 0.625, -1.0)
    """
    one, other = high_o - low_o, high_s - low_s
    if one == 0 and other == 0:
        return 1.0 if low_o == low_s else 0.0
    if math.isinf(one) or math.isinf(other):
        return 1.0 if math.isinf(one) and math.isinf(other) else 0.5
    width = min(high_o, high_s) - max(low_o, low_s)
    if one == 0 or other == 0:
        return 0.5 if width == 0 else 0.0
    return (width / one + width / other) / 2


def rising(values: Floats) -> Floats:
    """The nearest sequence that never falls (pool adjacent violators).

    >>> rising(np.array([1.0, 3.0, 2.0, 4.0]))
    array([1. , 2.5, 2.5, 4. ])
    """
    pools: list[list[float]] = []
    for value in values:
        pools.append([float(value), 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, size = pools.pop()
            before = pools[-1]
            pools[-1] = [(before[0] * before[1] + mean * size) / (before[1] + size), before[1] + size]
    return np.concatenate([np.full(int(size), mean) for mean, size in pools]) if pools else np.zeros(0)


def equivalent(fractions: Floats, curve: Floats, value: float) -> tuple[float | None, float | None, float | None]:
    """Between which fractions a rising curve passes a value, and where, by linear interpolation.

    None as the first: below the smallest fraction; None as the second: above the largest.
    """
    if value < curve[0]:
        return None, float(fractions[0]), None
    after = int(np.searchsorted(curve, value, side="right"))
    if after == len(curve):
        return float(fractions[-1]), None, None
    low, high = float(fractions[after - 1]), float(fractions[after])
    share = (value - curve[after - 1]) / (curve[after] - curve[after - 1])
    return low, high, low + share * (high - low)


def equivalent_sample(
    fractions: Floats, means: Floats, value: float
) -> tuple[float | None, float | None, float | None, float]:
    """As `equivalent`, of means that may fall in places, and by how much they had to be moved at most to rise."""
    curve = rising(means)
    return *equivalent(fractions, curve, value), float(np.abs(curve - means).max())


def marginal_tcap(
    keys_o: Sequence[Codes], keys_s: Sequence[Codes], target_o: Codes, target_s: Codes, sizes: Sequence[int]
) -> tuple[float, float, float | None]:
    """TCAP of a target, its baseline, and how far it is above that.

    Of the original records whose keys occur with a single target value in the other file: the share that has that
    value.

    Args:
        sizes: number of codes of each key, and of the target last.
    """
    places_o, places_s, classes = _classes(keys_o, keys_s, sizes[:-1])
    target = sizes[-1]
    s = np.bincount(places_s, minlength=classes)
    low, high = np.full(classes, target), np.full(classes, -1)
    np.minimum.at(low, places_s, target_s)
    np.maximum.at(high, places_s, target_s)
    risky = (s > 0) & (low == high)
    hit = risky[places_o]
    hits, correct = int(hit.sum()), int((hit & (target_o == low[places_o])).sum())
    tcap = correct / hits if hits else 0.0
    shares = np.bincount(target_o) / len(target_o)
    baseline = float((shares**2).sum())
    return tcap, baseline, (tcap - baseline) / (1 - baseline) if baseline < 1 else None


def _classes(
    keys_o: Sequence[Codes], keys_s: Sequence[Codes], sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The class of each record, numbered over both files."""
    combined = np.zeros(len(keys_o[0]) + len(keys_s[0]), dtype=np.int64)
    for column, size in enumerate(sizes):
        _, places = np.unique(combined * size + np.concatenate([keys_o[column], keys_s[column]]), return_inverse=True)
        combined = places.astype(np.int64)
    return combined[: len(keys_o[0])], combined[len(keys_o[0]) :], int(combined.max(initial=-1)) + 1
