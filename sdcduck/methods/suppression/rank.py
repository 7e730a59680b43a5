"""Which cells follow from others: elimination of the columns of a dummy matrix modulo the prime 2^61 - 1.

The basis of the vectors that are orthogonal to all columns taken so far is kept, sparse: a cell follows from the
published ones iff its column is orthogonal to all of them. Three random vectors of that space, kept along, tell in
one pass whether publishing a cell would give a primary cell away (their products with the two columns would be
proportional). A wrong answer needs a random number or a minor of the matrix to be a multiple of the prime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from sdcduck.methods.suppression.echelon import PRIME, add, inverse, multiply
from sdcduck.methods.suppression.matrix import DummyMatrix


@dataclass(frozen=True)
class Elimination:
    """What came of taking columns one after the other.

    Attributes:
        taken: bool (N,), the columns taken: all plain ones, and the guarded ones that gave nothing away.
        independent: bool (N,), those of them that did not follow from earlier ones.
        revealed: bool (N,), protected columns that follow from the columns taken.
        basis: int64 (n, k), a basis of the vectors orthogonal to all columns taken, modulo `PRIME`; every vector has
            one row of its own, where it is 1.
        own_rows: int64 (k,), these rows.
    """

    taken: NDArray[np.bool_]
    independent: NDArray[np.bool_]
    revealed: NDArray[np.bool_]
    basis: scipy.sparse.csc_matrix
    own_rows: NDArray[np.int64]


def eliminate(
    x: DummyMatrix,
    plain: NDArray[np.int64],
    guarded: NDArray[np.int64] | None = None,
    protected: NDArray[np.bool_] | None = None,
    seed: int = 0,
) -> Elimination:
    """Take the plain columns, then every guarded column, in order, that gives no protected one away.

    Args:
        x: n inner cells x N cells.
        plain: int64, columns that are taken whatever they give away.
        guarded: int64, columns that are taken if safe, in this order.
        protected: bool (N,), columns that must not follow from the columns taken.
        seed: of the random vectors; the answer does not depend on it but for the chance in the module's notes.
    """
    guarded = np.zeros(0, dtype=np.int64) if guarded is None else guarded
    watched = np.zeros(0, dtype=np.int64) if protected is None else np.flatnonzero(protected)
    lengths = np.diff(x.indptr)
    # Short columns first: they leave the sparsest basis.
    plain = plain[np.argsort(lengths[plain], kind="stable")]
    rng = np.random.default_rng(seed)
    probes = rng.integers(1, PRIME, size=(3, x.rows), dtype=np.int64)
    of_row = x.sparse(np.int8)[:, watched].tocsr()
    taken, independent, revealed, start, rows, values, alive = _eliminate(
        x.indptr,
        x.indices,
        x.rows,
        np.concatenate([plain, guarded]).astype(np.int64),
        len(plain),
        watched,
        of_row.indptr.astype(np.int64),
        of_row.indices.astype(np.int64),
        probes,
    )
    basis = scipy.sparse.csc_matrix((values, rows, start), shape=(x.rows, len(start) - 1))
    return Elimination(taken, independent, revealed, basis, alive)


def fractions(basis: scipy.sparse.csc_matrix) -> scipy.sparse.csc_matrix:
    """The fractions a/b that a basis modulo `PRIME` stands for, as float64: those with a and b below 2^30."""
    return scipy.sparse.csc_matrix((_fractions(basis.data), basis.indices, basis.indptr), shape=basis.shape)


@numba.njit(cache=True)
def _fractions(values):  # type: ignore[no-untyped-def]
    """Rational reconstruction: the extended Euclidean algorithm, stopped half-way (Wang 1981)."""
    result = np.empty(len(values))
    for i in range(len(values)):
        r0, r1 = np.int64(PRIME), np.int64(values[i])
        if r1 > PRIME // 2:
            r1 -= PRIME
        s1 = np.int64(1)
        if abs(r1) >= 2**30:
            r1 = np.int64(values[i])
            s0 = np.int64(0)
            while r1 >= 2**30:
                q = r0 // r1
                r0, r1 = r1, r0 - q * r1
                s0, s1 = s1, s0 - q * s1
        result[i] = r1 / s1
    return result


@numba.njit(cache=True)
def _product(rows, probe):  # type: ignore[no-untyped-def]
    total = 0
    for r in rows:
        total = add(total, probe[r])
    return total


@numba.njit(cache=True)
def _set_key(p, shadow, key):  # type: ignore[no-untyped-def]
    """The ratios of the three products: equal for two columns iff they are proportional in the orthogonal space."""
    if shadow[0, p] == 0:
        key[0, p] = PRIME
        key[1, p] = PRIME
    else:
        back = inverse(shadow[0, p])
        key[0, p] = multiply(shadow[1, p], back)
        key[1, p] = multiply(shadow[2, p], back)


@numba.njit(cache=True)
def _combine(row_a, value_a, row_b, value_b, factor, out_row, out_value):  # type: ignore[no-untyped-def]
    """a + factor * b of two sparse vectors with ascending rows; returns the length of the result."""
    i, j, n = 0, 0, 0
    while i < len(row_a) or j < len(row_b):
        if j == len(row_b) or (i < len(row_a) and row_a[i] < row_b[j]):
            out_row[n], out_value[n] = row_a[i], value_a[i]
            i += 1
            n += 1
        elif i == len(row_a) or row_b[j] < row_a[i]:
            out_row[n], out_value[n] = row_b[j], multiply(factor, value_b[j])
            j += 1
            n += 1
        else:
            v = add(value_a[i], multiply(factor, value_b[j]))
            if v != 0:
                out_row[n], out_value[n] = row_a[i], v
                n += 1
            i += 1
            j += 1
    return n


@numba.njit(cache=True)
def _eliminate(cptr, cidx, n_rows, order, n_plain, watched, wptr, widx, probes):  # type: ignore[no-untyped-def]
    columns = len(cptr) - 1
    taken = np.zeros(columns, dtype=np.bool_)
    independent = np.zeros(columns, dtype=np.bool_)
    revealed = np.zeros(columns, dtype=np.bool_)

    # The vectors lie in a pool one behind the other; a changed vector moves to its end.
    start = np.arange(n_rows)
    length = np.ones(n_rows, dtype=np.int64)
    alive = np.ones(n_rows, dtype=np.bool_)
    pool_row = np.empty(max(4 * n_rows, 1024), dtype=np.int64)
    pool_value = np.empty(max(4 * n_rows, 1024), dtype=np.int64)
    pool_row[:n_rows] = np.arange(n_rows)
    pool_value[:n_rows] = 1
    used = n_rows
    # The vectors that meet a row, as linked lists; a vector may have left the row since.
    head = np.arange(n_rows)
    link_vector = np.empty(max(4 * n_rows, 1024), dtype=np.int64)
    link_next = np.empty(max(4 * n_rows, 1024), dtype=np.int64)
    link_vector[:n_rows] = np.arange(n_rows)
    link_next[:n_rows] = -1
    links = n_rows

    in_column = np.full(n_rows, -1)
    seen = np.full(n_rows, -1)
    met = np.empty(n_rows, dtype=np.int64)
    weight = np.empty(n_rows, dtype=np.int64)
    spare_row = np.empty(n_rows, dtype=np.int64)
    spare_value = np.empty(n_rows, dtype=np.int64)
    shadow = np.zeros((3, len(watched)), dtype=np.int64)
    key = np.zeros((2, len(watched)), dtype=np.int64)
    touched = np.full(len(watched), -1)
    touched_list = np.empty(len(watched), dtype=np.int64)

    for step in range(len(order) + 1):
        if step == n_plain:
            for p in range(len(watched)):
                rows = cidx[cptr[watched[p]] : cptr[watched[p] + 1]]
                for k in range(3):
                    shadow[k, p] = _product(rows, probes[k])
                _set_key(p, shadow, key)
        if step == len(order):
            break
        c = order[step]
        rows = cidx[cptr[c] : cptr[c + 1]]
        if step >= n_plain:
            h0, h1, h2 = _product(rows, probes[0]), _product(rows, probes[1]), _product(rows, probes[2])
            if h0 == 0 and h1 == 0 and h2 == 0:
                taken[c] = True
                continue
            refused = h0 == 0
            if not refused:
                back = inverse(h0)
                k1, k2 = multiply(h1, back), multiply(h2, back)
                for p in range(len(watched)):
                    if key[0, p] == k1 and key[1, p] == k2:
                        refused = True
                        break
            if refused:
                continue
        taken[c] = True

        for r in rows:
            in_column[r] = c
        count = 0
        pivot = -1
        for r in rows:
            node = head[r]
            while node >= 0:
                v = link_vector[node]
                node = link_next[node]
                if alive[v] and seen[v] != step:
                    seen[v] = step
                    total = 0
                    for k in range(start[v], start[v] + length[v]):
                        if in_column[pool_row[k]] == c:
                            total = add(total, pool_value[k])
                    if total != 0:
                        met[count] = v
                        weight[v] = total
                        count += 1
                        if pivot < 0 or length[v] < length[pivot] or (length[v] == length[pivot] and v < pivot):
                            pivot = v
        if pivot < 0:
            continue
        independent[c] = True
        alive[pivot] = False
        back = multiply(PRIME - 1, inverse(weight[pivot]))
        p_row = pool_row[start[pivot] : start[pivot] + length[pivot]].copy()
        p_value = pool_value[start[pivot] : start[pivot] + length[pivot]].copy()
        for m in range(count):
            v = met[m]
            if v == pivot:
                continue
            factor = multiply(weight[v], back)
            old = pool_row[start[v] : start[v] + length[v]]
            n = _combine(
                old, pool_value[start[v] : start[v] + length[v]], p_row, p_value, factor, spare_row, spare_value
            )
            i = 0
            for k in range(n):
                while i < len(old) and old[i] < spare_row[k]:
                    i += 1
                if i == len(old) or old[i] != spare_row[k]:
                    if links == len(link_next):
                        link_next = np.concatenate((link_next, np.empty_like(link_next)))
                        link_vector = np.concatenate((link_vector, np.empty_like(link_vector)))
                    link_vector[links] = v
                    link_next[links] = head[spare_row[k]]
                    head[spare_row[k]] = links
                    links += 1
            if n <= length[v]:
                at = start[v]
            else:
                if used + n > len(pool_row):
                    live = 0
                    for u in range(n_rows):
                        if alive[u]:
                            live += length[u]
                    size = max(len(pool_row), 2 * (live + n))
                    new_row, new_value = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                    used = 0
                    for u in range(n_rows):
                        if alive[u]:
                            new_row[used : used + length[u]] = pool_row[start[u] : start[u] + length[u]]
                            new_value[used : used + length[u]] = pool_value[start[u] : start[u] + length[u]]
                            start[u] = used
                            used += length[u]
                    pool_row, pool_value = new_row, new_value
                at = used
                used += n
            start[v], length[v] = at, n
            pool_row[at : at + n] = spare_row[:n]
            pool_value[at : at + n] = spare_value[:n]

        # The probes lose their part along the column; so do the products of the protected columns with them.
        factors = np.empty(3, dtype=np.int64)
        for k in range(3):
            factors[k] = multiply(_product(rows, probes[k]), back)
        changed = 0
        for i in range(len(p_row)):
            r = p_row[i]
            for k in range(3):
                difference = multiply(factors[k], p_value[i])
                probes[k, r] = add(probes[k, r], difference)
                if step >= n_plain:
                    for q in range(wptr[r], wptr[r + 1]):
                        shadow[k, widx[q]] = add(shadow[k, widx[q]], difference)
            if step >= n_plain:
                for q in range(wptr[r], wptr[r + 1]):
                    if touched[widx[q]] != step:
                        touched[widx[q]] = step
                        touched_list[changed] = widx[q]
                        changed += 1
        for i in range(changed):
            _set_key(touched_list[i], shadow, key)

    for p in range(len(watched)):
        if shadow[0, p] == 0 and shadow[1, p] == 0 and shadow[2, p] == 0:
            revealed[watched[p]] = True

    own = np.flatnonzero(alive)
    indptr = np.zeros(len(own) + 1, dtype=np.int64)
    for i in range(len(own)):
        indptr[i + 1] = indptr[i] + length[own[i]]
    out_row = np.empty(indptr[-1], dtype=np.int64)
    out_value = np.empty(indptr[-1], dtype=np.int64)
    for i in range(len(own)):
        v = own[i]
        out_row[indptr[i] : indptr[i + 1]] = pool_row[start[v] : start[v] + length[v]]
        out_value[indptr[i] : indptr[i + 1]] = pool_value[start[v] : start[v] + length[v]]
    return taken, independent, revealed, indptr, out_row, out_value, own
