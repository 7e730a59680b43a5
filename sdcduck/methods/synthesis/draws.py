"""Synthetic counts, each from a random stream of its own.

A count depends on the seed, the key of its cell and the number of its replicate, and on nothing else: not on the order
of the cells, the number of threads, or how many replicates are asked for. The stream is SplitMix64 (Steele, Lea and
Flood 2014) from a start that mixes the three.

All laws are Poisson(mu W) with a weight W of mean 1: W = 1 for Poisson, gamma for the negative binomial, inverse
Gaussian for PIG, nu + (1 - nu) gamma for Delaporte. Gamma variates as Marsaglia and Tsang (2000), inverse Gaussian ones
as Michael, Schucany and Haas (1976), large Poisson variates as Hoermann's transformed rejection (1993).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.synthesis.laws import SMALLEST_SIGMA

LARGEST_MEAN = 1e12
"""Of a cell. Weights of very dispersed laws stay within 64 bits above it."""

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_LARGEST_COUNT = 9.0e18
_SMALL_RATE = 10.0


@njit(cache=True, inline="always")
def _mixed(z):  # type: ignore[no-untyped-def]
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@njit(cache=True, inline="always")
def _start(seed, key, replicate):  # type: ignore[no-untyped-def]
    state = _mixed(np.uint64(seed) + _GAMMA)
    state = _mixed((state ^ np.uint64(key)) + _GAMMA)
    return _mixed((state ^ np.uint64(replicate)) + _GAMMA)


@njit(cache=True, inline="always")
def _uniform(state):  # type: ignore[no-untyped-def]
    """In the open interval (0, 1), on a grid of 2^-53."""
    return (float(_mixed(state) >> _11) + 0.5) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def _normal(state):  # type: ignore[no-untyped-def]
    while True:
        state += _GAMMA
        x = 2.0 * _uniform(state) - 1.0
        state += _GAMMA
        y = 2.0 * _uniform(state) - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            return x * math.sqrt(-2.0 * math.log(square) / square), state


@njit(cache=True)
def _gamma_weight(sigma, state):  # type: ignore[no-untyped-def]
    """Gamma of shape 1 / sigma and mean 1."""
    shape = 1.0 / sigma
    boost = 1.0
    if shape < 1.0:
        state += _GAMMA
        boost = _uniform(state) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, state = _normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        state += _GAMMA
        u = _uniform(state)
        if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost * sigma, state


@njit(cache=True)
def _inverse_gaussian_weight(sigma, state):  # type: ignore[no-untyped-def]
    """Inverse Gaussian of mean 1 and variance sigma. Of its two roots the small one is the inverse of the large one."""
    x, state = _normal(state)
    y = sigma * x * x
    large = 1.0 + 0.5 * (y + math.sqrt(y * (4.0 + y)))
    state += _GAMMA
    if _uniform(state) <= large / (1.0 + large):
        return 1.0 / large, state
    return large, state


@njit(cache=True)
def _poisson(rate, state):  # type: ignore[no-untyped-def]
    if rate <= 0.0:
        return 0
    if rate < _SMALL_RATE:
        state += _GAMMA
        u = _uniform(state)
        p = math.exp(-rate)
        y = 0
        # The probabilities shrink below the grid of the uniforms long before the limit.
        while u > p and y < 200:
            u -= p
            y += 1
            p *= rate / y
        return y
    slope = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * slope
    inverse_alpha = 1.1239 + 1.1328 / (slope - 3.4)
    squeeze = 0.9277 - 3.6224 / (slope - 2.0)
    log_rate = math.log(rate)
    while True:
        state += _GAMMA
        u = _uniform(state) - 0.5
        state += _GAMMA
        v = _uniform(state)
        us = 0.5 - abs(u)
        y = math.floor((2.0 * a / us + slope) * u + rate + 0.43)
        if us >= 0.07 and v <= squeeze:
            return int(y)
        if y < 0.0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + slope) <= (
            y * log_rate - rate - math.lgamma(y + 1.0)
        ):
            return int(y)


@njit(cache=True, nogil=True)
def _draw(model, mu, sigma, nu, key, replicate, seed, drawn):  # type: ignore[no-untyped-def]
    for place in range(len(mu)):
        state = _start(seed[place], key[place], replicate[place])
        weight = 1.0
        if mu[place] > 0.0 and model[place] > 0 and sigma[place] > SMALLEST_SIGMA:
            if model[place] == 2:
                weight, state = _inverse_gaussian_weight(sigma[place], state)
            else:
                weight, state = _gamma_weight(sigma[place], state)
                if model[place] == 3:
                    weight = nu[place] + (1.0 - nu[place]) * weight
        drawn[place] = _poisson(min(mu[place] * weight, _LARGEST_COUNT), state)


def draw_counts(
    model: NDArray[np.int8], mu: NDArray[np.float64], sigma: NDArray[np.float64], nu: NDArray[np.float64],
    key: NDArray[np.uint64], replicate: NDArray[np.int64], seed: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    """One count a place, of n places each.

    model: place in `laws.MODELS`. mu: mean, 0 to `LARGEST_MEAN`. sigma, nu: parameters of the law (nu: Delaporte only).
    key, replicate, seed: what the random stream depends on.

    Raises:
        ValueError: a mean that is negative, not a number or too large.
    """
    if not ((mu >= 0) & (mu <= LARGEST_MEAN)).all():
        raise ValueError(f"the mean of a cell must lie between 0 and {LARGEST_MEAN:g}")
    drawn = np.empty(len(mu), dtype=np.int64)
    _draw(model, mu, sigma, nu, key, replicate, seed, drawn)
    return drawn


@njit(cache=True, nogil=True)
def _bits(key, number, replicate, seed, bits):  # type: ignore[no-untyped-def]
    for place in range(len(number)):
        start = _start(seed[place], key[place] ^ _mixed(np.uint64(number[place]) + _GAMMA), replicate[place])
        bits[place] = _mixed(start + _GAMMA)


def random_bits(
    key: NDArray[np.uint64], number: NDArray[np.int64], replicate: NDArray[np.int64], seed: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """64 random bits a place, of n places each: of record ``number`` of a cell and replicate."""
    bits = np.empty(len(number), dtype=np.uint64)
    _bits(key, number, replicate, seed, bits)
    return bits
