"""Density-dependent noise for numbers drawn from records: wide in sparse tails, narrow where values are dense.

The original values are cut into ordered groups of about equal size; a value is perturbed by a normal variate whose
standard deviation is the Gaussian-kernel bandwidth of its group (Silverman's rule).

Source: Bowen et al. (2022), PSD; the rule for the borders of groups is that of the R package tidysynthesis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def group_borders(values: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Borders between ``groups`` groups of equal size, larger ones first; groups that share a value are merged.

    values: of the records, sorted. The result is increasing; a group is closed on the left.

    >>> group_borders(np.arange(1.0, 11.0), 4)
    array([3.5, 6.5, 8.5])
    """
    ends = np.cumsum([len(part) for part in np.array_split(np.empty(len(values)), groups)])[:-1]
    ends = np.unique(ends[(ends > 0) & (ends < len(values))])
    below, above = values[ends - 1], values[ends]
    # Half of each: their sum may be too large to be a number.
    borders: NDArray[np.float64] = (below / 2 + above / 2)[below < above]
    return borders


def bandwidth(values: NDArray[np.float64]) -> float:
    """Silverman's rule of a group; 0 where all its values are the same.

    >>> round(bandwidth(np.arange(1.0, 6.0)), 7)
    0.9735846
    """
    if len(values) < 2 or values.min() == values.max():
        return 0.0
    scale = float(np.abs(values).max())
    scaled = values / scale
    sd = float(scaled.std(ddof=1))
    low, high = np.quantile(scaled, [0.25, 0.75])
    spread = min(sd, float(high - low) / 1.34) or sd
    return float(0.9 * spread * len(values) ** -0.2 * scale)


def bandwidths(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], groups: int, unchanged: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The standard deviation of the noise of each distinct value.

    distinct: increasing. counts: how many records have it. unchanged: values that get no noise.
    """
    values = np.repeat(distinct, counts)
    borders = group_borders(values, groups)
    place = np.searchsorted(borders, distinct, side="right")
    starts = np.searchsorted(values, borders, side="left")
    sizes = np.array([bandwidth(group) for group in np.split(values, starts)])
    found: NDArray[np.float64] = np.where(np.isin(distinct, unchanged), 0.0, sizes[place])
    return found


SHARED = 5
"""Records that share a value make it none of a person's own: it is drawn as it stands."""
_ALONE, _STEPS, _MOST_DECIMALS = 0.25, 100, 6


def grid(values: NDArray[np.float64]) -> float:
    """The largest step that all values are multiples of: of whole numbers, or of decimals up to the sixth; 0: none.

    >>> grid(np.array([0.0, 150.0, 400.0])), grid(np.array([0.25, 1.5])), grid(np.array([12.33, 7.0]))
    (50.0, 0.25, 0.01)
    >>> grid(np.array([0.1234567, 1.0])), grid(np.array([0.0]))
    (0.0, 0.0)
    """
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = np.abs(values) * 10.0**decimals
        near = np.rint(scaled)
        if not (scaled < 2.0**53).all():
            return 0.0
        if (np.abs(scaled - near) <= 8e-15 * scaled).all():
            step = int(np.gcd.reduce(near.astype(np.int64))) if len(near) else 0
            part = 10**decimals
            # A step such as 0.03 has no inverse that is whole: results could not be written without an error.
            return float(step / part) if step % part == 0 or part % step == 0 else 1.0 / part
    return 0.0


def fine_bandwidths(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], groups: int, unchanged: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float] | None:
    """The noise of a column whose values are so fine that they name a person, and the grid of its values; else None.

    It is fine if more than a quarter of the records have a value that no other has, and these do not lie close
    together: 100 steps of the grid or more between their quartiles. Ages of a small file are not fine, incomes are.
    Values that `SHARED` records or more have, such as a round number, and ``unchanged`` ones get no noise.

    >>> counts = np.ones(1000, np.int64)
    >>> fine_bandwidths(np.arange(1000.0), counts, 20, np.zeros(1))[1]
    1.0
    >>> fine_bandwidths(np.arange(100.0), counts[:100], 20, np.zeros(1)) is None
    True
    """
    alone = distinct[counts == 1]
    if len(alone) <= _ALONE * counts.sum():
        return None
    step = grid(distinct)
    low, high = np.quantile(alone, [0.25, 0.75])
    if low == high or (step and (high - low) / step < _STEPS):
        return None
    found = np.zeros(len(distinct))
    few = (counts < SHARED) & ~np.isin(distinct, unchanged)
    if few.any():
        some = int(counts[few].sum())
        found[few] = bandwidths(distinct[few], counts[few], max(1, min(groups, some // SHARED)), unchanged)
    return found, step
