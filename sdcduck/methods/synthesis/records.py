"""Synthetic records: column after column drawn from the donors of a leaf, given the columns drawn before.

A model is a set of flat arrays. Everything is a code: the place of a value among the distinct ones of its column. A
draw depends on the seed, the number of the record and the column, and on nothing else, so that any record can be made
at any time, in any order, by any thread. Fitting is canonical too: the order of the records is nothing to it.

Sources: Reiter (2005); R package synthpop for the defaults; Bowen et al. (2022), PSD, for noise, bounds and leaf
diversity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.synthesis.draws import _GAMMA, _normal, _start, _uniform, random_bits
from sdcduck.methods.synthesis.regressions import (
    CATEGORIES,
    Fitted,
    Predictor,
    draw_regressions,
    sound,
)
from sdcduck.methods.synthesis.regressions import METHODS as REGRESSIONS
from sdcduck.methods.synthesis.trees import (
    INFINITY,
    MINUS_INFINITY,
    NULL,
    Tree,
    diversity,
    fit_tree,
    single_leaf,
)

METHODS = ("cart", "independent", "bootstrap-noise")
COLUMN_METHODS = ("cart", "sample", *REGRESSIONS)
"""Of single columns, beside those of all."""
_SPECIAL = 4  # codes of values that are no finite number: -1 to -4


@dataclass(frozen=True)
class Column:
    """One column of the original records.

    Attributes:
        codes: of the records: places among the distinct values, or one of the negative codes of `trees`.
        size: number of distinct values.
        values: the distinct values as numbers, increasing; None for categories.
        zero: the code of the number 0, or one that no record has.
    """

    codes: NDArray[np.int32]
    size: int
    values: NDArray[np.float64] | None = None

    @property
    def zero(self) -> int:
        if self.values is None:
            return -(_SPECIAL + 1)
        place = int(np.searchsorted(self.values, 0.0))
        return place if place < len(self.values) and self.values[place] == 0 else -(_SPECIAL + 1)


@dataclass(frozen=True)
class Treatment:
    """What is done to a number after its draw.

    Attributes:
        bandwidths: of each distinct value, standard deviation of its noise; None: no noise.
        low, high: bounds; infinite where there are none.
        base: results are multiples of it; 0: as they come.
        whole: whether results are whole numbers.
    """

    bandwidths: NDArray[np.float64] | None = None
    low: float = -np.inf
    high: float = np.inf
    base: float = 0.0
    whole: bool = False


def _nothing() -> NDArray[Any]:
    return np.empty(0)


@dataclass(frozen=True)
class Model:
    """A fitted model as arrays, which can be stored.

    With s strata, v columns in the order of their draw, k nodes and c columns in all:

    Attributes:
        visit: [v] place of the column.
        state_roots: [s * v] node of the tree for what kind of value there is, -1: all are finite.
        value_roots: [s * v] node of the tree for finite values, -1: there are none.
        nodes: [k * 6] of a node, side by side because they are read together: its predictor (-1: a leaf), where in
            ``orders`` the order of the categories of the predictor begins (-1: a number), the cut, the left child, the
            right one, and whether what is missing goes to the left.
        donors_at, donors_size, diversity: [k] of leaves: their donors, and how many different values these have.
        donors, orders: codes, and places in the order of the target.
        shared: [v] whether the column comes from the donor that all such columns of a record share.
        treated: [c] whether something is done to the column after its draw.
        values_at: [c] where in ``values`` and ``bandwidths`` a treated column begins.
        values, bandwidths: of the distinct values of treated columns.
        low, high, base, whole: [c] as in `Treatment`.
        strata_sizes: [s] original records.
        strata_codes: [s * c] codes of the columns that are the same in all records of a stratum.
        regression: [s * v] the regression that the column is drawn from, -1: a tree; none at all: all are trees.
        regressions, terms, effects, fits, classes: of all regressions, as in `Fitted`.
        known_at: [c] where in ``known`` the values of a predictor of regressions begin, -1: it is none.
        known: the distinct values of these.
    """

    visit: NDArray[np.int64]
    state_roots: NDArray[np.int64]
    value_roots: NDArray[np.int64]
    nodes: NDArray[np.int32]
    donors_at: NDArray[np.int64]
    donors_size: NDArray[np.int64]
    diversity: NDArray[np.int32]
    donors: NDArray[np.int32]
    orders: NDArray[np.int32]
    shared: NDArray[np.uint8]
    treated: NDArray[np.uint8]
    values_at: NDArray[np.int64]
    values: NDArray[np.float64]
    bandwidths: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    base: NDArray[np.float64]
    whole: NDArray[np.uint8]
    strata_sizes: NDArray[np.int64]
    strata_codes: NDArray[np.int32]
    regression: NDArray[np.int64] = field(default_factory=_nothing)
    regressions: NDArray[np.int64] = field(default_factory=_nothing)
    terms: NDArray[np.int64] = field(default_factory=_nothing)
    effects: NDArray[np.float64] = field(default_factory=_nothing)
    fits: NDArray[np.float64] = field(default_factory=_nothing)
    classes: NDArray[np.int32] = field(default_factory=_nothing)
    known_at: NDArray[np.int64] = field(default_factory=_nothing)
    known: NDArray[np.float64] = field(default_factory=_nothing)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """That the arrays fit together and every walk down a tree ends: for models that were stored.

        Raises:
            ValueError: something is wrong.
        """
        columns, strata = len(self.treated), len(self.strata_sizes)
        nodes = self.nodes.reshape(-1, _FIELDS)
        count, inner = len(nodes), nodes[:, 0] >= 0
        children, at, sizes = nodes[inner, 3:5], self.donors_at[~inner], self.donors_size[~inner]
        fits_together = (
            len(self.state_roots) == len(self.value_roots) == strata * len(self.visit)
            and len(self.strata_codes) == strata * columns
            and all(len(array) == count for array in (self.donors_at, self.donors_size, self.diversity))
            and all(len(array) == columns for array in (self.values_at, self.low, self.high, self.base, self.whole))
            and len(self.values) == len(self.bandwidths)
            and len(self.shared) == len(self.visit)
            and _within(self.visit, 0, columns)
            and _within(self.state_roots, -1, count)
            and _within(self.value_roots, -1, count)
            and _within(nodes[:, 0], -1, columns)
            and _within(children.ravel(), 0, count)
            and bool((children > np.flatnonzero(inner)[:, None]).all())
            and _within(nodes[:, 1], -1, max(1, len(self.orders)))
            and _within(at, 0, len(self.donors) + 1)
            and bool((sizes > 0).all() and (at + sizes <= len(self.donors)).all())
            and _within(self.donors, -_SPECIAL, 2**31)
            and bool((self.strata_sizes > 0).all())
            and sound(self)
        )
        if not fits_together:
            raise ValueError("the stored model is damaged")


def _within(array: NDArray[np.generic], low: int, end: int) -> bool:
    return len(array) == 0 or bool(array.min() >= low and array.max() < end)


class _Growing:
    """The nodes of all trees, one after the other."""

    def __init__(self, *, count_zero: bool) -> None:
        self._count_zero = count_zero
        self._nodes: list[NDArray[np.int32]] = []
        self._leaves: dict[str, list[NDArray[np.generic]]] = {name: [] for name in _LEAVES}
        self._donors: list[NDArray[np.int32]] = []
        self._orders: list[NDArray[np.int32]] = []
        self._grown = self._donated = self._ordered = 0

    def add(self, tree: Tree, codes: NDArray[np.int32], predictors: Sequence[int], zero: int, *, sort: bool) -> int:
        """Add a tree whose training records had these codes; returns its root."""
        starts = np.full(len(predictors) + 1, -1, np.int64)
        for place, order in enumerate(tree.orders):
            if order is not None:
                starts[place] = self._ordered
                self._orders.append(order)
                self._ordered += len(order)
        # Donors in the order of their codes: which records had them first is nothing to a draw.
        donors = codes[np.lexsort((codes, tree.leaf))] if sort else codes
        sizes = np.bincount(tree.leaf, minlength=len(tree.predictor)).astype(np.int64)
        at = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)[:-1]])
        inner = tree.predictor >= 0
        columns = np.array([*predictors, -1], np.int32)
        counted = donors if sort else np.sort(donors)
        order_at = np.where(inner, starts[tree.predictor], -1)
        # Places are whole numbers, so that a cut may be one too.
        cut = np.clip(np.floor(tree.cut), -1, _LARGEST_PLACE)
        self._nodes.append(
            np.column_stack(
                [columns[tree.predictor], order_at, cut, tree.left + self._grown, tree.right + self._grown,
                 tree.missing_left]
            ).astype(np.int32).ravel()
        )  # fmt: skip
        diverse = diversity(counted, at, sizes, zero, self._count_zero)
        for name, array in zip(_LEAVES, (at + self._donated, sizes, diverse), strict=True):
            self._leaves[name].append(array)
        self._donors.append(donors.astype(np.int32))
        root = self._grown
        self._grown += len(tree.predictor)
        self._donated += len(donors)
        return root

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the model."""
        nothing = np.empty(0, np.int32)
        leaves = {
            name: np.concatenate([np.empty(0, kind), *self._leaves[name]]).astype(kind)
            for name, kind in _LEAVES.items()
        }
        return {
            **leaves,
            "nodes": np.concatenate([nothing, *self._nodes]),
            "donors": np.concatenate([nothing, *self._donors]),
            "orders": np.concatenate([nothing, *self._orders]),
        }


