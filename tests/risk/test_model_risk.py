"""Uniques of the population by a log-linear model: statsmodels, the figures of R, and populations that are known."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.risk.loglinear import deviance, expected_frequencies, unique_risks

SURVEY_KEYS = "keys := ['urbrur', 'roof', 'walls', 'water', 'electcon', 'relat', 'sex']"


def test_a_household_survey_as_in_r(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    # modRisk with its defaults, all keys as numbers: gr1 and gr2 of index.json.
    con.execute(f"CREATE TABLE survey AS FROM read_csv('{reference_data}/sdcmicro/input_testdata.csv.gz')")
    trends = SURVEY_KEYS.replace("keys", "trends")
    found = con.execute(
        f"SELECT gr1, gr2, uniques FROM sdc_model_risk('survey', {SURVEY_KEYS}, {trends}, "
        "weight := 'sampling_weight', interactions := 1, method := 'sdcmicro')"
    ).fetchone()
    assert found == (pytest.approx(0.20871064159, rel=1e-8), pytest.approx(0.27264656697, rel=1e-8), 157)
    # With equal weights it is the same whether records or weights are fitted, or the share is given.
    models = [f"weight := 'sampling_weight', method := '{method}'" for method in ("poisson", "pseudo")]
    rows = [
        con.execute(f"SELECT tau1, tau2 FROM sdc_model_risk('survey', {SURVEY_KEYS}, {model})").fetchone()
        for model in [*models, "fraction := 0.01"]
    ]
    assert rows[0] == pytest.approx(rows[1])
    assert rows[0] == pytest.approx(rows[2])


def test_the_fit_is_that_of_statsmodels() -> None:
    import statsmodels.api as sm  # large: each worker of the tests imports this module

    rng = np.random.default_rng(5)
    observed = rng.poisson(4, (3, 4, 2)).astype(float)
    scores = np.array([1.0, 2.0, 5.0, 9.0])
    a, b, c = (grid.ravel() for grid in np.indices(observed.shape))
    fitted = expected_frequencies(observed, [(0, 2)], {1: scores}, lambda: None)
    design = np.column_stack([*[(a == i) & (c == j) for i in range(3) for j in range(2)], scores[b]]).astype(float)
    wanted = sm.GLM(observed.ravel(), design, family=sm.families.Poisson()).fit()
    assert fitted.ravel() == pytest.approx(wanted.fittedvalues, rel=1e-6)
    assert deviance(observed, fitted) == pytest.approx(wanted.deviance, rel=1e-8)


# Ten records with weights of 100, of which the tests of sdcMicro give what its methods say, to three digits, and for the
# two methods that see weights all fitted frequencies, to two.
SMALL = (
    "(SELECT unnest([2, 3, 2, 3, 3, 1, 2, 3, 2, 2]) AS a, unnest([2, 1, 2, 2, 1, 2, 1, 1, 1, 2]) AS b, "
    "unnest([5, 4, 4, 5, 4, 4, 3, 3, 2, 2]) AS c, 100 AS w)"
)
FITTED = {
    "sdcmicro_ce": "0.10 0.10 0.20 0.10 0.10 0.10 0.21 0.10 0.52 0.52 0.95 0.47 0.52 0.47 1.03 0.52 0.39 0.43 0.85 0.39 0.38 "
    "0.38 0.76 0.42",
    "sdcmicro_weighted": "0.03 0.05 0.01 0.02 0.06 0.13 0.63 0.06 0.53 1.07 0.01 0.02 1.34 0.13 0.65 1.25 0.01 0.55 2.68 0.01 "
    "0.03 0.07 0.02 0.63",
}


@pytest.mark.parametrize(
    ("method", "gr1", "gr2", "bounded1", "bounded2"),
    [
        ("sdcmicro", 0.553, 0.705, 0.622, 0.794),  # "default"; "IPF": 0.552916 and 0.7053842
        ("sdcmicro_ce", 0.542, 0.699, 0.609, 0.786),
        ("sdcmicro_pml", 0.553, 0.705, 0.622, 0.794),
        ("sdcmicro_weighted", 0.408, 0.613, 0.459, 0.690),
    ],
)
def test_the_methods_of_sdcmicro(
    lasting: duckdb.DuckDBPyConnection, method: str, gr1: float, gr2: float, bounded1: float, bounded2: float
) -> None:
    (found,) = lasting.execute(
        f"SELECT round(gr1, 3), round(gr2, 3), round(share1, 3), round(share2, 3), round(gr1, 6), round(gr2, 7) FROM "
        f"sdc_model_risk('{SMALL}', ['a', 'b', 'c'], weight := 'w', interactions := 1, method := '{method}')"
    ).fetchall()
    assert found[:4] == (gr1, gr2, bounded1, bounded2)
    if method == "sdcmicro":
        assert found[4:] == (0.552916, 0.7053842)


@pytest.mark.parametrize("method", FITTED)
def test_the_fitted_frequencies_of_sdcmicro(method: str) -> None:
    observed = np.zeros((3, 2, 4))
    for a, b, c in zip(
        [2, 3, 2, 3, 3, 1, 2, 3, 2, 2], [2, 1, 2, 2, 1, 2, 1, 1, 1, 2], [5, 4, 4, 5, 4, 4, 3, 3, 2, 2], strict=True
    ):
        observed[a - 1, b - 1, c - 2] += 1
    more = (
        {"exposure": np.where(observed > 0, 0.01, 0.0) + 0.1}
        if method == "sdcmicro_ce"
        else {"covariate": 100 * observed}
    )
    fitted = expected_frequencies(observed, [(0,), (1,), (2,)], {}, lambda: None, **more)
    assert fitted.ravel().round(2).tolist() == [float(one) for one in FITTED[method].split()]


@pytest.mark.parametrize("seed", range(3))
def test_an_exposure_and_a_covariate_as_in_statsmodels(seed: int) -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(seed)
    observed = rng.poisson(2, (3, 4, 3)).astype(float)
    exposure, covariate = rng.uniform(0.2, 3, observed.shape), rng.normal(size=observed.shape) * 50
    a, b, c = (grid.ravel() for grid in np.indices(observed.shape))
    design = np.column_stack([*[(a == i) & (b == j) for i in range(3) for j in range(4)], c == 1, c == 2]).astype(float)
    for offset, extra in ((exposure, None), (None, covariate), (exposure, covariate)):
        fitted = expected_frequencies(observed, [(0, 1), (2,)], {}, lambda: None, exposure=offset, covariate=extra)
        wanted = sm.GLM(
            observed.ravel(), design if extra is None else np.column_stack([design, extra.ravel()]),
            family=sm.families.Poisson(), offset=None if offset is None else np.log(offset.ravel()),
        ).fit()  # fmt: skip
        assert fitted.ravel() == pytest.approx(wanted.fittedvalues, rel=1e-5, abs=1e-7)


def test_weights_that_differ(con: duckdb.DuckDBPyConnection) -> None:
    """A population that follows the model, of which one half is sampled ten times as thinly as the other."""
    con.execute(
        "CREATE TABLE everybody AS SELECT i, (50 * pow(hash(i) % 10007 / 10007, 2))::INTEGER AS a, hash(3 * i + 1) % 12 AS b, "
        "hash(5 * i + 2) % 6 AS c, hash(7 * i + 3) % 2 AS thin FROM range(40000) r(i)"
    )
    con.execute(
        "CREATE TABLE sampled AS SELECT *, CASE WHEN thin = 1 THEN 25.0 ELSE 2.5 END AS w FROM everybody "
        "WHERE hash(11 * i + 5) % 1000 < CASE WHEN thin = 1 THEN 40 ELSE 400 END"
    )
    keys = "['a', 'b', 'c', 'thin']"
    (true1, true2), = con.execute(
        "SELECT count(*) FILTER (n = 1), sum(1 / n) FROM (SELECT a, b, c, thin, count(*) AS n FROM everybody GROUP BY ALL) "
        "JOIN (SELECT a, b, c, thin, count(*) AS f FROM sampled GROUP BY ALL) USING (a, b, c, thin) WHERE f = 1"
    ).fetchall()  # fmt: skip
    found = {
        method: con.execute(
            f"SELECT tau1, tau2 FROM sdc_model_risk('sampled', {keys}, weight := 'w', interactions := 1, method := '{method}')"
        ).fetchall()[0]
        for method in ("pseudo", "sdcmicro_ce", "sdcmicro_pml")
    }
    # One key says how records were sampled, so that the sums of the weights follow the model. What sdcMicro takes is
    # frequencies of the sample for those of the population, and the risk comes out far too high.
    assert found["pseudo"] == (pytest.approx(true1, rel=0.25), pytest.approx(true2, rel=0.1))
    assert found["sdcmicro_ce"][1] > 1.5 * true2
    assert found["sdcmicro_pml"][1] > 1.5 * true2


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_the_margins_of_the_terms_are_kept(seed: int) -> None:
    observed = np.random.default_rng(seed).poisson(0.7, (3, 3, 4)).astype(float)
    observed[0, 0, 0] += 1
    fitted = expected_frequencies(observed, [(0, 1), (1, 2)], {}, lambda: None)
    assert fitted.sum(axis=2) == pytest.approx(observed.sum(axis=2), abs=1e-6)
    assert fitted.sum(axis=0) == pytest.approx(observed.sum(axis=0), abs=1e-6)


def test_the_risk_of_a_unique() -> None:
    alone, match = unique_risks(np.array([0.0, 2.0, 1e9, 3.0]), np.array([0.5, 0.5, 0.5, 1.0]))
    assert alone == pytest.approx([1, np.exp(-1), 0, 1])
    assert match == pytest.approx([1, 1 - np.exp(-1), 2e-9, 1])


def test_a_population_that_follows_the_model(con: duckdb.DuckDBPyConnection) -> None:
    # Four independent keys, a sample of a tenth: what the model expects beside what is so.
    con.execute(
        "CREATE TABLE everybody AS SELECT i, (60 * pow(hash(i) % 10007 / 10007, 2))::INTEGER AS a, "
        "hash(3 * i + 1) % 12 AS b, hash(5 * i + 2) % 6 AS c, hash(7 * i + 3) % 4 AS d, hash(11 * i + 5) % 10 = 0 AS taken "
        "FROM range(60000) r(i)"
    )
    true1, true2 = con.execute(
        "SELECT count(*) FILTER (everybody = 1), sum(1 / everybody) FROM (SELECT count(*) AS everybody, "
        "count(*) FILTER (taken) AS sampled FROM everybody GROUP BY a, b, c, d) WHERE sampled = 1"
    ).fetchall()[0]
    tau1, tau2 = con.execute(
        "SELECT tau1, tau2 FROM sdc_model_risk('(FROM everybody WHERE taken)', keys := ['a', 'b', 'c', 'd'], "
        "fraction := 0.1, interactions := 1)"
    ).fetchall()[0]
    assert tau1 == pytest.approx(true1, rel=0.15)
    assert tau2 == pytest.approx(true2, rel=0.05)


def test_no_records_and_no_uniques(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    call = "SELECT records, uniques, tau1, share1, gr1 FROM sdc_model_risk('t', keys := ['a', 'b'], fraction := 0.5)"
    assert con.execute(call).fetchall() == [(0, 0, None, None, None)]
    con.execute("INSERT INTO t VALUES (1, NULL), (1, NULL)")
    assert con.execute(call).fetchall() == [(2, 0, 0.0, None, 0.0)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("keys := ['a']", "give either 'weight'"),
        ("keys := ['a'], weight := 'w', fraction := 0.5", "give either 'weight'"),
        ("keys := ['a'], fraction := 0", "argument 'fraction' must be above 0"),
        ("keys := ['a'], weight := 'zero'", "a weight is NULL, not positive or infinite"),
        ("keys := ['a'], weight := 'w', interactions := 0", "argument 'interactions' must be"),
        ("keys := ['a'], weight := 'w', method := 'CE'", "argument 'method' must be"),
        ("keys := ['a'], fraction := 0.5, method := 'pseudo'", "fits the sums of the weights"),
        (
            "keys := ['a'], fraction := 0.5, method := 'sdcmicro_ce'",
            "shares sampled differ by the weights: give 'weight'",
        ),
        ("keys := ['a'], fraction := 0.5, method := 'sdcmicro_weighted'", "explains frequencies by the weights: give"),
        ("keys := ['a'], weight := 'w', trends := ['w']", "unknown column 'w' in the keys .argument 'trends'"),
        ("keys := ['word'], weight := 'w', trends := ['word']", "which is no number"),
        ("keys := ['hole'], weight := 'w', trends := ['hole']", "which holds NULL"),
        ("keys := ['i', 'j', 'k'], weight := 'w'", "take fewer keys, or coarser ones"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, text: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 2.0 AS w, 0 AS zero, 'x' AS word, NULL::INTEGER AS hole, i, i AS j, i AS k "
        "FROM range(300) r(i)"
    )
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"FROM sdc_model_risk('t', {arguments})").fetchall()
