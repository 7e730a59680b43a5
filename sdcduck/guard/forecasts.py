"""What a question would cost under ``method := 'dp'``, and how large its noise would be, before anything is spent.

    FROM sdc_dp_preview('SELECT region, count(*) FROM people GROUP BY region')

has a row for each column of the answer. They are made of the question, the policy and the ledger: no record is looked
at, no noise is drawn, and nothing is charged. They stand in the text as constants, as the rows of ``sdc_noise`` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sdcduck.catalog import Policy
from sdcduck.guard.costs import Charge, Cost, Standing, charge_for, is_enough, standing_of
from sdcduck.guard.worth import Worth

FUNCTION = "sdc_dp_preview"
COLUMNS = {
    "column": "VARCHAR", "statistic": "VARCHAR", "sd": "DOUBLE", "noise": "VARCHAR", "epsilon": "DOUBLE",
    "delta": "DOUBLE", "rho": "DOUBLE", "paid": "BOOLEAN", "enough": "BOOLEAN", "spent": "DOUBLE",
    "questions_left": "BIGINT",
}  # fmt: skip
_TYPES = {"VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(), "BIGINT": pa.int64()}

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Forecast:
    """What a question would cost.

    Attributes:
        epsilon: of this question alone, at the delta.
        delta: of all questions together.
        rho: what the ledger would count; None: it counts epsilon, of Laplace noise.
        paid: it was charged before, and costs nothing.
        enough: as much is left.
        after: how the table would stand.
    """

    epsilon: float
    delta: float
    rho: float | None
    paid: bool
    enough: bool
    after: Standing


def forecast_of(policy: Policy, cost: Cost, charges: Sequence[Charge], *, paid: bool) -> Forecast:
    """What a question would cost after others.

    Args:
        charges: what the others have cost.
        paid: whether it is one of them.
    """
    privacy = policy.privacy
    if paid:
        rho = 0.0 if privacy.gaussian else None
        return Forecast(0.0, privacy.delta, rho, True, True, standing_of(charges, privacy))
    enough = is_enough(charges, cost, privacy)
    after = standing_of([*charges, charge_for(cost, privacy)] if enough else charges, privacy)
    if not cost.gaussian:
        return Forecast(cost.own, 0.0, None, False, enough, after)
    return Forecast(privacy.per_question, privacy.delta, cost.own, False, enough, after)


def rows_of_preview(worth: Sequence[Worth], forecast: Forecast | None) -> list[Row]:
    """A row for each column of an answer; without a cost where nothing is drawn for it."""
    cost: Row = (None, None, None, None, None, None, None)
    if forecast is not None:
        after = forecast.after
        spent = after.spent if math.isfinite(after.spent) else None
        cost = (forecast.epsilon, forecast.delta, forecast.rho, forecast.paid, forecast.enough, spent, after.left)
    return [(one.column, one.statistic, one.sd, one.words or None, *cost) for one in worth]


def table_of_preview(rows: Sequence[Row]) -> pa.Table:
    """The same for programs."""
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(column, _TYPES[kind]) for column, kind in zip(columns, COLUMNS.values(), strict=True)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))