_FIELDS = 6
_LARGEST_PLACE = 2**31 - 1  # of infinity among the predictors; a tree may cut there, to set apart what is missing
_LEAVES: Mapping[str, type[np.generic]] = {"donors_at": np.int64, "donors_size": np.int64, "diversity": np.int32}


def canonical_order(columns: Sequence[Column]) -> NDArray[np.int64]:
    """The records in an order that depends on what they hold and not on where they stood."""
    return np.lexsort([column.codes for column in columns])


def random_subset(seed: int, records: int, size: int, purpose: int) -> NDArray[np.int64]:
    """So many of the records 0, 1, .., chosen by chance; increasing. Each purpose has a choice of its own."""
    bits = random_bits(
        np.full(records, _SUBSET + purpose, np.uint64), np.arange(records), np.zeros(records, np.int64),
        np.full(records, seed, np.int64),
    )  # fmt: skip
    chosen: NDArray[np.int64] = np.sort(np.argsort(bits, kind="stable")[:size])
    return chosen


def with_replacement(seed: int, records: int, purpose: int) -> NDArray[np.int64]:
    """So many of the records 0, 1, .., drawn by chance, some of them several times; in order."""
    bits = random_bits(
        np.full(records, _SUBSET + purpose, np.uint64), np.arange(records), np.zeros(records, np.int64),
        np.full(records, seed, np.int64),
    )  # fmt: skip
    drawn: NDArray[np.int64] = np.sort((bits % np.uint64(max(records, 1))).astype(np.int64))
    return drawn


