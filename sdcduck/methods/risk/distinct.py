"""Equal rows of a table of numbers, in which NaN is NULL and one NULL is like another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit


@njit(cache=True, nogil=True)
def _hashes(table):  # type: ignore[no-untyped-def]
    found = np.empty(len(table), np.uint64)
    for row in range(len(table)):
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for column in range(table.shape[1]):
            value = table[row, column]
            # 0 and -0 are one number, and so are all NaN.
            bits = np.float64(0.0 if value == 0.0 else value).view(np.uint64) if value == value else np.uint64(1)
            mixed = (mixed ^ bits) * np.uint64(0xFF51AFD7ED558CCD)
            mixed ^= mixed >> np.uint64(32)
        found[row] = mixed
    return found


@njit(cache=True, nogil=True)
def _alike(table, one, other):  # type: ignore[no-untyped-def]
    for column in range(table.shape[1]):
        x, y = table[one, column], table[other, column]
        if x != y and (x == x or y == y):
            return False
    return True


@njit(cache=True, nogil=True)
def _new_rows(table, order):  # type: ignore[no-untyped-def]
    """Which rows, in an order that brings equal ones together, differ from the one before."""
    new = np.ones(len(order), np.bool_)
    for place in range(1, len(order)):
        new[place] = not _alike(table, order[place - 1], order[place])
    return new


def distinct(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows; where the members of each begin, and the members; and which of them each row of the table is.

    Rows of equal hash that differ may come apart in several groups, which costs time and nothing else.
    """
    order = np.argsort(_hashes(table), kind="stable")
    new = _new_rows(table, order)
    starts = np.append(np.flatnonzero(new), len(order)).astype(np.int64)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    if len(starts) - 1 == len(order):
        order = np.arange(len(order))
        return table, np.arange(len(order) + 1), order, order
    return table[order[starts[:-1]]], starts, order, group
