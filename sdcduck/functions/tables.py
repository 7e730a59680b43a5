"""The `sdc_*` table functions as functions of Python, on a connection of DuckDB; `sdcduck` has them by the same names.

    sdcduck.protect(con, "people", unit="person_id", dimensions=["region", "sex"], measures=["income"])

Arguments, defaults and columns are those of SQL (`sdcduck functions sdc_protect`). A call runs at once and returns its
rows as a relation, with ``.df()``, ``.fetchall()`` and whatever else DuckDB has.

`make examples` writes this file from the comments in ``sql/``; `help` has what they say of arguments and columns.
"""
# fmt: off

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb import DuckDBPyConnection, DuckDBPyRelation

from sdcduck.functions.calling import table_function


@table_function("sdc_accuracy")
def accuracy(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), ways: int = 2,
    buckets: int | None = None, categorical: Sequence[str] = (), holdout: str | None = None
) -> DuckDBPyRelation:
    """How near synthetic records come to the original in the tables of one, two or three columns, on average over all
    of them."""


@table_function("sdc_accuracy_cells")
def accuracy_cells(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), ways: int = 2,
    buckets: int | None = None, categorical: Sequence[str] = (), worst: int = 20
) -> DuckDBPyRelation:
    """The cells that differ most, over all tables of one, two or three columns."""


@table_function("sdc_accuracy_events")
def accuracy_events(
    con: DuckDBPyConnection, /, original: str, synthetic: str, subject: str, order_by: str, columns: Sequence[str] = (),
    once: Sequence[str] = (), ways: int = 2, buckets: int | None = None, categorical: Sequence[str] = (),
    holdout: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """How near synthetic events come to the original: the accuracy of two events in a row, one pair of each subject."""


@table_function("sdc_accuracy_margins")
def accuracy_margins(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), ways: int = 2,
    buckets: int | None = None, categorical: Sequence[str] = (), holdout: str | None = None
) -> DuckDBPyRelation:
    """The distances of each table of one, two or three columns: which columns, and which relations, were lost."""


@table_function("sdc_add_noise")
def add_noise(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), method: str = "additive",
    noise: float | None = None, sd: Mapping[str, Any] | None = None, bounds: Mapping[str, Any] | None = None,
    id: str | None = None, nulls: str = "refuse", seed: int = 0, predictors: Sequence[str] = ()
) -> DuckDBPyRelation:
    """Records with normal noise on their numbers, whose standard deviation is a share of that of the column."""


@table_function("sdc_add_record_key")
def add_record_key(
    con: DuckDBPyConnection, /, tbl: str, unit: str | None = None, record_key: str = "record_key", digits: int = 8
) -> DuckDBPyRelation:
    """Adds a stored key column to a table, in one statement and one transaction."""


@table_function("sdc_anonymize")
def anonymize(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int = 3,
    hierarchies: Mapping[str, Any] | None = None, l: float | None = None, sensitive: str | None = None,
    t: float | None = None, suppress_limit: float = 0.05, cost: str = "entropy", l_method: str = "distinct",
    c: float = 2, ordered: bool | None = None, id: str | None = None
) -> DuckDBPyRelation:
    """Records whose keys are generalised as little as it takes for each to share them with at least k - 1 others."""


@table_function("sdc_anonymize_lattice")
def anonymize_lattice(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int = 3,
    hierarchies: Mapping[str, Any] | None = None, l: float | None = None, sensitive: str | None = None,
    t: float | None = None, suppress_limit: float = 0.05, cost: str = "entropy", l_method: str = "distinct",
    c: float = 2, ordered: bool | None = None, id: str | None = None
) -> DuckDBPyRelation:
    """The lattice that `sdc_anonymize` searches: how many records each combination of levels suppresses, and what it
    costs."""


@table_function("sdc_approve")
def approve(
    con: DuckDBPyConnection, /, name: str, approved_by: str, note: str | None = None, fingerprint: str | None = None
) -> DuckDBPyRelation:
    """Writes down that somebody approved a release, with a fingerprint of its numbers."""


@table_function("sdc_assess")
def assess(
    con: DuckDBPyConnection, /, original: str, release: str, holdout: str | None = None, keys: Sequence[str] = (),
    sensitive: Sequence[str] = (), columns: Sequence[str] = (), seed: int | None = None, id: str | None = None,
    rules: str | None = None
) -> DuckDBPyRelation:
    """Who could be found in a release, what could be learned, what was lost: every measure that applies, with its
    baseline."""


@table_function("sdc_attack_inference")
def attack_inference(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, sensitive: str | None = None,
    keys: Sequence[str] = (), tolerance: float = 0.05, attacks: int = 2000, categorical: Sequence[str] = (),
    confidence: float = 0.95, seed: int | None = None
) -> DuckDBPyRelation:
    """Inference: how often the nearest synthetic record tells a secret of a person of whom other columns are known."""


@table_function("sdc_attack_linkability")
def attack_linkability(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None,
    keys: Sequence[Sequence[str]] = (), neighbours: int = 1, attacks: int = 2000, categorical: Sequence[str] = (),
    confidence: float = 0.95, seed: int | None = None
) -> DuckDBPyRelation:
    """Linkability: how often the synthetic data tell that two halves of a record belong to the same person."""


@table_function("sdc_attack_score")
def attack_score(
    con: DuckDBPyConnection, /, attack: str, protected: str, area: str | None = None, sensitive: str | None = None,
    freq: str = "n", linked: str = "linked", predicted: str = "predicted", actual: str = "actual",
    size_bins: Sequence[int] = (1, 10, 50, 100, 250, 500, 1000)
) -> DuckDBPyRelation:
    """An attack beside the guess of the most frequent category, on the same people."""


@table_function("sdc_attack_singling_out")
def attack_singling_out(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, columns: Sequence[str] = (),
    mode: str = "univariate", terms: int = 3, attacks: int = 2000, categorical: Sequence[str] = (),
    confidence: float = 0.95, seed: int | None = None
) -> DuckDBPyRelation:
    """Singling out: how often predicates that one synthetic record meets are met by exactly one original record."""


@table_function("sdc_attribute_inference")
def attribute_inference(
    con: DuckDBPyConnection, /, attacker: str, victims: str | None = None, sensitive: str | None = None,
    keys: Sequence[str] = (), prediction: str | None = None, repeats: int = 10, trees: int = 100,
    confidence: float = 0.95, seed: int = 0, member: str | None = None
) -> DuckDBPyRelation:
    """What a released model adds to what can be guessed of people anyway: three attacks, and what each gains over the
    one before."""


@table_function("sdc_audit")
def audit(
    con: DuckDBPyConnection, /, publication: str, measure: str | None = None, insider: bool = False,
    time_limit: float = 600, max_count: float | None = None, protect_zeros: bool = False,
    min_contributors: int | None = None, dominance: Sequence[tuple[float, float]] | None = None,
    p_percent: float | None = None, pq: tuple[float, float] | None = None, primary_if: str | None = None,
    value: str | None = None, freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (),
    weight: str | None = None, k_disclosure: int | None = None, singleton: str | None = None,
    forced_if: str | None = None, hidden_if: str | None = None, secondary_zeros: bool = False,
    extend_zeros: bool | None = None, structural_zeros: str | None = None, cost: str | None = None,
    improve: bool | None = None, search_seconds: float | None = None, protect_intervals: bool | None = None,
    after: str | None = None, rules: str | None = None
) -> DuckDBPyRelation:
    """How close one comes to the suppressed numbers of a publication: the smallest and largest value each of them can
    have."""


@table_function("sdc_audit_log")
def audit_log(con: DuckDBPyConnection, /, path: str, first: int = 1) -> DuckDBPyRelation:
    """Reads the audit log of a guard, `sdcduck.open_guard(.., log := path)`: one row a question, answered or not."""


@table_function("sdc_average_attack")
def average_attack(
    con: DuckDBPyConnection, /, original: str, dimensions: Sequence[str] = (), measure: str | None = None,
    alike: str | None = None, asked: str | None = None, protected: str | None = None, value: str | None = None
) -> DuckDBPyRelation:
    """What somebody makes of sums of ranges who believes that the cells of some ranges are alike, and how close it
    comes."""


@table_function("sdc_chance_match")
def chance_match(
    con: DuckDBPyConnection, /, source: str, area: str | None = None, keys: Sequence[str] = (), near: str | None = None,
    tolerance: float = 0, sensitive: str | None = None
) -> DuckDBPyRelation:
    """How much of a reconstruction is right by luck: what a file drawn at random, that knows only the sizes of the
    areas, hits."""


@table_function("sdc_check_decide")
def check_decide(
    con: DuckDBPyConnection, /, name: str, decision: str, decided_by: str, reason: str | None = None,
    fingerprint: str | None = None
) -> DuckDBPyRelation:
    """Approves or rejects an output that was submitted: once, by somebody else, and with a reason unless it passed."""


@table_function("sdc_check_keys")
def check_keys(
    con: DuckDBPyConnection, /, source: str, record_key: str = "record_key", unit: str | None = None, digits: int = 8
) -> DuckDBPyRelation:
    """Counts what would make a protected query fail or mislead: missing keys, keys out of range, units without one
    key."""


@table_function("sdc_check_model")
def check_model(
    con: DuckDBPyConnection, /, path: str | None = None, source: str | None = None, leaf: Sequence[str] = (),
    outcome: str | None = None, records: int | None = None, threshold: int = 10, min_df: int = 10
) -> DuckDBPyRelation:
    """Whether a trained model may leave: what its structure gives away, under the rules of output checking."""


@table_function("sdc_check_records")
def check_records(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] | Sequence[Sequence[str]] | None = None,
    rules: str | None = None, geography: Sequence[str] | None = None, measures: Sequence[str] | None = None,
    weight: str | None = None, population: str | None = None, original: str | None = None, nulls: str = "category",
    k: int | None = None, max_size: int | None = None, max_share_unique: float | None = None,
    max_risk: float | None = None, max_mean_risk: float | None = None, min_population: float | None = None,
    identifiers: Sequence[str] = (), max_share_own: float | None = None, min_at_ends: int | None = None,
    max_fraction: float | None = None, max_total_change: float | None = None, max_ks: float | None = None
) -> DuckDBPyRelation:
    """Whether a file of records keeps the rules of the house: a row a rule, and what to do where it does not."""


@table_function("sdc_check_regression")
def check_regression(
    con: DuckDBPyConnection, /, observations: int, parameters: int, min_df: int = 10, saturated: bool = False
) -> DuckDBPyRelation:
    """Whether the coefficients of a regression may leave: it needs degrees of freedom."""


@table_function("sdc_check_statistics")
def check_statistics(
    con: DuckDBPyConnection, /, source: str, value: str | None = None, statistics: Sequence[str] = (),
    by: Sequence[str] = (), contributor: str | None = None, threshold: int = 10, max_share: float = 0.9
) -> DuckDBPyRelation:
    """Whether extremes, percentiles, modes and spreads may leave: how many units stand behind each of them."""


@table_function("sdc_check_submit")
def check_submit(
    con: DuckDBPyConnection, /, name: str, checked: str, requested_by: str, exception: str | None = None
) -> DuckDBPyRelation:
    """Runs a check and stores what came of it, for somebody else to decide."""


