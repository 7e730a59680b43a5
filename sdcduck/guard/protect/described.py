"""Which statistic an aggregate is: what is said of its noise, beside the SQL that makes it (`aggregates.py`)."""

from __future__ import annotations

import math
from dataclasses import replace

from sqlglot import exp, parse_one

from sdcduck.guard.expressions import QUANTILES, case, constant_factor, duckdb_name, is_number, is_zero, share_of, text
from sdcduck.guard.methods.dp import DifferentialPrivacy
from sdcduck.guard.methods.dp_pairs import ALL as PAIRS
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.protect.terms import Function, constant_value, terms_of
from sdcduck.guard.protect.values import owned_values
from sdcduck.guard.worth import Statistic, Terms

_VARIANCES = (exp.Variance, exp.VariancePop)
_DEVIATIONS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)


class Described:
    """The statistics of one block.

    Args:
        block: its number among those of the query.
    """

    def __init__(self, scope: Scope, block: int) -> None:
        self._scope, self._block = scope, block
        self.columns: dict[str, Terms] = {}
        """Of the columns of protected numbers, by name."""

    def learn(self, column: str, node: exp.Expr) -> None:
        """Say what an aggregate over records is, which was published in a column."""
        cell = f"{self._block}.{column}"
        found = self._sum(node, cell) if isinstance(node, exp.Sum) else [(1.0, self._one(node, cell))]
        self.columns.setdefault(column, tuple(found))

    def worked_out(self, column: str, node: exp.Expr) -> None:
        """Say that an aggregate was worked out of published numbers."""
        found = self._statistic("worked out", f"{self._block}.{column}", duckdb_name(node))
        self.columns.setdefault(column, ((1.0, found),))

    def _statistic(self, kind: str, cell: str, of: str = "", *, share: float = 0, most: float = 0) -> Statistic:
        policy = self._scope.policy
        return Statistic(kind, policy.name, str(policy.method), of, share, most, cell=cell)

    def _one(self, node: exp.Expr, cell: str) -> Statistic:
        if isinstance(node, exp.Count):
            of_units = isinstance(node.this, exp.Distinct) and owned_values(self._scope, node) is None
            return self._statistic("units" if of_units else "count", cell)
        if isinstance(node, exp.CountIf):
            return self._statistic("count", cell)
        if isinstance(node, exp.Avg):
            return self._statistic("mean", cell, self._called(node.this))
        if isinstance(node, (*_VARIANCES, *_DEVIATIONS)):
            kind = "variance" if isinstance(node, _VARIANCES) else "deviation"
            return self._statistic(kind, cell, self._called(node.this))
        if isinstance(node, QUANTILES):
            given = share_of(node)
            share = float(given.this) if isinstance(given, exp.Literal) else 0.5
            return self._statistic("quantile", cell, self._called(node.this), share=share)
        name = duckdb_name(node)
        if name in PAIRS and isinstance(self._scope.method, DifferentialPrivacy):
            of = f"{self._called(node.this)} and {self._called(node.expression)}"
            return self._statistic(name, cell, of) if name != "regr_count" else self._statistic("count", cell)
        return self._statistic("worked out", cell, name)

    def _sum(self, node: exp.Sum, cell: str) -> list[tuple[float, Statistic]]:
        """Of a sum of terms, each with its factor."""
        inner, factor = constant_factor(node.this)
        _, value, _ = case(inner)
        value, more = constant_factor(value)
        scale = _value(f"1{factor}{more}")
        if is_number(value):
            return [(scale * float(value.this), self._statistic("count", cell))]
        if isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0]):
            value = value.this
        if self._scope.counts_rows(value):
            return [(scale, self._statistic("count", cell))]
        if isinstance(value, exp.Column) and self._scope.is_amount(value):
            return [(scale, self._sum_of(value, cell))]
        found: list[tuple[float, Statistic]] = []
        for place, term in enumerate(terms_of(self._scope, value) or []):
            by, own = scale * _value(f"1{term.scale}"), f"{cell}.{place}"
            if term.value is None:
                found.append((by, self._statistic("count", own)))
            elif isinstance(term.value, Function):
                most = 0 if self._scope.several else term.value.most
                found.append((by, self._statistic("sum", own, term.value.called, most=most)))
            else:
                found.append((by, self._sum_of(term.value, own)))
        return found or [(1.0, self._statistic("worked out", cell, duckdb_name(node)))]

    def _sum_of(self, measure: exp.Column, cell: str) -> Statistic:
        bounds = () if self._scope.several else self._scope.bounds(measure)
        within = max(map(abs, bounds), default=0)
        return replace(self._statistic("sum", cell, self._scope.called(measure)), within=within)

    def _called(self, node: exp.Expr) -> str:
        """What is averaged, as the custodian calls it where it is one measure."""
        value, factor = constant_factor(case(constant_factor(node)[0])[1])
        if isinstance(value, exp.Column) and not factor and self._scope.is_amount(value):
            return self._scope.called(value)
        columns = dict.fromkeys(column.name for column in value.find_all(exp.Column))
        return " and ".join(columns) or text(value)


def _value(product: str) -> float:
    """The value of a product as `constant_factor` writes it; NaN: it is not known, or none of a floating-point number.

    >>> _value("1 * 2 * -1 / 4"), _value("1 * (1 + 1)"), _value("1 * 1e-9")
    (-0.5, 2.0, nan)
    """
    value = constant_value(parse_one(product, read="duckdb"))
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan
