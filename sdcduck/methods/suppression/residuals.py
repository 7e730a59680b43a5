"""Sparse columns under Gaussian elimination modulo p = 2^31 - 1: the compiled part of cell suppression.

Every column is a run of entries in one pool, each ``row << 32 | value``, ascending; it is always the *residual* of a
cell: what is left of it after the columns published so far were subtracted (Langsrud 2024, "Secondary cell suppression
by Gaussian elimination", PSD). Two cells have proportional residuals iff each is determined by the other and the
published ones. Such pairs are found by a key: two random projections of the residual divided by its first value; equal
keys are compared entry by entry, so a key never decides alone.

Singleton rows are numbered from ``free_rows`` on. Which other row is the pivot does not change any answer, so the one
with the fewest live columns is taken; among singleton rows the reference's order (``rank``) decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

PRIME = 2**31 - 1
VALUE = 2**32 - 1

GONE, CANDIDATE, PRIMARY, PIVOT = 0, 1, 2, 3

# What the search for the holders of a row needs comes first, so that it is one cache line.
COLUMN = np.dtype(
    [
        ("start", "i8"),
        ("length", "i4"),
        ("capacity", "i4"),
        ("kind", "i4"),
        ("stamp", "i4"),  # when the column was last met; of a pivot column: when it was published
        ("owner", "i4"),  # of a primary column: whose cell it is; of a pivot column: its row
        ("waiting", "i4"),  # of a candidate: how many proportional ones it stands for have not had their turn
        ("key", "i8"),
        ("h0", "i8"),
        ("h1", "i8"),
        ("next", "i4"),
        ("previous", "i4"),
        ("parent", "i4"),
    ],
    align=True,
)
ROW = np.dtype(
    [
        ("start", "i8"),
        ("w0", "i8"),
        ("w1", "i8"),
        ("length", "i4"),
        ("capacity", "i4"),
        ("count", "i4"),
        ("rank", "i4"),
    ],
    align=True,
)

# Places in the array of scalars that the compiled functions share.
ENTRIES_END, LISTS_END, STAMP, FREE_ROWS, KEYED, ROOM, SPACE, UNDECIDED = range(8)

Array = NDArray[Any]


@njit(cache=True, nogil=True)
def modulo(x: int) -> int:
    """x mod p for 0 <= x < 2^62 + 2^31 (p is a Mersenne prime: shifts do)."""
    x = (x & PRIME) + (x >> 31)
    x = (x & PRIME) + (x >> 31)
    return x - PRIME if x >= PRIME else x


@njit(cache=True, nogil=True)
def inverse(a: int) -> int:
    """1 / a mod p by Fermat; most residuals have +-1 in front."""
    if a == 1 or a == PRIME - 1:
        return a
    result, power, exponent = 1, a, PRIME - 2
    while exponent:
        if exponent & 1:
            result = modulo(result * power)
        power = modulo(power * power)
        exponent >>= 1
    return result


@njit(cache=True, nogil=True)
def find(columns: Array, c: int) -> int:
    """The column that stands for c: itself, or the one with a proportional residual it was merged into."""
    while columns[c].parent != c:
        columns[c].parent = columns[columns[c].parent].parent
        c = columns[c].parent
    return c


@njit(cache=True, nogil=True)
def seek(entries: Array, low: int, end: int, row: int) -> int:
    """First place in entries[low:end] whose row is at least ``row``: steps that double, then halving."""
    wanted = np.int64(row) << 32
    step = 1
    high = low
    while high < end and entries[high] < wanted:
        low = high + 1
        high += step
        step <<= 1
    high = min(high, end)
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def position(columns: Array, entries: Array, c: int, row: int) -> int:
    """Where column c has its entry of this row, -1 if it has none."""
    low = columns[c].start
    end = low + columns[c].length
    wanted = np.int64(row) << 32
    high = end
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and entries[low] >> 32 == row:
        return int(low)
    return -1


@njit(cache=True, nogil=True)
def length_before(columns: Array, entries: Array, c: int, limit: int) -> int:
    """The number of entries of column c in rows before ``limit`` (0: all)."""
    start, length = columns[c].start, columns[c].length
    return int(seek(entries, start, start + length, limit) - start if limit else length)


@njit(cache=True, nogil=True)
def proportional(columns: Array, entries: Array, c: int, d: int, limit: int) -> bool:
    """Exact comparison modulo p: c and d have the same rows and one constant ratio.

    With ``limit`` rows from it on are left out (the sub-space without singletons); c has a row before it.
    """
    n = length_before(columns, entries, c, limit)
    if n != length_before(columns, entries, d, limit):
        return False
    s, t = columns[c].start, columns[d].start
    a, b = entries[s] & VALUE, entries[t] & VALUE
    for k in range(n):
        if entries[s + k] >> 32 != entries[t + k] >> 32:
            return False
        if modulo(b * (entries[s + k] & VALUE)) != modulo(a * (entries[t + k] & VALUE)):
            return False
    return True


@njit(cache=True, nogil=True)
def unlink(columns: Array, buckets: Array, c: int) -> None:
    """Takes column c out of the table of keys."""
    if columns[c].key < 0:
        return
    after, before = columns[c].next, columns[c].previous
    if after >= 0:
        columns[after].previous = before
    if before >= 0:
        columns[before].next = after
    else:
        buckets[bucket(columns[c].key, len(buckets))] = after
    columns[c].key = -1


@njit(cache=True, nogil=True)
def bucket(key: int, size: int) -> int:
    return (key ^ (key >> 29)) & (size - 1)


@njit(cache=True, nogil=True)
def retire(columns: Array, rows: Array, entries: Array, buckets: Array, c: int, kind: int) -> None:
    """Column c takes part no longer."""
    unlink(columns, buckets, c)
    for k in range(columns[c].start, columns[c].start + columns[c].length):
        rows[entries[k] >> 32].count -= 1
    columns[c].kind = kind


@njit(cache=True, nogil=True)
def meet(columns: Array, rows: Array, entries: Array, buckets: Array, c: int, d: int, space: int) -> bool:
    """Columns c (new) and d (in the table) are proportional: one stands for both. Is it d that stays?

    A candidate proportional to a primary cell would disclose it, now and in every later step: it joins the primary.
    Primary cells of different owners stay apart, because the test on contributors asks whose cell it is; candidates
    that are proportional in the sub-space only stay apart, because one can be determined without the other.
    """
    if columns[c].kind == PRIMARY and columns[d].kind == CANDIDATE:
        retire(columns, rows, entries, buckets, d, GONE)
        columns[d].parent = c
        return False
    if columns[c].kind == CANDIDATE:
        if space and columns[d].kind == CANDIDATE:
            return False
        columns[d].waiting += columns[c].waiting
    elif columns[c].owner != columns[d].owner:
        return False
    retire(columns, rows, entries, buckets, c, GONE)
    columns[c].parent = d
    return True


@njit(cache=True, nogil=True)
def insert_key(columns: Array, rows: Array, entries: Array, buckets: Array, c: int, space: int) -> None:
    """Computes the key of column c and merges it with a proportional column, if there is one.

    With ``space`` (the number of free rows) only those rows count; a column without any has no key.
    """
    if space and entries[columns[c].start] >> 32 >= space:
        if columns[c].kind == PRIMARY:
            retire(columns, rows, entries, buckets, c, GONE)
        return
    scale = inverse(entries[columns[c].start] & VALUE)
    key = (modulo(columns[c].h0 * scale) << 31) | modulo(columns[c].h1 * scale)
    slot = bucket(key, len(buckets))
    d = buckets[slot]
    while d >= 0:
        after = columns[d].next
        if (
            columns[d].key == key
            and proportional(columns, entries, c, d, space)
            and meet(columns, rows, entries, buckets, c, d, space)
        ):
            return
        d = after
    columns[c].key = key
    columns[c].previous = -1
    columns[c].next = buckets[slot]
    if buckets[slot] >= 0:
        columns[buckets[slot]].previous = c
    buckets[slot] = c


@njit(cache=True, nogil=True)
def rekey(columns: Array, rows: Array, entries: Array, buckets: Array, changed: Array, space: int) -> None:
    """Brings the table of keys up to date after the residuals of these columns changed."""
    for c in changed:
        unlink(columns, buckets, c)
    for c in changed:
        if columns[c].length == 0:
            columns[c].kind = GONE
        else:
            insert_key(columns, rows, entries, buckets, c, space)


@njit(cache=True, nogil=True)
def rank_of(rows: Array, row: int, free_rows: int) -> int:
    """Pivot preference: any free row first, by its number of live columns; then singleton rows in order."""
    return int(rows[row].count if row < free_rows else (1 << 40) + rows[row].rank)


@njit(cache=True, nogil=True)
def pivot_position(columns: Array, rows: Array, entries: Array, c: int, free_rows: int) -> int:
    """Where column c has its pivot."""
    best = columns[c].start
    for k in range(best + 1, best + columns[c].length):
        if rank_of(rows, entries[k] >> 32, free_rows) < rank_of(rows, entries[best] >> 32, free_rows):
            best = k
    return int(best)


@njit(cache=True, nogil=True)
def holders(columns: Array, rows: Array, entries: Array, lists: Array, row: int, stamp: int, out: Array) -> int:
    """The live columns with an entry in this row, written to ``out``; drops outdated places of the row's list."""
    n = 0
    start = rows[row].start
    for k in range(start, start + rows[row].length):
        c = lists[k]
        if (
            columns[c].kind in (CANDIDATE, PRIMARY)
            and columns[c].stamp != stamp
            and position(columns, entries, c, row) >= 0
        ):
            columns[c].stamp = stamp
            out[n] = c
            lists[start + n] = c
            n += 1
    rows[row].length = n
    return n


