"""The `sdc_*` SQL functions with types, for expressions on an ordinary ibis connection that sdcduck is installed on.

    people.group_by("region").agg(n=sdc_count(people.record_key), income=sdc_sum(people.income, people.record_key))

Arguments, defaults and results are those of SQL (`sdcduck functions sdc_sum`); the argument `filter` is `where` here,
as everywhere in ibis. What DuckDB does with a bad argument it does here: an error when the expression runs.

`make examples` writes this file from the comments in ``sql/``.
"""

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.types as ir

from sdcduck.ibis.calls import Column, Condition, Value, aggregate, scalar


@scalar("string")
def sdc_apriori_forced(
    path: Value, dimensions: Value, *, separator: str | None = None, total: str = "Total"
) -> ir.StringValue:
    """The condition for `forced_if` by which suppression follows an a priori file of tau-Argus.

    Args:
        path: the file (.hst), as DuckDB finds files.
        dimensions: the columns of the publication that the codes in the file belong to, in their order.
        separator: as for `sdc_read_hst`.
        total: as for `sdc_read_hst`.
    """


@scalar("string")
def sdc_apriori_primary(
    path: Value, dimensions: Value, *, separator: str | None = None, total: str = "Total"
) -> ir.StringValue:
    """The condition for `primary_if` by which suppression follows an a priori file of tau-Argus.

    Args:
        path: the file (.hst), as DuckDB finds files.
        dimensions: the columns of the publication that the codes in the file belong to, in their order.
        separator: as for `sdc_read_hst`.
        total: as for `sdc_read_hst`.
    """


@aggregate("int64")
def sdc_cell_key(record_key: Column, *, where: Condition = True, digits: int = 8) -> ir.IntegerScalar:
    """The key of each cell: the sum of its records' keys modulo 10^digits. Confidential; for checks by the custodian.

    Args:
        record_key: keys of the records, as made by `sdc_record_key`.
        where: which records belong to the cell (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys.
    """


@scalar("int64")
def sdc_ckm_count(n: Value, key_sum: Value, *, ptable: str = "default", digits: int = 8) -> ir.IntegerValue:
    """The perturbed count of a cell whose count and key sum are already known.

    Args:
        n: number of records (or units) in the cell.
        key_sum: exact integer sum of their record keys.
        ptable: name of a stored p-table for counts.
        digits: number of decimal digits of the record keys.
    """


@scalar("float64")
def sdc_ckm_sum(
    x: Value,
    contributions: Value,
    key_sum: Value,
    *,
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    epsilon: Sequence[float] = (1.0,),
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Condition = False,
    is_odd: Condition = False,
    same_key: Condition = True,
    digits: int = 8,
    compat: Condition = False,
) -> ir.FloatingValue:
    """The perturbed value of a magnitude cell whose sum, largest contributions and key sum are already known.

    Args:
        x: the cell's value.
        contributions: the largest contributions (weight times value), largest absolute value first; at most as many as
            `epsilon` are used.
        key_sum: exact integer sum of the record keys of the contributing records.
        ptable: name of a stored p-table for magnitudes.
        p_large: noise coefficient of large contributions (sigma_0), at most 1.
        p_small: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL.
        fp: flex point z_f; NULL means one coefficient everywhere.
        q: exponent of the flex function, above 1; from 2 p_small / (p_small - p_large) on it falls monotonously.
        epsilon: share of the noise of the 1st, 2nd, .. contribution; its length is top-k.
        small_cells: name of a p-table for values below the separation point; NULL: none.
        mu_c: extra noise of sensitive cells (first component only).
        sensitive: whether the cell is sensitive.
        is_odd: whether the number of contributors is odd (only for p-tables with even and odd rows).
        same_key: whether the first component uses the cell key as it is; otherwise its digits are rotated once.
        digits: number of decimal digits of the record keys.
        compat: as R package cellKey does: no epsilon below the flex point, mu_c on every component.
    """


@scalar("float64")
def sdc_class_risk(records: Value, population: Value, *, approximate: Condition = False) -> ir.FloatingValue:
    """The risk of each record of a class: the chance that it is linked rightly with its person in the population.

    Args:
        records: records of the class in the sample, at least 1; not whole where some count in part.
        population: estimate of its size in the population, positive.
        approximate: the approximation of mu-ARGUS and sdcMicro for classes of more than two records.
    """


