"""The walk through the candidates: which may be published without giving a primary cell away, at one glance each.

Random vectors that no published cell notices are kept along, modulo p = 2^61 - 1 (`echelon`). The sums of a cell over
the first three are all 0 iff the cell follows from the published ones, and two cells determine each other given the
published ones iff their sums are proportional. So a candidate costs one pass over its inner cells and a look into a
table of the primary cells; only what is published and new is eliminated. Where much hangs together, candidates are
decided some hundred at a time (`batch`), and where everything does, in dense blocks (`dense`). A wrong answer needs a
random number or a minor of the matrix to be a multiple of the prime.

The fourth vector is 0 on singletons: its sum is 0 iff only singletons are left of a cell. Singleton rows are pivots of
last resort and in order, because what is left of a cell there decides the method anySum (Langsrud 2024, "Secondary cell
suppression by Gaussian elimination", PSD). The fifth vector is, on the rows that are no pivots, 0 but for the
singletons in use by an exception of that method: its sum tells at a glance that there can be no second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdcduck.methods.suppression import echelon
from sdcduck.methods.suppression.batch import PUBLISHED, SECONDARY, Batch, keep
from sdcduck.methods.suppression.dense import BLOCK, BadPrimes, OpenSpace
from sdcduck.methods.suppression.echelon import (
    PRIME,
    Pivots,
    Queue,
    Scratch,
    add,
    at,
    clear,
    inverse,
    multiply,
    pop_greatest,
    pop_least,
    prefetch,
    push,
    reduce,
    store,
)
from sdcduck.methods.suppression.reorder import small_first

Array = NDArray[Any]
T = TypeVar("T")

VECTORS = 5
DONE, FULL = 0, 1
# When blocks are cheaper than one column after the other, in entries of pivots read (12 ns each): what a column costs
# in blocks, for itself and for each free row, and what starting with them costs.
BLOCKS_PIVOT, BLOCKS_ROW, BLOCKS_START = 32_000, 45, 300_000_000
BATCH, MOST_BATCH = 128, 512  # candidates decided together
MOST_ENDANGERED = 20_000  # primary columns in so many coordinates would need too much memory
# When that is cheaper: entries of pivots and rows that are filled in, for each entry of pivots read that is spared.
BATCHES = 0.5
LOOK = 64  # pivots after which this is asked again
MOST_FREE, MOST_ROWS = 18_000, 200_000  # beyond that blocks would need more than 4 GiB
START = 80  # entries of pivots read, for each entry of the table, before they are first brought in another order
SINGLETON = 1 << 40  # what a singleton row costs as a pivot, and more by its place
# Places in the array of scalars of `Watched`.
FREE_ROWS, UNDECIDED, WORK, PIVOTS = range(4)
ONE, MINUS_ONE, OTHER = range(3)


# What is asked of a row together stands together, and nothing else: rows are met in no order, and what stood apart
# would come from far away each time. number: of the pivot that the row is, -1 if none.
ROW = np.dtype([("start", np.int64), ("length", np.int32), ("number", np.int32)])


class Links(NamedTuple):
    """Of each row the pivots with an entry there: start:start + length of ``owners`` and ``values``; and a vector that
    is worked on, the rows it touched, and the numbers of the pivots that are still to be asked.

    An owner is the row where the pivot is 1, times 4, and the kind of the entry there (ONE, MINUS_ONE, OTHER). Nearly
    all are 1 or -1: then the value is not looked at. end: one element, where the pools are free from. In ``vector`` a 0
    was not touched; p is the 0 of a row that was.
    """

    rows: Array
    capacity: Array
    owners: Array
    values: Array
    end: Array
    vector: Array
    touched: Array
    queue: Queue


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
            enter(watched, b, 0)


@njit(cache=True, nogil=True)
def refresh(watched: Watched) -> None:
    """Enters all primary columns anew."""
    watched.buckets[:] = -1
    watched.keys[:] = -1
    rekey(watched, np.flatnonzero(watched.alive))


@njit(cache=True, nogil=True)
def owned(row: int, value: int) -> int:
    """An owner: a row and the kind of a value."""
    return int(4 * row + (ONE if value == 1 else MINUS_ONE if value == PRIME - 1 else OTHER))


@njit(cache=True, nogil=True)
def room_to_link(links: Links, scratch: Scratch, left: int) -> bool:
    """Is there room for a pivot with the rows left?"""
    wanted = links.end[0]
    for i in range(at(left)):
        row = at(scratch.touched[i])
        if links.rows[row].length == links.capacity[row]:
            wanted += 2 * links.rows[row].length + 4
    return bool(wanted <= len(links.owners))


@njit(cache=True, nogil=True)
def link(pivots: Pivots, links: Links) -> None:
    """Enters the last pivot into the lists of its other rows. A full list moves to the end of the pool."""
    k = pivots.used[0] - 1
    own = pivots.row_of[k]
    links.rows[own].number = k
    for n in range(pivots.start[k], pivots.start[k + 1]):
        i = at(n)
        if pivots.rows[i] == own:
            continue
        number = at(pivots.rows[i])
        row = links.rows[number]
        if row.length == links.capacity[number]:
            old, new = row.start, links.end[0]
            for n_old in range(at(row.length)):
                links.owners[at(new) + n_old] = links.owners[at(old) + n_old]
                links.values[at(new) + n_old] = links.values[at(old) + n_old]
            row.start = new
            links.capacity[number] = 2 * row.length + 4
            links.end[0] = new + links.capacity[number]
        place = at(row.start + row.length)
        links.owners[place] = owned(own, pivots.values[i])
        links.values[place] = pivots.values[i]
        row.length += 1


@njit(cache=True, nogil=True)
def link_all(pivots: Pivots, old: Links) -> Links:
    """The lists of all pivots, with room for half as much again in each, and for some to move; in the memory of the
    old ones if that is enough."""
    rows = old.rows
    for row in range(len(rows)):
        rows[row].number = pivots.number_of[row]
        rows[row].length = 0
    for k in range(pivots.used[0]):
        for i in range(pivots.start[k], pivots.start[k + 1]):
            if pivots.rows[i] != pivots.row_of[k]:
                rows[pivots.rows[i]].length += 1
    end = np.int64(0)
    for row in range(len(rows)):
        rows[row].start = end
        old.capacity[row] = rows[row].length + rows[row].length // 2 + 4
        rows[row].length = 0
        end += old.capacity[row]
    owners, values = old.owners, old.values
    if len(owners) < end + 6 * len(rows):
        owners, values = np.empty(2 * end + 6 * len(rows), np.int32), np.empty(2 * end + 6 * len(rows), np.int64)
    for k in range(pivots.used[0]):
        for i in range(pivots.start[k], pivots.start[k + 1]):
            if pivots.rows[i] != pivots.row_of[k]:
                row = rows[pivots.rows[i]]
                owners[row.start + row.length] = owned(pivots.row_of[k], pivots.values[i])
                values[row.start + row.length] = pivots.values[i]
                row.length += 1
    return Links(rows, old.capacity, owners, values, np.full(1, end), old.vector, old.touched, old.queue)


@njit(cache=True, nogil=True)
def null_vector(pivots: Pivots, links: Links, first: Any) -> tuple[int, int]:
    """The vector that no pivot notices, 1 in row ``first`` and 0 in the other rows without a pivot; its rows are
    touched. Returns how many, and the entries of pivots read.

    Pivots are asked from last to first: a row is final when no later pivot is left.
    """
    links.vector[first] = 1
    links.touched[0] = first
    row = first
    touched, work = 1, 0
    k = pivots.used[0]
    while k >= 0:
        value = links.vector[row]
        if value != PRIME:
            factor = PRIME - value
            asked = links.rows[row]
            work += asked.length
            for n in range(asked.start, asked.start + asked.length):
                i = at(n)
                owner = links.owners[i]
                step = factor if owner & 3 == ONE else value
                if owner & 3 == OTHER:
                    step = multiply(factor, links.values[i])
                own = at(owner >> 2)
                before = links.vector[own]
                total = before + step
                links.vector[own] = total - PRIME if total > PRIME else total
                if before == 0:
                    links.touched[at(touched)] = owner >> 2
                    touched += 1
                    push(links.queue, links.rows[own].number)
                    prefetch(links.owners, links.rows[own].start)  # type: ignore[call-arg]
        k = pop_greatest(links.queue, k)
        row = at(pivots.row_of[k])
    return touched, work


@njit(cache=True, nogil=True)
def clear_vector(links: Links, touched: int) -> None:
    """Makes the vector all zero again."""
    for i in range(at(touched)):
        links.vector[at(links.touched[i])] = 0


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
def sign(value: int) -> int:
    """The sign of the rational number that ``value`` is modulo p, for numerator and denominator below 2^30; else 0.

    Half the extended Euclidean algorithm (Wang 1981); most values are small whole numbers.
    """
    if value < 1 << 30:
        return 1
    if PRIME - value < 1 << 30:
        return -1
    r0, r1, t0, t1 = PRIME, value, 0, 1
    while r1 >= 1 << 30:
        quotient = r0 // r1
        r0, r1 = r1, r0 - quotient * r1
        t0, t1 = t1, t0 - quotient * t1
    if abs(t1) >= 1 << 30:
        return 0
    return 1 if t1 > 0 else -1


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
        s = sign(multiply(scale, scratch.values[scratch.touched[i]]))
        if s < 0:
            return True
        if s == 0:
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
        elif publish_column(rows, pivots, links, scratch, vectors, watched, cost, True) == FULL:
            return turn, FULL
        else:
            pivots_column(pivots, watched, c)
        excepted[0] = False
    return last, DONE


@njit(cache=True, nogil=True)
def pivots_column(pivots: Pivots, watched: Watched, c: int) -> None:
    """Remembers which column the last pivot was."""
    watched.scalars[PIVOTS + pivots.used[0] - 1] = c


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


class Walk:
    """Publishes the columns of a 0/1 matrix one after the other while no primary column follows from them.

    Rows from ``free_rows`` on are singletons. x: m x N, column-compressed; primary: column numbers.
    check: called several times a second in long steps; what it raises stops the walk.
    """

    def __init__(
        self, x: Any, primary: Array, free_rows: int, seed: int = 0, check: Callable[[], object] = lambda: None
    ) -> None:
        rows = x.shape[0]
        self.indptr, self.indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
        self.primary = primary
        self.cost = np.bincount(self.indices, minlength=rows).astype(np.int64)
        self.cost[free_rows:] = SINGLETON + np.arange(rows - free_rows)
        self.vectors = echelon.random_values(np.random.default_rng((20220921, seed)), (rows, VECTORS))
        self.vectors[free_rows:, 3] = 0
        self.vectors[:, 4] = 0
        room = 4 * len(self.indices) + 8 * rows + 64  # memory that is not written to costs nothing
        self.pivots, self.scratch = echelon.new_pivots(rows, room), echelon.new_scratch(rows)
        self.links = Links(
            np.zeros(rows, ROW),
            np.zeros(rows, np.int32),
            np.empty(2 * room, np.int32),
            np.empty(2 * room, np.int64),
            np.zeros(1, np.int64),
            np.zeros(rows, np.int64),
            np.empty(rows, np.int32),
            echelon.new_queue(rows),
        )
        self.links.rows["number"] = -1
        by_row = x[:, primary].tocsr()
        count = len(primary)
        sums = np.zeros((count, VECTORS), np.int64)
        echelon.sums(self.indptr, self.indices, primary.astype(np.int64), self.vectors, sums)
        scalars = np.zeros(PIVOTS + rows, np.int64)
        scalars[FREE_ROWS] = free_rows
        self.watched = Watched(
            by_row.indptr.astype(np.int64),
            by_row.indices.astype(np.int32),
            sums,
            np.full((count, 2), -1, np.int64),
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
            np.full(1 << max(count, 1).bit_length(), -1, np.int32),
            np.diff(x.indptr)[primary] > 0,
            np.full(count, -1, np.int64),
            np.empty(count, np.int32),
            scalars,
        )
        self.secondary = np.zeros(x.shape[1], np.bool_)
        self.used = np.zeros(rows, np.bool_)
        self.excepted = np.zeros(1, np.bool_)
        self.forced = np.empty(0, np.int64)
        self.check = check
        self.looked = self.work = self.spent = self.per_pivot = 0
        self.reordered, self.price = 0, START * len(self.indices)
        self.space: OpenSpace | None = None
        self.blocks = self.together = False
        self.batch = BATCH
        self.one_by_one = 0  # pivots before anything was decided together
        self.in_blocks: list[Array] = []
        self.block = BLOCK
        self.attempt = 0

    @property
    def published(self) -> Array:
        """The columns that were pivots, in order."""
        single = self.one_by_one if self.together else self.pivots.used[0]
        result: Array = np.concatenate([self.watched.scalars[PIVOTS : PIVOTS + single], *self.in_blocks])
        return result

    @property
    def undecided(self) -> int:
        """Sign tests too large for the arithmetic, decided towards suppression."""
        return int(self.watched.scalars[UNDECIDED])

    def _make_room(self) -> None:
        """Widens the pool of the pivots if it could be full, else that of the lists."""
        rows, end = len(self.cost), int(self.pivots.start[self.pivots.used[0]])
        if end + rows > len(self.pivots.rows):
            self.pivots = echelon.widened(self.pivots, rows)
            return
        end = int(self.links.end[0])
        size = end + max(6 * rows, end)
        owners, values = np.empty(size, np.int32), np.empty(size, np.int64)
        owners[:end], values[:end] = self.links.owners[:end], self.links.values[:end]
        self.links = self.links._replace(owners=owners, values=values)

    def force(self, columns: Array) -> Array:
        """Publishes the columns whatever they give away; returns the primary columns they do."""
        self.forced = columns
        for c in columns.tolist():
            rows = self.indices[self.indptr[c] : self.indptr[c + 1]]
            before = int(self.pivots.used[0])
            while (
                publish_column(
                    rows,
                    self.pivots,
                    self.links,
                    self.scratch,
                    self.vectors,
                    self.watched,
                    self.cost,
                    False,
                )
                == FULL
            ):
                self._make_room()
            if self.pivots.used[0] > before:
                pivots_column(self.pivots, self.watched, c)
        given_away = self.watched.alive & ~self.watched.sums[:, :3].any(axis=1)
        self.watched.alive[given_away] = False
        result: Array = self.primary[given_away]
        return result

    def start(self) -> None:
        """From now on nothing is published that gives a primary column away."""
        rekey(self.watched, np.flatnonzero(self.watched.alive).astype(np.int32))

    def advance(self, turns: Array, first: int, last: int) -> int:
        """Walks the candidates turns[first:last]; returns how far it came: less if room was needed, more in blocks."""
        if self.blocks or self._wants_blocks():
            self.blocks = True
            return self._advance_in_blocks(turns, first)
        self._reorder(turns[:first])
        if self.together or self._wants_batches():
            return self._advance_together(turns, first)
        done, status = publish_safe(
            self.indptr,
            self.indices,
            self.pivots,
            self.links,
            self.scratch,
            self.vectors,
            self.watched,
            self.cost,
            turns,
            first,
            last,
            self.secondary,
            self.used,
            self.excepted,
        )
        if status == FULL:
            self._make_room()
        return int(done)

    def _reorder(self, before: Array) -> None:
        """Brings the columns published before in an order that leaves less of them, as soon as they cost twice that."""
        used, free_rows = int(self.pivots.used[0]), int(self.watched.scalars[FREE_ROWS])
        spent = int(self.scratch.work[0] + self.watched.scalars[WORK]) - self.spent
        if spent < self.price or used == self.reordered:
            return
        # What is left of a column on singletons alone depends on which of them are pivots, and on nothing else.
        last = np.zeros(len(self.cost), np.bool_)
        last[self.pivots.row_of[:used]] = True
        last[:free_rows] = False
        shown = self._shown(before)
        pivots, price = small_first(self.indptr, self.indices, shown, free_rows, last, self.check, self.pivots)
        if pivots.used[0] != used:
            raise RuntimeError("the published columns have another rank in another order")
        self.pivots = pivots
        if self.together:
            self._count_pivots()
        else:
            self.links = link_all(pivots, self.links)
        self.reordered, self.price = used, 2 * price
        self.spent = int(self.scratch.work[0] + self.watched.scalars[WORK])

    def _wants_blocks(self) -> bool:
        """Would blocks be cheaper now? Never with singletons, whose methods ask what is left of single columns."""
        rows, used = len(self.cost), int(self.pivots.used[0])
        scalars = self.watched.scalars
        if scalars[FREE_ROWS] < rows or used < self.looked + LOOK:
            return False
        work = int(scalars[WORK] + self.together * self.scratch.work[0])
        self.per_pivot = (work - self.work) // max(used - self.looked, 1)
        self.looked, self.work = used, work
        free = rows - used
        return (
            rows <= MOST_ROWS
            and free <= MOST_FREE
            and self.per_pivot > BLOCKS_PIVOT + BLOCKS_ROW * free
            and self.per_pivot * free > BLOCKS_START
        )

    def _wants_batches(self) -> bool:
        """Is what keeps the vectors up to date dearer than to fill them in anew after each batch? Never asked with
        singletons either."""
        used, rows = int(self.pivots.used[0]), len(self.cost)
        spared = self.per_pivot * BATCH
        if self.watched.scalars[FREE_ROWS] < rows or spared <= BATCHES * (int(self.pivots.start[used]) + rows):
            return False
        self.together, self.one_by_one = True, used
        self.work += int(self.scratch.work[0])
        self.vectors = np.ascontiguousarray(self.vectors[:, :3])
        self.watched = self.watched._replace(sums=np.ascontiguousarray(self.watched.sums[:, :3]))
        self._count_pivots()
        return True

    def _count_pivots(self) -> None:
        """The cost of each row as a pivot: how many columns and how many pivots have it."""
        end = self.pivots.start[self.pivots.used[0]]
        self.price_of = self.cost + np.bincount(self.pivots.rows[:end], minlength=len(self.cost))

    def _advance_together(self, turns: Array, first: int) -> int:
        """Decides the next candidates, as many as are worth it at a time."""
        columns = np.empty(self.batch, np.int64)
        done, found = undecided(
            self.indptr, self.indices, self.vectors, self.watched, turns, first, columns, self.secondary
        )
        if not found:
            return int(done)
        batch = Batch(self.indptr, self.indices, self.pivots, self.scratch, columns[:found], self.price_of, self.check)
        self.pivots = batch.pivots
        new = self.pivots.row_of[batch.first : self.pivots.used[0]]
        new, were = new.copy(), self.vectors[new]
        endangered = self._look()
        if len(endangered):
            self.vectors[new] = were
        if len(endangered) > MOST_ENDANGERED and found > BATCH:
            keep(self.pivots, batch.first, np.zeros(len(new), np.bool_), self.price_of)
            self.batch = BATCH
            self._look()
            return first
        if len(endangered):
            batch.protect(self.primary[endangered])
            self.pivots = batch.pivots
            if len(self._look()):
                raise RuntimeError("the walk in batches contradicts itself")
        self.in_blocks.append(batch.columns[batch.fate == PUBLISHED])
        self.secondary[batch.columns[batch.fate == SECONDARY]] = True
        refresh(self.watched)
        if 8 * len(endangered) < found:
            self.batch = min(2 * self.batch, MOST_BATCH)
        elif 2 * len(endangered) > found:
            self.batch = max(self.batch // 2, BATCH)
        return int(done)

    def _look(self) -> Array:
        """Brings the vectors up to date; which primary columns follow from the pivots."""
        echelon.extend(self.pivots, self.vectors)
        alive = np.flatnonzero(self.watched.alive)
        sums = np.zeros((len(alive), 3), np.int64)
        echelon.sums(self.indptr, self.indices, self.primary[alive].astype(np.int64), self.vectors, sums)
        self.watched.sums[alive] = sums
        self.watched.scalars[WORK] += int(self.pivots.start[self.pivots.used[0]])
        result: Array = alive[~sums.any(axis=1)]
        return result

    def _advance_in_blocks(self, turns: Array, first: int) -> int:
        """Decides the next block of candidates."""
        block = turns[first : first + self.block].astype(np.int64)
        watched = self.primary[self.watched.alive].astype(np.int64)
        decided = self._with_space(turns[:first], lambda space: space.decide(block, watched))
        new, done = block[decided.pivots], first + decided.done
        self.in_blocks.append(new)
        self.secondary[block[: decided.done][decided.fate[: decided.done] == SECONDARY]] = True
        if self.space is not None and self.space.work + self.space.price(len(new)) > self.space.built:
            self.space = None
        elif len(new):
            self._with_space(turns[:first], lambda space: space.publish(new))
        if decided.done < len(block):
            self.block = max(BLOCK, self.block // 2)
        elif len(new) < BLOCK // 2:
            self.block = min(8 * BLOCK, 2 * self.block)
        if done == len(turns):
            self._confirm(turns)
        return done

    def _with_space(self, before: Array, act: Callable[[OpenSpace], T]) -> T:
        """Does something with the space that the candidates ``before`` leave open, with other primes if need be."""
        while True:
            try:
                if self.space is None:
                    self.space = OpenSpace(
                        self.indptr, self.indices, len(self.cost), self._shown(before), self.published, self.attempt,
                        self.check,
                    )  # fmt: skip
                return act(self.space)
            except BadPrimes:
                self.space = None
                self.attempt += 1

    def _shown(self, turns: Array) -> Array:
        """The columns that are published after these turns."""
        return np.concatenate([self.forced, turns[~self.secondary[turns]]]).astype(np.int64)

    def _confirm(self, turns: Array) -> None:
        """What is published must follow from the pivots, and nothing that is suppressed."""
        shown = self._shown(turns)
        closed = np.concatenate([self.primary[self.watched.alive], turns[self.secondary[turns]]]).astype(np.int64)
        noticed = self._with_space(turns, lambda space: space.noticed(np.concatenate([shown, closed])))
        if noticed[: len(shown)].any() or not noticed[len(shown) :].all():
            raise RuntimeError("the walk in blocks contradicts itself")