@njit(cache=True, nogil=True)
def room_in_lists(columns: Array, rows: Array, entries: Array, lists: Array, shared: Array, j: int, more: int) -> bool:
    """Is there room to list ``more`` new columns in every row of column j? ``shared[ROOM]`` says what is wanted."""
    room = np.int64(0)
    for k in range(columns[j].start, columns[j].start + columns[j].length):
        length = rows[entries[k] >> 32].length
        if length + more > rows[entries[k] >> 32].capacity:
            room += 5 * (length + more) + 16
    shared[ROOM] = room
    return bool(shared[LISTS_END] + room <= len(lists))


@njit(cache=True, nogil=True)
def list_column(columns: Array, rows: Array, lists: Array, shared: Array, row: int, c: int) -> None:
    """Column c is new in this row. A full list moves to the end of the pool, without the columns that are gone."""
    if rows[row].length == rows[row].capacity:
        start, end = rows[row].start, shared[LISTS_END]
        n = 0
        for k in range(start, start + rows[row].length):
            if columns[lists[k]].kind in (CANDIDATE, PRIMARY):
                lists[end + n] = lists[k]
                n += 1
        rows[row].start = end
        rows[row].length = n
        rows[row].capacity = n + (n >> 1) + 4
        shared[LISTS_END] = end + rows[row].capacity
    lists[rows[row].start + rows[row].length] = c
    rows[row].length += 1
    rows[row].count += 1