_SUBSET = 2**63  # key of the stream that chooses records; those of columns are small


def fit(
    columns: Sequence[Column], visit: Sequence[int], predictors: Mapping[int, Sequence[int]],
    strata: Sequence[NDArray[np.int64]], by: Sequence[int], treatments: Mapping[int, Treatment], *, method: str,
    smallest_leaf: int, count_zero: bool = True, joint: Sequence[int] = (), near_constant: bool = True,
    methods: Mapping[int, str] | None = None, check: Callable[[int, int], None] = lambda done, total: None,
) -> Model:  # fmt: skip
    """Fit one model a stratum.

    columns: of the original records. visit: places of the columns to be drawn, in this order. predictors: by column,
    the columns that it may depend on: kept ones, or drawn before it. strata: places of the training records, in
    canonical order. by: the columns that are the same within a stratum. joint: columns whose combinations come whole.
    near_constant: whether predictors that hardly vary in a stratum are used there. methods: of columns that are not
    drawn from trees: one of `COLUMN_METHODS`.
    """
    growing, regressions = _Growing(count_zero=count_zero), Fitted()
    states, values, of_step = [], [], []
    total = len(strata) * len(visit)
    for records in strata:
        known = set() if near_constant else {other for place in visit for other in predictors[place]}
        unused = {other for other in known if hardly_varies(columns[other].codes[records])}
        for place in visit:
            column = columns[place]
            codes = column.codes[records]
            together = method == "bootstrap-noise" or place in joint
            how = "sample" if together or method != "cart" else (methods or {}).get(place, "cart")
            used = [other for other in predictors[place] if other not in unused]
            depends = [(columns[other].codes[records], columns[other]) for other in used]
            regression = state = -1
            if how == "sample":
                value = growing.add(single_leaf(len(codes)), codes, (), column.zero, sort=not together)
            else:
                state, value, regression = _grow(growing, regressions, column, codes, depends, used, smallest_leaf, how)
            of_step.append(regression)
            states.append(state)
            values.append(value)
            check(len(states), total)
    treated = [treatments.get(place) for place in range(len(columns))]
    sizes = [0 if treatment is None else columns[place].size for place, treatment in enumerate(treated)]
    nothing = np.empty(0, np.float64)
    arrays = growing.arrays()
    if regressions.fields:
        arrays |= {"regression": np.array(of_step, np.int64), **regressions.arrays()}
        arrays["known_at"], arrays["known"] = _known(columns, arrays["terms"])
    return Model(
        **arrays,
        visit=np.array(visit, np.int64),
        state_roots=np.array(states, np.int64),
        value_roots=np.array(values, np.int64),
        shared=np.array([method == "bootstrap-noise" or place in joint for place in visit], np.uint8),
        treated=np.array([treatment is not None for treatment in treated], np.uint8),
        values_at=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes else np.empty(0, np.int64),
        values=np.concatenate(
            [nothing, *(columns[p].values for p, treatment in enumerate(treated) if treatment is not None)]
        ),
        bandwidths=np.concatenate(
            [
                nothing,
                *(
                    np.zeros(columns[p].size) if treatment.bandwidths is None else treatment.bandwidths
                    for p, treatment in enumerate(treated)
                    if treatment is not None
                ),
            ]
        ),
        low=np.array([-np.inf if treatment is None else treatment.low for treatment in treated], np.float64),
        high=np.array([np.inf if treatment is None else treatment.high for treatment in treated], np.float64),
        base=np.array([0.0 if treatment is None else treatment.base for treatment in treated], np.float64),
        whole=np.array([treatment is not None and treatment.whole for treatment in treated], np.uint8),
        strata_sizes=np.array([len(records) for records in strata], np.int64),
        strata_codes=np.array(
            [
                columns[place].codes[records[0]] if place in by else NULL
                for records in strata
                for place in range(len(columns))
            ],
            np.int32,
        ),
    )


