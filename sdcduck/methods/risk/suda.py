"""Special uniques: the minimal sample uniques of records, and the scores made of them.

A set of keys is a minimal sample unique (MSU) of a record when nobody else has the same values of all of them, and
somebody has of any fewer. The smaller the sets and the more there are, the easier a record is to find, and the more
likely is a unique of the sample one of the population.

The search goes through the sets of keys in the order of their numbers as bits, so that all parts of a set come before
the set itself. Each set refines the classes of the set without its lowest bit; who is alone in a class has a unique
there, and leaves. It is minimal unless one found before is a part of it. Keys of many values are the high bits: they
make records unique early, and half as much is left to do.

Source: Elliot, Manning and Ford (2002) for the score; Skinner and Elliot (2002) for DIS; Manning, Haglin and Keane
(2008), Data Mining and Knowledge Discovery 16, for the problem and its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

MOST_KEYS = 62
"""A set of keys is a number of so many bits."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SpecialUniques:
    """What the search found for n classes and m keys; zero where a class has no unique.

    Attributes:
        count: minimal sample uniques of each class.
        smallest: keys of the smallest one.
        score: sum over them of (m - k)(m - k - 1).. down to the largest size that was searched; (n,).
        share: of the score of a class, that of uniques with each key; (n, m).
    """

    count: Integers
    smallest: Integers
    score: Floats
    share: Floats


@njit(cache=True, nogil=True)
def _refine(  # type: ignore[no-untyped-def]
    code, single, rows, starts, mask, head, pool, following, used, size, alone, out_rows, out_starts
):
    """Splits classes by one key; returns rows and classes that are left, and the number of uniques known.

    Args:
        code: of the key, (n,); -1: not known, and no part of a unique.
        rows, starts: the classes, one after the other.
        head, pool, following: chains of the sets found for each row; `used` of them.
        size, alone: zeros, as many as the key has codes.
    """
    left, classes = 0, 0
    touched = np.empty(len(size), np.int32)
    place = np.empty(len(size), np.int64)
    for c in range(len(starts) - 1):
        kinds = 0
        for p in range(starts[c], starts[c + 1]):
            row = rows[p]
            value = code[row]
            if value < 0:
                continue
            if size[value] == 0:
                touched[kinds] = value
                kinds += 1
            size[value] += 1
            alone[value] += single[row]
        for t in range(kinds):
            value = touched[t]
            place[value] = -1
            # Where nobody can become unique any more there is nothing to split.
            if size[value] > 1 and alone[value] > 0:
                place[value] = left
                out_starts[classes] = left
                classes += 1
                left += size[value]
        for p in range(starts[c], starts[c + 1]):
            row = rows[p]
            value = code[row]
            if value < 0:
                continue
            if place[value] >= 0:
                out_rows[place[value]] = row
                place[value] += 1
            elif size[value] == 1 and single[row]:
                minimal = True
                entry = head[row]
                while entry >= 0 and minimal:
                    minimal = (pool[entry] & ~mask) != 0
                    entry = following[entry]
                if minimal:
                    pool[used] = mask
                    following[used] = head[row]
                    head[row] = used
                    used += 1
        for t in range(kinds):
            size[touched[t]] = 0
            alone[touched[t]] = 0
    out_starts[classes] = left
    return left, classes, used


@njit(cache=True, nogil=True)
def _add_up(head, pool, following, points, count, smallest, score, share):  # type: ignore[no-untyped-def]
    keys = share.shape[1]
    for row in range(len(head)):
        entry = head[row]
        while entry >= 0:
            mask = pool[entry]
            held = 0
            for key in range(keys):
                held += (mask >> key) & 1
            value = points[held]
            for key in range(keys):
                if (mask >> key) & 1:
                    share[row, key] += value
            count[row] += 1
            score[row] += value
            if smallest[row] == 0 or held < smallest[row]:
                smallest[row] = held
            entry = following[entry]
        if score[row] > 0:
            for key in range(keys):
                share[row, key] /= score[row]


def points_by_size(keys: int, largest: int) -> Floats:
    """The points of a unique of 0, 1, .. keys: the product of (m - i) for i from its size to the largest searched."""
    top = min(largest, keys - 1)
    return np.array([float(math.prod(keys - i for i in range(size, top + 1))) for size in range(keys + 1)])