@njit(cache=True, nogil=True)
def add_to_common_rows(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    scratch: Array,
    shared: Array,
    c: int,
    j: int,
    factor: int,
) -> tuple[int, int]:
    """Adds factor times column j to column c where c has the row already.

    Returns how many values became 0 (they stay as such, their places at the end of ``scratch``) and how many rows are
    new to c (their entries are at the front of ``scratch``).
    """
    s = columns[c].start
    s_end = s + columns[c].length
    zeros = new = 0
    for t in range(columns[j].start, columns[j].start + columns[j].length):
        row = entries[t] >> 32
        product = factor * (entries[t] & VALUE)
        if s < s_end and entries[s] >> 32 < row:
            s = seek(entries, s + 1, s_end, row)
        if s < s_end and entries[s] >> 32 == row:
            value = modulo(product + (entries[s] & VALUE))
            entries[s] = (row << 32) | value
            if value == 0:
                zeros += 1
                scratch[len(scratch) - zeros] = s
                rows[row].count -= 1
            s += 1
        else:
            scratch[new] = (row << 32) | modulo(product)
            new += 1
            list_column(columns, rows, lists, shared, row, c)
    return zeros, new


@njit(cache=True, nogil=True)
def drop_zeros(columns: Array, entries: Array, scratch: Array, c: int, zeros: int) -> None:
    """Closes the gaps of the zeros that ``add_to_common_rows`` left."""
    end = columns[c].start + columns[c].length
    to = scratch[len(scratch) - 1]
    for z in range(1, zeros + 1):
        after = scratch[len(scratch) - z - 1] if z < zeros else end
        for k in range(scratch[len(scratch) - z] + 1, after):
            entries[to] = entries[k]
            to += 1
    columns[c].length -= zeros


