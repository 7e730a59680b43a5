"""Propensity mean squared error: how well a classifier tells synthetic records from original ones.

Woo et al. (2009); its null distribution under a right synthesis: Snoke, Raab, Nowok, Dibben and Slavkovic (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.utility.logit import Design, fit_regression
from sdcduck.methods.utility.tables import separation_of_records
from sdcduck.methods.utility.tree import leaf_shares

Floats = NDArray[np.float64]

_NO_SPLIT = 1e-8

Column = tuple[NDArray[np.int32], int, bool]
"""Codes, how many there are, and whether they have an order."""


@dataclass(frozen=True)
class Tree:
    """How large a classification tree grows.

    Attributes:
        ccp_alpha: what a split must gain to be kept (cost-complexity pruning by Gini impurity).
        leaf: records that a leaf has at least.
    """

    ccp_alpha: float
    leaf: int = 5

    def scores(self, columns: Sequence[Column], outcome: Floats) -> Floats:
        """The share of synthetic records in the leaf of each record."""
        codes, sizes, ordered = zip(*columns, strict=True)
        return leaf_shares(codes, sizes, ordered, outcome.astype(np.uint8), price=self.ccp_alpha, leaf=self.leaf)


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


def _permuted(outcome: Floats, permutations: int, seed: int) -> Iterator[Floats]:
    for number in range(permutations):
        yield np.random.default_rng([seed % 2**63, number]).permutation(outcome)


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

    def scores_of(target: Floats) -> Floats:
        if model is not None:
            assert columns is not None
            return model.scores(columns, target)
        return fit_regression(design, target, binomial=True, check=lambda: check(0, steps)).fitted

    if model is None:
        fit = fit_regression(design, outcome, binomial=True, check=lambda: check(0, steps))
        scores, parameters, converged = fit.fitted, fit.rank, fit.converged
    else:
        scores = scores_of(outcome)
    expected = deviation = no_split = None
    if null == "analytic" and parameters is not None and parameters > 1:
        size = (1 - share) ** 2 * share / len(outcome)
        expected, deviation = (parameters - 1) * size, math.sqrt(2 * (parameters - 1)) * size
    elif null == "permutation":
        found = []
        with ThreadPoolExecutor(threads) as pool:
            runs = pool.map(
                lambda target: _mean_square(scores_of(target), share), _permuted(outcome, permutations, seed)
            )
            for done, value in enumerate(runs):
                check(done + 1, steps)
                found.append(value)
        no_split = sum(value < _NO_SPLIT for value in found)
        if no_split < permutations:
            # Permuted records are two independent samples; a synthesis is drawn from what was fitted to the other.
            expected, deviation = (1 - share) * float(np.mean(found)), (1 - share) * float(np.std(found, ddof=1))
    rounded = np.round(scores, 10)  # records that are alike may differ in the last digit
    apart = separation_of_records(rounded[outcome == 0], rounded[outcome == 1])
    right = np.where(rounded > share, outcome, 1 - outcome)
    return Propensity(
        parameters, _mean_square(scores, share), expected, deviation, apart.ks, 100 * float(right.mean()) - 50,
        apart.u, no_split, converged,
    )  # fmt: skip


def _columns(design: Design) -> list[Column]:
    """The design for a tree: a category is one column, without an order."""
    if design.products:
        dense = np.zeros((design.width, design.rows))
        for rows, places, values in design.blocks():
            for place, value in zip(places, values, strict=True):
                dense[place, np.arange(rows.start, rows.stop)] += value
        return [_ranked(column) for column in dense[1:]]
    columns: list[Column] = []
    for term in (term for variable in design.terms for term in variable):
        if term.codes is not None:
            columns.append((term.codes, max(len(term.levels), 1), False))
        elif term.values is not None:
            columns.append(_ranked(term.values))
    return columns


def _ranked(values: Floats) -> Column:
    codes = values.astype(np.int32)
    if (codes != values).any() or codes.min() < 0:
        codes = np.unique(values, return_inverse=True)[1].astype(np.int32)
    return codes, int(codes.max()) + 1, True