def hardly_varies(codes: NDArray[np.int32]) -> bool:
    """Whether a column tells little: one value, or few different ones of which one is more than 95/5 times as frequent
    as the second (the rule that Bowen et al., 2022, cite). NULL is a value.

    >>> hardly_varies(np.array([0] * 1950 + [1] * 50, np.int32)), hardly_varies(np.array([0, 0, 1], np.int32))
    (True, False)
    """
    counts = np.sort(np.unique(codes, return_counts=True)[1])
    if len(counts) < 2:
        return True
    return bool(counts[-1] * _MOST_RATIO[1] > counts[-2] * _MOST_RATIO[0] and len(counts) * 100 <= len(codes))


_MOST_RATIO = 95, 5


def _grow(
    growing: _Growing, regressions: Fitted, column: Column, codes: NDArray[np.int32],
    depends: list[tuple[NDArray[np.int32], Column]], predictors: Sequence[int], smallest_leaf: int, how: str,
) -> tuple[int, int, int]:  # fmt: skip
    """The trees of one column of one stratum: what kind of value there is, then the value; or its regression."""
    given = [(other, known.size, known.values is None) for other, known in depends]

    def regressed(chosen: NDArray[np.bool_]) -> tuple[int, int]:
        used = [
            Predictor(place, other[chosen], known.size, known.values)
            for place, (other, known) in zip(predictors, depends, strict=True)
        ]
        regression, donors = regressions.add(how, codes[chosen], column.values, used, smallest_leaf)
        return growing.add(single_leaf(len(donors)), donors, (), column.zero, sort=False), regression

    if how in CATEGORIES:
        return -1, *regressed(np.ones(len(codes), bool))
    if column.values is None:
        # NULL is one more category.
        classes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        return -1, growing.add(fit_tree(classes, given, smallest_leaf), codes, predictors, column.zero, sort=True), -1
    finite = codes >= 0
    state = value = regression = -1
    if not finite.all():
        kinds = np.where(finite, 0, codes).astype(np.int32)
        classes = np.unique(kinds, return_inverse=True)[1].astype(np.int64)
        state = growing.add(fit_tree(classes, given, smallest_leaf), kinds, predictors, 0, sort=True)
    if finite.any():
        if how in REGRESSIONS:
            return state, *regressed(finite)
        some = [(other[finite], size, category) for other, size, category in given]
        tree = fit_tree(column.values[codes[finite]], some, smallest_leaf)
        value = growing.add(tree, codes[finite], predictors, column.zero, sort=True)
    return state, value, regression


