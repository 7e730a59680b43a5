"""The primary columns that the walk watches, in a table by what is left of them.

A candidate would give a primary column away iff their sums over three random vectors are proportional: the key of a
column is what does not depend on the factor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import Pivots, at, inverse, multiply

Array = NDArray[Any]

# Places in the array of scalars of `Watched`.
FREE_ROWS, UNDECIDED, WORK, PIVOTS = range(4)


class Watched(NamedTuple):
    """The primary columns: by rows (indptr, columns), sums over the vectors, keys and the table of keys.

    alive: False when a column is given away or stands no longer for itself. scalars: see FREE_ROWS, UNDECIDED.
    """

    indptr: Array
    columns: Array
    sums: Array
    keys: Array
    next: Array
    previous: Array
    buckets: Array
    alive: Array
    stamp: Array
    changed: Array
    scalars: Array


@njit(cache=True, nogil=True)
def place_of(key: int, buckets: Array) -> int:
    return int((key ^ (key >> 31)) & (len(buckets) - 1))


@njit(cache=True, nogil=True)
def find_key(watched: Watched, first: int, second: int) -> int:
    """The primary column with this key, -1 if there is none."""
    b = watched.buckets[place_of(first, watched.buckets)]
    while b >= 0 and (watched.keys[b, 0] != first or watched.keys[b, 1] != second):
        b = watched.next[b]
    return int(b)


@njit(cache=True, nogil=True)
def unlink(watched: Watched, b: int) -> None:
    """Takes a primary column out of the table of keys, if it is there."""
    if watched.keys[b, 0] < 0:
        return
    after, before = watched.next[b], watched.previous[b]
    if after >= 0:
        watched.previous[after] = before
    if before >= 0:
        watched.next[before] = after
    else:
        watched.buckets[place_of(watched.keys[b, 0], watched.buckets)] = after
    watched.keys[b, 0] = -1


@njit(cache=True, nogil=True)
def enter(watched: Watched, b: int, scale: int) -> None:
    """Enters a primary column into the table; ``scale`` is the inverse of its first sum. One of equals is enough."""
    first, second = multiply(watched.sums[b, 1], scale), multiply(watched.sums[b, 2], scale)
    if find_key(watched, first, second) >= 0:
        watched.alive[b] = False
        return
    watched.keys[b, 0], watched.keys[b, 1] = first, second
    slot = place_of(first, watched.buckets)
    watched.previous[b] = -1
    watched.next[b] = watched.buckets[slot]
    if watched.next[b] >= 0:
        watched.previous[watched.next[b]] = b
    watched.buckets[slot] = b


@njit(cache=True, nogil=True)
def rekey(watched: Watched, changed: Array) -> None:
    """Enters primary columns whose sums changed anew; all inverses come from one (Montgomery)."""
    products = np.empty(len(changed) + 1, np.int64)
    products[0] = 1
    for k in range(len(changed)):
        unlink(watched, changed[k])
        value = watched.sums[changed[k], 0]
        products[k + 1] = multiply(products[k], value) if value else products[k]
    back = inverse(products[len(changed)])
    for k in range(len(changed) - 1, -1, -1):
        b = changed[at(k)]
        value = watched.sums[b, 0]
        if value:
            enter(watched, b, multiply(back, products[k]))
            back = multiply(back, value)
        elif watched.sums[b, 1] == 0 and watched.sums[b, 2] == 0:
            watched.alive[b] = False
        else:
            enter(watched, b, np.int64(0))  # type: ignore[arg-type]


@njit(cache=True, nogil=True)
def refresh(watched: Watched) -> None:
    """Enters all primary columns anew."""
    watched.buckets[:] = -1
    watched.keys[:] = -1
    rekey(watched, np.flatnonzero(watched.alive).astype(np.int32))


@njit(cache=True, nogil=True)
def pivots_column(pivots: Pivots, watched: Watched, c: int) -> None:
    """Remembers which column the last pivot was."""
    watched.scalars[PIVOTS + pivots.used[0] - 1] = c
