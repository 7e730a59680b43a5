"""Regressions on both files, estimates and trends of both, and samples as a yardstick."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.methods.utility.intervals import equivalent, marginal_tcap, overlap, rising
from sdcduck.methods.utility.logit import Design, Term, fit_regression


@pytest.fixture(scope="module")
def fair() -> duckdb.DuckDBPyConnection:
    """The survey that comes with statsmodels; rows in turn are the original and the synthetic records."""
    datasets = pytest.importorskip("statsmodels.api").datasets
    con = sdcduck.connect()
    con.register("frame", datasets.fair.load_pandas().data)
    con.execute(
        "CREATE TABLE whole AS SELECT *, (affairs > 0)::INTEGER AS any_affair, affairs > 0 AS truth, row_number() OVER () - 1 AS row FROM frame"
    )
    con.execute("CREATE VIEW even AS SELECT * FROM whole WHERE row % 2 = 0")
    con.execute("CREATE VIEW odd AS SELECT * FROM whole WHERE row % 2 = 1")
    return con


# --- overlap of intervals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "raw", "clamped"),
    [
        ("0, 1, 0.25, 1.25", 0.75, 0.75), ("0, 1, -1, 3", 0.625, 0.625), ("0, 1, 2, 3", -1, 0), ("0, 1, 0, 1", 1, 1),
        ("2, 2, 2, 2", 1, 1), ("2, 2, 3, 3", 0, 0), ("2, 2, 1, 4", 0.5, 0.5), ("1, 4, 2, 2", 0.5, 0.5), ("2, 2, 3, 4", 0, 0),
        ("0, 1, '-inf'::DOUBLE, 'inf'::DOUBLE", 0.5, 0.5), ("NULL, 1, 0, 1", None, None),
    ],
)  # fmt: skip
def test_worked_examples_of_overlap(
    lasting: duckdb.DuckDBPyConnection, interval: str, raw: float | None, clamped: float | None
) -> None:
    assert lasting.execute(
        f"SELECT sdc_interval_overlap({interval}, raw := true), sdc_interval_overlap({interval})"
    ).fetchone() == (
        raw,
        clamped,
    )


def test_an_interval_the_wrong_way_round_is_an_error(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="the upper end of an interval lies below its lower end"):
        con.execute("SELECT sdc_interval_overlap(1, 0, 0, 1)").fetchone()


_LIMITS = st.tuples(st.integers(-50, 50), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(deadline=None)
@given(_LIMITS, _LIMITS, st.integers(-20, 20), st.integers(1, 9))
def test_overlap_is_symmetric_and_has_no_unit(
    lasting: duckdb.DuckDBPyConnection, one: tuple[int, int], other: tuple[int, int], shift: int, scale: int
) -> None:
    found = overlap(*one, *other)
    assert found == pytest.approx(overlap(*other, *one))
    assert found == pytest.approx(overlap(*(scale * x + shift for x in (*one, *other))))
    assert found <= 1
    (in_sql,) = lasting.execute("SELECT sdc_interval_overlap(?, ?, ?, ?, raw := true)", [*one, *other]).fetchone()  # type: ignore[misc]
    assert in_sql == pytest.approx(found)


def test_overlap_of_equal_errors_is_a_line_in_the_difference() -> None:
    z = 1.959964
    for difference in (0.0, 0.5, 2.0, 3.92, 6.0):
        assert overlap(-z, z, difference - z, difference + z) == pytest.approx(1 - difference / (2 * z))
        assert overlap(-z, z, difference - z, difference + z) == pytest.approx(1 - 0.255107 * difference, abs=2e-6)
    # One file is nearer in estimate, the other in intervals: Drechsler's reversal.
    assert overlap(-z, z, 0.5 - z, 0.5 + z) == pytest.approx(0.8724, abs=5e-5)
    assert overlap(-z, z, -3 * z, 3 * z) == pytest.approx(0.6667, abs=5e-5)


# --- regressions -----------------------------------------------------------------------------------------------------

REGRESSION = "outcome := '{}', predictors := ['age', 'yrs_married', 'religious', 'rate_marriage']"


@pytest.mark.parametrize("outcome", ["any_affair", "truth"])
def test_the_logistic_regression_of_the_survey(fair: duckdb.DuckDBPyConnection, outcome: str) -> None:
    rows = fair.execute(
        "SELECT estimate_original, se_original, estimate_synthetic, se_synthetic, cio, z, same_sign, warning "
        f"FROM sdc_utility_regression('even', 'odd', {REGRESSION.format(outcome)}, family := 'binomial')"
    ).fetchall()
    wanted = [
        (3.840816, -0.063414, 0.112209, -0.422774, -0.689350), (0.365870, 0.013727, 0.013038, 0.049120, 0.043947),
        (3.593875, -0.057298, 0.111071, -0.325639, -0.731041), (0.372914, 0.014181, 0.013370, 0.048634, 0.044388),
        (0.829538, 0.888417, 0.978179, 0.493037, 0.759222),
    ]  # fmt: skip
    for place, values in enumerate(wanted):
        assert [row[place] for row in rows] == pytest.approx(values, abs=1e-6)
    assert np.mean([row[4] for row in rows]) == pytest.approx(0.789678, abs=1e-6)
    assert np.mean([row[4] for row in rows[1:]]) == pytest.approx(0.779714, abs=1e-6)
    assert np.mean([abs(row[5]) for row in rows]) == pytest.approx(0.826784, abs=1e-6)
    assert np.mean([abs(row[5]) for row in rows[1:]]) == pytest.approx(0.864744, abs=1e-6)
    assert {row[6:] for row in rows} == {(True, None)}


@pytest.mark.parametrize("binomial", [True, False])
def test_regressions_are_those_of_statsmodels(binomial: bool) -> None:
    api = pytest.importorskip("statsmodels.api")
    draw = np.random.default_rng(11)
    x, kind = draw.normal(100, 7, 900), draw.integers(0, 4, 900)
    y = x / 10 + kind + draw.normal(0, 3, 900)
    y = (y > np.median(y)).astype(float) if binomial else y
    terms = [[Term("x", values=x)], [Term("kind", codes=kind.astype(np.int32), levels=("a", "b", "c", "d"))]]
    found = fit_regression(Design(terms, 900, 1), y, binomial=binomial)
    dummies = np.eye(4)[kind][:, 1:]
    columns = np.column_stack([np.ones(900), x, dummies, x[:, None] * dummies])
    wanted = (api.Logit(y, columns).fit(disp=0, tol=1e-12) if binomial else api.OLS(y, columns).fit())  # fmt: skip
    assert found.coefficients == pytest.approx(wanted.params, rel=1e-5, abs=1e-5)
    assert found.errors == pytest.approx(wanted.bse, rel=1e-5)
    assert found.converged


def test_several_files_are_averaged(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i % 10 AS x, 3 * x + hash(i) % 7 AS y FROM range(400) r(i)")
    copies = "(SELECT o.*, n FROM o, range({}) r(n))"
    asked = "outcome := 'y', predictors := ['x'], sets := 'n', intervals_for := '{}'"
    for sets, ceiling in ((1, 0.8536), (2, 0.9082), (5, 0.9564), (10, 0.9767)):
        for whose, wanted in (("original", 1.0), ("population", ceiling)):
            rows = con.execute(
                f"SELECT cio, z FROM sdc_utility_regression('o', '{copies.format(sets)}', {asked.format(whose)})"
            ).fetchall()
            assert [row[0] for row in rows] == pytest.approx([wanted] * 2, abs=5e-5)
            assert [row[1] for row in rows] == pytest.approx([0, 0], abs=1e-6)


def test_coefficients_that_are_not_determined_and_separated_groups(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT 'k' || i % 3 AS k, (hash(i) % 10 < 3 + 2 * (i % 3))::INTEGER AS y FROM range(900) r(i)"
    )
    rows = {
        row[0]: row[1:]
        for row in con.execute(
            "SELECT term, estimate_synthetic, cio, warning FROM sdc_utility_regression('o', '(FROM o WHERE k <> ''k2'')', outcome := 'y', predictors := ['k'], family := 'binomial')"
        ).fetchall()
    }
    assert rows["k=k2"] == (None, 0, "the synthetic records do not determine it")
    assert rows["k=k1"][1] == pytest.approx(1, abs=0.2)
    apart = con.execute(
        "SELECT max(cio), max(warning) FROM sdc_utility_regression('o', '(SELECT k, (k = ''k2'')::INTEGER AS y FROM o)', outcome := 'y', predictors := ['k'], family := 'binomial')"
    ).fetchone()
    assert apart is not None
    assert apart[0] == 0
    assert "separated" in apart[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("outcome := 'y'", "argument 'predictors' must name"),
        ("predictors := ['x']", "argument 'outcome' must name a column"),
        ("outcome := 'z', predictors := ['x']", "unknown column 'z'"),
        ("outcome := 'y', predictors := ['y']", "names column 'y' twice"),
        ("outcome := 'k', predictors := ['x']", "outcome 'k' must be a column of numbers"),
        ("outcome := 'y', predictors := ['x'], family := 'binomial'", "outcome 'y' must be 0 or 1"),
        ("outcome := 'y', predictors := ['x'], family := 'poisson'", "argument 'family' must be"),
        ("outcome := 'y', predictors := ['x'], intervals_for := 'me'", "argument 'intervals_for' must be"),
        ("outcome := 'y', predictors := ['x'], quantile := 0", "argument 'quantile' must be a number above 0"),
        ("outcome := 'y', predictors := ['x'], sets := 'n'", "unknown column 'n'"),
    ],
)  # fmt: skip
def test_bad_regressions(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE o AS SELECT i AS x, 2 * i AS y, 'k' || i % 3 AS k FROM range(20) r(i)")
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_utility_regression('o', 'o', {arguments})").fetchall()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_regressions_of_few_records(con: duckdb.DuckDBPyConnection, size: int) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT i AS x, hash(i) % 9 AS y, CASE WHEN i % 2 = 0 THEN 'a' END AS k FROM range(50) r(i)"
    )
    for family, outcome in (("gaussian", "y"), ("binomial", "x > 10")):
        one = f"(SELECT {outcome} AS y, x, k FROM o)"
        for sides in ((one, f"(FROM {one} LIMIT {size})"), (f"(FROM {one} LIMIT {size})", one)):
            rows = con.execute(
                "SELECT cio FROM sdc_utility_regression(?, ?, outcome := 'y', predictors := ['x', 'k'], family := ?)",
                [*sides, family],
            ).fetchall()
            assert all(row[0] is None or 0 <= row[0] <= 1 for row in rows)


# --- estimates and trends --------------------------------------------------------------------------------------------

# Sathe et al. (2022), tables of the restricted and the public file: estimate (SE) of each, and the two ratios as printed.
PRINTED = [
    ("SMI 2018, 18+", 4.6, 0.12, 4.6, 0.16, 1.00, 1.30), ("male", 3.4, 0.16, 3.3, 0.20, 0.99, 1.28),
    ("female", 5.7, 0.18, 5.8, 0.23, 1.01, 1.26), ("18-25, AIAN", 6.3, 2.50, 7.0, 2.76, 1.11, 1.11),
    ("18-25, Asian", 5.8, 1.10, 4.9, 1.01, 0.84, 0.92), ("26-49, AIAN", 8.5, 2.43, 7.6, 1.66, 0.90, 0.68),
    ("18+, NHOPI", 4.5, 1.97, 4.9, 2.29, 1.09, 1.16), ("50+, Black", 2.4, 0.59, 2.4, 0.48, 0.99, 0.81),
    ("18+, full-time", 3.9, 0.15, 3.9, 0.20, 1.00, 1.39), ("50+, unemployed", 4.3, 1.84, 4.4, 2.17, 1.02, 1.17),
    ("alcohol 2017, 21+", 70.7, 0.37, 70.6, 0.39, 1.00, 1.07), ("nicotine 2015, 12-17, Asian", 0.1, 0.06, 0.3, 0.21, 4.15, 3.46),
    ("nicotine 2015, 12+", 10.8, 0.20, 10.9, 0.22, 1.01, 1.10), ("illicit 2019, male 12-17", 2.9, 0.27, 3.0, 0.41, 1.04, 1.55),
]  # fmt: skip


def make_printed(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o (domain VARCHAR, est DOUBLE, se DOUBLE); CREATE TABLE p (domain VARCHAR, est DOUBLE, se DOUBLE)"
    )
    con.executemany("INSERT INTO o VALUES (?, ?, ?)", [row[:3] for row in PRINTED])
    con.executemany("INSERT INTO p VALUES (?, ?, ?)", [(row[0], *row[3:5]) for row in PRINTED])


def test_printed_ratios_lie_where_rounding_lets_them(con: duckdb.DuckDBPyConnection) -> None:
    # The ratios were computed before rounding, so that only an interval can be recomputed from what is printed.
    make_printed(con)
    found = {
        row[0]: row[1:]
        for row in con.execute(
            "SELECT domain, ratio_estimate, ratio_se, extreme, reason FROM sdc_quality('o', 'p', dimensions := ['domain'])"
        ).fetchall()
    }
    for name, est_o, se_o, est_p, se_p, ratio, ratio_se in PRINTED:
        for x, y, unit, printed, ours in (
            (est_p, est_o, 0.1, ratio, found[name][0]),
            (se_p, se_o, 0.01, ratio_se, found[name][1]),
        ):
            assert (x - unit / 2) / (y + unit / 2) - 0.005 <= printed <= (x + unit / 2) / (y - unit / 2) + 0.005, name
            assert ours == pytest.approx(x / y)
    assert found["nicotine 2015, 12-17, Asian"][2:] == (True, "low prevalence or few contributors")
    assert found["illicit 2019, male 12-17"][2:] == (True, "loss of precision")
    assert sum(row[2] for row in found.values()) == 2


def test_estimates_of_one_file_only_suppressed_ones_and_zeros(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT * FROM (VALUES (1, 0.0, 0.0, false), (2, 4.0, 1.0, true), (3, 4.0, 1.0, false), (NULL, 2.0, 1.0, false)) t(k, est, se, gone)"
    )
    con.execute(
        "CREATE TABLE p AS SELECT * FROM (VALUES (1, 1.0, 1.0), (2, 4.0, 1.0), (4, 1.0, 1.0), (NULL, 0.0, 0.0)) t(k, est, se)"
    )
    rows = con.execute(
        "SELECT k, present_in, ratio_estimate, ratio_se, extreme FROM sdc_quality('o', 'p', dimensions := ['k'], suppressed := 'gone') ORDER BY k NULLS LAST"
    ).fetchall()
    assert rows == [
        (1, "both", None, None, False), (2, "both", None, None, False), (3, "original", None, None, False),
        (4, "protected", None, None, False), (None, "both", 0, 0, True),
    ]  # fmt: skip
    with pytest.raises(duckdb.Error, match="the dimensions name more than one estimate in argument 'protected'"):
        con.execute("FROM sdc_quality('o', '(FROM p UNION ALL FROM p)', dimensions := ['k'])").fetchall()
    with pytest.raises(duckdb.Error, match="argument 'dimensions' must name"):
        con.execute("FROM sdc_quality('o', 'p')").fetchall()
    with pytest.raises(duckdb.Error, match="unknown column 'estimate'"):
        con.execute("FROM sdc_quality('o', 'p', dimensions := ['k'], estimate := 'estimate')").fetchall()


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=25))
def test_percentiles_of_ratios_are_averaged_at_steps(lasting: duckdb.DuckDBPyConnection, ratios: list[int]) -> None:
    values = ", ".join(f"({place}, {ratio / 10}, 1)" for place, ratio in enumerate(ratios))
    ones = ", ".join(f"({place}, 1, 1)" for place in range(len(ratios)))
    row = lasting.execute(
        "SELECT ratios, mean, least, p10, median, p90, most, extreme FROM sdc_quality_summary"
        f"('(FROM (VALUES {ones}) t(k, est, se))', '(FROM (VALUES {values}) t(k, est, se))', dimensions := ['k']) WHERE quantity = 'estimate'"
    ).fetchone()
    known = np.array(ratios) / 10
    quantiles = np.quantile(known, [0, 0.1, 0.5, 0.9, 1], method="averaged_inverted_cdf")
    assert row == pytest.approx((len(ratios), known.mean(), *quantiles, ((known < 0.5) | (known > 1.5)).sum()))


def test_the_summary_by_groups(con: duckdb.DuckDBPyConnection) -> None:
    make_printed(con)
    topics = "(SELECT split_part(domain, ' ', 1) AS topic, * FROM {})"
    rows = con.execute(
        f"SELECT topic, quantity, ratios, extreme, correlation FROM sdc_quality_summary('{topics.format('o').replace(chr(39), chr(39) * 2)}', '{topics.format('p').replace(chr(39), chr(39) * 2)}', dimensions := ['topic', 'domain'], \"by\" := ['topic'])"
    ).fetchall()
    assert [row[:4] for row in rows if row[0] == "nicotine"] == [
        ("nicotine", "estimate", 2, 1),
        ("nicotine", "se", 2, 1),
    ]
    overall = con.execute("SELECT correlation FROM sdc_quality_summary('o', 'p', dimensions := ['domain'])").fetchall()
    assert overall[0][0] > 0.999
    with pytest.raises(duckdb.Error, match=r"unknown column 'sex' in the dimensions \(argument 'by'\)"):
        con.execute("FROM sdc_quality_summary('o', 'p', dimensions := ['domain'], \"by\" := ['sex'])").fetchall()
    empty = con.execute(
        "FROM sdc_quality_summary('(FROM o LIMIT 0)', '(FROM p LIMIT 0)', dimensions := ['domain'])"
    ).fetchall()
    assert [row[1] for row in empty] == [0, 0]


def test_trends_of_both_files(con: duckdb.DuckDBPyConnection) -> None:
    # Sathe et al. (2022) print which years differ from the last, and no standard errors: these are made to give them. The
    # published comparison of suicidal thoughts has 9 of 10 concordant, the miss being women in 2017.
    years = range(2014, 2020)
    printed = {
        ("male", "o"): ([3.9, 3.9, 4.1, 4.1, 4.1, 4.5], "110000"), ("male", "p"): ([3.9, 3.8, 4.1, 4.1, 4.0, 4.5], "110000"),
        ("female", "o"): ([4.0, 4.2, 4.0, 4.6, 4.6, 5.1], "111110"), ("female", "p"): ([4.1, 4.2, 4.0, 4.7, 4.6, 5.2], "111010"),
    }  # fmt: skip
    for name in "op":
        con.execute(f"CREATE TABLE {name} (sex VARCHAR, year INTEGER, est DOUBLE, se DOUBLE)")
    for (sex, name), (values, marks) in printed.items():
        for year, value, mark in zip(years, values, marks, strict=True):
            gap = abs(value - values[-1])
            se = 0.0 if year == 2019 else gap / 3 if mark == "1" else gap
            con.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [sex, year, value, se])
    rows = con.execute(
        "SELECT sex, year, same_sign, concordant FROM sdc_trend_concordance('o', 'p', dimensions := ['sex'], period := 'year')"
    ).fetchall()
    assert len(rows) == 10
    assert [row[:2] for row in rows if not row[3]] == [("female", 2017)]
    assert all(row[2] for row in rows)
    alcohol = {
        "o": ([37.7, 35.9, 34.7, 34.9, 33.8, 33.5], "110000"),
        "p": ([37.7, 36.3, 34.6, 35.1, 34.1, 33.8], "110000"),
    }
    for name, (values, marks) in alcohol.items():
        for year, value, mark in zip(years, values, marks, strict=True):
            gap = abs(value - values[-1])
            con.execute(f"INSERT INTO {name} VALUES ('young', ?, ?, ?)", [year, value, 0 if year == 2019 else gap / 3 if mark == "1" else gap])  # fmt: skip
    again = con.execute(
        "SELECT concordant FROM sdc_trend_concordance('o', 'p', dimensions := ['sex'], period := 'year') WHERE sex = 'young'"
    ).fetchall()
    assert again == [(True,)] * 5  # drinking below the age of 21: five of five
    with pytest.raises(duckdb.Error, match="argument 'period' must name"):
        con.execute("FROM sdc_trend_concordance('o', 'p', dimensions := ['sex'])").fetchall()


def test_a_subsample_of_a_survey_costs_what_it_should(con: duckdb.DuckDBPyConnection) -> None:
    """The published files differ like a sample of 80 per cent, weighted up to the cells of the whole.

    200 outcomes of 20,000 records with log-normal weights: estimates are right in the mean, and errors larger by some 12
    per cent, 1 / sqrt(0.8), as naive errors do not know what the weighting gains.
    """
    con.execute("""
        CREATE TABLE survey AS
        SELECT i AS id, hash(3 * i) % 12 AS cell, exp(0.5 * sqrt(-2 * ln((1 + hash(5 * i) % 1000000) / 1000001))
            * cos(2 * pi() * (hash(7 * i) % 1000000) / 1000000)) AS w, hash(11 * i) % 1000 AS luck FROM range(20000) r(i);
        CREATE TABLE part AS FROM survey WHERE luck < 800;
        CREATE TABLE calibrated AS
        SELECT p.* REPLACE (p.w * s.w / sum(p.w) OVER (PARTITION BY p.cell) AS w)
        FROM part p JOIN (SELECT cell, sum(w) AS w FROM survey GROUP BY cell) s USING (cell)""")
    totals = "SELECT cell, sum(w) FROM {} GROUP BY cell ORDER BY cell"
    assert np.allclose(*(np.array(con.execute(totals.format(t)).fetchall(), float) for t in ("survey", "calibrated")))
    for table in ("survey", "calibrated"):
        # Linearised: every record is a unit of its own, in one stratum.
        con.execute(f"""
            CREATE TABLE estimates_{table} AS
            WITH outcomes AS (
                SELECT o, w, (hash(id * 1009 + o * 7919) % 1000 < 20 + 4 * o + 10 * cell)::INTEGER AS y FROM {table}, range(200) k(o)
            ), means AS (SELECT o, sum(w * y) / sum(w) AS est, sum(w) AS total, count(*) AS n FROM outcomes GROUP BY o)
            SELECT o, any_value(est) AS est, sqrt(any_value(n) / (any_value(n) - 1) * sum((w * (y - est) / total) ** 2)) AS se
            FROM outcomes JOIN means USING (o) GROUP BY o""")
    found = dict(
        con.execute(
            "SELECT quantity, mean FROM sdc_quality_summary('estimates_survey', 'estimates_calibrated', dimensions := ['o'])"
        ).fetchall()
    )
    assert found["estimate"] == pytest.approx(1, abs=0.002)
    assert found["se"] == pytest.approx(1.12, abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_quality('(SELECT ''a'' AS k, 1 AS est, 1 AS se)', 'p', dimensions := ['k'])", "column 'k' is VARCHAR in 'original' and INTEGER in 'protected'"),
        ("sdc_quality('texts', 'p', dimensions := ['k'])", "argument 'estimate' must name a column of numbers: 'est' of 'texts' is VARCHAR"),
        ("sdc_quality('(SELECT 1 AS k, 1 AS est, -1 AS se)', 'p', dimensions := ['k'])", "or a standard error is negative"),
        ("sdc_quality('(SELECT 1 AS k, ''inf''::DOUBLE AS est, 1 AS se)', 'p', dimensions := ['k'])", "an estimate or a standard error is infinite"),
        ("sdc_quality('(SELECT 1 AS k, 1 AS est, 1 AS se, ''no'' AS gone)', 'p', dimensions := ['k'], suppressed := 'gone')", "must name a column of truth values"),
        ("sdc_trend_concordance('(SELECT 1 AS k, ''2019'' AS y, 1 AS est, 1 AS se)', '(SELECT 1 AS k, 2019 AS y, 1 AS est, 1 AS se)', dimensions := ['k'], period := 'y')", "column 'y' is VARCHAR in 'original' and INTEGER"),
    ],
)  # fmt: skip
def test_estimates_that_are_none(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT 1 AS k, 1 AS est, 1 AS se")
    lasting.execute("CREATE OR REPLACE TABLE texts AS SELECT 1 AS k, 'secret' AS est, 1 AS se")
    with pytest.raises(duckdb.Error, match=message) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert "secret" not in str(raised.value)
    for table in (
        "'(SELECT 1 AS k, ''nan''::DOUBLE AS est, 1 AS se)', 'p'",
        "'p', '(SELECT 1 AS k, 1 AS est, ''nan''::FLOAT AS se)'",
    ):
        rows = lasting.execute(
            f"SELECT mean, least, most FROM sdc_quality_summary({table}, dimensions := ['k'])"
        ).fetchall()
        assert {value for row in rows for value in row} == {None, 1.0}


@pytest.mark.parametrize(
    ("percent", "se", "wanted"),
    [
        (3.2, 2.81, True),
        (5.8, 3.34, True),
        (4.4, 3.97, True),
        (5.0, 2.65, True),
        (4.9, 2.33, False),
        (78.9, 5.00, True),
    ],
)
def test_the_rule_of_precision(lasting: duckdb.DuckDBPyConnection, percent: float, se: float, wanted: bool) -> None:
    assert lasting.execute("SELECT sdc_unreliable(? / 100, ? / 100, 500)", [percent, se]).fetchone() == (wanted,)
    p, s = percent / 100, se / 100
    q = p if p <= 0.5 else 1 - p
    statistic = {3.2: 0.255, 5.8: 0.202, 4.4: 0.289, 5.0: 0.177, 4.9: 0.158, 78.9: 0.152}[percent]
    assert s / q / -math.log(q) == pytest.approx(statistic, abs=5e-4)


def test_the_edges_of_the_rule_of_precision(con: duckdb.DuckDBPyConnection) -> None:
    row = con.execute(
        "SELECT sdc_unreliable(0, 0, NULL), sdc_unreliable(1, 0, NULL), sdc_unreliable(0.4, 0.01, 99), sdc_unreliable(0.4, 0.01, NULL), sdc_unreliable(NULL, 1, 1), sdc_unreliable(0.4, 0, 500)"
    ).fetchone()
    assert row == (True, True, True, False, None, False)


# --- samples as a yardstick ------------------------------------------------------------------------------------------


def codes(con: duckdb.DuckDBPyConnection, table: str, columns: list[str]) -> list[Any]:
    rows = con.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchnumpy()
    return [np.asarray(rows[name]) for name in columns]


def tcap(con: duckdb.DuckDBPyConnection, one: str, other: str, keys: list[str], target: str) -> Any:
    columns = [*keys, target]
    coded_o, coded_s, sizes = [], [], []
    for a, b in zip(codes(con, one, columns), codes(con, other, columns), strict=True):
        known, places = np.unique(np.concatenate([a, b]), return_inverse=True)
        coded_o.append(places[: len(a)].astype(np.int32))
        coded_s.append(places[len(a) :].astype(np.int32))
        sizes.append(len(known))
    return marginal_tcap(coded_o[:-1], coded_s[:-1], coded_o[-1], coded_s[-1], sizes)


def test_the_worked_example_of_correct_attribution(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT * FROM (VALUES ('a','x','P'), ('a','x','P'), ('a','y','Q'), ('b','x','Q'), ('b','x','P'), ('b','y','Q'), ('c','x','R'), ('c','x','R')) t(k1, k2, t)"
    )
    con.execute(
        "CREATE TABLE s AS SELECT * FROM (VALUES ('a','x','P'), ('a','x','P'), ('a','x','P'), ('a','y','P'), ('b','x','Q'), ('b','y','Q'), ('b','y','R'), ('d','x','R')) t(k1, k2, t)"
    )
    assert tcap(con, "o", "s", ["k1", "k2"], "t") == pytest.approx((0.6, 0.34375, 0.3904761905))
    found = con.execute(
        "SELECT value FROM sdc_sample_equivalence('o', 's', metrics := ['tcap'], keys := ['k1', 'k2'], sensitive := ['t'], fractions := [0.5], seed := 1)"
    ).fetchone()
    assert found == (pytest.approx(0.3904761905),)


@pytest.mark.parametrize(
    ("keys", "target", "even_odd", "whole_even"),
    [
        (["age", "yrs_married", "children"], "religious", (0.41025641, 0.30850302, 0.14714943), (0.86956522, 0.81153627)),
        (["age", "yrs_married", "children", "educ", "occupation"], "religious", (0.38461538, 0.30850302, 0.11006897), (0.72246696, 0.59899567)),
        (["age", "yrs_married", "children", "educ", "occupation", "occupation_husb"], "rate_marriage", (0.37062937, 0.32938485, 0.06150252), (0.76073014, 0.64322496)),
    ],
)  # fmt: skip
def test_correct_attribution_in_the_survey(
    fair: duckdb.DuckDBPyConnection,
    keys: list[str],
    target: str,
    even_odd: tuple[float, ...],
    whole_even: tuple[float, float],
) -> None:
    assert tcap(fair, "even", "odd", keys, target) == pytest.approx(even_odd, abs=1e-8)
    found = tcap(fair, "whole", "even", keys, target)
    assert (found[0], found[2]) == pytest.approx(whole_even, abs=1e-8)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_rising_curves_are_those_of_scikit_learn(values: list[float]) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    found = rising(np.array(values))
    assert found == pytest.approx(isotonic.isotonic_regression(values), abs=1e-9)
    assert (np.diff(found) >= -1e-12).all()


def test_equivalent_samples_are_read_from_the_curve() -> None:
    fractions, curve = np.array([0.1, 0.2, 0.5]), np.array([0.4, 0.6, 0.9])
    assert equivalent(fractions, curve, 0.3) == (None, 0.1, None)
    assert equivalent(fractions, curve, 0.9) == (0.5, None, None)
    assert equivalent(fractions, curve, 0.5) == pytest.approx((0.1, 0.2, 0.15))
    assert equivalent(fractions, curve, 0.4) == pytest.approx((0.1, 0.2, 0.1))


def test_a_sample_is_as_useful_and_as_risky_as_itself(fair: duckdb.DuckDBPyConnection) -> None:
    columns = ["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation", "any_affair"]
    asked = (
        f"columns := {columns}, keys := ['age', 'yrs_married', 'children', 'educ'], sensitive := ['religious'], "
        "outcomes := ['any_affair'], predictors := ['age', 'yrs_married', 'religious'], "
        "fractions := [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95], repeats := 3, seed := 2"
    )
    rows = fair.execute(
        f"SELECT metric, interpolated, violation FROM sdc_sample_equivalence('whole', '(FROM whole WHERE hash(row) % 10 < 3)', {asked})"
    ).fetchall()
    assert [row[0] for row in rows] == ["roc1", "roc2", "cio", "utility", "tcap"]
    # 30 per cent of the records; a single sample varies, most where few coefficients are averaged.
    assert all(0.15 < row[1] < 0.45 for row in rows if row[0] in ("roc1", "roc2", "tcap")), rows
    curve = fair.execute(f"SELECT metric, fraction, mean FROM sdc_sample_curve('whole', {asked})").fetchall()
    assert all(0 <= row[2] <= 1 for row in curve if row[0] != "tcap")
    for metric in ("roc1", "roc2", "tcap"):
        means = [row[2] for row in curve if row[0] == metric]
        assert max(np.abs(rising(np.array(means)) - means)) < 0.05
    assert (
        fair.execute(f"FROM sdc_sample_curve('whole', {asked})").fetchall()
        == fair.execute(f"FROM sdc_sample_curve('whole', {asked})").fetchall()
    )
    itself = fair.execute(
        f"SELECT metric, value, upper FROM sdc_sample_equivalence('whole', 'whole', {asked})"
    ).fetchall()
    assert all(row[1] == pytest.approx(1) and row[2] is None for row in itself)


def test_independent_margins_look_useful_by_their_columns(fair: duckdb.DuckDBPyConnection) -> None:
    # Little et al.: each column by itself is perfect, and so the mean of the measures flatters.
    columns = ["religious", "educ", "occupation", "age"]
    mixed = (
        "(SELECT "
        + ", ".join(
            f"unnest(list({name} ORDER BY hash(row + {place}))) AS {name}" for place, name in enumerate(columns)
        )
        + " FROM whole)"
    )
    rows = dict(
        fair.execute(
            "SELECT metric, value FROM sdc_sample_equivalence('whole', ?, columns := ?, fractions := [0.1, 0.5], repeats := 2, seed := 1)",
            [mixed, columns],
        ).fetchall()
    )
    assert rows["roc1"] == pytest.approx(1)
    assert rows["roc2"] < 0.95


def test_a_synthesis_by_trees_on_the_map_of_samples(reference_data: Path) -> None:
    # The specification's map of SD2011 has three more variables than the stored extract (sport, trust and knowledge of
    # English), so that its figures hold within a few hundredths only. The four censuses of the paper are not public.
    folder = reference_data / "synthpop"
    if not folder.is_dir():
        pytest.skip("no reference data of synthpop")
    con = sdcduck.connect()
    for name, file in (("o", "SD2011_12vars"), ("s", "syn_cart")):
        con.execute(f"CREATE TABLE {name} AS FROM read_csv('{folder}/{file}.csv.gz', nullstr = ['NA', ''])")
    asked = (
        "columns := ['sex', 'agegr', 'placesize', 'region', 'edu', 'socprof', 'marital', 'ls', 'smoke'], "
        "keys := ['agegr', 'sex', 'marital', 'placesize', 'socprof', 'region'], sensitive := ['ls', 'smoke'], "
        "fractions := [0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.95], repeats := 3, seed := 1"
    )
    curve = {
        (row[0], row[1]): row[2]
        for row in con.execute(f"SELECT metric, fraction, mean FROM sdc_sample_curve('o', {asked})").fetchall()
    }
    for fraction, roc1, roc2, tcap_ in (
        (0.01, 0.62, 0.40, 0.21),
        (0.05, 0.80, 0.58, 0.33),
        (0.2, 0.89, 0.73, 0.40),
        (0.5, 0.94, 0.84, 0.67),
        (0.95, 0.985, 0.967, 0.975),
    ):
        assert curve["roc1", fraction] == pytest.approx(roc1, abs=0.06)
        assert curve["roc2", fraction] == pytest.approx(roc2, abs=0.04)
        assert curve["tcap", fraction] == pytest.approx(tcap_, abs=0.12)
    found = {
        row[0]: row[1:]
        for row in con.execute(
            f"SELECT metric, lower, upper, interpolated FROM sdc_sample_equivalence('o', 's', {asked})"
        ).fetchall()
    }
    assert found["utility"][:2] == (0.3, 0.5)
    assert found["utility"][2] > 2 * found["tcap"][2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("metrics := ['pmse']", "argument 'metrics' must hold 'roc1', 'roc2', 'cio', 'utility' or 'tcap'"),
        ("metrics := ['tcap']", "metric 'tcap' needs 'keys' and 'sensitive'"),
        ("metrics := ['cio']", "metric 'cio' needs 'outcomes' and 'predictors'"),
        ("columns := ['a'], metrics := ['roc2']", "metric 'roc2' needs two columns"),
        ("keys := ['a']", "'keys' and 'sensitive' belong together"),
        ("outcomes := ['a']", "'outcomes' and 'predictors' belong together"),
        ("keys := ['c'], sensitive := ['a']", "unknown column 'c' in those that are compared .argument 'keys'"),
        ("fractions := [0]", "argument 'fractions' must hold numbers between 0 and 1"),
        ("fractions := [1.5]", "argument 'fractions' must hold numbers between 0 and 1"),
        ("repeats := 0", "argument 'repeats' must be a whole number from 1 to 10000"),
        ("family := 'probit'", "argument 'family' must be"),
    ],
)  # fmt: skip
def test_bad_samples(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE o AS SELECT i % 3 AS a, i % 2 AS b FROM range(50) r(i)")
    for call in ("sdc_sample_curve('o'", "sdc_sample_equivalence('o', 'o'"):
        with pytest.raises(duckdb.Error, match=message):
            lasting.execute(f"FROM {call}, {arguments})").fetchall()


def test_samples_of_few_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i % 3 AS a, i % 2 AS b FROM range(3) r(i)")
    assert con.execute("SELECT DISTINCT fraction FROM sdc_sample_curve('o', fractions := [0.1, 0.5])").fetchall() == [
        (0.5,)
    ]
    assert con.execute("FROM sdc_sample_curve('(FROM o LIMIT 0)')").fetchall() == []
    assert con.execute("FROM sdc_sample_equivalence('(FROM o LIMIT 0)', 'o')").fetchall() == []
