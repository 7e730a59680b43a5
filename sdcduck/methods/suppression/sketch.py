"""A block of candidates decided on a sketch: on the sums of their cells over some hundred random vectors.

Only there columns are eliminated one after the other, modulo three primes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.batch import DEPENDENT, PUBLISHED, SECONDARY
from sdcduck.methods.suppression.three_primes import BadPrimes, centre, centred, inverse, invert_upper, take_off

Array = NDArray[Any]

MORE, UNLUCKY, BAD_PRIMES = 0, 1, 2

PANEL = 32
SPREAD = 4  # sketches that see a free row
SPARE = 4  # sketches that are left when the others were used up: with less than two nothing can be compared


@njit(cache=True, nogil=True)
def sketch_rows(part: Array, sketch: Array, weight: Array, p: float, to: Array) -> None:
    """to[i]: the row part[i] over the sketch vectors; free row j has weight[j, s] in the vectors sketch[j, s]."""
    share = 1.0 / p
    # Far from 512 products meet in one sketch before the sum is taken modulo p.
    stripe = 32 * to.shape[1]
    for i in range(part.shape[0]):
        line = to[i]
        line[:] = 0.0
        for j in range(part.shape[1]):
            value = np.float64(part[i, j])
            if value != 0.0:
                for s in range(SPREAD):
                    line[sketch[j, s]] += value * weight[j, s]
            if j % stripe == 0:
                for i_sketch in range(len(line)):
                    line[i_sketch] = centred(line[i_sketch], p, share)
        for j in range(len(line)):
            line[j] = centred(line[j], p, share)


@njit(cache=True, nogil=True)
def same_ratio(sketch: Array, primes: Array, k: int, j: int, e: int) -> bool:
    """Are columns j and e proportional in the sketches k, k + 1, k + 2, modulo each prime?"""
    for q in range(3):
        p = primes[q]
        share = 1.0 / p
        a, b = sketch[q, k, j], sketch[q, k, e]
        for i in range(k + 1, k + 3):
            if centred(sketch[q, i, j] * b - sketch[q, i, e] * a, p, share) != 0.0:
                return False
    return True


@njit(cache=True, nogil=True)
def decide_panel(
    sketch: Array, primes: Array, first: int, candidates: int, k: int, most: int, fate: Array, pivots: Array
) -> tuple[int, int, int]:
    """Decides candidates from ``first`` on until ``most`` are published, k before; the columns after the candidates
    are primary ones. Sketches up to most + 3 are brought up to date.

    Returns (next candidate, published, status). In place of the zeros the multipliers are kept.
    """
    high = min(most + SPARE - 1, sketch.shape[1])
    for j in range(first, candidates):
        if k == most:
            return j, k, MORE
        zeros = 0
        for q in range(3):
            zero = True
            for i in range(k, min(k + SPARE, high)):
                zero = zero and sketch[q, i, j] == 0.0
            zeros += zero
        if zeros == 3:
            fate[j] = DEPENDENT
            continue
        if zeros:
            return j, k, BAD_PRIMES
        hit = False
        for e in range(candidates, sketch.shape[2]):
            if same_ratio(sketch, primes, k, j, e):
                hit = True
                break
        if hit:
            fate[j] = SECONDARY
            continue
        for q in range(3):
            if sketch[q, k, j] == 0.0:
                return j, k, UNLUCKY
        fate[j] = PUBLISHED
        for q in range(3):
            p = primes[q]
            share = 1.0 / p
            layer = sketch[q]
            scale = inverse(layer[k, j], p)
            for i in range(k + 1, high):
                factor = centred(layer[i, j] * scale, p, share)
                layer[i, j] = factor
                for c in range(j + 1, layer.shape[1]):
                    layer[i, c] = centred(layer[i, c] - factor * layer[k, c], p, share)
        pivots[k] = j
        k += 1
    return candidates, k, MORE


class Decided(NamedTuple):
    """fate: of each candidate up to ``done``. pivots: those published, in order. sketch: with multipliers."""

    fate: Array
    done: int
    pivots: Array
    sketch: Array


def decide(sketch: Array, primes: Array, candidates: int) -> Decided | None:
    """Walks the candidates, the first columns of a sketch; the others are primary cells that must not follow.

    Stops when the sketches are used up but for `SPARE`. None: a random number happened to be 0.
    """
    most = sketch.shape[1] - SPARE
    fate = np.zeros(candidates, np.int8)
    pivots = np.empty(max(most, 0), np.int64)
    done = k = 0
    while done < candidates and k < most:
        before, until = k, min(k + PANEL, most)
        done, k, status = decide_panel(sketch, primes, done, candidates, k, until, fate, pivots)
        if status == BAD_PRIMES:
            raise BadPrimes
        if status == UNLUCKY:
            return None
        if done == candidates:
            break
        rest, new = until + SPARE - 1, pivots[before:k]
        for q in range(3):
            layer, p = sketch[q], primes[q]
            factors = layer[rest:, new] @ invert_upper(layer[before:k].take(new, axis=1), p)
            centre(factors, p)
            layer[rest:, new] = factors
            undecided = layer[rest:, done:].copy()
            take_off(undecided, factors @ layer[before:k, done:], p)
            layer[rest:, done:] = undecided
    return Decided(fate, done, pivots[:k], sketch)
