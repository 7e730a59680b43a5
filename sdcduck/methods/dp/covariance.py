"""A private covariance matrix: noisy eigenvalues, and eigenvectors drawn one after the other.

Amin, Dick, Kulesza, Munoz & Vassilvitskii (2019), as Dunsche, Kutta & Dette (2022), algorithms 4 and 5, use it. Two
slips of the latter's text are mended: what was scaled at the beginning is scaled back at the end, by d m^2 / n, and it
is the scaled matrix whose directions are drawn.

All of the budget is of neighbours that differ in one record: the scatter changes by aa' - bb'. The scaling makes the
length of a and b at most 1, if ``bound`` is m and means are known; where the mean is that of the sample, lengths are up
to twice as large, and ``bound`` has to be 2 m.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sdcduck.methods.dp.directions import direction
from sdcduck.methods.dp.noise import Floats, Sampler

_GRID = 2.0**-30
"""Of the entries of a direction. It is drawn in floating-point numbers, whose last digits would tell of the data."""


def share_of_part(epsilon: float, columns: int) -> float:
    """What the eigenvalues cost, and each of the directions: an equal share.

    >>> share_of_part(0.9, 2), share_of_part(0.9, 1)
    (0.3, 0.9)
    """
    return epsilon / (columns + 1) if columns > 1 else epsilon


def private_covariance(
    covariance: Floats, records: int, bound: float, epsilon: float, sampler: Sampler,
    check: Callable[[], object] = lambda: None,
) -> Floats:  # fmt: skip
    """The covariance matrix (d, d) of ``records`` with noise that costs ``epsilon``: symmetric, no eigenvalue below 0.

    Args:
        bound: m, or 2 m where the covariance is about the mean of the sample; entries of records are in [-m, m].
    """
    columns = len(covariance)
    factor = columns * bound * bound / records
    scaled = covariance / factor
    part = share_of_part(epsilon, columns)
    # From the smallest: eigvalsh has them in this order. With noise they are turned to the positive side.
    values = np.abs(sampler.laplace(np.asarray(np.linalg.eigvalsh(scaled)[::-1], dtype=np.float64), 2 / part))
    if columns == 1:
        return np.asarray(factor * values.reshape(1, 1))
    found = np.zeros((0, columns))
    for _ in range(columns):
        basis = _complement(found)
        drawn = basis.T @ direction(basis @ scaled @ basis.T, part / 4, sampler)
        found = np.vstack([found, np.round(drawn / _GRID) * _GRID])
        check()
    made = (found.T * values) @ found
    return np.asarray(factor * (made + made.T) / 2)


def _complement(rows: Floats) -> Floats:
    """An orthonormal basis, as rows, of what is orthogonal to these rows."""
    columns = rows.shape[1]
    if not len(rows):
        return np.eye(columns)
    return np.asarray(np.linalg.qr(rows.T, mode="complete")[0][:, len(rows) :].T)