@njit(cache=True, nogil=True)
def insert_new(columns: Array, entries: Array, scratch: Array, shared: Array, c: int, new: int) -> None:
    """Inserts the entries scratch[:new] into column c, from the back; the run moves if it has no room."""
    start, length = columns[c].start, columns[c].length
    source = start
    if length + new > columns[c].capacity:
        # A column that once grew grows again: half as much to spare saves most later moves.
        start = shared[ENTRIES_END]
        columns[c].start = start
        columns[c].capacity = length + new + ((length + new) >> 1)
        shared[ENTRIES_END] = start + columns[c].capacity
    s = source + length
    to = start + length + new
    for t in range(new - 1, -1, -1):
        while s > source and entries[s - 1] > scratch[t]:
            s -= 1
            to -= 1
            entries[to] = entries[s]
        to -= 1
        entries[to] = scratch[t]
    if source != start:
        for k in range(s - source):
            entries[start + k] = entries[source + k]
    columns[c].length = length + new


@njit(cache=True, nogil=True)
def subtract(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    scratch: Array,
    shared: Array,
    c: int,
    j: int,
    factor: int,
) -> None:
    """Column c plus factor times column j (modulo p): run, projections, row counts and row lists."""
    columns[c].h0 = modulo(columns[c].h0 + factor * columns[j].h0)
    columns[c].h1 = modulo(columns[c].h1 + factor * columns[j].h1)
    zeros, new = add_to_common_rows(columns, rows, entries, lists, scratch, shared, c, j, factor)
    if zeros:
        drop_zeros(columns, entries, scratch, c, zeros)
    if new:
        insert_new(columns, entries, scratch, shared, c, new)


@njit(cache=True, nogil=True)
def room_in_entries(columns: Array, entries: Array, shared: Array, j: int, changed: Array) -> bool:
    """Is there room for every changed column to grow by column j? If not, ``shared[ROOM]`` says what is wanted."""
    wanted = np.int64(0)
    for c in changed:
        longest = columns[c].length + columns[j].length
        if longest > columns[c].capacity:
            wanted += longest + (longest >> 1)
    shared[ROOM] = wanted
    return bool(shared[ENTRIES_END] + wanted <= len(entries))


ENOUGH, ENTRIES_FULL, LISTS_FULL = 0, 1, 2


@njit(cache=True, nogil=True)
def eliminate(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    buckets: Array,
    scratch: Array,
    out: Array,
    shared: Array,
    j: int,
) -> int:
    """Publishes column j: a pivot row is chosen and cleared in every other live column.

    Changes nothing and returns ENTRIES_FULL or LISTS_FULL when a pool has to grow first.
    """
    pivot = entries[pivot_position(columns, rows, entries, j, shared[FREE_ROWS])]
    row = pivot >> 32
    if not room_in_lists(columns, rows, entries, lists, shared, j, rows[row].count):
        return LISTS_FULL
    shared[STAMP] += 1
    columns[j].stamp = shared[STAMP]
    n = holders(columns, rows, entries, lists, row, shared[STAMP], out)
    if not room_in_entries(columns, entries, shared, j, out[:n]):
        return ENTRIES_FULL
    scale = PRIME - inverse(pivot & VALUE)
    for k in range(n):
        value = entries[position(columns, entries, out[k], row)] & VALUE
        subtract(columns, rows, entries, lists, scratch, shared, out[k], j, modulo(value * scale))
    retire(columns, rows, entries, buckets, j, PIVOT)
    columns[j].owner = row
    rows[row].length = 0
    if shared[KEYED]:
        rekey(columns, rows, entries, buckets, out[:n], shared[SPACE])
    return ENOUGH


