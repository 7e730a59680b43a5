"""Logistic and linear regression with standard errors, on designs that are made block by block.

Newton's method as of McCullagh and Nelder (1989). Columns that are linear combinations of those before them are left
out (aliased), and counted. Memory is that of one block, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ALIASED = 1e-9  # of a standardised column's variance, when this little is left after those before it
_STEPS = 25
_TOLERANCE = 1e-10
_STEEPEST = 30.0  # of a linear predictor: probabilities of 1e-13
_KEPT = 1 << 27  # bytes of a design that is kept; a larger one is made anew in each step
_BLOCK = 1 << 20  # bytes of a block: it stays in the cache while a step uses it


@dataclass(frozen=True)
class Term:
    """One variable of a design.

    Attributes:
        name: for the names of the coefficients.
        codes: (n,) category of each record, the first being the reference; None for a number.
        levels: names of the categories.
        values: (n,) numbers; None for a category.
    """

    name: str
    codes: NDArray[np.int32] | None = None
    levels: tuple[str, ...] = ()
    values: Floats | None = None

    @property
    def width(self) -> int:
        """Columns of the design."""
        return 1 if self.codes is None else max(len(self.levels) - 1, 0)

    def block(self, rows: slice) -> Floats:
        """The columns for some records."""
        if self.codes is None:
            assert self.values is not None
            return self.values[rows, None]
        codes = self.codes[rows]
        columns = np.zeros((len(codes), len(self.levels)))
        columns[np.arange(len(codes)), codes] = 1
        return columns[:, 1:]

    def take(self, places: NDArray[np.int64]) -> Term:
        """The term for some records."""
        codes = None if self.codes is None else self.codes[places]
        return Term(self.name, codes, self.levels, None if self.values is None else self.values[places])

    def names(self) -> list[str]:
        """Of the coefficients."""
        return [self.name] if self.codes is None else [f"{self.name}={level}" for level in self.levels[1:]]


class Design:
    """Variables as columns of numbers: an intercept, the terms, and products of ``products`` + 1 different variables.

    Args:
        terms: the terms of each variable: a number and its indicators belong together.
        rows: number of records.
        products: highest number of products.
    """

    def __init__(self, terms: Sequence[Sequence[Term]], rows: int, products: int = 0) -> None:
        self.rows = rows
        self._terms, self._products = terms, products
        widths = [sum(term.width for term in variable) for variable in terms]
        self.width = 1 + sum(
            int(np.prod([widths[place] for place in chosen]))
            for order in range(1, products + 2)
            for chosen in combinations(range(len(terms)), order)
        )
        self.names = ["intercept", *(name for variable in terms for term in variable for name in term.names())]
        self._blocks: list[Floats] = []
        self._keep = 8 * rows * self.width <= _KEPT

    def blocks(self) -> list[tuple[slice, Callable[[], Floats]]]:
        """The records in pieces, with a way to make each."""
        size = max(256, _BLOCK // (8 * self.width))
        pieces = [slice(start, min(start + size, self.rows)) for start in range(0, self.rows, size)]
        if self._keep:
            if not self._blocks:
                self._blocks = [self.block(rows) for rows in pieces]
            return [(rows, lambda block=block: block) for rows, block in zip(pieces, self._blocks, strict=True)]  # type: ignore[misc]
        return [(rows, lambda rows=rows: self.block(rows)) for rows in pieces]  # type: ignore[misc]

    def block(self, rows: slice) -> Floats:
        """The design for some records."""
        single = [np.hstack([term.block(rows) for term in variable]) for variable in self._terms]
        size = len(range(*rows.indices(self.rows)))
        parts = [np.ones((size, 1)), *single]
        for order in range(2, self._products + 2):
            for chosen in combinations(single, order):
                product = chosen[0]
                for one in chosen[1:]:
                    product = (product[:, :, None] * one[:, None, :]).reshape(size, -1)
                parts.append(product)
        return np.ascontiguousarray(np.hstack(parts))


@dataclass(frozen=True)
class Fit:
    """A fitted regression.

    Attributes:
        coefficients: of all columns, NaN where aliased.
        errors: standard errors of them.
        rank: columns that count, the intercept among them.
        converged: whether Newton's method came to an end; not where the groups are separated.
        fitted: (n,) fitted values.
    """

    coefficients: Floats
    errors: Floats
    rank: int
    converged: bool
    fitted: Floats


def _kept_columns(design: Design) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Columns that are no combination of those before them, and the centres and scales of all."""
    total, squares = np.zeros(design.width), np.zeros((design.width, design.width))
    shift = None
    for _, make in design.blocks():
        block = make()
        if shift is None:
            shift = block.mean(axis=0)
            shift[0] = 0
        block = block - shift
        total += block.sum(axis=0)
        squares += block.T @ block
    assert shift is not None
    mean = total / design.rows
    covariance = squares / design.rows - np.outer(mean, mean)
    mean = mean + shift
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0))
    constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    scale = np.where(constant, 1.0, deviation)
    centre = np.where(constant, 0.0, mean)
    correlation = covariance / np.outer(scale, scale)
    # Cholesky's factor column by column: what a column adds to those before it.
    kept = [0]
    factor = np.zeros((design.width, design.width))
    for column in range(1, design.width):
        if constant[column]:
            continue
        rest = correlation[column:, column].copy()
        before = kept[1:]
        if before:
            rest -= factor[column:, before] @ factor[column, before]
        if rest[0] > _ALIASED:
            factor[column:, column] = rest / np.sqrt(rest[0])
            kept.append(column)
    centre[0], scale[0] = 0.0, 1.0
    return np.array(kept), centre, scale


