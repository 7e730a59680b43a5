"""Linking reconstructed records to named people, in two passes, and how often such links are right by luck.

An attacker takes the records in order, and for each the first person of the same group and number, such as block and
age, who is not yet taken; then, for records without anybody, the first one whose number is near. Nobody is taken twice.

Source: Muralidhar (2022), PSD, for the links; Francis (2022), PSD, after Ruggles and Van Riper (2021), for the luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy

Codes = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """Those who have a name, in the order in which they are taken.

    Attributes:
        groups: number of the group of each, from 0 on; below 0: in none.
        values: what may be near; NaN is nobody's.
    """

    groups: Codes
    values: Numbers


@njit(cache=True)
def _first_from(values: Numbers, sorted_places: Codes, low: int, high: int, least: float) -> int:
    """Of places in ascending order of value, the first from ``low`` on whose value is not below."""
    while low < high:
        middle = (low + high) // 2
        if values[sorted_places[middle]] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _link(
    groups: Codes, values: Numbers, starts: Codes, places: Codes, theirs: Numbers, tolerance: float
) -> tuple[Codes, NDArray[np.bool_]]:
    """As `link`; ``places`` are people by group, value and order, those of group g from ``starts[g]`` on."""
    found = np.full(len(groups), -1, np.int64)
    exact = np.zeros(len(groups), np.bool_)
    taken = np.zeros(len(theirs), np.bool_)
    gone = np.zeros(len(places), np.int64)  # people of a value who are taken, at the first place of the value
    for record in range(len(groups)):
        group = groups[record]
        if group < 0 or np.isnan(values[record]):
            continue
        end = starts[group + 1]
        first = _first_from(theirs, places, starts[group], end, values[record])
        if first < end and first + gone[first] < end and theirs[places[first + gone[first]]] == values[record]:
            found[record] = places[first + gone[first]]
            taken[found[record]] = exact[record] = True
            gone[first] += 1
    for record in range(len(groups)):
        group = groups[record]
        if group < 0 or found[record] >= 0 or np.isnan(values[record]):
            continue
        near = _first_from(theirs, places, starts[group], starts[group + 1], values[record] - tolerance)
        while near < starts[group + 1] and theirs[places[near]] - values[record] <= tolerance:
            person = places[near]
            if not taken[person] and (found[record] < 0 or person < found[record]):
                found[record] = person
            near += 1
        if found[record] >= 0:
            taken[found[record]] = True
    return found, exact


def link(records: People, external: People, tolerance: float) -> tuple[Codes, NDArray[np.bool_]]:
    """Which person each record of one reconstruction is taken for.

    Returns:
        The place of the person among the external ones, -1 for nobody; and whether the number is the very one.
    """
    known = np.flatnonzero((external.groups >= 0) & ~np.isnan(external.values))
    places = known[np.lexsort((known, external.values[known], external.groups[known]))]
    groups = int(max(external.groups.max(initial=-1), records.groups.max(initial=-1))) + 1
    starts = np.searchsorted(external.groups[places], np.arange(groups + 1))
    own, theirs = (np.require(one.values, requirements=["C", "W"]) for one in (records, external))
    of = np.require(records.groups, requirements=["C", "W"])
    found: tuple[Codes, NDArray[np.bool_]] = _link(of, own, starts, places, theirs, tolerance)
    return found


# --- luck ------------------------------------------------------------------------------------------------------------


def expected_matches(sizes: Codes, shares: Numbers, reach: Numbers) -> float:
    """People for whom somebody alike is in a random file of their unit, whether or not others need the same one.

    Args:
        sizes: people in each unit.
        shares: of all people, the share with each combination of values.
        reach: the share with that combination or one that counts as the same.
    """
    kinds, times = np.unique(sizes, return_counts=True)
    with np.errstate(divide="ignore"):  # everybody: the logarithm of nothing
        nobody = np.exp(np.multiply.outer(kinds.astype(float), np.log1p(-np.minimum(reach, 1.0))))
    return float((times * kinds) @ ((1 - nobody) @ shares))


def expected_pairs(sizes: Codes, shares: Numbers) -> float:
    """Pairs of equal people that can be made of two random files of the same units, each one taken once.

    Of a combination there are min(X, Y) pairs, X and Y binomial, and E[min(X, Y)] is the sum of P(X >= k)^2 over k.
    """
    kinds, times = np.unique(sizes, return_counts=True)
    known, repeated = np.unique(shares, return_counts=True)
    total = 0.0
    for size, units in zip(kinds.tolist(), times.tolist(), strict=True):
        # Beyond mean + 12 deviations + 40 nothing is left that a float could hold.
        last = min(size, math.ceil(size * known.max() + 12 * math.sqrt(size * known.max()) + 40))
        counts = np.arange(1.0, last + 1)[:, None]
        survival = scipy.special.betainc(counts, size + 1 - counts, known[None, :])  # P(X >= k) of a binomial X
        total += units * float((survival**2).sum(axis=0) @ repeated)
    return total


def people_in_reach(groups: Codes, values: Numbers, counts: Numbers, far: float) -> Numbers:
    """How many people are of each of n combinations, or of one of the same group whose number is near.

    Args:
        groups, values: of the combinations, sorted by both; NaN is near nobody.
        counts: people of each.
        far: how far numbers may be apart.

    >>> people_in_reach(np.array([0, 0, 1]), np.array([30.0, 31.0, 31.0]), np.array([2.0, 3.0, 4.0]), 1).tolist()
    [5.0, 5.0, 4.0]
    """
    found = counts.copy()
    known = np.flatnonzero(~np.isnan(values))
    total = np.concatenate([[0.0], np.cumsum(counts[known])])
    starts = np.flatnonzero(np.diff(groups[known], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(known)]):
        mine = values[known[start:end]]
        low = start + np.searchsorted(mine, mine - far)
        high = start + np.searchsorted(mine, mine + far, side="right")
        found[known[start:end]] = total[high] - total[low]
    return found
