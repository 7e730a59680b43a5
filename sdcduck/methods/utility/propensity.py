"""Propensity mean squared error: how well a classifier tells synthetic records from original ones.

Woo et al. (2009); its null distribution under a right synthesis: Snoke, Raab, Nowok, Dibben and Slavkovic (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.utility.logit import Design, fit_regression
from sdcduck.methods.utility.tables import separation

Floats = NDArray[np.float64]

_NO_SPLIT = 1e-8


@dataclass(frozen=True)
class Tree:
    """How large a classification tree grows.

    Attributes:
        ccp_alpha: what a split must gain to be kept (cost-complexity pruning by Gini impurity).
        leaf: records that a leaf has at least.
    """

    ccp_alpha: float
    leaf: int = 5

    def scores(self, columns: NDArray[np.float32], outcome: Floats, seed: int) -> Floats:
        """The share of synthetic records in the leaf of each record."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(
            ccp_alpha=self.ccp_alpha, min_samples_leaf=self.leaf, min_samples_split=4 * self.leaf, max_depth=30,
            random_state=seed % 2**32,
        )  # fmt: skip
        tree.fit(columns, outcome)
        if tree.tree_.n_classes[0] < 2:
            return np.full(len(outcome), outcome[0])
        shares: Floats = tree.tree_.value[:, 0, 1][tree.tree_.apply(columns)]
        return shares


@dataclass(frozen=True)
class Propensity:
    """What a propensity model found.

    Attributes:
        parameters: of a logistic model, the intercept among them; None for a tree.
        pmse: mean squared distance of the scores from the synthetic share.
        expected: what it would be on average, were the synthesis right; None: not known.
        deviation: standard deviation of that.
        specks: Kolmogorov-Smirnov distance of the scores of the two halves.
        po50: per cent of the records classified rightly, less 50.
        u: Mann and Whitney's statistic of the scores.
        no_split: permutations whose tree was a root; None without permutations.
        converged: whether the fit came to an end.
    """

    parameters: int | None
    pmse: float
    expected: float | None
    deviation: float | None
    specks: float
    po50: float
    u: float
    no_split: int | None
    converged: bool


def _mean_square(scores: Floats, share: float) -> float:
    return float(((scores - share) ** 2).mean())


def _permuted(outcome: Floats, permutations: int, seed: int) -> Iterator[tuple[int, Floats]]:
    for number in range(permutations):
        yield number, np.random.default_rng([seed % 2**63, number]).permutation(outcome)


def propensity(
    design: Design, outcome: Floats, model: Tree | None, *, null: str, permutations: int = 50, seed: int = 0,
    threads: int = 1, check: Callable[[int, int], object] = lambda done, total: None,
) -> Propensity:  # fmt: skip
    """Fit a model of being synthetic, and its null.

    Args:
        design: of all records.
        outcome: 1 for synthetic records, 0 for original ones; both must be there.
        model: a tree; None: a logistic regression.
        null: 'analytic' (of a logistic regression), 'permutation' or 'none'.
    """
    share = float(outcome.mean())
    steps = 1 + (permutations if null == "permutation" else 0)
    columns = None if model is None else _columns(design)
    parameters, converged = None, True

    def scores_of(target: Floats, number: int) -> Floats:
        if model is not None:
            assert columns is not None
            return model.scores(columns, target, seed + number)
        return fit_regression(design, target, binomial=True, check=lambda: check(0, steps)).fitted

    if model is None:
        fit = fit_regression(design, outcome, binomial=True, check=lambda: check(0, steps))
        scores, parameters, converged = fit.fitted, fit.rank, fit.converged
    else:
        scores = scores_of(outcome, 0)
    expected = deviation = no_split = None
    if null == "analytic" and parameters is not None and parameters > 1:
        size = (1 - share) ** 2 * share / len(outcome)
        expected, deviation = (parameters - 1) * size, math.sqrt(2 * (parameters - 1)) * size
    elif null == "permutation":
        found = []
        with ThreadPoolExecutor(threads) as pool:
            runs = pool.map(
                lambda run: _mean_square(scores_of(run[1], 1 + run[0]), share),
                _permuted(outcome, permutations, seed),
            )
            for done, value in enumerate(runs):
                check(done + 1, steps)
                found.append(value)
        no_split = sum(value < _NO_SPLIT for value in found)
        if no_split < permutations:
            # Permuted records are two independent samples; a synthesis is drawn from what was fitted to the other.
            expected, deviation = (1 - share) * float(np.mean(found)), (1 - share) * float(np.std(found, ddof=1))
    rounded = np.round(scores, 10)  # records that are alike may differ in the last digit
    apart = separation(1 - outcome, outcome, rounded)
    right = np.where(rounded > share, outcome, 1 - outcome)
    return Propensity(
        parameters, _mean_square(scores, share), expected, deviation, apart.ks, 100 * float(right.mean()) - 50,
        apart.u, no_split, converged,
    )  # fmt: skip


def _columns(design: Design) -> NDArray[np.float32]:
    """The design as scikit-learn's trees want it, without the intercept."""
    columns = np.empty((design.rows, design.width - 1), dtype=np.float32)
    for rows, make in design.blocks():
        columns[rows] = make()[:, 1:]
    return columns
