"""Differential privacy: exact totals of bounded contributions, to which noise is added outside of SQL.

What stands here is the SQL of the totals alone, and what one record can add to each of them. Nobody is answered with
them: a block of this method is a table without rows until its noise is drawn (`sdcduck.guard.releases`), once for a
statement and after it was charged.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Noised, Steps, Total, both, chosen
from sdcduck.guard.methods.carried import FIRST
from sdcduck.guard.methods.checks import Checks
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier, literal

_STEPS = 30  # a bound is so many bits of steps: the grid is far finer than the noise
_FINITE = "1.7976931348623157e308"
_NAME = re.compile(r'"(_f\d+_\d+)"$')


@dataclass(frozen=True)
class DifferentialPrivacy:
    """Counts, and sums and means of measures that have bounds."""

    name: ClassVar[str] = "dp"
    shows: ClassVar[str] = "perturbed"
    words: ClassVar[str] = "differentially private"
    from_cells: ClassVar[bool] = False
    brings_together: ClassVar[bool] = False
    uses_ptables: ClassVar[bool] = False
    clips: ClassVar[bool] = True
    sums: ClassVar[bool] = True
    quantiles: ClassVar[bool] = False
    groups_tell: ClassVar[bool] = False
    checks: ClassVar[type[Checks]] = Checks

    policy: Policy
    weighted: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)
    noised: dict[str, Noised] = field(default_factory=dict, compare=False)
    """What noise is added to, by the name of its column."""

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> DifferentialPrivacy:
        """For a table with a row for each unit, or for a subquery that carries the unit along.

        Raises:
            Refused: units have several rows.
        """
        if several or not policy.one_row_per_unit:
            raise Refused("SDC081", "several rows of a unit")
        return cls(replace(policy, unit=FIRST) if carried else policy)

    def source(self) -> str:
        """The records, in which values that are not of their domain are missing.

        They are compared as texts: that cannot fail, whatever type a column has by now.
        """
        domains = ", ".join(
            f"CASE WHEN CAST({identifier(name)} AS VARCHAR) IN ({', '.join(map(literal, values))}) "
            f"THEN {identifier(name)} END AS {identifier(name)}"
            for name, _, values in self.policy.privacy.domains
        )
        table = identifier(self.policy.name)
        return f"(SELECT * REPLACE ({domains}) FROM {table})" if domains else table

    def hidden(self) -> tuple[str, ...]:
        """The unit."""
        return (str(self.policy.unit),)

    def _total(self, sql: str, noised: Noised) -> str:
        column = self.steps.call(sql)
        found = _NAME.search(column)
        assert found is not None
        self.noised[found[1]] = noised
        return column

    def count(self, records: str, condition: str) -> str:
        """The number of records."""
        return self._total(f"count({chosen(condition, '1')})", Noised(0, 1, 1.0, "count"))

    def values(self, value: str, condition: str) -> str:
        """The number of different values: who comes or goes makes it one more or less."""
        return self._total(f"count(DISTINCT {chosen(condition, value)})", Noised(0, 1, 1.0, "count", adds=False))

    def rows(self, records: str, number: str) -> str:
        """Not answered: each record is one."""
        raise Refused("SDC081", "rows that were counted before")

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """The records, each of which is a unit."""
        return self.count(records, condition)

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """The sum of values between their bounds, in whole steps of a grid; a missing value is none.

        Raises:
            Refused: the measure has no bounds. They are declared: of the data they would tell of the largest.
        """
        declared = {folded(name): ends for name, ends in self.policy.bounds}
        if least:
            low, high = -float(least), float(least)
        elif folded(called) in declared:
            low, high = declared[folded(called)]
        else:
            raise Refused("SDC081", f"a sum of '{called}', for which the custodian declared no bounds")
        step = 2.0 ** (math.ceil(math.log2(max(abs(low), abs(high)))) - _STEPS)
        value = f"CAST({measure} AS DOUBLE)"
        within = (
            f"CASE WHEN {value} BETWEEN {low!r} AND {high!r} THEN {value} "
            f"WHEN {value} > {high!r} AND {value} <= {_FINITE} THEN {high!r} "
            f"WHEN {value} < {low!r} AND {value} >= -{_FINITE} THEN {low!r} END"
        )
        steps = f"CAST(round(({within}) * {1 / step!r}) AS BIGINT)"
        noised = Noised(min(0, math.floor(low / step)), max(0, math.ceil(high / step)), step, "sum", called)
        return Total(self._total(f"sum({chosen(condition, steps)})", noised), ends=(low, high))

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """Not answered yet."""
        raise Refused("SDC081", "a variance: avg(x * x) and avg(x) are answered")

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """Not answered yet."""
        raise Refused("SDC081", "a median or another quantile")

    def known(self, records: str, measure: str, condition: str) -> str:
        """The number of records with a value that is added up."""
        finite = f"CAST({measure} AS DOUBLE) BETWEEN -{_FINITE} AND {_FINITE}"
        return self.count(records, both(condition, finite))

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """The number itself: noise has no NULL."""
        return value

    def kept(self, records: str) -> str:
        """Every group of the domain."""
        return "true"


def value_of(kind: str, text: str) -> str:
    """A value of a domain in SQL."""
    return literal(text) if kind == "VARCHAR" else f"CAST({literal(text)} AS {kind})"
