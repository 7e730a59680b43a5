"""Columns that are drawn from regressions: what is estimated, by closed forms, and what comes out, by moments."""

from __future__ import annotations

import gzip
from pathlib import Path
from statistics import NormalDist

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sdcduck.methods.synthesis.regressions import Fitted, Predictor, _classes, _line, _linear, _nearest, _scores

DATA = Path(__file__).parents[3] / "shared" / "data" / "synthpop" / "SD2011_12vars.csv.gz"


def with_jobs(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """4000 records: income is linear in age and region, whether somebody owns and how they live logistic in age."""
    rng = np.random.default_rng(5)
    n = 4000
    age, region = rng.integers(20, 80, n), rng.integers(0, 3, n)
    income = 1000 + 30 * age + 250 * (region == 1) + rng.normal(0, 300, n)
    owns = rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 8))
    lives = (rng.gumbel(size=(n, 3)) + np.column_stack([0 * age, (age - 50) / 10, 0 * age - 1])).argmax(axis=1)
    table = pa.table(
        {
            "age": age.astype(np.int16), "region": np.array(["n", "s", "w"])[region],
            "income": pa.array(income.round(2), mask=rng.random(n) < 0.05), "owns": pa.array(owns, mask=rng.random(n) < 0.1),
            "lives": np.array(["alone", "couple", "other"])[lives], "flag": owns.astype(np.int8),
        }
    )  # fmt: skip
    con.register("given", table)
    con.execute("CREATE TABLE jobs AS SELECT * REPLACE (income::DECIMAL(9, 2) AS income) FROM given")
    con.unregister("given")
    return con


@pytest.fixture(scope="module")
def jobs(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return with_jobs(lasting)


def synthetic(con: duckdb.DuckDBPyConnection, shown: str, arguments: str) -> list[tuple[object, ...]]:
    return con.execute(f"SELECT {shown} FROM sdc_synth_records('jobs', {arguments})").fetchall()


def test_a_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(60), rng.normal(size=(60, 3))])
    target = 1e6 + design @ [5, 3, -2, 0] + rng.normal(size=60)
    found, sd = _line(design, target)
    best, rest = np.linalg.lstsq(design, target, rcond=None)[:2]
    assert found[:, 0] == pytest.approx(best, rel=1e-6)
    assert sd == pytest.approx(float(np.sqrt(rest[0] / 56)), rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_likely_coefficients_solve_the_equations_of_their_score(outputs: int) -> None:
    rng = np.random.default_rng(outputs)
    design = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    targets = rng.integers(0, outputs + 1, 200) * (design[:, 1] > -1)
    found = _classes(design, targets, outputs)
    chances = np.exp(np.column_stack([np.zeros(200), design @ found]))
    chances /= chances.sum(axis=1, keepdims=True)
    wanted = np.eye(outputs + 1)[targets]
    score = design.T @ (wanted - chances)[:, 1:] / 200 - 1e-6 * found
    assert np.abs(score).max() < 1e-6
    # Shares of the classes are kept.
    assert chances.mean(axis=0) == pytest.approx(wanted.mean(axis=0), abs=1e-4)


def test_classes_that_are_told_apart_without_an_error() -> None:
    design = np.column_stack([np.ones(20), np.repeat([-1.0, 1.0], 10)])
    found = _classes(design, np.repeat([0, 1], 10), 1)
    assert np.isfinite(found).all()
    assert found[1, 0] > 5


def test_normal_scores_of_ranks() -> None:
    normal = NormalDist().inv_cdf
    # Ranks 1.5, 1.5, 3, 4 of 4.
    expected = [normal(1.5 / 5), normal(4 / 5), normal(1.5 / 5), normal(3 / 5)]
    assert _scores(np.array([0, 2, 0, 1], np.int32), 3).tolist() == pytest.approx(expected)


def test_donors_that_are_near() -> None:
    numbers = np.array(
        [-9.0, 0.0, 1.0, 2.0, 2.0, 2.0, 7.0, -5.0]
    )  # of which the first and the last are somebody else's

    def found(target: float, count: int) -> list[int]:
        return sorted({_nearest(numbers, 1, 7, target, count, chance) for chance in np.linspace(0.01, 0.99, 99)})

    assert found(0.4, 1) == [1]
    assert found(0.6, 2) == [1, 2]
    assert found(1.9, 1) == [3, 4, 5]  # all of them are as near
    assert found(99.0, 2) == [3, 4, 5, 6]
    assert found(-99.0, 6) == [1, 2, 3, 4, 5, 6]


def test_what_is_missing_among_the_predictors_has_an_effect_of_its_own() -> None:
    codes = np.array([0, 1, -1, -1, 2, 0], np.int32)
    fitted = Fitted()
    values = np.array([10.0, 20.0, 30.0, 50.0])
    target = np.array([0, 1, 3, 3, 2, 0], np.int32)  # 10 for each step, and 50 where it is missing
    fitted.add("norm", target, values, [Predictor(0, codes, 3, np.array([1.0, 2.0, 3.0]))], 5)
    centre, slope, missing, intercept, sd = np.concatenate(fitted.effects).tolist()
    assert (centre, slope) == (pytest.approx(1.75), pytest.approx(10))
    assert intercept == pytest.approx(17.5)
    assert intercept + missing == pytest.approx(50)
    assert sd == pytest.approx(0, abs=1e-5)


MOMENTS = (
    "avg(income)::DOUBLE, stddev(income), regr_slope(income, age), avg(income) FILTER (region = 's')::DOUBLE, "
    "sqrt(regr_syy(income, age) * (1 - regr_r2(income, age)) / count(income)), avg((income IS NULL)::INT), "
    "avg(owns::INT), avg(owns::INT) FILTER (age > 60), avg((owns IS NULL)::INT), avg((lives = 'couple')::INT) FILTER "
    "(age > 60), avg((lives = 'other')::INT)"
)
CLOSE = (39, 28, 1.1, 66, 14, 0.014, 0.033, 0.037, 0.019, 0.055, 0.021)
"""Four standard errors of each of these moments in 4000 records."""


@pytest.mark.parametrize(
    "method",
    ["'parametric'", "{'income': 'norm', 'owns': 'polyreg'}", "{'income': 'pmm', 'lives': 'polyreg'}"],
)
def test_moments_are_kept(jobs: duckdb.DuckDBPyConnection, method: str) -> None:
    expected = jobs.execute(f"SELECT {MOMENTS} FROM jobs").fetchall()[0]
    found = synthetic(jobs, MOMENTS, f"method := {method}, seed := 1")[0]
    for got, wanted, near in zip(found, expected, CLOSE, strict=True):
        assert got == pytest.approx(wanted, abs=near)


@pytest.mark.parametrize("method", ["normrank", "pmm", "sample"])
def test_values_are_original_ones(jobs: duckdb.DuckDBPyConnection, method: str) -> None:
    new = synthetic(
        jobs, "count(*) FILTER (income NOT IN (FROM (SELECT income FROM jobs WHERE income IS NOT NULL)))",
        f"method := {{'income': '{method}'}}, smoothing := 'none', seed := 1",
    )  # fmt: skip
    assert new == [(0,)]
    slope = synthetic(jobs, "regr_slope(income, age)", f"method := {{'income': '{method}'}}, seed := 1")[0][0]
    assert slope == pytest.approx(0 if method == "sample" else 30, abs=1.5)


def test_new_numbers_have_the_type_and_the_bounds_of_the_column(jobs: duckdb.DuckDBPyConnection) -> None:
    bounded = "method := {'income': 'norm', 'age': 'norm'}, bounds := {'age': [20, 79]}, round_to := {'income': 50}"
    least, most, multiples, bound, clipped = synthetic(
        jobs, "min(age), max(age), count(*) FILTER (income % 50 <> 0), sum((age IN (20, 79))::INT), sum(clipped_age::INT)",
        f"{bounded}, redraws := 9, details := true, seed := 3",
    )[0]  # fmt: skip
    assert (least, most, multiples, clipped) == (20, 79, 0, 0)
    assert bound < 200
    assert synthetic(jobs, "sum(clipped_age::INT) > 100", f"{bounded}, redraws := 0, details := true, seed := 3") == [
        (True,)
    ]
    # A small integer stays one, however far its law reaches.
    tiny = "(SELECT (range % 2 * 100)::TINYINT AS x FROM range(200))"
    low, high, kind = jobs.execute(
        f"SELECT min(x), max(x), any_value(typeof(x)) FROM sdc_synth_records('{tiny}', method := {{'x': 'norm'}}, seed := 1)"
    ).fetchall()[0]
    assert (low >= -128, high <= 127, high > 100, kind) == (True, True, True, "TINYINT")


def test_later_columns_see_the_new_number(jobs: duckdb.DuckDBPyConnection) -> None:
    """Also beyond all original ones, by regressions; by trees as the nearest of these."""
    source = "(SELECT x, 3 * x AS y, 2 * x AS z FROM (SELECT (range % 100)::DOUBLE AS x FROM range(2000)))"
    rows = jobs.execute(
        f"SELECT x, y, z FROM sdc_synth_records('{source}', method := {{'x': 'norm', 'y': 'norm'}}, seed := 1)"
    ).fetchnumpy()
    assert rows["x"].max() > 120
    assert rows["y"] == pytest.approx(3 * rows["x"], abs=0.01)
    inside = (rows["x"] > 0) & (rows["x"] < 99)
    assert rows["z"][inside] == pytest.approx(2 * rows["x"][inside], abs=8)  # within a leaf of 5


def test_categories_of_any_type(jobs: duckdb.DuckDBPyConnection) -> None:
    for column, method in (("flag", "logreg"), ("flag", "polyreg"), ("region", "polyreg"), ("owns", "polyreg")):
        rows = synthetic(jobs, f"DISTINCT {column}", f"method := {{'{column}': '{method}'}}, seed := 1")
        assert set(rows) == set(jobs.execute(f"SELECT DISTINCT {column} FROM jobs").fetchall())
    one = jobs.execute(
        "SELECT DISTINCT a, b FROM sdc_synth_records('(SELECT ''k'' AS a, DATE ''2020-01-01'' AS b FROM range(30))', "
        "method := 'parametric', seed := 1)"
    ).fetchall()
    assert [tuple(map(str, row)) for row in one] == [("k", "2020-01-01")]


def test_missing_infinite_and_huge_numbers(jobs: duckdb.DuckDBPyConnection) -> None:
    source = """(SELECT CASE range % 10 WHEN 0 THEN NULL WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN 'inf'::DOUBLE ELSE range END AS x,
        range * 1e300 AS y, (range * 10::HUGEINT ** 20)::HUGEINT AS h, TIMESTAMP '2020-01-01' + INTERVAL (range) HOUR AS t
        FROM range(300))"""
    for method in ("'parametric'", "{'x': 'norm', 'y': 'norm', 't': 'norm', 'h': 'pmm'}"):
        rows = jobs.execute(
            f"SELECT x, y, h, t FROM sdc_synth_records($sql${source}$sql$, method := {method}, rows := 2000, seed := 1)"
        ).fetchall()
        kinds = [sum(x is None for x, *_ in rows), sum(x is not None and not np.isfinite(x) for x, *_ in rows)]
        assert kinds == [pytest.approx(200, abs=60), pytest.approx(400, abs=80)]
        assert all(np.isfinite(y) and h is not None and t is not None for _, y, h, t in rows)


def test_seed_and_secret_decide_and_nothing_else(con: duckdb.DuckDBPyConnection) -> None:
    with_jobs(con)
    ask = (
        "SELECT list(s ORDER BY ALL) FROM sdc_synth_records('{}', method := {{'income': 'norm', 'age': 'normrank', "
        "'owns': 'polyreg', 'lives': 'polyreg', 'flag': 'pmm'}}, seed := {}, rows := 3000) s"
    )
    con.execute("SET threads = 1")
    first = con.execute(ask.format("jobs", 1)).fetchall()
    con.execute("SET threads = 4")
    assert con.execute(ask.format("(FROM jobs ORDER BY hash(income, age, lives))", 1)).fetchall() == first
    assert con.execute(ask.format("jobs", 2)).fetchall() != first


def test_a_stored_model_draws_the_same_and_must_be_sound(con: duckdb.DuckDBPyConnection) -> None:
    with_jobs(con)
    arguments = "method := {'income': 'norm', 'owns': 'polyreg', 'age': 'pmm'}, by := ['region'], seed := 1"
    con.execute(f"FROM sdc_synth_model('m', 'jobs', {arguments})").fetchall()
    drawn = con.execute("FROM sdc_synth_records(model := 'm', seed := 1) ORDER BY ALL").fetchall()
    assert drawn == con.execute(f"FROM sdc_synth_records('jobs', {arguments}) ORDER BY ALL").fetchall()
    row = pa.ipc.open_stream(con.execute("SELECT arrays FROM sdc.synth_models").fetchall()[0][0]).read_all()
    for name, place, value in (
        ("regressions", 3, 10**6), ("regressions", 4, 10**9), ("regressions", 7, 10**9), ("terms", 0, -1), ("terms", 1, 10**9),
        ("regression", 1, 99), ("known_at", 0, 10**9), ("effects", 0, float("nan")),
    ):  # fmt: skip
        array = row[name].combine_chunks().flatten().to_pylist()
        array[place] = value
        at = row.column_names.index(name)
        spoilt = row.set_column(at, name, pa.array([array], row.schema.field(name).type))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, spoilt.schema) as writer:
            writer.write_table(spoilt)
        con.execute("UPDATE sdc.synth_models SET arrays = ?", [sink.getvalue().to_pybytes()])
        with pytest.raises(duckdb.Error, match="the stored model is damaged"):
            con.execute("FROM sdc_synth_records(model := 'm', seed := 1)").fetchall()


