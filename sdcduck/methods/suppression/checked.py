"""What callers give for the cells or inner cells of a matrix, checked: one value each, of the kind that is wanted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def numbers(values: ArrayLike, length: int, what: str) -> NDArray[np.float64]:
    """Finite numbers, or a ValueError that names them."""
    result = np.asarray(values, dtype=np.float64)
    if result.shape != (length,):
        raise ValueError(f"{what} must be {length} numbers")
    if not np.isfinite(result).all():
        raise ValueError(f"{what} must be finite numbers")
    return result


def amounts(values: ArrayLike, length: int, what: str) -> NDArray[np.float64]:
    """Finite numbers of at least 0, or a ValueError that names them."""
    result = np.asarray(values, dtype=np.float64)
    if result.shape != (length,):
        raise ValueError(f"{what} must be {length} numbers")
    if not np.isfinite(result).all() or (result < 0).any():
        raise ValueError(f"{what} must be finite numbers, none negative")
    return result


def flags(values: ArrayLike, length: int, what: str) -> NDArray[np.bool_]:
    """Booleans, or a ValueError that names them."""
    result = np.asarray(values)
    if result.shape != (length,) or result.dtype != np.bool_:
        raise ValueError(f"{what} must be {length} booleans")
    return result