@table_function("sdc_check_table")
def check_table(
    con: DuckDBPyConnection, /, publication: str, threshold: int = 10, max_share: float = 0.9, zeros: str = "fail",
    dominance: Sequence[tuple[float, float]] = ((2, 90),), p_percent: float = 10, contributor: str | None = None,
    weight: str | None = None, structural_zeros: str | None = None, hide: bool = False, freq: str | None = None
) -> DuckDBPyRelation:
    """Whether a table of counts and sums may leave: every cell and margin under the rules of output checking."""


@table_function("sdc_classes")
def classes(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), weight: str | None = None,
    nulls: str = "category", alpha: float = 1
) -> DuckDBPyRelation:
    """The classes of a table: how many records have the same values of the keys."""


@table_function("sdc_count_utility")
def count_utility(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (), freq: str = "n",
    protected_freq: str = "n", exclude_zeros: bool = False
) -> DuckDBPyRelation:
    """Distances between original and perturbed counts, cell by cell, as quantiles."""


@table_function("sdc_create_user")
def create_user(con: DuckDBPyConnection, /, name: str, password: str, role: str = "analyst") -> DuckDBPyRelation:
    """Creates a user of the gateway, or gives one another password and role."""


@table_function("sdc_cube_allocate")
def cube_allocate(
    con: DuckDBPyConnection, /, sizes: str | Sequence[Any], budget: int | None = None, min_space: int = 1,
    strict: bool = False, id: str = "range_id", n: str = "n"
) -> DuckDBPyRelation:
    """How many cells each range of a cube keeps, so that the sums of ranges are told as exactly as a budget of cells
    allows."""


@table_function("sdc_cube_errors")
def cube_errors(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (),
    measure: str | None = None, ranges: str | None = None, value: str = "published"
) -> DuckDBPyRelation:
    """How exact the sums of ranges are in a protected cube, which is its use, and how far off their averages, which
    protects cells."""


@table_function("sdc_cube_view")
def cube_view(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), measure: str | None = None,
    ranges: str | None = None, budget: float = 0.5, block: Sequence[int] = (), method: str = "suppress",
    noise_global: float = 0.2, noise_individual: float | None = None, delta: float = 0.5, min_space: int | None = None,
    strict: bool = True
) -> DuckDBPyRelation:
    """A view of a cube from which sums of ranges may be told, and whose averages mislead: some cells of each range,
    which may be inflated."""


@table_function("sdc_dcr")
def dcr(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, columns: Sequence[str] = (),
    distance: str = "gower", categorical: Sequence[str] = (), ordinal: Sequence[str] = (),
    weights: Mapping[str, Any] | None = None, buckets: int = 100, range_from: str = "all"
) -> DuckDBPyRelation:
    """Distances of synthetic records to the closest original record (DCR), summed up, beside those of a holdout."""


@table_function("sdc_dcr_histogram")
def dcr_histogram(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, columns: Sequence[str] = (),
    distance: str = "gower", categorical: Sequence[str] = (), ordinal: Sequence[str] = (),
    weights: Mapping[str, Any] | None = None, buckets: int = 100, range_from: str = "all", bins: int | None = None
) -> DuckDBPyRelation:
    """Histogram of the distances to the closest original record: exact zeros, then bins of equal width."""


@table_function("sdc_dcr_records")
def dcr_records(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, columns: Sequence[str] = (),
    distance: str = "gower", categorical: Sequence[str] = (), ordinal: Sequence[str] = (),
    weights: Mapping[str, Any] | None = None, buckets: int = 100, range_from: str = "all", id: str | None = None,
    itself: bool = False
) -> DuckDBPyRelation:
    """For each synthetic record the distance to the closest original record, and how that compares with the next."""


@table_function("sdc_dcr_subsets")
def dcr_subsets(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str, columns: Sequence[str] = (),
    subsets: int = 20, size: int | None = None, records: int = 2000, categorical: Sequence[str] = (),
    confidence: float = 0.95, seed: int | None = None
) -> DuckDBPyRelation:
    """Whether the synthetic records are closer to the originals than to a holdout, in all columns or in some of
    them."""


@table_function("sdc_decimals")
def decimals(
    con: DuckDBPyConnection, /, publication: str, mode: str = "counts", replicates: int = 3, seed: int | None = None,
    max_count: float | None = None, protect_zeros: bool = False, min_contributors: int | None = None,
    dominance: Sequence[tuple[float, float]] | None = None, p_percent: float | None = None,
    pq: tuple[float, float] | None = None, primary_if: str | None = None, value: str | None = None,
    freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (), weight: str | None = None,
    k_disclosure: int | None = None, singleton: str | None = None, forced_if: str | None = None,
    hidden_if: str | None = None, secondary_zeros: bool = False, extend_zeros: bool | None = None,
    structural_zeros: str | None = None, cost: str | None = None, improve: bool | None = None,
    search_seconds: float | None = None, protect_intervals: bool | None = None, after: str | None = None,
    rules: str | None = None
) -> DuckDBPyRelation:
    """Synthetic decimal numbers for the inner cells of a publication: a stencil that may be handed out."""


@table_function("sdc_declare_public")
def declare_public(con: DuckDBPyConnection, /, tbl: str, role: str = "") -> DuckDBPyRelation:
    """Declares a table or view as public: analysts read it freely. A view that fails for some of its rows is
    refused."""


@table_function("sdc_disclosure")
def disclosure(
    con: DuckDBPyConnection, /, original: str, synthetic: str, keys: Sequence[str] = (), sensitive: Sequence[str] = (),
    tau: float = 1.0
) -> DuckDBPyRelation:
    """What the keys give away, of identity and of a target: uniques, DiSCO, DCAP, WEAP, TCAP and their relatives, as
    shares."""


@table_function("sdc_dp_allocation")
def dp_allocation(
    con: DuckDBPyConnection, /, sensitivities: Sequence[float], epsilon: float, delta: float, objective: str = "volume",
    weights: Sequence[float] | None = None, eta: Sequence[float] | None = None, confidence: float = 0.95,
    level: float = 0.05
) -> DuckDBPyRelation:
    """How several numbers of one release share its noise, and what that is worth. It reads no data and costs
    nothing."""


@table_function("sdc_dp_composition")
def dp_composition(con: DuckDBPyConnection, /, source: str, delta: float = 1e-6) -> DuckDBPyRelation:
    """What several differentially private releases cost together, by four rules; any of them holds."""


@table_function("sdc_dp_composition_each")
def dp_composition_each(con: DuckDBPyConnection, /, epsilon: float, delta: float, queries: int) -> DuckDBPyRelation:
    """What each of many queries may cost, so that all of them cost (epsilon, delta): an equal share of epsilon, or by
    advanced composition."""


@table_function("sdc_dp_covariance")
def dp_covariance(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), bounds: Mapping[str, Any] | None = None,
    epsilon: float | None = None, nulls: str = "refuse"
) -> DuckDBPyRelation:
    """A differentially private covariance matrix: symmetric, and no eigenvalue is below 0."""


@table_function("sdc_dp_ledger")
def dp_ledger(con: DuckDBPyConnection, /, tbl: str) -> DuckDBPyRelation:
    """What questions about a table have cost under `method := 'dp'`: one row for each that was charged."""


@table_function("sdc_dp_mean")
def dp_mean(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), bounds: Mapping[str, Any] | None = None,
    epsilon: float | None = None, delta: float | None = None, confidence: float = 0.95, nulls: str = "refuse"
) -> DuckDBPyRelation:
    """Differentially private means of columns, with the standard errors and intervals of their noise."""


@table_function("sdc_dp_mean_region")
def dp_mean_region(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str],
    covariance: Sequence[Sequence[float]] | None = None, center: Sequence[float] | None = None,
    radius: float | None = None, epsilon: float | None = None, delta: float | None = None, confidence: float = 0.95,
    clip: bool = True, gamma: float | None = None
) -> DuckDBPyRelation:
    """The mean of several columns with normal noise that has the shape of the data, and the region around it."""


@table_function("sdc_dp_mean_region_noise")
def dp_mean_region_noise(
    con: DuckDBPyConnection, /, covariance: Sequence[Sequence[float]], records: int, epsilon: float, delta: float,
    gamma: float = 0.001, eta: Sequence[float] | None = None, level: float = 0.05
) -> DuckDBPyRelation:
    """What is gained if columns are made alike before their mean gets noise. It reads no data and costs nothing."""


@table_function("sdc_dp_mean_test")
def dp_mean_test(
    con: DuckDBPyConnection, /, source: str, by: str | None = None, groups: Sequence[str] = (),
    columns: Sequence[str] = (), bounds: Mapping[str, Any] | None = None, epsilon: float | None = None,
    alpha: float = 0.05, rounds: int = 200, mode: str = "safe", correction: str = "paper", unequal: bool = False,
    nulls: str = "refuse"
) -> DuckDBPyRelation:
    """Have two groups the same means? Hotelling's test of all columns at once, differentially private."""


@table_function("sdc_dp_preview")
def dp_preview(con: DuckDBPyConnection, /, question: str, login: str = "", role: str = "") -> DuckDBPyRelation:
    """What a question would cost under `method := 'dp'`, and how large the noise of each column would be: one row for
    each column of its answer."""


@table_function("sdc_dp_regression")
def dp_regression(
    con: DuckDBPyConnection, /, source: str, outcome: str | None = None, columns: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None, epsilon: float | None = None, delta: float | None = None,
    confidence: float = 0.95, nulls: str = "refuse"
) -> DuckDBPyRelation:
    """Linear regression by differentially private sums: coefficients, and standard errors that know the noise."""


@table_function("sdc_dp_release")
def dp_release(
    con: DuckDBPyConnection, /, source: str, counts: Sequence[str] = (), sums: Sequence[str] = (),
    means: Sequence[str] = (), bounds: Mapping[str, Any] | None = None, epsilon: float | None = None,
    delta: float | None = None, objective: str = "volume", weights: Sequence[float] | None = None,
    eta: Sequence[float] | None = None, expected: Sequence[float] | None = None,
    defaults: Mapping[str, Any] | None = None, neighbours: str = "replace", confidence: float = 0.95,
    by: str | None = None, groups: Sequence[str] = (), noise: str = "least"
) -> DuckDBPyRelation:
    """Counts, sums and means of records, released together with noise, whose size each has for the purpose."""