def _known(columns: Sequence[Column], terms: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values of the numbers that regressions depend on, and where those of each column begin."""
    at, known = np.full(len(columns), -1, np.int64), [np.empty(0)]
    for place in np.unique(terms.reshape(-1, 3)[:, 0]).tolist():
        values = columns[place].values
        if values is not None:
            at[place] = sum(map(len, known))
            known.append(values)
    return at, np.concatenate(known)


def stratum_of(model: Model, numbers: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The strata of the records with these numbers, of 0 to rows - 1: in proportion to the original ones."""
    ends = np.cumsum(model.strata_sizes)
    # Of whole numbers, so that as many records as there were give every stratum its own.
    at = (numbers.astype(np.float64) + 0.5) * (float(ends[-1]) / rows)
    return np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)


DONATED, CHANGED, CLIPPED = 0, 1, 2


def draw(
    model: Model, numbers: NDArray[np.int64], strata: NDArray[np.int64], codes: NDArray[np.int32],
    chosen: NDArray[np.bool_], seed: int, redraws: int,
) -> tuple[NDArray[np.float64], NDArray[np.uint8], NDArray[np.int32]]:  # fmt: skip
    """Fill in the columns that are drawn, of the records chosen.

    numbers: of the records, which the random streams depend on. codes: [records, columns], written to.

    Returns:
        [records, columns] each: the number, where something was done to it; whether (`DONATED`, `CHANGED` or
        `CLIPPED`); how many different values the leaf has (-1: zeros only, or nothing was drawn).
    """
    shape = codes.shape
    results = np.zeros(shape), np.zeros(shape, np.uint8), np.full(shape, -1, np.int32)
    orders, steps = np.append(model.orders, np.int32(-1)), len(model.visit)
    of_step = model.regression.reshape(-1, max(steps, 1)) if len(model.regression) else np.full((1, steps), -1)
    begin = 0
    # Trees are walked as far as there are only these. A regression comes after its column was drawn from all donors,
    # which settles what is missing, and replaces the values of this draw.
    for position in [*np.flatnonzero((of_step >= 0).any(axis=0)).tolist(), steps]:
        end = min(position + 1, steps)
        _draw(
            begin, end, numbers, strata, codes, chosen, seed, redraws, model.visit, model.state_roots,
            model.value_roots, model.nodes, model.donors_at, model.donors_size, model.diversity, model.donors, orders,
            model.shared, model.treated, model.values_at, model.values, model.bandwidths, model.low, model.high,
            model.base, model.whole, *results,
        )  # fmt: skip
        begin = end
        if position < steps:
            draw_regressions(model, position, numbers, strata, codes, chosen, seed, redraws, results[0], results[1])
    return results


# Indices without a sign spare numba the question whether they count from the end.
_ABREAST = 8
_U = np.uint64
_ONE, _CUT, _RIGHT, _MISSING_LEFT, _WIDTH = _U(1), _U(2), _U(4), _U(5), _U(_FIELDS)


@njit(cache=True, nogil=True)
def _walk(records, roots, codes, nodes, orders, leaves):  # type: ignore[no-untyped-def]
    """The leaf of each of these records, from its root.

    Eight of them walk side by side, and a usual step has no branch that depends on their values: else the processor
    would wait for memory at every node, and guess wrong at every other one.
    """
    if not len(records):
        return
    last = len(orders) - 1
    at, begins = np.empty(_ABREAST, np.uint64), np.empty(_ABREAST, np.uint64)
    all_codes, columns = codes.reshape(-1), _U(codes.shape[1])
    for first in range(0, len(records), _ABREAST):
        for lane in range(_ABREAST):
            walker = _U(min(first + lane, len(records) - 1))
            at[_U(lane)] = _U(roots[walker]) * _WIDTH
            begins[_U(lane)] = _U(records[walker]) * columns
        walking = True
        while walking:
            walking = False
            for lane in range(_ABREAST):
                node = at[_U(lane)]
                column = nodes[node]
                if column >= 0:
                    walking = True
                    code = all_codes[begins[_U(lane)] + _U(column)]
                    order_at = nodes[node + _ONE]
                    category = np.int64(order_at >= 0)
                    place = np.int64(code) + 1
                    rank = orders[_U(min((order_at + place) * category, last))]
                    place += category * (rank - place)
                    goes_left = np.int64(place <= nodes[node + _CUT])
                    if place + category <= 0:
                        goes_left = _unusual(nodes, node, code, category)
                    at[_U(lane)] = _U(nodes[node + _RIGHT - _U(goes_left)]) * _WIDTH
        for lane in range(min(_ABREAST, len(records) - first)):
            leaves[first + lane] = at[lane] // _WIDTH


