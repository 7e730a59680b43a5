"""Measures of two tables of counts, of an original o and a synthetic s: what the R package synthpop prints.

Raab (2022), "Utility and disclosure risk for differentially private synthetic categorical data", PSD; Raab, Nowok and
Dibben (2021), "Assessing, visualizing and improving the utility of synthetic data". The propensity mean squared error
of a table is that of a saturated model, so that it is a function of the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_DENSE = 1 << 22  # cells of a table that is counted in full; a larger one by the cells that occur


@njit(cache=True, nogil=True)
def _count_cells(first, second, third, second_size, third_size, counts):  # type: ignore[no-untyped-def]
    """Add records to the cells of up to three columns; those that are not used are empty."""
    two, three = len(second) > 0, len(third) > 0
    for row in range(len(first)):
        cell = first[row]
        if two:
            cell = cell * second_size + second[row]
        if three:
            cell = cell * third_size + third[row]
        counts[cell] += 1


def joint_counts(
    original: Sequence[Codes], synthetic: Sequence[Codes], sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of both in the cells that occur in one of them.

    Args:
        original: codes of each column, from 0, n_o each.
        synthetic: of the same columns, n_s each.
        sizes: number of codes of each column.
    """
    cells = math.prod(sizes)
    if len(sizes) <= 3 and cells <= _DENSE:
        counts = np.zeros((2, cells), dtype=np.int64)
        for side, count in zip((original, synthetic), counts, strict=True):
            columns = list(side) + [np.zeros(0, dtype=np.int32)] * (3 - len(side))
            widths = list(sizes) + [1] * (3 - len(sizes))
            _count_cells(columns[0], columns[1], columns[2], widths[1], widths[2], count)
        occurs = counts.sum(axis=0) > 0
        return counts[0][occurs], counts[1][occurs]
    combined = [np.zeros(len(side[0]), dtype=np.int64) for side in (original, synthetic)]
    reached = 1
    for column, size in enumerate(sizes):
        if reached * size > 1 << 62:
            _, places = np.unique(np.concatenate(combined), return_inverse=True)
            combined = [places[: len(combined[0])], places[len(combined[0]) :]]
            reached = int(places.max(initial=0)) + 1
        combined = [
            code * size + side[column] for code, side in zip(combined, (original, synthetic), strict=True)
        ]  # fmt: skip
        reached *= size
    if reached > _DENSE:
        _, places = np.unique(np.concatenate(combined), return_inverse=True)
        combined = [places[: len(combined[0])], places[len(combined[0]) :]]
        reached = int(places.max(initial=-1)) + 1
    o, s = (np.bincount(side, minlength=reached) for side in combined)
    occurs = o + s > 0
    return o[occurs], s[occurs]


@dataclass(frozen=True)
class TableMeasures:
    """Measures of one table; None where a side is empty, or where there is nothing to divide by.

    Attributes:
        cells: cells that occur in one of the two.
        df: degrees of freedom, one less.
        vw: Voas and Williamson's sum of squares; about df where the synthesis is right.
        pmse: propensity mean squared error, from 0 to c (1 - c), where c is the synthetic share.
        pmse_ratio: pmse over its expectation: the S_pMSE of synthpop from 1.7.
        pmse_z: pmse less its expectation, over its deviation: the S_pMSE of Snoke et al. (2018).
        ft: Freeman and Tukey's.
        jsd: Jensen-Shannon divergence, in bits.
        g: likelihood ratio over the cells that both have.
        g_df: its degrees of freedom.
        tvd: total variation distance: SPECKS of a table, and half of MabsDD.
        wmabsdd: mean absolute difference over its deviation, summed.
        hellinger: Hellinger (Bhattacharyya) distance.
        mabsdd: absolute differences of the counts, the original ones scaled to as many as the synthetic, over these.
        po50: per cent of the records told rightly by where the share of their cell is larger, less 50.
        u: Mann and Whitney's statistic of the propensity scores.
        roc: sum over the cells of smaller share / larger share.
    """

    cells: int
    df: int
    vw: float | None = None
    pmse: float | None = None
    pmse_ratio: float | None = None
    pmse_z: float | None = None
    ft: float | None = None
    jsd: float | None = None
    g: float | None = None
    g_df: int | None = None
    tvd: float | None = None
    wmabsdd: float | None = None
    hellinger: float | None = None
    mabsdd: float | None = None
    po50: float | None = None
    u: float | None = None
    roc: float = 0.0


