"""Targeted record swapping: households that stand out change place with similar households of other areas.

As specified for the European census (De Wolf et al. 2019; the behaviour of ``recordSwap`` in R package sdcMicro). Every
random number belongs to a household and a level of the geography, so that neither the order of the households nor the
number of threads changes the result.

A donor is found without looking at a household twice: households of one profile stand in a row by their score, those
that are used are leapt over (a disjoint set forest), and those of the swapping area itself are passed once an area.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.synthesis.draws import random_bits

Indices = NDArray[np.int64]

NO_SIMILAR = 1
"""No household with an equal profile lives outside the area."""
NO_DONOR_LEFT = 2
"""There are some, and all have changed place already."""

_OF_TOTAL, _OF_AREA = 0, 1  # keys of the streams that belong to no household


@dataclass(frozen=True)
class Swapping:
    """Which household changes place with which, of n households.

    Attributes:
        partner: int64 (n,), the other household; -1 where a household stays.
        level: int64 (n,), the level of the geography across which it moves, 0 the widest; -1 where it stays.
        failed: int64 (n,), why a household at risk found no donor when its turn came (`NO_SIMILAR`, `NO_DONOR_LEFT`); 0
            for all others. It may have become somebody's donor later, across a narrower level.
        wanted: number of households that the rate asks for.
    """

    partner: Indices
    level: Indices
    failed: Indices
    wanted: int


@njit(cache=True, nogil=True)
def _smallest(order, alike, area, ancestor, unit, smallest):  # type: ignore[no-untyped-def]
    first = 0
    for place in range(len(order) + 1):
        if place < len(order):
            person, before = order[place], order[first]
            if alike[person] == alike[before] and ancestor[area[person]] == ancestor[area[before]]:
                continue
        for member in range(first, place):
            home = unit[order[member]]
            smallest[home] = min(smallest[home], place - first)
        first = place


def smallest_counts(alike: Indices, unit: Indices, area: Indices, ancestors: Indices) -> Indices:
    """How many persons are like the rarest member of each household, at each level: int64 (levels, n).

    alike: int64 (persons,), a code of the values of the risk variables. unit: int64 (persons,), the household, 0 to
    n - 1. area: int64 (n,), where the households are. ancestors: int64 (levels, areas), the area that an area lies in,
    in ascending order at each level; the last row numbers the areas themselves.
    """
    areas = area[unit]
    order = np.lexsort((areas, alike))
    smallest = np.full((len(ancestors), len(area)), np.iinfo(np.int64).max)
    for level, ancestor in enumerate(ancestors):
        _smallest(order, alike, areas, ancestor, unit, smallest[level])
    return smallest


def levels_at_risk(smallest: Indices | NDArray[np.float64], k: int) -> Indices:
    """The widest level at which fewer than k persons are like some member, by household; -1 where there is none."""
    at_risk = smallest < k
    return np.where(at_risk.any(axis=0), at_risk.argmax(axis=0), -1).astype(np.int64)


def rarities(risk: NDArray[np.float64]) -> NDArray[np.float64]:
    """In place of the counts of `smallest_counts`, where somebody else says how high the risk is: what 1 is of it.

    >>> rarities(np.array([[0.5, 0.25]])).tolist()
    [[2.0, 4.0]]
    """
    return np.asarray(1 / np.maximum(risk, 1e-300), dtype=np.float64)


def levels_above(risk: NDArray[np.float64], threshold: float) -> Indices:
    """The widest level at which the risk is above a threshold, by household; -1 where there is none.

    >>> levels_above(np.array([[0.1, 0.1, 0.9], [0.5, 0.1, 0.9]]), 0.2).tolist()
    [1, -1, 0]
    """
    above = risk > threshold
    return np.where(above.any(axis=0), above.argmax(axis=0), -1).astype(np.int64)


def _uniform(key: NDArray[np.uint64], number: Indices | int, seed: int) -> NDArray[np.float64]:
    """In the open interval (0, 1): one for each key."""
    numbers = np.broadcast_to(np.asarray(number, dtype=np.int64), len(key)).copy()
    bits = random_bits(key, numbers, np.zeros(len(key), dtype=np.int64), np.full(len(key), seed, dtype=np.int64))
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _targets(area: Indices, areas: int, rate: float, seed: int) -> tuple[Indices, int]:
    """Pairs to be begun by each area, and by all: in proportion to the households, the remainder by lot."""
    pairs = len(area) * rate / 2
    coin = _uniform(np.array([_OF_TOTAL], dtype=np.uint64), 0, seed)[0]
    total = int(np.floor(pairs) if coin < 0.5 else np.ceil(pairs))
    target = np.bincount(area, minlength=areas) * total // max(1, len(area))
    lots = _uniform(np.full(areas, _OF_AREA, dtype=np.uint64), np.arange(areas), seed)
    target[np.argsort(lots, kind="stable")[: total - int(target.sum())]] += 1
    return target.astype(np.int64), total


@njit(cache=True, inline="always")
def _leap(following, place):  # type: ignore[no-untyped-def]
    """The first place from here on whose household is not used."""
    while following[place] != place:
        following[place] = following[following[place]]
        place = following[place]
    return place


@njit(cache=True, nogil=True)
def _swap_across(  # type: ignore[no-untyped-def]
    level, narrowest, order, area, ancestor, at_risk, profile, row, end, start, target,
    partner, moved, failed, begun,
):  # fmt: skip
    """All swaps across one level. row (profiles, n): households by profile and score; start, end: of each profile."""
    n, profiles = len(order), len(profile)
    place = np.empty((profiles, n), dtype=np.int64)
    following = np.empty((profiles, n + 1), dtype=np.int64)
    for j in range(profiles):
        following[j, n] = n
        for p in range(n - 1, -1, -1):
            place[j, row[j, p]] = p
            following[j, p] = p if partner[row[j, p]] < 0 else p + 1
    cursor, own, seen = start.copy(), np.zeros_like(start), np.full(start.shape, -1, dtype=np.int64)
    listed = np.empty(n, dtype=np.int64)
    rest = target - begun
    first = 0
    while first < n:
        here = ancestor[area[order[first]]]
        last = first
        while last < n and ancestor[area[order[last]]] == here:
            unit = order[last]
            for j in range(profiles):
                group = profile[j, unit]
                if seen[j, group] != here:
                    seen[j, group], own[j, group], cursor[j, group] = here, 0, start[j, group]
                own[j, group] += 1
            last += 1
        length = 0
        for at in range(first, last):
            if at_risk[order[at]] == level and partner[order[at]] < 0:
                listed[length] = order[at]
                length += 1
        if narrowest:
            for at in range(first, last):
                if length >= rest[here]:
                    break
                if at_risk[order[at]] < 0 and partner[order[at]] < 0:
                    listed[length] = order[at]
                    length += 1
        for entry in range(length):
            unit = listed[entry]
            donor = -1
            elsewhere = False
            for j in range(profiles):
                group = profile[j, unit]
                elsewhere = elsewhere or end[j, group] - start[j, group] > own[j, group]
                p = _leap(following[j], cursor[j, group])
                while p < end[j, group] and ancestor[area[row[j, p]]] == here:
                    p = _leap(following[j], p + 1)
                cursor[j, group] = min(p, end[j, group])
                if p < end[j, group]:
                    donor = row[j, p]
                    break
            if donor < 0:
                if at_risk[unit] >= 0:
                    failed[unit] = NO_DONOR_LEFT if elsewhere else NO_SIMILAR
                continue
            partner[unit], partner[donor] = donor, unit
            moved[unit], moved[donor] = level, level
            begun[area[unit]] += 1
            for j in range(profiles):
                following[j, place[j, unit]] = place[j, unit] + 1
                following[j, place[j, donor]] = place[j, donor] + 1
        first = last


def swap_records(
    area: Indices, ancestors: Indices, smallest: Indices | NDArray[np.float64], profiles: Indices,
    key: NDArray[np.uint64], *, k: int, rate: float, seed: int, check: Callable[[], object] = lambda: None,
    at_risk: Indices | None = None,
) -> Swapping:  # fmt: skip
    """Pairs of households that change place, of n households in their canonical order.

    From the widest level to the narrowest, area by area: the households at risk there, at the narrowest level followed
    by others until the area has begun its share of the rate. Donors and others are taken with a chance that grows with
    their risk: by the score risk / Exp(1), largest first.

    area, ancestors: as for `smallest_counts`, which gives ``smallest``, or else `rarities` does.
    profiles: int64 (profiles, n), codes of what must be equal in a donor, the preferred profile first. key: uint64
    (n,), what the random stream of a household depends on. rate: share of the households that is to change place.
    check: called between the levels.
    at_risk: int64 (n,), the widest level at which each is at risk, or -1; None: as `levels_at_risk` says of k.

    Raises:
        ValueError: a rate that is not between 0 and 1, or k below 0.
    """
    if not 0 <= rate <= 1:
        raise ValueError("swaprate must lie between 0 and 1")
    if k < 0:
        raise ValueError("k_anonymity must not be negative")
    n, levels = len(area), len(ancestors)
    if at_risk is None:
        at_risk = levels_at_risk(smallest, k)
    target, total = _targets(area, ancestors.shape[1], rate, seed)
    partner, moved = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    failed, begun = np.zeros(n, dtype=np.int64), np.zeros(ancestors.shape[1], dtype=np.int64)
    widest = int(profiles.max(initial=0)) + 1
    sizes = np.array([np.bincount(codes, minlength=widest) for codes in profiles], dtype=np.int64)
    end = np.cumsum(sizes, axis=1)
    for level in range(levels):
        check()
        narrowest = level == levels - 1
        if not narrowest and not (at_risk == level).any():
            continue
        score = -np.log(_uniform(key, level + 1, seed)) * smallest[level]  # ascending: the largest risk / Exp(1) first
        order = np.lexsort((score, ancestors[level][area]))
        row = np.array([np.lexsort((score, codes)) for codes in profiles])
        _swap_across(
            level, narrowest, order, area, ancestors[level], at_risk, profiles, row, end, end - sizes, target,
            partner, moved, failed, begun,
        )  # fmt: skip
    return Swapping(partner, moved, failed, 2 * total)