@table_function("sdc_drop_output")
def drop_output(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Takes an output off the record."""


@table_function("sdc_drop_ptable")
def drop_ptable(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Removes a stored p-table."""


@table_function("sdc_drop_publication")
def drop_publication(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Removes a stored publication with its tables."""


@table_function("sdc_drop_rules")
def drop_rules(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Removes a stored rule set."""


@table_function("sdc_drop_synth_model")
def drop_synth_model(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Takes a stored model of synthetic records away."""


@table_function("sdc_drop_user")
def drop_user(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Takes a user of the gateway away."""


@table_function("sdc_estimates")
def estimates(
    con: DuckDBPyConnection, /, source: str, measures: Sequence[str] = (), domains: Sequence[str] = (),
    weight: str | None = None, strata: str | None = None, psu: str | None = None, statistic: str = "mean",
    denominator: str | None = None, single: str = "zero", nulls: str = "refuse"
) -> DuckDBPyRelation:
    """Totals, means, proportions and ratios of a sample, by domains, with standard errors that know its design."""


@table_function("sdc_event_pairs")
def event_pairs(
    con: DuckDBPyConnection, /, events: str, subject: str, order_by: str, columns: Sequence[str] = (),
    once: Sequence[str] = (), seed: int = 0
) -> DuckDBPyRelation:
    """Of each subject two events in a row, as one record: what comparisons of records need to see order."""


@table_function("sdc_export")
def export(
    con: DuckDBPyConnection, /, publications: str, file: str, stencil: bool = True, force: bool = False
) -> DuckDBPyRelation:
    """Writes published tables into a DuckDB file of their own, with a stencil by which anybody makes further tables of
    them."""


@table_function("sdc_functions")
def functions(con: DuckDBPyConnection, /, name: str | None = None) -> DuckDBPyRelation:
    """Lists every SQL function of sdcduck: signature, summary, arguments, columns, example with output, source."""


@table_function("sdc_global_risk")
def global_risk(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), weight: str | None = None,
    household: str | None = None, threshold: float = 0.02, method: str = "exact", nulls: str = "category",
    alpha: float = 1
) -> DuckDBPyRelation:
    """The risk of a whole file: how many records are expected to be linked rightly, and how many are unsafe."""


@table_function("sdc_he_knn_decrypt")
def he_knn_decrypt(con: DuckDBPyConnection, /, answers: str, keys: str) -> DuckDBPyRelation:
    """Decrypts the answers of `sdc_he_knn_predict`."""


@table_function("sdc_he_knn_encrypt")
def he_knn_encrypt(
    con: DuckDBPyConnection, /, questions: str, keys: str, id: str | None = None, columns: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None, tau: int = 1000, v: float | None = None
) -> DuckDBPyRelation:
    """Encrypts questions for `sdc_he_knn_predict`: nobody reads them without the secret key."""


@table_function("sdc_he_knn_keygen")
def he_knn_keygen(con: DuckDBPyConnection, /, parameters: str = "paper", seed: int | None = None) -> DuckDBPyRelation:
    """A new pair of keys for encrypted questions: a secret one, which who asks keeps, and an evaluation key, which the
    custodian is given."""


@table_function("sdc_he_knn_predict")
def he_knn_predict(
    con: DuckDBPyConnection, /, source: str, questions: str, keys: str, label: str | None = None,
    columns: Sequence[str] = (), k: int = 3, bounds: Mapping[str, Any] | None = None, id: str | None = None,
    result: str = "class"
) -> DuckDBPyRelation:
    """Answers encrypted questions by the vote of the k nearest reference rows, without reading question or answer."""


@table_function("sdc_he_knn_simulate")
def he_knn_simulate(
    con: DuckDBPyConnection, /, source: str, questions: str, label: str | None = None, columns: Sequence[str] = (),
    k: int = 3, tau: int = 1000, v: float | None = None, bounds: Mapping[str, Any] | None = None, id: str | None = None
) -> DuckDBPyRelation:
    """What the encrypted vote of the k nearest would answer, in clear: for choosing k, the precision and the reference
    rows."""


@table_function("sdc_histogram_table")
def histogram_table(
    con: DuckDBPyConnection, /, source: str, value: str, width: float, by: Sequence[str] = (), origin: float = 0,
    base: int = 6, threshold: int = 10
) -> DuckDBPyRelation:
    """A histogram that may leave: bins of one width with rounded counts, without those that are too small."""


@table_function("sdc_holdout_share")
def holdout_share(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str, columns: Sequence[str] = (),
    distance: str = "gower", categorical: Sequence[str] = (), ordinal: Sequence[str] = (),
    weights: Mapping[str, Any] | None = None, buckets: int = 100, range_from: str = "all", confidence: float = 0.95
) -> DuckDBPyRelation:
    """The share of synthetic records that are closer to the records they were made from than to a holdout."""


@table_function("sdc_identical_matches")
def identical_matches(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, columns: Sequence[str] = ()
) -> DuckDBPyRelation:
    """How many synthetic records equal an original one, and how many records of a holdout do: the baseline."""


@table_function("sdc_individual_risk")
def individual_risk(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), weight: str | None = None,
    household: str | None = None, threshold: float = 0.02, method: str = "exact", nulls: str = "category",
    alpha: float = 1
) -> DuckDBPyRelation:
    """Every record with its risk: the chance that it is linked rightly with its person in the population."""


@table_function("sdc_integral_centers")
def integral_centers(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), kappa: int | None = None,
    c: int | None = None, size_tolerance: int = 5, center_tolerance: float = 0.0005, init: str = "kmeans",
    restarts: int = 5, scale: Sequence[float] | None = None, grid: float | Sequence[float] | None = None,
    id: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """The centres of these clusters, rounded to be published, and of how many data sets without a common record it was
    tested that they have the same."""


@table_function("sdc_integral_check")
def integral_check(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), macro: str = "macro_id",
    micro: str = "micro_id", grid: float | Sequence[float] | None = None, init: str = "kmeans",
    scale: Sequence[float] | None = None, id: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """Records that are in clusters and parts, put to the test: each data set of one part of all clusters is clustered
    by itself."""


@table_function("sdc_integral_clusters")
def integral_clusters(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), kappa: int | None = None,
    c: int | None = None, size_tolerance: int = 5, center_tolerance: float = 0.0005, init: str = "kmeans",
    restarts: int = 5, scale: Sequence[float] | None = None, id: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """Clusters, each cut into kappa parts of nearly the same size and centre: any part of each cluster makes a data set
    of its own that should have the same centres."""


@table_function("sdc_k_anonymity")
def k_anonymity(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int = 3, nulls: str = "category",
    alpha: float = 1
) -> DuckDBPyRelation:
    """How anonymous a table is: the size of its smallest class, its uniques, and who is in a class of fewer than k."""


@table_function("sdc_k_noise_delta")
def k_noise_delta(con: DuckDBPyConnection, /, source: str, x: str | None = None, k: int = 3) -> DuckDBPyRelation:
    """How far k-noise must move numbers at least, so that each point of their range has k originals within 2 delta."""


@table_function("sdc_k_noise_records")
def k_noise_records(
    con: DuckDBPyConnection, /, source: str, delta: Mapping[str, Any] | None = None, id: str | None = None,
    nulls: str = "refuse", seed: int = 0
) -> DuckDBPyRelation:
    """Records with k-noise in some of their columns: uniform between -delta and delta."""


@table_function("sdc_k_pram")
def k_pram(
    con: DuckDBPyConnection, /, source: str, x: str | None = None, k: int | None = None, m: int | None = None,
    method: str = "uniform", id: str | None = None, nulls: str = "refuse", seed: int = 0
) -> DuckDBPyRelation:
    """Records whose number becomes another one of the same interval; all intervals are equally long, and keep their
    records."""


@table_function("sdc_l_diversity")
def l_diversity(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: str | None = None, c: float = 2,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """What can be learned without finding a record: how diverse the sensitive values are in the least diverse class."""


@table_function("sdc_l_diversity_classes")
def l_diversity_classes(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: str | None = None, c: float = 2,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """How diverse the sensitive values are in each class."""


@table_function("sdc_levels")
def levels(
    con: DuckDBPyConnection, /, source: str, child: str = "child", parent: str = "parent", prefix: str = "level_"
) -> DuckDBPyRelation:
    """A (child, parent) table as one row a leaf, with a column for every level: what a publication joins."""


@table_function("sdc_local_k")
def local_k(
    con: DuckDBPyConnection, /, original: str, masked: str, delta: float, x: str | None = None, y: str | None = None
) -> DuckDBPyRelation:
    """Among how many records each masked number stands: originals around it, and numbers with k-noise that are expected
    there."""


@table_function("sdc_local_suppress")
def local_suppress(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int | Sequence[int] = 3,
    importance: Mapping[str, Any] | Sequence[float] | None = None, alpha: float = 1.0, method: str = "best",
    combs: Sequence[int] | None = None, by: Sequence[str] = (), id: str | None = None
) -> DuckDBPyRelation:
    """Records of which single values of the keys are suppressed, few of them, so that each may be one of `k`."""


@table_function("sdc_local_suppress_report")
def local_suppress_report(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int | Sequence[int] = 3,
    importance: Mapping[str, Any] | Sequence[float] | None = None, alpha: float = 1.0, method: str = "best",
    combs: Sequence[int] | None = None, by: Sequence[str] = (), id: str | None = None
) -> DuckDBPyRelation:
    """How many values `sdc_local_suppress` takes out of each key."""


@table_function("sdc_marketer_risk")
def marketer_risk(
    con: DuckDBPyConnection, /, internal: str, external: str | None = None, keys: Sequence[str] = (), k: int = 11,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """The share of records that an attacker is expected to link rightly, under four assumptions about what is known."""


@table_function("sdc_marketer_risk_classes")
def marketer_risk_classes(
    con: DuckDBPyConnection, /, internal: str, external: str | None = None, keys: Sequence[str] = (),
    nulls: str = "category"
) -> DuckDBPyRelation:
    """The classes behind `sdc_marketer_risk`: how many are released, how many are in the identified file, and the risk
    of each."""


@table_function("sdc_mask_loss")
def mask_loss(
    con: DuckDBPyConnection, /, original: str, protected: str, columns: Sequence[str] = (), id: str | None = None
) -> DuckDBPyRelation:
    """What masking has done to each column: values that changed, values that are gone, and what is left of numbers."""


@table_function("sdc_mask_plan")
def mask_plan(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), measures: Sequence[str] = (), k: int = 3,
    hierarchies: Mapping[str, Any] | None = None, suppress_limit: float = 0.05, mask: str = "microaggregation",
    weight: str | None = None, id: str | None = None
) -> DuckDBPyRelation:
    """The steps from a risky file to one that can be released, with the risk that is left and what is lost after
    each."""


@table_function("sdc_mask_risk")
def mask_risk(
    con: DuckDBPyConnection, /, original: str, protected: str, columns: Sequence[str] = (), width: float = 0.05,
    id: str | None = None
) -> DuckDBPyRelation:
    """What masked numbers still tell: how many lie near the originals, and how many records are found by them."""


@table_function("sdc_membership_risk")
def membership_risk(
    con: DuckDBPyConnection, /, members: str, nonmembers: str, score: str = "score", id: str | None = None,
    confidence: float = 0.95, permutations: int = 200, seed: int = 0
) -> DuckDBPyRelation:
    """How well a score of a model tells the records that it was trained on from others."""


@table_function("sdc_microaggregate")
def microaggregate(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] | Sequence[Sequence[str]] = (), k: int = 3,
    method: str = "mdav", by: Sequence[str] = (), gamma: float | None = None, pieces: int | None = None,
    id: str | None = None, nulls: str = "refuse", time_limit: float | None = None, weight: str | None = None,
    average: str = "mean"
) -> DuckDBPyRelation:
    """Records whose numbers are the means of groups of at least k similar records."""


@table_function("sdc_microaggregate_quality")
def microaggregate_quality(
    con: DuckDBPyConnection, /, original: str, protected: str, columns: Sequence[str] = (), id: str | None = None,
    weight: str | None = None
) -> DuckDBPyRelation:
    """What masking by groups has done: how many records share their values, and how much variation is lost."""


@table_function("sdc_modal_guess")
def modal_guess(
    con: DuckDBPyConnection, /, protected: str, original: str, area: str | None = None, sensitive: str | None = None,
    freq: str = "n", min_modal: int = 5, gate: str = "truth"
) -> DuckDBPyRelation:
    """How well somebody does who only reads the released table and guesses the most frequent category of everybody's
    area."""


@table_function("sdc_modal_guess_curve")
def modal_guess_curve(
    con: DuckDBPyConnection, /, protected: str, original: str, area: str | None = None, sensitive: str | None = None,
    freq: str = "n", min_modal: int = 5, gate: str = "truth", grid: Sequence[float] = (0.5, 0.75, 0.9, 0.95, 1.0)
) -> DuckDBPyRelation:
    """For how many people the guess of the most frequent category is at least so good."""


@table_function("sdc_modal_guess_summary")
def modal_guess_summary(
    con: DuckDBPyConnection, /, protected: str, original: str, area: str | None = None, sensitive: str | None = None,
    freq: str = "n", min_modal: int = 5, gate: str = "truth"
) -> DuckDBPyRelation:
    """How well the guess of the most frequent category does over all people."""


@table_function("sdc_model_risk")
def model_risk(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), weight: str | None = None,
    fraction: float | None = None, interactions: int = 2, trends: Sequence[str] = (), method: str = "poisson"
) -> DuckDBPyRelation:
    """How many uniques of a sample are unique in the population, by a log-linear model of the classes."""


@table_function("sdc_moment_solutions")
def moment_solutions(
    con: DuckDBPyConnection, /, n: int, mean: float | None = None, sd: float | None = None, low: int | None = None,
    high: int | None = None, mean_dp: int = 2, sd_dp: int = 2, median: float | None = None, max_solutions: int = 1000
) -> DuckDBPyRelation:
    """The lists of whole numbers that have a mean and a standard deviation: if there is one only, it is disclosed."""


@table_function("sdc_multi_diversity")
def multi_diversity(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: Sequence[str] = (), c: float = 2,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """What can be learned of several sensitive columns, by somebody who knows the keys, or the keys and all others of
    these columns."""


@table_function("sdc_multi_diversity_classes")
def multi_diversity_classes(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: Sequence[str] = (), c: float = 2,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """How diverse several sensitive columns are in each class: for who knows the keys, and for who knows the other
    columns, too."""


@table_function("sdc_noise")
def noise(con: DuckDBPyConnection, /, tbl: str, role: str = "") -> DuckDBPyRelation:
    """How large the noise of the numbers of a table is that is answered under a policy: what they are worth."""


@table_function("sdc_noise_distribution")
def noise_distribution(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (), freq: str = "n",
    protected_freq: str = "n"
) -> DuckDBPyRelation:
    """How often each noise occurs between original and perturbed counts."""


@table_function("sdc_optimum")
def optimum(
    con: DuckDBPyConnection, /, publication: str, time_limit: float = 60, max_count: float | None = None,
    protect_zeros: bool = False, min_contributors: int | None = None,
    dominance: Sequence[tuple[float, float]] | None = None, p_percent: float | None = None,
    pq: tuple[float, float] | None = None, primary_if: str | None = None, value: str | None = None,
    freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (), weight: str | None = None,
    singleton: str | None = None, forced_if: str | None = None, hidden_if: str | None = None,
    secondary_zeros: bool = False, extend_zeros: bool | None = None, structural_zeros: str | None = None,
    cost: str | None = None, improve: bool | None = None, search_seconds: float | None = None,
    protect_intervals: bool | None = None, after: str | None = None, rules: str | None = None
) -> DuckDBPyRelation:
    """How far the choice of `sdc_suppress` is from the best possible one: for small publications."""


@table_function("sdc_outputs")
def outputs(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The outputs that were checked: what came of it, who asked, and who decided."""


@table_function("sdc_pca")
def pca(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), k: int | None = None, mechanism: str = "none",
    epsilon: float | None = None, delta: float | None = None, bounds: Mapping[str, Any] | None = None,
    scaling: Mapping[str, Any] | None = None, norm: float | None = None, mode: str = "safe",
    neighbours: str = "replace", total: int | None = None, nulls: str = "refuse"
) -> DuckDBPyRelation:
    """Principal components, of the records as they are or differentially private."""


@table_function("sdc_pca_membership")
def pca_membership(
    con: DuckDBPyConnection, /, members: str, nonmembers: str, columns: Sequence[str] = (), k: int | None = None,
    loadings: str | None = None, scaling: Mapping[str, Any] | None = None, id: str | None = None,
    confidence: float = 0.95, permutations: int = 100, seed: int = 0
) -> DuckDBPyRelation:
    """Whether principal components tell whose data they were made of: a row for each number of components that are
    seen."""


@table_function("sdc_pca_noise")
def pca_noise(
    con: DuckDBPyConnection, /, bounds: Mapping[str, Any], total: int | None = None, mechanism: str = "analyze_gauss",
    epsilon: float | None = None, delta: float | None = None, scaling: Mapping[str, Any] | None = None,
    norm: float | None = None, mode: str = "safe", neighbours: str = "replace"
) -> DuckDBPyRelation:
    """The noise that `sdc_pca` with these arguments would put on each entry of the matrix. It reads no data and costs
    nothing."""


@table_function("sdc_pca_utility")
def pca_utility(
    con: DuckDBPyConnection, /, source: str, loadings: str, columns: Sequence[str] = (), k: int | None = None,
    bounds: Mapping[str, Any] | None = None, scaling: Mapping[str, Any] | None = None, nulls: str = "refuse"
) -> DuckDBPyRelation:
    """How much of the variance of the records private components tell, beside the best ones. **It is not private**: for
    the custodian."""


@table_function("sdc_percent_table")
def percent_table(
    con: DuckDBPyConnection, /, publication: str, columns: Sequence[str], measure: str | None = None, digits: int = 1
) -> DuckDBPyRelation:
    """Percentages of a published table, which tell nothing that its numbers do not."""


@table_function("sdc_plan_certify")
def plan_certify(
    con: DuckDBPyConnection, /, traces: Sequence[bytes], statements: Sequence[str], private_key: bytes,
    binding: Mapping[str, Any] | None = None
) -> DuckDBPyRelation:
    """Certifies a whole plan: rebuilds it from its questions, and adds a signature to it."""


@table_function("sdc_plan_log")
def plan_log(con: DuckDBPyConnection, /, plan: str | None = None, path: str | None = None) -> DuckDBPyRelation:
    """What became of the plans that were opened: one row for each thing that happened, of all logins."""


@table_function("sdc_plan_rules")
def plan_rules(
    con: DuckDBPyConnection, /, data: str | None = None, release: str | None = None, policy: str | None = None,
    bound: bool = False, required: Sequence[str] = ()
) -> DuckDBPyRelation:
    """Says which plans of analysts a custodian takes; it replaces what was said before, and shows what holds now."""


@table_function("sdc_plan_seal")
def plan_seal(
    con: DuckDBPyConnection, /, statements: Sequence[str], private_key: bytes, binding: Mapping[str, Any] | None = None,
    salts: Sequence[bytes] | None = None
) -> DuckDBPyRelation:
    """Seals a plan: a list of questions that is fixed before the first is answered, and told one at a time."""


@table_function("sdc_pmse")
def pmse(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), model: str = "logit",
    interactions: int = 0, expected_by: str | None = None, permutations: int = 50, ccp_alpha: float = 0.0001,
    categorical: Sequence[str] = (), special: Mapping[str, Any] | None = None, seed: int | None = None
) -> DuckDBPyRelation:
    """Can a model tell synthetic records from original ones? The propensity mean squared error, with what a right
    synthesis would have."""


@table_function("sdc_policies")
def policies(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The policies of the database: what analysts see, and how it is protected."""


@table_function("sdc_policy_distance")
def policy_distance(
    con: DuckDBPyConnection, /, answers: str, policy: str, kinds: Mapping[str, Any] | None = None, nulls: str = "apart"
) -> DuckDBPyRelation:
    """How near each row of an answer is to each row that nobody should be able to derive."""


@table_function("sdc_policy_risk")
def policy_risk(
    con: DuckDBPyConnection, /, internal: str, external: str | None = None, policies: Mapping[str, Any] | None = None,
    k: int = 11, date: str | None = None, as_of: Sequence[datetime.date] | None = None, nulls: str = "category"
) -> DuckDBPyRelation:
    """Marketer risk for several ways to coarsen the keys, and for a file that grows: which can be released when."""


@table_function("sdc_policy_tracker")
def policy_tracker(
    con: DuckDBPyConnection, /, answers: str, policy: str, kinds: Mapping[str, Any] | None = None,
    known: str | None = None, outside: Mapping[str, Any] | None = None, by: Sequence[str] | None = None,
    question: str | None = None, weight: str | None = None
) -> DuckDBPyRelation:
    """What somebody works out of persons, question by question, and how near it comes to what nobody should be able to
    derive."""


@table_function("sdc_pram")
def pram(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), matrix: str | None = None,
    pd: float | Sequence[float] | None = None, invariant: bool = True, alpha: float | None = None,
    by: Sequence[str] = (), id: str | None = None, nulls: str = "refuse", seed: int = 0
) -> DuckDBPyRelation:
    """Records whose categories have changed by lot, with known probabilities (post randomisation)."""


@table_function("sdc_pram_matrix")
def pram_matrix(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), matrix: str | None = None,
    pd: float | Sequence[float] | None = None, invariant: bool = True, alpha: float | None = None,
    by: Sequence[str] = ()
) -> DuckDBPyRelation:
    """The probabilities with which `sdc_pram` with the same arguments changes categories."""


@table_function("sdc_pram_odds")
def pram_odds(
    con: DuckDBPyConnection, /, source: str, x: str | None = None, matrix: str | None = None
) -> DuckDBPyRelation:
    """How likely a category of masked records is the true one: the odds after it was seen."""


@table_function("sdc_primary")
def primary(
    con: DuckDBPyConnection, /, publication: str, max_count: float | None = None, protect_zeros: bool = False,
    min_contributors: int | None = None, dominance: Sequence[tuple[float, float]] | None = None,
    p_percent: float | None = None, pq: tuple[float, float] | None = None, primary_if: str | None = None,
    value: str | None = None, freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (),
    weight: str | None = None, extend_zeros: bool | None = None, structural_zeros: str | None = None,
    rules: str | None = None
) -> DuckDBPyRelation:
    """The cells of a publication with the primary rules applied: which cells may not be published, and why."""


@table_function("sdc_protect")
def protect(
    con: DuckDBPyConnection, /, tbl: str, unit: str | None = None, record_key: str | Mapping[str, Any] = "record_key",
    dimensions: Sequence[str] = (), measures: Sequence[str] = (), method: str = "cell_key", ptable: str = "default",
    magnitude_ptable: str = "default_magnitude", min_units: int | Mapping[str, Any] | None = None, base: int = 3,
    publication: str | None = None, population: str | None = None, role: str = "", preview: str | None = None,
    bounds: Mapping[str, Any] | None = None, bands: Mapping[str, Any] | None = None,
    owned: Mapping[str, Any] | None = None, units: Sequence[str] | None = None, sequence: str | None = None,
    least_error: float = 0.8, secrets: Sequence[str] = (), on_breach: str = "refuse", granted: str | None = None,
    follows: str | None = None, epsilon: float | None = None, delta: float = 0, per_question: float | None = None,
    domains: Mapping[str, Any] | str | None = None, neighbours: str = "replace", contributions: int = 1,
    ledger: str = "policy", epsilon_per: str | None = None, objective: str = "volume", noise: str = "least"
) -> DuckDBPyRelation:
    """Declares a table or view as unit-level records, and how questions about it are answered."""


@table_function("sdc_prototypes")
def prototypes(
    con: DuckDBPyConnection, /, source: str, label: str | None = None, columns: Sequence[str] = (), n: int = 10,
    method: str = "means", min_records: int = 3, bounds: Mapping[str, Any] | None = None, id: str | None = None,
    seed: int = 0
) -> DuckDBPyRelation:
    """A few rows that stand for many records with a class: for a vote of nearest neighbours, or to look at."""


@table_function("sdc_ptable")
def ptable(
    con: DuckDBPyConnection, /, D: int | None = None, V: float | None = None, js: int = 0,
    pstay: float | Sequence[float] | None = None, mono: bool | Sequence[bool] = True, optim: int | Sequence[int] = 1,
    kind: str = "counts", step: int = 2, icat: Sequence[int] | None = None, type: str = "all", modified: bool = False,
    threshold: float = 0.2, seed: int = 0
) -> DuckDBPyRelation:
    """A perturbation table of maximum entropy: for each original value the probabilities of the noise."""


@table_function("sdc_ptable_check")
def ptable_check(con: DuckDBPyConnection, /, name: str) -> DuckDBPyRelation:
    """Moments of the noise of a stored p-table, row by row."""


@table_function("sdc_ptables")
def ptables(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """Lists the stored p-tables."""


@table_function("sdc_publication")
def publication(con: DuckDBPyConnection, /, name: str, query: str) -> DuckDBPyRelation:
    """Stores the SELECT of a publication under a name."""


@table_function("sdc_publications")
def publications(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The stored publications of the database."""


@table_function("sdc_publish")
def publish(
    con: DuckDBPyConnection, /, name: str, publication: str | None = None, max_count: float | None = None,
    protect_zeros: bool = False, min_contributors: int | None = None,
    dominance: Sequence[tuple[float, float]] | None = None, p_percent: float | None = None,
    pq: tuple[float, float] | None = None, primary_if: str | None = None, value: str | None = None,
    freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (), weight: str | None = None,
    k_disclosure: int | None = None, singleton: str | None = None, forced_if: str | None = None,
    hidden_if: str | None = None, secondary_zeros: bool = False, extend_zeros: bool | None = None,
    structural_zeros: str | None = None, cost: str | None = None, improve: bool | None = None,
    search_seconds: float | None = None, protect_intervals: bool | None = None, after: str | None = None,
    rules: str | None = None
) -> DuckDBPyRelation:
    """Suppresses a publication and stores it: its cells as published, and the stencil that answers every later
    table."""


@table_function("sdc_quality")
def quality(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (), estimate: str = "est",
    se: str = "se", freq: str | None = None, suppressed: str | None = None, percent: bool = True
) -> DuckDBPyRelation:
    """Estimates of a protected file beside those of the original: ratios of estimates and of standard errors, and the
    extreme ones."""


@table_function("sdc_quality_summary")
def quality_summary(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (), by: Sequence[str] = (),
    estimate: str = "est", se: str = "se", suppressed: str | None = None
) -> DuckDBPyRelation:
    """The ratios of `sdc_quality` in short: mean, percentiles, extremes, and the correlation of the two files."""


@table_function("sdc_question_budget")
def question_budget(con: DuckDBPyConnection, /, tbl: str, questions: int, role: str = "") -> DuckDBPyRelation:
    """Sets how many questions about a protected table each login may ask in a day; one more is refused until the next
    day."""


@table_function("sdc_questions")
def questions(con: DuckDBPyConnection, /, tbl: str, login: str | None = None) -> DuckDBPyRelation:
    """How many questions about a table logins asked on each day, since it has a budget (`sdc_question_budget`)."""


@table_function("sdc_rake")
def rake(
    con: DuckDBPyConnection, /, source: str, weight: str | None = None, margins: Sequence[str] = (),
    total: str = "total", bounds: Sequence[float] | None = None, tolerance: float = 1e-6, max_cycles: int = 100
) -> DuckDBPyRelation:
    """Weights that fit published totals: raking, one margin after the other until all of them are met."""


@table_function("sdc_rake_report")
def rake_report(
    con: DuckDBPyConnection, /, source: str, weight: str | None = None, margins: Sequence[str] = (),
    total: str = "total", bounds: Sequence[float] | None = None, tolerance: float = 1e-6, max_cycles: int = 100
) -> DuckDBPyRelation:
    """How raking went: what each margin was off by before and is after, and how much weights had to change. Margins
    that are not met are no error here."""


@table_function("sdc_rank_swap")
def rank_swap(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), p: float | None = None,
    correlation: float | None = None, top: float = 0.0, bottom: float = 0.0, by: Sequence[str] = (),
    id: str | None = None, nulls: str = "refuse", seed: int = 0, k0: float | None = None
) -> DuckDBPyRelation:
    """Records that have changed values with others near them in rank, each column by itself."""


@table_function("sdc_read_arb")
def read_arb(con: DuckDBPyConnection, /, path: str) -> DuckDBPyRelation:
    """Reads a batch of tau-Argus (.arb): one row a command."""


@table_function("sdc_read_asc")
def read_asc(con: DuckDBPyConnection, /, path: str, metadata: str) -> DuckDBPyRelation:
    """Reads records of tau-Argus (.asc) as their metadata (.rda) say: a column a variable."""


@table_function("sdc_read_hrc")
def read_hrc(con: DuckDBPyConnection, /, path: str, indent: str = "@") -> DuckDBPyRelation:
    """Reads a hierarchy file of tau-Argus (.hrc): one code a line, indented once a level."""


@table_function("sdc_read_hst")
def read_hst(
    con: DuckDBPyConnection, /, path: str, separator: str | None = None, total: str = "Total"
) -> DuckDBPyRelation:
    """Reads an a priori file of tau-Argus (.hst): what is known of cells beforehand, one line a cell."""


@table_function("sdc_read_rda")
def read_rda(con: DuckDBPyConnection, /, path: str) -> DuckDBPyRelation:
    """Reads a metadata file of tau-Argus (.rda): one row a variable."""


@table_function("sdc_recode")
def recode(
    con: DuckDBPyConnection, /, source: str, rules: Mapping[str, Any] | None = None, unmatched: str = "refuse"
) -> DuckDBPyRelation:
    """Records with coarser values: lists of values that become one, intervals, months and years, ends of a
    distribution."""


@table_function("sdc_recode_report")
def recode_report(
    con: DuckDBPyConnection, /, source: str, rules: Mapping[str, Any] | None = None, unmatched: str = "refuse"
) -> DuckDBPyRelation:
    """What `sdc_recode` changes: how many values of each column, and how many different ones are left."""


@table_function("sdc_recon_agreement")
def recon_agreement(
    con: DuckDBPyConnection, /, links: str, slot: str = "slot", draw: str = "draw", id: str = "id", stable: float = 0.9
) -> DuckDBPyRelation:
    """How far two draws of a reconstruction agree on who is who."""


@table_function("sdc_recon_bounds")
def recon_bounds(
    con: DuckDBPyConnection, /, fine: str, coarse: str, area: str | None = None, detail: str | None = None,
    dimensions: Sequence[str] = (), freq: str = "n"
) -> DuckDBPyRelation:
    """Between what the cells must lie that two published tables leave open: areas by detail."""


@table_function("sdc_recon_count")
def recon_count(
    con: DuckDBPyConnection, /, fine: str, coarse: str, area: str | None = None, detail: str | None = None,
    dimensions: Sequence[str] = (), freq: str = "n"
) -> DuckDBPyRelation:
    """How many files of records fit two published tables, and how many persons are determined all the same."""


@table_function("sdc_recon_designations")
def recon_designations(
    con: DuckDBPyConnection, /, links: str, sensitive: str | None = None, id: str = "id"
) -> DuckDBPyRelation:
    """What every person is taken to be in the reconstructions: an attacker's harvest, by person and value."""


@table_function("sdc_recon_link")
def recon_link(
    con: DuckDBPyConnection, /, records: str, external: str, keys: Sequence[str] = (), near: str | None = None,
    tolerance: float = 1, id: str = "id", order: Sequence[str] = (), slot: str = "slot", draw: str = "draw"
) -> DuckDBPyRelation:
    """Gives every record of every reconstruction the name of a person, as an attacker with a list of people would."""


@table_function("sdc_recon_refutations")
def recon_refutations(
    con: DuckDBPyConnection, /, links: str, claim: int = 1, slot: str = "slot", draw: str = "draw", id: str = "id"
) -> DuckDBPyRelation:
    """Whom else the records of one reconstruction are taken for in the others: a custodian's counter-examples to a
    claim."""


@table_function("sdc_recon_stability")
def recon_stability(
    con: DuckDBPyConnection, /, links: str, slot: str = "slot", draw: str = "draw", id: str = "id"
) -> DuckDBPyRelation:
    """For every record of a reconstruction, how often it got the same name."""


@table_function("sdc_reconstruct")
def reconstruct(
    con: DuckDBPyConnection, /, fine: str, coarse: str, area: str | None = None, detail: str | None = None,
    dimensions: Sequence[str] = (), freq: str = "n", draws: int = 10, seed: int | None = None
) -> DuckDBPyRelation:
    """Files of records that fit two published tables: what an attacker takes for the data."""


@table_function("sdc_record_swap")
def record_swap(
    con: DuckDBPyConnection, /, source: str, household: str | None = None, hierarchy: Sequence[str] = (),
    similar: Sequence[str] | Sequence[Sequence[str]] = (), keys: Sequence[str] = (), k: int = 3, swaprate: float = 0.05,
    carry_along: Sequence[str] = (), return_swapped_id: bool = False, seed: int | None = None, risk: Sequence[str] = (),
    threshold: float | None = None
) -> DuckDBPyRelation:
    """Households that stand out change place with similar households of other areas."""


@table_function("sdc_record_swap_report")
def record_swap_report(
    con: DuckDBPyConnection, /, source: str, household: str | None = None, hierarchy: Sequence[str] = (),
    similar: Sequence[str] | Sequence[Sequence[str]] = (), keys: Sequence[str] = (), k: int = 3, swaprate: float = 0.05,
    carry_along: Sequence[str] = (), seed: int | None = None, risk: Sequence[str] = (), threshold: float | None = None
) -> DuckDBPyRelation:
    """What `sdc_record_swap` with the same arguments does: who was at risk, who moved, and why the others did not."""


@table_function("sdc_releases")
def releases(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """What was made to leave the house, and who approved it."""


@table_function("sdc_replicated_uniques")
def replicated_uniques(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str | None = None, keys: Sequence[str] = (),
    denominator: str = "original"
) -> DuckDBPyRelation:
    """Records that are unique in the original and unique in the synthetic data, by the same values of the keys."""


@table_function("sdc_rest_group")
def rest_group(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str], min_units: int = 10, unit: str | None = None,
    by: Sequence[str] = (), nested: bool = False, label: str = "other"
) -> DuckDBPyRelation:
    """Records whose rare categories are one: those that fewer than `min_units` have become `other`."""


@table_function("sdc_rest_group_report")
def rest_group_report(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str], min_units: int = 10, unit: str | None = None,
    by: Sequence[str] = (), nested: bool = False, label: str = "other"
) -> DuckDBPyRelation:
    """What `sdc_rest_group` puts together, and how small the smallest is that is left."""


@table_function("sdc_roc")
def roc(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), ways: int = 1,
    groups: int | None = None, categorical: Sequence[str] = ()
) -> DuckDBPyRelation:
    """Ratio of counts: the smaller share of a cell over the larger, on average over the cells of a table."""


@table_function("sdc_round_table")
def round_table(
    con: DuckDBPyConnection, /, publication: str, base: int = 3, method: str = "small_counts", freq: str | None = None,
    extend_zeros: bool = False, max_round: int | None = None, identify_new: bool = True, zero_candidates: bool = False,
    force_inner: bool = False, seed: int | None = None
) -> DuckDBPyRelation:
    """The counts of a publication rounded, so that no small count is shown: an alternative to suppression."""


@table_function("sdc_rounding_ptable")
def rounding_ptable(con: DuckDBPyConnection, /, base: int = 3) -> DuckDBPyRelation:
    """A perturbation table that rounds counts to multiples of a base at random, without bias."""


@table_function("sdc_rule_sets")
def rule_sets(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The stored rule sets of the database."""


@table_function("sdc_rules")
def rules(
    con: DuckDBPyConnection, /, name: str, max_count: float | None = None, protect_zeros: bool = False,
    min_contributors: int | None = None, dominance: Sequence[tuple[float, float]] | None = None,
    p_percent: float | None = None, pq: tuple[float, float] | None = None, primary_if: str | None = None,
    value: str | None = None, freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (),
    weight: str | None = None, k_disclosure: int | None = None, singleton: str | None = None,
    forced_if: str | None = None, hidden_if: str | None = None, secondary_zeros: bool = False,
    extend_zeros: bool | None = None, structural_zeros: str | None = None, cost: str | None = None,
    improve: bool | None = None, search_seconds: float | None = None, protect_intervals: bool | None = None,
    k: int | None = None, max_size: int | None = None, max_share_unique: float | None = None,
    max_risk: float | None = None, max_mean_risk: float | None = None, min_population: float | None = None,
    identifiers: Sequence[str] = (), max_share_own: float | None = None, min_at_ends: int | None = None,
    max_fraction: float | None = None, max_total_change: float | None = None, max_ks: float | None = None
) -> DuckDBPyRelation:
    """Stores rules for tables and for records as a rule set: `sdc_suppress` and its kin, and `sdc_check_records`, take
    them as `rules := 'house'`."""


@table_function("sdc_sample")
def sample(
    con: DuckDBPyConnection, /, source: str, parts: int = 10, part: int = 1, record_key: str = "record_key",
    seed: int | None = None
) -> DuckDBPyRelation:
    """The records of one of several equal parts of a table, drawn by their record keys: a sample, or piece by piece all
    of it."""


@table_function("sdc_sample_curve")
def sample_curve(
    con: DuckDBPyConnection, /, original: str, columns: Sequence[str] = (), metrics: Sequence[str] = (),
    keys: Sequence[str] = (), sensitive: Sequence[str] = (), outcomes: Sequence[str] = (),
    predictors: Sequence[str] = (), family: str = "binomial", fractions: Sequence[float] = (), repeats: int = 10,
    groups: int | None = None, categorical: Sequence[str] = (), seed: int | None = None
) -> DuckDBPyRelation:
    """Utility and risk of simple samples of the original, by their size: a yardstick for synthetic files."""


@table_function("sdc_sample_equivalence")
def sample_equivalence(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), metrics: Sequence[str] = (),
    keys: Sequence[str] = (), sensitive: Sequence[str] = (), outcomes: Sequence[str] = (),
    predictors: Sequence[str] = (), family: str = "binomial", fractions: Sequence[float] = (), repeats: int = 10,
    groups: int | None = None, categorical: Sequence[str] = (), seed: int | None = None
) -> DuckDBPyRelation:
    """The simple sample of the original that is as useful as a synthetic file, and the one that is as risky."""


@table_function("sdc_sdmx")
def sdmx(
    con: DuckDBPyConnection, /, publication: str, max_count: float | None = None, protect_zeros: bool = False,
    min_contributors: int | None = None, dominance: Sequence[tuple[float, float]] | None = None,
    p_percent: float | None = None, pq: tuple[float, float] | None = None, primary_if: str | None = None,
    value: str | None = None, freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (),
    weight: str | None = None, k_disclosure: int | None = None, singleton: str | None = None,
    forced_if: str | None = None, hidden_if: str | None = None, secondary_zeros: bool = False,
    extend_zeros: bool | None = None, structural_zeros: str | None = None, cost: str | None = None,
    improve: bool | None = None, search_seconds: float | None = None, protect_intervals: bool | None = None,
    after: str | None = None, rules: str | None = None
) -> DuckDBPyRelation:
    """A suppressed publication in the terms of SDMX: one row a cell and measure, with observation and confidentiality
    status."""


@table_function("sdc_sequence")
def sequence(con: DuckDBPyConnection, /, tbl: str, login: str | None = None) -> DuckDBPyRelation:
    """What logins were told of a table that is protected with a `sequence`: one row for each answer that told something
    new."""


@table_function("sdc_sequence_check")
def sequence_check(
    con: DuckDBPyConnection, /, sets: str, cells: str, mode: str = "precision", variance: float | None = None,
    min_units: float = 3, least_error: float = 0.8, on_breach: str = "refuse"
) -> DuckDBPyRelation:
    """What each question of a sequence would be told, if a limit were set on what all answers together teach."""


@table_function("sdc_sequence_default")
def sequence_default(con: DuckDBPyConnection, /, holds: bool) -> DuckDBPyRelation:
    """Says whether policies that are declared from now on limit what all answers together tell a login, unless they say
    otherwise."""


@table_function("sdc_sequence_forget")
def sequence_forget(con: DuckDBPyConnection, /, tbl: str, login: str) -> DuckDBPyRelation:
    """Begins anew with what a login was told of a table: as if it had asked nothing before."""


@table_function("sdc_sequence_rehearsal")
def sequence_rehearsal(
    con: DuckDBPyConnection, /, path: str, tbl: str, login: str | None = None, mode: str = "precision",
    secrets: Sequence[str] = (), least_error: float = 0.8, min_units: int | None = None, granted: str | None = None,
    role: str = ""
) -> DuckDBPyRelation:
    """What a limit on the sequence of answers would have said to the questions of an audit log: one row for each about
    a table."""


@table_function("sdc_shuffle")
def shuffle(
    con: DuckDBPyConnection, /, source: str, columns: Sequence[str] = (), predictors: Sequence[str] = (),
    by: Sequence[str] = (), id: str | None = None, nulls: str = "refuse", seed: int = 0
) -> DuckDBPyRelation:
    """Records whose values are laid out anew: in an order that a model of the ranks draws."""


@table_function("sdc_store_ptable")
def store_ptable(con: DuckDBPyConnection, /, name: str, source: str, kind: str | None = None) -> DuckDBPyRelation:
    """Stores a p-table under a name, so that `sdc_count` and `sdc_sum` find it, here and in every shell that opens the
    file."""


@table_function("sdc_substitute_subsample")
def substitute_subsample(
    con: DuckDBPyConnection, /, source: str, weight: str | None = None, core: Sequence[str] = (),
    extra: Sequence[str] = (), substitute: Sequence[str] = (), matching: Sequence[str] = (), by: Sequence[str] = (),
    domains: Sequence[str] = (), outcomes: Sequence[str] = (), calibrate: Sequence[str] | Sequence[Sequence[str]] = (),
    psi: float | Sequence[float] | None = None, phi: float | Sequence[float] = 0.8, bounds: Sequence[float] = (0.3, 3),
    k: int = 1, tries: int = 20, id: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """A survey file treated for the public: some records get the identifying values of donors, a part of all is left,
    and weights are calibrated to the totals of the whole."""


@table_function("sdc_substitute_subsample_report")
def substitute_subsample_report(
    con: DuckDBPyConnection, /, source: str, weight: str | None = None, core: Sequence[str] = (),
    extra: Sequence[str] = (), substitute: Sequence[str] = (), matching: Sequence[str] = (), by: Sequence[str] = (),
    domains: Sequence[str] = (), outcomes: Sequence[str] = (), calibrate: Sequence[str] | Sequence[Sequence[str]] = (),
    psi: float | Sequence[float] | None = None, phi: float | Sequence[float] = 0.8, bounds: Sequence[float] = (0.3, 3),
    k: int = 1, tries: int = 20, id: str | None = None, seed: int = 0
) -> DuckDBPyRelation:
    """What `sdc_substitute_subsample` does with the same arguments: a row for each risk stratum, and one of all. It is
    for the custodian."""


@table_function("sdc_suda")
def suda(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), max_size: int | None = None, dis: float = 0.01,
    missing: str | None = None, nulls: str = "category"
) -> DuckDBPyRelation:
    """Every record with its SUDA score: how few keys are enough to make it unique, and in how many ways."""


@table_function("sdc_suda_contributions")
def suda_contributions(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), max_size: int | None = None,
    missing: str | None = None, nulls: str = "category"
) -> DuckDBPyRelation:
    """Which key makes records special: its part in all SUDA scores of a table."""


@table_function("sdc_summary_risk")
def summary_risk(
    con: DuckDBPyConnection, /, source: str, value: str | None = None, by: Sequence[str] = (), low: int | None = None,
    high: int | None = None, statistics: str = "mean_sd", dp: int = 2, type: int = 7, max_solutions: int = 1000
) -> DuckDBPyRelation:
    """By group, what its mean and standard deviation, or its quartiles, would give away of the answers behind them."""


@table_function("sdc_suppress")
def suppress(
    con: DuckDBPyConnection, /, publication: str, max_count: float | None = None, protect_zeros: bool = False,
    min_contributors: int | None = None, dominance: Sequence[tuple[float, float]] | None = None,
    p_percent: float | None = None, pq: tuple[float, float] | None = None, primary_if: str | None = None,
    value: str | None = None, freq: str | None = None, contributor: str | None = None, not_counted: Sequence[str] = (),
    weight: str | None = None, k_disclosure: int | None = None, singleton: str | None = None,
    forced_if: str | None = None, hidden_if: str | None = None, secondary_zeros: bool = False,
    extend_zeros: bool | None = None, structural_zeros: str | None = None, cost: str | None = None,
    improve: bool | None = None, search_seconds: float | None = None, protect_intervals: bool | None = None,
    after: str | None = None, rules: str | None = None
) -> DuckDBPyRelation:
    """A publication with the numbers of its primary and secondary cells suppressed."""


@table_function("sdc_survival_table")
def survival_table(
    con: DuckDBPyConnection, /, source: str, time: str, event: str, by: Sequence[str] = (), width: float = 1,
    base: int = 6, threshold: int = 10
) -> DuckDBPyRelation:
    """A Kaplan-Meier curve that may leave: of cumulated events and censorings rounded to midpoints, while enough are at
    risk."""


@table_function("sdc_synth_correlations")
def synth_correlations(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = ()
) -> DuckDBPyRelation:
    """The correlation of every two numbers, in the original and in the synthetic records."""


@table_function("sdc_synth_diversity")
def synth_diversity(con: DuckDBPyConnection, /, synthetic: str, threshold: int = 3) -> DuckDBPyRelation:
    """Of each column, how many synthetic values came from leaves with few different ones."""


@table_function("sdc_synth_diversity_records")
def synth_diversity_records(con: DuckDBPyConnection, /, synthetic: str, threshold: int = 3) -> DuckDBPyRelation:
    """How many synthetic records have 0, 1, 2, .. values from leaves with few different ones."""


@table_function("sdc_synth_dp")
def synth_dp(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), epsilon: float | None = None,
    method: str = "ipf", margins: str | Sequence[Sequence[str]] = "twoway", mechanism: str = "geometric",
    neighbours: str = "add_remove", freq: str | None = None, domains: Mapping[str, Any] | None = None,
    public_domains: bool = False, structural_zeros: str | None = None, prior_n: float = 0, total: int | None = None,
    rounded: bool = False, tol: float = 1e-4, max_iter: int = 5000, zeros: bool = False, records: bool = False
) -> DuckDBPyRelation:
    """A differentially private synthetic table: noise from OpenDP on the counts, then synthetic records drawn from
    them."""


@table_function("sdc_synth_dp_budget")
def synth_dp_budget(
    con: DuckDBPyConnection, /, data: str, epsilon: float, neighbours: str = "add_remove", delta: float = 0
) -> DuckDBPyRelation:
    """Sets what all differentially private releases of a table may cost together; a release beyond it is refused."""


@table_function("sdc_synth_dp_budgets")
def synth_dp_budgets(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """What has been spent of each table that has a budget or was released, and what is left."""


@table_function("sdc_synth_dp_ledger")
def synth_dp_ledger(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """Every differentially private release on this database, with what the releases of the same data have spent up to
    it."""


@table_function("sdc_synth_dp_preflight")
def synth_dp_preflight(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), epsilon: float | None = None,
    margins: str | Sequence[Sequence[str]] = "twoway", neighbours: str = "add_remove", freq: str | None = None,
    domains: Mapping[str, Any] | None = None, structural_zeros: str | None = None
) -> DuckDBPyRelation:
    """How much of a differentially private table would be data, and how much noise: one row a method, before anything
    is drawn."""


@table_function("sdc_synth_dp_statement")
def synth_dp_statement(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), epsilon: float | None = None,
    method: str = "ipf", margins: str | Sequence[Sequence[str]] = "twoway", mechanism: str = "geometric",
    neighbours: str = "add_remove", freq: str | None = None, domains: Mapping[str, Any] | None = None,
    public_domains: bool = False, structural_zeros: str | None = None, prior_n: float = 0, total: int | None = None
) -> DuckDBPyRelation:
    """What `sdc_synth_dp` with the same arguments promises, table by table, and all that is not private."""


@table_function("sdc_synth_equal_weights")
def synth_equal_weights(
    con: DuckDBPyConnection, /, source: str, weight: str, by: Sequence[str] = (), max_rate: float | None = None,
    seed: int | None = None
) -> DuckDBPyRelation:
    """Survey records drawn again, with replacement and in proportion to their weights, so that all of a stratum weigh
    the same."""


@table_function("sdc_synth_model")
def synth_model(
    con: DuckDBPyConnection, /, name: str, source: str, by: Sequence[str] = (),
    method: str | Mapping[str, Any] = "cart", visit: Sequence[str] | str = (), joint: Sequence[str] = (),
    predictors: Mapping[str, Any] | None = None, minbucket: int = 5, smoothing: str | Mapping[str, Any] | None = None,
    groups: int = 20, exclude: Sequence[float] = (0,), bounds: Mapping[str, Any] | None = None,
    bounds_where: Mapping[str, Any] | None = None, non_negative: Sequence[str] = (),
    round_to: Mapping[str, Any] | None = None, redraws: int = 3, derived: Mapping[str, Any] | None = None,
    train_rows: int | None = None, max_categories: int | None = None, count_zero: bool = True,
    weight: str | None = None, near_constant: bool = True, unique_copies: bool | None = None, proper: bool = False,
    replace: bool = False, seed: int | None = None
) -> DuckDBPyRelation:
    """Fits a model of synthetic records and stores it in the database: records can be drawn later, without the
    source."""


@table_function("sdc_synth_models")
def synth_models(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The stored models of synthetic records."""


@table_function("sdc_synth_moments")
def synth_moments(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), weight: str | None = None
) -> DuckDBPyRelation:
    """Means, standard deviations and the largest distance of the distribution functions, number by number."""


@table_function("sdc_synth_records")
def synth_records(
    con: DuckDBPyConnection, /, source: str | None = None, columns: Sequence[str] = (), rows: int | None = None,
    subset: str | None = None, share: float | None = None, details: bool = False, model: str | None = None,
    by: Sequence[str] = (), method: str | Mapping[str, Any] = "cart", visit: Sequence[str] | str = (),
    joint: Sequence[str] = (), predictors: Mapping[str, Any] | None = None, minbucket: int = 5,
    smoothing: str | Mapping[str, Any] | None = None, groups: int = 20, exclude: Sequence[float] = (0,),
    bounds: Mapping[str, Any] | None = None, bounds_where: Mapping[str, Any] | None = None,
    non_negative: Sequence[str] = (), round_to: Mapping[str, Any] | None = None, redraws: int = 3,
    derived: Mapping[str, Any] | None = None, train_rows: int | None = None, max_categories: int | None = None,
    count_zero: bool = True, weight: str | None = None, near_constant: bool = True, unique_copies: bool | None = None,
    proper: bool = False, seed: int | None = None
) -> DuckDBPyRelation:
    """Synthetic records: column after column, each drawn from the donors in a leaf of a tree on the columns drawn
    before."""


@table_function("sdc_synth_replicas")
def synth_replicas(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), small: int = 3
) -> DuckDBPyRelation:
    """How many original records have a copy among the synthetic ones, on chosen columns."""


@table_function("sdc_synth_table")
def synth_table(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), freq: str | None = None,
    model: str = "nbi", sigma: float | None = None, alpha: float = 0, nu: float | None = None, m: int = 1,
    size: float = 1, domains: Mapping[str, Any] | None = None, structural_zeros: str | None = None,
    seed: int | None = None, zeros: bool = False, records: bool = False
) -> DuckDBPyRelation:
    """Synthetic counts: each cell drawn from a law whose mean is the count of the cell."""


