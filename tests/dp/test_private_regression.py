"""Private linear regression: that its noise covers what a record changes, its standard errors, and what users of SQL get."""

from __future__ import annotations

import itertools
import math

import duckdb
import numpy as np
import pytest
from effort import times
from seeded_noise import Seeded

from sdcduck.methods.dp.regression import Fit, noisy_products, product_changes, product_noise

# --- the noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [2, 3, 4, 5])
def test_the_noise_covers_what_a_record_changes(entries: int) -> None:
    # All corners, and random records between them and at 0.
    corners = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=entries - 1)))
    drawn = np.random.default_rng(entries).uniform(-1, 1, (300, entries - 1))
    records = np.column_stack([np.ones(len(corners) + 300), np.vstack([corners, drawn])])
    places = np.triu_indices(entries)
    triangles = np.einsum("ri,rj->rij", records, records)[:, places[0], places[1]]
    changes = triangles[:, None] - triangles[None]
    absolute, euclidean = product_changes(entries)
    assert np.abs(changes).sum(axis=-1).max() <= absolute
    assert np.sqrt((changes**2).sum(axis=-1)).max() <= euclidean
    # And it is no more than a quarter too much.
    assert np.abs(changes).sum(axis=-1).max() >= 0.6 * absolute
    assert np.sqrt((changes**2).sum(axis=-1)).max() >= 0.75 * euclidean


def products(values: np.ndarray) -> np.ndarray:
    """The mean of vv' of v = (1, values)."""
    wide = np.column_stack([np.ones(len(values)), values])
    return wide.T @ wide / len(values)


def test_without_noise_it_is_least_squares() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (400, 2))
    y = 0.1 + x @ [0.5, -0.2] + generator.normal(scale=0.05, size=400)
    fit = Fit.of(products(np.column_stack([x, y])), 400, 0.0)
    wide = np.column_stack([np.ones(400), x])
    expected, (left,), *_ = np.linalg.lstsq(wide, y)
    assert fit.coefficients == pytest.approx(expected)
    assert not fit.shrunk
    assert fit.of_noise == pytest.approx(np.zeros((3, 3)))
    assert fit.of_sampling == pytest.approx(left / 397 * np.linalg.inv(wide.T @ wide), rel=1e-9)
    # In other units: x 10 wide about 5, y in hundreds.
    turned = fit.in_units(np.array([5.0, 0, 300]), np.array([10.0, 1, 100]))
    there, *_ = np.linalg.lstsq(np.column_stack([np.ones(400), 10 * x[:, 0] + 5, x[:, 1]]), 100 * y + 300)
    assert turned.coefficients == pytest.approx(there)


@pytest.mark.parametrize(("records", "epsilon", "delta"), [(20_000, 1.0, 0.0), (20_000, 4.0, 1e-6), (3000, 1.0, 1e-6)])
def test_intervals_hold_the_coefficients(records: int, epsilon: float, delta: float) -> None:
    generator, sampler, runs = np.random.default_rng(3), Seeded(4), times(300, 3000)
    truth, inside = np.array([0.1, 0.4, -0.3, 0.1]), np.zeros(4)
    noise = product_noise(5, records, epsilon, delta)
    for _ in range(runs):
        x = generator.uniform(-1, 1, (records, 3))
        y = truth[0] + x @ truth[1:] + generator.uniform(-0.1, 0.1, records)
        fit = Fit.of(noisy_products(products(np.column_stack([x, y])), noise, sampler), records, noise.sd)
        assert not fit.shrunk
        inside += np.abs(fit.coefficients - truth) <= fit.half_widths(0.95)
    assert inside.min() / runs >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / runs) - 0.01
    assert inside.max() / runs <= 0.99


def test_too_much_noise_is_said() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (100, 3))
    for seed in range(50):
        noise = product_noise(4, 100, 0.1, 0.0)
        fit = Fit.of(noisy_products(products(values), noise, Seeded(seed)), 100, noise.sd)
        assert fit.shrunk
        assert np.isfinite(fit.coefficients).all()
        assert np.isnan(fit.errors).all()
    # Columns that follow from one another have no coefficients of their own, whatever the noise.
    twice = np.column_stack([values[:, 0], values[:, 0], values[:, 1]])
    assert Fit.of(noisy_products(products(twice), product_noise(4, 100, 1e9, 0.0), Seeded(1)), 100, 1e-9).shrunk


# --- in SQL ----------------------------------------------------------------------------------------------------------

