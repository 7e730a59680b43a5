"""What microaggregation has done to records: how many share their values, what is lost, and how little it could be."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.microaggregation import squared_error, standardised
from sdcduck.methods.masking.one_dimension import best_groups
from sdcduck.methods.masking.partitions import best_partition, possible_groups

Matrix = NDArray[np.float64]

_BOUNDED = 200_000  # possible groups, of which a bound is worked out


@dataclass(frozen=True)
class Quality:
    """Numbers of standardised columns.

    Attributes:
        n: records.
        k_min: the fewest records that share all their values.
        groups: different combinations of values.
        sse: squared distances between original and masked records, added up.
        sst: the same between original records and their mean.
        il: 100 sse / sst, in per cent; 0 where the originals do not differ.
        bound: no groups of at least k_min records have a smaller sse; None: unknown.
        gap: (sse - bound) / sse; 0 where sse is 0.
    """

    n: int
    k_min: int
    groups: int
    sse: float
    sst: float
    il: float
    bound: float | None
    gap: float | None

    def as_row(self) -> dict[str, float | None]:
        """By the name of a column."""
        return asdict(self)


def quality(values: Matrix, masked: Matrix, weights: Matrix | None = None) -> Quality:
    """Compare masked records with the original ones.

    The bound is the optimum for one column, and that of the relaxed set partitioning problem for few records; without
    either, or where each record is alone, there is none.

    Args:
        values, masked: n x p, finite, the records in the same order.
        weights: n, above 0, of squared distances, means and standard deviations, of which only the proportions count;
            then nobody knows a bound. None: all are 1.

    >>> round(quality(np.array([[1.0], [3], [5], [7]]), np.array([[2.0], [2], [6], [6]])).il, 9)
    20.0
    """
    count = len(values)
    different, groups = np.unique(masked, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    k = int(np.bincount(groups).min()) if count else 0
    shares = np.ones(count) if weights is None or not count else weights * (count / weights.sum())
    centered = values - (shares @ values / max(count, 1))
    spread = np.sqrt((shares @ centered**2) / max(count - 1, 1))
    varying = (spread > 0) & (np.ptp(values, axis=0) > 0) if count else np.zeros(values.shape[1], np.bool_)
    sse = float((shares @ ((values - masked)[:, varying] / spread[varying]) ** 2).sum())
    sst = float((shares @ (centered[:, varying] / spread[varying]) ** 2).sum())
    points = standardised(values)
    bound: float | None = None
    if k < 2 or not varying.any() or weights is not None:
        pass
    elif values.shape[1] == 1:
        bound = squared_error(points, best_groups(points[:, 0], k))
    elif possible_groups(count, k) <= _BOUNDED:
        bound = best_partition(points, k, groups.astype(np.int64)).bound
    gap = None if bound is None else max(0.0, (sse - bound) / sse) if sse > 0 else 0.0
    return Quality(count, k, len(different) if count else 0, sse, sst, 100 * sse / sst if sst > 0 else 0.0, bound, gap)