@table_function("sdc_synth_tables")
def synth_tables(
    con: DuckDBPyConnection, /, source: str, id: str, children: Mapping[str, Any], rows: int | None = None,
    minbucket: int = 5, smoothing: str | None = None, max_categories: int | None = None,
    unique_copies: bool | None = None, details: bool = False, seed: int | None = None
) -> DuckDBPyRelation:
    """Several tables synthesised together: parents, such as households, and lists of their children, such as
    persons."""


@table_function("sdc_t_closeness")
def t_closeness(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: str | None = None,
    ordered: bool | None = None, nulls: str = "category"
) -> DuckDBPyRelation:
    """What can be learned without finding a record: how far the sensitive values of a class are from those of all
    records."""


@table_function("sdc_t_closeness_classes")
def t_closeness_classes(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), sensitive: str | None = None,
    ordered: bool | None = None, nulls: str = "category"
) -> DuckDBPyRelation:
    """How far the distribution of the sensitive values in each class is from that of all records."""


@table_function("sdc_table_risk_utility")
def table_risk_utility(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (), freq: str = "n",
    protected_freq: str = "n", value: str | None = None, protected_value: str | None = None, by: str | None = None
) -> DuckDBPyRelation:
    """What a perturbed table gives away about single units, and what it lost, beside its original."""


