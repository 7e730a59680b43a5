"""Several measures at once, and where they contradict each other: ``sdc_utility_profile``.

Drechsler (2022), "Challenges in measuring utility for fully synthetic data", PSD: no single number tells utility.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.utility.propensity import Tree
from sdcduck.methods.utility.tables import table_measures
from sdcduck.udfs.arguments import whole
from sdcduck.udfs.utility.columns import Compared
from sdcduck.udfs.utility.measures import (
    LIKELY,
    MOST_PERMUTATIONS,
    check_groups,
    column_row,
    joint,
    pmse_row,
    roc_row,
    table_of,
    threads_of,
)
from sdcduck.udfs.utility.records import Column, columns_of, special_values

_CONTRADICTION = 3.0
_GOOD, _BAD, _FAR = 3.0, 30.0, 0.1
_MOST_PARAMETERS = 400

PROFILE_COLUMNS = {
    "family": "VARCHAR", "measure": "VARCHAR", "value": "DOUBLE", "target": "DOUBLE", "column_names": "VARCHAR",
    "warning": "VARCHAR",
}  # fmt: skip


def plan_utility_profile(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, groups: int | None,
    permutations: int | None, categorical: list[str] | None, special: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_utility_profile``."""
    compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)
    number, codes, start = check_groups(groups), special_values(special, compared), seed or 0
    times = whole(permutations, "permutations", least=2, most=MOST_PERMUTATIONS)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            threads, found = threads_of(cursor), columns_of(cursor, compared, compared.open(cursor), codes)
        if not all(len(side) for side in found[0].values):
            return table_of([], PROFILE_COLUMNS)
        types = [compared.sides[0].type_of(column.name) for column in found]
        single = _single(found, types, number)
        models = _models(found, times, start, threads)
        return table_of([*_contradicted(models, single), *single, *_pairs(found, number)], PROFILE_COLUMNS)

    return Rows(make)


def _row(family: str, measure: str, value: object, target: float | None, of: str | None = None,
         warning: object = None) -> dict[str, object]:  # fmt: skip
    return {
        "family": family,
        "measure": measure,
        "value": value,
        "target": target,
        "column_names": of,
        "warning": warning,
    }


def _models(columns: Sequence[Column], permutations: int, seed: int, threads: int) -> list[dict[str, object]]:
    """Propensity models of several kinds."""
    rows = []
    widths = [sum(term.width for term in column.terms()) for column in columns]
    for interactions, name in ((0, "logit"), (1, "logit with products of two")):
        parameters = 1 + sum(widths) + interactions * sum(a * b for a, b in combinations(widths, 2))
        if parameters <= _MOST_PARAMETERS or not interactions:
            found = pmse_row(columns, None, interactions, "analytic", permutations, seed, threads)
            rows.append(_row("global", f"pmse_ratio, {name}", found["pmse_ratio"], 1.0, None, found["warning"]))
    found = pmse_row(columns, Tree(1e-4), 0, "permutation", permutations, seed, threads)
    rows.append(_row("global", "pmse_ratio, tree", found["pmse_ratio"], 1.0, None, found["warning"]))
    rows.append(_row("global", "specks, tree", found["specks"], None))
    return rows


def _single(columns: Sequence[Column], types: Sequence[str], groups: int | None) -> list[dict[str, object]]:
    """The worst columns."""
    found = [column_row(column, groups, sql_type) for column, sql_type in zip(columns, types, strict=True)]
    rows = []
    for measure, target in (("pmse_ratio", 1.0), ("ks", 0.0)):
        known = [(row[measure], row) for row in found if row[measure] is not None]
        if known:
            worst, row = max(known, key=lambda pair: float(pair[0]))  # type: ignore[arg-type]
            shown = _row("columns", f"{measure}, worst", worst, target, str(row["column_name"]))
            limit = _BAD if measure == "pmse_ratio" else _FAR
            by_chance = measure == "ks" and float(row["ks_p"]) > LIKELY  # type: ignore[arg-type]
            rows.append(shown | {"bad": float(worst) > limit and not by_chance})  # type: ignore[arg-type]
    for row in found:
        if row["warning"]:
            rows.append(_row("columns", "plausibility", None, None, str(row["column_name"]), row["warning"]))
    return rows


def _pairs(columns: Sequence[Column], groups: int | None) -> list[dict[str, object]]:
    """All pairs of columns."""
    grouped = [column.grouped(groups) for column in columns]
    names = [column.name for column in columns]
    if len(names) < 2:
        return []
    chosen = list(combinations(range(len(names)), 2))
    measures = [table_measures(*joint([grouped[a], grouped[b]])) for a, b in chosen]
    ratios = [one.pmse_ratio if one.pmse_ratio is not None else 0.0 for one in measures]
    a, b = chosen[int(np.argmax(ratios))]
    roc = [roc_row([grouped[first], grouped[second]])["roc"] for first, second in chosen]
    return [
        _row("pairs", "pmse_ratio, mean", float(np.mean(ratios)), 1.0),
        _row("pairs", "pmse_ratio, worst", max(ratios), 1.0, f"{names[a]} x {names[b]}"),
        _row("pairs", "total variation, mean", float(np.mean([one.tvd or 0.0 for one in measures])), 0.0),
        _row("pairs", "ratio of counts, mean", float(np.mean([float(value) for value in roc])), 1.0),  # type: ignore[arg-type]
    ]


def _contradicted(models: list[dict[str, object]], single: list[dict[str, object]]) -> list[dict[str, object]]:
    """The models, the first of them with what contradicts it."""
    ratios = [float(row["value"]) for row in models if row["target"] == 1.0 and row["value"] is not None]  # type: ignore[arg-type]
    told = [str(models[0]["warning"])] if models and models[0]["warning"] else []
    if ratios and max(max(ratios), 1.0) > _CONTRADICTION * max(min(ratios), 1.0):
        told.append(f"the models disagree by a factor of more than {_CONTRADICTION:.0f}")
    bad = [str(row["column_names"]) for row in single if row.get("bad")]
    if ratios and min(ratios) < _GOOD and bad:
        told.append(f"a model looks good, and single columns are bad: {', '.join(dict.fromkeys(bad))}")
    return [{**models[0], "warning": "; ".join(told) or None}, *models[1:]] if models else []


PLANNERS = (*planners(plan_utility_profile),)  # fmt: skip
