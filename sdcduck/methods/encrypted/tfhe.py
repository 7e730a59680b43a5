"""A reference of TFHE (Chillotti, Gama, Georgieva and Izabachene 2020), as far as a vote needs it: not for production.

Numbers on a torus of 2^32 parts are hidden by a secret of N bits, a word for each bit and one more, and normal noise:
b = a s + noise + number. Sums of such samples, and multiples by whole numbers, are samples of the sums. Noise grows,
and `signs` makes it new: from samples of numbers within half a turn it makes samples of one number where these are
positive, and of minus that where they are not, by N encrypted turns of a polynomial (blind rotation).

The bits that the rotation uses are encrypted under the polynomial that they make (circular security, which TFHE
supposes, too), so that no other key is needed. The sizes are those of the paper, N = 1024 and a noise of 1e-9 of a
turn, which it says are worth 110 bits of security: below the 128 that are usual today. Nobody has audited this code.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.encrypted.transform import forward, inverse, roots

Words = NDArray[np.uint32]
Floats = NDArray[np.float64]
Draw = Callable[[int], bytes]


@dataclass(frozen=True)
class Parameters:
    """Sizes of the scheme.

    Attributes:
        n: bits of the secret, and coefficients of a polynomial; a power of two.
        noise: standard deviation of fresh noise, in turns.
        digits: of a word, in the products of the rotation.
        bits: of a digit.
        ones: how many bits of the secret are 1; 0: each by chance.
    """

    n: int = 1024
    noise: float = 1e-9
    digits: int = 3
    bits: int = 7
    ones: int = 0

    @property
    def rounding(self) -> float:
        """Standard deviation of what is lost when a sample is rounded to 2N parts of a turn.

        >>> round(Parameters().rounding, 5)
        0.00319
        """
        return math.sqrt((self.ones or self.n / 2) / 12 + 1 / 12) / (2 * self.n)

    @property
    def bootstrapped(self) -> float:
        """Standard deviation of the noise of what `signs` makes."""
        step = 2.0 ** -(self.digits * self.bits)
        products = 2 * self.digits * self.n * (4.0**self.bits / 12) * self.noise**2
        return math.sqrt(self.n * (products + (1 + self.n / 2) * step**2 / 12))


PAPER = Parameters()
TOY = Parameters(n=128, ones=7)
"""Hides nothing, and is quick: for tests and examples. Rounding costs what it does in the paper."""


def stream(seed: int) -> Draw:
    """Bytes that a seed decides: for tests alone, since whoever knows the seed knows the secret."""
    drawn = 0

    def draw(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"sdcduck {seed} {drawn}".encode()).digest(count)

    return draw


SYSTEM: Draw = os.urandom


def _normal(draw: Draw, shape: tuple[int, ...], deviation: float) -> Words:
    """Normal noise, rounded to parts of the torus."""
    count = math.prod(shape)
    uniform = (np.frombuffer(draw(16 * count), np.uint64) >> 11).astype(np.float64) + 0.5
    first, second = (uniform * 2.0**-53).reshape(2, count)
    made = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second) * (deviation * 2**32)
    rounded: Words = np.round(made).astype(np.int64).astype(np.uint32).reshape(shape)
    return rounded


def _words(raw: bytes, shape: tuple[int, ...]) -> Words:
    made: Words = np.frombuffer(raw, "<u4").astype(np.uint32).reshape(shape)
    return made


def secret_bits(draw: Draw, sizes: Parameters) -> Words:
    """A new secret."""
    if sizes.ones:
        made = np.zeros(sizes.n, np.uint32)
        made[np.argsort(np.frombuffer(draw(8 * sizes.n), np.uint64), kind="stable")[: sizes.ones]] = 1
        return made
    return np.unpackbits(np.frombuffer(draw(sizes.n // 8), np.uint8)).astype(np.uint32)


def encrypt(numbers: NDArray[np.int64], secret: Words, draw: Draw, sizes: Parameters) -> Words:
    """A sample of each number, which is in parts of a turn: a row of N + 1 words."""
    shape = (len(numbers), sizes.n)
    a = _words(draw(4 * math.prod(shape)), shape)
    noise = _normal(draw, (len(numbers),), sizes.noise)
    b = (a * secret).sum(axis=1, dtype=np.uint32) + noise + numbers.astype(np.uint32)
    return np.column_stack([a, b.astype(np.uint32)])


def phases(samples: Words, secret: Words) -> NDArray[np.int32]:
    """Numbers with their noise, in parts of a turn on both sides of 0."""
    told: Words = samples[:, -1] - (samples[:, :-1] * secret).sum(axis=1, dtype=np.uint32)
    return told.astype(np.uint32).view(np.int32)


@njit(cache=True, nogil=True)
def _times_secret(masks, secret, twist, unit, made):  # type: ignore[no-untyped-def]
    """Of each polynomial its product with the secret, modulo x^N + 1 and 2^32, exactly."""
    n = len(secret)
    half = n // 2
    sr, si = secret[:half].astype(np.float64), secret[half:].astype(np.float64)
    forward(sr, si, twist, unit)
    for i in range(len(masks)):
        # Words on both sides of 0: their products sum to below 2^42.
        signed = masks[i].astype(np.int32)
        real, imag = signed[:half].astype(np.float64), signed[half:].astype(np.float64)
        forward(real, imag, twist, unit)
        for j in range(half):
            a, b = real[j], imag[j]
            real[j] = a * sr[j] - b * si[j]
            imag[j] = a * si[j] + b * sr[j]
        inverse(real, imag, twist, unit)
        for j in range(half):
            made[i, j] = np.uint32(np.int64(np.rint(real[j])))
            made[i, half + j] = np.uint32(np.int64(np.rint(imag[j])))


def _masks(seed: bytes, sizes: Parameters) -> Words:
    """The public halves of an evaluation key, which a seed stands for."""
    rows = sizes.n * 2 * sizes.digits
    return _words(hashlib.shake_128(b"sdcduck masks" + seed).digest(4 * rows * sizes.n), (rows, sizes.n))


SEED = 32


def evaluation_key(secret: Words, draw: Draw, sizes: Parameters) -> tuple[bytes, Words]:
    """The bits of the secret, encrypted for the rotation: a seed of the public halves, and the others."""
    seed = draw(SEED)
    masks = _masks(seed, sizes)
    body = np.empty_like(masks)
    _times_secret(masks, secret, *roots(sizes.n), body)
    body += _normal(draw, body.shape, sizes.noise)
    rows = body.reshape(sizes.n, 2, sizes.digits, sizes.n)
    for digit in range(sizes.digits):
        step = np.uint32(1 << (32 - sizes.bits * (digit + 1)))
        # A bit times a mask is told by the other half, too: that much of minus the secret.
        rows[:, 0, digit] -= secret[:, None] * secret * step
        rows[:, 1, digit, 0] += secret * step
    return seed, body


@dataclass(frozen=True)
class Rotation:
    """An evaluation key, transformed: what `signs` needs.

    Attributes:
        key: by bit and row the mask and the other half, real and imaginary parts, by point.
    """

    sizes: Parameters
    key: Floats


@njit(cache=True, nogil=True)
def _transformed(polynomials, twist, unit, made):  # type: ignore[no-untyped-def]
    half = polynomials.shape[1] // 2
    for i in range(len(polynomials)):
        signed = polynomials[i].astype(np.int32)
        made[i, 0, :] = signed[:half]
        made[i, 1, :] = signed[half:]
        forward(made[i, 0], made[i, 1], twist, unit)


def rotation(seed: bytes, body: Words, sizes: Parameters) -> Rotation:
    """Of an evaluation key as it is sent."""
    rows, half = 2 * sizes.digits, sizes.n // 2
    key = np.empty((sizes.n, rows, 2, 2, half))
    for place, polynomials in enumerate((_masks(seed, sizes), body)):
        made = np.empty((len(polynomials), 2, half))
        _transformed(polynomials, *roots(sizes.n), made)
        key[:, :, place] = made.reshape(sizes.n, rows, 2, half)
    return Rotation(sizes, key)


@njit(cache=True, nogil=True)
def _rotate(samples, level, key, digits, bits, twist, unit, made):  # type: ignore[no-untyped-def]
    """Of each sample a sample of level where its number is positive, and of minus that elsewhere."""
    count, n = len(samples), key.shape[4] * 2
    half = n // 2
    turns = np.empty((count, n + 1), np.int64)
    shift = 32 - int(np.log2(2 * n) + 0.5)
    sums = np.empty((count, 2, n), np.uint32)
    for p in range(count):
        for i in range(n + 1):
            turns[p, i] = ((np.int64(samples[p, i]) + (1 << (shift - 1))) >> shift) % (2 * n)
        # The polynomial with level everywhere, turned back by the number.
        for j in range(n):
            place = (j + turns[p, n]) % (2 * n)
            sums[p, 0, j] = 0
            sums[p, 1, j] = level if place < n else np.uint32(-np.int64(level))
    # Half of each digit, which then lie on both sides of 0, and half of what is lost.
    rest = np.uint32(np.int64(1) << (31 - bits * digits))
    for digit in range(digits):
        rest += np.uint32(np.int64(1) << (31 - bits * digit))
    low = np.int64((1 << bits) - 1)
    middle = np.int64(1 << (bits - 1))
    parts = np.empty((2 * digits, 2, half))
    out = np.empty((2, 2, half))
    change = np.empty(n, np.uint32)
    for i in range(n):
        for p in range(count):
            turn = turns[p, i]
            if turn == 0:
                continue
            for side in range(2):
                for j in range(n):
                    # Turned by x^turn, less what was there.
                    place = (j - turn) % (2 * n)
                    value = sums[p, side, place] if place < n else np.uint32(-np.int64(sums[p, side, place - n]))
                    change[j] = value - sums[p, side, j] + rest
                for digit in range(digits):
                    by = 32 - bits * (digit + 1)
                    row = parts[side * digits + digit]
                    for j in range(half):
                        row[0, j] = np.float64(((np.int64(change[j]) >> by) & low) - middle)
                        row[1, j] = np.float64(((np.int64(change[half + j]) >> by) & low) - middle)
                    forward(row[0], row[1], twist, unit)
            for side in range(2):
                out[side, :, :] = 0.0
                for r in range(2 * digits):
                    kr, ki = key[i, r, side, 0], key[i, r, side, 1]
                    pr, pi = parts[r, 0], parts[r, 1]
                    outr, outi = out[side, 0], out[side, 1]
                    for j in range(half):
                        outr[j] += pr[j] * kr[j] - pi[j] * ki[j]
                        outi[j] += pr[j] * ki[j] + pi[j] * kr[j]
                inverse(out[side, 0], out[side, 1], twist, unit)
                for j in range(half):
                    sums[p, side, j] += np.uint32(np.int64(np.rint(out[side, 0, j])))
                    sums[p, side, half + j] += np.uint32(np.int64(np.rint(out[side, 1, j])))
    for p in range(count):
        made[p, 0] = sums[p, 0, 0]
        for j in range(1, n):
            made[p, j] = np.uint32(-np.int64(sums[p, 0, n - j]))
        made[p, n] = sums[p, 1, 0]


_TOGETHER = 16  # samples that share what is read of the key


def signs(
    samples: Words, level: int, key: Rotation, threads: int = 1, check: Callable[[int], object] | None = None
) -> Words:
    """Samples of `level` where the number of a sample is positive, and of minus that elsewhere, with new noise.

    Args:
        samples: of numbers within half a turn.
        level: in parts of a turn.
        threads: the result does not depend on it.
        check: called after some samples with how many these were.
    """
    sizes = key.sizes
    made = np.empty_like(samples)
    size = max(1, min(_TOGETHER, -(-len(samples) // threads)))

    def work(low: int) -> None:
        part = slice(low, low + size)
        _rotate(samples[part], np.uint32(level), key.key, sizes.digits, sizes.bits, *roots(sizes.n), made[part])

    starts = range(0, len(samples), size)
    with ThreadPoolExecutor(threads) as pool:
        for low, _ in zip(starts, pool.map(work, starts), strict=True):
            if check is not None:
                check(min(size, len(samples) - low))
    return made