@table_function("sdc_tau")
def tau(
    con: DuckDBPyConnection, /, source: str, dimensions: Sequence[str] = (), freq: str | None = None,
    cells: str | None = None, cells_total: int | None = None, domains: Mapping[str, Any] | None = None,
    structural_zeros: str | None = None, model: str = "nbi", sigma: float | Sequence[float] | None = None,
    nu: float | None = None, alpha: float = 0, m: int | Sequence[int] = 1, size: float = 1, k: int | Sequence[int] = 1,
    d: float | Sequence[float] = 0, method: str = "exact"
) -> DuckDBPyRelation:
    """Risk and utility of a synthesis before it is drawn: tau1 to tau4 for every combination of sigma, m, k and d."""


@table_function("sdc_tau_observed")
def tau_observed(
    con: DuckDBPyConnection, /, original: str, synthetic: str, dimensions: Sequence[str] = (), freq: str | None = None,
    synthetic_freq: str = "count", m: int | None = None, cells_total: int | None = None, k: int | Sequence[int] = 1,
    d: float | Sequence[float] = 0
) -> DuckDBPyRelation:
    """The measures of `sdc_tau`, counted in a synthesis that has been drawn."""


@table_function("sdc_tcap")
def tcap(
    con: DuckDBPyConnection, /, original: str, synthetic: str, keys: Sequence[str] = (), sensitive: Sequence[str] = (),
    tau: float = 1.0, weighting: str = "original", key_sizes: Sequence[int] | None = None
) -> DuckDBPyRelation:
    """Targeted correct attribution probability: how often a target is inferred rightly where all synthetic records with
    the same keys agree."""


