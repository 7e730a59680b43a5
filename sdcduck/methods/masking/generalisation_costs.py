"""What generalisation costs, record by record: non-uniform entropy, loss, discernibility.

- Entropy: a record costs by each key log2 N(label) - log2 N(value) bits, where N counts records of the original; a
  suppressed one log2 n - log2 N(value). De Waal and Willenborg (1999); Gionis and Tassa (2009), non-uniform entropy.
- Loss: by each key the share of the domain that the label spans, 1 if suppressed. Iyengar (2002), section 3.
- Discernibility: the records of its class; all records of the file if suppressed. Bayardo and Agrawal (2005).

The first two are sums over keys. They are counted in whole steps, so that they add up to the same in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Shares = NDArray[np.float64]

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
    step: float
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
    room = 61 - int(np.ceil(np.log2(max(records * len(keys) * max(full, 1.0), 1.0))))
    step = float(2 ** min(room, 40))
    labels = []
    for key in keys:
        if cost == "entropy":
            sizes = np.array([np.bincount(labels, key.counts, len(labels))[labels] for labels in key.labels])
            costs = np.log2(sizes)
        else:
            costs = key.spans
        labels.append(np.rint(costs * step).astype(np.int64))
    kept = tuple((costs @ key.counts).astype(np.int64) for costs, key in zip(labels, keys, strict=True))
    suppressed = len(keys) * int(np.rint(full * step))
    least = sum(int(costs[0]) for costs in kept) if cost == "entropy" else 0
    return Prices(tuple(labels), suppressed, kept, step, least, records * len(keys) if cost == "loss" else 1)


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
