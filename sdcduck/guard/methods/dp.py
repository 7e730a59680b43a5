"""Differential privacy: exact totals of bounded contributions, to which noise is added outside of SQL.

What stands here is the SQL of the totals alone, and what one record can add to each of them. Nobody is answered with
them: a block of this method is a table without rows until its noise is drawn (`sdcduck.guard.releases`), once for a
statement and after it was charged.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Noised, Steps, Total, both, chosen
from sdcduck.guard.methods.carried import FIRST
from sdcduck.guard.methods.checks import Checks
from sdcduck.guard.methods.dp_joined import JoinedPolicy
from sdcduck.guard.methods.dp_pairs import Pair, Side
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from sdcduck.guard.methods import Method

_POSITIONS = 1000  # a quantile is one of so many parts of its bounds
_SHARES = 1000  # and of one part in so many of the records
_STEPS = 24
"""A bound is so many bits of steps: the grid is far finer than the noise, and sums of these are exact as DOUBLE.

Whole numbers up to 2 ** 53 are, in whatever order they are added, and so are the sums of `MOST_AS_DOUBLE` records. To
make them BIGINT first takes as long as all the rest of a sum.
"""
MOST_AS_DOUBLE = 2**28  # of the 2 ** 29 whose sum is exact
_WHOLE = "6755399441055744.0"  # 1.5 * 2 ** 52: beside it there are no fractions
_FINITE = "1.7976931348623157e308"
ROWS = "rows of a unit"
"""What their number is called, which is between 0 and how many are looked at."""
SUM_OF_ROWS = "_sdc_sum_in_any_order"
"""Adds up the rows of a unit."""
_NAME = re.compile(r'"(_f\d+_\d+)"$')


@dataclass(frozen=True)
class DifferentialPrivacy:
    """Counts, and sums, means, variances, correlations and quantiles of measures that have bounds."""

    name: ClassVar[str] = "dp"
    shows: ClassVar[str] = "perturbed"
    words: ClassVar[str] = "differentially private"
    from_cells: ClassVar[bool] = False
    brings_together: ClassVar[bool] = False
    uses_ptables: ClassVar[bool] = False
    clips: ClassVar[bool] = True
    sums: ClassVar[bool] = True
    quantiles: ClassVar[bool] = True
    groups_tell: ClassVar[bool] = False
    needs_all_groups: ClassVar[bool] = False
    checks: ClassVar[type[Checks]] = Checks

    policy: Policy
    weighted: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)
    noised: dict[str, Noised] = field(default_factory=dict, compare=False)
    """What noise is added to, by the name of its column."""

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> DifferentialPrivacy:
        """For a table, or for a subquery that carries the unit along.

        Raises:
            Refused: units have several rows, and it is not declared how many are looked at.
        """
        if (several or not policy.one_row_per_unit) and policy.privacy.contributions == 1:
            raise Refused("SDC081", "several rows of a unit")
        return cls(replace(policy, unit=FIRST) if carried else policy)

    def source(self) -> str:
        """The records, in which values that are not of their domain are missing.

        They are compared as the type that was declared: that cannot fail, whatever type a column has by now.
        """
        if isinstance(self.policy, JoinedPolicy):
            return self.policy.source(lambda policy: DifferentialPrivacy(policy).source())
        privacy = self.policy.privacy
        of = {name: _of_domain(identifier(name), kind, values) for name, kind, values in privacy.domains}
        of |= {name: _between_days(identifier(name), kind, *ends) for name, kind, *ends in privacy.days}
        domains = ", ".join(
            f"CASE WHEN {known} THEN {identifier(name)} END AS {identifier(name)}" for name, known in of.items()
        )
        table = identifier(self.policy.name)
        if self.policy.privacy.contributions > 1:
            return f"(SELECT *{f' REPLACE ({domains})' if domains else ''} FROM {self._looked_at(table)})"
        return f"(SELECT * REPLACE ({domains}) FROM {table})" if domains else table

    def _looked_at(self, table: str) -> str:
        """The rows that are looked at, whatever is asked: of a unit all, or so many of more.

        Which they are follows from a key and from what stands in the rows of this unit, and from nothing else: another
        unit, or the order of storage, would change what this one adds. Rows that look alike are alike. Two others that
        have one hash stand in no order: that is as rare as 2 ** -64, and no matter of privacy. Only the rows of units
        that have more are sorted, which takes long.
        """
        unit, most = identifier(str(self.policy.unit)), self.policy.privacy.contributions
        columns = [identifier(name) for name in (*self.policy.dimensions, *self.policy.measures)]
        by = f"hash({', '.join([literal(self.policy.privacy.declared), *columns])})"
        more = f"(SELECT {unit} FROM {table} GROUP BY {unit} HAVING count(*) > {most})"
        chosen_rows = f"row_number() OVER (PARTITION BY {unit} ORDER BY {by}) <= {most}"
        return (
            f"(SELECT * FROM {table} WHERE NOT {unit} IN {more} "
            f"UNION ALL SELECT * FROM {table} WHERE {unit} IN {more} QUALIFY {chosen_rows})"
        )

    def hidden(self) -> tuple[str, ...]:
        """The unit."""
        return (str(self.policy.unit),)

    def _total(self, sql: str, noised: Noised) -> str:
        column = self.steps.call(sql)
        self.noised[self.name_of(column)] = replace(noised, single=self._single)
        return column

    @property
    def _single(self) -> bool:
        """Whether the rows of each unit were brought together; that it is so is looked at (`drawn`)."""
        return self.policy.one_row_per_unit and self.policy.privacy.contributions > 1

    @staticmethod
    def name_of(column: str) -> str:
        """The name of the column of a total, of its SQL."""
        found = _NAME.search(column)
        assert found is not None
        return found[1]

    def count(self, records: str, condition: str) -> str:
        """The number of records."""
        # CASE would make a column of ones, which takes longer.
        counted = "count(1)" if condition == "true" else f"count_if({condition})"
        return self._total(counted, Noised(0, 1, 1.0, "count"))

    def values(self, value: str, condition: str) -> str:
        """The number of different values: who comes or goes makes it one more or less."""
        return self._total(f"count(DISTINCT {chosen(condition, value)})", Noised(0, 1, 1.0, "count", adds=False))

    def rows(self, records: str, number: str) -> str:
        """The number of rows behind those that units have: of each no more than are looked at."""
        most = self.policy.privacy.contributions
        value = f"CASE WHEN {number} BETWEEN 0 AND {most} THEN {number} WHEN {number} > {most} THEN {most} END"
        return self._total(f"sum({value})", Noised(0, most, 1.0, "count"))

    def different(self, records: str, value: str, condition: str) -> str:
        """The number of different values, whichever unit they belong to."""
        return self.values(value, condition)

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The units; of a table with a row for each, the records."""
        if self.policy.privacy.contributions == 1:
            return self.count(records, condition)
        unit = f"{records}.{identifier(str(self.policy.unit))}"
        noised = Noised(0, 1, 1.0, "count", adds=False, once=True)
        return self._total(f"count(DISTINCT {chosen(condition, unit)})", noised)

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """The sum of values between their bounds, in whole steps of a grid; a missing value is none.

        Raises:
            Refused: the measure has no bounds. They are declared: of the data they would tell of the largest.
        """
        low, high = (-float(least), float(least)) if least else self.ends_of(called)
        value = f"CAST({measure} AS DOUBLE)"
        return Total(self._sum(value, low, high, condition, "sum", called), ends=(low, high))

    def total_between(self, value: str, ends: tuple[float, float], condition: str, called: str) -> Total:
        """The sum of numbers that are between these ends whatever record it is."""
        return Total(self._sum(f"CAST({value} AS DOUBLE)", *ends, condition, "sum", called), ends=ends)

    def ends_of(self, called: str) -> tuple[float, float]:
        """What values of this name are taken to be between.

        Raises:
            Refused: nothing was declared.
        """
        bounds = {folded(name): (ends[0], ends[1]) for name, ends in self.policy.bounds}
        domains = {folded(name): ends for name, ends in self.policy.privacy.ends.items()}
        declared = {ROWS: (0.0, float(self.policy.privacy.contributions)), **domains, **bounds}
        if folded(called) not in declared:
            raise Refused("SDC081", f"a number of '{called}', for which the custodian declared no bounds")
        return declared[folded(called)]

    def _sum(self, value: str, low: float, high: float, condition: str, statistic: str, of: str) -> str:
        """The sum of values in whole steps of a grid: of those that are finite numbers, each between these ends."""
        return self._sum_of_bounded(within_ends(value, low, high), low, high, condition, statistic, of)

    def _sum_of_bounded(
        self, value: str, low: float, high: float, condition: str, statistic: str, of: str
    ) -> str:  # fmt: skip
        """The same of values that are between these ends as they stand, or NULL."""
        steps, step = in_steps(value, low, high)
        noised = Noised(min(0, math.floor(low / step)), max(0, math.ceil(high / step)), step, statistic, of)
        return self._total(f"sum({chosen(condition, steps)})", noised)

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """Of the sums of distances from the middle of the bounds and of their squares; no more than bounds allow."""
        side = self._side(measure, called)
        most, distance, farthest = (side.ends[1] - side.ends[0]) / 2, side.distance, side.farthest
        known = self.known(records, measure, condition)
        total = self._sum_of_bounded(distance, *side.within, condition, "moment", called)
        squares = self._sum_of_bounded(
            f"({distance} * {distance})", 0.0, farthest * farthest, condition, "moment", called
        )
        variance = f"({squares} - {total} * {total} / {known}) / ({known} - 1)"
        largest = f"{most * most!r} * {known} / ({known} - 1)"
        return f"(CASE WHEN {known} > 1 THEN greatest(least({variance}, {largest}), 0) END)"

    def _side(self, measure: str, called: str) -> Side:
        """A measure whose spread is asked for.

        Raises:
            Refused: it has no bounds, or a domain of one value.
        """
        low, high = self.ends_of(called)
        if low == high:
            raise Refused("SDC081", f"the spread of '{called}', of which the custodian declared one value alone")
        # Beyond the bounds a square could overflow, and what is not finite is no value.
        value = within_ends(f"CAST({measure} AS DOUBLE)", low, high)
        return Side(measure, called, (low, high), f"({value} - {(low + high) / 2!r})")

    def pair(self, records: str, name: str, y: tuple[str, str], x: tuple[str, str], condition: str) -> str:
        """A correlation, covariance or number of a regression line of two measures, among records that have both.

        Args:
            name: of the statistic, as DuckDB has it.
            y: the SQL of the first measure, and what the custodian calls it.
            x: the same of the second one.
        """
        for measure, _ in sorted({x, y}):
            condition = both(condition, _finite(measure))
        return Pair(self._side(*y), self._side(*x), _Sums(self, records, condition)).statistic(name)

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered without the name of the measure."""
        raise Refused("SDC081", "a quantile of a dimension: count its groups")

    def quantile_of(self, measure: str, called: str, share: str, condition: str) -> str:
        """A quantile of a column with bounds or a domain."""
        return self.quantile_between(measure, self.ends_of(called), share, condition, called)

    def quantile_between(
        self, value: str, ends: tuple[float, float], share: str, condition: str, called: str
    ) -> str:  # fmt: skip
        """One of the numbers of a grid between the bounds, the likelier the nearer that share of the records is below.

        How well a number fits is the difference of records below and above, each weighted with the other's share: one
        record adds no more to it than the larger weight, and the sum of both where it goes to the other side.
        """
        low, high = ends
        part = Fraction(share).limit_denominator(_SHARES)
        if not 0 < part < 1:
            raise Refused("SDC081", f"a quantile of less than one part in {_SHARES}")
        step, value = (high - low) / _POSITIONS, f"CAST({value} AS DOUBLE)"
        position = f"CAST(round(({within_ends(value, low, high)} - {low!r}) * {1 / step!r}) AS INTEGER)"
        below, above = part.numerator, part.denominator - part.numerator
        noised = Noised(-below, above, step, "quantile", called, adds=False, positions=_POSITIONS + 1, first=low)
        # Two shares of the same records are two columns: the condition, which always holds, tells their texts apart.
        return self._total(f"histogram({chosen(condition, position)}) FILTER (WHERE {float(part)!r} < 1)", noised)

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value that is added up.

        Counted are values between their bounds, where there are any: they are worked out for a sum anyway.
        """
        name = measure.rpartition('."')[2].removesuffix('"')
        bounds = next((ends for called, ends in self.policy.bounds if folded(called) == folded(name)), None)
        if bounds is None:
            return self.count(records, both(condition, _finite(measure)))
        value = within_ends(f"CAST({measure} AS DOUBLE)", *bounds)
        # DuckDB works out once what stands twice, but for what stands in two other conditions.
        counted = value if condition == "true" else chosen(condition, in_steps(value, *bounds)[0])
        return self._total(f"count({counted})", Noised(0, 1, 1.0, "count"))

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """The number itself: noise has no NULL."""
        return value

    def kept(self, records: str) -> str:
        """Every group of the domain."""
        return "true"


