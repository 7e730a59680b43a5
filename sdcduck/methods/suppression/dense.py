"""The late walk through the candidates: when everything hangs together, in dense blocks instead of one by one.

What no published cell notices is a space of vectors. Here a basis N of it is kept, dense, by the rows that are still
free (N is the identity there): `OpenSpace`. A block of candidates is decided on a sketch, the sums of its cells over
some hundred random vectors of the space; only there columns are eliminated one after the other (`decide`). Which
primary cells matter for the block is seen beforehand: those that would follow if all of its candidates were published.
What is published then leaves N as one product of matrices, which is where the time goes.

The arithmetic is modulo three primes of 23 bits, in floating point numbers that hold every sum of 512 products exactly:
so the products are ordinary ones, and the result is the same for any number of threads. A wrong answer needs a random
number or a minor of the matrix to be a multiple of all three primes; when one of them alone sees something else, the
space is built anew with others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.suppression.echelon import new_queue
from sdcduck.methods.suppression.light import Desk, Light, extend_light, reduced, take_light
from sdcduck.methods.suppression.sketch import PANEL, SPARE, SPREAD, Decided, decide, sketch_rows
from sdcduck.methods.suppression.three_primes import (
    DEPTH,
    BadPrimes,
    centre,
    centred,
    inverse,
    product,
    take_off,
    take_off_kept,
    three_primes,
    undo_unit_lower,
)

Array = NDArray[Any]

BLOCK = 512  # columns published at a time
LIGHT = (4, 8, 16, 32, 64, 128)  # entries left of a column that is kept sparse, one pass after the other
REACH = 2000  # rows that may be touched before a column is given up as a sparse one
ENTRY = 200  # what an entry of a sparse column costs, in products of a dense one


@njit(cache=True, nogil=True)
def add_rows(
    start: Array, rows: Array, values: Array, place: Array, first: int, part: Array, p: float, to: Array
) -> None:
    """Adds to each line of ``to`` the rows of ``part`` that its entries name; place[row] - first is the row's."""
    share = 1.0 / p
    for k in range(len(start) - 1):
        line = to[k]
        sums = 0
        for i in range(start[k], start[k + 1]):
            n = place[rows[i]] - first
            if 0 <= n < len(part) and values[i] != 0.0:
                factor = values[i]
                for j in range(len(line)):
                    line[j] += factor * np.float64(part[n, j])
                sums += 1
        if sums:
            for j in range(len(line)):
                line[j] = centred(line[j], p, share)


@njit(cache=True, nogil=True)
def spread(start: Array, rows: Array, values: Array, place: Array, first: int, to: Array) -> None:
    """Writes entries into ``to``, line by line at place[row] - first where that is inside."""
    for k in range(len(start) - 1):
        for i in range(start[k], start[k + 1]):
            n = place[rows[i]] - first
            if 0 <= n < to.shape[1]:
                to[k, n] = values[i]


@njit(cache=True, nogil=True)
def solve_panel(panel: Array, primes: Array, width: int, pivots: Array, lines: Array) -> int:
    """Gauss and Jordan on a few equations (one layer for each prime): one of the first ``width`` columns where a line
    is 1 and the others 0, for each line that has something there. Returns how many; -1 if the primes do not agree."""
    found = 0
    for i in range(panel.shape[1]):
        best = -1
        some = False
        for j in range(width):
            here = (panel[0, i, j] != 0.0) + (panel[1, i, j] != 0.0) + (panel[2, i, j] != 0.0)
            some = some or here > 0
            if here == 3:
                best = j
                break
        if best < 0:
            if some:
                return -1
            continue
        for q in range(3):
            p = primes[q]
            share = 1.0 / p
            layer = panel[q]
            scale = inverse(layer[i, best], p)
            for j in range(layer.shape[1]):
                layer[i, j] = centred(layer[i, j] * scale, p, share)
            for other in range(layer.shape[0]):
                factor = layer[other, best]
                if other != i and factor != 0.0:
                    for j in range(layer.shape[1]):
                        layer[other, j] = centred(layer[other, j] - factor * layer[i, j], p, share)
        pivots[found], lines[found] = best, i
        found += 1
    return found


