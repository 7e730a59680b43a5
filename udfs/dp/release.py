"""Counts, sums and means of one source, released together: ``sdc_dp_release``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.allocation import Allocation
from sdcduck.methods.dp.noise import KEPT, step_of, with_noise
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import choice, is_finite, share, struct, wrong
from sdcduck.udfs.conditions import check_reads_columns_only
from sdcduck.udfs.dp.arguments import Floats, Given, Purpose, check_library, cost, numbers
from sdcduck.udfs.dp.ledger import NEIGHBOURS, Charge
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

_WIDEST = 1e150
"""A bound may be as far from 0: sums of such values are numbers still."""


@dataclass(frozen=True)
class Statistic:
    """One number of the release: the sum over the records of something that lies between two bounds, or its mean.

    Attributes:
        name: as the result has it.
        value: SQL of a record's part, from 0 to the width or, where the number of records is no public one, between
            the bounds; in units of the statistic. Of a count: the condition.
        offset: what each record has beside that part.
        width: by how much the sum changes at most between neighbours.
        mean: whether it is divided by the number of records.
        count: whether it is a count.
    """

    name: str
    value: str
    offset: float = 0.0
    width: float = 1.0
    mean: bool = False
    count: bool = False

    def total(self, step: float) -> str:
        """SQL of the sum in whole steps, and of a count as it is; exact, in any order of the records."""
        if self.count:
            # A condition that fails for some record would tell of it by its error.
            return f"(count(*) FILTER (TRY(({self.value}))))::VARCHAR"
        return f"coalesce(sum((({self.value}) / {step!r}::DOUBLE)::BIGINT), 0)::VARCHAR"

    def steps(self, total: str, step: float) -> int:
        """The sum in whole steps, from what `total` gave."""
        return int(total) * (int(1 / step) if self.count else 1)

    def of(self, steps: int, step: float, records: int) -> float:
        """The number, of a sum in steps; rounded once."""
        total = Fraction(step) * steps
        if self.mean:
            return float(Fraction(self.offset) + total / records)
        return float(Fraction(self.offset) * records + total)


def bounds_of(given: Mapping[str, Any], name: str) -> tuple[float, float]:
    """The bounds of a column, which everybody may know.

    Raises:
        SDCError: there are none, or they are none.
    """
    pair = next((pair for known, pair in given.items() if folded(known) == folded(name)), None)
    example = f"{{'{name}': [0, 100]}}"
    if pair is None:
        raise wrong(
            "bounds",
            f"say between which numbers '{name}' counts, such as {example}",
            "they are known to everybody, and never taken from the data",
        )
    if not isinstance(pair, list) or len(pair) != 2 or not all(is_finite(one) for one in pair):
        raise wrong("bounds", f"hold two numbers for '{name}', the lowest and the highest, such as {example}")
    low, high = map(float, pair)
    if low > high:
        raise wrong("bounds", f"hold the lowest number of '{name}' before the highest, such as {example}")
    if max(abs(low), abs(high)) > _WIDEST:
        raise wrong("bounds", f"hold numbers for '{name}' whose sums are numbers, up to {_WIDEST:g}")
    return low, high


def clipped(column: str, low: float, high: float, instead: float) -> str:
    """SQL of a column between its bounds; what is no number is ``instead``.

    >>> clipped('"x"::DOUBLE', 0.0, 5.0, 2.5).replace("::DOUBLE", "")
    'CASE WHEN "x" BETWEEN 0.0 AND 5.0 THEN "x" WHEN "x" < 0.0 THEN 0.0 WHEN "x" > 5.0 AND NOT isnan("x") THEN 5.0 ELSE 2.5 END'
    """  # noqa: E501
    least, most, other = (f"{number!r}::DOUBLE" for number in (low, high, instead))  # or they are decimals, and slow
    return (
        f"CASE WHEN {column} BETWEEN {least} AND {most} THEN {column} WHEN {column} < {least} THEN {least} "
        f"WHEN {column} > {most} AND NOT isnan({column}) THEN {most} ELSE {other} END"
    )


def default_of(given: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """What stands for a NULL or NaN of a column: a public number, the middle of the bounds if nothing is said."""
    value = next((value for known, value in given.items() if folded(known) == folded(name)), None)
    if value is None:
        return low / 2 + high / 2
    if not is_finite(value) or not low <= value <= high:
        raise wrong("defaults", f"hold a number within the bounds for '{name}'")
    return float(value)


def check_named(given: Mapping[str, Any], argument: str, used: set[str]) -> None:
    """That a struct names only columns that are released.

    Raises:
        SDCError: it names another one.
    """
    for name in given:
        if folded(name) not in used:
            raise SDCError(f"argument '{argument}' names '{name}', of which no sum and no mean is released")


@dataclass(frozen=True)
class _Call:
    """A checked call."""

    relation: Source
    statistics: list[Statistic]
    epsilon: float
    delta: float
    purpose: Purpose
    expected: Floats
    neighbours: str
    confidence: float

    @property
    def what(self) -> str:
        """As the ledger has it."""
        names = ", ".join(one.name for one in self.statistics)
        return f"normal noise, objective '{self.purpose.objective}': {names}"

    def shared(self, records: int) -> Allocation:
        """How the noise is shared, if there are so many records."""
        changes = [one.width / records if one.mean else one.width for one in self.statistics]
        return self.purpose.share(np.array(changes), self.epsilon * KEPT, self.delta * KEPT)


def _counted(cursor: duckdb.DuckDBPyConnection, relation: Source, condition: str | None) -> Statistic:
    """How many records a condition holds for."""
    if condition is None:
        raise SDCError("argument 'counts' holds a NULL")
    columns = list(relation.columns)
    check_reads_columns_only(cursor, condition, columns, "counts")
    relation.check_condition(cursor, condition, columns, "argument 'counts' must hold conditions")
    return Statistic(f"count({condition})", condition, count=True)


def _statistics(
    cursor: duckdb.DuckDBPyConnection, relation: Source, asked: Mapping[str, list[str] | None], bounds: str | None,
    defaults: str | None, neighbours: str,
) -> list[Statistic]:  # fmt: skip
    """The numbers in their order: counts, sums, means."""
    declared = struct(bounds, "bounds", "{'income': [0, 10000]}")
    instead = struct(defaults, "defaults", "{'income': 0}")
    used = {folded(name) for argument in ("sums", "means") for name in asked[argument] or () if name is not None}
    check_named(declared, "bounds", used)
    check_named(instead, "defaults", used)
    if asked["means"] and neighbours == "add_remove":
        raise SDCError(
            "argument 'means' needs neighbours := 'replace', under which the number of records is public: else release "
            "the sum and the number of records, as in counts := ['true']"
        )
    found = [_counted(cursor, relation, condition) for condition in asked["counts"] or ()]
    for argument in ("sums", "means"):
        for name in asked[argument] or ():
            column = relation.number(name, argument)
            low, high = bounds_of(declared, name)
            value = clipped(f"{column}::DOUBLE", low, high, default_of(instead, name, low, high))
            shown = f"{'avg' if argument == 'means' else 'sum'}({name})"
            if neighbours == "replace":
                found.append(Statistic(shown, f"({value}) - {low!r}::DOUBLE", low, high - low, argument == "means"))
            else:
                found.append(Statistic(shown, value, 0.0, max(abs(low), abs(high))))
    if not found:
        raise SDCError("one of the arguments 'counts', 'sums' and 'means' must name something to release")
    if not any(one.width for one in found):
        raise wrong("bounds", "leave room for the values", "what lies between equal bounds is known without the data")
    return found


def plan_dp_release(
    session: Session, text: str | None, counts: list[str] | None, sums: list[str] | None, means: list[str] | None,
    bounds: str | None, epsilon: float | None, delta: float | None, objective: str | None, weights: Given, eta: Given,
    expected: Given, defaults: str | None, neighbours: str | None, confidence: float | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_release``: a row a number, made when the statement runs."""
    spent = cost(epsilon, delta)
    relation_of = choice(neighbours, "neighbours", NEIGHBOURS)
    held = share(confidence, "confidence", zero=False, one=False)
    check_library()
    with session.cursor() as cursor:
        relation = source(cursor, text, "source")
        asked = {"counts": counts, "sums": sums, "means": means}
        found = _statistics(cursor, relation, asked, bounds, defaults, relation_of)
    purpose = Purpose.read(objective, weights, eta, len(found))
    against = numbers(expected, "expected", len(found))
    if against is not None and purpose.eta is None:
        raise SDCError("argument 'expected' is for a test: say by argument 'eta' what the alternative is")
    call = _Call(
        relation, found, *spent, purpose, np.zeros(len(found)) if against is None else against, relation_of, held
    )
    call.shared(1)  # what it says of `eta` does not depend on the data

    def make() -> pa.Table:
        # All of it is charged, also the part that pays for the grid.
        charge = Charge(session, [relation], relation_of, call.what, *spent, call.shared(1).ratio)
        return _released(session, call, charge)

    return Rows(make)