def sums_of(called: str) -> str:
    """What the sums of a measure that units have are called."""
    return f"sums of {called}"


def ends_of_unit(low: float, high: float, rows: int) -> tuple[float, float]:
    """Between what the sum of the rows of a unit is, of which each is between these ends.

    >>> ends_of_unit(0, 300, 5), ends_of_unit(10, 300, 5), ends_of_unit(-2, 3, 5)
    ((0, 1500), (10, 1500), (-10, 15))
    """
    return min(low, rows * low), max(high, rows * high)


@dataclass(frozen=True)
class _Sums:
    """Noisy numbers of the records for which a condition holds."""

    method: DifferentialPrivacy
    records: str
    condition: str

    def number(self) -> str:
        return self.method.count(self.records, self.condition)

    def sum(self, value: str, low: float, high: float, of: str) -> str:
        return self.method._sum_of_bounded(value, low, high, self.condition, "moment", of)


def _finite(measure: str) -> str:
    """Whether a record has a value that is added up."""
    return f"CAST({measure} AS DOUBLE) BETWEEN -{_FINITE} AND {_FINITE}"


def in_steps(value: str, low: float, high: float) -> tuple[str, float]:
    """A value between these ends in whole steps of a grid, and what a step is worth."""
    step = 2.0 ** (math.ceil(math.log2(max(abs(low), abs(high)))) - _STEPS)
    return f"CAST((({value}) * {1 / step!r} + {_WHOLE} - {_WHOLE}) AS DOUBLE)", step


