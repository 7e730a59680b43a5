"""Logistic and linear regression with standard errors, on designs that are made block by block.

Newton's method as of McCullagh and Nelder (1989). Columns that are linear combinations of those before them are left
out (aliased), and counted. Memory is that of one block, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Slots = NDArray[np.int32]

_ALIASED = 1e-9  # of a standardised column's variance, when this little is left after those before it
_STEPS = 25
_TOLERANCE = 1e-10
_STEEPEST = 30.0  # of a linear predictor: probabilities of 1e-13
_BLOCK = 1 << 13  # records of a block


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
        self.rows, self.terms, self.products = rows, terms, products
        self._widths = [sum(term.width for term in variable) for variable in terms]
        self.width = 1 + sum(
            int(np.prod([self._widths[place] for place in chosen])) for chosen in self._chosen()
        )  # fmt: skip
        self.names = ["intercept", *(name for variable in terms for term in variable for name in term.names())]

    def _chosen(self) -> Iterator[tuple[int, ...]]:
        """The variables that are multiplied with each other, one alone first."""
        for order in range(1, self.products + 2):
            yield from combinations(range(len(self.terms)), order)

    def blocks(self) -> Iterator[tuple[slice, Slots, Floats]]:
        """The records in pieces: for each, the columns that may differ from 0 (m, records), and the numbers there.

        Of the m columns of a record, each comes after those before it.
        """
        for start in range(0, self.rows, _BLOCK):
            rows = slice(start, min(start + _BLOCK, self.rows))
            slots = self.slots(rows)
            places = np.empty((len(slots), rows.stop - start), dtype=np.int32)
            for place, (column, _) in zip(places, slots, strict=True):
                place[:] = column
            yield rows, places, np.vstack([value for _, value in slots])

    def slots(self, rows: slice) -> list[tuple[int | Slots, Floats]]:
        """For some records the column of each term, one for all if it is always the same, and the numbers there.

        Of a category, one column at a time differs from 0; of its reference none does, and any is named.
        """
        single: list[list[tuple[int | Slots, Floats]]] = []
        for variable in self.terms:
            start = 0
            slots: list[tuple[int | Slots, Floats]] = []
            for term in variable:
                if term.codes is None:
                    assert term.values is not None
                    slots.append((start, term.values[rows]))
                elif term.width:
                    codes = term.codes[rows]
                    column = start if term.width == 1 else start + np.maximum(codes - 1, 0)
                    slots.append((column, (codes > 0).astype(np.float64)))
                start += term.width
            single.append(slots)
        found: list[tuple[int | Slots, Floats]] = [(0, np.ones(len(range(*rows.indices(self.rows)))))]
        start = 1
        for chosen in self._chosen():
            slots, width = single[chosen[0]], self._widths[chosen[0]]
            for other in chosen[1:]:
                slots = [
                    (column * self._widths[other] + more, value * factor)
                    for column, value in slots
                    for more, factor in single[other]
                ]
                width *= self._widths[other]
            found += [(start + column, value) for column, value in slots]
            start += width
        return found


@njit(cache=True, nogil=True)
def _add_up(places, values, shift, total, squares):  # type: ignore[no-untyped-def]
    """Add the records to the sums of the columns, and of their products with those before them."""
    for row in range(places.shape[1]):
        for one in range(len(places)):
            column = places[one, row]
            value = values[one, row] - shift[column]
            if value == 0:
                continue
            total[column] += value
            for other in range(one + 1):
                before = places[other, row]
                squares[column, before] += value * (values[other, row] - shift[before])


@njit(cache=True, nogil=True)
def _add_step(places, values, target, plain, binomial, fitted, gradient, information):  # type: ignore[no-untyped-def]
    """Add the records to what a step of Newton's method needs; returns their deviance."""
    deviance = 0.0
    for row in range(places.shape[1]):
        linear = 0.0
        for one in range(len(places)):
            linear += values[one, row] * plain[places[one, row]]
        chance, weight = linear, 1.0
        if binomial:
            linear = min(max(linear, -_STEEPEST), _STEEPEST)
            chance = 1 / (1 + np.exp(-linear))
            weight = chance * (1 - chance)
            deviance += 2 * (max(linear, 0.0) + np.log1p(np.exp(-abs(linear))) - target[row] * linear)
        else:
            deviance += (target[row] - linear) ** 2
        fitted[row] = chance
        rest = target[row] - chance
        for one in range(len(places)):
            value = values[one, row]
            if value == 0:
                continue
            column = places[one, row]
            gradient[column] += value * rest
            value *= weight
            for other in range(one + 1):
                information[column, places[other, row]] += value * values[other, row]
    return deviance


def _whole(lower: Floats) -> Floats:
    """A symmetric matrix from its lower triangle."""
    whole: Floats = lower + np.tril(lower, -1).T
    return whole


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
    # Numbers far from 0 would lose digits.
    shift = np.zeros(design.width)
    for column, value in design.slots(slice(0, _BLOCK))[1:]:
        if isinstance(column, int):
            shift[column] = value.mean()
    for _, places, values in design.blocks():
        _add_up(places, values, shift, total, squares)
    mean = total / design.rows
    covariance = _whole(squares) / design.rows - np.outer(mean, mean)
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
    # From standardised coefficients to those of the plain columns.
    change = np.diag(1 / scale[kept])
    change[0, 1:] = -(centre[kept] / scale[kept])[1:]
    for _ in range(_STEPS if binomial else 2):
        check()
        gradient, information, deviance = np.zeros(design.width), np.zeros((design.width, design.width)), 0.0
        plain = np.zeros(design.width)  # coefficients of columns that are not standardised
        plain[kept] = change @ beta
        for rows, places, values in design.blocks():
            deviance += _add_step(
                places, values, outcome[rows], plain, binomial, fitted[rows], gradient, information
            )  # fmt: skip
        information = change.T @ _whole(information)[np.ix_(kept, kept)] @ change
        gradient = change.T @ gradient[kept]
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
