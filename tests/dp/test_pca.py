"""Principal components with noise: the closed forms of the paper, its scales, and what users of SQL get."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from seeded_noise import Seeded

from sdcduck.methods.dp.pca import (
    MECHANISMS,
    Mechanism,
    advanced_epsilon,
    components,
    components_told,
    crossing_epsilon,
    utility,
)

CROSSINGS = [
    (13, 43.358, 47.311, 39.886), (14, 51.768, 55.952, 48.106), (450, 69743.361, 69852.577, 69651.197),
    (784, 212262.584, 212452.342, 212102.521),
]  # fmt: skip
"""Columns of Census, Adult, LFW and MNIST; where advanced composition begins to lose, for N = 1000, 100 and 10000."""
ADVANCED = [
    (1, 105, 0.0245706), (10, 105, 0.1727506), (100, 105, 0.6959786), (1, 101475, 0.000790937),
    (1000, 101475, 0.0915951), (1, 3, 0.1448147),
]  # fmt: skip
TILTED = np.array([[2.5, 2], [2, 2.5]])


@pytest.mark.parametrize(("columns", "thousand", "hundred", "ten_thousand"), CROSSINGS)
def test_where_the_compositions_cross(columns: int, thousand: float, hundred: float, ten_thousand: float) -> None:
    queries = columns * (columns + 1) // 2
    found = [crossing_epsilon(queries, 1 / n) for n in (1000, 100, 10_000)]
    assert found == pytest.approx([thousand, hundred, ten_thousand], abs=6e-4)
    # There, and nowhere else, both let a query cost the same.
    for n, epsilon in zip((1000, 100, 10_000), found, strict=True):
        assert advanced_epsilon(epsilon, queries, 1 / n) == pytest.approx(epsilon / queries, rel=1e-9)
        assert advanced_epsilon(epsilon * 0.9, queries, 1 / n) > epsilon * 0.9 / queries
        assert advanced_epsilon(epsilon * 1.1, queries, 1 / n) < epsilon * 1.1 / queries


def test_few_queries_never_cross() -> None:
    assert crossing_epsilon(13, 1e-3) == 0  # 2 ln 1000 is 13.8
    assert crossing_epsilon(14, 1e-3) > 0
    for epsilon in (1e-3, 1, 1e3):
        assert advanced_epsilon(epsilon, 13, 1e-3) < epsilon / 13


@pytest.mark.parametrize(("epsilon", "queries", "each"), ADVANCED)
def test_advanced_composition(epsilon: float, queries: int, each: float) -> None:
    digits = len(f"{each:.9f}".rstrip("0").split(".")[1])
    assert advanced_epsilon(epsilon, queries, 1e-3) == pytest.approx(each, abs=0.51 * 10**-digits)


def test_what_each_query_may_cost_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    each = "SELECT naive, advanced, better, crossing FROM sdc_dp_composition_each({}, {}, {})"
    for columns, *crossings in CROSSINGS:
        for n, crossing in zip((1000, 100, 10_000), crossings, strict=True):
            queries = columns * (columns + 1) // 2
            row = con.execute(each.format(crossing * 0.99, 1 / n, queries)).fetchone()
            assert row == (
                pytest.approx(crossing * 0.99 / queries),
                row[1],
                "advanced",
                pytest.approx(crossing, abs=6e-4),
            )
            assert con.execute(each.format(crossing * 1.01, 1 / n, queries)).fetchone()[2] == "naive"
    for epsilon, queries, expected in ADVANCED:
        row = con.execute(each.format(epsilon, 1e-3, queries)).fetchone()
        assert row[1] == pytest.approx(expected, rel=1e-5)
    assert con.execute(each.format(1, 1e-3, 3)).fetchone()[2:] == ("naive", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("0, 1e-5, 10", "'epsilon' must be a number above 0"),
        ("'inf'::DOUBLE, 1e-5, 10", "'epsilon' must be a number above 0"),
        ("NULL, 1e-5, 10", "'epsilon' must be a number above 0"),
        ("1e-300, 1e-5, 10", "'epsilon' must be a number from 1e-100 to"),
        ("1, 0, 10", "'delta' must be above 0 and below 1"),
        ("1, 1, 10", "'delta' must be above 0 and below 1"),
        ("1, 1e-5, 0", "'queries' must be a whole number from 1"),
        ("1, 1e-5, 10::HUGEINT ** 30", "'queries' must be a whole number"),
        ("1, 1e-5, 2.5", "'queries' must be a whole number"),
    ],
)
def test_wrong_arguments_of_each(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM sdc_dp_composition_each({arguments})").fetchall()


@pytest.mark.parametrize("cost", ["1e-100, 1e-5", "1e100, 1e-5", "1, 1e-320", "1e100, 0.999999999"])
def test_extreme_costs_of_each(con: duckdb.DuckDBPyConnection, cost: str) -> None:
    row = con.execute(f"FROM sdc_dp_composition_each({cost}, 1000000)").fetchone()
    assert row[0] > 0
    assert row[1] > 0


@pytest.mark.parametrize(
    ("n", "epsilon", "sd"), [(1000, 1, 0.00377648), (1000, 0.1, 0.0377648), (10_000, 1, 0.000434361)]
)
def test_the_normal_noise(con: duckdb.DuckDBPyConnection, n: int, epsilon: float, sd: float) -> None:
    one = Mechanism("analyze_gauss", np.ones(3), 1.0, n, epsilon, 1 / n, "add_remove", "classic")
    assert one.scales() == pytest.approx(np.full((3, 3), sd), rel=2e-6)
    call = f"FROM sdc_pca_noise({{'x': [0, 1]}}, total := {n}, epsilon := {epsilon}, norm := 1"
    found = con.execute(f"{call}, mode := 'literal', neighbours := 'add_remove')").fetchall()
    assert found == [("x", "x", "normal", pytest.approx(sd, rel=2e-6), pytest.approx(sd, rel=2e-6))]
    replaced = con.execute(f"{call}, mode := 'literal')").fetchall()
    assert replaced[0][3] == pytest.approx(sd * math.sqrt(2), rel=2e-6)
    exact = con.execute(f"SELECT scale, sdc_dp_sigma({epsilon}, {1 / n}, sqrt(2) / {n}) {call})").fetchall()
    assert exact[0][0] == pytest.approx(exact[0][1])
    assert exact[0][0] < replaced[0][3]


@pytest.mark.parametrize(
    ("widths", "mechanism", "scales"),
    [
        ((4, 2), "laplace_scalar", [12, 6, 3]), ((4, 2), "laplace_vector", [7, 7, 7]),
        ((4, 4), "laplace_scalar", [12, 12, 12]), ((4, 4), "laplace_vector", [12, 12, 12]),
    ],
)  # fmt: skip
def test_the_scales(
    con: duckdb.DuckDBPyConnection, widths: tuple[int, int], mechanism: str, scales: list[float]
) -> None:
    x, y = (width / 2 for width in widths)
    found = con.execute(
        "SELECT scale, standard_error, noise FROM sdc_pca_noise(?, total := 4, mechanism := ?, epsilon := 1, "
        "scaling := {'x': [0, 1], 'y': [0, 1]})", [{"x": [-x, x], "y": [-y, y]}, mechanism],
    ).fetchall()  # fmt: skip
    assert [row[0] for row in found] == scales
    assert [row[1] for row in found] == pytest.approx([math.sqrt(2) * scale for scale in scales])
    assert {row[2] for row in found} == {"laplace"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_noise_of_entries(mechanism: str) -> None:
    one = Mechanism(mechanism, np.array([4.0, 2.0]), 1.5, 50, 1.0, 0.02)
    drawn, sampler = 6000, Seeded(1)
    noise = np.array([one.noisy(TILTED, sampler) for _ in range(drawn)]) - TILTED
    assert (noise == noise.transpose(0, 2, 1)).all()
    scales = one.scales()
    spread = np.sqrt((noise**2).mean(axis=0)) if one.is_normal else np.abs(noise).mean(axis=0)
    assert spread == pytest.approx(scales, rel=5 / math.sqrt(drawn))
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 0, 1])[0, 1]) < 5 / math.sqrt(drawn)


def test_the_utility_of_components() -> None:
    half = math.sqrt(0.5)
    for vector, expected in (([1, 0], 0.5556), ([half, half], 1), ([half, -half], 0.1111)):
        assert utility(TILTED, np.array([vector], float)) == pytest.approx(expected, abs=5e-5)
    assert components_told(np.diag([9.0, 1, 0])) == 1
    assert components_told(np.diag([8.9, 1.1, 0])) == 2
    values, rows = components(np.diag([1.0, -3.0, 2.0]))
    assert values.tolist() == [2, 1, -3]
    assert rows.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


# --- in SQL ----------------------------------------------------------------------------------------------------------

POINTS = "bounds := {'x': [-2, 2], 'y': [-2, 2]}, scaling := {'x': [0, 1], 'y': [0, 1]}"


@pytest.fixture
def points(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("CREATE TABLE points AS FROM (VALUES (2, 1), (-2, -1), (1, 2), (-1, -2)) points(x, y)")
    con.execute(
        "CREATE TABLE told AS FROM (VALUES (1, 'X', 1.0::DOUBLE), (1, 'y', 0.0)) told(component, column_name, loading)"
    )
    return con


def test_the_hand_example(points: duckdb.DuckDBPyConnection) -> None:
    half = math.sqrt(0.5)
    rows = points.execute(f"FROM sdc_pca('points', ['x', 'y'], {POINTS})").fetchall()
    assert [row[:2] for row in rows] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    assert [row[2] for row in rows[:2]] == pytest.approx([half, half])
    assert [abs(row[2]) for row in rows[2:]] == pytest.approx([half, half])
    assert [row[3] for row in rows] == pytest.approx([4.5, 4.5, 0.5, 0.5])
    assert not any(row[4] for row in rows)
    assert points.execute(f"FROM sdc_pca('points', ['x', 'y'], k := 1, {POINTS})").fetchall() == rows[:2]
    # By the data: both columns have mean 0 and variance 2.5.
    by_data = points.execute("SELECT eigenvalue FROM sdc_pca('points', ['x', 'y'])").fetchall()
    assert [row[0] for row in by_data] == pytest.approx([1.8, 1.8, 0.2, 0.2])


@pytest.mark.parametrize(
    ("vector", "q"), [((1, 0), 0.5556), ((0.5**0.5, 0.5**0.5), 1), ((0.5**0.5, -(0.5**0.5)), 0.1111)]
)
def test_the_utility_in_sql(points: duckdb.DuckDBPyConnection, vector: tuple[float, float], q: float) -> None:
    points.execute("UPDATE told SET loading = CASE column_name WHEN 'X' THEN ? ELSE ? END", vector)
    row = points.execute(f"FROM sdc_pca_utility('points', 'told', ['x', 'y'], k := 1, {POINTS})").fetchone()
    assert row == (1, pytest.approx(q, abs=5e-5), pytest.approx(0.9 * q, abs=5e-5), pytest.approx(0.9))


@pytest.mark.newest
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_private_release_is_charged_and_near_with_much_budget(
    points: duckdb.DuckDBPyConnection, mechanism: str
) -> None:
    points.execute("CREATE TABLE many AS SELECT x / 2 AS x, y FROM points, range(5000)")
    call = f"['x', 'y'], mechanism := '{mechanism}', epsilon := 1e6, {POINTS}"
    points.execute(f"CREATE TABLE released AS FROM sdc_pca('many', {call})")
    truth = points.execute(
        f"SELECT component, column_name, loading, eigenvalue FROM sdc_pca('many', ['x', 'y'], {POINTS})"
    )
    for true, found in zip(truth.fetchall(), points.execute("FROM released").fetchall(), strict=True):
        assert found[:2] == true[:2]
        assert found[2:4] == pytest.approx(true[2:4], abs=0.02)
        assert found[4]
    told = points.execute("SELECT data, neighbours, epsilon, delta FROM sdc_synth_dp_ledger()").fetchall()
    assert [row[:3] for row in told] == [("many", "replace", 1e6)]
    assert told[0][3] == (1 / 20_000 if mechanism in ("laplace_advanced", "analyze_gauss") else 0)
    used = points.execute(f"SELECT k, q FROM sdc_pca_utility('many', 'released', ['x', 'y'], {POINTS})").fetchone()
    assert used == (1, pytest.approx(1, abs=1e-3))


@pytest.mark.newest
def test_the_number_of_records_is_not_told_where_records_are_there_or_not(points: duckdb.DuckDBPyConnection) -> None:
    call = (
        f"['x', 'y'], mechanism := 'laplace_vector', epsilon := 1e9, {POINTS}, neighbours := 'add_remove', total := 8"
    )
    rows = points.execute(f"FROM sdc_pca('points', {call})").fetchall()
    assert [row[3] for row in rows] == pytest.approx([2.25, 2.25, 0.25, 0.25], abs=1e-6)
    empty = points.execute(f"FROM sdc_pca('(FROM points WHERE x > 9)', {call})").fetchall()
    assert [row[3] for row in empty] == pytest.approx([0] * 4, abs=1e-6)
    assert {row[0] for row in points.execute("SELECT neighbours FROM sdc_synth_dp_ledger()").fetchall()} == {
        "add_remove"
    }


@pytest.mark.newest
def test_long_records_are_shortened(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE long AS SELECT 3.0 AS x, 4.0 AS y FROM range(100)")
    bounds = "bounds := {'x': [-10, 10], 'y': [-10, 10]}, scaling := {'x': [0, 1], 'y': [0, 1]}"
    call = f"['x', 'y'], mechanism := 'analyze_gauss', epsilon := 1e9, {bounds}"
    rows = con.execute(f"SELECT loading, eigenvalue FROM sdc_pca('long', {call}, norm := 2, k := 1)").fetchall()
    assert rows == [
        (pytest.approx(0.6, abs=1e-3), pytest.approx(4, abs=1e-2)),
        (pytest.approx(0.8, abs=1e-3), rows[0][1]),
    ]
    rows = con.execute(f"SELECT loading, eigenvalue FROM sdc_pca('long', {call}, norm := 50, k := 1)").fetchall()
    assert rows[0][1] == pytest.approx(25, abs=1e-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[], mechanism := 'none'", "'columns' must name the columns"),
        ("['x', 'z']", "unknown column 'z'"),
        ("['x', 'x']", "names column 'x' twice"),
        ("['x', 'name']", "'name' of 'people' is VARCHAR"),
        ("['x'], k := 2", "'k' must be a whole number from 1 to 1"),
        ("['x'], epsilon := 1", "'epsilon' is for a private mechanism"),
        ("['x'], mechanism := 'laplace'", "'mechanism' must be 'none', 'laplace_scalar'"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1", "bounds must be public, they are not taken from the data"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [2, 1]}", "smaller number first"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [1e9, 1e9 + 1]}", "farther apart"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'y': [1, 2]}", "unknown column 'y'"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [1]}", "two numbers for each column"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [1, NULL]}", "two numbers for each column"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := [1, 2]", "'bounds' must be a struct"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 0, bounds := {'x': [0, 1]}", "'epsilon' must be a number above 0"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 'inf', bounds := {'x': [0, 1]}", "'epsilon' must be a number"),
        ("['x'], mechanism := 'laplace_vector', bounds := {'x': [0, 1]}", "'epsilon' must be a number above 0"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, delta := 0.1, bounds := {'x': [0, 1]}", "'delta' is for"),
        ("['x'], mechanism := 'analyze_gauss', epsilon := 1, delta := 1, bounds := {'x': [0, 1]}", "'delta' must be above 0"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, norm := 1, bounds := {'x': [0, 1]}", "'norm' is for"),
        ("['x'], mechanism := 'analyze_gauss', epsilon := 1, norm := 0, bounds := {'x': [0, 1]}", "'norm' must be a number above 0"),
        ("['x'], mechanism := 'analyze_gauss', epsilon := 2, mode := 'literal', bounds := {'x': [0, 1]}", "at most 1 with mode"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [0, 1]}, scaling := {'x': [2, 1]}", "between the bounds"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [0, 1]}, scaling := {'x': [0, 0]}", "above 0 for column"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [0, 1]}, neighbours := 'add_remove'", "how many records"),
        ("['x'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [0, 1]}, total := 7", "'total' must be the number of records"),
        ("['x', 'hole'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'x': [0, 1], 'hole': [0, 1]}", "NULL in one of the columns: nulls := 'middle'"),
        ("['wild'], mechanism := 'laplace_vector', epsilon := 1, bounds := {'wild': [0, 1]}", "NaN or an infinite number"),
        ("['wild']", "NaN or an infinite number"),
        ("['hole']", "NULL, NaN"),
        ("['same']", "'same' is the same in all records"),
    ],
)  # fmt: skip
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE people AS SELECT i / 5 AS x, 'n' || i AS name, CASE WHEN i < 3 THEN i END AS hole, "
        "CASE WHEN i = 2 THEN 'nan'::DOUBLE ELSE i END AS wild, 7 AS same FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error, match=message.replace("[", r"\[")):
        lasting.execute(f"FROM sdc_pca('people', {arguments})").fetchall()
    assert lasting.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchone() == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DELETE FROM told WHERE column_name = 'y'", "a number for each component and column"),
        ("UPDATE told SET column_name = 'z' WHERE column_name = 'y'", "unknown column 'z'"),
        ("UPDATE told SET loading = 2", "of length 1"),
        ("UPDATE told SET loading = NULL", "a number for each component and column"),
        ("DELETE FROM told", "a number for each component and column"),
    ],
)
def test_loadings_that_are_none(points: duckdb.DuckDBPyConnection, change: str, message: str) -> None:
    points.execute(change)
    with pytest.raises(duckdb.Error, match=message):
        points.execute(f"FROM sdc_pca_utility('points', 'told', ['x', 'y'], k := 1, {POINTS})").fetchall()


def test_more_components_than_there_are(points: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="'loadings' must have 2 components: it has 1"):
        points.execute(f"FROM sdc_pca_utility('points', 'told', ['x', 'y'], k := 2, {POINTS})").fetchall()


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_numbers_are_as_exact_as_they_are(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Also in public units, where private numbers would be put on a grid of 2^-24 of the bounds."""
    generator = np.random.default_rng(seed)
    width, records = 1 + seed, [2, 3, 40, 41][seed]
    points = generator.normal(size=(records, width)) * (1 + np.arange(width))
    names = [f"Score {place}" for place in range(width)]
    declared = ", ".join(f'"{name}" DOUBLE' for name in names)
    con.execute(f"CREATE TABLE scores ({declared})")
    con.executemany(f"INSERT INTO scores VALUES ({', '.join('?' * width)})", points.tolist())
    centres, sds = generator.normal(size=width) / 4, 0.5 + generator.random(width)
    bounds = ", ".join(f"'{name}': [-3, 2.5]" for name in names)
    units = ", ".join(f"'{name}': {[float(c), float(sd)]}" for name, c, sd in zip(names, centres, sds, strict=True))
    public = f"bounds := {{{bounds}}}, scaling := {{{units}}}"
    scaled = (np.clip(points, -3, 2.5) - centres) / sds
    second = scaled.T @ scaled / records
    values = np.linalg.eigvalsh(second)
    found = con.execute(f"SELECT DISTINCT component, eigenvalue FROM sdc_pca('scores', {names}, {public}) ORDER BY 1")
    assert [value for _, value in found.fetchall()] == pytest.approx(values[::-1].tolist(), abs=1e-12)
    turned = np.linalg.qr(generator.normal(size=(width, width)))[0]
    con.execute("CREATE TABLE told (component INTEGER, column_name VARCHAR, loading DOUBLE)")
    con.executemany("INSERT INTO told VALUES (1, ?, ?)", [*zip(names, turned[0].tolist(), strict=True)])
    row = con.execute(
        f"SELECT q, variance FROM sdc_pca_utility('scores', 'told', {names}, k := 1, {public})"
    ).fetchone()
    told = turned[0] @ second @ turned[0]
    assert row == pytest.approx((told / values[-1], told / values.sum()), rel=1e-9)