@pytest.mark.parametrize(("is_number", "changed", "expected"), [(0, 0, 3.0), (1, 0, 3.0), (1, 1, 1 + (7 - 0.5) * 2)])
def test_codes_that_a_stored_model_has_no_effects_of(is_number: int, changed: int, expected: float) -> None:
    """Effects [intercept, centre or first, ..]: what lies behind the arrays is not read."""
    terms, fields = np.array([[0, 1, is_number]]), np.array([[1, 1, 0, 1, 0, 0, 0, 0]])
    effects = np.array([1.0, 0.5, 2.0, 2.0])
    arrays = (
        np.array([[10**6]], np.int32),
        np.array([[changed]], np.uint8),
        np.array([[7.0]]),
        np.zeros(1, np.int64),
        np.ones(3),
    )
    assert _linear(0, 0, 0, fields, terms, effects, *arrays) == expected


def test_some_columns_of_some_records(jobs: duckdb.DuckDBPyConnection) -> None:
    source = "(SELECT row_number() OVER () AS i, * FROM jobs)"
    rows = jobs.execute(
        f"SELECT i, age, income FROM sdc_synth_records('{source}', columns := ['income'], subset := 'age > 50', "
        "predictors := {'income': ['age', 'region']}, method := {'income': 'norm'}, seed := 1) ORDER BY i"
    ).fetchall()
    original = jobs.execute(f"SELECT i, age, income FROM {source} ORDER BY i").fetchall()
    assert all(got == old for got, old in zip(rows, original, strict=True) if old[1] <= 50)
    changed = sum(got[2] != old[2] for got, old in zip(rows, original, strict=True) if old[1] > 50)
    assert changed > 0.9 * sum(old[1] > 50 for old in original)


