"""Polynomials modulo x^N + 1 by a fast Fourier transform of N / 2 complex points, for numba.

Real and imaginary parts stand in two rows of an array. The transform leaves its points in bit-reversed order, and the
inverse takes them so: products need no order.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]


@cache
def roots(n: int) -> tuple[Floats, Floats]:
    """For polynomials of n coefficients: the twist of each pair, and the roots of unity, stage behind stage.

    The stage of blocks of 2h points has its h roots from place h on.
    """
    half = n // 2
    twist = np.exp(1j * np.pi * np.arange(half) / n)
    unit = np.zeros(max(half, 2), np.complex128)
    size = 1
    while size < half:
        unit[size : 2 * size] = np.exp(2j * np.pi * np.arange(size) / (2 * size))
        size *= 2
    return np.stack([twist.real, twist.imag]), np.stack([unit.real, unit.imag])


@njit(cache=True, nogil=True, error_model="numpy")
def forward(real, imag, twist, unit):  # type: ignore[no-untyped-def]
    """In place: real has the first half of the coefficients, imag the second."""
    half = len(real)
    for j in range(half):
        a, b, c, s = real[j], imag[j], twist[0, j], twist[1, j]
        real[j] = a * c - b * s
        imag[j] = a * s + b * c
    size = half // 2
    while size >= 1:
        for begin in range(0, half, 2 * size):
            low_r, high_r = real[begin : begin + size], real[begin + size : begin + 2 * size]
            low_i, high_i = imag[begin : begin + size], imag[begin + size : begin + 2 * size]
            c, s = unit[0, size : 2 * size], unit[1, size : 2 * size]
            for j in range(size):
                dr, di = low_r[j] - high_r[j], low_i[j] - high_i[j]
                low_r[j] += high_r[j]
                low_i[j] += high_i[j]
                high_r[j] = dr * c[j] - di * s[j]
                high_i[j] = dr * s[j] + di * c[j]
        size //= 2


@njit(cache=True, nogil=True, error_model="numpy")
def inverse(real, imag, twist, unit):  # type: ignore[no-untyped-def]
    """Undoes `forward`, in place."""
    half = len(real)
    size = 1
    while size < half:
        for begin in range(0, half, 2 * size):
            low_r, high_r = real[begin : begin + size], real[begin + size : begin + 2 * size]
            low_i, high_i = imag[begin : begin + size], imag[begin + size : begin + 2 * size]
            c, s = unit[0, size : 2 * size], unit[1, size : 2 * size]
            for j in range(size):
                hr = high_r[j] * c[j] + high_i[j] * s[j]
                hi = high_i[j] * c[j] - high_r[j] * s[j]
                high_r[j] = low_r[j] - hr
                high_i[j] = low_i[j] - hi
                low_r[j] += hr
                low_i[j] += hi
        size *= 2
    for j in range(half):
        a, b, c, s = real[j] / half, imag[j] / half, twist[0, j], twist[1, j]
        real[j] = a * c + b * s
        imag[j] = b * c - a * s
