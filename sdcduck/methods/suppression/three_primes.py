"""Arithmetic modulo three primes of 23 bits, in floating point numbers: products of dense matrices are ordinary ones.

Numbers stand between -p/2 and p/2, so that a floating point number holds every sum of `DEPTH` products exactly: the
result is the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Array = NDArray[Any]

DEPTH = 512  # products summed up at a time; more products of 23 bits would not fit a floating point number
LARGEST_PRIME = 7_500_000


class BadPrimes(Exception):
    """The three primes do not see the same: one of them divides a minor of the matrix."""


def three_primes(attempt: int) -> Array:
    """Three primes below `LARGEST_PRIME`, others for each attempt."""
    found: list[int] = []
    number = LARGEST_PRIME
    while len(found) < 3 * attempt + 3:
        number -= 1
        if all(number % k for k in range(2, int(number**0.5) + 1)):
            found.append(number)
    return np.array(found[-3:], np.float64)


@njit(cache=True, nogil=True, inline="always")
def centred(x: float, p: float, share: float) -> float:
    """x mod p between -p/2 and p/2; ``share`` is 1/p. 0 iff p divides x, for whole numbers x below 2^53."""
    return float(x - p * np.rint(x * share))


@njit(cache=True, nogil=True)
def inverse(a: float, p: float) -> float:
    """1/a mod p by Fermat."""
    share = 1.0 / p
    result, power, exponent = 1.0, a, int(p) - 2
    while exponent:
        if exponent & 1:
            result = centred(result * power, p, share)
        power = centred(power * power, p, share)
        exponent >>= 1
    return result


@njit(cache=True, nogil=True)
def take_off(matrix: Array, product: Array, p: float) -> None:
    """matrix - product, modulo p, in place."""
    share = 1.0 / p
    for i in range(product.shape[0]):
        line = matrix[i]
        for j in range(product.shape[1]):
            line[j] = centred(line[j] - product[i, j], p, share)


@njit(cache=True, nogil=True)
def centre(matrix: Array, p: float) -> None:
    """All values modulo p, in place."""
    share = 1.0 / p
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = centred(matrix[i, j], p, share)


@njit(cache=True, nogil=True)
def take_off_kept(part: Array, kept: Array, product: Array, p: float) -> Array:
    """The kept columns of part, minus the product, modulo p."""
    share = 1.0 / p
    result = np.empty((part.shape[0], len(kept)), np.float32)
    for i in range(part.shape[0]):
        for j in range(len(kept)):
            result[i, j] = centred(np.float64(part[i, kept[j]]) - product[i, j], p, share)
    return result


@njit(cache=True, nogil=True)
def invert_upper(matrix: Array, p: float) -> Array:
    """The inverse of an upper triangular matrix modulo p."""
    n = len(matrix)
    share = 1.0 / p
    result = np.zeros((n, n))
    for k in range(n):
        result[k, k] = inverse(matrix[k, k], p)
        for i in range(k - 1, -1, -1):
            total = 0.0
            for j in range(i + 1, k + 1):
                total += centred(matrix[i, j] * result[j, k], p, share)
            result[i, k] = centred(-centred(total, p, share) * result[i, i], p, share)
    return result


@njit(cache=True, nogil=True)
def undo_unit_lower(lower: Array, lines: Array, p: float) -> None:
    """lines L^-1 in place, for a lower triangular L with ones on the diagonal (not read)."""
    share = 1.0 / p
    for line in lines:
        for k in range(len(lower) - 1, -1, -1):
            for i in range(k):
                line[i] = centred(line[i] - line[k] * lower[k, i], p, share)


def product(a: Array, b: Array, p: float) -> Array:
    """a b modulo p."""
    result = np.zeros((a.shape[0], b.shape[1]))
    for first in range(0, a.shape[1], DEPTH):
        part = slice(first, first + DEPTH)
        take_off(result, -a[:, part] @ b[part], p)
    return result
