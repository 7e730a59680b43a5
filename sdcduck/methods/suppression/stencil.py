"""The exact stencil: whole numbers on the inner cells whose sum is 0 modulo a prime for the cells that are open.

A random vector of the left null space of the published cells modulo 2^61 - 1. Any later cell is open iff the stencil
sums to 0 over its inner cells: sums of published cells always do, others with a chance of 2^-61 for each replicate. The
same idea as the synthetic decimals of zero mode (Langsrud and Bøvelstad 2022, Prop. 3 and 5) without a tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdcduck.methods.suppression.nullspace import NullSpace

Array = NDArray[Any]

STENCIL_PRIME = 2**61 - 1


def stencil(space: NullSpace, replicates: int = 1, seed: int = 0) -> NDArray[np.int64]:
    """m x replicates whole numbers in [0, 2^61 - 1); a cell is open iff its sum is 0 modulo `STENCIL_PRIME`.

    seed: of the random vectors; keep it to make the same stencil again.
    """
    if replicates < 1:
        raise ValueError("a stencil needs at least one replicate")
    draws = np.random.default_rng((61, seed)).integers(0, STENCIL_PRIME, (replicates, space.dimension), dtype=np.int64)
    basis = space.basis
    result = np.zeros((basis.shape[0], replicates), dtype=np.int64)
    indptr, indices = basis.indptr.astype(np.int64), basis.indices.astype(np.int64)
    for k in range(replicates):
        _combine(indptr, indices, basis.data.astype(np.int64), draws[k], result[:, k])
    return result


@njit(cache=True)
def _product(a: int, b: int) -> int:
    """a b mod 2^61 - 1 for a, b in [0, 2^61), in halves of 31 bits; 2^61 = 1."""
    a1, a0, b1, b0 = a >> 31, a & 0x7FFFFFFF, b >> 31, b & 0x7FFFFFFF
    middle, low = a1 * b0 + a0 * b1, a0 * b0
    total = 2 * a1 * b1 + (middle >> 30) + ((middle & 0x3FFFFFFF) << 31) + (low & STENCIL_PRIME) + (low >> 61)
    total = (total & STENCIL_PRIME) + (total >> 61)
    return total - STENCIL_PRIME if total >= STENCIL_PRIME else total


@njit(cache=True)
def _combine(indptr: Array, indices: Array, data: Array, draw: Array, result: Array) -> None:
    """Adds draw[v] times column v of the basis, modulo the prime."""
    for v in range(len(indptr) - 1):
        for k in range(indptr[v], indptr[v + 1]):
            total = result[indices[k]] + _product(data[k] % STENCIL_PRIME, draw[v])
            result[indices[k]] = total - STENCIL_PRIME if total >= STENCIL_PRIME else total