def fit_regression(
    design: Design, outcome: Floats, *, binomial: bool, check: Callable[[], object] = lambda: None
) -> Fit:
    """Fit a logistic (``binomial``) or a linear regression to n outcomes, which are 0 or 1 in the former."""
    kept, centre, scale = _kept_columns(design)
    beta = np.zeros(len(kept))
    if binomial:
        share = min(max(float(outcome.mean()), 1e-9), 1 - 1e-9)
        beta[0] = np.log(share / (1 - share))
    information = np.eye(len(kept))
    before, deviance, converged = np.inf, np.inf, False
    fitted = np.empty(design.rows)
    whole = len(kept) == design.width
    # From standardised coefficients to those of the plain columns.
    change = np.diag(1 / scale[kept])
    change[0, 1:] = -(centre[kept] / scale[kept])[1:]
    for _ in range(_STEPS if binomial else 2):
        check()
        gradient, information, deviance = np.zeros(len(kept)), np.zeros((len(kept), len(kept))), 0.0
        plain = change @ beta  # so that no block is copied to be standardised
        for rows, make in design.blocks():
            made = make()
            block = made if whole else made[:, kept]
            linear = block @ plain
            target = outcome[rows]
            if binomial:
                linear = np.clip(linear, -_STEEPEST, _STEEPEST)
                chance = 1 / (1 + np.exp(-linear))
                weight = chance * (1 - chance)
                deviance += float(2 * (np.logaddexp(0, linear) - target * linear).sum())
                rooted = block * np.sqrt(weight)[:, None]
                information += rooted.T @ rooted
            else:
                chance = linear
                deviance += float(((target - linear) ** 2).sum())
                information += block.T @ block
            fitted[rows] = chance
            gradient += block.T @ (target - chance)
        information = change.T @ information @ change
        gradient = change.T @ gradient
        if abs(before - deviance) <= _TOLERANCE * (abs(deviance) + 0.1) and binomial:
            converged = True
            break
        if not binomial and before != np.inf:
            converged = True
            break
        before = deviance
        try:
            beta = beta + np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            break
    try:
        inverse = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        inverse = np.full_like(information, np.nan)
    spread = 1.0 if binomial else deviance / max(design.rows - len(kept), 1)
    coefficients, errors = np.full(design.width, np.nan), np.full(design.width, np.nan)
    coefficients[kept] = change @ beta
    with np.errstate(invalid="ignore"):
        errors[kept] = np.sqrt(np.diag(change @ inverse @ change.T) * spread)
    return Fit(coefficients, errors, len(kept), converged, fitted)
