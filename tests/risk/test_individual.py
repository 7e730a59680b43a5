"""The risk of a record under the model of Benedetti and Franconi: printed values, the law itself, and the figures of R."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sdcduck.methods.risk.individual import class_risk

KEYS = "['urbrur', 'roof', 'walls', 'water', 'electcon', 'relat', 'sex']"
SURVEY = f"'survey', keys := {KEYS}, weight := 'sampling_weight', household := 'ori_hid', method := 'approximate'"


def expected_inverse(f: int, p: float) -> float:
    """E[1/F | f], added up from the negative binomial law itself."""
    failures = np.arange(0, stats.nbinom.ppf(1 - 1e-16, f, p) + 200)
    return float((stats.nbinom.pmf(failures, f, p) / (failures + f)).sum())


@pytest.mark.parametrize(
    ("f", "p", "risk"),
    [
        (1, 1 / 165, 0.0311338),
        (2, 1 / 165, 0.0059077),
        (1, 0.02, 0.0798372),
        (2, 0.02, 0.0187788),
        (3, 0.02, 0.0098208),
    ],
)
def test_printed_values(lasting: duckdb.DuckDBPyConnection, f: int, p: float, risk: float) -> None:
    found = lasting.execute("SELECT sdc_class_risk(?, ?)", [f, f / p]).fetchone()
    assert found is not None
    assert found[0] == pytest.approx(risk, abs=5e-8)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 300), st.floats(1e-3, 1))
def test_it_is_the_mean_of_the_law(f: int, p: float) -> None:
    (risk,) = class_risk(np.array([f]), np.array([f / p]))
    assert risk == pytest.approx(expected_inverse(f, min(f / (f / p), 1)), rel=1e-9)
    assert p / f * (1 - 1e-12) <= risk <= 1 / f  # Jensen's inequality; and nobody is more than one of f


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.3, 0.4999999, 0.5, 0.7, 0.999999, 1.0])
def test_it_falls_as_the_class_grows_across_every_way_to_compute_it(p: float) -> None:
    f = np.array([*range(1, 60), 1000, 10**6, 10**9])
    risk = class_risk(f, f / p)
    assert (np.diff(risk) < 0).all()
    q = 1 - 1 / (1 / p)
    if q > 0:
        # r(f) = (p / q) (1 / (f - 1) - r(f - 1)), whichever way each of them was computed
        assert risk[1:59] == pytest.approx((1 - q) / q * (1 / f[:58] - risk[:58]), rel=1e-6 if p < 0.99 else 1)


def test_a_sample_that_is_the_population() -> None:
    assert class_risk(np.array([1, 4, 4]), np.array([1.0, 4.0, 3.0])).tolist() == [1, 0.25, 0.25]


def test_the_approximation_is_near_for_small_shares() -> None:
    f = np.arange(1, 100)
    exact, near = class_risk(f, f * 50.0), class_risk(f, f * 50.0, approximate=True)
    assert exact[:2].tolist() == near[:2].tolist()
    assert near == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize(
    ("records", "population", "text"),
    [("0", "1", "at least one record"), ("1", "0", "positive number"), ("1", "-1", "positive number"),
     ("1", "'nan'::DOUBLE", "positive number"), ("1", "'inf'::DOUBLE", "positive number")],
)  # fmt: skip
def test_what_is_no_class(lasting: duckdb.DuckDBPyConnection, records: str, population: str, text: str) -> None:
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"SELECT sdc_class_risk({records}, {population})").fetchall()
    assert lasting.execute("SELECT sdc_class_risk(NULL, 2), sdc_class_risk(2, NULL)").fetchall() == [(None, None)]


@pytest.fixture
def survey(con: duckdb.DuckDBPyConnection, reference_data: Path) -> duckdb.DuckDBPyConnection:
    con.execute(
        f"CREATE TABLE survey AS SELECT row_number() OVER () AS place, * "
        f"FROM read_csv('{reference_data}/sdcmicro/input_testdata.csv.gz')"
    )
    return con


def test_a_household_survey_as_in_r(survey: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    wanted = survey.execute(
        f"SELECT * FROM read_csv('{reference_data}/sdcmicro/testdata_individual_risk.csv', "
        "header = false, skip = 1, names = ['risk', 'fk', 'pop', 'hier_risk'])"
    ).fetchall()
    found = survey.execute(
        f"SELECT risk, class_records, class_population, household_risk FROM sdc_individual_risk({SURVEY}) ORDER BY place"
    ).fetchall()
    assert len(found) == 4580
    assert np.array(found) == pytest.approx(np.array(wanted, dtype=float), rel=1e-9)
    total = survey.execute(
        f"SELECT expected, risk, household_expected, household_risk FROM sdc_global_risk({SURVEY})"
    ).fetchone()
    assert total == pytest.approx((10.7782989187, 0.0023533403753, 51.812927436, 0.011312866252), rel=1e-9)
    below = [
        survey.execute(f"SELECT below_k FROM sdc_k_anonymity('survey', keys := {KEYS}, k := {k})").fetchone()
        for k in (2, 3, 5)
    ]
    assert below == [(157,), (281,), (458,)]


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_a_small_sample_as_in_r(con: duckdb.DuckDBPyConnection, reference_data: Path, method: str) -> None:
    folder = reference_data / "sdcmicro"
    wanted = con.execute(
        f"SELECT * FROM read_csv('{folder}/francdat_indivRisk_{method[:6].rstrip('i')}.csv', header = false, skip = 1)"
    ).fetchall()
    found = con.execute(
        "SELECT class_records, class_population, risk FROM sdc_individual_risk("
        f"'(SELECT row_number() OVER () AS place, * FROM read_csv(''{folder}/input_francdat.csv.gz''))', "
        f"keys := ['Key1', 'Key2', 'Key3', 'Key4'], weight := 'w', method := '{method}') ORDER BY place"
    ).fetchall()
    assert np.array(found) == pytest.approx(np.array(wanted), rel=1e-9)


def test_a_null_may_match_any_value(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS FROM (VALUES (1, 'a', 1, 2.0), (2, 'a', 2, 3.0), (3, NULL, 1, 5.0), (4, 'b', NULL, 7.0), "
        "(5, NULL, NULL, 11.0)) v(id, x, y, w)"
    )
    found = con.execute(
        "SELECT class_records, class_population FROM "
        "sdc_individual_risk('t', keys := ['x', 'y'], weight := 'w', nulls := 'match') ORDER BY id"
    ).fetchall()
    rows = con.execute("FROM t ORDER BY id").fetchall()

    def alike(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
        return all(a is None or b is None or a == b for a, b in zip(one[1:3], other[1:3], strict=True))

    by_hand = [[other for other in rows if alike(row, other)] for row in rows]
    assert found == [(len(others), float(sum(other[3] for other in others))) for others in by_hand]
    assert con.execute("SELECT records, classes, k, uniques FROM sdc_k_anonymity('t', keys := ['x', 'y'], nulls := 'match')"
                       ).fetchall() == [(5, 5, min(map(len, by_hand)), 0)]  # fmt: skip
    # Left out, or a value of their own.
    assert con.execute(
        "SELECT count(*) FROM sdc_individual_risk('t', keys := ['x', 'y'], nulls := 'drop')"
    ).fetchall() == [(2,)]
    assert con.execute("SELECT DISTINCT risk FROM sdc_individual_risk('t', keys := ['x', 'y'])").fetchall() == [(1.0,)]


def test_the_whole_is_the_sum_of_the_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT i AS id, i % 7 AS a, i * i % 5 AS b, CASE WHEN i % 11 > 0 THEN i // 3 END AS home, "
        "1 + i % 13 AS w, 'x' AS risk FROM range(500) r(i)"
    )
    for arguments in ("keys := ['a', 'b'], weight := 'w', household := 'home'", "keys := ['a', 'b'], weight := 'w'",
                      "keys := ['a', 'b'], nulls := 'drop'", "keys := ['a'], household := 'home', nulls := 'match'"):  # fmt: skip
        records = con.execute(
            "SELECT count(*), sum(risk), max(risk), count(*) FILTER (unsafe), count(*) FILTER (class_records = 1), "
            f"sum(household_risk) FROM sdc_individual_risk('(SELECT * EXCLUDE (risk) FROM t)', {arguments})"
        ).fetchone()
        whole = con.execute(
            "SELECT records, expected, max_risk, unsafe, uniques, household_expected "
            f"FROM sdc_global_risk('t', {arguments})"
        ).fetchone()
        assert records is not None
        assert whole is not None
        assert whole[:5] == pytest.approx(records[:5], rel=1e-12)
        assert whole[5] == (None if records[5] is None else pytest.approx(records[5], rel=1e-12))
        assert (records[5] is not None) == ("household" in arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("keys := ['a'], weight := 'zero'", "a weight is NULL, not positive or infinite"),
        ("keys := ['a'], weight := 'missing'", "a weight is NULL, not positive or infinite"),
        ("keys := ['a'], weight := 'nan'", "a weight is NULL, not positive or infinite"),
        (
            "keys := ['a'], weight := 'word'",
            "argument 'weight' must name a column of numbers: 'word' of 't' is VARCHAR",
        ),
        ("keys := ['a'], weight := 'wieght'", "unknown column 'wieght'"),
        ("keys := ['a'], household := 'home'", "unknown column 'home'"),
        ("keys := []", "argument 'keys' must name"),
        ("keys := ['a', 'A']", "names column 'a' twice"),
        ("keys := ['b']", "unknown column 'b'"),
        ("keys := ['a'], threshold := 2", "argument 'threshold' must lie between 0 and 1"),
        ("keys := ['a'], threshold := NULL", "argument 'threshold' must lie between 0 and 1"),
        ("keys := ['a'], method := 'loglinear'", "argument 'method' must be 'exact' or 'approximate'"),
        ("keys := ['a'], nulls := 'ignore'", "argument 'nulls' must be 'category', 'drop' or 'match'"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, text: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 0 AS zero, NULL::INTEGER AS missing, 'nan'::DOUBLE AS nan, 'x' AS word"
    )
    for function in ("sdc_individual_risk", "sdc_global_risk"):
        with pytest.raises(duckdb.Error, match=text):
            lasting.execute(f"FROM {function}('t', {arguments})").fetchall()
    with pytest.raises(duckdb.Error, match="a column called 'risk' is also one of the result"):
        lasting.execute("FROM sdc_individual_risk('(SELECT *, 1 AS risk FROM t)', keys := ['a'])")


def test_an_empty_table_and_one_row(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (a INTEGER, w DOUBLE)")
    assert con.execute("FROM sdc_individual_risk('t', keys := ['a'], weight := 'w')").fetchall() == []
    whole = con.execute("FROM sdc_global_risk('t', keys := ['a'], weight := 'w')").fetchall()
    assert whole == [(0, None, None, None, 0, None, 0, None, None)]
    con.execute("INSERT INTO t VALUES (1, 50)")
    assert con.execute(
        "SELECT class_records, risk FROM sdc_individual_risk('t', keys := ['a'], weight := 'w')"
    ).fetchall() == [(1, pytest.approx(0.0798372, abs=1e-7))]


def test_both_indicators_fall_with_every_recoding(con: duckdb.DuckDBPyConnection) -> None:
    """The loop of a labour force survey (its file is not public): coarser ages, then coarser nationalities."""
    con.execute("""
        CREATE TABLE labour AS SELECT hash(i) % 3 AS province, hash(i + 1) % 2 AS sex, 16 + hash(i + 2) % 75 AS age,
            'place ' || (8 * pow(hash(i + 3) % 1000 / 1000, 4))::INTEGER AS birth_place,
            'nation ' || (30 * pow(hash(i + 4) % 1000 / 1000, 9))::INTEGER AS nationality, 120 + hash(i + 5) % 90 AS weight
        FROM range(12749) t(i)""")
    stages = []
    for age, nationality in (
        ("age", "nationality"),
        ("age // 5", "nationality"),
        ("age // 5", "nationality = 'nation 0'"),
    ):
        coded = f"(SELECT * REPLACE ({age} AS age, {nationality} AS nationality) FROM labour)"
        stages.append(
            con.execute(
                "SELECT records, risk, share_unsafe FROM sdc_global_risk(?, weight := 'weight', threshold := 0.02, "
                "keys := ['province', 'sex', 'birth_place', 'age', 'nationality'])",
                [coded],
            ).fetchall()[0]
        )
    assert [stage[0] for stage in stages] == [12749] * 3
    assert stages[0][1] > stages[1][1] > stages[2][1] > 0
    assert stages[0][2] > stages[1][2] > stages[2][2] > 0
