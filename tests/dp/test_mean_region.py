"""The mean of several columns: the figures of section 3 of Shoham & Rinott, the region, and what cuts records off.

OpenDP's noise has no seed. What is tested of it holds always, or but for a chance below 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm

import sdcduck
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.dp.mean_region import (
    Region,
    Shape,
    compared,
    random_bound,
    weighted_chi2_quantile,
    weighted_chi2_sf,
)
from sdcduck.methods.dp.noise import grid_noise, step_of

EXACT = "epsilon := 1e12, delta := 0.1"
DIAGONAL = np.diag([1.0, 4.0, 9.0])
CORRELATED = np.array([[1.0, 0.9], [0.9, 1.0]])

# --- the figures of the paper's section -------------------------------------------------------------------------------


def test_the_example_with_a_diagonal() -> None:
    adjusted, raw, own = compared(DIAGONAL, 1000, 0.001, 1, 1e-5)
    assert chi2.isf(0.001, 3) == pytest.approx(16.266236, rel=1e-7)
    assert (adjusted.sensitivity, adjusted.sigma) == pytest.approx((0.180368, 0.672885), rel=1e-5)
    assert (raw.sensitivity, raw.sigma) == pytest.approx((0.0171112, 0.0638355), rel=1e-5)
    assert (own.sensitivity, own.sigma) == pytest.approx((0.0144239, 0.0538104), rel=1e-5)
    assert adjusted.volume / raw.volume == pytest.approx(0.453880, rel=1e-5)
    assert adjusted.volume / own.volume == pytest.approx(0.587742, rel=1e-5)
    powers = [way.power(np.full(3, 0.05), 0.05) for way in (adjusted, raw, own)]
    assert powers == pytest.approx([0.454457, 0.258444, 0.293626], rel=1e-5)


def test_the_example_with_a_correlation(con: duckdb.DuckDBPyConnection) -> None:
    adjusted, raw, own = compared(CORRELATED, 1000, 0.001, 1, 1e-5)
    assert chi2.isf(0.001, 2) == pytest.approx(13.815511, rel=1e-7)
    assert (adjusted.sigma, raw.sigma) == pytest.approx((0.620127, 0.0270307), rel=1e-5)
    assert (own.sensitivity, own.sigma) == pytest.approx((0.00643045, 0.0239896), rel=1e-5)
    rows = con.execute(
        "SELECT way, volume_ratio, power FROM sdc_dp_mean_region_noise([[1, 0.9], [0.9, 1]], 1000, 1, 1e-5, eta := [0.05, -0.05])"
    ).fetchall()
    assert [row[0] for row in rows] == ["adjusted", "raw", "raw, own pairs"]
    assert [row[1] for row in rows] == pytest.approx([1, 0.408267, 0.466705], rel=1e-5)
    assert [row[2] for row in rows] == pytest.approx([0.999994, 0.790620, 0.858989], rel=1e-5)


def test_where_the_adjusted_region_is_surely_smaller() -> None:
    # P(chi^2_k > 2k), from the paper's remark on theorem 3.
    for columns, gamma in ((6, 0.062), (10, 0.029), (20, 0.0050), (30, 0.00092)):
        assert chi2.sf(2 * columns, columns) == pytest.approx(gamma, rel=0.02)


@given(
    values=st.lists(st.floats(0.01, 100), min_size=2, max_size=6),
    angle=st.floats(0, 3),
    share=st.floats(0.01, 0.9),
)
def test_the_adjusted_region_is_smallest_and_its_test_most_powerful(
    values: list[float], angle: float, share: float
) -> None:
    turn = np.eye(len(values))
    turn[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    covariance = turn @ np.diag(values) @ turn.T
    covariance = (covariance + covariance.T) / 2
    gamma = min(0.5, share * float(chi2.sf(2 * len(values), len(values))))  # below what the theorem asks
    adjusted, raw, own = compared(covariance, 500, gamma, 1, 1e-5)
    assert adjusted.volume <= raw.volume * (1 + 1e-9)
    assert adjusted.volume <= own.volume * (1 + 1e-9)
    eta = 0.1 * np.array(values)
    assert adjusted.power(eta, 0.05) >= raw.power(eta, 0.05) - 1e-12


def test_sums_of_weighted_squares() -> None:
    for terms in (1, 2, 3, 10, 40):
        for x in (0.5, terms, 3.0 * terms):
            assert weighted_chi2_sf(x, np.ones(terms)) == pytest.approx(chi2.sf(x, terms), abs=1e-10)
        assert weighted_chi2_quantile(0.999, np.full(terms, 3.0)) == pytest.approx(3 * chi2.ppf(0.999, terms))
    # Two pairs of equal weights: a mixture of two exponential laws, by hand.
    a, b = 2.0, 0.5
    x = weighted_chi2_quantile(0.99, np.array([a, a, b, b]))
    assert (a * math.exp(-x / (2 * a)) - b * math.exp(-x / (2 * b))) / (a - b) == pytest.approx(0.01, rel=1e-7)
    # A weight of a millionth does hardly anything.
    assert weighted_chi2_sf(6.7, np.array([1, 1e-6])) == pytest.approx(chi2.sf(6.7, 1), rel=1e-4)


# --- the region ------------------------------------------------------------------------------------------------------


@pytest.mark.newest
def test_regions_and_intervals_hold_the_mean() -> None:
    # 20,000 means of a normal law, each with noise of the kernel: ten standard errors of 0.95.
    draws, records, bound = 20_000, 400, 4.0
    chance = np.random.default_rng(7)
    shape = Shape.of(np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 1.0], [0.0, 1.0, 1.0]]))
    true = np.array([10.0, -5.0, 0.5])
    ratio = gaussian_ratio(1, 1e-5)
    step = step_of(2 * bound, 2 * bound / ratio)
    noise = np.array(grid_noise(2 * bound / ratio / step, 3 * draws)).reshape(draws, 3) * step
    scaled = chance.normal(size=(draws, 3)) / math.sqrt(records)
    inside, between = [], []
    for one, more in zip(scaled, noise / records, strict=True):
        region = Region.around(shape, true, one + more, 2 * bound / ratio, records)
        apart = region.mean - true
        inside.append(apart @ region.ellipsoid(0.95) @ apart <= 1)
        low, high = region.ends(0.95)
        between.append((low <= true) & (true <= high))
    error = 10 * math.sqrt(0.95 * 0.05 / draws)
    assert abs(np.mean(inside) - 0.95) < error
    assert np.abs(np.mean(between, axis=0) - 0.95).max() < error


def test_the_roots_of_a_matrix() -> None:
    shape = Shape.of(CORRELATED)
    assert shape.root @ shape.root == pytest.approx(CORRELATED)
    assert shape.root @ shape.inverse_root == pytest.approx(np.eye(2), abs=1e-12)
    assert shape.root == pytest.approx(shape.root.T)


# --- by SQL ----------------------------------------------------------------------------------------------------------


def _make_people(con: duckdb.DuckDBPyConnection) -> None:
    chance = np.random.default_rng(3)
    z = chance.normal(size=(2000, 2))
    con.execute(
        "CREATE TABLE people AS SELECT unnest(?::DOUBLE[]) AS x, unnest(?::DOUBLE[]) AS Y",
        [(50 + 2 * z[:, 0]).tolist(), (2000 + 10 * z[:, 0] + 30 * z[:, 1]).tolist()],
    )


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    _make_people(con)
    return con


SHAPE = "covariance := [[4, 20], [20, 1000]], center := [50, 2000], radius := 8"


def test_the_mean_is_right_but_for_the_noise(people: duckdb.DuckDBPyConnection) -> None:
    question = "SELECT * FROM sdc_dp_mean_region('people', ['X', 'y'], {}, {})"
    rows = people.execute(question.format(SHAPE, EXACT)).fetchall()
    truth = people.execute("SELECT avg(x), avg(y) FROM people").fetchall()[0]
    assert [row[0] for row in rows] == ["x", "Y"]
    assert [row[1] for row in rows] == pytest.approx(truth, abs=0.01)
    sigma = 2 * 8 / math.sqrt(2000) / gaussian_ratio(1, 1e-5)
    rows = people.execute(question.format(SHAPE, "epsilon := 1, delta := 1e-5")).fetchall()
    of_mean = np.array([[4, 20], [20, 1000]]) / 2000
    for place, (_, mean, noise, spread, low, high, line, told) in enumerate(rows):
        assert told == pytest.approx(sigma, rel=1e-7)
        assert noise == pytest.approx(sigma * math.sqrt(of_mean[place, place]), rel=1e-7)
        assert spread == pytest.approx(math.sqrt((1 + sigma**2) * of_mean[place, place]), rel=1e-7)
        assert (low + high) / 2 == pytest.approx(mean)
        assert high - low == pytest.approx(2 * norm.isf(0.025) * spread)
        expected = np.linalg.inv(of_mean)[place] / ((1 + sigma**2) * chi2.isf(0.05, 2))
        assert line == pytest.approx(expected.tolist(), rel=1e-6)
    told = people.execute(
        "SELECT neighbours, epsilon, delta, what FROM sdc_synth_dp_ledger() WHERE release = 2"
    ).fetchall()
    assert told == [("replace", 1, 1e-5, "normal noise on the mean of x, Y")]


def test_a_record_far_out_is_drawn_to_the_ellipsoid(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT unnest([3, 1e9, 'inf'::DOUBLE, 'nan'::DOUBLE, NULL, -1e300]) AS x, unnest([4, 0, 7, 1, 5, 0]) AS y"
    )
    rows = con.execute(
        f"SELECT 6 * estimate FROM sdc_dp_mean_region('t', ['x', 'y'], [[1, 0], [0, 1]], center := [0, 0], radius := 2, {EXACT})"
    ).fetchall()
    # (3, 4) has length 5 and becomes (1.2, 1.6); what is no number counts as the centre, in its column.
    assert [row[0] for row in rows] == pytest.approx([1.2 + 2 - 2, 1.6 + 0 + 2 + 1 + 2 + 0], abs=0.001)


def test_without_clipping_it_is_the_papers_and_not_private(people: duckdb.DuckDBPyConnection) -> None:
    matrix = "covariance := [[4, 20], [20, 1000]], center := [50, 2000]"
    question = f"SELECT sigma FROM sdc_dp_mean_region('people', ['x', 'y'], {matrix}, clip := false, gamma := 0.001, epsilon := 1, delta := 1e-5)"
    ((sigma,), _) = people.execute(question).fetchall()
    assert sigma == pytest.approx(math.sqrt(2 * chi2.isf(0.001, 2) / 2000) / gaussian_ratio(1, 1e-5), rel=1e-6)
    assert sigma == pytest.approx(2 * random_bound(2, 0.001) / math.sqrt(2000) / gaussian_ratio(1, 1e-5), rel=1e-6)
    ((spent, what),) = people.execute("SELECT epsilon, what FROM sdc_synth_dp_ledger()").fetchall()
    assert (spent, what) == (math.inf, "no differential privacy: the mean of x, Y")
    people.execute("CREATE TABLE t AS FROM people; FROM sdc_synth_dp_budget('t', 1e9, 'replace', delta := 0.9)")
    with pytest.raises(duckdb.Error, match="'t' may cost 1e\\+09 together"):
        people.execute(question.replace("people", "t")).fetchall()


def test_columns_that_are_many_and_of_any_type(con: duckdb.DuckDBPyConnection) -> None:
    columns = [f"c {place}" for place in range(12)]
    shown = ", ".join(
        f'((i * {place + 3}) % 7)::{"BIGINT" if place % 2 else "DECIMAL(9, 3)"} AS "{name}"'
        for place, name in enumerate(columns)
    )
    con.execute(f"CREATE TABLE t AS SELECT {shown} FROM range(700) r(i)")
    matrix = (np.eye(12) + 0.2).tolist()
    rows = con.execute(
        f"SELECT estimate FROM sdc_dp_mean_region('t', {columns}, {matrix}, center := {[3] * 12}, radius := 50, {EXACT})"
    ).fetchall()
    truth = con.execute(f'SELECT {", ".join(f"""avg("{name}")""" for name in columns)} FROM t').fetchall()[0]
    assert [row[0] for row in rows] == pytest.approx([float(one) for one in truth], abs=0.01)


SPENT = "epsilon := 1, delta := 1e-5"


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        _make_people(con)
        yield con


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"'people', [], {SHAPE}, {SPENT}", "'columns' must name the columns of numbers"),
        (f"'people', ['x', 'x'], {SHAPE}, {SPENT}", "'columns' names column 'x' twice"),
        (f"'people', ['x', 'z'], {SHAPE}, {SPENT}", "unknown column 'z'"),
        (f"'(SELECT ''a'' AS x, 1 AS y)', ['x', 'y'], {SHAPE}, {SPENT}", "must name a column of numbers"),
        (f"'people', ['x'], {SHAPE}, {SPENT}", "'covariance' must be a list of 1 lists"),
        (f"'people', ['x', 'y'], center := [1, 1], radius := 1, {SPENT}", "'covariance' must be a list of 2 lists"),
        (f"'people', ['x', 'y'], [[1, 2], [2, 4]], [1, 1], 1, {SPENT}", "no column may follow from others"),
        (f"'people', ['x', 'y'], [[1, 2], [2, 1]], [1, 1], 1, {SPENT}", "only positive eigenvalues"),
        (f"'people', ['x', 'y'], [[1, 0], [0.5, 1]], [1, 1], 1, {SPENT}", "a covariance matrix is symmetric"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 0]], [1, 1], 1, {SPENT}", "variances above 0"),
        (f"'people', ['x', 'y'], [[1, 0], [0, NULL]], [1, 1], 1, {SPENT}", "'covariance' must be a list of 2 lists"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 1]], NULL, 1, {SPENT}", "'center' must say around which public numbers"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 1]], [1], 1, {SPENT}", "'center' must hold 2 numbers"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 1]], [1, 1], {SPENT}", "'radius' must be a number above 0"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 1]], [1, 1], 0, {SPENT}", "'radius' must be a number above 0"),
        (f"'people', ['x', 'y'], {SHAPE}, epsilon := 0, delta := 1e-5", "'epsilon' must be a number above 0"),
        (f"'people', ['x', 'y'], {SHAPE}, epsilon := 1, delta := 0", "'delta' must be above 0"),
        (f"'people', ['x', 'y'], {SHAPE}, {SPENT}, gamma := 0.1", "'gamma' is for clip := false"),
        (f"'people', ['x', 'y'], {SHAPE}, {SPENT}, clip := false", "'radius' is for clip := true"),
        (f"'people', ['x', 'y'], [[1, 0], [0, 1]], [1, 1], {SPENT}, clip := false", "'gamma' must be above 0"),
        (f"'people', ['x', 'y'], {SHAPE}, {SPENT}, clip := NULL", "'clip' must be true or false"),
        (f"'(FROM people WHERE false)', ['x', 'y'], {SHAPE}, {SPENT}", "has no records, and nothing has a mean"),
    ],
)  # fmt: skip
def test_wrong_arguments(unchanged: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        unchanged.execute(f"FROM sdc_dp_mean_region({arguments})").fetchall()
    assert unchanged.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("NULL, 100, 1, 1e-5", "'covariance' must be a list of as many lists"),
        ("[[1]], 1, 1, 1e-5", "'records' must be a whole number of at least 2"),
        ("[[1]], 100, 0, 1e-5", "'epsilon' must be a number above 0"),
        ("[[1]], 100, 1, 1e-5, gamma := 0.6", "'gamma' must be at most 0.5"),
        ("[[1]], 100, 1, 1e-5, eta := [1, 2]", "'eta' must hold 1 numbers"),
    ],
)
def test_wrong_arguments_of_the_figures(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM sdc_dp_mean_region_noise({arguments})").fetchall()