@table_function("sdc_tcap_records")
def tcap_records(
    con: DuckDBPyConnection, /, original: str, synthetic: str, keys: Sequence[str] = (), sensitive: str | None = None,
    tau: float = 1.0
) -> DuckDBPyRelation:
    """Every original record with what the synthetic data say of its target: whose attribute can be inferred, and how
    surely."""


@table_function("sdc_text_mask")
def text_mask(
    con: DuckDBPyConnection, /, source: str, text: str = "text", rules: Sequence[str] = (),
    gazetteer: str | None = None, person: str | None = None, min_persons: int = 1
) -> DuckDBPyRelation:
    """Records with a text in which what names a person is masked: by rules, by a list of names, and by how rare a word
    is."""


@table_function("sdc_text_risk")
def text_risk(
    con: DuckDBPyConnection, /, protected: str | None = None, background: str | None = None, person: str = "person",
    text: str = "text", classifier: str = "nn", rules: Sequence[str] = (), gazetteer: str | None = None,
    model: str | None = None
) -> DuckDBPyRelation:
    """The share of masked texts that an attacker puts the right name on who has other texts about named persons."""


@table_function("sdc_text_risk_documents")
def text_risk_documents(
    con: DuckDBPyConnection, /, protected: str | None = None, background: str | None = None, person: str = "person",
    text: str = "text", classifier: str = "nn", rules: Sequence[str] = (), gazetteer: str | None = None,
    model: str | None = None
) -> DuckDBPyRelation:
    """The same attack, text by text: whom it names, and how sure it is."""