def test_no_record_is_that_of_somebody(jobs: duckdb.DuckDBPyConnection) -> None:
    arguments = "method := 'parametric', unique_copies := false, seed := 1"
    jobs.execute(
        f"CREATE OR REPLACE TEMP TABLE made AS SELECT age, region, lives FROM sdc_synth_records('jobs', {arguments})"
    )
    new = "method := {'income': 'norm'}, unique_copies := false, details := true, smoothing := 'none', seed := 1"
    assert synthetic(
        jobs, "count(*) FILTER (unique_copy), count(*) FILTER (contains(smoothed, 'income')) > 3000", new
    ) == [(0, True)]


@pytest.mark.skipif(not DATA.exists(), reason="the reference files of synthpop are not here")
def test_the_survey_of_synthpop(con: duckdb.DuckDBPyConnection) -> None:
    """Social Diagnosis 2011, of the package: the parametric synthesis keeps what goes together, sampling does not."""
    with gzip.open(DATA, "rt") as file:
        header = file.readline()
    columns = "sex, age, marital, income, ls, smoke"
    con.execute(f"CREATE TABLE sd AS SELECT {columns} FROM read_csv('{DATA}', nullstr = ['NA', ''])")
    assert "income" in header
    shown = "corr(age, income), avg(age) FILTER (marital = 'SINGLE'), avg((smoke = 'YES')::INT) FILTER (sex = 'MALE')"
    truth = con.execute(f"SELECT {shown} FROM sd").fetchall()[0]
    found = {
        method: con.execute(f"SELECT {shown} FROM sdc_synth_records('sd', method := '{method}', seed := 1)").fetchall()[
            0
        ]
        for method in ("parametric", "independent")
    }
    assert found["parametric"][1:] == (pytest.approx(truth[1], abs=1.5), pytest.approx(truth[2], abs=0.03))
    assert abs(found["independent"][1] - truth[1]) > 5
    assert abs(found["independent"][2] - truth[2]) > 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("method := 'lm'", "'method' must be 'cart', 'independent', 'bootstrap-noise' or 'parametric'"),
        ("method := ['norm']", "'method' must be one of 'cart'"),
        ("method := NULL", "method"),
        ("method := {'income': 'lm'}", "'method' must hold 'cart', 'sample', 'norm'"),
        ("method := {'income': NULL}", "'method'"),
        ("method := {'incom': 'norm'}", "unknown column 'incom' in 'jobs' .argument 'method'.; did you mean 'income'"),
        ("method := {'region': 'norm'}", "'norm' is for numbers and dates, and column 'region' holds categories"),
        ("method := {'region': 'logreg'}", "'logreg' is for two values, and column 'region' has 3"),
        ("method := {'owns': 'logreg'}", "'logreg' is for two values, and column 'owns' has 3 .NULL is one"),
        (
            "method := {'age': 'polyreg'}, visit := ['region', 'lives', 'income', 'owns', 'flag']",
            "has .* coefficients, more than 500",
        ),
        ("method := {'income': 'norm'}, columns := ['age']", "'income', which is not drawn"),
        ("method := {'income': 'norm'}, joint := ['income', 'age']", "'income', which is drawn with others"),
        ("method := {'income': 'norm'}, by := ['income']", "'income', which is not drawn"),
    ],
)
def test_bad_arguments_are_named(jobs: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        jobs.execute(f"FROM sdc_synth_records('jobs', seed := 1, {arguments})").fetchall()


def test_empty_tables_and_single_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE few (x DOUBLE, y VARCHAR, z BOOLEAN)")
    for method in ("'parametric'", "{'x': 'norm', 'z': 'logreg'}", "{'x': 'pmm', 'y': 'sample'}"):
        assert con.execute(f"FROM sdc_synth_records('few', method := {method}, seed := 1)").fetchall() == []
    con.execute("INSERT INTO few VALUES (7, 'a', NULL)")
    for method in ("'parametric'", "{'x': 'norm', 'z': 'logreg'}", "{'x': 'pmm', 'y': 'sample'}"):
        rows = con.execute(f"FROM sdc_synth_records('few', method := {method}, rows := 2, seed := 1)").fetchall()
        assert rows == [(7, "a", None)] * 2
