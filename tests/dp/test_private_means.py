"""``sdc_dp_mean``, ``sdc_dp_covariance`` and ``sdc_dp_mean_test`` in SQL, with the noise of OpenDP: it takes no seed.

Where chance decides, a test allows ten standard errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from effort import times

import sdcduck
from sdcduck.methods.dp.mean_test import mean_scale
from sdcduck.methods.dp.means import mean_noise
from sdcduck.methods.dp.noise import Released

BOUNDS = "bounds := {'x': [0, 1], 'Y y': [-10, 30]}"


def _make_people(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE people AS SELECT CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b''s' END AS arm, "
        '(i * 7919 % 1000) / 1000.0 AS x, ((i * 104729 % 997) / 50)::DECIMAL(9, 3) AS "Y y" FROM range(6000) r(i)'
    )


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    _make_people(con)
    return con


def spent(con: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """What the ledger says."""
    return con.execute("SELECT data, neighbours, epsilon FROM sdc_synth_dp_ledger()").fetchall()


# --- means -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["laplace", "normal"])
def test_intervals_cover_as_often_as_they_say(law: str) -> None:
    draws, truth = times(1000, 100_000), 0.25
    noise = mean_noise(100, 1000, 1.0, 0.0 if law == "laplace" else 1e-6)
    assert noise.law == law
    drawn = noise.put_on(np.full(draws, truth), Released())
    covered = (np.abs(drawn - truth) <= noise.half_width(0.95)).mean()
    assert covered == pytest.approx(0.95, abs=10 * math.sqrt(0.95 * 0.05 / draws))
    kurtosis = 6 if law == "laplace" else 3
    assert ((drawn - truth) ** 2).mean() == pytest.approx(noise.sd**2, rel=10 * math.sqrt((kurtosis - 1) / draws))


def test_opendp_certifies_what_is_charged() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.f64, nan=False))
    for columns, n, epsilon in ((1, 10, 1.0), (7, 12345, 0.1), (3, 10**8, 10.0)):
        scale = mean_scale(1.0, columns, n, epsilon)
        # The exact change, and the rounding of both means of each column to the nearest number.
        change = columns * (2 / n + 2 * 2.0**-53)
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=dp.f64), scale)
        assert epsilon * (1 - 1e-6) < measurement.map(change) <= epsilon


@pytest.mark.parametrize("delta", ["", ", delta := 1e-6"])
def test_means_and_their_errors(people: duckdb.DuckDBPyConnection, delta: str) -> None:
    truth = people.execute('SELECT avg(x), avg("Y y"), count(*) FROM people').fetchone()
    assert truth is not None
    rows = people.execute(f"FROM sdc_dp_mean('people', ['X', 'Y y'], {BOUNDS}, epsilon := 1{delta})").fetchall()
    assert [row[:2] for row in rows] == [("x", 6000), ("Y y", 6000)]
    noise = mean_noise(2, 6000, 1.0, 1e-6 if delta else 0.0)
    for row, mean, unit in zip(rows, truth[:2], (0.5, 20), strict=True):
        assert row[3] == pytest.approx(noise.sd * unit)
        assert row[2] == pytest.approx(mean, abs=60 * row[3])  # e^-60 and less
        assert (row[4] + row[5]) / 2 == pytest.approx(row[2])
        assert row[5] - row[4] == pytest.approx(2 * noise.half_width(0.95) * unit)
    assert spent(people) == [("people", "replace", 1.0)]
    again = people.execute(f"FROM sdc_dp_mean('people', ['X', 'Y y'], {BOUNDS}, epsilon := 1{delta})").fetchall()
    assert again != rows
    assert len(spent(people)) == 2


def test_numbers_outside_are_moved_to_the_bounds(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE wide AS FROM (VALUES (-1e300), (0.5), (7), (NULL)) wide(x)")
    call = "['x'], bounds := {'x': [0, 2]}, epsilon := 1e9"
    row = con.execute(f"SELECT n, mean FROM sdc_dp_mean('wide', {call}, nulls := 'middle')").fetchone()
    assert row == (4, pytest.approx((0 + 0.5 + 2 + 1) / 4, abs=1e-6))
    with pytest.raises(duckdb.Error, match="NULL in one of the columns: nulls := 'middle'"):
        con.execute(f"FROM sdc_dp_mean('wide', {call})")
    assert len(spent(con)) == 1


@pytest.mark.parametrize(
    "bounds",
    ["[-1e300, 1e300]", "[0, 1e-300]", "[0, 1e71]", "['-inf'::DOUBLE, 1]", "['nan'::DOUBLE, 1]", "[NULL, 1]", "[1, 1]"],
)
@pytest.mark.parametrize("function", ["mean", "covariance"])
def test_bounds_that_are_no_numbers_to_compute_with(
    people: duckdb.DuckDBPyConnection, function: str, bounds: str
) -> None:
    with pytest.raises(duckdb.Error, match="argument 'bounds' must"):
        people.execute(f"FROM sdc_dp_{function}('people', ['x'], bounds := {{'x': {bounds}}}, epsilon := 1)").fetchall()


@pytest.mark.parametrize("epsilon", ["1e-100", "1e100"])
def test_extreme_costs_give_numbers(people: duckdb.DuckDBPyConnection, epsilon: str) -> None:
    for call, column in (
        (f"sdc_dp_mean('people', ['x', 'Y y'], {BOUNDS}, epsilon := {epsilon})", "mean"),
        (f"sdc_dp_covariance('people', ['x', 'Y y'], {BOUNDS}, epsilon := {epsilon})", "covariance"),
        (
            f"sdc_dp_mean_test('people', by := 'arm', groups := ['a', 'b''s'], columns := ['x', 'Y y'], {BOUNDS}, epsilon := {epsilon})",
            "t2",
        ),
        (f"sdc_dp_regression('people', 'x', ['Y y'], {BOUNDS}, epsilon := {epsilon})", "estimate"),
        (
            f"sdc_pca('people', ['x', 'Y y'], mechanism := 'laplace_vector', {BOUNDS}, epsilon := {epsilon})",
            "eigenvalue",
        ),
    ):
        assert all(math.isfinite(row[0]) for row in people.execute(f"SELECT {column} FROM {call}").fetchall())
    for call in ("sdc_dp_mean('people', ['x', 'Y y']", "sdc_dp_covariance('people', ['x', 'Y y']"):
        with pytest.raises(duckdb.Error, match="'epsilon' must be a number from 1e-100 to"):
            people.execute(
                f"FROM {call}, {BOUNDS}, epsilon := {epsilon} / 1e10 * 1e20 ** sign({epsilon} - 1))"
            ).fetchall()


@pytest.mark.parametrize("kind", ["TINYINT", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(38, 10)"])
def test_every_type_of_number(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    con.execute(f"CREATE TABLE kinds AS SELECT (i % 5)::{kind} AS x FROM range(100) r(i)")
    call = "['x'], bounds := {'x': [0, 10]}, epsilon := 1e9"
    assert con.execute(f"SELECT mean FROM sdc_dp_mean('kinds', {call})").fetchone() == (pytest.approx(2, abs=1e-5),)


# --- the covariance --------------------------------------------------------------------------------------------------


def test_the_covariance_with_much_budget(people: duckdb.DuckDBPyConnection) -> None:
    call = f"['x', 'Y y'], {BOUNDS}, epsilon := 1e13"
    rows = people.execute(f"FROM sdc_dp_covariance('people', {call})").fetchall()
    truth = people.execute('SELECT var_samp(x), covar_samp(x, "Y y"), var_samp("Y y") FROM people').fetchone()
    assert truth is not None
    assert [row[:2] for row in rows] == [("x", "x"), ("x", "Y y"), ("Y y", "x"), ("Y y", "Y y")]
    found = [row[2] for row in rows]
    assert found[1] == found[2]
    assert [found[0], found[1], found[3]] == pytest.approx(truth, rel=1e-4, abs=1e-3)
    assert spent(people) == [("people", "replace", 1e13)]


def test_the_covariance_of_little_budget_is_one(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(f"FROM sdc_dp_covariance('people', ['x', 'Y y'], {BOUNDS}, epsilon := 0.001)").fetchall()
    (a, b), (c, d) = np.array([row[2] for row in rows]).reshape(2, 2)
    assert b == c
    assert min(a, d, a * d - b * c) >= -1e-9 * max(a, d)


# --- the test --------------------------------------------------------------------------------------------------------

TEST = f"by := 'ARM', groups := ['a', 'b''s'], columns := ['x', 'Y y'], {BOUNDS}"


def test_groups_that_differ_are_told_apart(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("""UPDATE people SET "Y y" = "Y y" + 2 WHERE arm = 'a'""")
    result = people.execute(f"FROM sdc_dp_mean_test('people', {TEST}, epsilon := 100)")
    row = dict(zip([column[0] for column in result.description], result.fetchone() or (), strict=True))
    assert (row["d"], row["n1"], row["n2"], row["epsilon"], row["reject"]) == (2, 2000, 4000, 100, True)
    assert row["t2"] > row["critical_value"] > 0
    assert row["p_value"] == pytest.approx(1 / 201)
    assert row["p_asymptotic"] < 1e-6
    assert row["mean1"][1] - row["mean2"][1] == pytest.approx(2, abs=0.5)
    assert row["mean1"][0] == pytest.approx(0.5, abs=0.05)
    assert spent(people) == [("people", "replace", 100.0)]


@pytest.mark.parametrize(
    "how", ["mode := 'literal'", "correction := 'full'", "unequal := true, rounds := 999, alpha := 0.01"]
)
def test_groups_that_do_not(people: duckdb.DuckDBPyConnection, how: str) -> None:
    # With hardly any budget nothing can be told, and with much of it these groups have one mean nearly.
    for epsilon in (1e-6, 1e6):
        row = people.execute(
            f"SELECT d, t2, critical_value, p_value, reject, isfinite(mean1[1]) "
            f"FROM sdc_dp_mean_test('people', {TEST}, epsilon := {epsilon}, {how})"
        ).fetchone()
        assert row is not None
        assert row[4] == (row[1] > row[2])
        assert 0 < row[3] <= 1
        assert row[5]


def test_columns_in_another_unit_are_the_same(people: duckdb.DuckDBPyConnection) -> None:
    people.execute('CREATE TABLE scaled AS SELECT arm, 100 * x - 7 AS x, "Y y" FROM people')
    other = TEST.replace("'x': [0, 1]", "'x': [-7, 93]")
    answers = [
        people.execute(f"SELECT t2 FROM sdc_dp_mean_test('{table}', {call}, epsilon := 1e12)").fetchall()[0][0]
        for table, call in (("people", TEST), ("scaled", other))
    ]
    assert answers[0] == pytest.approx(answers[1], rel=1e-3, abs=1e-3)


# --- the ledger ------------------------------------------------------------------------------------------------------


def test_a_budget_is_kept_to(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("FROM sdc_synth_dp_budget('people', 1, neighbours := 'replace')")
    people.execute("CREATE VIEW part AS FROM people WHERE x < 0.5")
    calls = [
        "sdc_dp_mean('people', ['x'], bounds := {'x': [0, 1]}, epsilon := 0.3)",
        f"sdc_dp_covariance('part', ['x', 'Y y'], {BOUNDS}, epsilon := 0.3)",
        f"sdc_dp_mean_test('(FROM people)', {TEST}, epsilon := 0.3)",
        f"sdc_pca('people', ['x', 'Y y'], mechanism := 'analyze_gauss', {BOUNDS}, epsilon := 0.3)",
    ]
    for call in calls[:3]:
        assert people.execute(f"FROM {call}").fetchall()
    for call in calls:
        with pytest.raises(duckdb.Error, match="may cost 1 together"):
            people.execute(f"FROM {call}").fetchall()
    assert spent(people) == [("people", "replace", 0.3)] * 3
    left = people.execute("SELECT remaining FROM sdc_synth_dp_budgets()").fetchall()
    assert left == [(pytest.approx(0.1),)]


def test_under_the_other_relation_the_number_of_records_is_told(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("FROM sdc_synth_dp_budget('people', 100, neighbours := 'add_remove')")
    with pytest.raises(duckdb.Error, match="it would tell the exact number of records"):
        people.execute("FROM sdc_dp_mean('people', ['x'], bounds := {'x': [0, 1]}, epsilon := 0.3)").fetchall()


def test_binding_costs_nothing(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(f"EXPLAIN FROM sdc_dp_mean('people', ['x', 'Y y'], {BOUNDS}, epsilon := 1)")
    people.execute(f"DESCRIBE FROM sdc_dp_mean_test('people', {TEST}, epsilon := 1)")
    assert spent(people) == []


def test_without_opendp(people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    for call in (f"sdc_dp_mean('people', ['x', 'Y y'], {BOUNDS}", f"sdc_dp_mean_test('people', {TEST}"):
        with pytest.raises(duckdb.Error, match=r"needs the package 'opendp': pip install 'sdcduck\[dp\]'"):
            people.execute(f"FROM {call}, epsilon := 1)")


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        _make_people(con)
        con.execute("ALTER TABLE people ADD COLUMN wild DOUBLE DEFAULT 'nan'")
        yield con


@pytest.mark.parametrize("function", ["mean", "covariance"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[], epsilon := 1", "'columns' must name the columns"),
        ("['z'], epsilon := 1", "unknown column 'z'"),
        ("['arm'], epsilon := 1", "'arm' of 'people' is VARCHAR"),
        ("['x'], epsilon := 1", "bounds must be public, they are not taken from the data"),
        ("['x'], bounds := {'x': [1, 0]}, epsilon := 1", "smaller number first"),
        ("['x'], bounds := {'x': [1, 1]}, epsilon := 1", "smaller number first"),
        ("['x'], bounds := {'x': [0, 'inf'::DOUBLE]}, epsilon := 1", "two numbers for each column"),
        ("['x'], bounds := {'x': ['a', 'b']}, epsilon := 1", "two numbers for each column"),
        ("['x'], bounds := {'x': [-1.7e308, 1.7e308]}, epsilon := 1", "farther apart"),
        ("['x'], bounds := {'x': [0, 1]}", "'epsilon' must be a number above 0"),
        ("['x'], bounds := {'x': [0, 1]}, epsilon := 0", "'epsilon' must be a number above 0"),
        ("['x'], bounds := {'x': [0, 1]}, epsilon := -1", "'epsilon' must be a number above 0"),
        ("['x'], bounds := {'x': [0, 1]}, epsilon := 'nan'::DOUBLE", "'epsilon' must be a number above 0"),
        ("['x'], bounds := {'x': [0, 1]}, epsilon := 'inf'::DOUBLE", "'epsilon' must be a number above 0"),
        ("['x'], bounds := {'x': [0, 1]}, epsilon := 1, nulls := 'drop'", "'nulls' must be 'refuse' or 'middle'"),
        ("['wild'], bounds := {'wild': [0, 1]}, epsilon := 1, nulls := 'middle'", "NaN or an infinite number"),
    ],
)
def test_wrong_arguments(unchanged: duckdb.DuckDBPyConnection, function: str, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        unchanged.execute(f"FROM sdc_dp_{function}('people', {arguments})").fetchall()
    assert spent(unchanged) == []


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ("by := 'ARM'", "by := NULL", "'by' must name the column"),
        ("by := 'ARM'", "by := 'leg'", "unknown column 'leg'"),
        ("['a', 'b''s']", "['a']", "'groups' must name two groups"),
        ("['a', 'b''s']", "['a', 'a']", "'groups' must name two groups"),
        ("['a', 'b''s']", "['a', NULL]", "'groups' must name two groups"),
        ("['a', 'b''s']", "[]", "'groups' must name the two groups"),
        ("['a', 'b''s']", "['a', 'c']", "fewer than 2 records in one of the groups"),
        ("by :=", "alpha := 0, by :=", "'alpha' must be above 0"),
        ("by :=", "alpha := 5, by :=", "5 per cent is 0.05"),
        ("by :=", "rounds := 0, by :=", "'rounds' must be a whole number"),
        ("by :=", "rounds := 1, by :=", "of 1 statistics none is the critical value"),
        ("by :=", "mode := 'paper', by :=", "'mode' must be 'safe' or 'literal'"),
        ("by :=", "correction := 'half', by :=", "'correction' must be 'paper' or 'full'"),
        ("by :=", "unequal := NULL, by :=", "'unequal' must be true or false"),
    ],
)
def test_wrong_arguments_of_the_test(
    unchanged: duckdb.DuckDBPyConnection, replaced: str, by: str, message: str
) -> None:
    with pytest.raises(duckdb.Error, match=message):
        unchanged.execute(f"FROM sdc_dp_mean_test('people', {TEST.replace(replaced, by)}, epsilon := 1)").fetchall()
    assert spent(unchanged) == []


@pytest.mark.parametrize(
    ("function", "least", "said"), [("mean", 1, "there are no"), ("covariance", 2, "fewer than 2")]
)
def test_too_few_records(people: duckdb.DuckDBPyConnection, function: str, least: int, said: str) -> None:
    call = f"sdc_dp_{function}('(FROM people LIMIT {least - 1})', ['x'], bounds := {{'x': [0, 1]}}, epsilon := 1)"
    with pytest.raises(duckdb.Error, match=f"{said} records"):
        people.execute(f"FROM {call}").fetchall()
    assert spent(people) == []
