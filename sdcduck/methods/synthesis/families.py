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
    codes_of_results,
    draw_again,
    lonely,
)
from sdcduck.methods.synthesis.records import Column, Model, Treatment, canonical_order, draw, fit
from sdcduck.methods.synthesis.trees import NULL

_BLOCK = 2**16  # children that are drawn at a time


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
        compared: how many of the parent's columns these are, the first ones.
        with_parents: whether any original had a parent, so that the first stratum is theirs.
    """

    model: Model
    width: int
    values: Sequence[NDArray[np.float64] | None]
    uniques: NDArray[np.uint64]
    compared: int
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
    of_parents = [column.codes for column in parents[:compared]]
    return Children(
        model, width, [column.values if at in treatments else None for at, column in enumerate(columns)],
        lonely(np.column_stack([own, *of_parents])), compared, bool((parent >= 0).any()),
    )  # fmt: skip


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
    if unique_copies is None:
        # Of a seed of its own, and of some of them: too many to draw again?
        few = min(len(sizes), PILOT)
        pilot = _draw_all(children, sizes[:few], parents[:few], final[:few], 0, 0, first_number, again=False)[2]
        redrawn = not len(pilot.copies) or bool(pilot.copies.mean() <= MOST_COPIES)
    return _draw_all(children, sizes, parents, final, alone, seed, first_number, again=redrawn)


def _draw_all(
    children: Children, sizes: NDArray[np.int64], parents: NDArray[np.int32], final: NDArray[np.int32], alone: int,
    seed: int, first_number: int, *, again: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int32], Drawn]:  # fmt: skip
    width, total = children.width, int(sizes.sum())
    starts = np.cumsum(sizes) - sizes
    parent = np.append(np.repeat(np.arange(len(sizes)), sizes), np.full(alone, NULL)).astype(np.int32)
    place = np.append(np.arange(total) - np.repeat(starts, sizes), np.zeros(alone)).astype(np.int32)
    drawn = Drawn.empty(total + alone, width)
    before = np.full((len(sizes), width), NULL, np.int32)
    for at in range(int(sizes.max(initial=0))):
        having = np.flatnonzero(sizes > at)
        for block in np.split(having, range(_BLOCK, len(having), _BLOCK)):
            given = np.column_stack([before[block], parents[block], np.full(len(block), at)])
            rows = starts[block] + at
            drawn.put(rows, _draw_some(children, given, final[block], rows + first_number, 0, seed, again=again))
            before[block] = drawn.codes[rows]
    for rows in np.split(np.arange(total, total + alone), range(_BLOCK, alone, _BLOCK)) if alone else ():
        lonesome = np.full((len(rows), width + parents.shape[1] + 1), NULL)
        lonesome[:, -1] = 0
        none = np.full((len(rows), final.shape[1]), NULL, np.int32)
        stratum = int(children.with_parents)
        drawn.put(rows, _draw_some(children, lonesome, none, rows + first_number, stratum, seed, again=again))
    return parent, place, drawn


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