def test_without_noise_the_same_on_any_number_of_threads(con: duckdb.DuckDBPyConnection) -> None:
    """Of two columns that hardly go together, another last digit of their correlation turns components round."""
    con.execute(
        "CREATE TABLE long AS SELECT (hash(range) % 100003) * 1.1::DOUBLE AS x, "
        "sin((hash(range + 7) % 1000003)::DOUBLE) * exp((hash(range) % 13)::DOUBLE) AS y FROM range(400000)"
    )
    for more in ("", ", bounds := {'x': [0, 90000], 'y': [-500, 500]}"):
        found = set()
        for threads in (1, 2, 3):
            con.execute(f"SET threads = {threads}")
            found.add(repr(con.execute(f"FROM sdc_pca('long', ['x', 'y']{more})").fetchall()))
        assert len(found) == 1, more


def test_numbers_that_lie_too_far_apart(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="numbers of column 'x' lie too far apart"):
        con.execute("FROM sdc_pca('(SELECT (range - 1) * 1.5e308 AS x, range AS y FROM range(3))', ['x', 'y'])")
    large = "(SELECT range * 1e200 AS x, range * range AS y FROM range(5))"
    small = "(SELECT range AS x, range * range AS y FROM range(5))"
    loadings = [con.execute(f"FROM sdc_pca('{source}', ['x', 'y'])").fetchall() for source in (large, small)]
    assert [row[2:4] for row in loadings[0]] == [pytest.approx(row[2:4]) for row in loadings[1]]


def test_bounds_may_be_far_wider_than_the_numbers(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE few AS SELECT range AS x, range % 3 AS y FROM range(9)")
    found = [
        con.execute(
            f"SELECT eigenvalue FROM sdc_pca('few', ['x', 'y'], bounds := {{'x': [-{most}, {most}], 'y': [-{most}, {most}]}}, "
            "scaling := {'x': [0, 1], 'y': [0, 1]}) WHERE column_name = 'x' ORDER BY component"
        ).fetchall()
        for most in (10, 1e12)
    ]
    assert found[1] == [pytest.approx(row) for row in found[0]]
    assert sum(value for (value,) in found[0]) == pytest.approx((204 + 15) / 9)
