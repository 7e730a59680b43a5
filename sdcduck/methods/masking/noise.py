"""Noise on numbers of records: independent, or with the covariances of the records.

Kim (1986); Brand (2002), Microdata protection through noise addition; Ting, Fienberg and Trottini (2008), Random
orthogonal matrix masking; Burridge (2003), Information preserving statistical obfuscation; Langsrud (2019), Information
preserving regression-based tools for statistical disclosure control. The standard deviation of the noise is a share of
that of the column, in all methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.swaps import combined, inverse, normal_scores, products, root
from sdcduck.methods.numerics import scipy

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

METHODS = ("additive", "correlated", "correlated2", "restricted", "ipso", "romm", "outdect")
SINGLE = ("additive", "outdect")
"""Those of them whose noise is independent between columns."""
BLOCK = 17
"""Records that are rotated together: an odd number, so that all their directions but the mean have a partner."""
_OUTLYING = 0.975
_EXPLAINED = 1e-9  # of what varies, as a share: it is left by rounding
_ALONE = 1e-4  # of the variance of residuals: what is drawn for a record has less than a hundredth of their deviation
_FLAT = 0.01


def covariances(values: Floats) -> Floats:
    """Covariances of n >= 2 records: float64 (p, p); the same on any number of threads."""
    return products(values - values.mean(axis=0)) * (len(values) / (len(values) - 1))


def spreads(values: Floats) -> Floats:
    """Standard deviations of columns, without NaN; 0 for fewer than two values: float64 (p,)."""
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([column.std(ddof=1) if len(column) > 1 else 0.0 for column in columns])


def with_correlated_noise(values: Floats, drawn: Floats, noise: float) -> Floats:
    """Values with noise whose covariances are noise^2 times those of the values: float64 (n, p).

    drawn: float64 (n, p), standard normal.
    """
    return values + noise * combined(drawn, root(covariances(values)))


def with_kept_covariances(values: Floats, drawn: Floats, noise: float) -> Floats:
    """The same, with values drawn to their means, so that their covariances are expected to stay: float64 (n, p)."""
    center = values.mean(axis=0)
    shrunk = center + math.sqrt(1 - noise**2) * (values - center)
    found: Floats = shrunk + noise * combined(drawn, root(covariances(values)))
    return found


def with_kept_moments(values: Floats, drawn: Floats, noise: float) -> Floats:
    """Values of which means and covariances are exactly what they were: float64 (n, p).

    The noise is freed of its means and of what it has to do with the values, and gets exactly their covariances.
    """
    center = values.mean(axis=0)
    centred = values - center
    own = covariances(values)
    free = drawn - drawn.mean(axis=0)
    free = free - combined(centred, inverse(own) @ _across(centred, free))
    free = combined(free, inverse(root(covariances(free))))
    found: Floats = center + math.sqrt(1 - noise**2) * centred + noise * combined(free, root(own))
    return found


def with_redrawn_residuals(values: Floats, others: Floats, drawn: Floats, noise: float) -> Floats:
    """Values whose part that other columns do not explain is drawn anew: float64 (n, p).

    The new residuals are free of the means, of the other columns and, with noise below 1, of the old ones, and have
    exactly their covariances: regressions of the values on the other columns, with an intercept, say what they said.

    Args:
        others: float64 (n, q), what stays.
        drawn: float64 (n, p), standard normal.
        noise: standard deviation of what is new, as share of that of the residuals; at 1 nothing of these is left.
    """
    center, given = values.mean(axis=0), others - others.mean(axis=0)
    fitted, left, free = np.zeros_like(values), values - center, drawn - drawn.mean(axis=0)
    if given.shape[1]:
        scaled = given / np.where(spreads(given) > 0, spreads(given), 1.0)
        turned = inverse(covariances(scaled))
        fitted = combined(scaled, turned @ _across(scaled, left))
        left = left - fitted
        free = free - combined(scaled, turned @ _across(scaled, free))
    own = covariances(left)
    if noise < 1:
        free = free - combined(left, inverse(own) @ _across(left, free))
    free = combined(free, inverse(root(covariances(free))))
    found: Floats = center + fitted + math.sqrt(1 - noise**2) * left + noise * combined(free, root(own))
    return found


def explained(values: Floats, others: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What `with_redrawn_residuals` would leave as it is: records and columns, bool (n,) and (p,).

    A record that other columns alone explain, such as the only one of a category, or one far from all others, has no
    residual to speak of, nor has a column that follows from them.
    """
    if not others.shape[1]:
        return np.zeros(len(values), np.bool_), np.zeros(values.shape[1], np.bool_)
    given, left = others - others.mean(axis=0), values - values.mean(axis=0)
    scaled = given / np.where(spreads(given) > 0, spreads(given), 1.0)
    turned = inverse(covariances(scaled))
    lever = 1 / len(values) + (combined(scaled, turned) * scaled).sum(axis=1) / (len(values) - 1)
    rest = spreads(left - combined(scaled, turned @ _across(scaled, left)))
    known = rest <= _EXPLAINED * spreads(left)
    return np.asarray(lever > 1 - _ALONE), np.asarray(known & (spreads(left) > 0))


