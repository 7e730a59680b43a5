"""Children of synthetic parents, such as the persons of households.

Each column of a child may depend on the columns of the parent, on the place of the child among those of its parent, and
on the child before it: so children of one parent go together, however many they are. They are drawn place by place: all
that come first, then all that come second. Trees: Reiter (2005), *Using CART to generate partially synthetic public use
microdata*; that a child depends on the one before is this project's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.synthesis.copies import (
    MOST_COPIES,
    MOST_DRAWS,
    PILOT,
    Drawn,
    chained,
    codes_of_results,
    draw_again,
    found_in,
    lonely,
    once,
)
from sdcduck.methods.synthesis.records import Column, Model, Treatment, canonical_order, draw, fit
from sdcduck.methods.synthesis.trees import NULL

_BLOCK = 2**16  # children that are drawn at a time
_MOST_ALIKE = 0.5  # up to what share families are drawn again: more of them are possible than of single children
_NEXT_FAMILY = 2**53  # between the random streams of two draws of a family: more than all draws of all tables


def siblings(
    parents: NDArray[np.int64], codes: NDArray[np.int32], first: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The place of each child among those of its parent, and which child stands before it (-1: none).

    parents: by child; below 0: it has none, and stands alone. codes: [children, columns], by which they are put in
    order, from the first column to the last; `first` comes before all others.

    >>> siblings(np.array([7, 7, 5, -1]), np.array([[3], [1], [2], [1]], np.int32))
    (array([1, 0, 0, 0], dtype=int32), array([ 1, -1, -1, -1]))
    """
    columns = [*codes.T[::-1], *([] if first is None else [codes[:, first]]), parents]
    order = np.lexsort(columns)
    known = parents[order]
    begins = np.append(True, known[1:] != known[:-1])[: len(known)] | (known < 0)
    starts = np.flatnonzero(begins)
    place, before = np.empty(len(known), np.int32), np.empty(len(known), np.int64)
    place[order] = np.arange(len(known)) - np.repeat(starts, np.diff(np.append(starts, len(known))))
    before[order] = np.where(begins, -1, np.roll(order, 1))
    return place, before


@dataclass(frozen=True)
class Children:
    """How the children of one table are drawn.

    Attributes:
        model: of their columns, of those of the child before, of the parent, and of the place.
        width: number of their columns.
        values: by column of theirs, the distinct original numbers where noise may change them, else None.
        uniques: fingerprints of the originals that are unique in their columns and those of their parents.
        families: the same of whole families, of two children and more.
        with_parents: whether any original had a parent, so that the first stratum is theirs.
    """

    model: Model
    width: int
    values: Sequence[NDArray[np.float64] | None]
    uniques: NDArray[np.uint64]
    families: NDArray[np.uint64]
    with_parents: bool


def fit_children(
    columns: Sequence[Column], parents: Sequence[Column], parent: NDArray[np.int64], visit: Sequence[int],
    predictors: Mapping[int, Sequence[int]], treatments: Mapping[int, Treatment], *, compared: int, smallest_leaf: int,
    first: int | None = None, check: Callable[[int, int], None] = lambda done, total: None,
) -> Children:  # fmt: skip
    """Fit the model of the children.

    columns: theirs. parents: the columns of the parent of each, its codes NULL where it has none. parent: a number of
    it, below 0 where there is none. visit, predictors: among the columns. compared: on how many of the parent's
    columns, the first ones, children are unique. first: the column by which children of a parent are in order.
    """
    width = len(columns)
    own = np.column_stack([column.codes for column in columns])
    place, before = siblings(parent, own, first)
    previous = np.where((before >= 0)[:, None], own[before], NULL).astype(np.int32)
    places = int(place.max(initial=0)) + 1
    known = [
        *columns,
        *(Column(previous[:, at], column.size, column.values) for at, column in enumerate(columns)),
        *parents,
        Column(place, places, np.arange(places, dtype=np.float64)),
    ]
    order = canonical_order(known)
    strata = [order[chosen] for chosen in (parent[order] >= 0, parent[order] < 0) if chosen.any()]
    others = range(width, len(known))
    model = fit(
        known, visit, {at: (*predictors[at], *others) for at in visit}, strata, (), treatments, method="cart",
        smallest_leaf=smallest_leaf, check=check,
    )  # fmt: skip
    whole = np.column_stack([own, *(column.codes for column in parents[:compared])])
    return Children(
        model, width, [column.values if at in treatments else None for at, column in enumerate(columns)], lonely(whole),
        once(_marks(parent, place, whole, int(parent.max(initial=-1)) + 1)), bool((parent >= 0).any()),
    )  # fmt: skip


def _marks(
    parent: NDArray[np.int64], place: NDArray[np.int32], codes: NDArray[np.int32], parents: int
) -> NDArray[np.uint64]:
    """A fingerprint of all children of each parent that has two or more; 0 for the others."""
    marks, sizes = np.zeros(parents, np.uint64), np.bincount(parent[parent >= 0], minlength=parents)
    several = np.flatnonzero((parent >= 0) & (sizes[np.maximum(parent, 0)] > 1)) if parents else np.empty(0, np.int64)
    order = several[np.argsort(place[several], kind="stable")]
    for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        marks[parent[rows]] = chained(marks[parent[rows]], codes[rows])
    return marks


