"""What is near a cell in a publication: the inner cells with which it shares small sums, and those next to these."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy

Indices = NDArray[np.int32]
Booleans = NDArray[np.bool_]


class Nearby:
    """Inner cells by how near they are: from one to another in a sum it is as far as the sum has inner cells."""

    def __init__(self, matrix: scipy.sparse.csr_matrix) -> None:
        columns = matrix.tocsc()
        self.sums_of, self.sums = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        self.inner_of, self.inner = columns.indptr.astype(np.int32), columns.indices.astype(np.int32)

    def of(self, cell: int, size: int, movable: Booleans) -> Indices | None:
        """So many inner cells, or fewer, of those that can move, with the cell's own; None: these are too many."""
        own = self.inner[self.inner_of[cell] : self.inner_of[cell + 1]]
        if 4 * len(own) > size:
            return None
        own = own[movable[own]]
        return np.sort(_nearest(own, size, movable, self.sums_of, self.sums, self.inner_of, self.inner))


@njit(cache=True, nogil=True)
def _nearest(
    own: Indices, size: int, movable: Booleans, sums_of: Indices, sums: Indices, inner_of: Indices, inner: Indices
) -> Indices:
    """The inner cells that are nearest to some, as many as fit; of a sum all or none, so that sums can be kept."""
    taken = ~movable
    seen = np.zeros(len(inner_of) - 1, np.bool_)
    found = np.empty(size, np.int32)
    count, looked = 0, 0
    for i in own:
        taken[i] = True
        found[count] = i
        count += 1
    # How far a sum is and which it is, in one number.
    waiting = [np.int64(0)]
    waiting.pop()
    reached = np.int64(0)
    while True:
        while looked < count:
            row = found[looked]
            looked += 1
            for place in range(sums_of[row], sums_of[row + 1]):
                s = sums[place]
                if not seen[s]:
                    seen[s] = True
                    heapq.heappush(waiting, ((reached + np.int64(inner_of[s + 1] - inner_of[s])) << 32) + s)
        if not len(waiting):
            break
        nearest = heapq.heappop(waiting)
        reached, s = nearest >> 32, nearest & 0xFFFFFFFF
        new = 0
        for place in range(inner_of[s], inner_of[s + 1]):
            new += not taken[inner[place]]
        if count + new > size:
            break
        for place in range(inner_of[s], inner_of[s + 1]):
            row = inner[place]
            if not taken[row]:
                taken[row] = True
                found[count] = row
                count += 1
    return found[:count]
