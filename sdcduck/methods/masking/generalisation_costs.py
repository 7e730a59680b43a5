"""What generalisation costs, record by record: non-uniform entropy, loss, discernibility.

- Entropy: a record costs by each key log2 N(label) - log2 N(value) bits, where N counts records of the original; a
  suppressed one log2 n - log2 N(value). De Waal and Willenborg (1999); Gionis and Tassa (2009), non-uniform entropy.
- Loss: by each key the share of the domain that the label spans, 1 if suppressed. Iyengar (2002), section 3.
- Discernibility: the records of its class; all records of the file if suppressed. Bayardo and Agrawal (2005).

The first two are sums over keys. They are counted in whole steps, so that they add up to the same in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Shares = NDArray[np.float64]

_SIMPLE = 1 << 20  # the largest denominator of a fraction that is told from its neighbours

COSTS = ("entropy", "loss", "discernibility")


@dataclass(frozen=True)
class Key:
    """The values of one key, and what they become.

    Attributes:
        counts: records of each value.
        labels: of each value at each level, as the number of the first value with that label, (levels, values); at the
            first level each value is its own, at the last all are one.
        spans: share of the domain that a label spans, (levels, values).
    """

    counts: Indices
    labels: Indices
    spans: Shares


@dataclass(frozen=True)
class Prices:
    """Costs of labels in whole steps.

    Attributes:
        labels: for each key the cost of a record with the label of a value at a level, (levels, values).
        suppressed: cost of a suppressed record.
        kept: for each key what all records cost at each level.
        step: how many steps make a unit.
        least: what is always there, and no loss: the bits of the values themselves.
        mean_of: the cost is a mean of so many; 1: a sum.
    """

    labels: tuple[Indices, ...]
    suppressed: int
    kept: tuple[Indices, ...]
    step: int
    least: int
    mean_of: int

    def shown(self, cost: int) -> float:
        """A cost as users see it: bits, or a share of what could be lost."""
        return (cost - self.least) / self.step / self.mean_of


def prices(cost: str, keys: Sequence[Key]) -> Prices:
    """The costs of entropy or loss.

    >>> key = Key(np.array([1, 1, 2]), np.array([[0, 1, 2], [0, 0, 2], [0, 0, 0]]), np.zeros((3, 3)))
    >>> made = prices("entropy", [key])
    >>> [made.shown(int(costs)) for costs in made.kept[0]]
    [0.0, 2.0, 6.0]
    """
    records = int(keys[0].counts.sum())
    full = float(np.log2(records)) if cost == "entropy" else 1.0
    # As fine as 64 bits allow for the sum over all records and keys.
    fineness = min(61 - int(np.ceil(np.log2(max(records * len(keys) * max(full, 1.0), 1.0)))), 40)
    if cost == "entropy":
        step = 1 << fineness
        sizes = [np.array([np.bincount(one, key.counts, len(one))[one] for one in key.labels]) for key in keys]
        labels = [_bits(one.astype(np.int64), step) for one in sizes]
        suppressed = len(keys) * int(_bits(np.array([records]), step)[0])
    else:
        step = _steps_of_shares([key.spans for key in keys], 1 << fineness)
        labels = [np.rint(key.spans * step).astype(np.int64) for key in keys]
        suppressed = len(keys) * step
    kept = tuple((costs @ key.counts).astype(np.int64) for costs, key in zip(labels, keys, strict=True))
    least = sum(int(costs[0]) for costs in kept) if cost == "entropy" else 0
    return Prices(tuple(labels), suppressed, kept, step, least, records * len(keys) if cost == "loss" else 1)


def _bits(sizes: Indices, step: int) -> Indices:
    """Logarithms to the base of 2 in whole steps; those of products are sums, so that equal costs are to the last step.

    So they are made of those of primes. Where there are too many records for them to rise from each number to the next
    that way, they are rounded each for itself.

    >>> _bits(np.array([1, 2, 3, 6, 12]), 1000).tolist()
    [0, 1000, 1585, 2585, 3585]
    """
    numbers, places = np.unique(sizes, return_inverse=True)
    most = float(numbers.max(initial=1))
    if step / most < np.log2(most) + 2:  # a step upwards against half a step for each factor of two numbers
        rounded: Indices = np.rint(np.log2(numbers) * step).astype(np.int64)[places].reshape(sizes.shape)
        return rounded
    left, bits, factor = numbers.copy(), np.zeros(len(numbers), np.int64), 2
    while factor * factor <= left.max(initial=1):
        while (divisible := left % factor == 0).any():
            left[divisible] //= factor
            bits[divisible] += int(np.rint(np.log2(factor) * step))
        factor += 1
    bits += np.rint(np.log2(left) * step).astype(np.int64)  # what is left is a prime, or 1
    found: Indices = bits[places].reshape(sizes.shape)
    return found


def _steps_of_shares(spans: Sequence[Shares], most: int) -> int:
    """Into how many steps 1 is divided, so that all shares are whole numbers of them, if they are simple fractions.

    >>> _steps_of_shares([np.array([0, 1 / 3, 1]), np.array([0.25])], 1000)
    996
    """
    common = 1
    for share in np.unique(np.concatenate([one.reshape(-1) for one in spans])):
        simple = Fraction(float(share)).limit_denominator(_SIMPLE)
        if float(simple) != share or common * simple.denominator > most:
            return most
        common = math.lcm(common, simple.denominator)
    return common * (most // common)


def counted_spans(labels: Indices, leaves: Indices | None = None) -> Shares:
    """The share of the domain that a label spans, in values: (its values - 1) / (all values - 1).

    Args:
        labels: as in `Key`.
        leaves: of a hierarchy, below the label of each value at each level, where the domain is all of its leaves.

    >>> counted_spans(np.array([[0, 1, 2], [0, 0, 2], [0, 0, 0]])).tolist()
    [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0, 1.0, 1.0]]
    """
    counts = np.array([np.bincount(one)[one] for one in labels]) if leaves is None else leaves
    spans: Shares = (counts - 1) / max(int(counts.max()) - 1, 1)
    return spans