def of_many(totals: str) -> str:
    """The same totals, of however many records, in longer time."""
    return totals.replace(f"- {_WHOLE}) AS DOUBLE)", f"- {_WHOLE}) AS BIGINT)")


def within_ends(value: str, low: float, high: float) -> str:
    """A finite number, made one between these ends; of anything else, NULL.

    Nearly all values are between their ends, so that the first condition is what this takes: one comparison, where two
    take half as long again, and ``greatest`` and ``least`` three times as long. Rounding lets through what lies beyond
    an end by less than the last digit of the larger one: steps of a grid and distances from the middle are the same.
    """
    middle = (low + high) / 2
    near = f"abs({value} - {middle!r})" if middle else f"abs({value})"
    return (
        f"CASE WHEN {near} <= {min(high - middle, middle - low)!r} THEN {value} "
        f"WHEN {value} >= {middle!r} AND {value} <= {_FINITE} THEN {high!r} "
        f"WHEN {value} < {middle!r} AND {value} >= -{_FINITE} THEN {low!r} END"
    )


def _of_domain(column: str, kind: str, values: tuple[str, ...]) -> str:
    """Whether a value is of a domain.

    IN with a list becomes a join, which takes as long as all the rest, and is made where nobody reads the column, too.

    >>> _of_domain('"age"', "INTEGER", ("2", "0", "1"))
    'TRY_CAST("age" AS INTEGER) BETWEEN 0 AND 2'
    >>> print(_of_domain('"sex"', "VARCHAR", ("f", "m")))
    TRY_CAST(CAST("sex" AS VARCHAR) AS ENUM('f', 'm')) IS NOT NULL
    """
    if kind == "VARCHAR":
        return f"TRY_CAST(CAST({column} AS VARCHAR) AS ENUM({', '.join(map(literal, values))})) IS NOT NULL"
    if kind == "BOOLEAN" and len(values) == 2:
        return f"TRY_CAST({column} AS BOOLEAN) IS NOT NULL"
    if kind not in ("BOOLEAN", "DATE"):
        numbers = sorted(map(int, values))
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"TRY_CAST({column} AS {kind}) BETWEEN {numbers[0]} AND {numbers[-1]}"
    return f"TRY_CAST({column} AS {kind}) IN ({', '.join(value_of(kind, one) for one in values)})"


def _between_days(column: str, kind: str, first: str, last: str) -> str:
    """Whether a date or a moment is on one of these days, or between them.

    >>> print(_between_days('"day"', "TIMESTAMP", "2020-01-01", "2020-12-31"))
    TRY_CAST(TRY_CAST("day" AS TIMESTAMP) AS DATE) BETWEEN DATE '2020-01-01' AND DATE '2020-12-31'
    """
    day = f"TRY_CAST({column} AS {kind})"
    if kind != "DATE":
        day = f"TRY_CAST({day} AS DATE)"
    return f"{day} BETWEEN DATE {literal(first)} AND DATE {literal(last)}"


def value_of(kind: str, text: str) -> str:
    """A value of a domain in SQL."""
    return literal(text) if kind == "VARCHAR" else f"CAST({literal(text)} AS {kind})"


METHOD: type[Method] = DifferentialPrivacy