BOUNDS = "bounds := {'x': [0, 10], 'Z z': [-50, 50], 'y': [-200, 400]}"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        'CREATE TABLE people AS SELECT *, 100 + 5 * x - 2 * "Z z" + i % 3 AS y FROM '
        '(SELECT i, (i * 7919 % 100) / 10.0 AS x, (i * 104729 % 97 - 48)::DECIMAL(9, 2) AS "Z z" FROM range(20000) r(i))'
    )
    return con


@pytest.mark.parametrize("delta", ["", ", delta := 1e-6"])
def test_coefficients_and_their_errors(people: duckdb.DuckDBPyConnection, delta: str) -> None:
    rows = people.execute(
        f"SELECT * FROM sdc_dp_regression('people', 'Y', ['X', 'Z z'], {BOUNDS}, epsilon := 5{delta})"
    ).fetchall()
    assert [row[0] for row in rows] == ["(constant)", "x", "Z z"]
    for row, truth in zip(rows, (101, 5, -2), strict=True):
        assert abs(row[1] - truth) < 60 * row[3]
        assert 0 < row[2] <= row[3]
        assert (row[4], row[5]) == (
            pytest.approx(row[1] - 1.959964 * row[3]),
            pytest.approx(row[1] + 1.959964 * row[3]),
        )
        assert row[6] is False
    told = people.execute("SELECT data, neighbours, epsilon, delta FROM sdc_synth_dp_ledger()").fetchall()
    assert told == [("people", "replace", 5, 1e-6 if rows[0][7] == "normal" else 0)]


def test_with_much_budget_it_is_that_of_the_database(people: duckdb.DuckDBPyConnection) -> None:
    (constant, slope) = people.execute(
        f"SELECT estimate FROM sdc_dp_regression('people', 'y', ['x'], {BOUNDS.replace(chr(39) + 'Z z' + chr(39) + ': [-50, 50], ', '')}, epsilon := 1e9)"
    ).fetchall()
    expected = people.execute("SELECT regr_intercept(y, x), regr_slope(y, x) FROM people").fetchone()
    assert (constant[0], slope[0]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("NULL, ['x']", "'outcome' must name the column of numbers that is explained"),
        ("'y', []", "'columns' must name the columns of numbers"),
        ("'y', ['x', 'y']", "'columns' must not have the outcome 'y'"),
        ("'nothing', ['x']", "unknown column 'nothing'"),
        ("'name', ['x']", "'outcome' must name a column of numbers"),
        ("'y', ['x'], bounds := {'x': [0, 1]}, epsilon := 1", "has none for column 'y': bounds must be public"),
        ("'y', ['x'], bounds := {'x': [1, 0], 'y': [0, 1]}, epsilon := 1", "smaller number first"),
        ("'y', ['x'], bounds := {'x': [0, 'nan'::DOUBLE], 'y': [0, 1]}, epsilon := 1", "two numbers for each column"),
        *(
            (f"'y', ['x'], bounds := {{'x': [0, 1], 'y': [0, 1]}}, epsilon := {value}", "'epsilon' must be a number above 0")
            for value in ("0", "-1", "NULL", "'nan'::DOUBLE", "'inf'::DOUBLE")
        ),
        *(
            (f"'y', ['x'], bounds := {{'x': [0, 1], 'y': [0, 1]}}, epsilon := 1, delta := {value}", "'delta' must be above 0 and below 1")
            for value in ("0", "1", "-1", "'nan'::DOUBLE")
        ),
        ("'y', ['x'], bounds := {'x': [0, 1], 'y': [0, 1]}, epsilon := 1, confidence := 95", "95 per cent is 0.95"),
        ("'hole', ['x'], bounds := {'x': [0, 1], 'hole': [0, 1]}, epsilon := 1", "a record has NULL"),
        ("'wild', ['x'], bounds := {'x': [0, 1], 'wild': [0, 1]}, epsilon := 1", "NaN or an infinite number"),
    ],
)  # fmt: skip
def test_wrong_arguments(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    con.execute(
        "CREATE TABLE people AS SELECT i / 5 AS x, i / 5 AS y, 'n' || i AS name, CASE WHEN i < 3 THEN i END AS hole, "
        "CASE WHEN i = 2 THEN 'nan'::DOUBLE ELSE i END AS wild FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM sdc_dp_regression('people', {arguments})").fetchall()
    assert con.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchone() == (0,)


def test_too_few_records(people: duckdb.DuckDBPyConnection) -> None:
    for limit in (0, 3):
        with pytest.raises(duckdb.Error, match="fewer than 4 records"):
            people.execute(
                f"FROM sdc_dp_regression('(FROM people LIMIT {limit})', 'y', ['x', 'Z z'], {BOUNDS}, epsilon := 1)"
            ).fetchall()
