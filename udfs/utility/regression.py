"""What a regression says on the original and on the synthetic records: ``sdc_utility_regression``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import checkpoint, reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.utility.coefficients import compared_coefficients
from sdcduck.methods.utility.logit import Design, Fit, fit_regression
from sdcduck.udfs.arguments import choice, needed, number
from sdcduck.udfs.utility.columns import Compared
from sdcduck.udfs.utility.measures import table_of
from sdcduck.udfs.utility.records import Column, columns_of

FAMILIES = ("gaussian", "binomial")
_INTERVALS = ("original", "population")

REGRESSION_COLUMNS = {
    "term": "VARCHAR", "estimate_original": "DOUBLE", "se_original": "DOUBLE", "estimate_synthetic": "DOUBLE",
    "se_synthetic": "DOUBLE", "ratio_estimate": "DOUBLE", "ratio_se": "DOUBLE", "cio": "DOUBLE", "cio_raw": "DOUBLE",
    "z": "DOUBLE", "same_sign": "BOOLEAN", "warning": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class Regression:
    """A regression to be fitted to both.

    Attributes:
        outcome: its column.
        predictors: its columns.
        binomial: logistic, of an outcome that is 0 or 1.
    """

    outcome: Column
    predictors: tuple[Column, ...]
    binomial: bool

    def known(self, side: int) -> NDArray[np.bool_]:
        """Records of a side without NULL."""
        found = np.ones(len(self.outcome.values[side]), dtype=bool)
        for column in (self.outcome, *self.predictors):
            values = column.values[side]
            found &= values >= 0 if column.kind == "category" else np.isfinite(values.astype(np.float64))
        return found

    def fits(self, rows: Sequence[Sequence[NDArray[np.int64]]]) -> list[list[Fit | None]]:
        """Fits to some records of each side; None where there are too few.

        Args:
            rows: by side, the sets of records.
        """
        terms = [column.terms() for column in self.predictors]
        outcome = np.concatenate(self.outcome.values).astype(np.float64)
        first = len(self.outcome.values[0])
        fits: list[list[Fit | None]] = []
        for side, sets in enumerate(rows):
            found: list[Fit | None] = []
            for chosen in sets:
                places = chosen + (first if side else 0)
                sliced = [[term.take(places) for term in variable] for variable in terms]
                design = Design(sliced, len(places))
                target = outcome[places]
                enough = len(places) > 1 and (not self.binomial or 0 < target.sum() < len(target))
                found.append(
                    fit_regression(design, target, binomial=self.binomial, check=checkpoint()) if enough else None
                )
            fits.append(found)
        return fits

    def names(self) -> list[str]:
        """Of the coefficients."""
        return Design([column.terms() for column in self.predictors], 0).names


def plan_utility_regression(
    session: Session, original: str | None, synthetic: str | None, outcome: str | None, predictors: list[str] | None,
    family: str | None, sets: str | None, intervals_for: str | None, quantile: float | None,
    categorical: list[str] | None,
) -> Rows:  # fmt: skip
    """``sdc_utility_regression``."""
    binomial = choice(family, "family", FAMILIES) == "binomial"
    of_population = choice(intervals_for, "intervals_for", _INTERVALS) == "population"
    width = number(quantile, "quantile", above=0, why="1.96 for intervals of 95 per cent")
    others = needed(predictors, "predictors", "name the columns that explain the outcome")
    columns_used = [needed(outcome, "outcome", "name a column"), *others]
    compared = Compared.read(session.cursor(), original, synthetic, columns_used, categorical)
    marks = None if sets is None else compared.sides[1].column(sets, "sets")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            sides = compared.open(cursor, marks)
            columns = columns_of(cursor, compared, sides)
            numbered = np.zeros(sides[1].rows, dtype=np.int64)
            if marks is not None:
                numbered = _set_numbers(cursor.sql(f"SELECT marks FROM {sides[1].relation}").to_arrow_table())
        regression = regression_of(columns, 0, range(1, len(columns)), binomial)
        rows = [np.flatnonzero(regression.known(side)) for side in (0, 1)]
        parts = [rows[1][numbered[rows[1]] == number] for number in np.unique(numbered)] or [rows[1]]
        fits = regression.fits([[rows[0]], parts])
        if not len(rows[0]):
            return table_of([], REGRESSION_COLUMNS)
        found = compared_coefficients(
            fits[0][0], fits[1], regression.names(), ratio=len(rows[1]) / len(parts) / len(rows[0]),
            population=of_population, quantile=width,
        )  # fmt: skip
        return table_of([vars(one) for one in found], REGRESSION_COLUMNS)

    return Rows(make)


def _set_numbers(table: pa.Table) -> NDArray[np.int64]:
    texts = table["marks"].to_pylist()
    known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([known[text] for text in texts], dtype=np.int64)


def regression_of(columns: Sequence[Column], outcome: int, predictors: Sequence[int], binomial: bool) -> Regression:
    """A regression of one column on others.

    Raises:
        SDCError: an outcome that has no numbers, or others than 0 and 1 where it is binomial.
    """
    target = columns[outcome]
    values = np.concatenate(target.values).astype(np.float64)
    if target.kind == "category":
        if not binomial or not set(target.levels) <= {"false", "true"}:
            raise SDCError(f"outcome '{target.name}' must be a column of numbers, or of truth values if it is binomial")
        if target.levels == ("true",):
            values = np.where(values == 0, 1.0, values)
        split = len(target.values[0])
        target = Column(target.name, "category", (values[:split], values[split:]), target.levels)
    elif binomial and not np.isin(values[np.isfinite(values)], (0.0, 1.0)).all():
        raise SDCError(f"outcome '{target.name}' must be 0 or 1, or a truth value, if it is binomial")
    return Regression(target, tuple(columns[place] for place in predictors), binomial)


PLANNERS = (*planners(plan_utility_regression),)  # fmt: skip
