"""Samples of the original as a yardstick: ``sdc_sample_curve`` and ``sdc_sample_equivalence``.

Little, Elliot and Allmendinger (2022), "Comparing the utility and disclosure risk of synthetic data with samples of
microdata", PSD.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.utility.coefficients import compared_coefficients
from sdcduck.methods.utility.intervals import equivalent_sample, marginal_tcap
from sdcduck.methods.utility.logit import Fit
from sdcduck.udfs.arguments import among, choice, each_share, whole
from sdcduck.udfs.compared import COMPARED
from sdcduck.udfs.utility.columns import Compared
from sdcduck.udfs.utility.measures import check_groups, read_columns, roc_row, table_of
from sdcduck.udfs.utility.records import Column, Grouped
from sdcduck.udfs.utility.regression import FAMILIES, Regression, regression_of

_METRICS = ("roc1", "roc2", "cio", "utility", "tcap")
_UTILITY = ("roc1", "roc2", "cio")
_FRACTIONS = (
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.96, 0.97,
    0.98, 0.99,
)  # fmt: skip
_FEWEST_KEYS = 3
_QUANTILE = 1.96
_UNEVEN = 0.02

Places = NDArray[np.int64]

CURVE_COLUMNS = {"fraction": "DOUBLE", "metric": "VARCHAR", "repeats": "BIGINT", "mean": "DOUBLE", "sd": "DOUBLE"}
EQUIVALENCE_COLUMNS = {
    "metric": "VARCHAR", "value": "DOUBLE", "lower": "DOUBLE", "upper": "DOUBLE", "interpolated": "DOUBLE",
    "violation": "DOUBLE", "warning": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class _Call:
    compared: Compared
    metrics: tuple[str, ...]
    fractions: tuple[float, ...]
    repeats: int
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    outcomes: tuple[str, ...]
    predictors: tuple[str, ...]
    binomial: bool
    groups: int | None
    seed: int

    @classmethod
    def read(
        cls, session: Session, original: str | None, synthetic: str | None, columns: list[str] | None,
        metrics: list[str] | None, keys: list[str] | None, sensitive: list[str] | None, outcomes: list[str] | None,
        predictors: list[str] | None, family: str | None, fractions: list[float] | None, repeats: int | None,
        groups: int | None, categorical: list[str] | None, seed: int | None,
    ) -> _Call:  # fmt: skip
        binomial = choice(family, "family", FAMILIES) == "binomial"
        times = whole(repeats, "repeats", least=1, most=10_000)
        drawn = each_share(fractions or _FRACTIONS, "fractions", zero=False, one=False)
        if bool(keys) != bool(sensitive):
            raise SDCError(
                "arguments 'keys' and 'sensitive' belong together: what is known of a person, and what is not"
            )
        if bool(outcomes) != bool(predictors):
            raise SDCError("arguments 'outcomes' and 'predictors' belong together")
        compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)

        def named(names: list[str] | None, argument: str) -> tuple[str, ...]:
            return tuple(compared.names[place] for place in among(names, argument, compared.names, COMPARED))

        possible = [
            metric
            for metric in _METRICS
            if (metric != "cio" or outcomes)
            and (metric != "tcap" or keys)
            and (metric != "roc2" or len(compared.names) > 1)
        ]
        for metric in metrics or []:
            if choice(metric, "metrics", _METRICS, each=True) and metric not in possible:
                needed = {"cio": "'outcomes' and 'predictors'", "tcap": "'keys' and 'sensitive'"}.get(
                    metric, "two columns"
                )
                raise SDCError(f"metric '{metric}' needs {needed}")
        return cls(
            compared, tuple(metric for metric in possible if not metrics or metric in metrics),
            tuple(sorted(set(drawn))), times, named(keys, "keys"), named(sensitive, "sensitive"),
            named(outcomes, "outcomes"), named(predictors, "predictors"), binomial, check_groups(groups),
            seed or 0,
        )  # fmt: skip


class _Measured:
    """The metrics of files beside the original: the synthetic one, and samples of the original."""

    def __init__(self, call: _Call, columns: Sequence[Column]) -> None:
        self._call = call
        self._columns = {column.name: column for column in columns}
        self._roc = [column.grouped(call.groups) for column in columns]
        self._coded = {column.name: column.grouped(None) for column in columns}
        self.rows = len(columns[0].values[0])
        self._models: list[tuple[Regression, Fit | None]] = []
        places = {column.name: place for place, column in enumerate(columns)}
        if "cio" in call.metrics or "utility" in call.metrics:
            for outcome in call.outcomes:
                others = [name for name in call.outcomes if name != outcome]
                chosen = [places[name] for name in dict.fromkeys([*call.predictors, *others]) if name != outcome]
                model = regression_of(columns, places[outcome], chosen, call.binomial)
                self._models.append((model, model.fits([[np.flatnonzero(model.known(0))], []])[0][0]))

    def sample(self, chosen: Places) -> dict[str, float]:
        """The metrics of some of the original records."""
        return self._metrics(0, chosen)

    def synthetic(self) -> dict[str, float]:
        """The metrics of the synthetic file."""
        return self._metrics(1, np.arange(len(self._roc[0].codes[1])))

    def _metrics(self, side: int, chosen: Places) -> dict[str, float]:
        def beside(one: Grouped) -> Grouped:
            return Grouped((one.codes[0], one.codes[side][chosen]), one.size)

        wanted, found = self._call.metrics, {}
        roc = [beside(one) for one in self._roc]
        if "roc1" in wanted or "utility" in wanted:
            found["roc1"] = _mean([_share(roc_row([one])) for one in roc])
        if ("roc2" in wanted or "utility" in wanted) and len(roc) > 1:
            found["roc2"] = _mean([_share(roc_row(pair)) for pair in combinations(roc, 2)])
        if self._models:
            found["cio"] = _mean([self._overlap(model, fit, side, chosen) for model, fit in self._models])
        if "utility" in wanted:
            found["utility"] = _mean([found[name] for name in _UTILITY if name in found])
        if "tcap" in wanted:
            found["tcap"] = self._tcap(side, chosen)
        return {name: found[name] for name in wanted}

    def _overlap(self, model: Regression, original: Fit | None, side: int, chosen: Places) -> float:
        places = chosen[model.known(side)[chosen]]
        rows: list[list[Places]] = [[], []]
        rows[side] = [places]
        (fit,) = model.fits(rows)[side]
        found = compared_coefficients(original, [fit], model.names(), ratio=1.0, population=False, quantile=_QUANTILE)
        return _mean([one.cio for one in found[1:] if one.cio is not None])

    def _tcap(self, side: int, chosen: Places) -> float:
        keys = [self._coded[name] for name in self._call.keys]
        found = []
        for target in (self._coded[name] for name in self._call.targets):
            for number in range(min(_FEWEST_KEYS, len(keys)), len(keys) + 1):
                used = keys[:number]
                _, _, above = marginal_tcap(
                    [one.codes[0] for one in used], [one.codes[side][chosen] for one in used], target.codes[0],
                    target.codes[side][chosen], [*(one.size for one in used), target.size],
                )  # fmt: skip
                found.append(math.nan if above is None else above)
        return _mean(found)


def _share(row: dict[str, object]) -> float:
    return math.nan if row["roc"] is None else float(row["roc"])  # type: ignore[arg-type]


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _curve(call: _Call, measured: _Measured) -> list[dict[str, object]]:
    """Means and deviations of the metrics over samples; the samples of a draw are nested."""
    check = shown_checkpoint()
    sizes = [(fraction, math.floor(fraction * measured.rows + 1e-9)) for fraction in call.fractions]
    sizes = [(fraction, size) for fraction, size in sizes if size > 0]
    found: dict[tuple[float, str], list[float]] = {}
    for draw in range(call.repeats):
        order = np.random.default_rng([call.seed % 2**63, draw]).permutation(measured.rows)
        for number, (fraction, size) in enumerate(sizes):
            check(draw * len(sizes) + number, call.repeats * len(sizes))
            for metric, value in measured.sample(np.sort(order[:size])).items():
                found.setdefault((fraction, metric), []).append(value)
    rows = []
    for metric in call.metrics:
        for fraction, _ in sizes:
            values = [value for value in found[fraction, metric] if not math.isnan(value)]
            rows.append({
                "fraction": fraction, "metric": metric, "repeats": len(values), "mean": _mean(values),
                "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            })  # fmt: skip
    return rows


def plan_sample_curve(
    session: Session, original: str | None, columns: list[str] | None, metrics: list[str] | None,
    keys: list[str] | None, sensitive: list[str] | None, outcomes: list[str] | None, predictors: list[str] | None,
    family: str | None, fractions: list[float] | None, repeats: int | None, groups: int | None,
    categorical: list[str] | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_sample_curve``."""
    call = _Call.read(
        session, original, original, columns, metrics, keys, sensitive, outcomes, predictors, family, fractions,
        repeats, groups, categorical, seed,
    )  # fmt: skip

    def make() -> pa.Table:
        return table_of(_curve(call, _Measured(call, read_columns(session, call.compared))), CURVE_COLUMNS)

    return Rows(make)


