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
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression import echelon
from sdcduck.methods.suppression.batch import PUBLISHED, SECONDARY, Batch, keep
from sdcduck.methods.suppression.dense import BLOCK, ENTRY, OpenSpace
from sdcduck.methods.suppression.links import ROW, Links, link_all
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.publishing import FULL, SINGLETON, VECTORS, publish_column, publish_safe, undecided
from sdcduck.methods.suppression.reorder import small_first
from sdcduck.methods.suppression.three_primes import BadPrimes
from sdcduck.methods.suppression.watched import (
    FREE_ROWS,
    PIVOTS,
    UNDECIDED,
    WORK,
    Watched,
    pivots_column,
    refresh,
    rekey,
)

Array = NDArray[Any]
T = TypeVar("T")

# When blocks are cheaper than one column after the other, in entries of pivots read (12 ns each): what a column costs
# in blocks, for itself and for each free row, and what starting with them costs.
BLOCKS_PIVOT, BLOCKS_ROW, BLOCKS_START = 32_000, 45, 300_000_000
BATCH, MOST_BATCH = 128, 512  # candidates decided together
MOST_ENDANGERED = 20_000  # primary columns in so many coordinates would need too much memory
# When that is cheaper: entries of pivots and rows that are filled in, for each entry of pivots read that is spared.
BATCHES = 0.5
LOOK = 64  # pivots after which this is asked again
MOST_FREE, MOST_ROWS = 18_000, 200_000  # beyond that blocks would need more than 4 GiB
SLICE = 4096  # candidates between two questions whether there is time left
_PASSES = 10  # steps for each entry of the matrix that are no elimination
START = 80  # entries of pivots read, for each entry of the table, before they are first brought in another order


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
        self.elsewhere = 0  # steps that are not counted in `scratch` or `watched`
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
    def steps(self) -> int:
        """What was done up to now, in entries of pivots read, more or less: the same on every machine."""
        in_space = 0 if self.space is None else (self.space.built + self.space.work) // ENTRY
        return int(self.scratch.work[0] + self.watched.scalars[WORK]) + self.elsewhere + in_space

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
        self.elsewhere += price
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
        if self.space is not None:
            self.elsewhere += self.space.price(len(block) + len(watched)) // ENTRY
        new, done = block[decided.pivots], first + decided.done
        self.in_blocks.append(new)
        self.secondary[block[: decided.done][decided.fate[: decided.done] == SECONDARY]] = True
        if self.space is not None and self.space.work + self.space.price(len(new)) > self.space.built:
            self.elsewhere += (self.space.built + self.space.work) // ENTRY
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


def suppressed_in_order(
    x: DummyMatrix,
    turns: NDArray[np.int64],
    primary: NDArray[np.bool_],
    enough: Callable[[int], bool] = lambda steps: False,
) -> NDArray[np.bool_] | None:
    """Which columns are suppressed when those of ``turns`` are published in this order, each unless a primary column
    would follow; bool (N,).

    ``enough`` is told now and then how many steps were done since it was asked last; once it says so, there is no
    answer.
    """
    told = -_PASSES * len(x.indices)  # to set up, and to look at each candidate
    walk = Walk(x.sparse(np.int8), np.flatnonzero(primary), x.rows)
    walk.start()
    done = 0
    while True:
        new, told = walk.steps - told, walk.steps
        if enough(new):
            return None
        if done >= len(turns):
            secondary: NDArray[np.bool_] = walk.secondary
            return secondary
        done = walk.advance(turns, done, min(done + SLICE, len(turns)))