@aggregate(
    "struct<m: int64, q: float64, b: float64, v: float64, t_p: float64, df_p: float64, low_p: float64, high_p: "
    "float64, t_s: float64, low_s: float64, high_s: float64>"
)
def sdc_combine(
    q: Column,
    v: Column,
    *,
    sigma: float | None = None,
    size: float = 1,
    confidence: float = 0.95,
    pooled: int | None = None,
    proper: bool = False,
) -> ir.StructScalar:
    """One estimate with its interval from the analyses of m synthetic tables.

    Args:
        q: the estimate from one release.
        v: its variance there; of tables that were added up, times m.
        sigma: dispersion of the synthesis; `t_s` is given for 0.
        size: records of one release, as a multiple of the original number.
        confidence: of the intervals.
        pooled: number of releases that the one row is an analysis of; NULL: each row is one release.
        proper: whether the records were drawn with `proper := true`.
    """


@aggregate("int64")
def sdc_count(
    record_key: Column, *, ptable: str = "default", where: Condition = True, digits: int = 8
) -> ir.IntegerScalar:
    """The perturbed number of records in each cell: what `count(*)` becomes under the cell-key method.

    Args:
        record_key: keys of the records (INTEGER is the fastest type for 8 digits).
        ptable: name of a stored p-table for counts.
        where: which records to count (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys.
    """


@aggregate("int64")
def sdc_count_units(
    unit: Column, record_key: Column, *, ptable: str = "default", where: Condition = True, digits: int = 8
) -> ir.IntegerScalar:
    """The perturbed number of distinct units in each cell, for tables with several rows per unit (visits, jobs, trips).

    Args:
        unit: identifier of the unit.
        record_key: key of the unit, the same on all its rows.
        ptable: name of a stored p-table for counts.
        where: which rows to look at.
        digits: number of decimal digits of the record keys.
    """


@scalar("float64")
def sdc_digits_of_noise(
    x: Value, t: Value, key_sum: Value, *, ptable: str = "default_magnitude", p_large: float = 0.1
) -> ir.FloatingValue:
    """A perturbed sum, mean or variance, rounded to as many digits as its noise leaves of it.

    Args:
        x: the perturbed number.
        t: the cell's largest contribution; of a mean over n records this divided by the published count.
        key_sum: exact integer sum of the record keys of the contributing records.
        ptable: name of the p-table for magnitudes that the number was perturbed with.
        p_large: noise coefficient, as in `sdc_sum`.
    """


@scalar("float64")
def sdc_dist_interval(
    low: Value, high: Value, other_low: Value, other_high: Value, *, step: float = 1
) -> ir.FloatingValue:
    """Distance of two intervals of numbers: the share of the values in either that are not in both.

    Args:
        low: lower end of an interval.
        high: its upper end.
        other_low: lower end of the other.
        other_high: its upper end.
        step: how far values are apart.
    """


@scalar("float64")
def sdc_dist_jaccard(a: Value, b: Value) -> ir.FloatingValue:
    """Distance of two sets: the share of their elements that they do not have in common; 0 is the same set, 1 disjoint
    ones.

    Args:
        a: a set of values.
        b: another one, of values of the same type.
    """


@scalar("float64")
def sdc_dist_taxonomy(a: Value, b: Value, taxonomy: Value) -> ir.FloatingValue:
    """Distance of two nodes of a tree: how much of the ways from its top to them they do not share.

    Args:
        a: a node.
        b: another one.
        taxonomy: a table or view with the columns `child` and `parent`; what is the child of nothing, or of NULL, is a
            top.
    """


@scalar("float64")
def sdc_dp_sigma(epsilon: Value, delta: Value, *, sensitivity: float = 1, method: str = "analytic") -> ir.FloatingValue:
    """The standard deviation of the normal noise that makes a query (epsilon, delta)-private.

    Args:
        epsilon: above 0.
        delta: above 0 and below 1; at most one by the number of persons.
        sensitivity: above 0.
        method: 'analytic', 'zcdp' or 'classic'.
    """