def draw_children(
    children: Children, sizes: NDArray[np.int64], parents: NDArray[np.int32], final: NDArray[np.int32], alone: int,
    seed: int, first_number: int, *, unique_copies: bool | None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], Drawn]:  # fmt: skip
    """Draw the children of parents.

    sizes: how many each parent has. parents: the codes of its columns as they were drawn. final: of the compared ones
    as they are in the end. alone: how many children have no parent. first_number: of the random streams. unique_copies:
    whether they may equal a unique original; None: as few as possible, unless more than a quarter do.

    Returns:
        The parent of each (-1: none), its place, and the children.
    """
    redrawn = not unique_copies
    everybody = np.arange(len(sizes))
    if unique_copies is None:
        # Of a seed of its own, and of some of them: too many to draw again?
        few = everybody[:PILOT]
        pilot = _draw_all(children, _Parents(sizes[few], parents[few], final[few], 0), 0, first_number, again=False)
        copies = pilot.drawn.copies
        redrawn = not len(copies) or bool(copies.mean() <= MOST_COPIES)
    made = _draw_all(children, _Parents(sizes, parents, final, alone), seed, first_number, again=redrawn)
    several = sizes > 1
    again = np.flatnonzero(made.alike(children) & several)
    if redrawn and (unique_copies is False or len(again) <= _MOST_ALIKE * several.sum()):
        for attempt in range(1, MOST_DRAWS):
            if not len(again):
                break
            made.draw(children, again, seed, first_number + attempt * _NEXT_FAMILY, again=True)
            again = again[made.alike(children)[again]]
    made.drawn.copies[np.isin(made.parent, again)] = True
    return made.parent, made.place, made.drawn


@dataclass(frozen=True)
class _Parents:
    """Parents: how many children each has, its codes as drawn, those compared as they are in the end, and how many
    children have none."""

    sizes: NDArray[np.int64]
    codes: NDArray[np.int32]
    final: NDArray[np.int32]
    alone: int


class _Made:
    """Children of parents, to be drawn."""

    def __init__(self, parents: _Parents, width: int) -> None:
        self._parents, sizes = parents, parents.sizes
        self.total = int(sizes.sum())
        self._starts = np.cumsum(sizes) - sizes
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        self.parent = np.append(numbers, np.full(parents.alone, NULL)).astype(np.int32)
        places = np.arange(self.total) - np.repeat(self._starts, sizes)
        self.place = np.append(places, np.zeros(parents.alone)).astype(np.int32)
        self.drawn = Drawn.empty(self.total + parents.alone, width)

    def draw(self, children: Children, who: NDArray[np.int64], seed: int, first_number: int, *, again: bool) -> None:
        """Those of some parents, place by place."""
        parents = self._parents
        before = np.full((len(parents.sizes), children.width), NULL, np.int32)
        for at in range(int(parents.sizes[who].max(initial=0))):
            having = who[parents.sizes[who] > at]
            for block in np.split(having, range(_BLOCK, len(having), _BLOCK)):
                given = np.column_stack([before[block], parents.codes[block], np.full(len(block), at)])
                rows = self._starts[block] + at
                final = parents.final[block]
                self.drawn.put(rows, _draw_some(children, given, final, rows + first_number, 0, seed, again=again))
                before[block] = self.drawn.codes[rows]

    def draw_alone(self, children: Children, seed: int, first_number: int, *, again: bool) -> None:
        """Those without a parent."""
        parents = self._parents
        for first in range(self.total, self.total + parents.alone, _BLOCK):
            rows = np.arange(first, min(first + _BLOCK, self.total + parents.alone))
            given = np.full((len(rows), children.width + parents.codes.shape[1] + 1), NULL)
            given[:, -1] = 0
            final = np.full((len(rows), parents.final.shape[1]), NULL, np.int32)
            stratum = int(children.with_parents)
            self.drawn.put(rows, _draw_some(children, given, final, rows + first_number, stratum, seed, again=again))

    def alike(self, children: Children) -> NDArray[np.bool_]:
        """Which parents have, with all their children, a unique original family that is the same."""
        drawn, of = self.drawn, slice(0, self.total)
        own = codes_of_results(drawn.codes[of], drawn.results[of], drawn.changed[of], children.values)
        codes = np.column_stack([own, self._parents.final[self.parent[of]]])
        marks = _marks(self.parent[of].astype(np.int64), self.place[of], codes, len(self._parents.sizes))
        return found_in(marks, children.families)


def _draw_all(children: Children, parents: _Parents, seed: int, first_number: int, *, again: bool) -> _Made:
    made = _Made(parents, children.width)
    made.draw(children, np.arange(len(parents.sizes)), seed, first_number, again=again)
    made.draw_alone(children, seed, first_number, again=again)
    return made


def _draw_some(
    children: Children, given: NDArray[np.int64], final: NDArray[np.int32], numbers: NDArray[np.int64], stratum: int,
    seed: int, *, again: bool,
) -> Drawn:  # fmt: skip
    """Children of the same place, whose predictors but their own columns are given."""
    width = children.width

    def some(rows: NDArray[np.int64], after: int) -> Drawn:
        codes = np.column_stack([np.full((len(rows), width), NULL), given[rows]]).astype(np.int32)
        strata, chosen = np.full(len(rows), stratum), np.ones(len(rows), bool)
        results = draw(children.model, numbers[rows] + after, strata, codes, chosen, seed, 0)
        return Drawn(codes, *results, np.zeros(len(rows), bool))

    def held(rows: NDArray[np.int64], drawn: Drawn) -> NDArray[np.int32]:
        own = drawn.codes[:, :width]
        mine = codes_of_results(own, drawn.results[:, :width], drawn.changed[:, :width], children.values)
        return np.column_stack([mine, final[rows]])

    drawn = draw_again(children.model, some, held, len(given), children.uniques, MOST_DRAWS if again else 1)
    return drawn.of_columns(slice(0, width))
