"""Linear regression on noisy sums: ``sdc_dp_regression``."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.moments import Moments
from sdcduck.methods.dp.noise import Floats, Released
from sdcduck.methods.dp.regression import Fit, noisy_products, product_noise
from sdcduck.udfs.arguments import choice, needed, share, wrong
from sdcduck.udfs.dp.bounded import NULLS, Column, bounds_of, columns_of, costs, moments_of
from sdcduck.udfs.dp.ledger import Charge
from sdcduck.udfs.dp.means import enough
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import source


def plan_dp_regression(
    session: Session, text: str | None, outcome: str | None, columns: list[str] | None, bounds: str | None,
    epsilon: float | None, delta: float | None, confidence: float | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_regression``: a row for the constant and one for each column."""
    with session.cursor() as cursor:
        relation = source(cursor, text, "source")
    explained = needed(outcome, "outcome", "name the column of numbers that is explained")
    names = columns_of(relation, columns)
    (last,) = relation.named([explained], "outcome")
    relation.number(last, "outcome")
    if last in names:
        raise wrong("columns", f"not have the outcome '{last}'")
    between = bounds_of([*names, last], bounds)
    used = [Column.symmetric(name, between[name]) for name in [*names, last]]
    gaps = choice(nulls, "nulls", NULLS)
    cost, part = costs(epsilon, delta)
    level = share(confidence, "confidence", zero=False, one=False)

    def make() -> pa.Table:
        what = f"regression of {last} on {', '.join(names)}"
        Charge(session, [relation], "replace", what, cost)  # what must not be released need not be read
        with reads(session.cursor()) as cursor:
            moments = enough(moments_of(cursor, relation, used, gaps).get(None), len(used) + 1)
        noise = product_noise(len(used) + 1, moments.n, cost, part)
        spent = part if noise.law == "normal" else 0.0
        Charge(session, [relation], "replace", what, cost, spent, noise.ratio).write()
        noisy = noisy_products(_products(moments), noise, Released())
        centres, units = (np.array([getattr(column, of) for column in used]) for of in ("centre", "unit"))
        fit = Fit.of(noisy, moments.n, noise.sd).in_units(centres, units)
        return _table(("(constant)", *names), fit, level, noise.law)

    return Rows(make)


def _products(moments: Moments) -> Floats:
    """The mean of vv' of v = (1, columns, outcome)."""
    made = np.ones((moments.columns + 1,) * 2)
    made[0, 1:] = made[1:, 0] = moments.means
    made[1:, 1:] = moments.second()
    return made


def _table(terms: tuple[str, ...], fit: Fit, level: float, law: str) -> pa.Table:
    """The rows that the user sees."""
    of_noise = np.sqrt(np.diag(fit.of_noise))
    errors, half = fit.errors, fit.half_widths(level)
    rows = []
    for place, (term, value) in enumerate(zip(terms, fit.coefficients.tolist(), strict=True)):
        known = math.isfinite(errors[place])
        rows.append(
            {
                "term": term, "estimate": value, "shrunk": fit.shrunk, "noise": law,
                "noise_sd": float(of_noise[place]) if known else None,
                "standard_error": float(errors[place]) if known else None,
                "low": value - float(half[place]) if known else None,
                "high": value + float(half[place]) if known else None,
            }
        )  # fmt: skip
    return table_of(rows, PLANNERS[0].columns)


PLANNERS = planners(plan_dp_regression)