@njit(cache=True, nogil=True)
def _unusual(nodes, node, code, category):  # type: ignore[no-untyped-def]
    """Whether a value that is missing, or infinite, or a category that came after the training, goes to the left."""
    if not category and code == MINUS_INFINITY:
        return np.int64(nodes[node + _CUT] >= 0)
    if not category and code == INFINITY:
        return np.int64(nodes[node + _CUT] >= _LARGEST_PLACE)
    return np.int64(nodes[node + _MISSING_LEFT] != 0)


@njit(cache=True, nogil=True)
def _draw(  # type: ignore[no-untyped-def]
    begin, end, numbers, strata, codes, chosen, seed, redraws, visit, state_roots, value_roots, nodes, donors_at,
    donors_size, diverse, donors, orders, shared, treated, values_at, values, bandwidths, low, high, base, whole,
    results, changed, diversity_of,
):  # fmt: skip
    count = 0
    drawn = np.empty(len(numbers), np.int64)
    for index in range(len(numbers)):
        if chosen[index]:
            drawn[count] = index
            count += 1
    drawn = drawn[:count]
    left, roots, leaves = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    # Column by column, so that a tree stays near while all records walk down it.
    for position in range(begin, end):
        column, together = visit[position], shared[position] != 0
        # What kind of value there is: for some records that is all.
        asked = 0
        for record in drawn:
            root = state_roots[strata[record] * len(visit) + position]
            if root >= 0:
                left[asked], roots[asked] = record, root
                asked += 1
        _walk(left[:asked], roots[:asked], codes, nodes, orders, leaves)
        for place in range(asked):
            record, leaf = left[place], leaves[place]
            state = _start(seed, column + 1, numbers[record]) + _GAMMA
            codes[record, column] = donors[donors_at[leaf] + int(_uniform(state) * donors_size[leaf])]
        asked = 0
        for record in drawn:
            step = strata[record] * len(visit) + position
            if state_roots[step] < 0 or codes[record, column] >= 0:
                left[asked], roots[asked] = record, value_roots[step]
                asked += 1
        _walk(left[:asked], roots[:asked], codes, nodes, orders, leaves)
        for asking in range(asked):
            record, leaf = left[asking], leaves[asking]
            state = _start(seed, column + 1, numbers[record])
            if state_roots[strata[record] * len(visit) + position] >= 0:
                state += _GAMMA
            donor_state = _start(seed, 0, numbers[record]) if together else state
            # The last attempt is kept, within the bounds if need be.
            for attempt in range(redraws + 1):
                donor_state += _GAMMA
                if not together or attempt == 0:
                    code = donors[donors_at[leaf] + int(_uniform(donor_state) * donors_size[leaf])]
                if not treated[column] or code < 0:
                    break
                place = values_at[column] + code
                number = values[place]
                if bandwidths[place] > 0.0:
                    if together:
                        noise, state = _normal(state)
                    else:
                        noise, donor_state = _normal(donor_state)
                    number += noise * bandwidths[place]
                    if whole[column]:
                        number = np.rint(number)
                if base[column] > 0.0 and np.isfinite(number / base[column]):
                    # 3 / 10 is 0.3, and 3 * 0.1 is not.
                    steps, parts = np.rint(number / base[column]), np.rint(1.0 / base[column])
                    number = steps / parts if parts > 0.0 and parts * base[column] == 1.0 else steps * base[column]
                if low[column] <= number <= high[column]:
                    if number != values[place]:
                        changed[record, column] = CHANGED
                        results[record, column] = number
                    break
                if attempt == redraws:
                    changed[record, column] = CLIPPED
                    results[record, column] = min(max(number, low[column]), high[column])
            codes[record, column] = code
            diversity_of[record, column] = diverse[leaf]
