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
