"""The `sdc_*` SQL functions with types, for expressions on an ordinary ibis connection that sdcduck is installed on.

    people.group_by("region").agg(n=sdc_count(people.record_key), income=sdc_sum(people.income, people.record_key))

Arguments, defaults and results are those of SQL (`sdcduck functions sdc_sum`); the argument `filter` is `where` here,
as everywhere in ibis. What DuckDB does with a bad argument it does here: an error when the expression runs.

`make examples` writes this file from the comments in ``sql/``; `help` has what they say of arguments.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.types as ir

from sdcduck.ibis.calls import Column, Condition, Value, aggregate, scalar


@scalar("string")
def sdc_apriori_forced(
    path: Value, dimensions: Value, *, separator: str | None = None, total: str = "Total"
) -> ir.StringValue:
    """The condition for `forced_if` by which suppression follows an a priori file of tau-Argus."""


@scalar("string")
def sdc_apriori_primary(
    path: Value, dimensions: Value, *, separator: str | None = None, total: str = "Total"
) -> ir.StringValue:
    """The condition for `primary_if` by which suppression follows an a priori file of tau-Argus."""


@aggregate("int64")
def sdc_cell_key(record_key: Column, *, where: Condition = True, digits: int = 8) -> ir.IntegerScalar:
    """The key of each cell: the sum of its records' keys modulo 10^digits. Confidential; for checks by the
    custodian."""


@scalar("int64")
def sdc_ckm_count(n: Value, key_sum: Value, *, ptable: str = "default", digits: int = 8) -> ir.IntegerValue:
    """The perturbed count of a cell whose count and key sum are already known."""


@scalar("float64")
def sdc_ckm_sum(
    x: Value, contributions: Value, key_sum: Value, *, ptable: str = "default_magnitude", p_large: float = 0.1,
    p_small: float | None = None, fp: float | None = None, q: float = 3, epsilon: Sequence[float] = (1.0,),
    small_cells: str | None = None, mu_c: float = 0, sensitive: Condition = False, is_odd: Condition = False,
    same_key: Condition = True, digits: int = 8, compat: Condition = False
) -> ir.FloatingValue:
    """The perturbed value of a magnitude cell whose sum, largest contributions and key sum are already known."""


@scalar("float64")
def sdc_class_risk(records: Value, population: Value, *, approximate: Condition = False) -> ir.FloatingValue:
    """The risk of each record of a class: the chance that it is linked rightly with its person in the population."""


@aggregate(
    "struct<m: int64, q: float64, b: float64, v: float64, t_p: float64, df_p: float64, low_p: float64, high_p: "
    "float64, t_s: float64, low_s: float64, high_s: float64>"
)
def sdc_combine(
    q: Column, v: Column, *, sigma: float | None = None, size: float = 1, confidence: float = 0.95,
    pooled: int | None = None, proper: bool = False
) -> ir.StructScalar:
    """One estimate with its interval from the analyses of m synthetic tables."""


@aggregate("int64")
def sdc_count(
    record_key: Column, *, ptable: str = "default", where: Condition = True, digits: int = 8
) -> ir.IntegerScalar:
    """The perturbed number of records in each cell: what `count(*)` becomes under the cell-key method."""


@aggregate("int64")
def sdc_count_units(
    unit: Column, record_key: Column, *, ptable: str = "default", where: Condition = True, digits: int = 8
) -> ir.IntegerScalar:
    """The perturbed number of distinct units in each cell, for tables with several rows per unit (visits, jobs,
    trips)."""


@scalar("float64")
def sdc_digits_of_noise(
    x: Value, t: Value, key_sum: Value, *, ptable: str = "default_magnitude", p_large: float = 0.1
) -> ir.FloatingValue:
    """A perturbed sum, mean or variance, rounded to as many digits as its noise leaves of it."""


@scalar("float64")
def sdc_dist_interval(
    low: Value, high: Value, other_low: Value, other_high: Value, *, step: float = 1
) -> ir.FloatingValue:
    """Distance of two intervals of numbers: the share of the values in either that are not in both."""


@scalar("float64")
def sdc_dist_jaccard(a: Value, b: Value) -> ir.FloatingValue:
    """Distance of two sets: the share of their elements that they do not have in common; 0 is the same set, 1 disjoint
    ones."""


@scalar("float64")
def sdc_dist_taxonomy(a: Value, b: Value, taxonomy: Value) -> ir.FloatingValue:
    """Distance of two nodes of a tree: how much of the ways from its top to them they do not share."""


@scalar("float64")
def sdc_dp_sigma(epsilon: Value, delta: Value, *, sensitivity: float = 1, method: str = "analytic") -> ir.FloatingValue:
    """The standard deviation of the normal noise that makes a query (epsilon, delta)-private."""


@scalar("int64")
def sdc_draw_count(
    n: Value, sigma: Value, cell_key: Value, replicate: Value, seed: Value, *, model: str = "nbi",
    nu: float | None = None
) -> ir.IntegerValue:
    """One synthetic count: the draw of `sdc_synth_table`, for tables that are made in SQL."""


@scalar("float64")
def sdc_eps_min(p: Value, q: Value, *, distance: float = 1) -> ir.FloatingValue:
    """The smallest epsilon for which two outcomes with these probabilities cannot be told apart: |ln(p / q)| over their
    distance."""


@scalar("float64")
def sdc_interval_overlap(
    low: Value, high: Value, synthetic_low: Value, synthetic_high: Value, *, raw: Condition = False
) -> ir.FloatingValue:
    """How far a confidence interval from synthetic data overlaps that from the original data: 1 is the same, 0 is
    disjoint."""


@aggregate("boolean")
def sdc_is_open(stencil: Column, *, where: Condition = True) -> ir.BooleanScalar:
    """Whether the sum over these inner cells follows from what a publication has published already."""


@scalar("float64")
def sdc_k_noise(
    x: Value, delta: Value, id: Value, *, seed: int = 0, low: float | None = None, high: float | None = None,
    round_to: float | None = None
) -> ir.FloatingValue:
    """A number with noise that is uniform between -delta and delta, and always the same for one record."""


@scalar("struct<n: int64, bias: float64, mse: float64, rmse: float64, ks: float64>")
def sdc_mask_utility(x: Value, y: Value) -> ir.StructValue:
    """What masking has done to a number, as an aggregate: bias, squared error, and how far its distribution has
    moved."""


@scalar("float64")
def sdc_mbs(x_hat: Value, n: Value, n_hat: Value) -> ir.FloatingValue:
    """Mean-before-sum for one cell: the perturbed sum rescaled so that sum / published count is x_hat / n."""


@aggregate("float64")
def sdc_mean(
    y: Column, record_key: Column, *, epsilon: Sequence[float] = (1.0,), ptable: str = "default_magnitude",
    count_ptable: str = "default", p_large: float = 0.1, p_small: float | None = None, fp: float | None = None,
    q: float = 3, small_cells: str | None = None, where: Condition = True, digits: int = 8, decimals: int = 4
) -> ir.FloatingScalar:
    """The perturbed mean of a measure in each cell: the perturbed sum divided by the original number of records."""


@aggregate("float64")
def sdc_mean_sum(
    y: Column, record_key: Column, *, epsilon: Sequence[float] = (1.0,), ptable: str = "default_magnitude",
    count_ptable: str = "default", p_large: float = 0.1, p_small: float | None = None, fp: float | None = None,
    q: float = 3, small_cells: str | None = None, where: Condition = True, digits: int = 8, decimals: int = 4
) -> ir.FloatingScalar:
    """The perturbed sum under mean-before-sum: divided by the published count it gives `sdc_mean`."""


@aggregate("int64")
def sdc_open_count(n: Column, stencil: Column, *, where: Condition = True) -> ir.IntegerScalar:
    """The number of records in inner cells where it may be shown, NULL where it may not."""


@aggregate("float64")
def sdc_open_sum(y: Column, stencil: Column, *, where: Condition = True) -> ir.FloatingScalar:
    """The sum of a measure over inner cells where it may be shown, NULL where it may not."""


@aggregate("float64")
def sdc_quantile(
    y: Column, record_key: Column, q: float, *, ptable: str = "default", significant: int = 2, least_beyond: int = 5,
    where: Condition = True, digits: int = 8
) -> ir.FloatingScalar:
    """The perturbed quantile of a measure in each cell, such as the median."""


@scalar("int64")
def sdc_record_key(unit_id: Value, *, digits: int = 8) -> ir.IntegerValue:
    """The record key of a unit: HMAC-SHA-256 of its identifier under the secret, modulo 10^digits."""


@aggregate("float64")
def sdc_sum(
    y: Column, record_key: Column, *, epsilon: Sequence[float] = (1.0,), ptable: str = "default_magnitude",
    p_large: float = 0.1, p_small: float | None = None, fp: float | None = None, q: float = 3,
    small_cells: str | None = None, mu_c: float = 0, sensitive: Condition = False, magnifier: str = "top",
    same_key: bool = True, zero_keys: bool = False, where: Condition = True, digits: int = 8, decimals: int = 4,
    compat: bool = False
) -> ir.FloatingScalar:
    """The perturbed sum of a measure in each cell: noise in proportion to the cell's largest contributions."""