def _released(session: Session, call: _Call, charge: Charge) -> pa.Table:
    """The numbers with their noise: read, charged, and only then drawn."""
    with reads(session.cursor()) as cursor:
        cursor.begin()  # the number of records and the sums are of one moment
        records = 0
        if call.neighbours == "replace":
            records = int(cursor.execute(f"SELECT count(*) FROM {call.relation.sql}").fetchall()[0][0])
        if not records and any(one.mean for one in call.statistics):
            raise SDCError(f"{call.relation.described} has no records, and nothing has a mean")
        shared = call.shared(max(records, 1))
        noise = shared.deviations
        asked = [place for place, one in enumerate(call.statistics) if one.width and math.isfinite(noise[place])]
        # The noise of a mean is that of its sum, divided by the number of records.
        of_sums = {place: noise[place] * (records if call.statistics[place].mean else 1) for place in asked}
        steps = {place: step_of(call.statistics[place].width, of_sums[place]) for place in asked}
        columns = ", ".join(call.statistics[place].total(steps[place]) for place in asked)
        totals = cursor.execute(f"SELECT {columns} FROM {call.relation.sql}").fetchall()[0]
    charge.write()
    # Rounding to steps may move the ends of a range by half a step each.
    widening = {place: 1 + steps[place] / call.statistics[place].width for place in asked}
    sums = [call.statistics[place].steps(total, steps[place]) for place, total in zip(asked, totals, strict=True)]
    drawn = with_noise(sums, [of_sums[place] / steps[place] * widening[place] for place in asked])
    made = dict(zip(asked, drawn, strict=True))
    estimates: list[float | None] = []
    for place, one in enumerate(call.statistics):
        known = not one.width
        estimates.append(one.of(made.get(place, 0), steps.get(place, 1.0), records) if known or place in made else None)
    return _table(call, shared, estimates)


def _table(call: _Call, shared: Allocation, estimates: list[float | None]) -> pa.Table:
    """The rows that the user sees: all of it follows from noisy numbers and from what is public."""
    moved = np.array([math.nan if value is None else value for value in estimates]) - call.expected
    p_value = None if call.purpose.eta is None else shared.p_value(call.purpose.eta, moved)
    whole = bool(np.isfinite(shared.deviations).all())
    rows = []
    for place, (one, estimate) in enumerate(zip(call.statistics, estimates, strict=True)):
        known = estimate is not None
        half = float(shared.half_widths(call.confidence)[place])
        xi = float(shared.xi[place])
        rows.append(
            {
                "statistic": one.name,
                "estimate": estimate,
                "noise_sd": float(shared.deviations[place]) if known else None,
                "ci_low": None if estimate is None else estimate - half,
                "ci_high": None if estimate is None else estimate + half,
                "half_axis": float(shared.half_axes(call.confidence)[place]) if whole else None,
                "sensitivity": float(shared.sensitivities[place]),
                "xi": None if math.isnan(xi) else xi,
                "sigma": shared.sigma,
                "p_value": p_value,
            }
        )
    return table_of(rows, PLANNERS[0].columns)


PLANNERS = planners(plan_dp_release)
