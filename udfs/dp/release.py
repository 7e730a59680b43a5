"""Counts, sums and means of one source, released together: ``sdc_dp_release``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.allocation import NOISES, Allocation, LaplaceAllocation, is_smaller
from sdcduck.methods.dp.noise import KEPT, LAPLACE_STEPS, LEAST_STEPS, step_of, with_noise
from sdcduck.methods.dp.ratios import Ratio
from sdcduck.quoting import folded, literal
from sdcduck.udfs.arguments import choice, is_finite, needed, share, struct, wrong
from sdcduck.udfs.conditions import check_reads_columns_only
from sdcduck.udfs.dp.arguments import Floats, Given, Purpose, check_library, cost, numbers
from sdcduck.udfs.dp.ledger import NEIGHBOURS, Charge
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

_WIDEST = 1e150
"""A bound may be as far from 0: sums of such values are numbers still."""
_MOST_GROUPS = 100_000
_ALL = "count(*)"
"""The statistic that a mean is divided by, where the number of records is no public one."""


@dataclass(frozen=True)
class Statistic:
    """One number of the release: the sum over the records of something that lies between two bounds, or its mean.

    Attributes:
        name: as the result has it.
        value: SQL of a record's part, from 0 to the width or, where the number of records is no public one, between
            the bounds; in units of the statistic. Of a count: the condition.
        offset: what each record has beside that part.
        width: by how much one record's part changes it at most.
        change: by how much the sum, or those of all groups as root of the sum of squares, changes between neighbours.
        absolute: the same as sum of absolute values.
        mean: whether it is divided by the public number of records.
        count: whether it is a count.
        centre: of a mean that is divided by a noisy number of records, the middle of the bounds: the sum is about it.
    """

    name: str
    value: str
    offset: float = 0.0
    width: float = 1.0
    change: float = 1.0
    absolute: float = 1.0
    mean: bool = False
    count: bool = False
    centre: float | None = None

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
class Groups:
    """The groups that are released separately: named, and one more for records of any other value.

    Attributes:
        column: SQL of the column that says in which group a record is; empty: all records are one group.
        name: of the column.
        labels: of the groups; None is that of the others.
    """

    column: str = ""
    name: str = ""
    labels: tuple[str | None, ...] = (None,)

    @classmethod
    def read(cls, relation: Source, by: str | None, groups: list[str] | None) -> Groups:
        """Of the arguments ``by`` and ``groups``.

        Raises:
            SDCError: one is given without the other, or they name no groups.
        """
        if by is None:
            if groups:
                raise SDCError("argument 'groups' is for 'by', the column that says in which group a record is")
            return cls()
        relation.check_names(list(relation.columns))
        column = relation.column(by, "by")
        labels = list(needed(groups, "groups", "name the groups of 'by': which there are is not taken from the data"))
        if None in labels or len(set(labels)) != len(labels) or len(labels) > _MOST_GROUPS:
            raise wrong("groups", f"name each group once, up to {_MOST_GROUPS:,}, such as ['North', 'South']")
        return cls(column, by, (*labels, None))

    @property
    def described(self) -> str:
        """In the ledger."""
        return f" by {self.name}" if self.column else ""

    def totals(self, relation: Source, columns: str) -> str:
        """SQL of these aggregates for each group that has records, its label before them."""
        if not self.column:
            return f"SELECT NULL, {columns} FROM {relation.sql}"
        known = ", ".join(literal(label) for label in self.labels if label is not None)
        return (
            f"SELECT _sdc_label, {columns} FROM (FROM {relation.sql}) LEFT JOIN "
            f"(SELECT unnest([{known}]) AS _sdc_label) ON {self.column}::VARCHAR = _sdc_label GROUP BY _sdc_label"
        )


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
    by: Groups
    noise: str

    @property
    def what(self) -> str:
        """As the ledger has it."""
        names = ", ".join(one.name for one in self.statistics)
        law = "Laplace" if self.is_laplace else "normal"
        return f"{law} noise, objective '{self.purpose.objective}': {names}{self.by.described}"

    @cached_property
    def is_laplace(self) -> bool:
        """Which noise it is: that follows from the arguments alone. A test is one of normal noise."""
        if self.noise != "least" or self.purpose.eta is not None:
            return self.noise == "laplace"
        return is_smaller(self._laplace(1), self._normal(1))

    def shared(self, records: int) -> Allocation | LaplaceAllocation:
        """How the noise is shared, if there are so many records."""
        return self._laplace(records) if self.is_laplace else self._normal(records)

    def _normal(self, records: int) -> Allocation:
        changes = [one.change / records if one.mean else one.change for one in self.statistics]
        return self.purpose.share(np.array(changes), self.epsilon * KEPT, self.delta * KEPT)

    def _laplace(self, records: int) -> LaplaceAllocation:
        changes = [one.absolute / records if one.mean else one.absolute for one in self.statistics]
        return self.purpose.share_laplace(np.array(changes), self.epsilon * KEPT)

    def charge(self, session: Session) -> Charge:
        """All of it, also the part that pays for the grid. Laplace noise has no delta."""
        spent: tuple[float, float, float | None] = (self.epsilon, 0.0, None)
        if not self.is_laplace:
            spent = (self.epsilon, self.delta, self._normal(1).ratio)
        return Charge(session, [self.relation], self.neighbours, self.what, *spent)


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
    defaults: str | None, neighbours: str, by: Groups,
) -> list[Statistic]:  # fmt: skip
    """The numbers in their order: counts, sums, means; and what means are divided by, if that is no public number."""
    declared = struct(bounds, "bounds", "{'income': [0, 10000]}")
    instead = struct(defaults, "defaults", "{'income': 0}")
    used = {folded(name) for argument in ("sums", "means") for name in asked[argument] or () if name is not None}
    check_named(declared, "bounds", used)
    check_named(instead, "defaults", used)
    # A record that is another one may leave a group and come into another.
    twice = 2.0 if by.column and neighbours == "replace" else 1.0
    moved = math.sqrt(twice)
    known_size = neighbours == "replace" and not by.column
    found = [
        replace(_counted(cursor, relation, condition), change=moved, absolute=twice)
        for condition in asked["counts"] or ()
    ]
    for argument in ("sums", "means"):
        for name in asked[argument] or ():
            column = relation.number(name, argument)
            low, high = bounds_of(declared, name)
            value = clipped(f"{column}::DOUBLE", low, high, default_of(instead, name, low, high))
            shown, wide = f"{'avg' if argument == 'means' else 'sum'}({name})", high - low
            if known_size:
                above = f"({value}) - {low!r}::DOUBLE"
                found.append(Statistic(shown, above, low, wide, wide, wide, mean=argument == "means"))
                continue
            centre = low / 2 + high / 2 if argument == "means" else 0.0
            width = max(abs(low - centre), abs(high - centre))
            change, absolute = (
                width if neighbours == "add_remove" else max(wide, times * width) for times in (moved, twice)
            )
            part = f"({value}) - {centre!r}::DOUBLE" if centre else value
            middle = centre if argument == "means" else None
            found.append(Statistic(shown, part, 0.0, width, change, absolute, centre=middle))
    if not found:
        raise SDCError("one of the arguments 'counts', 'sums' and 'means' must name something to release")
    if not any(one.width for one in found):
        raise wrong("bounds", "leave room for the values", "what lies between equal bounds is known without the data")
    if any(one.centre is not None for one in found):
        found.append(Statistic(_ALL, "true", change=moved, absolute=twice, count=True))
    return found


def plan_dp_release(
    session: Session, text: str | None, counts: list[str] | None, sums: list[str] | None, means: list[str] | None,
    bounds: str | None, epsilon: float | None, delta: float | None, objective: str | None, weights: Given, eta: Given,
    expected: Given, defaults: str | None, neighbours: str | None, confidence: float | None, by: str | None,
    groups: list[str] | None, noise: str | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_release``: a row a number, made when the statement runs."""
    spent = cost(epsilon, delta)
    relation_of = choice(neighbours, "neighbours", NEIGHBOURS)
    law = choice(noise, "noise", NOISES)
    held = share(confidence, "confidence", zero=False, one=False)
    check_library()
    with session.cursor() as cursor:
        relation = source(cursor, text, "source")
        asked = {"counts": counts, "sums": sums, "means": means}
        separately = Groups.read(relation, by, groups)
        found = _statistics(cursor, relation, asked, bounds, defaults, relation_of, separately)
    if found[-1].name == _ALL:
        for argument, value in (("weights", weights), ("eta", eta)):
            if value is not None:
                raise SDCError(
                    f"argument '{argument}' is for counts and sums: with 'by' or neighbours := 'add_remove' a mean is "
                    "one by the other, as the number of records is not public"
                )
    purpose = Purpose.read(objective, weights, eta, len(found))
    if law == "laplace" and purpose.eta is not None:
        raise SDCError("argument 'eta' is for a test, which is one of normal noise")
    against = numbers(expected, "expected", len(found))
    if against is not None and purpose.eta is None:
        raise SDCError("argument 'expected' is for a test: say by argument 'eta' what the alternative is")
    call = _Call(
        relation, found, *spent, purpose, np.zeros(len(found)) if against is None else against, relation_of, held,
        separately, law,
    )  # fmt: skip
    call.shared(1)  # what it says of `eta` does not depend on the data

    def make() -> pa.Table:
        return _released(session, call, call.charge(session))

    return Rows(make)