def special_uniques(
    codes: NDArray[np.int32], single: NDArray[np.bool_], largest: int, check: Callable[[int, int], None]
) -> SpecialUniques:
    """The minimal sample uniques of n distinct classes of records.

    Args:
        codes: (m, n), the value of each key as a number from 0 on; -1: not known, and no part of a unique.
        single: (n,), whether the class has one record only. Others count, but are never unique.
        largest: keys that a unique may have.
        check: called with what is done and what there is to do; it may raise to end the search.

    Raises:
        ValueError: more than `MOST_KEYS` keys.
    """
    keys, n = codes.shape
    if keys > MOST_KEYS:
        raise ValueError(f"at most {MOST_KEYS} keys can be searched")
    largest = min(largest, keys)
    kinds = np.array([int(code.max(initial=-1)) + 1 for code in codes])
    order = np.argsort(kinds, kind="stable")
    codes, kinds = np.ascontiguousarray(codes[order]), kinds[order]
    sizes = [np.zeros(max(number, 1), np.int64) for number in kinds]
    alones = [np.zeros(max(number, 1), np.int64) for number in kinds]
    head = np.full(n, -1, np.int64)
    pool, following = np.empty(max(4 * n, 1), np.int64), np.empty(max(4 * n, 1), np.int64)
    used, done = 0, 0
    total = sum(math.comb(keys, size) for size in range(1, largest + 1))
    everybody = np.arange(n, dtype=np.int32)
    # Of each depth: the classes, the set of keys, the key to try next, and the first one not to try.
    levels = [(everybody, np.array([0, n]), 0, keys)]
    tried = [0]
    while levels:
        rows, starts, mask, limit = levels[-1]
        key = tried[-1]
        if key >= limit or len(levels) > largest:
            levels.pop()
            tried.pop()
            continue
        tried[-1] += 1
        done += 1
        check(done, total)
        if used + len(rows) > len(pool):
            pool, following = (np.concatenate([old, np.empty(len(old) + n, np.int64)]) for old in (pool, following))
        out_rows = np.empty(len(rows), np.int32)
        out_starts = np.empty(len(rows) // 2 + 2, np.int64)
        wider = mask | (1 << key)
        left, classes, used = _refine(
            codes[key], single, rows, starts, wider, head, pool, following, used, sizes[key], alones[key],
            out_rows, out_starts,
        )  # fmt: skip
        if classes and key > 0:
            levels.append((out_rows[:left], out_starts[: classes + 1], wider, key))
            tried.append(0)
    count, smallest = np.zeros(n, np.int64), np.zeros(n, np.int64)
    score, share = np.zeros(n), np.zeros((n, keys))
    _add_up(head, pool, following, points_by_size(keys, largest), count, smallest, score, share)
    return SpecialUniques(count, smallest, score, share[:, np.argsort(order)])


def dis(uniques: int, pairs: int, fraction: float) -> float:
    """The chance that a match with a unique of the sample is right (Skinner and Elliot 2002).

    Args:
        uniques: records that are unique in the sample.
        pairs: records that are one of two.
        fraction: of the population that is in the sample, above 0.
    """
    right = uniques * fraction
    return right / (right + pairs * (1 - fraction)) if uniques else 0.0


def _exponent(keys: int) -> float:
    """Of the score in the odds of a right match: that of sdcMicro, which works it out in single precision.

    Theirs is below 0 from 29 keys on, and a higher score would mean a lower chance: ours stays at 0.
    """
    one = np.float32(1)
    return max(float(one + (np.float32(8) - np.float32(keys)) / np.float32(20)), 0.0)


def dis_scores(score: Floats, overall: float, keys: int) -> Floats:
    """The chance of a right match for each record with a score: odds that grow with a power of the score.

    With m keys the power is 1 + (8 - m) / 20. The chances are such that the matches add up: if each of n records were
    matched until it is right, n / `overall` matches would be made.
    """
    chance = np.zeros(len(score))
    scored = score > 0
    if not scored.any() or overall <= 0:
        return chance
    wrong = score[scored] ** -_exponent(keys)
    wrong *= scored.sum() * (1 / overall - 1) / wrong.sum()
    chance[scored] = 1 / (1 + wrong)
    return chance