@table_function("sdc_trend_concordance")
def trend_concordance(
    con: DuckDBPyConnection, /, original: str, protected: str, dimensions: Sequence[str] = (),
    period: str | None = None, estimate: str = "est", se: str = "se", z: float = 1.959964
) -> DuckDBPyRelation:
    """Would a user of the protected file find the same trends? Every period against the last one, tested in both
    files."""


@table_function("sdc_trips_check")
def trips_check(
    con: DuckDBPyConnection, /, source: str, trip: str | None = None, x: str = "lon", y: str = "lat", t: str = "t",
    box: Sequence[float] | None = None
) -> DuckDBPyRelation:
    """What `sdc_trips_grid` leaves out of the points, and what is odd about those that it uses."""


@table_function("sdc_trips_ends")
def trips_ends(
    con: DuckDBPyConnection, /, source: str, trip: str = "trip", seq: str = "seq", cell: str = "cell", t: str = "t",
    unit: str = "unit", hours: int = 1
) -> DuckDBPyRelation:
    """A row for each trip: where it begins, where it ends, and in which hour it began. For `sdc_count` and
    `sdc_suppress`."""


@table_function("sdc_trips_flows")
def trips_flows(
    con: DuckDBPyConnection, /, source: str, min_units: int = 3, trip: str = "trip", seq: str = "seq",
    cell: str = "cell", t: str = "t", unit: str = "unit", hours: int = 1
) -> DuckDBPyRelation:
    """How many trips went from where to where, in which hour of the day; rows of few persons are left out."""