def _released(session: Session, call: _Call, charge: Charge) -> pa.Table:
    """The numbers with their noise: read, charged, and only then drawn."""
    with reads(session.cursor()) as cursor:
        cursor.begin()  # the number of records and the sums are of one moment
        records = 0
        if call.neighbours == "replace" and not call.by.column:
            records = int(cursor.execute(f"SELECT count(*) FROM {call.relation.sql}").fetchall()[0][0])
        if not records and any(one.mean for one in call.statistics):
            raise SDCError(f"{call.relation.described} has no records, and nothing has a mean")
        shared = call.shared(max(records, 1))
        noise = shared.deviations
        asked = [place for place, one in enumerate(call.statistics) if one.width and math.isfinite(noise[place])]
        # The noise of a mean is that of its sum, divided by the number of records.
        of_sums = {place: noise[place] * (records if call.statistics[place].mean else 1) for place in asked}
        finest = LAPLACE_STEPS if call.is_laplace else LEAST_STEPS
        steps = {place: step_of(call.statistics[place].width, of_sums[place], steps=finest) for place in asked}
        columns = ", ".join(call.statistics[place].total(steps[place]) for place in asked)
        read = {row[0]: row[1:] for row in cursor.execute(call.by.totals(call.relation, columns)).fetchall()}
    charge.write()
    # Rounding to steps may move the ends of a range by half a step each.
    widening = {place: 1 + steps[place] / call.statistics[place].width for place in asked}
    places = [(label, place) for label in call.by.labels for place in asked]
    nobody = dict.fromkeys(call.by.labels, ("0",) * len(asked)) | read
    sums = [
        call.statistics[place].steps(total, steps[place])
        for label in call.by.labels
        for place, total in zip(asked, nobody[label], strict=True)
    ]
    scale = math.sqrt(0.5) if call.is_laplace else 1.0
    scales = [scale * of_sums[place] / steps[place] * widening[place] for _, place in places]
    drawn = with_noise(sums, scales, gaussian=not call.is_laplace)
    made = dict(zip(places, drawn, strict=True))
    rows = []
    widths = _Widths.of(call, shared)
    for label in call.by.labels:
        estimates: list[float | None] = []
        for place, one in enumerate(call.statistics):
            known = not one.width or (label, place) in made
            total = made.get((label, place), 0)
            estimates.append(one.of(total, steps.get(place, 1.0), records) if known else None)
        rows += _rows(call, shared, widths, label, estimates)
    return table_of(rows, PLANNERS[0].columns)


