"""Private means, covariances and the comparison of two groups: planners behind ``sql/dp_means_tables.sql``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import checkpoint, reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.covariance import private_covariance
from sdcduck.methods.dp.mean_test import CORRECTIONS, MODES, critical_index, private_mean_test
from sdcduck.methods.dp.means import mean_noise
from sdcduck.methods.dp.moments import Moments
from sdcduck.methods.dp.noise import Released
from sdcduck.udfs.arguments import choice, needed, share, truth, whole, wrong
from sdcduck.udfs.dp.bounded import NULLS, Column, bounds_of, columns_of, costs, moments_of
from sdcduck.udfs.dp.ledger import Charge
from sdcduck.udfs.source import Source, source

_MOST_ROUNDS = 100_000


@dataclass(frozen=True)
class _Call:
    """Checked arguments that the functions share."""

    relation: Source
    columns: tuple[Column, ...]
    nulls: str

    @classmethod
    def read(
        cls, session: Session, text: str | None, columns: list[str] | None, bounds: str | None, nulls: str | None
    ) -> _Call:
        relation = source(session.cursor(), text, "source")
        names = columns_of(relation, columns)
        between = bounds_of(names, bounds)
        made = tuple(Column.symmetric(name, between[name]) for name in names)
        return cls(relation, made, choice(nulls, "nulls", NULLS))

    @property
    def named(self) -> str:
        return ", ".join(column.name for column in self.columns)

    def moments(self, session: Session, least: int) -> Moments:
        """Of all records, of which there have to be some."""
        with reads(session.cursor()) as cursor:
            found = moments_of(cursor, self.relation, self.columns, self.nulls)
        return enough(found.get(None), least)


def enough(moments: Moments | None, least: int, where: str = "") -> Moments:
    """Moments of so many records at least."""
    if moments is None or moments.n < least:
        raise SDCError(f"there are {'no' if least == 1 else f'fewer than {least}'} records{where}")
    return moments


def plan_dp_mean(
    session: Session, text: str | None, columns: list[str] | None, bounds: str | None, epsilon: float | None,
    delta: float | None, confidence: float | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_mean``: all means of one record's columns cost together."""
    call = _Call.read(session, text, columns, bounds, nulls)
    cost, part = costs(epsilon, delta)
    level = share(confidence, "confidence", zero=False, one=False)

    def make() -> pa.Table:
        what = f"means of {call.named}"
        Charge(session, [call.relation], "replace", what, cost)  # what must not be released need not be read
        moments = call.moments(session, 1)
        noise = mean_noise(len(call.columns), moments.n, cost, part)
        spent = part if noise.law == "normal" else 0.0
        Charge(session, [call.relation], "replace", what, cost, spent, noise.ratio).write()
        means = noise.put_on(moments.means, Released())
        units = np.array([column.unit for column in call.columns])
        shown = means * units + np.array([column.centre for column in call.columns])
        half = noise.half_width(level) * units
        return pa.table(
            {
                "column_name": [column.name for column in call.columns], "n": [moments.n] * len(units), "mean": shown,
                "standard_error": noise.sd * units, "low": shown - half, "high": shown + half,
                "noise": [noise.law] * len(units),
            }
        )  # fmt: skip

    return Rows(make)


def plan_dp_covariance(
    session: Session, text: str | None, columns: list[str] | None, bounds: str | None, epsilon: float | None,
    nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_covariance``: about the mean of the sample, which takes twice the bound."""
    call = _Call.read(session, text, columns, bounds, nulls)
    cost, _ = costs(epsilon)

    def make() -> pa.Table:
        charge = Charge(session, [call.relation], "replace", f"covariances of {call.named}", cost)
        moments = call.moments(session, 2)
        charge.write()
        made = private_covariance(moments.covariance, moments.n, 2.0, cost, Released(), checkpoint())
        units = np.array([column.unit for column in call.columns])
        names = [column.name for column in call.columns]
        return pa.table(
            {
                "column_1": np.repeat(names, len(names)).tolist(), "column_2": names * len(names),
                "covariance": (made * np.outer(units, units)).ravel(),
            }
        )  # fmt: skip

    return Rows(make)


def plan_dp_mean_test(
    session: Session, text: str | None, by: str | None, groups: list[str] | None, columns: list[str] | None,
    bounds: str | None, epsilon: float | None, alpha: float | None, rounds: int | None, mode: str | None,
    correction: str | None, unequal: bool | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_mean_test``: two groups that are named, since which there are is data."""
    call = _Call.read(session, text, columns, bounds, nulls)
    label = call.relation.column(needed(by, "by", "name the column of the two groups"), "by")
    labels = list(needed(groups, "groups", "name the two groups that are compared"))
    if len(labels) != 2 or None in labels or labels[0] == labels[1]:
        raise wrong("groups", "name two groups, such as ['treated', 'control']")
    cost, _ = costs(epsilon)
    level = share(alpha, "alpha", zero=False, one=False)
    repeats = whole(rounds, "rounds", least=1, most=_MOST_ROUNDS)
    if critical_index(repeats, level) < 1:
        raise wrong("rounds", "be larger", f"of {repeats} statistics none is the critical value at alpha := {level:g}")
    how, added = choice(mode, "mode", MODES), choice(correction, "correction", CORRECTIONS)
    different = truth(unequal, "unequal")
    what = f"test of means of {call.named}, two groups of {by}, {how}"

    def make() -> pa.Table:
        charge = Charge(session, [call.relation], "replace", what, cost)
        with reads(session.cursor()) as cursor:
            found = moments_of(cursor, call.relation, call.columns, call.nulls, group=f"{label}::VARCHAR")
        first, second = (enough(found.get(one), 2, " in one of the groups") for one in labels)
        charge.write()
        test = private_mean_test(
            first, second, cost, Released(), np.random.default_rng(), alpha=level, rounds=repeats, mode=how,
            correction=added, unequal=different, check=checkpoint(),
        )  # fmt: skip
        units, centres = (np.array([getattr(column, what) for column in call.columns]) for what in ("unit", "centre"))
        means = [(mean * units + centres).tolist() for mean in test.means]
        return pa.table(
            {
                "d": [len(units)], "n1": [first.n], "n2": [second.n], "epsilon": [cost], "t2": [test.t2],
                "critical_value": [test.critical], "p_value": [test.p], "reject": [test.reject],
                "p_asymptotic": [test.p_asymptotic], "mean1": means[:1], "mean2": means[1:],
            }
        )  # fmt: skip

    return Rows(make)


PLANNERS = planners(plan_dp_mean, plan_dp_covariance, plan_dp_mean_test)