def plan_sample_equivalence(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None,
    metrics: list[str] | None, keys: list[str] | None, sensitive: list[str] | None, outcomes: list[str] | None,
    predictors: list[str] | None, family: str | None, fractions: list[float] | None, repeats: int | None,
    groups: int | None, categorical: list[str] | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_sample_equivalence``."""
    call = _Call.read(
        session, original, synthetic, columns, metrics, keys, sensitive, outcomes, predictors, family, fractions,
        repeats, groups, categorical, seed,
    )  # fmt: skip

    def make() -> pa.Table:
        columns_read = read_columns(session, call.compared)
        if not all(len(side) for side in columns_read[0].values):
            return table_of([], EQUIVALENCE_COLUMNS)
        measured = _Measured(call, columns_read)
        synthetic_values = measured.synthetic()
        curve = _curve(call, measured)
        return table_of(
            [_equivalent(metric, synthetic_values[metric], curve) for metric in call.metrics], EQUIVALENCE_COLUMNS
        )

    return Rows(make)


def _equivalent(metric: str, value: float, curve: Sequence[dict[str, object]]) -> dict[str, object]:
    points = [
        (float(row["fraction"]), float(row["mean"]))  # type: ignore[arg-type]
        for row in curve
        if row["metric"] == metric and not math.isnan(float(row["mean"]))  # type: ignore[arg-type]
    ]
    row: dict[str, object] = dict.fromkeys(EQUIVALENCE_COLUMNS)
    row |= {"metric": metric, "value": value}
    if not points or math.isnan(value):
        return row | {"warning": "no sample has this measure"}
    fractions, means = (np.array(part) for part in zip(*points, strict=True))
    lower, upper, between, violation = equivalent_sample(fractions, means, value)
    told = []
    if violation > _UNEVEN:
        told.append("the curve falls in places: take more repeats")
    if lower is None:
        told.append("below the smallest sample")
    if upper is None:
        told.append("above the largest sample")
    return row | {
        "lower": lower, "upper": upper, "interpolated": between, "violation": violation,
        "warning": "; ".join(told) or None,
    }  # fmt: skip


PLANNERS = (*planners(plan_sample_curve, plan_sample_equivalence),)