@scalar("int64")
def sdc_draw_count(
    n: Value,
    sigma: Value,
    cell_key: Value,
    replicate: Value,
    seed: Value,
    *,
    model: str = "nbi",
    nu: float | None = None,
) -> ir.IntegerValue:
    """One synthetic count: the draw of `sdc_synth_table`, for tables that are made in SQL.

    Args:
        n: the mean: the original count, or what it is to be.
        sigma: dispersion; 0 is Poisson.
        cell_key: what identifies the cell, e.g. a hash of its categories.
        replicate: number of the replicate.
        seed: the seed.
        model: 'nbi', 'poisson', 'pig' or 'delaporte'.
        nu: Delaporte: share of the Poisson part.
    """


@scalar("float64")
def sdc_eps_min(p: Value, q: Value, *, distance: float = 1) -> ir.FloatingValue:
    """The smallest epsilon for which two outcomes with these probabilities cannot be told apart: |ln(p / q)| over their
    distance.

    Args:
        p: a probability.
        q: another one.
        distance: how far apart the inputs are, such as the columns in which they differ.
    """


@scalar("float64")
def sdc_interval_overlap(
    low: Value, high: Value, synthetic_low: Value, synthetic_high: Value, *, raw: Condition = False
) -> ir.FloatingValue:
    """How far a confidence interval from synthetic data overlaps that from the original data: 1 is the same, 0 is
    disjoint.

    Args:
        low: lower end of the interval from the original data.
        high: its upper end.
        synthetic_low: lower end of the interval from synthetic data.
        synthetic_high: its upper end.
        raw: whether disjoint intervals get a negative number that tells how far apart they are, instead of 0.
    """


@aggregate("boolean")
def sdc_is_open(stencil: Column, *, where: Condition = True) -> ir.BooleanScalar:
    """Whether the sum over these inner cells follows from what a publication has published already.

    Args:
        stencil: the numbers of the inner cells.
        where: which inner cells to add up (as FILTER (WHERE ..)).
    """


@scalar("float64")
def sdc_k_noise(
    x: Value,
    delta: Value,
    id: Value,
    *,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    round_to: float | None = None,
) -> ir.FloatingValue:
    """A number with noise that is uniform between -delta and delta, and always the same for one record.

    Args:
        x: the number.
        delta: how far it may move, at least 0.
        id: what identifies the record; its text counts, 42 and '42' are one.
        seed: other seeds, other noise.
        low: results below become this, which moves means; NULL: there are none too low.
        high: results above become this; NULL: there are none too high.
        round_to: results are multiples of this, such as 1; NULL: not rounded.
    """


@scalar("struct<n: int64, bias: float64, mse: float64, rmse: float64, ks: float64>")
def sdc_mask_utility(x: Value, y: Value) -> ir.StructValue:
    """What masking has done to a number, as an aggregate: bias, squared error, and how far its distribution has moved.

    Args:
        x: the number before.
        y: the number after.
    """


@scalar("float64")
def sdc_mbs(x_hat: Value, n: Value, n_hat: Value) -> ir.FloatingValue:
    """Mean-before-sum for one cell: the perturbed sum rescaled so that sum / published count is x_hat / n.

    Args:
        x_hat: perturbed sum.
        n: original count.
        n_hat: published (perturbed) count.
    """


