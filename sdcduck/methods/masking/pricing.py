"""Possible groups that cost less than their records are worth, by turns: best members for a centre, then their mean.

The cost of a group is the sum of squared distances to its mean, and that is greater to any other centre. So the best
members for a centre, those with the smallest squared distance less price, make a group that costs no more than this
sum; its mean is the next centre. That ends, for each turn lowers the sum, at a group that is best for its own mean. It
is a heuristic: what it does not find may still be there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Matrix = NDArray[np.float64]

_TURNS = 12  # most take three or four


def cheap_groups(points: Matrix, prices: Matrix, k: int, centres: Matrix) -> NDArray[np.int32]:
    """For each centre a group that is cheap for the prices of its records.

    Args:
        points: n x p, finite.
        prices: n, what each record is worth.
        k: the least members; n is at least that.
        centres: c x p, to begin with.

    Returns:
        c x (2k - 1) numbers of records, rising; -1 fills the rest of a line. Lines may be equal.

    >>> points = np.array([[0.0], [1], [2], [10], [11], [12]])
    >>> cheap_groups(points, np.zeros(6), 2, np.array([[9.0]])).tolist()
    [[3, 4, -1]]
    >>> cheap_groups(points, np.full(6, 5.0), 2, np.array([[9.0]])).tolist()
    [[3, 4, 5]]
    """
    most = min(2 * k - 1, len(points))
    found = _by_turns(np.ascontiguousarray(points), prices, k, most, np.ascontiguousarray(centres))
    return np.pad(found, ((0, 0), (0, 2 * k - 1 - most)), constant_values=-1)


@njit(cache=True, nogil=True)
def _by_turns(points: Matrix, prices: Matrix, k: int, most: int, centres: Matrix) -> NDArray[np.int32]:
    count, width = points.shape
    found = np.full((len(centres), most), -1, np.int32)
    chosen, before = np.empty(most, np.int32), np.empty(most, np.int32)
    values, centre = np.empty(most), np.empty(width)
    for line in range(len(centres)):
        centre[:] = centres[line]
        before[:] = -1
        for _ in range(_TURNS):
            filled = 0
            for record in range(count):
                value = -prices[record]
                worst = values[filled - 1] if filled == most else np.inf
                for column in range(width):
                    step = points[record, column] - centre[column]
                    value += step * step
                    if value >= worst:
                        break
                if value >= worst:
                    continue
                if filled < most:
                    filled += 1
                place = filled - 1
                while place > 0 and values[place - 1] > value:
                    values[place], chosen[place] = values[place - 1], chosen[place - 1]
                    place -= 1
                values[place], chosen[place] = value, record
            size = k
            while size < most and values[size] < 0:
                size += 1
            chosen[:size].sort()
            same = True
            for place in range(most):
                now = chosen[place] if place < size else -1
                same = same and now == before[place]
                before[place] = now
            if same:
                break
            centre[:] = 0.0
            for place in range(size):
                centre += points[chosen[place]]
            centre /= size
        found[line] = before
    return found
