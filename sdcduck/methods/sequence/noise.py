"""How much noise the counts of a p-table have for somebody who learns from them who has a property.

The noise of a count depends on the count: nobody is told to be nobody, one has less noise than a hundred have, and
numbers below `min_units` are not told at all. How large the count is nobody knows beforehand. What an answer about n
units tells of them is how far it brings the variance of their number down, from n p (1 - p) to a share s of it in the
mean, by the best guess there is, where each has the property with chance p. Normal noise of the variance

    v = n / 4  s / (1 - s)

does the same to n units of which each has it with chance 1/2. Which p it is, and how many others are counted with them
for certain, nobody knows either: the smallest v of all holds.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from math import comb

import numpy as np

from sdcduck.methods.sequence.sets import Floats, Indices

UNITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
"""Sets of so many units are looked at; those of more are told as the last is, or better."""
_CHANCES = np.array([0.01, 0.02, 0.05, *np.arange(0.1, 0.95, 0.1), 0.95, 0.98, 0.99])
_NOTHING = 1e-9  # less of the variance than that an answer takes away is rounding


def variances_of_counts(counts: Indices, noise: Indices, chances: Floats, min_units: int) -> Floats:
    """The variance of the noise of a count of n units as they are published, at the place n - 1; the last for more.

    Args:
        counts: int64 (k,), to which true counts an entry of the p-table belongs; the largest stands for more, too.
        noise: int64 (k,), what is added to them.
        chances: float64 (k,), how often.
        min_units: smaller numbers are not told.

    With noise of -1, 0 or 1 it is the 0 without noise that tells most; where 1 and 2 are not told, nobody sees it:

    >>> law = np.array([0, 1, 1, 1]), np.array([0, -1, 0, 1]), np.array([1, 0.3, 0.4, 0.3])
    >>> variances_of_counts(*law, 1).round(2)[:3], variances_of_counts(*law, 3).round(2)[:3]
    (array([0.11, 0.22, 0.32]), array([0.55, 0.59, 0.59]))
    """
    whole = [np.asarray(values, dtype=np.int64).tobytes() for values in (counts, noise)]
    return _least(whole[0], whole[1], np.asarray(chances, dtype=np.float64).tobytes(), min_units)


@lru_cache(maxsize=64)
def _least(counts: bytes, noise: bytes, chances: bytes, min_units: int) -> Floats:
    count, added = np.frombuffer(counts, np.int64), np.frombuffer(noise, np.int64)
    last, most = int(count.max()), int(np.abs(added).max())
    law = np.zeros((last + 1, 2 * most + 1))
    np.add.at(law, (count, added + most), np.frombuffer(chances))
    for row in np.flatnonzero(law.sum(axis=1) == 0):
        law[row] = law[row - 1]
    law /= law.sum(axis=1, keepdims=True)
    least = []
    for units in UNITS:
        sure = range(max(0, min_units - most - units), min_units + most + last + 1)
        least.append(min(_equivalent(law, units, others, min_units) for others in sure))
    rising = np.minimum.accumulate(least[::-1])[::-1]
    found = rising[np.searchsorted(UNITS, np.arange(1, UNITS[-1] + 1), side="right") - 1]
    found.setflags(write=False)
    return np.asarray(found, dtype=np.float64)


def _equivalent(law: Floats, units: int, others: int, min_units: int) -> float:
    """The v of an answer about units, and so many others who are counted for certain."""
    having, most = np.arange(units + 1), len(law[0]) // 2
    told = np.zeros((units + 1, units + others + 2 * most + 1))
    for one, shift in itertools.product(range(units + 1), range(2 * most + 1)):
        number = one + others + shift - most
        told[one, number if number >= max(min_units, 0) else 0] += law[min(one + others, len(law) - 1), shift]
    chance = _CHANCES[:, None]
    ways = np.array([comb(units, one) for one in having])
    prior = ways * chance**having * (1 - chance) ** (units - having)
    seen, first, second = prior @ told, (prior * having) @ told, (prior * having**2) @ told
    left = (second - np.divide(first**2, seen, out=np.zeros_like(seen), where=seen > 0)).sum(axis=1)
    share = np.clip(left / (units * _CHANCES * (1 - _CHANCES)), 0, 1)
    taken = 1 - share
    return float(np.where(taken > _NOTHING, units / 4 * share / np.maximum(taken, _NOTHING), np.inf).min())