@aggregate("float64")
def sdc_mean(
    y: Column,
    record_key: Column,
    *,
    epsilon: Sequence[float] = (1.0,),
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The perturbed mean of a measure in each cell: the perturbed sum divided by the original number of records.

    Args:
        y: the measure.
        record_key: keys of the records.
        epsilon: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k.
        ptable: name of a stored p-table for magnitudes.
        count_ptable: name of the p-table of the published counts.
        p_large: noise coefficient of large contributions (sigma_0), at most 1.
        p_small: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL.
        fp: flex point z_f; NULL means one coefficient everywhere.
        q: exponent of the flex function, above 1.
        small_cells: name of a p-table for values below the separation point; NULL: none.
        where: which records to look at (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys (5 to 18).
        decimals: floating-point measures are added exactly on a grid of 10^-decimals.
    """


@aggregate("float64")
def sdc_mean_sum(
    y: Column,
    record_key: Column,
    *,
    epsilon: Sequence[float] = (1.0,),
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The perturbed sum under mean-before-sum: divided by the published count it gives `sdc_mean`.

    Args:
        y: the measure.
        record_key: keys of the records.
        epsilon: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k.
        ptable: name of a stored p-table for magnitudes.
        count_ptable: name of the p-table of the published counts.
        p_large: noise coefficient of large contributions (sigma_0), at most 1.
        p_small: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL.
        fp: flex point z_f; NULL means one coefficient everywhere.
        q: exponent of the flex function, above 1.
        small_cells: name of a p-table for values below the separation point; NULL: none.
        where: which records to look at (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys (5 to 18).
        decimals: floating-point measures are added exactly on a grid of 10^-decimals.
    """


@aggregate("int64")
def sdc_open_count(n: Column, stencil: Column, *, where: Condition = True) -> ir.IntegerScalar:
    """The number of records in inner cells where it may be shown, NULL where it may not.

    Args:
        n: the number of records of each inner cell.
        stencil: the numbers of the inner cells.
        where: which inner cells to add up (as FILTER (WHERE ..)).
    """


@aggregate("float64")
def sdc_open_sum(y: Column, stencil: Column, *, where: Condition = True) -> ir.FloatingScalar:
    """The sum of a measure over inner cells where it may be shown, NULL where it may not.

    Args:
        y: the measure in the inner cells.
        stencil: the numbers of the inner cells.
        where: which inner cells to add up (as FILTER (WHERE ..)).
    """


@aggregate("float64")
def sdc_quantile(
    y: Column,
    record_key: Column,
    q: float,
    *,
    ptable: str = "default",
    significant: int = 2,
    least_beyond: int = 5,
    where: Condition = True,
    digits: int = 8,
) -> ir.FloatingScalar:
    """The perturbed quantile of a measure in each cell, such as the median.

    Args:
        y: the measure.
        record_key: keys of the records.
        q: share of the records below, between 0 and 1; 0.5 for the median.
        ptable: name of a stored p-table for counts.
        significant: significant digits of the result.
        least_beyond: published records that must lie on either side.
        where: which records to look at (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys.
    """


@scalar("int64")
def sdc_record_key(unit_id: Value, *, digits: int = 8) -> ir.IntegerValue:
    """The record key of a unit: HMAC-SHA-256 of its identifier under the secret, modulo 10^digits.

    Args:
        unit_id: identifier of the unit (person, household, firm).
        digits: number of decimal digits, 5 to 18.
    """


@aggregate("float64")
def sdc_sum(
    y: Column,
    record_key: Column,
    *,
    epsilon: Sequence[float] = (1.0,),
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Condition = False,
    magnifier: str = "top",
    same_key: bool = True,
    zero_keys: bool = False,
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
    compat: bool = False,
) -> ir.FloatingScalar:
    """The perturbed sum of a measure in each cell: noise in proportion to the cell's largest contributions.

    Args:
        y: the measure.
        record_key: keys of the records.
        epsilon: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k.
        ptable: name of a stored p-table for magnitudes (all cells, or even and odd rows).
        p_large: noise coefficient of large contributions (sigma_0), at most 1.
        p_small: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL.
        fp: flex point z_f; NULL means one coefficient everywhere.
        q: exponent of the flex function, above 1; from 2 p_small / (p_small - p_large) on it falls monotonously.
        small_cells: name of a p-table for values below the separation point; NULL: none.
        mu_c: extra noise of sensitive cells (first component only).
        sensitive: which cells are sensitive, e.g. `count(*) < 5`.
        magnifier: 'top' (largest contributions), 'mean', 'range' or 'sum' of the cell (these use one component).
        same_key: whether the first component uses the cell key as it is; otherwise its digits are rotated once.
        zero_keys: whether records with y = 0 or NULL count in the cell key.
        where: which records to sum (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys (5 to 18).
        decimals: floating-point measures are added exactly on a grid of 10^-decimals.
        compat: as R package cellKey does: no epsilon below the flex point, mu_c on every component.
    """


@scalar("struct<tp: int64, fn: int64, recall: float64>")
def sdc_text_mask_recall(original: Value, masked: Value, terms: Value) -> ir.StructValue:
    """How many of the terms that should be masked in a text are gone.

    Args:
        original: the text before.
        masked: the text after.
        terms: what should be masked, as somebody has marked it.
    """


@scalar("boolean")
def sdc_unreliable(p: Value, se: Value, n: Value) -> ir.BooleanValue:
    """Whether an estimated proportion is too unreliable to be published, by the rule of the US survey on drug use and
    health.

    Args:
        p: the proportion, from 0 to 1.
        se: its standard error.
        n: records that it rests on; NULL: not looked at.
    """


@aggregate("float64")
def sdc_variance(
    y: Column,
    record_key: Column,
    *,
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The perturbed variance of a measure in each cell, among its records (divided by n - 1).

    Args:
        y: the measure.
        record_key: keys of the records.
        ptable: name of a stored p-table for magnitudes.
        count_ptable: name of the p-table of the published counts.
        p_large: noise coefficient of the largest squared deviation.
        where: which records to look at (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys (5 to 18).
        decimals: floating-point measures are added exactly on a grid of 10^-decimals.
    """


@aggregate("float64")
def sdc_weighted_count(
    weight: Column,
    record_key: Column,
    *,
    ptable: str = "default",
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The perturbed weighted count: the perturbed number of records times the cell's mean weight.

    Args:
        weight: sampling weight of the record.
        record_key: keys of the records.
        ptable: name of a stored p-table for counts.
        where: which records to count.
        digits: number of decimal digits of the record keys.
        decimals: floating-point weights are added exactly on a grid of 10^-decimals.
    """


@aggregate("float64")
def sdc_weighted_sum(
    y: Column,
    weight: Column,
    record_key: Column,
    *,
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    epsilon: Sequence[float] = (1.0,),
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Condition = False,
    magnifier: str = "top",
    same_key: bool = True,
    zero_keys: bool = False,
    where: Condition = True,
    digits: int = 8,
    decimals: int = 4,
    compat: bool = False,
) -> ir.FloatingScalar:
    """The perturbed weighted sum of a measure in each cell: `sdc_sum` for survey data.

    Args:
        y: the measure.
        weight: sampling weight of the record.
        record_key: keys of the records.
        ptable: name of a stored p-table for magnitudes (all cells, or even and odd rows).
        p_large: noise coefficient of large contributions (sigma_0), at most 1.
        p_small: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL.
        fp: flex point z_f; NULL means one coefficient everywhere.
        q: exponent of the flex function, above 1.
        epsilon: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k.
        small_cells: name of a p-table for values below the separation point; NULL: none.
        mu_c: extra noise of sensitive cells.
        sensitive: which cells are sensitive, e.g. `count(*) < 5`.
        magnifier: 'top' (largest contributions), 'mean' (weighted), 'range' (unweighted) or 'sum' of the cell.
        same_key: whether the first component uses the cell key as it is; otherwise its digits are rotated once.
        zero_keys: whether records with y = 0 or NULL count in the cell key.
        where: which records to sum (as FILTER (WHERE ..)).
        digits: number of decimal digits of the record keys (5 to 18).
        decimals: floating-point products of measure and weight are added exactly on a grid of 10^-decimals.
        compat: leave epsilon out below the flex point, as R package cellKey does.
    """


@scalar("struct<low: int64, high: int64>")
def sdc_yob_range(event_date: Value, age_low: Value, age_high: Value) -> ir.StructValue:
    """The years of birth that go with an age, or a band of ages, on a date: the first and the last.

    Args:
        event_date: the date on which a person had that age.
        age_low: the age, or the lowest of the band.
        age_high: the highest of the band.
    """


__all__ = [
    "sdc_apriori_forced",
    "sdc_apriori_primary",
    "sdc_cell_key",
    "sdc_ckm_count",
    "sdc_ckm_sum",
    "sdc_class_risk",
    "sdc_combine",
    "sdc_count",
    "sdc_count_units",
    "sdc_digits_of_noise",
    "sdc_dist_interval",
    "sdc_dist_jaccard",
    "sdc_dist_taxonomy",
    "sdc_dp_sigma",
    "sdc_draw_count",
    "sdc_eps_min",
    "sdc_interval_overlap",
    "sdc_is_open",
    "sdc_k_noise",
    "sdc_mask_utility",
    "sdc_mbs",
    "sdc_mean",
    "sdc_mean_sum",
    "sdc_open_count",
    "sdc_open_sum",
    "sdc_quantile",
    "sdc_record_key",
    "sdc_sum",
    "sdc_text_mask_recall",
    "sdc_unreliable",
    "sdc_variance",
    "sdc_weighted_count",
    "sdc_weighted_sum",
    "sdc_yob_range",
]