@dataclass(frozen=True)
class _Widths:
    """How far the noise of each number goes: the same in each group."""

    noise: list[float]
    half: list[float]
    axes: list[float] | list[None]
    xi: list[float | None]

    @classmethod
    def of(cls, call: _Call, shared: Allocation | LaplaceAllocation) -> _Widths:
        noise = shared.deviations
        axes: list[float] | list[None] = [None] * len(noise)
        if np.isfinite(noise).all():
            axes = shared.half_axes(call.confidence, len(call.by.labels)).tolist()
        xi: list[float | None] = [None] * len(noise)
        if isinstance(shared, Allocation):
            xi = [None if math.isnan(one) else one for one in shared.xi.tolist()]
        return cls(noise.tolist(), shared.half_widths(call.confidence).tolist(), axes, xi)


def _rows(
    call: _Call, shared: Allocation | LaplaceAllocation, widths: _Widths, label: str | None,
    estimates: list[float | None],
) -> list[dict[str, object]]:  # fmt: skip
    """The rows of a group that the user sees: all of it follows from noisy numbers and from what is public."""
    sigma, p_value = None, None
    if isinstance(shared, Allocation):
        moved = np.array([math.nan if value is None else value for value in estimates]) - call.expected
        sigma, p_value = shared.sigma, None if call.purpose.eta is None else shared.p_value(call.purpose.eta, moved)
    shown = {"category": label, "sigma": sigma, "p_value": p_value, "noise": "laplace" if sigma is None else "normal"}
    rows: list[dict[str, object]] = []
    for place, (one, estimate) in enumerate(zip(call.statistics, estimates, strict=True)):
        row: dict[str, object] = {"statistic": one.name, **shown}
        if one.centre is not None:
            found = Ratio(
                float(estimate or 0), float(estimates[-1] or 0), widths.noise[place], widths.noise[-1], call.is_laplace
            )
            low, high = found.ends(call.confidence, one.width)
            mean = found.estimate(one.width)
            row |= {"ci_low": one.centre + low, "ci_high": one.centre + high}
            if mean is not None:
                row |= {"estimate": one.centre + mean, "noise_sd": found.deviation(mean)}
        else:
            half = widths.half[place]
            row |= {
                "estimate": estimate,
                "noise_sd": None if estimate is None else widths.noise[place],
                "ci_low": None if estimate is None else estimate - half,
                "ci_high": None if estimate is None else estimate + half,
                "half_axis": widths.axes[place],
                "sensitivity": float(shared.sensitivities[place]),
                "xi": widths.xi[place],
            }
        rows.append(row)
    return rows


PLANNERS = planners(plan_dp_release)
