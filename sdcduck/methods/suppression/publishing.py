"""What becomes of one candidate after the other in the walk: published, dependent, or suppressed.

Three random vectors tell in one pass over the inner cells of a candidate; only what is published and new is eliminated,
and moves the vectors (see `walk`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import (
    PRIME,
    Pivots,
    Scratch,
    add,
    at,
    clear,
    fraction,
    inverse,
    multiply,
    pop_least,
    push,
    reduce,
    store,
)
from sdcduck.methods.suppression.links import Links, clear_vector, link, null_vector, room_to_link
from sdcduck.methods.suppression.watched import FREE_ROWS, UNDECIDED, WORK, Watched, find_key, pivots_column, rekey

Array = NDArray[Any]

VECTORS = 5
DONE, FULL = 0, 1
SINGLETON = 1 << 40  # what a singleton row costs as a pivot, and more by its place


@njit(cache=True, nogil=True)
def sums_of(vectors: Array, rows: Array) -> Any:
    """The sums of a cell over the first four vectors."""
    a = b = c = d = 0
    for i in range(at(len(rows))):
        row = at(rows[i])
        a = add(a, vectors[row, 0])
        b = add(b, vectors[row, 1])
        c = add(c, vectors[row, 2])
        d = add(d, vectors[row, 3])
    return a, b, c, d


@njit(cache=True, nogil=True)
def sum_in_use(vectors: Array, rows: Array) -> int:
    """The sum of a cell over the fifth vector."""
    total = 0
    for i in range(at(len(rows))):
        total = add(total, vectors[at(rows[i]), 4])
    return total


@njit(cache=True, nogil=True)
def bring_into_use(pivots: Pivots, links: Links, vectors: Array, rows: Array) -> None:
    """The fifth vector is random on these rows, too, which are no pivots: there it is like the first."""
    for row in rows:
        touched, _ = null_vector(pivots, links, at(row))
        for t in range(touched):
            met = at(links.touched[t])
            vectors[met, 4] = add(vectors[met, 4], multiply(links.vector[met] % PRIME, vectors[row, 0]))
        clear_vector(links, touched)


@njit(cache=True, nogil=True)
def move_vectors(vectors: Array, watched: Watched, links: Links, touched: int, steps: Array, stamp: int) -> int:
    """Adds ``steps`` times the vector worked on to the vectors; returns how many primary sums changed."""
    changed = 0
    for t in range(at(touched)):
        row = at(links.touched[t])
        value = links.vector[row]
        if value == PRIME:
            continue
        s0, s1, s2 = multiply(value, steps[0]), multiply(value, steps[1]), multiply(value, steps[2])
        vectors[row, 0] = add(vectors[row, 0], s0)
        vectors[row, 1] = add(vectors[row, 1], s1)
        vectors[row, 2] = add(vectors[row, 2], s2)
        if steps[3]:
            vectors[row, 3] = add(vectors[row, 3], multiply(value, steps[3]))
        if steps[4]:
            vectors[row, 4] = add(vectors[row, 4], multiply(value, steps[4]))
        for n in range(watched.indptr[row], watched.indptr[row + at(1)]):
            i = at(n)
            b = at(watched.columns[i])
            if watched.alive[b]:
                watched.sums[b, 0] = add(watched.sums[b, 0], s0)
                watched.sums[b, 1] = add(watched.sums[b, 1], s1)
                watched.sums[b, 2] = add(watched.sums[b, 2], s2)
                if watched.stamp[b] != stamp:
                    watched.stamp[b] = stamp
                    watched.changed[at(changed)] = b
                    changed += 1
    return changed


@njit(cache=True, nogil=True)
def pivot_row(links: Links, scratch: Scratch, left: int, cost: Array) -> int:
    """The row left that fewest columns and fewest pivots have (which does not change any answer, only how much fills
    in), singleton rows last and in order; -1 if none is left."""
    best = -1
    least = np.int64(0)
    for i in range(at(left)):
        row = scratch.touched[i]
        price = cost[at(row)]
        price += links.rows[at(row)].length if price < SINGLETON else 0
        if best < 0 or price < least or (price == least and row < best):
            best, least = row, price
    return best


@njit(cache=True, nogil=True)
def publish_column(
    rows: Array,
    pivots: Pivots,
    links: Links,
    scratch: Scratch,
    vectors: Array,
    watched: Watched,
    cost: Array,
    keyed: bool,
) -> int:
    """Publishes a column that does not follow from the published ones; FULL, and nothing done, if there is no room."""
    left = reduce(pivots, scratch, rows, pivots.values[:0])
    if pivots.start[pivots.used[0]] + left > len(pivots.rows) or not room_to_link(links, scratch, left):
        clear(scratch, left)
        return FULL
    row = pivot_row(links, scratch, left, cost)
    if row >= 0:
        met, work = null_vector(pivots, links, at(row))
        scale = PRIME - inverse(scratch.values[row])
        steps = np.empty(VECTORS, np.int64)
        for v, total in enumerate(sums_of(vectors, rows)):
            steps[v] = multiply(total, scale)
        steps[4] = multiply(sum_in_use(vectors, rows), scale)
        changed = move_vectors(vectors, watched, links, met, steps, pivots.used[0])
        watched.scalars[WORK] += work + 4 * met + 16 * changed
        if keyed:
            rekey(watched, watched.changed[:changed])
        clear_vector(links, met)
        store(pivots, scratch, left, row)
        link(pivots, links)
    clear(scratch, left)
    return DONE


@njit(cache=True, nogil=True)
def sort_touched(scratch: Scratch, count: int) -> None:
    """Brings the first rows of ``touched`` in ascending order."""
    for i in range(count):
        push(scratch.queue, scratch.touched[i])
    row = pop_least(scratch.queue, 0)
    for i in range(count):
        scratch.touched[i] = row
        row = pop_least(scratch.queue, row)


@njit(cache=True, nogil=True)
def both_signs(scratch: Scratch, left: int, watched: Watched) -> bool:
    """Has the column in the scratch both signs? In doubt no, which never suppresses less."""
    scale = inverse(scratch.values[scratch.touched[0]])
    for i in range(1, left):
        numerator, denominator = fraction(multiply(scale, scratch.values[scratch.touched[i]]))
        if numerator < 0:
            return True
        if denominator == 0:
            watched.scalars[UNDECIDED] += 1
            return False
    return False


@njit(cache=True, nogil=True)
def exception(
    rows: Array,
    pivots: Pivots,
    links: Links,
    scratch: Scratch,
    vectors: Array,
    watched: Watched,
    used: Array,
) -> bool:
    """May a column of singletons be published after all: both signs, and no row in an earlier exception? Then its rows
    are used."""
    if sum_in_use(vectors, rows) != 0:
        return False
    left = reduce(pivots, scratch, rows, pivots.values[:0])
    sort_touched(scratch, left)
    allowed = both_signs(scratch, left, watched)
    for i in range(left):
        allowed = allowed and not used[scratch.touched[i]]
    if allowed:
        for i in range(left):
            used[scratch.touched[i]] = True
        bring_into_use(pivots, links, vectors, scratch.touched[:left])
    clear(scratch, left)
    return allowed


@njit(cache=True, nogil=True)
def publish_safe(
    indptr: Array,
    indices: Array,
    pivots: Pivots,
    links: Links,
    scratch: Scratch,
    vectors: Array,
    watched: Watched,
    cost: Array,
    turns: Array,
    first: int,
    last: int,
    secondary: Array,
    used: Array,
    excepted: Array,
) -> tuple[int, int]:
    """Walks candidates turns[first:last]; returns where it stopped and why (DONE or FULL).

    ``used``: rows in use by an exception; ``excepted``: one flag, the turn at hand was granted one already.
    """
    singletons = watched.scalars[FREE_ROWS] < len(cost)
    for turn in range(first, last):
        c = turns[turn]
        rows = indices[indptr[c] : indptr[c + 1]]
        a, b, d, free = sums_of(vectors, rows)
        if a == 0 and b == 0 and d == 0:
            continue
        refused = singletons and free == 0 and not excepted[0]
        if refused and exception(rows, pivots, links, scratch, vectors, watched, used):
            excepted[0] = True
            refused = False
        scale = inverse(a)
        if refused or find_key(watched, multiply(b, scale), multiply(d, scale)) >= 0:
            secondary[c] = True
        elif publish_column(rows, pivots, links, scratch, vectors, watched, cost, np.bool_(True)) == FULL:  # type: ignore[arg-type]
            return turn, FULL
        else:
            pivots_column(pivots, watched, c)
        excepted[0] = False
    return last, DONE


@njit(cache=True, nogil=True)
def glance(indptr: Array, indices: Array, vectors: Array, c: int) -> tuple[int, int, int]:
    """The sums of column c over the first three vectors."""
    a = b = d = 0
    for i in range(indptr[c], indptr[c + 1]):
        row = at(indices[at(i)])
        a, b, d = add(a, vectors[row, 0]), add(b, vectors[row, 1]), add(d, vectors[row, 2])
    return a, b, d


@njit(cache=True, nogil=True)
def undecided(
    indptr: Array,
    indices: Array,
    vectors: Array,
    watched: Watched,
    turns: Array,
    first: int,
    columns: Array,
    secondary: Array,
) -> tuple[int, int]:
    """Decides the candidates turns[first:] that one look decides, and writes the others to ``columns`` until these are
    full; returns where it stopped and how many there are."""
    found = 0
    for turn in range(first, len(turns)):
        c = turns[turn]
        a, b, d = glance(indptr, indices, vectors, c)
        if a == 0 and b == 0 and d == 0:
            continue
        scale = inverse(a)
        if find_key(watched, multiply(b, scale), multiply(d, scale)) >= 0:
            secondary[c] = True
            continue
        if found == len(columns):
            return turn, found
        columns[found] = c
        found += 1
    return len(turns), found