@table_function("sdc_trips_grid")
def trips_grid(
    con: DuckDBPyConnection, /, source: str, trip: str | None = None, x: str = "lon", y: str = "lat", t: str = "t",
    box: Sequence[float] | None = None, resolution: int = 128, collapse: bool = True, unit: str | None = None,
    min_units: int = 1, min_length: int = 1, max_length: int | None = None
) -> DuckDBPyRelation:
    """Points as the cells that each trip goes through, one after the other."""


@table_function("sdc_trips_leakage")
def trips_leakage(
    con: DuckDBPyConnection, /, synthetic: str, original: str, w: int = 5, trip: str = "trip", seq: str = "seq",
    cell: str = "cell"
) -> DuckDBPyRelation:
    """How many synthetic trips, and how many pieces of them, somebody really made."""


@table_function("sdc_trips_quality")
def trips_quality(
    con: DuckDBPyConnection, /, source: str, distance: str = "km", trip: str = "trip", seq: str = "seq",
    cell: str = "cell", x: str = "lon", y: str = "lat"
) -> DuckDBPyRelation:
    """What trips are like, in five numbers; ask it of the real and of the synthetic ones."""


@table_function("sdc_trips_synthesize")
def trips_synthesize(
    con: DuckDBPyConnection, /, source: str, n: int | None = None, k: int = 3, context: int = 3, start: str = "uniform",
    trip: str = "trip", seq: str = "seq", cell: str = "cell", x: str = "lon", y: str = "lat", seed: int = 0,
    engine: str = "ngram", epochs: int = 250, units: int = 256
) -> DuckDBPyRelation:
    """Synthetic trips: from cell to cell, each time by lot among the `k` cells that came next most often."""


@table_function("sdc_tstr")
def tstr(
    con: DuckDBPyConnection, /, original: str, synthetic: str, holdout: str, outcome: str | None = None,
    columns: Sequence[str] = (), positive: str | None = None, models: Sequence[str] = ('tree', 'forest'), seed: int = 0
) -> DuckDBPyRelation:
    """Train on synthetic, test on real: whether models that never saw a true record predict as well."""


@table_function("sdc_tune")
def tune(
    con: DuckDBPyConnection, /, target: str, source: str, dimensions: Sequence[str] = (), freq: str | None = None,
    cells: str | None = None, cells_total: int | None = None, domains: Mapping[str, Any] | None = None,
    structural_zeros: str | None = None, parameter: str = "sigma", model: str = "nbi", sigma: float | None = None,
    nu: float | None = None, alpha: float = 0, m: int = 1, size: float = 1, method: str = "exact"
) -> DuckDBPyRelation:
    """The mildest synthesis that keeps a promise, such as "at most half of what looks like a unique is one"."""


@table_function("sdc_unique_share")
def unique_share(
    con: DuckDBPyConnection, /, k: int, n: int, statistics: str = "mean_sd", dp: int = 2, type: int = 7
) -> DuckDBPyRelation:
    """Of all lists that n people may answer on a scale of k: how many are disclosed by their statistics."""


@table_function("sdc_unprotect")
def unprotect(con: DuckDBPyConnection, /, tbl: str, role: str = "") -> DuckDBPyRelation:
    """Takes a policy back: analysts do not see the table or view any more."""


@table_function("sdc_unsafe_combinations")
def unsafe_combinations(
    con: DuckDBPyConnection, /, source: str, keys: Sequence[str] = (), k: int = 3, max_size: int = 3,
    nulls: str = "category"
) -> DuckDBPyRelation:
    """Which variable makes records rare: how many are in a combination of few variables that fewer than k share."""


@table_function("sdc_users")
def users(con: DuckDBPyConnection, /) -> DuckDBPyRelation:
    """The users of the gateway (`sdcduck serve`)."""


@table_function("sdc_utility_columns")
def utility_columns(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), groups: int = 5,
    categorical: Sequence[str] = (), special: Mapping[str, Any] | None = None
) -> DuckDBPyRelation:
    """Column by column: groups, distribution functions, missing values, spikes, and values that cannot be."""


@table_function("sdc_utility_profile")
def utility_profile(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), groups: int = 5,
    permutations: int = 20, categorical: Sequence[str] = (), special: Mapping[str, Any] | None = None,
    seed: int | None = None
) -> DuckDBPyRelation:
    """Several measures of utility side by side, and where they contradict each other: never release on a single
    number."""


@table_function("sdc_utility_regression")
def utility_regression(
    con: DuckDBPyConnection, /, original: str, synthetic: str, outcome: str | None = None,
    predictors: Sequence[str] = (), family: str = "gaussian", sets: str | None = None, intervals_for: str = "original",
    quantile: float = 1.96, categorical: Sequence[str] = ()
) -> DuckDBPyRelation:
    """What a regression says on the original and on the synthetic records, coefficient by coefficient."""


@table_function("sdc_utility_tables")
def utility_tables(
    con: DuckDBPyConnection, /, original: str, synthetic: str, columns: Sequence[str] = (), ways: int = 2,
    groups: int = 5, categorical: Sequence[str] = (), special: Mapping[str, Any] | None = None
) -> DuckDBPyRelation:
    """Every table of one, two or three columns, with the measures that synthpop prints."""


@table_function("sdc_write_table")
def write_table(
    con: DuckDBPyConnection, /, publication: str, file: str, format: str | None = None, across: str | None = None,
    suppressed: str = "[c]", missing: str = "[x]", total: str = "Total", unknown: str = "Unknown",
    structure: str | None = None, force: bool = False
) -> DuckDBPyRelation:
    """Writes a published table for readers and programs: as a cross table (csv, xlsx), in JSON-stat 2.0, or in SDMX-CSV
    2.0."""


@table_function("sdc_write_tau_argus")
def write_tau_argus(
    con: DuckDBPyConnection, /, publication: str, file: str, safety_range: float = 10, force: bool = False
) -> DuckDBPyRelation:
    """Writes a published table as tau-Argus starts from it: its records, their metadata, hierarchies, and a batch with
    tables and rules."""


__all__ = [
    "accuracy", "accuracy_cells", "accuracy_events", "accuracy_margins", "add_noise", "add_record_key", "anonymize",
    "anonymize_lattice", "approve", "attack_inference", "attack_linkability", "attack_score", "attack_singling_out",
    "attribute_inference", "audit", "audit_log", "average_attack", "chance_match", "check_decide", "check_keys",
    "check_model", "check_records", "check_regression", "check_statistics", "check_submit", "check_table", "classes",
    "count_utility", "create_user", "cube_allocate", "cube_errors", "cube_view", "dcr", "dcr_histogram", "dcr_records",
    "dcr_subsets", "decimals", "declare_public", "disclosure", "dp_allocation", "dp_composition", "dp_composition_each",
    "dp_covariance", "dp_ledger", "dp_mean", "dp_mean_region", "dp_mean_region_noise", "dp_mean_test", "dp_preview",
    "dp_regression", "dp_release", "drop_output", "drop_ptable", "drop_publication", "drop_rules", "drop_synth_model",
    "drop_user", "estimates", "event_pairs", "export", "global_risk", "he_knn_decrypt", "he_knn_encrypt",
    "he_knn_keygen", "he_knn_predict", "he_knn_simulate", "histogram_table", "holdout_share", "identical_matches",
    "individual_risk", "integral_centers", "integral_check", "integral_clusters", "k_anonymity", "k_noise_delta",
    "k_noise_records", "k_pram", "l_diversity", "l_diversity_classes", "levels", "local_k", "local_suppress",
    "local_suppress_report", "marketer_risk", "marketer_risk_classes", "mask_loss", "mask_plan", "mask_risk",
    "membership_risk", "microaggregate", "microaggregate_quality", "modal_guess", "modal_guess_curve",
    "modal_guess_summary", "model_risk", "moment_solutions", "multi_diversity", "multi_diversity_classes", "noise",
    "noise_distribution", "optimum", "outputs", "pca", "pca_membership", "pca_noise", "pca_utility", "percent_table",
    "plan_certify", "plan_log", "plan_rules", "plan_seal", "pmse", "policies", "policy_distance", "policy_risk",
    "policy_tracker", "pram", "pram_matrix", "pram_odds", "primary", "protect", "prototypes", "ptable", "ptable_check",
    "ptables", "publication", "publications", "publish", "quality", "quality_summary", "question_budget", "questions",
    "rake", "rake_report", "rank_swap", "read_arb", "read_asc", "read_hrc", "read_hst", "read_rda", "recode",
    "recode_report", "recon_agreement", "recon_bounds", "recon_count", "recon_designations", "recon_link",
    "recon_refutations", "recon_stability", "reconstruct", "record_swap", "record_swap_report", "releases",
    "replicated_uniques", "rest_group", "rest_group_report", "roc", "round_table", "rounding_ptable", "rule_sets",
    "rules", "sample", "sample_curve", "sample_equivalence", "sdmx", "sequence", "sequence_check", "sequence_default",
    "sequence_forget", "sequence_rehearsal", "shuffle", "store_ptable", "substitute_subsample",
    "substitute_subsample_report", "suda", "suda_contributions", "summary_risk", "suppress", "survival_table",
    "synth_correlations", "synth_diversity", "synth_diversity_records", "synth_dp", "synth_dp_budget",
    "synth_dp_budgets", "synth_dp_ledger", "synth_dp_preflight", "synth_dp_statement", "synth_equal_weights",
    "synth_model", "synth_models", "synth_moments", "synth_records", "synth_replicas", "synth_table", "synth_tables",
    "t_closeness", "t_closeness_classes", "table_risk_utility", "tau", "tau_observed", "tcap", "tcap_records",
    "text_mask", "text_risk", "text_risk_documents", "trend_concordance", "trips_check", "trips_ends", "trips_flows",
    "trips_grid", "trips_leakage", "trips_quality", "trips_synthesize", "tstr", "tune", "unique_share", "unprotect",
    "unsafe_combinations", "users", "utility_columns", "utility_profile", "utility_regression", "utility_tables",
    "write_table", "write_tau_argus",
]
