"""Which synthetic records equal an original record that is the only one of its kind.

Records are compared by fingerprints of their codes, 64 bits each: two different records have the same one with a
chance of about 1 to 2**64, and then one draw more is refused than need be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_DRAWS = 100
"""How often a record is drawn before it is given up."""
_NEW = -9  # the code of a number that no original record has
_FIRST, _FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(31)


def fingerprints(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """One number for each row of codes; equal rows have equal ones.

    >>> a, b, c = fingerprints(np.array([[0, 1], [1, 0], [0, 1]], np.int32))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    found = np.full(len(codes), _FIRST)
    for column in range(codes.shape[1]):
        found = (found ^ codes[:, column].astype(np.int64).astype(np.uint64)) * _FACTOR
        found ^= found >> _SHIFT
    return found


def lonely(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """The fingerprints of the rows that occur once, sorted.

    >>> len(lonely(np.array([[0, 1], [1, 0], [0, 1]], np.int32)))
    1
    """
    found, counts = np.unique(fingerprints(codes), return_counts=True)
    return np.asarray(found[counts == 1], np.uint64)


def codes_of_results(
    codes: NDArray[np.int32], results: NDArray[np.float64], changed: NDArray[np.uint8],
    values: Sequence[NDArray[np.float64] | None],
) -> NDArray[np.int32]:  # fmt: skip
    """Codes of what records hold in the end: a number that was changed may be one that originals have, or be new.

    values: by column, the distinct original numbers, sorted; None where nothing is changed.
    """
    final = codes.copy()
    for column, known in enumerate(values):
        rows = np.flatnonzero(changed[:, column])
        if known is None or not len(rows):
            continue
        numbers = results[rows, column]
        if not len(known):
            final[rows, column] = _NEW
            continue
        place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        final[rows, column] = np.where(known[place] == numbers, place, _NEW)
    return final


def among(codes: NDArray[np.int32], refused: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which rows of codes have one of these fingerprints."""
    marks = fingerprints(codes)
    if not len(refused):
        return np.zeros(len(marks), bool)
    place = np.minimum(np.searchsorted(refused, marks), len(refused) - 1)
    return np.asarray(refused[place] == marks)
