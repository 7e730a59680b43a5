"""The best node of a lattice of generalisations, found without looking at all of them.

A node says for each key how far it is generalised; it is coarser than another if it is so in no key less. Records whose
class does not pass at a node are suppressed there. What is left out is left out by two facts and nothing else, so that
the node that is found is the best there is.

**Privacy.** Classes of a coarser node are unions of classes of a finer one. A class that is large enough, and has
enough different sensitive values, is so in every union. So the records that fail by these two tests (`Found.certain`)
fail at every finer node, too: where they are more than may be suppressed, no finer node is looked at. Entropy,
recursive diversity and closeness do not have that property class by class, and exclude nothing.

**Cost.** Let f(v, r) be what a record r costs if it is kept at the node v, and F >= f(v, r) what it costs if it is
suppressed. In all three measures f does not fall from a finer node to a coarser one. Let w be coarser than v and C(w)
the records that certainly fail at w: they are suppressed at v, too. Then::

    cost(v) = sum_r f(v, r) + sum over the suppressed of (F - f(v, r))
           >= sum_r f(v, r) + sum over C(w) of (F - f(v, r))     as C(w) is among the suppressed, and F >= f
           >= sum_r f(v, r) + sum over C(w) of (F - f(w, r))     as f(v, r) <= f(w, r)

The second sum is known when w was looked at (`Found.certain_cost`). The first is known beforehand if it is a sum over
keys, as for entropy and loss; otherwise it is at least that of any finer node that was looked at, as f does not fall.

Costs are whole numbers, so that nodes that cost the same do. Of these the one with the fewest steps of generalisation
is best, then the one whose levels come first as a list: nodes are numbered in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_DEAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Found:
    """What was found at a node.

    Attributes:
        classes: there are.
        smallest: records of the smallest.
        suppressed: records whose class does not pass.
        certain: those of them that fail at every finer node, too.
        passes: whether the node may be chosen.
        kept_cost: what all records cost if all are kept.
        certain_cost: how much more it costs that those of ``certain`` are suppressed.
        cost: of the node; None where too many records fail.
    """

    classes: int
    smallest: int
    suppressed: int
    certain: int
    passes: bool
    kept_cost: int
    certain_cost: int
    cost: int | None


class Lattice:
    """The nodes of a lattice, and what is known of each.

    Args:
        tops: the last level of each key; the first is 0.
        kept_costs: what all records together cost by a key at each of its levels; None: that is no sum over keys.

    Attributes:
        levels: of each node, (nodes, keys).
        found: at the nodes that were looked at.
        excluded: nodes where more records than allowed fail, whether looked at or not.
        kept: lower bound of what all records cost at a node if they are kept.
        certain: lower bound of what suppression adds to that.
        best: number of the best node, once `search` is done.
    """

    def __init__(self, tops: Sequence[int], kept_costs: Sequence[Indices] | None) -> None:
        self._shape = tuple(top + 1 for top in tops)
        grid = np.indices(self._shape).reshape(len(tops), -1).T
        order = np.lexsort((*grid.T[::-1], grid.sum(axis=1)))
        self.levels = grid[order].astype(np.int64)
        self._number_at = np.empty(len(order), np.int64)
        self._number_at[order] = np.arange(len(order))
        self.kept: Indices = np.zeros(len(order), np.int64)
        self._priced = kept_costs is not None
        if kept_costs is not None:
            self.kept = np.sum([costs[column] for costs, column in zip(kept_costs, self.levels.T, strict=True)], axis=0)
        self.certain: Indices = np.zeros(len(order), np.int64)
        self.excluded = np.zeros(len(order), np.bool_)
        self._known = np.zeros(len(order), np.bool_)
        self.found: dict[int, Found] = {}
        self.best: int | None = None
        self._price = _DEAR

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def bounds(self) -> Indices:
        """No node costs less than this."""
        return self.kept + self.certain

    def search(
        self, look: Callable[[tuple[int, ...]], Found], most: int, check: Callable[[int, int], object] = lambda *_: None
    ) -> int | None:
        """The best node, or None if none passes.

        Args:
            look: at a node.
            most: records that may be suppressed.
            check: called with the number of nodes that are settled, and of all.

        >>> sizes = {0: [1, 2, 3], 1: [3, 3], 2: [6]}  # records of the classes at each level of one key
        >>> def look(node):
        ...     small = sum(size for size in sizes[node[0]] if size < 3)
        ...     kept = sum(size**2 for size in sizes[node[0]])
        ...     return Found(len(sizes[node[0]]), min(sizes[node[0]]), small, small, not small, kept, 0, kept)
        >>> lattice = Lattice([2], None)
        >>> lattice.search(look, most=0), len(lattice.found)
        (1, 3)
        """
        # The coarsest node passes, if any does, and is the cheapest to look at. The finest bounds the cost of all.
        for node in dict.fromkeys([len(self) - 1] if self._priced else [len(self) - 1, 0]):
            self._look(node, look, most)
        while (first := self._next()) is not None:
            chain = self._chain(first)
            low, high = 0, len(chain) - 1
            # Up the chain ever fewer records fail for certain, so half of it is settled by one look.
            while low <= high:
                middle = (low + high) // 2
                node = chain[middle]
                if self._open(np.array([node]))[0]:
                    check(len(self) - self._left(), len(self))
                    self._look(node, look, most)
                if self.excluded[node]:
                    low = middle + 1
                else:
                    high = middle - 1
        return self.best

    def _look(self, node: int, look: Callable[[tuple[int, ...]], Found], most: int) -> None:
        found = look(tuple(self.levels[node].tolist()))
        self.found[node], self._known[node] = found, True
        finer = (self.levels <= self.levels[node]).all(axis=1)
        coarser = (self.levels >= self.levels[node]).all(axis=1)
        self.kept[coarser] = np.maximum(self.kept[coarser], found.kept_cost)
        if found.certain > most:
            self.excluded |= finer
            return
        self.certain[finer] = np.maximum(self.certain[finer], found.certain_cost)
        if found.passes and found.cost is not None and self._better(found.cost, node):
            self.best, self._price = node, found.cost

    def _better(self, cost: int, node: int) -> bool:
        return self.best is None or (cost, node) < (self._price, self.best)

    def _open(self, nodes: Indices) -> NDArray[np.bool_]:
        """Which of these nodes may still be better than the best."""
        bounds = self.kept[nodes] + self.certain[nodes]
        if self.best is None:
            promising = np.ones(len(nodes), np.bool_)
        else:
            promising = (bounds < self._price) | ((bounds == self._price) & (nodes < self.best))
        open_ones: NDArray[np.bool_] = ~self._known[nodes] & ~self.excluded[nodes] & promising
        return open_ones

    def _left(self) -> int:
        return int(self._open(np.arange(len(self))).sum())

    def _next(self) -> int | None:
        """The open node with the lowest bound."""
        nodes = np.arange(len(self))[self._open(np.arange(len(self)))]
        return int(nodes[np.argmin(self.bounds[nodes])]) if len(nodes) else None

    def _chain(self, node: int) -> list[int]:
        """From a node upwards, one step at a time, along open nodes with low bounds."""
        chain = [node]
        while True:
            above = self._above(chain[-1])
            above = above[self._open(above)]
            if not len(above):
                return chain
            chain.append(int(above[np.argmin(self.bounds[above])]))

    def _above(self, node: int) -> Indices:
        steps = self.levels[node] + np.eye(len(self._shape), dtype=np.int64)
        steps = steps[(steps < self._shape).all(axis=1)]
        return np.sort(self._number_at[np.ravel_multi_index(tuple(steps.T), self._shape)])


def fitting(levels: Sequence[int], most: int) -> list[int]:
    """How many levels each key may have, so that the lattice has at most so many nodes: the longest are shortened.

    >>> fitting([12, 3, 7], 100)
    [5, 3, 6]
    """
    kept = list(levels)
    while np.prod([float(count) for count in kept]) > most and max(kept) > 2:
        kept[kept.index(max(kept))] -= 1
    return kept