@njit(cache=True, nogil=True)
def column_sums(indptr: Array, indices: Array, columns: Array, vectors: Array, p: float) -> Array:
    """The sums of the columns over vectors, modulo p; one line for each column."""
    share = 1.0 / p
    result = np.zeros((len(columns), vectors.shape[1]))
    for k in range(len(columns)):
        line = result[k]
        for i in range(indptr[columns[k]], indptr[columns[k] + 1]):
            other = vectors[indices[i]]
            for j in range(len(line)):
                line[j] += other[j]
        for j in range(len(line)):
            line[j] = centred(line[j], p, share)
    return result


class OpenSpace:
    """The vectors that no published column notices, modulo three primes.

    Rows are light pivots (`Light`), dense pivots, or free. free: the free rows. parts: for each prime the values of the
    basis vectors on the dense pivots, in parts of at most `DEPTH` lines; one column for each free row.
    """

    def __init__(
        self,
        indptr: Array,
        indices: Array,
        rows: int,
        published: Array,
        independent: Array,
        attempt: int,
        check: Callable[[], object],
    ) -> None:
        self.indptr, self.indices, self.check = indptr, indices, check
        self.primes = three_primes(attempt)
        self.rng = np.random.default_rng((20220921, attempt))
        self.light = Light(
            np.empty(rows, np.int32),
            np.full(rows, -1, np.int32),
            np.zeros(rows + 1, np.int64),
            np.empty(rows * LIGHT[-1], np.int32),
            np.empty((rows * LIGHT[-1], 3)),
            np.zeros(1, np.int64),
        )
        self.desk = Desk(np.zeros((rows, 3)), np.zeros(rows, np.bool_), np.empty(rows, np.int32), new_queue(rows))
        self.work = 0
        left = self._take_light(published)
        self.free = np.flatnonzero(self.light.number_of < 0)
        self.dense = np.empty(0, np.int64)
        self.parts: list[list[Array]] = [[], [], []]
        self._number_rows()
        left = left[np.isin(left, independent)]
        self.publish(left)
        self.built, self.work = self.work, 0

    def _take_light(self, columns: Array) -> Array:
        """Makes light pivots of the columns with few entries left, fewest first; returns the others.

        The pivot is the row that fewest of the columns still have. Both is seen anew in each pass.
        """
        others = []
        for limit in LIGHT:
            start, rows, _, far = reduced(self.light, self.desk, self.primes, self.indptr, self.indices, columns, REACH)
            self.check()
            length = np.diff(start)
            others.append(columns[far])
            columns, length = columns[length > 0], length[length > 0]
            columns = columns[np.argsort(length, kind="stable")]
            heavy = np.zeros(len(columns), np.bool_)
            cost = np.bincount(rows, minlength=len(self.desk.seen))
            take_light(self.light, self.desk, self.primes, self.indptr, self.indices, columns, cost, limit, heavy)
            columns = columns[heavy]
            self.work += ENTRY * len(rows)
            self.check()
        end = int(self.light.start[self.light.used[0]])
        self.light_values = np.ascontiguousarray(self.light.values[:end].T)
        return np.concatenate([columns, *others])

    def _number_rows(self) -> None:
        """Free rows are numbered from 0, dense pivots from the number of rows on."""
        rows = len(self.desk.seen)
        self.place = np.full(rows, -1, np.int64)
        self.place[self.free] = np.arange(len(self.free))
        self.place[self.dense] = rows + np.arange(len(self.dense))

    def on_free_rows(self, columns: Array) -> Array:
        """The columns as the basis vectors notice them: 3 x columns x free rows."""
        count = len(self.desk.seen)
        start, rows, values, _ = reduced(self.light, self.desk, self.primes, self.indptr, self.indices, columns, count)
        result = np.zeros((3, len(columns), len(self.free)))
        for q in range(3):
            p = self.primes[q]
            mine = np.ascontiguousarray(values[:, q])
            spread(start, rows, mine, self.place, 0, result[q])
            first = count
            for part in self.parts[q]:
                met = int(((self.place[rows] >= first) & (self.place[rows] < first + len(part))).sum())
                if 16 * met > len(columns) * len(part):
                    factors = np.zeros((len(columns), len(part)))
                    spread(start, rows, mine, self.place, first, factors)
                    take_off(result[q], -factors @ part.astype(np.float64), p)
                    self.work += factors.size * len(self.free) // 3
                elif met:
                    add_rows(start, rows, mine, self.place, first, part, p, result[q])
                first += len(part)
            self.check()
        return result

    def price(self, columns: int) -> int:
        """What it costs to publish so many columns, in products."""
        return (len(self.dense) + columns) * len(self.free) * columns

    def publish(self, columns: Array) -> None:
        """No basis vector is noticed by these columns from now on."""
        for first in range(0, len(columns), DEPTH):
            self.work += self.price(min(DEPTH, len(columns) - first))
            self._publish(columns[first : first + DEPTH])

    def _publish(self, columns: Array) -> None:
        equations = self.on_free_rows(columns)
        pivots, solved_all = self._solve(equations)
        kept = np.setdiff1d(np.arange(len(self.free)), pivots)
        for q in range(3):
            solved = solved_all[q].take(kept, axis=1)
            updated = []
            for part in self.parts[q]:
                product = part[:, pivots].astype(np.float64) @ solved
                updated.append(take_off_kept(part, kept, product, self.primes[q]))
                self.check()
            last = (-solved).astype(np.float32)
            if updated and len(updated[-1]) + len(last) <= DEPTH:
                last = np.concatenate([updated.pop(), last])
            self.parts[q] = [*updated, last]
        self.dense = np.append(self.dense, self.free[pivots])
        self.free = self.free[kept]
        self._number_rows()

    def _solve(self, equations: Array) -> tuple[Array, Array]:
        """Columns where one equation each is 1 and the others are 0, and the equations so solved; those that follow
        from others are left out. The columns are found among some that are chosen at random."""
        some = np.flatnonzero(equations.any(axis=(0, 1)))
        if not len(some):
            return np.empty(0, np.int64), equations[:, :0]
        size = equations.shape[1]
        window = np.sort(self.rng.permutation(some)[: size + 2 * PANEL])
        pivots, lines, change = self._solve_window(equations.take(window, axis=2))
        for q in range(3):
            equations[q] = product(change[q], equations[q], self.primes[q])
        self.check()
        pivots = window[pivots]
        rest = np.setdiff1d(np.arange(size), lines)
        solved = equations.take(lines, axis=1)
        if len(rest):
            more, others = self._solve(equations.take(rest, axis=1))
            for q in range(3):
                take_off(solved[q], product(solved[q][:, more], others[q], self.primes[q]), self.primes[q])
            pivots, solved = np.append(pivots, more), np.concatenate([solved, others], axis=1)
        return pivots, solved

    def _solve_window(self, equations: Array) -> tuple[Array, Array, Array]:
        """Pivots of some columns of equations, their lines, and the matrix that makes the pivot columns unit ones."""
        size, width = equations.shape[1:]
        unit = np.broadcast_to(np.eye(size), (3, size, size))
        work = np.concatenate([equations, unit], axis=2)
        pivots, lines = np.empty(0, np.int64), np.empty(0, np.int64)
        for first in range(0, size, PANEL):
            panel = np.ascontiguousarray(work[:, first : first + PANEL])
            for q in range(3):
                take_off(panel[q], panel[q][:, pivots] @ work[q][lines], self.primes[q])
            new, new_lines = np.empty(PANEL, np.int64), np.empty(PANEL, np.int64)
            found = solve_panel(panel, self.primes, width, new, new_lines)
            if found < 0:
                raise BadPrimes
            new, new_lines = new[:found], new_lines[:found]
            for q in range(3):
                before = work[q][lines]
                take_off(before, before[:, new] @ panel[q][new_lines], self.primes[q])
                work[q][lines] = before
            work[:, first : first + PANEL] = panel
            pivots, lines = np.append(pivots, new), np.append(lines, first + new_lines)
        return pivots, lines, work[:, :, width:]

    def sketches(self, count: int, groups: tuple[Array, ...]) -> tuple[list[Array], ...]:
        """The sums of groups of columns over ``count`` random vectors of the space; for each group one line for each
        column, for each prime. All basis vectors themselves if these are no more."""
        free = len(self.free)
        if free <= count:
            count, sketch = free, np.repeat(np.arange(free), SPREAD).reshape(free, SPREAD)
        else:
            sketch = self.rng.integers(0, count, (free, SPREAD))
        result: tuple[list[Array], ...] = tuple([] for _ in groups)
        vectors = np.empty((len(self.desk.seen), count))
        for q in range(3):
            p = self.primes[q]
            if free <= count:
                weight = np.zeros((free, SPREAD))
                weight[:, 0] = 1.0
            else:
                weight = self._random((free, SPREAD), p)
            own = np.zeros((free, count))
            np.add.at(own, (np.repeat(np.arange(free), SPREAD), sketch.ravel()), weight.ravel())
            centre(own, p)
            vectors[self.free] = own
            first = 0
            for part in self.parts[q]:
                to = np.empty((len(part), count))
                if free <= count:
                    to[:] = part
                else:
                    sketch_rows(part, sketch, weight, p, to)
                vectors[self.dense[first : first + len(part)]] = to
                first += len(part)
            extend_light(self.light, self.light_values[q], p, vectors)
            for k, columns in enumerate(groups):
                result[k].append(column_sums(self.indptr, self.indices, columns, vectors, p).astype(np.float32))
            self.check()
        return result

    def noticed(self, columns: Array) -> Array:
        """Which of the columns do not follow from the published ones."""
        result = np.zeros(len(columns), np.bool_)
        for sums in self.sketches(SPARE, (columns,))[0]:
            result |= sums.any(axis=1)
        return result

    def _random(self, shape: tuple[int, ...], p: float) -> Array:
        half = int(p) // 2
        return self.rng.integers(-half, half + 1, shape).astype(np.float64)

    def mixed(self, sketch: list[Array], by: list[Array]) -> Array:
        """Random combinations of sketches: 3 x combinations x columns."""
        result = np.empty((3, len(by[0]), len(sketch[0])))
        for q in range(3):
            result[q] = 0.0
            for first in range(0, by[q].shape[1], DEPTH):
                part = slice(first, first + DEPTH)
                take_off(result[q], -by[q][:, part] @ sketch[q][:, part].T.astype(np.float64), self.primes[q])
        return result

    def decide(self, candidates: Array, primary: Array) -> Decided:
        """Which of the candidates are published, in order, so that no primary column follows."""
        while True:
            count = min(len(candidates), BLOCK)
            block, others = self.sketches(count + count // 12 + 2 * SPARE, (candidates, primary))
            by = [self._random((count + SPARE, block[0].shape[1]), p) for p in self.primes]
            own = self.mixed(block, by)
            tried = decide(own.copy(), self.primes, len(candidates))
            if tried is None:
                continue
            endangered = self._endangered(tried, by, others)
            if not len(endangered):
                return tried
            own = own[:, :, : tried.done]
            both = np.concatenate([own, self.mixed([other[endangered] for other in others], by)], axis=2)
            tried = decide(both, self.primes, tried.done)
            if tried is not None:
                return tried

    def _endangered(self, tried: Decided, by: list[Array], others: list[Array]) -> Array:
        """The primary columns that follow if all candidates are published."""
        k = len(tried.pivots)
        follows = np.ones(len(others[0]), np.bool_)
        for q in range(3):
            p = self.primes[q]
            lower = tried.sketch[q][:k].take(tried.pivots, axis=1)
            lines = tried.sketch[q][k : k + SPARE - 1, tried.pivots].copy()
            undo_unit_lower(lower, lines, p)
            vectors = by[q][k : k + SPARE - 1] - product(lines, by[q][:k], p)
            centre(vectors, p)
            follows &= ~product(vectors, others[q].T, p).any(axis=0)
        return np.flatnonzero(follows)
