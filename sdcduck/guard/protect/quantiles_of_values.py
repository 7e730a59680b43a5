"""Quantiles of dimensions, from the counts of their values.

::

    SELECT median(age) FROM people

    SELECT quantile_cont(age, 0.5) of the values, each as often as it is in SELECT age, count(*) .. GROUP BY age

So they say nothing more than that table. A method that draws quantiles of its own, with noise, does so for a dimension
as it is, too (`aggregates`).
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from sdcduck.guard.expressions import QUANTILES, VALUES, as_quantile, case, duckdb_name, family, share_of
from sdcduck.guard.protect.groups import Released
from sdcduck.guard.protect.scope import Scope, refuse_query
from sdcduck.guard.protect.values import from_groups, group_by, same_groups, where_all_are
from sdcduck.guard.refusals import Refused


def quantile_of_values(
    scope: Scope, node: exp.Expr, condition: exp.Expr | None, released: Released
) -> exp.Select | None:
    """A quantile of a dimension, of what is published for each of its values; None: it is something else."""
    node = as_quantile(node)
    if not isinstance(node, QUANTILES) or isinstance(node.this, exp.Distinct):
        return None
    chosen, value, otherwise = case(node.this)
    if scope.method.quantiles and isinstance(value, exp.Column):
        return None
    if otherwise or scope.has_measure(value) or any(scope.kind_of(one) >= 0 for one in value.find_all(exp.Column)):
        return None
    refuse_query(value, condition)
    if not scope.method.weighted:
        raise Refused("SDC052", f"{duckdb_name(node)} of dimensions: count(*) GROUP BY them")
    share = share_of(node)
    if not isinstance(share, exp.Literal) or share.is_string or not 0 <= float(share.this) <= 1:
        raise Refused("SDC052", "a quantile of a share that is no number between 0 and 1")
    scope.check(value)
    between = isinstance(node, exp.PercentileCont) or (isinstance(node, exp.Median) and family(value) != "text")
    if between and family(value) not in ("whole", "real"):
        raise Refused("SDC052", f"a value between two dates or decimals: quantile_disc(x, {share.this})")
    wanted = [one.copy() for one in (condition, chosen) if one is not None]
    all_wanted = exp.and_(*wanted, copy=False) if wanted else None
    groups = same_groups(scope, released.keys, all_wanted, duckdb_name(node))
    groups.append("expressions", parse_one("count(*) AS _n", read="duckdb"))
    group_by(scope, groups, released.keys, {"_value": value})
    shown = _between(share.this) if between else _one_of(share.this)
    shown = where_all_are(scope, groups, shown, released, all_wanted)
    counted = f"CASE WHEN {_VALUE} IS NOT NULL THEN {VALUES}._n ELSE 0 END"
    beside = {
        "_known": f"sum({counted}) OVER ({{0}})",
        "_upto": f"sum({counted}) OVER ({{0}} ORDER BY {_VALUE} {_ROWS})",
    }
    return from_groups(scope, groups, parse_one(shown, read="duckdb"), released, beside)


_VALUE = f"{VALUES}._value"
_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_NUMBER = f"CAST({VALUES}._known AS BIGINT)"


def _at(place: str) -> str:
    """The value at a place among all of them in their order, the first at 0."""
    return f"min(CASE WHEN {VALUES}._upto > {place} THEN {_VALUE} END)"


def _one_of(share: str) -> str:
    """The first value up to which at least this share of them lies, as DuckDB counts: of a decimal share exactly."""
    return _at(f"CAST(greatest({_NUMBER} - floor({_NUMBER} - {_NUMBER} * {share}), 1) - 1 AS BIGINT)")


def _between(share: str) -> str:
    """The value at this share of the way from the first to the last, between two where it falls there."""
    place = f"(CAST({_NUMBER} - 1 AS DOUBLE) * {share})"
    low, high = (f"CAST({_at(f'{side}{place}')} AS DOUBLE)" for side in ("floor", "ceil"))
    way = f"max({place} - floor{place})"  # one number, as all rows of a group have the same
    return f"CASE WHEN {way} = 0 THEN {low} ELSE {low} * (1.0 - {way}) + {high} * {way} END"
