"""The exact stencil: whole numbers on the inner cells whose sum is 0 modulo a prime for the cells that are open.

A random vector of the left null space of the published cells modulo 2^61 - 1. Any later cell is open iff the stencil
sums to 0 over its inner cells: sums of published cells always do, others with a chance of 2^-61 for each replicate. The
same idea as the synthetic decimals of zero mode (Langsrud and Bøvelstad 2022, Prop. 3 and 5) without a tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression import echelon
from sdcduck.methods.suppression.nullspace import ModularNullSpace, NullSpace

STENCIL_PRIME = echelon.PRIME


def stencil(space: NullSpace | ModularNullSpace, replicates: int = 1, seed: int = 0) -> NDArray[np.int64]:
    """m x replicates whole numbers in [0, 2^61 - 1); a cell is open iff its sum is 0 modulo `STENCIL_PRIME`.

    space: from `modular_null_space` (fast, never fails) or `null_space`. seed: of the random vectors; keep it to make
    the same stencil again from the same kind of space.
    """
    if replicates < 1:
        raise ValueError("a stencil needs at least one replicate")
    if isinstance(space, ModularNullSpace):
        return space.random_vectors(replicates, seed)
    basis = space.basis
    draws = echelon.random_values(np.random.default_rng((61, seed)), (replicates, space.dimension))
    result = np.zeros((basis.shape[0], replicates), dtype=np.int64)
    echelon.combine(
        basis.indptr.astype(np.int64), basis.indices.astype(np.int64), basis.data.astype(np.int64), draws, result
    )
    return result


def stand_ins(space: ModularNullSpace, y: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """m x k whole numbers in [0, 2^61 - 1) for m x k inner values y, with the same published sums modulo the prime.

    Made from the published sums alone: on the free inner cells they are random whatever y is, and on the others what
    the published sums then leave. Two y with the same published sums have the same stand-ins for a seed, so that
    nothing else of y can be read from them, by whoever knows the seed, too.

    >>> from sdcduck.methods.suppression.matrix import DummyMatrix
    >>> from sdcduck.methods.suppression.nullspace import modular_null_space
    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 2]), np.array([0, 0, 1]), (3, 2))
    >>> numbers = stand_ins(modular_null_space(x, [0, 1]), np.array([[3], [4], [9]]))[:, 0].tolist()
    >>> (numbers[0] + numbers[1]) % STENCIL_PRIME, numbers[2], 3 in numbers
    (7, 9, False)
    """
    values = np.asarray(y, dtype=np.int64) % STENCIL_PRIME
    change = np.zeros_like(values)
    rng = np.random.default_rng((61, seed))
    draws = echelon.random_values(rng, (values.shape[1], space.dimension)).T
    change[space.free] = _modular(draws - values[space.free])
    echelon.extend(space.pivots, change)
    return _modular(values + change)


def _modular(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values between -2^61 and 2^62 as their representatives in [0, 2^61 - 1)."""
    result: NDArray[np.int64] = values % STENCIL_PRIME
    return result
