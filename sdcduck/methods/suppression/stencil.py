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
