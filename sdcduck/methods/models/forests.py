"""Random forests of scikit-learn's trees, with votes that are added in one order: the same at any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.models.scores import Codes

Features = NDArray[np.float32]

_MOST_INDICATORS = 16
"""Values that a category may have to become a column each; with more it is one column of codes."""


def indicators(codes: Codes, size: int) -> Features:
    """A category as columns: -1 (NULL) is a category, too.

    >>> indicators(np.array([0, 1, -1]), 2).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if size > _MOST_INDICATORS:
        return np.asarray(codes[:, None], dtype=np.float32)
    return np.asarray(codes[:, None] == np.arange(-1, size), dtype=np.float32)


def votes(
    known: Features, classes: Codes, asked: Features, trees: int, seed: int, threads: int, check: Callable[[], None]
) -> NDArray[np.float64]:
    """The mean shares of the classes in the leaves that each record comes to: (asked, classes).

    As `RandomForestClassifier` with its defaults: each tree sees a sample with replacement, and at each split the root
    of the number of columns.
    """
    from sklearn.tree import DecisionTreeClassifier

    # What is the same is asked once, and counted once where a tree learns it.
    asked_once, places = np.unique(asked, axis=0, return_inverse=True)
    size = int(classes.max()) + 1
    starts = np.random.default_rng(seed).integers(0, 2**31 - 1, (trees, 2))
    root = max(1, int(np.sqrt(known.shape[1])))

    def shares(start: NDArray[np.int64]) -> NDArray[np.float64]:
        check()
        drawn = np.random.default_rng(int(start[0])).integers(0, len(known), len(known))
        weight = np.bincount(drawn, minlength=len(known)).astype(np.float64)
        used = weight > 0
        tree = DecisionTreeClassifier(max_features=root, random_state=int(start[1]))
        tree.fit(known[used], classes[used], sample_weight=weight[used], check_input=False)
        found = np.zeros((len(asked_once), size))
        found[:, tree.classes_] = tree.predict_proba(asked_once, check_input=False)
        return found

    total = np.zeros((len(asked_once), size))
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for found in pool.map(shares, starts):
            total += found
    return total[places.ravel()] / trees


def numbers(values: NDArray[np.float64]) -> Features:
    """A number in standard units, and where some are missing (NaN) a column that says so; they are the mean then.

    >>> numbers(np.array([1.0, 3.0, np.nan])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    there = ~np.isnan(values)
    known = values[there]
    largest = np.abs(known).max(initial=0.0)
    scaled = known / largest if largest > 0 else known
    centred = scaled - scaled.mean() if len(scaled) else scaled
    deviation = centred.std() if len(centred) else 0.0
    found = np.zeros((len(values), 1 if there.all() else 2), np.float32)
    found[there, 0] = centred / deviation if deviation > 0 else centred
    if not there.all():
        found[:, 1] = ~there
    return found
