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
from numba import njit
from numpy.typing import NDArray

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
def sign(value: int) -> int:
    """The sign of the rational number that ``value`` is modulo p, for numerator and denominator below 2^15; else 0.

    Half the extended Euclidean algorithm (Wang 1981); most values are small whole numbers.
    """
    if value < 1 << 15:
        return 1
    if PRIME - value < 1 << 15:
        return -1
    r0, r1, t0, t1 = PRIME, value, 0, 1
    while r1 >= 1 << 15:
        quotient = r0 // r1
        r0, r1 = r1, r0 - quotient * r1
        t0, t1 = t1, t0 - quotient * t1
    if abs(t1) >= 1 << 15:
        return 0
    return 1 if t1 > 0 else -1


@njit(cache=True, nogil=True)
def both_signs(columns: Array, entries: Array, shared: Array, c: int) -> bool:
    """Has column c entries of both signs? In doubt no, which leads to more suppression, never less."""
    start = columns[c].start
    scale = inverse(entries[start] & VALUE)
    for k in range(start + 1, start + columns[c].length):
        s = sign(modulo(scale * (entries[k] & VALUE)))
        if s < 0:
            return True
        if s == 0:
            shared[UNDECIDED] += 1
            return False
    return False


@njit(cache=True, nogil=True)
def unused(columns: Array, entries: Array, used: Array, c: int) -> bool:
    """Is no row of column c in use by an earlier exception?"""
    return not used[rows_of(columns, entries, c)].any()


@njit(cache=True, nogil=True)
def mark(columns: Array, entries: Array, used: Array, c: int, value: bool) -> None:
    """Marks the rows of column c as used, or takes the mark away."""
    used[rows_of(columns, entries, c)] = value


@njit(cache=True, nogil=True)
def covers_primary(
    columns: Array, rows: Array, entries: Array, lists: Array, out: Array, shared: Array, covered: Array
) -> bool:
    """Are all rows of some primary cell among the ascending rows ``covered``?"""
    for row in covered:
        shared[STAMP] += 1
        for k in range(holders(columns, rows, entries, lists, row, shared[STAMP], out)):
            c = out[k]
            if columns[c].kind != PRIMARY or columns[c].length > len(covered):
                continue
            inside = True
            for e in range(columns[c].start, columns[c].start + columns[c].length):
                place = np.searchsorted(covered, entries[e] >> 32)
                if place == len(covered) or covered[place] != entries[e] >> 32:
                    inside = False
                    break
            if inside:
                return True
    return False


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
def rows_left(columns: Array, entries: Array, c: int) -> Array:
    """The rows of what is left of column c, ascending; none if it is determined or suppressed by a singleton."""
    c = find(columns, c)
    live = columns[c].kind == CANDIDATE or columns[c].kind == PRIMARY
    rows = rows_of(columns, entries, c)
    return rows if live else rows[:0]


@njit(cache=True, nogil=True)
def same_rows(one: Array, other: Array) -> bool:
    return len(one) == len(other) and bool((one == other).all())


@njit(cache=True, nogil=True)
def with_last_children(
    columns: Array,
    entries: Array,
    parent_start: Array,
    parents: Array,
    child_start: Array,
    children: Array,
    primary: Array,
    known: Array,
    flags: Array,
) -> Array:
    """The ascending rows ``known`` and those that follow from them in one step; none if they tell a primary column.

    parents[parent_start[r]:parent_start[r + 1]] are the parents with row r, children of a parent alike. When part of
    what is left of a parent is known, and the rest is one row or all that is left of a child, the rest is known too.
    ``flags``: False for each row, left as they were.
    """
    flags[known] = True
    more = known
    meeting = [parents[parent_start[row] : parent_start[row + 1]] for row in known]
    told = False
    for parent in np.unique(joined(meeting)):
        left = rows_left(columns, entries, parent)
        rest = left[~flags[left]]
        if len(rest) == 0 or len(rest) == len(left):
            continue
        equal = len(rest) == 1
        if not equal:
            for child in children[child_start[parent] : child_start[parent + 1]]:
                if same_rows(rows_left(columns, entries, child), rest):
                    equal = True
                    told = told or primary[child]
        if equal:
            more = np.concatenate((more, rest))
    flags[known] = False
    return known[:0] if told else np.unique(more)


@njit(cache=True, nogil=True)
def joined(parts: list[Array]) -> Array:
    """The arrays one after the other."""
    size = 0
    for part in parts:
        size += len(part)
    result = np.empty(size, np.int64)
    end = 0
    for part in parts:
        result[end : end + len(part)] = part
        end += len(part)
    return result


@njit(cache=True, nogil=True)
def refuse(columns: Array, rows: Array, entries: Array, buckets: Array, c: int) -> None:
    """A candidate is suppressed because of singletons; its residual stays while others with the same one wait."""
    columns[c].waiting -= 1
    if columns[c].waiting == 0:
        retire(columns, rows, entries, buckets, c, GONE)


SINGLETONS_LEFT = 3


@njit(cache=True, nogil=True)
def publish_any_sum(
    columns: Array,
    rows: Array,
    entries: Array,
    lists: Array,
    buckets: Array,
    scratch: Array,
    out: Array,
    shared: Array,
    turns: Array,
    first: int,
    last: int,
    secondary: Array,
    used: Array,
    exceptions: bool,
    ask: bool,
) -> tuple[int, int]:
    """Walks candidates turns[first:last]; one of which only singleton rows are left is suppressed.

    With ``exceptions`` not if its entries have both signs and no earlier exception used its rows. With ``ask`` the walk
    stops there with SINGLETONS_LEFT and the caller decides.
    """
    for turn in range(first, last):
        c = find(columns, turns[turn])
        kind = columns[c].kind
        if kind in (GONE, PIVOT) or columns[c].length == 0:
            continue
        refused = entries[columns[c].start] >> 32 >= shared[FREE_ROWS]
        marked = False
        if refused and exceptions and both_signs(columns, entries, shared, c) and unused(columns, entries, used, c):
            mark(columns, entries, used, c, True)
            marked = True
            refused = False
        if kind == PRIMARY:
            secondary[turns[turn]] = True
        elif refused and ask:
            return turn, SINGLETONS_LEFT
        elif refused:
            secondary[turns[turn]] = True
            refuse(columns, rows, entries, buckets, c)
        else:
            status = eliminate(columns, rows, entries, lists, buckets, scratch, out, shared, c)
            if status != ENOUGH:
                if marked:
                    mark(columns, entries, used, c, False)
                return turn, status
    return last, ENOUGH