def _across(one: Floats, other: Floats) -> Floats:
    """Covariances between columns of two centred matrices: float64 (p, q)."""
    found = np.array([[np.mean(a * b) for b in other.T] for a in one.T])
    return found * (len(one) / (len(one) - 1))


def rotated(
    values: Floats, order: Indices, draw: Callable[[int], Floats], noise: float,
    check: Callable[[int, int], object] = lambda done, total: None,
) -> Floats:  # fmt: skip
    """Values that were turned in blocks of records, around the mean of each: float64 (n, p), n >= 3.

    Each block is multiplied by an orthogonal matrix that keeps the vector of ones, so that sums, means and covariances
    stay exactly. In randomly chosen planes it turns by an angle that makes the squared change noise^2 of the variance.

    order: int64 (n,), records by lot. draw: the i-th standard normal number of each record.
    """
    found = values.copy()
    blocks = max(len(order) // BLOCK - (len(order) % BLOCK > 0), 0)
    check(0, BLOCK)
    if blocks:
        head = order[: blocks * BLOCK].reshape(blocks, BLOCK)
        found[head] = _turned(values[head], [draw(number)[head] for number in range(BLOCK - 1)], noise, check)
    rest = order[blocks * BLOCK :].reshape(1, -1)
    if rest.size:
        found[rest] = _turned(values[rest], [draw(number)[rest] for number in range(rest.size - 1)], noise, check)
    return found


def _turned(values: Floats, drawn: list[Floats], noise: float, check: Callable[[int, int], object]) -> Floats:
    """Blocks of records after their rotation: float64 (blocks, size, p); of each record there are size - 1 numbers."""
    size = values.shape[1]
    directions: list[Floats] = []
    for number, vector in enumerate(drawn):
        check(number, len(drawn))
        free = vector
        for _ in range(2):  # the second time for the digits
            free = free - free.mean(axis=1, keepdims=True)
            for other in directions:
                free = free - (free * other).sum(axis=1, keepdims=True) * other
        directions.append(free / np.sqrt((free**2).sum(axis=1, keepdims=True)))
    pairs = (size - 1) // 2
    cosine = 1 - noise**2 * size / (4 * pairs)
    sine = math.sqrt(1 - cosine**2)
    center = values.mean(axis=1, keepdims=True)
    centred = values - center
    found: Floats = center + cosine * centred
    for one, other in zip(directions[: 2 * pairs : 2], directions[1 : 2 * pairs : 2], strict=True):
        a, b = (np.einsum("bi,bip->bp", direction, centred)[:, None, :] for direction in (one, other))
        found += sine * (one[:, :, None] * b - other[:, :, None] * a)
    if size % 2 == 0:
        last = directions[-1][:, :, None]
        found += (1 - cosine) * last * np.einsum("bi,bip->bp", directions[-1], centred)[:, None, :]
    return found


def outlying(values: Floats) -> NDArray[np.bool_]:
    """Records that lie far from the others: bool (n,).

    Their squared distance, from medians, in units of scaled median deviations and with the correlations of the ranks,
    is beyond the quantile 0.975 of chi squared. Directions in which columns hardly vary together are not looked at.
    """
    center = np.median(values, axis=0)
    deviation = np.median(np.abs(values - center), axis=0) * 1.4826
    deviation = np.where(deviation > 0, deviation, spreads(values))
    scaled = (values - center) / np.where(deviation > 0, deviation, 1)
    sizes, axes = np.linalg.eigh(products(np.column_stack([normal_scores(column) for column in values.T])))
    looked_at = sizes > _FLAT * max(sizes.max(), 1.0)
    if not looked_at.any():
        return np.zeros(len(values), np.bool_)
    squares = (combined(scaled, axes[:, looked_at]) ** 2 / sizes[looked_at]).sum(axis=1)
    # As chi2.ppf of scipy.stats, which takes as long to import as all the rest.
    beyond = 2 * scipy.special.gammaincinv(looked_at.sum() / 2, _OUTLYING)
    return np.asarray(squares > beyond, dtype=np.bool_)


def within_bounds(values: Floats, low: float, high: float) -> Floats:
    """Values mirrored at the bounds that they are beyond, and cut where that does not help: float64 (n,).

    >>> within_bounds(np.array([-1.0, 3, 11.5, 99]), 0, 10).tolist()
    [1.0, 3.0, 8.5, 0.0]
    """
    mirrored = np.where(values < low, 2 * low - values, np.where(values > high, 2 * high - values, values))
    return np.clip(mirrored, low, high)