def table_measures(original: NDArray[np.int64], synthetic: NDArray[np.int64]) -> TableMeasures:
    """The measures of counts over the same k cells.

    >>> found = table_measures(np.array([10, 5, 0, 1]), np.array([8, 6, 1, 1]))
    >>> round(found.vw, 6), round(found.pmse_ratio, 6), found.u
    (2.626263, 0.875421, 147.5)
    """
    occurs = original + synthetic > 0
    o, s = original[occurs].astype(np.float64), synthetic[occurs].astype(np.float64)
    n1, n2 = o.sum(), s.sum()
    if n1 == 0 or n2 == 0:
        return TableMeasures(len(o), max(len(o) - 1, 0))
    total, df = n1 + n2, len(o) - 1
    c = n2 / total
    p, q, both = o / n1, s / n2, o + s
    difference = s - o * n2 / n1
    vw = float((difference**2 / (c * both)).sum())
    middle = (p + q) / 2
    shared = (o > 0) & (s > 0)
    g = float(2 * (s[shared] * np.log(s[shared] / s[shared].sum() * o[shared].sum() / o[shared])).sum())
    return TableMeasures(
        cells=len(o),
        df=df,
        vw=vw,
        pmse=vw * c * (1 - c) ** 2 / total,
        pmse_ratio=vw / df if df else None,
        pmse_z=(vw - df) / math.sqrt(2 * df) if df else None,
        ft=float(4 * ((np.sqrt(s) - np.sqrt(o * n2 / n1)) ** 2).sum()),
        jsd=_information(p, middle) / 2 + _information(q, middle) / 2,
        g=g if shared.sum() > 1 else None,
        g_df=int(shared.sum()) - 1 if shared.sum() > 1 else None,
        tvd=float(np.abs(p - q).sum() / 2),
        wmabsdd=float((np.abs(difference) / np.sqrt(c * both)).sum() / math.sqrt(2 / math.pi)),
        hellinger=math.sqrt(float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum()) / 2),
        mabsdd=float(np.abs(difference).sum() / n2),
        po50=float(100 * np.where(s * n1 > o * n2, s, o).sum() / total - 50),
        u=separation(o, s, s / both).u,
        roc=float((np.minimum(p, q) / np.maximum(p, q)).sum()),
    )


def _information(p: Floats, middle: Floats) -> float:
    known = p > 0
    return float((p[known] * np.log2(p[known] / middle[known])).sum())


@dataclass(frozen=True)
class Separation:
    """How well scores tell two sets of records apart.

    Attributes:
        ks: the largest distance of the distribution functions of the scores: SPECKS.
        u: Mann and Whitney's statistic: pairs in which the synthetic record has the higher score, ties as a half.
    """

    ks: float
    u: float


def separation(original: Floats, synthetic: Floats, scores: Floats) -> Separation:
    """Separation of counts of records that have one of k scores; neither side may be empty."""
    _, places = np.unique(scores, return_inverse=True)
    o, s = np.bincount(places, original), np.bincount(places, synthetic)
    below = np.cumsum(o)
    gaps = np.abs(below / below[-1] - np.cumsum(s) / s.sum())
    return Separation(float(gaps.max()), float((s * (below - o / 2)).sum()))


# --- groups of numbers -----------------------------------------------------------------------------------------------

_FEWEST = 3  # groups by quantiles; fewer make way for groups of equal width


def group_breaks(values: Floats, groups: int) -> Floats:
    """Breaks of finite values as synthpop makes them: distinct quantiles, or equal widths where fewer than 3 are left.

    The groups are closed on the left, the last one on both sides.
    """
    from sdcduck.methods.utility.buckets import quantile_breaks

    breaks = quantile_breaks(values, groups)
    if len(breaks) - 1 < min(_FEWEST, groups) and len(breaks) > 1:
        return np.linspace(breaks[0], breaks[-1], groups + 1)
    return breaks


@njit(cache=True, nogil=True)
def _walk(one, other):  # type: ignore[no-untyped-def]
    """The largest distance of the distribution functions of two sorted arrays, the first value where it is reached, and
    the pairs in which the second has the larger value, ties as a half.
    """
    first, second, largest, at, u = 0, 0, -1.0, 0.0, 0.0
    while first < len(one) or second < len(other):
        from_one = second == len(other) or (first < len(one) and one[first] < other[second])
        value = one[first] if from_one else other[second]
        below = first
        while first < len(one) and one[first] == value:
            first += 1
        before = second
        while second < len(other) and other[second] == value:
            second += 1
        u += (second - before) * (first - (first - below) / 2)
        gap = abs(first / len(one) - second / len(other))
        if gap > largest:
            largest, at = gap, value
    return largest, at, u


def separation_of_records(original: Floats, synthetic: Floats) -> Separation:
    """Separation of records with these scores; neither side may be empty."""
    ks, _, u = _walk(np.sort(original), np.sort(synthetic))
    return Separation(ks, u)


@dataclass(frozen=True)
class KolmogorovSmirnov:
    """The largest distance of two distribution functions.

    Attributes:
        distance: it.
        at: the smallest value at which they are so far apart.
        p_value: asymptotic, of two independent samples.
    """

    distance: float
    at: float
    p_value: float


def kolmogorov_smirnov(original: Floats, synthetic: Floats, *, in_order: bool = False) -> KolmogorovSmirnov | None:
    """Of values without NaN, which may be sorted already; None where a side is empty."""
    from scipy.special import kolmogorov

    if not len(original) or not len(synthetic):
        return None
    one, other = (original, synthetic) if in_order else (np.sort(original), np.sort(synthetic))
    gap, at, _ = _walk(one, other)
    size = math.sqrt(len(original) * len(synthetic) / (len(original) + len(synthetic)))
    return KolmogorovSmirnov(gap, at, float(kolmogorov(size * gap)))


@njit(cache=True, nogil=True)
def _most_frequent(values):  # type: ignore[no-untyped-def]
    most, at, place = 0, 0.0, 0
    while place < len(values):
        first = place
        while place < len(values) and values[place] == values[first]:
            place += 1
        if place - first > most:
            most, at = place - first, values[first]
    return most, at


def most_frequent(values: Floats) -> tuple[int, float]:
    """How often the most frequent of some sorted numbers occurs, and the smallest such number; 0 of none."""
    most, at = _most_frequent(values)
    return most, at