@njit(cache=True, nogil=True)
def pack_columns(columns: Array, entries: Array, target: Array) -> int:
    """Copies every run still needed to a new pool, one after the other; returns the end."""
    end = 0
    for c in range(len(columns)):
        if columns[c].kind in (GONE, PIVOT):
            continue
        n = columns[c].length
        target[end : end + n] = entries[columns[c].start : columns[c].start + n]
        columns[c].start = end
        columns[c].capacity = n
        end += n
    return end


@njit(cache=True, nogil=True)
def pack_lists(columns: Array, rows: Array, lists: Array, target: Array) -> int:
    """Copies every row's list without the columns that are gone to a new pool, with some room each; returns the end."""
    end = 0
    for row in range(len(rows)):
        start, n = rows[row].start, 0
        for k in range(start, start + rows[row].length):
            if columns[lists[k]].kind in (CANDIDATE, PRIMARY):
                target[end + n] = lists[k]
                n += 1
        rows[row].start = end
        rows[row].length = n
        rows[row].capacity = n + 2
        end += n + 2
    return end


@njit(cache=True, nogil=True)
def fill(columns: Array, rows: Array, entries: Array, lists: Array, indptr: Array, indices: Array) -> None:
    """Loads a 0/1 matrix given by columns; kinds, weights and ranks are set by the caller."""
    for c in range(len(columns)):
        columns[c].start = indptr[c]
        columns[c].length = indptr[c + 1] - indptr[c]
        columns[c].capacity = columns[c].length
        columns[c].parent = c
        columns[c].key = -1
        columns[c].waiting = 1
        for k in range(indptr[c], indptr[c + 1]):
            row = indices[k]
            entries[k] = (np.int64(row) << 32) | 1
            columns[c].h0 = modulo(columns[c].h0 + rows[row].w0)
            columns[c].h1 = modulo(columns[c].h1 + rows[row].w1)
            if columns[c].kind != GONE:
                rows[row].count += 1
    end = 0
    for row in range(len(rows)):
        rows[row].start = end
        rows[row].capacity = rows[row].count + 2
        end += rows[row].capacity
    for c in range(len(columns)):
        if columns[c].kind == GONE:
            continue
        for k in range(indptr[c], indptr[c + 1]):
            row = indices[k]
            lists[rows[row].start + rows[row].length] = c
            rows[row].length += 1


@njit(cache=True, nogil=True)
def delete_rows(
    columns: Array, rows: Array, entries: Array, lists: Array, buckets: Array, out: Array, shared: Array, deleted: Array
) -> None:
    """Takes these rows out of every live column: their inner cells count as known."""
    for row in deleted:
        shared[STAMP] += 1
        n = holders(columns, rows, entries, lists, row, shared[STAMP], out)
        for k in range(n):
            c = out[k]
            place = position(columns, entries, c, row)
            value = PRIME - (entries[place] & VALUE)
            columns[c].h0 = modulo(columns[c].h0 + value * rows[row].w0)
            columns[c].h1 = modulo(columns[c].h1 + value * rows[row].w1)
            for e in range(place, columns[c].start + columns[c].length - 1):
                entries[e] = entries[e + 1]
            columns[c].length -= 1
        rows[row].length = 0
        rows[row].count = 0
        rekey(columns, rows, entries, buckets, out[:n], shared[SPACE])


@njit(cache=True, nogil=True)
def rows_of(columns: Array, entries: Array, c: int) -> Array:
    """The rows of column c, ascending."""
    return entries[columns[c].start : columns[c].start + columns[c].length] >> 32


@njit(cache=True, nogil=True)
def refuse(columns: Array, rows: Array, entries: Array, buckets: Array, c: int) -> None:
    """A candidate is suppressed because of singletons; its residual stays while others with the same one wait."""
    columns[c].waiting -= 1
    if columns[c].waiting == 0:
        retire(columns, rows, entries, buckets, c, GONE)
