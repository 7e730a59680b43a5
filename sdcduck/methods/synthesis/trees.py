"""Trees whose leaves hold donors: one classification or regression tree of scikit-learn, as plain arrays.

Predictors are codes. Of a number the code is its rank among the distinct values, so that infinities, dates and huge
numbers are nothing special and 32-bit floats are exact. The categories of a predictor are put in the order of the
target (by its mean, or by the first principal component of the shares of its classes) and then treated as a number:
one column a predictor however many categories it has, and the best possible split at the root for numbers and for two
classes (Fisher 1958; Coppersmith, Hong and Hosking 1999). Deeper down, splits may be slightly worse than the best.

Missing predictors go where the split is best with them, or to the larger child where none was seen.

Source: Reiter (2005); defaults as in the R packages synthpop and rpart: leaves of 5, complexity 1e-8, depth 30.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

LARGEST_SAMPLE = 2**24
"""Records that a tree can be fitted to: ranks beyond it would not be exact as 32-bit floats."""
NULL, NAN, MINUS_INFINITY, INFINITY = -1, -2, -3, -4
"""Codes of values that are no finite number; a NULL category is ``NULL`` too."""

_COMPLEXITY = 1e-8
_DEPTH = 30
_MOST_CLASSES = 32  # more of them are seen through so many random projections of their indicators:
_PROJECTIONS = 16


@dataclass(frozen=True)
class Tree:
    """Nodes in an order in which children come after their parents.

    Attributes:
        predictor: place of the predictor that a node splits by, -1 for leaves.
        cut: the left child has what is not larger.
        left, right: children.
        missing_left: whether the left child has what is missing.
        leaf: of each training record, its leaf.
        orders: by predictor, the place of each category in the order of the target, -1 for one that was not seen; the
            first entry is of NULL. None for numbers.
    """

    predictor: NDArray[np.int32]
    cut: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.uint8]
    leaf: NDArray[np.int64]
    orders: list[NDArray[np.int32] | None]


def single_leaf(records: int) -> Tree:
    """The tree of a target without predictors."""
    return Tree(
        np.full(1, -1, np.int32), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.uint8),
        np.zeros(records, np.int64), [],
    )  # fmt: skip


def rank_feature(codes: NDArray[np.int32], size: int) -> NDArray[np.float32]:
    """The codes of a number as a predictor: NaN where it is missing."""
    ranks = codes.astype(np.float32) + 1
    ranks[codes == MINUS_INFINITY] = 0
    ranks[codes == INFINITY] = size + 1
    ranks[(codes == NULL) | (codes == NAN)] = np.nan
    return ranks


def fit_tree(
    target: NDArray[np.float64] | NDArray[np.int64], predictors: list[tuple[NDArray[np.int32], int, bool]],
    smallest_leaf: int,
) -> Tree:  # fmt: skip
    """A tree for a number (float64) or for classes 0, 1, .. (int64).

    predictors: codes of the records, number of distinct values, and whether they are categories.
    """
    classes = None if target.dtype == np.float64 else int(target.max()) + 1
    wanted: NDArray[Any] = _standardised(target.astype(np.float64)) if classes is None else target
    if not predictors or len(target) < 2 * smallest_leaf or (target == target[0]).all():
        return single_leaf(len(target))
    orders = [
        category_order(codes, size, wanted, classes) if category else None for codes, size, category in predictors
    ]
    features = np.column_stack(
        [
            rank_feature(codes, size) if order is None else order[codes + 1].astype(np.float32)
            for (codes, size, _), order in zip(predictors, orders, strict=True)
        ]
    )
    # Imported here: it takes a second, and models that are stored can be used without it.
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    limits = {
        "min_samples_leaf": smallest_leaf,
        # A leaf of one record is asked for by nobody who wants larger nodes left whole.
        "min_samples_split": 3 * smallest_leaf if smallest_leaf > 1 else 2,
        "max_depth": _DEPTH,
        "random_state": 0,
    }
    if classes is None:
        fitted = DecisionTreeRegressor(min_impurity_decrease=_COMPLEXITY, **limits)
    elif classes <= _MOST_CLASSES and 2 * classes <= len(target):  # scikit-learn warns of more classes than that
        fitted = DecisionTreeClassifier(min_impurity_decrease=_COMPLEXITY, **limits)
    else:
        fitted = DecisionTreeRegressor(min_impurity_decrease=_COMPLEXITY, **limits)
        wanted = _signs(classes)[target]
    tree = fitted.fit(features, wanted).tree_
    inner = tree.children_left >= 0
    left, right = np.where(inner, tree.children_left, 0), np.where(inner, tree.children_right, 0)
    predictor = np.where(inner, tree.feature, -1).astype(np.int32)
    seen_missing = np.asarray(np.isnan(features).any(axis=0))
    larger_left = tree.n_node_samples[left] > tree.n_node_samples[right]
    missing_left = np.where(seen_missing[predictor], tree.missing_go_to_left.astype(bool), larger_left)
    return Tree(
        predictor, np.where(inner, tree.threshold, 0.0), left.astype(np.int64), right.astype(np.int64),
        (missing_left & inner).astype(np.uint8), tree.apply(features).astype(np.int64), orders,
    )  # fmt: skip


def _standardised(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean 0 and standard deviation 1, of numbers however large."""
    largest = np.abs(target).max(initial=0.0)
    scaled = target / largest if largest > 0 else target
    centred = scaled - scaled.mean()
    deviation = centred.std()
    standard: NDArray[np.float64] = centred / deviation if deviation > 0 else centred
    return standard


