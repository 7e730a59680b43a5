"""Columns in echelon form modulo p = 2^61 - 1, one after the other: each is cleared of the pivots before it.

The left-looking form of the elimination of `residuals`: a column is touched at its own turn only, so nothing is spent
on columns that never become a pivot, and what was stored never changes. Every number is exact modulo p; a rational
number that is not 0 vanishes modulo p with a chance of about 2^-61.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import intrinsic, njit

PRIME = 2**61 - 1
HALF = 1 << 30  # fractions of numbers below it are different modulo p
SLICE = 256  # columns between two checks
at = np.uint64  # an index without a sign: numba then does not ask whether it is negative, half the time of a loop

Array = NDArray[Any]


class Pivots(NamedTuple):
    """Stored columns: number k has the entries start[k]:start[k + 1] of ``rows`` and ``values``, 1 in ``row_of[k]``.

    number_of: of each row the pivot it is, -1 if none. used: one element, how many pivots there are.
    """

    row_of: Array
    number_of: Array
    start: Array
    rows: Array
    values: Array
    used: Array


class Queue(NamedTuple):
    """A set of numbers as bits, and which of its words (of 64 bits each) are not 0, again as bits."""

    words: Array
    filled: Array


class Scratch(NamedTuple):
    """A column being worked on: values by row, the rows it touched, and the pivots still to be cleared.

    While pivots are cleared, 0 is a row that was not touched and p the 0 of one that was: whether it was is asked of
    the same place in memory. work: one element, the entries of pivots read so far.
    """

    values: Array
    touched: Array
    queue: Queue
    work: Array


def new_pivots(rows: int, room: int) -> Pivots:
    """No pivots yet, of at most ``rows``, with room for so many entries."""
    return Pivots(
        np.empty(rows, np.int32),
        np.full(rows, -1, np.int32),
        np.zeros(rows + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )


def emptied(pivots: Pivots) -> Pivots:
    """No pivots, in the memory of others that nobody asks for any more."""
    new = new_pivots(len(pivots.row_of), 0)
    return new._replace(rows=pivots.rows, values=pivots.values)


def new_scratch(rows: int) -> Scratch:
    """All zero, nothing touched."""
    return Scratch(
        np.zeros(rows, np.int64),
        np.empty(rows, np.int32),
        new_queue(rows),
        np.zeros(1, np.int64),
    )


def new_queue(size: int) -> Queue:
    """An empty set of numbers below ``size``."""
    words = (size >> 6) + 1
    return Queue(np.zeros(words, np.int64), np.zeros((words >> 6) + 1, np.int64))


def widened(pivots: Pivots, room: int) -> Pivots:
    """The same pivots with at least ``room`` more places for entries, and at least as many as are in use."""
    end = int(pivots.start[pivots.used[0]])
    size = end + max(room, end)
    rows, values = np.empty(size, np.int32), np.empty(size, np.int64)
    rows[:end], values[:end] = pivots.rows[:end], pivots.values[:end]
    return pivots._replace(rows=rows, values=values)


@intrinsic
def _wide_product(context: Any, a: Any, b: Any) -> Any:
    """a b mod p from the 128 bits of the product: 2^61 = 1, so its two parts of 61 bits are added."""
    from llvmlite import ir
    from numba import types

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, long = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        low = builder.and_(builder.trunc(product, long), long(PRIME))
        total = builder.add(low, builder.trunc(builder.lshr(product, wide(61)), long))
        less = builder.sub(total, long(PRIME))
        return builder.select(builder.icmp_signed("<", less, long(0)), total, less)

    return types.int64(types.int64, types.int64), code


@njit(cache=True, nogil=True)
def multiply(a: int, b: int) -> int:
    """a b mod p for a, b in [0, p)."""
    return int(_wide_product(a, b))


@njit(cache=True, nogil=True)
def add(a: int, b: int) -> int:
    """a + b mod p."""
    total = a + b
    return total - PRIME if total >= PRIME else total


@njit(cache=True, nogil=True)
def inverse(a: int) -> int:
    """1 / a mod p by Fermat; most values are +-1."""
    if a == 1 or a == PRIME - 1:
        return a
    result, power, exponent = 1, a, PRIME - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, power)
        power = multiply(power, power)
        exponent >>= 1
    return result


@njit(cache=True, nogil=True)
def fraction(value: int, prime: int = PRIME, bound: int = HALF) -> tuple[int, int]:
    """Numerator and denominator below ``bound`` of a value modulo a prime; denominator 0 if there are none.

    Half the extended Euclidean algorithm (Wang 1981); most values are small whole numbers.
    """
    if value < bound:
        return value, 1
    if prime - value < bound:
        return value - prime, 1
    r0, r1, t0, t1 = prime, value, 0, 1
    while r1 >= bound:
        quotient = r0 // r1
        r0, r1 = r1, r0 - quotient * r1
        t0, t1 = t1, t0 - quotient * t1
    if abs(t1) >= bound:
        return 0, 0
    return (r1, t1) if t1 > 0 else (-r1, -t1)


@intrinsic
def _zeros_below(context: Any, word: Any) -> Any:
    """How many bits are 0 below the lowest that is 1; the word is not 0."""
    from llvmlite import ir
    from numba import types

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), code


@intrinsic
def _zeros_above(context: Any, word: Any) -> Any:
    """How many bits are 0 above the highest that is 1; the word is not 0."""
    from llvmlite import ir
    from numba import types

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), code


@njit(cache=True, nogil=True)
def lowest(word: int) -> int:
    """The place of the lowest bit of a word that is 1."""
    return int(_zeros_below(word))


@njit(cache=True, nogil=True)
def highest(word: int) -> int:
    """The place of the highest bit of a word that is 1."""
    return int(63 - _zeros_above(word))


@njit(cache=True, nogil=True)
def push(queue: Queue, number: int) -> None:
    """Adds a number to the set."""
    queue.words[number >> 6] |= 1 << (number & 63)
    queue.filled[number >> 12] |= 1 << ((number >> 6) & 63)


@njit(cache=True, nogil=True)
def _taken_from(queue: Queue, word: int, bit: int) -> int:
    """Removes a number from the set and returns it."""
    queue.words[word] ^= 1 << bit
    if queue.words[word] == 0:
        queue.filled[word >> 6] ^= 1 << (word & 63)
    return int((word << 6) + bit)


@njit(cache=True, nogil=True)
def pop_least(queue: Queue, bound: int) -> int:
    """Removes the least number of the set, which has none below ``bound``, and returns it; -1 if the set is empty."""
    for group in range(bound >> 12, len(queue.filled)):
        if queue.filled[group]:
            word = (group << 6) + lowest(queue.filled[group])
            return _taken_from(queue, word, lowest(queue.words[word]))
    return -1


@njit(cache=True, nogil=True)
def pop_greatest(queue: Queue, bound: int) -> int:
    """Removes the greatest number of the set, which has none above ``bound``, and returns it; -1 if it is empty."""
    for group in range(bound >> 12, -1, -1):
        if queue.filled[group]:
            word = (group << 6) + highest(queue.filled[group])
            return _taken_from(queue, word, highest(queue.words[word]))
    return -1


@intrinsic
def prefetch(context: Any, array: Any, index: Any) -> Any:
    """Asks for the memory of an entry that is read soon: most pivots are short and lie far from each other."""
    from llvmlite import ir
    from numba import types

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(ask, [place, number(0), number(3), number(1)])  # to read, to be kept, data
        return context.get_dummy_value()

    return types.none(array, types.int64), code


@njit(cache=True, nogil=True)
def await_pivot(pivots: Pivots, scratch: Scratch, row: Any) -> None:
    """If the row is a pivot, it is still to be cleared."""
    k = pivots.number_of[row]
    if k >= 0:
        push(scratch.queue, k)
        prefetch(pivots.rows, pivots.start[k])
        prefetch(pivots.values, pivots.start[k])


@njit(cache=True, nogil=True)
def reduce(pivots: Pivots, scratch: Scratch, rows: Array, values: Array) -> int:
    """Loads a column (no values: all 1) and clears it of all pivots; returns how many rows are left in ``touched``."""
    return int(reduce_noting(pivots, scratch, rows, values, len(pivots.row_of), values[:0]))


@njit(cache=True, nogil=True)
def reduce_noting(pivots: Pivots, scratch: Scratch, rows: Array, values: Array, first: int, noted: Array) -> int:
    """`reduce` that writes to ``noted`` how many times each pivot from number ``first`` on was in the column."""
    for i in range(len(rows)):
        row = at(rows[i])
        value = values[i] if len(values) else 1
        scratch.values[row] = value if value else PRIME
        scratch.touched[i] = row
        await_pivot(pivots, scratch, row)
    touched = len(rows)
    k = pop_least(scratch.queue, 0)
    while k >= 0:
        value = scratch.values[pivots.row_of[k]]
        if value != PRIME:
            if k >= first:
                noted[k - first] = value
            factor = PRIME - value
            # No slices here: most pivots are short, and a slice costs more than to read them.
            for n in range(pivots.start[k], pivots.start[k + 1]):
                e = at(n)
                row = at(pivots.rows[e])
                before = scratch.values[row]
                total = before + multiply(factor, pivots.values[e])
                scratch.values[row] = total - PRIME if total > PRIME else total
                if before == 0:
                    scratch.touched[at(touched)] = row
                    touched += 1
                    await_pivot(pivots, scratch, row)
            scratch.work[0] += pivots.start[k + 1] - pivots.start[k]
        k = pop_least(scratch.queue, k)
    left = 0
    for i in range(at(touched)):
        row = at(scratch.touched[i])
        if scratch.values[row] != PRIME:
            scratch.touched[at(left)] = row
            left += 1
        else:
            scratch.values[row] = 0
    return left


@njit(cache=True, nogil=True)
def best_row(scratch: Scratch, left: int, cost: Array) -> int:
    """The row of smallest cost that is left of the column; -1 if none is, or only rows of negative cost."""
    best = -1
    least = np.int64(0)
    for i in range(at(left)):
        row = scratch.touched[i]
        price = cost[at(row)]
        if price >= 0 and (best < 0 or price < least or (price == least and row < best)):
            best, least = row, price
    return best


@njit(cache=True, nogil=True)
def store(pivots: Pivots, scratch: Scratch, left: int, row: int) -> None:
    """What is left of the column becomes a pivot in this row; there is room for it."""
    k = pivots.used[0]
    end = pivots.start[k]
    scale = inverse(scratch.values[row])
    for i in range(at(left)):
        pivots.rows[at(end)] = scratch.touched[i]
        pivots.values[at(end)] = multiply(scratch.values[at(scratch.touched[i])], scale)
        end += 1
    pivots.start[k + 1] = end
    pivots.row_of[k] = row
    pivots.number_of[row] = k
    pivots.used[0] = k + 1


@njit(cache=True, nogil=True)
def clear(scratch: Scratch, touched: int) -> None:
    """Makes the scratch all zero again."""
    for i in range(at(touched)):
        row = at(scratch.touched[i])
        scratch.values[row] = 0


@njit(cache=True, nogil=True)
def take(
    pivots: Pivots,
    scratch: Scratch,
    indptr: Array,
    indices: Array,
    values: Array,
    order: Array,
    first: int,
    cost: Array,
) -> int:
    """Takes the columns order[first:]; stops where the pool is full, and returns where. Rows of cost -1 never pivot."""
    for turn in range(first, len(order)):
        a, b = indptr[order[turn]], indptr[order[turn] + 1]
        left = reduce(pivots, scratch, indices[a:b], values[a:b])
        row = best_row(scratch, left, cost)
        full = row >= 0 and pivots.start[pivots.used[0]] + left > len(pivots.rows)
        if row >= 0 and not full:
            store(pivots, scratch, left, row)
        clear(scratch, left)
        if full:
            return turn
    return len(order)


@njit(cache=True, nogil=True)
def extend(pivots: Pivots, vectors: Array) -> None:
    """Fills in the pivot rows of m x k vectors, values modulo p on the other rows, so that no column notices them."""
    for k in range(pivots.used[0] - 1, -1, -1):
        own = at(pivots.row_of[k])
        for v in range(at(vectors.shape[1])):
            vectors[own, v] = 0
        for n in range(pivots.start[k], pivots.start[k + 1]):
            i = at(n)
            row = at(pivots.rows[i])
            if row != own:
                factor = PRIME - pivots.values[i]
                for v in range(at(vectors.shape[1])):
                    vectors[own, v] = add(vectors[own, v], multiply(factor, vectors[row, v]))


@njit(cache=True, nogil=True)
def basis_rows(pivots: Pivots, vector_of: Array, vectors: int) -> tuple[Array, Array, Array, Array]:
    """The null space by rows: (start, end, vector, value); free rows are unit rows, a pivot row follows from the rows
    that were left with it. ``vector_of``: the vector of each free row, -1 for pivot rows."""
    rows = len(vector_of)
    start, end = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    vector, value = np.empty(4 * rows + vectors, np.int32), np.empty(4 * rows + vectors, np.int64)
    used = 0
    for row in range(rows):
        start[row] = used
        if vector_of[row] >= 0:
            vector[used], value[used] = vector_of[row], 1
            used += 1
        end[row] = used
    total = np.zeros(vectors, np.int64)
    seen = np.zeros(vectors, np.bool_)
    touched = np.empty(vectors, np.int32)
    for k in range(pivots.used[0] - 1, -1, -1):
        own, n = pivots.row_of[k], 0
        for i in range(pivots.start[k], pivots.start[k + 1]):
            row = pivots.rows[i]
            if row != own:
                a, b = start[row], end[row]
                n = add_row(vector[a:b], value[a:b], PRIME - pivots.values[i], total, seen, touched, n)
        if used + n > len(vector):
            vector = np.concatenate((vector[:used], np.empty(used + n, np.int32)))
            value = np.concatenate((value[:used], np.empty(used + n, np.int64)))
        start[own] = used
        for v in touched[:n]:
            if total[v]:
                vector[used], value[used] = v, total[v]
                used += 1
            total[v] = 0
            seen[v] = False
        end[own] = used
    return start, end, vector, value


@njit(cache=True, nogil=True)
def add_row(vector: Array, value: Array, factor: int, total: Array, seen: Array, touched: Array, n: int) -> int:
    """Adds factor times a row of the basis to ``total``."""
    for i in range(at(len(vector))):
        v = at(vector[i])
        if not seen[v]:
            seen[v] = True
            touched[at(n)] = v
            n += 1
        total[v] = add(total[v], multiply(factor, value[i]))
    return n


@njit(cache=True, nogil=True)
def sums(indptr: Array, indices: Array, columns: Array, values: Array, result: Array) -> None:
    """result[i, v]: the sum modulo p of column columns[i] over values[:, v]."""
    for i in range(len(columns)):
        for n in range(indptr[columns[i]], indptr[columns[i] + 1]):
            e = at(n)
            row = at(indices[e])
            for v in range(at(values.shape[1])):
                result[i, v] = add(result[i, v], values[row, v])


@njit(cache=True, nogil=True)
def combine(indptr: Array, indices: Array, data: Array, draws: Array, result: Array) -> None:
    """Adds draws[k, v] times column v of a whole-number matrix to result[:, k], modulo p."""
    for k in range(len(draws)):
        for v in range(len(indptr) - 1):
            for i in range(indptr[v], indptr[v + 1]):
                row = indices[i]
                result[row, k] = add(result[row, k], multiply(data[i] % PRIME, draws[k, v]))


def random_values(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Uniform values modulo p."""
    return rng.integers(0, PRIME, shape, dtype=np.int64)


