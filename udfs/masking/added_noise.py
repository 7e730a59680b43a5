"""Noise on numbers of records: the planner behind ``sql/add_noise_tables.sql``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.keyed import Identities, lots, normals
from sdcduck.methods.masking.noise import (
    METHODS,
    SINGLE,
    explained,
    outlying,
    rotated,
    spreads,
    with_correlated_noise,
    with_kept_covariances,
    with_kept_moments,
    with_redrawn_residuals,
    within_bounds,
)
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, is_finite, needed, number, share, struct, wrong
from sdcduck.udfs.masking.keyed import Masked, held, masked, numbers_of, numbers_shown, shown
from sdcduck.udfs.masking.records import there_are
from sdcduck.udfs.source import source

Matrix = NDArray[np.float64]

_LARGEST = 1e150
_EXAMPLE_BOUNDS = "such as {'age': [0, 120], 'income': [0, NULL]}"


@dataclass(frozen=True)
class _Noise:
    """Which noise; ``sd`` and ``bounds`` by the column, in the order of the call, where they were given."""

    method: str
    share: float
    sd: tuple[float, ...] | None
    bounds: dict[int, tuple[float, float]]


def plan_add_noise(
    session: Session, text: str | None, columns: list[str] | None, method: str | None, noise: float | None,
    sd: str | None, bounds: str | None, id: str | None, nulls: str | None, seed: int | None,
    predictors: list[str] | None,
) -> Rows:  # fmt: skip
    """``sdc_add_noise``: standard normal numbers of each record and column, made into the noise of the method."""
    relation = source(session.cursor(), text, "source")
    chosen = choice(method, "method", METHODS)
    numbers = needed(columns, "columns", "name the columns of numbers")
    call = masked(relation, numbers, id, nulls, seed, together=chosen != "additive")
    for name in call.names:
        relation.number(name, "columns")
    kept = _predictors(call, predictors, chosen)
    usual = 1.0 if chosen == "ipso" else 0.1
    wanted = _Noise(
        chosen,
        usual if noise is None else share(noise, "noise", zero=False, why="a share of the standard deviation"),
        _deviations(call, sd), _bounds(call, bounds),
    )  # fmt: skip
    if wanted.sd and wanted.method not in SINGLE:
        raise SDCError("argument 'sd' is for method := 'additive' and 'outdect'")
    if wanted.sd and noise is not None:
        raise SDCError("give 'noise' or 'sd', and not both")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            expressions = [*(identifier(name) for name in call.names), *kept]
            found = held(cursor, call, expressions, exact=True)
        count = len(call.names)
        values, others = found.values[:, :count].copy(), found.values[:, count:]
        if (np.abs(found.values[~found.missing]) > _LARGEST).any() or max(wanted.sd or (0.0,)) > _LARGEST:
            raise SDCError(f"numbers of a column, or 'sd', are beyond {_LARGEST:g}: their squares are none")
        if wanted.method == "additive":
            drawn = _drawn(session, call, found.known)
            values += drawn * _scales(wanted, values)
        for rows, known in found.alike(call) if wanted.method != "additive" else ():
            there = known[:count]
            if len(rows) and there.any():
                part = np.ix_(rows, there)
                some = replace(call, names=tuple(compress(call.names, there)))
                law = replace(wanted, sd=wanted.sd and tuple(compress(wanted.sd, there)))
                beside = others[np.ix_(rows, known[count:])]
                values[part] = _noisy(session, some, law, values[part], found.known.some(rows), beside)
        # What was not changed may lie outside.
        moved = values != found.values[:, :count]
        for place, (low, high) in wanted.bounds.items():
            values[:, place] = np.where(moved[:, place], within_bounds(values[:, place], low, high), values[:, place])
        return numbers_of(values, found.missing[:, :count])

    return Rows(make, shown(call, numbers_shown(call)))


def _drawn(session: Session, call: Masked, known: Identities) -> Matrix:
    """A standard normal number of each record for each column, which depends on nothing else."""
    return np.column_stack([normals(known, call.stream(session, "noise", name)) for name in call.names])


def _scales(wanted: _Noise, values: Matrix) -> Matrix:
    return np.array(wanted.sd) if wanted.sd else wanted.share * spreads(values)


def _predictors(call: Masked, names: list[str] | None, method: str) -> list[str]:
    """SQL of the columns of numbers that explain others; the answer does not depend on how they are listed."""
    if names and method != "ipso":
        raise SDCError("argument 'predictors' is for method := 'ipso'")
    kept = call.relation.named(names, "predictors")
    for name in kept:
        call.relation.number(name, "predictors")
        if name in call.names:
            raise SDCError(f"column '{name}' is one of those that are changed, and can not be in 'predictors'")
    return [identifier(name) for name in sorted(kept, key=folded)]


def _noisy(session: Session, call: Masked, wanted: _Noise, values: Matrix, known: Identities, others: Matrix) -> Matrix:
    """Records without NULL after the noise of a method that looks at all of them together."""
    n, p = values.shape
    explained = others.shape[1] + (p if wanted.share == 1 else 2 * p) + 2
    least = {"restricted": 2 * p + 2, "ipso": explained, "romm": 3, "outdect": 2}.get(wanted.method, 2)
    if n < least:
        there = there_are(n)
        raise SDCError(f"{there}, fewer than the {least} that method := '{wanted.method}' needs")
    if wanted.method == "romm":
        stream = call.stream(session, "rotation")
        order = lots(known, stream)
        return rotated(values, order, lambda draw: normals(known, stream, draw + 1), wanted.share, shown_checkpoint())
    drawn = _drawn(session, call, known)
    if wanted.method == "outdect":
        return values + np.where(outlying(values)[:, None], drawn * _scales(wanted, values), 0.0)
    if wanted.method == "ipso":
        _check_unexplained(call, values, others)
        return with_redrawn_residuals(values, others, drawn, wanted.share)
    makes = {
        "correlated": with_correlated_noise, "correlated2": with_kept_covariances, "restricted": with_kept_moments,
    }  # fmt: skip
    return makes[wanted.method](values, drawn, wanted.share)


def _check_unexplained(call: Masked, values: Matrix, others: Matrix) -> None:
    """Refuse predictors that leave nothing to be drawn anew: such values would stay what they are.

    Raises:
        SDCError: of some records, or of a column.
    """
    records, columns = explained(values, others)
    if columns.any():
        name = next(compress(call.names, columns))
        raise SDCError(f"column '{name}' follows from 'predictors', and would stay as it is: leave some of these out")
    if records.any():
        raise SDCError(
            f"'predictors' alone explain the numbers of {int(records.sum())} of {len(values)} records, which would "
            "stay as they are: put categories with one record together, or leave predictors out"
        )


def _by_column(call: Masked, text: str | None, argument: str, example: str) -> dict[int, object]:
    """What a struct says of columns, by their places in the call."""
    given = struct(text, argument, example)
    names = call.relation.named(list(given), argument)
    for name in names:
        if name not in call.names:
            raise SDCError(f"argument '{argument}' names column '{name}', which is none of those that are changed")
    return {call.names.index(name): value for name, value in zip(names, given.values(), strict=True)}


def _deviations(call: Masked, text: str | None) -> tuple[float, ...] | None:
    """The standard deviations of the noise in the units of the columns."""
    given = _by_column(call, text, "sd", "{'income': 500}")
    if not given:
        return None
    if len(given) < len(call.names):
        raise wrong("sd", "have one number for each of the columns")
    return tuple(number(given[place], "sd", above=0) for place in range(len(call.names)))


def _bounds(call: Masked, text: str | None) -> dict[int, tuple[float, float]]:
    """Between which numbers columns stay, by their places."""
    found = {}
    for place, pair in _by_column(call, text, "bounds", _EXAMPLE_BOUNDS).items():
        if not isinstance(pair, list) or len(pair) != 2 or not all(one is None or is_finite(one) for one in pair):
            raise wrong("bounds", f"give two numbers for a column, or NULL for none, {_EXAMPLE_BOUNDS}")
        low, high = (-math.inf if pair[0] is None else pair[0]), (math.inf if pair[1] is None else pair[1])
        if not low < high:
            raise wrong("bounds", "give the lower one first")
        found[place] = (float(low), float(high))
    return found


PLANNERS = (planner(plan_add_noise, {"place": "BIGINT", "numbers": "DOUBLE[]"}),)