def _signs(classes: int) -> NDArray[np.float64]:
    """For each class a corner of a cube, by chance.

    The variance of random projections of the class indicators is, on average, the Gini index that a tree of classes
    would lessen.
    """
    signs = np.random.default_rng(classes).integers(0, 2, (classes, _PROJECTIONS)) * 2.0 - 1.0
    corners: NDArray[np.float64] = signs / np.sqrt(_PROJECTIONS)
    return corners


def category_order(
    codes: NDArray[np.int32], size: int, target: NDArray[np.float64] | NDArray[np.int64], classes: int | None
) -> NDArray[np.int32]:
    """The place of each category (NULL first) in the order of the target, -1 for categories without a record.

    >>> category_order(np.array([0, 0, 1, 2], np.int32), 4, np.array([5.0, 7.0, 1.0, 9.0]), None)
    array([-1,  1,  0,  2, -1], dtype=int32)
    """
    counts = np.bincount(codes + 1, minlength=size + 1)
    seen = np.flatnonzero(counts)
    if classes is None:
        score = np.bincount(codes + 1, weights=target, minlength=size + 1)[seen] / counts[seen]
    else:
        of_seen = np.empty(size + 1, np.int64)
        of_seen[seen] = np.arange(len(seen))
        table = np.bincount(of_seen[codes + 1] * classes + target, minlength=len(seen) * classes)
        shares = table.reshape(len(seen), classes) / counts[seen][:, None]
        if classes == 2:
            score = shares[:, 1]
        else:
            if classes > _MOST_CLASSES:
                shares = shares @ _signs(classes)
            mean = np.average(shares, axis=0, weights=counts[seen])
            centred = shares - mean
            axis = np.linalg.eigh((centred * counts[seen][:, None]).T @ centred)[1][:, -1]
            score = np.round(centred @ axis, 12)
    order = np.full(size + 1, -1, np.int32)
    order[seen[np.argsort(score, kind="stable")]] = np.arange(len(seen))
    return order


@njit(cache=True)
def diversity(donors, starts, sizes, zero, count_zero):  # type: ignore[no-untyped-def]
    """Different codes of each leaf, whose donors are sorted; -1 for a leaf that has the code ``zero`` only."""
    found = np.zeros(len(starts), dtype=np.int32)
    for leaf in range(len(starts)):
        different, has_zero = 0, False
        for place in range(starts[leaf], starts[leaf] + sizes[leaf]):
            has_zero = has_zero or donors[place] == zero
            if place == starts[leaf] or donors[place] != donors[place - 1]:
                different += 1
        if has_zero and different == 1:
            different = -1
        elif has_zero and not count_zero:
            different -= 1
        found[leaf] = different
    return found