def echelon(
    indptr: Array,
    indices: Array,
    rows: int,
    order: Array,
    values: Array | None = None,
    check: Callable[[], object] = lambda: None,
) -> Pivots:
    """The echelon form of the columns ``order`` of a matrix: those of them that do not follow from earlier ones.

    values: of the entries, modulo p; all 1 if not given. A pivot is the row that fewest of the columns have. check:
    called now and then, and may raise.
    """
    if values is None:
        values = np.empty(0, np.int64)
    length = np.diff(indptr)
    used = np.isin(np.arange(len(length)), order)
    cost = np.bincount(indices[np.repeat(used, length)], minlength=rows).astype(np.int64)
    return echelon_by_cost(indptr, indices, order, values, cost, check)


def echelon_by_cost(
    indptr: Array,
    indices: Array,
    order: Array,
    values: Array,
    cost: Array,
    check: Callable[[], object] = lambda: None,
) -> Pivots:
    """`echelon` with a cost for each row as a pivot; -1: never."""
    rows = len(cost)
    pivots, scratch = new_pivots(rows, len(indices) + rows), new_scratch(rows)
    indptr, indices, order = indptr.astype(np.int64), indices.astype(np.int32), order.astype(np.int64)
    done = 0
    while done < len(order):
        until = min(done + SLICE, len(order))
        done = take(pivots, scratch, indptr, indices, values, order[:until], done, cost)
        if done < until:
            pivots = widened(pivots, rows)
        check()
    return pivots