@scalar("struct<tp: int64, fn: int64, recall: float64>")
def sdc_text_mask_recall(original: Value, masked: Value, terms: Value) -> ir.StructValue:
    """How many of the terms that should be masked in a text are gone."""


@scalar("boolean")
def sdc_unreliable(p: Value, se: Value, n: Value) -> ir.BooleanValue:
    """Whether an estimated proportion is too unreliable to be published, by the rule of the US survey on drug use and
    health."""


@aggregate("float64")
def sdc_variance(
    y: Column, record_key: Column, *, ptable: str = "default_magnitude", count_ptable: str = "default",
    p_large: float = 0.1, where: Condition = True, digits: int = 8, decimals: int = 4
) -> ir.FloatingScalar:
    """The perturbed variance of a measure in each cell, among its records (divided by n - 1)."""


@aggregate("float64")
def sdc_weighted_count(
    weight: Column, record_key: Column, *, ptable: str = "default", where: Condition = True, digits: int = 8,
    decimals: int = 4
) -> ir.FloatingScalar:
    """The perturbed weighted count: the perturbed number of records times the cell's mean weight."""


@aggregate("float64")
def sdc_weighted_sum(
    y: Column, weight: Column, record_key: Column, *, ptable: str = "default_magnitude", p_large: float = 0.1,
    p_small: float | None = None, fp: float | None = None, q: float = 3, epsilon: Sequence[float] = (1.0,),
    small_cells: str | None = None, mu_c: float = 0, sensitive: Condition = False, magnifier: str = "top",
    same_key: bool = True, zero_keys: bool = False, where: Condition = True, digits: int = 8, decimals: int = 4,
    compat: bool = False
) -> ir.FloatingScalar:
    """The perturbed weighted sum of a measure in each cell: `sdc_sum` for survey data."""


@scalar("struct<low: int64, high: int64>")
def sdc_yob_range(event_date: Value, age_low: Value, age_high: Value) -> ir.StructValue:
    """The years of birth that go with an age, or a band of ages, on a date: the first and the last."""


__all__ = [
    "sdc_apriori_forced", "sdc_apriori_primary", "sdc_cell_key", "sdc_ckm_count", "sdc_ckm_sum", "sdc_class_risk",
    "sdc_combine", "sdc_count", "sdc_count_units", "sdc_digits_of_noise", "sdc_dist_interval", "sdc_dist_jaccard",
    "sdc_dist_taxonomy", "sdc_dp_sigma", "sdc_draw_count", "sdc_eps_min", "sdc_interval_overlap", "sdc_is_open",
    "sdc_k_noise", "sdc_mask_utility", "sdc_mbs", "sdc_mean", "sdc_mean_sum", "sdc_open_count", "sdc_open_sum",
    "sdc_quantile", "sdc_record_key", "sdc_sum", "sdc_text_mask_recall", "sdc_unreliable", "sdc_variance",
    "sdc_weighted_count", "sdc_weighted_sum", "sdc_yob_range",
]
