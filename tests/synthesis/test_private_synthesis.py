"""Differentially private synthesis: the noise, what is made of it, and the published figures.

OpenDP's noise has no seed. What is tested of it holds always, or but for a chance below 1e-9.
"""

from __future__ import annotations

import itertools
import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import again_and_again

import sdcduck
from sdcduck.methods.synthesis.private_synthesis import (
    FLOOR,
    drawn,
    epsilon_spent,
    fit_margins,
    made_positive,
    margin,
    noisy_counts,
    pairs,
    rounded,
    signal_share,
    total_of,
)

CHANCE = 1e-10
needs_duckdb_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5 cannot be asked between the chunks of a statement"
)

# --- the noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "scale"), [("geometric", 0.7), ("geometric", 21.0), ("laplace", 2.0)])
@pytest.mark.newest
def test_the_law_of_the_noise(mechanism: str, scale: float) -> None:
    n = 20_000
    noise = np.sort(noisy_counts(np.full(n, 40), mechanism, scale) - 40)
    if mechanism == "geometric":
        a = math.exp(-1 / scale)
        points = np.arange(-200.0, 201.0)
        expected = np.where(points < 0, a**-points / (1 + a), 1 - a ** (points + 1) / (1 + a))
        assert (noise == np.round(noise)).all()
    else:
        points = noise
        expected = np.where(points < 0, 0.5 * np.exp(points / scale), 1 - 0.5 * np.exp(-np.abs(points) / scale))
    observed = np.searchsorted(noise, points, side="right") / n
    # Dvoretzky, Kiefer and Wolfowitz bound the chance of a larger distance, whatever the law.
    assert np.abs(observed - expected).max() < math.sqrt(math.log(2 / CHANCE) / (2 * n)) + 1 / n


@pytest.mark.newest
def test_what_the_noise_costs() -> None:
    for mechanism in ("geometric", "laplace"):
        assert epsilon_spent(mechanism, 21.0, 1) == pytest.approx(1 / 21, rel=1e-12)
        assert epsilon_spent(mechanism, 21.0, 2) == pytest.approx(2 / 21, rel=1e-12)
        assert epsilon_spent(mechanism, 1 / 3, 1) >= 3


# --- what is made of it ----------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    counts = draw(st.lists(st.integers(0, 30), min_size=math.prod(shape), max_size=math.prod(shape)))
    return np.array(counts).reshape(shape)


@given(table=tables())
@settings(max_examples=80, deadline=None)
@pytest.mark.newest
def test_margins_that_agree_are_fitted(table: np.ndarray) -> None:
    axes = pairs(table.ndim)
    targets = [margin(table, one).astype(np.float64) for one in axes]
    fit = fit_margins(table >= 0, axes, targets, tolerance=1e-9, most_sweeps=20_000)
    if fit.converged:
        assert fit.deviation < 1e-4
    assert fit.table.sum() == pytest.approx(table.sum())
    whole = rounded(fit.table, int(table.sum())) if table.any() else table
    assert whole.sum() == table.sum()
    assert np.abs(whole - fit.table).max(initial=0) <= 1


def test_known_fits() -> None:
    table = np.array([[[3, 1], [2, 0]], [[4, 4], [1, 5]]])
    a, b, c = (margin(table, (axis,)).astype(float) for axis in range(3))
    n = table.sum()
    everywhere = table >= 0
    assert fit_margins(everywhere, [(0,), (1,), (2,)], [a, b, c]).table == pytest.approx(a * b * c / n**2)
    ab, bc = margin(table, (0, 1)).astype(float), margin(table, (1, 2)).astype(float)
    fit = fit_margins(everywhere, [(0, 1), (1, 2)], [ab, bc])
    assert fit.table == pytest.approx(ab * bc / b)
    assert fit.converged
    assert fit.sweeps == 2
    nobody = everywhere.copy()
    nobody[0, 1, 1] = False
    assert fit_margins(nobody, [(0, 1), (1, 2)], [ab, bc]).table[0, 1, 1] == 0


def test_margins_that_do_not_agree_do_not_settle() -> None:
    # Of the same table, one margin says that both are always equal, the others that they never are.
    equal, other = np.array([[5.0, 0], [0, 5]]), np.array([[0, 5.0], [5, 0]])
    targets = [equal.reshape(2, 2, 1), equal.reshape(1, 2, 2), other.reshape(2, 1, 2)]
    fit = fit_margins(np.ones((2, 2, 2), dtype=bool), [(0, 1), (1, 2), (0, 2)], targets, most_sweeps=50)
    assert not fit.converged or fit.deviation > 1


def test_counts_are_made_positive_and_totals_estimated() -> None:
    made = made_positive(np.array([-3.0, 0.0, 8.0, 5.0]), np.array([True, True, True, False]), 16)
    assert made == pytest.approx([2 * FLOOR, 2 * FLOOR, 16, 0], rel=1e-6)
    assert total_of([np.array([10.0, 20]), np.array([30.0, 10, 5, 3])], [2, 4]) == round((30 / 2 + 48 / 4) / (3 / 4))
    assert total_of([np.array([-10.0])], [1]) == 0
    assert drawn(np.array([[1.0, 0], [2, 3]]), 1000, np.random.default_rng(1)).sum() == 1000


def test_the_signal_share() -> None:
    # The example of seven variables: 5000 records, 144 350 empty cells.
    shares = [signal_share(5000, 144_350, 1 / epsilon) for epsilon in (0.1, 0.5, 1, 2, 10)]
    assert shares == pytest.approx([0.007, 0.03, 0.06, 0.12, 0.41], abs=0.006)
    assert signal_share(0, 10, 1) == 0


# --- the published figures -------------------------------------------------------------------------------------------

VARIABLES = ["sex", "age", "placesize", "edu", "socprof", "income", "marital"]


@pytest.fixture(scope="module")
def survey(lasting: duckdb.DuckDBPyConnection, reference_data: Path) -> duckdb.DuckDBPyConnection:
    """Social Diagnosis 2011, cut as in the paper; NULL is a category."""
    file = reference_data / "synthpop" / "SD2011_12vars.csv.gz"
    lasting.execute(f"""
        CREATE TABLE survey AS
        SELECT sex, len(list_filter([28, 42, 54, 64], lambda x: age::INTEGER >= x)) AS age, placesize, edu, socprof,
            CASE WHEN income::DOUBLE = -8 THEN -8
                WHEN income IS NOT NULL THEN len(list_filter([860, 1200, 1500, 2000], lambda x: income::DOUBLE >= x))
            END AS income, marital
        FROM read_csv('{file}', all_varchar = true, nullstr = ['NA', ''])
    """)
    return lasting


@pytest.mark.parametrize(
    ("columns", "cells", "filled", "uniques"), [(3, 60, 60, 0), (5, 3000, 953, 337), (7, 147_000, 2650, 1792)]
)
def test_the_cells_of_the_survey(
    survey: duckdb.DuckDBPyConnection, columns: int, cells: int, filled: int, uniques: int
) -> None:
    rows = survey.execute(
        "SELECT method, records, cells, empty, uniques, p0, p1, tables, scale, signal_share "
        f"FROM sdc_synth_dp_preflight('survey', dimensions := {VARIABLES[:columns]}, epsilon := 2)"
    ).fetchall()
    for row in rows:
        assert row[1:5] == (5000, cells, cells - filled, uniques)
        assert row[5:7] == pytest.approx((100 * (cells - filled) / cells, 100 * uniques / 5000))
    margins = columns * (columns - 1) // 2
    assert [(row[0], row[7], row[8]) for row in rows] == [("catall", 1, 0.5), ("ipf", margins, margins / 2)]
    assert rows[0][9] == pytest.approx(signal_share(5000, cells - filled, 0.5))


def codes(con: duckdb.DuckDBPyConnection, columns: int) -> np.ndarray:
    """The counts of the survey, one axis a column."""
    ranks = ", ".join(f"dense_rank() OVER (ORDER BY {name}) - 1 AS c{k}" for k, name in enumerate(VARIABLES[:columns]))
    found = con.execute(f"SELECT {ranks} FROM survey").fetchnumpy()
    places = tuple(np.asarray(column) for column in found.values())
    table = np.zeros([place.max() + 1 for place in places], dtype=np.int64)
    np.add.at(table, places, 1)
    return table


def standardised_pmse(original: np.ndarray, synthetic: np.ndarray, order: int) -> float:
    """The mean over all margins of so many columns, for two tables of one size."""
    found = []
    for axes in itertools.combinations(range(original.ndim), order):
        o, s = margin(original, axes).ravel(), margin(synthetic, axes).ravel()
        kept = o + s > 0
        c = s.sum() / (o.sum() + s.sum())
        vw = ((s - o * c / (1 - c))[kept] ** 2 / (c * (o + s)[kept])).sum()
        found.append(vw / (kept.sum() - 1))
    return float(np.mean(found))


def replicated_uniques(original: np.ndarray, synthetic: np.ndarray) -> float:
    """Per cent of the records."""
    return float(100 * ((original == 1) & (synthetic == 1)).sum() / original.sum())


def check_figures(
    original: np.ndarray,
    made: list[np.ndarray],
    epsilon: float | None,
    two_way: float,
    three_way: float,
    uniques: float,
) -> float:
    """Within the tolerances of the specification; returns the mean share of replicated uniques."""
    near = 0.15 if epsilon is None or epsilon >= 1 else 0.35
    for order, published in ((2, two_way), (3, three_way)):
        found = np.mean([standardised_pmse(original, one, order) for one in made])
        assert found == pytest.approx(published, rel=near, abs=0.15)
    share = float(np.mean([replicated_uniques(original, one) for one in made]))
    assert share == pytest.approx(uniques, abs=0.25 if original.ndim < 7 else 0.5)
    return share


def ipf(table: np.ndarray, epsilon: float | None, generator: np.random.Generator) -> np.ndarray:
    """The synthesis as published: Laplace noise, here with a seed; one record added to each margin; exact total."""
    axes = pairs(table.ndim)
    targets = []
    for one in axes:
        counts = margin(table, one).astype(np.float64)
        noise = 0.0 if epsilon is None else generator.laplace(scale=len(axes) / epsilon, size=counts.shape)
        targets.append(made_positive(counts + 1 / counts.size + noise, counts >= 0, table.sum()))
    fit = fit_margins(table >= 0, axes, targets)
    return drawn(fit.table, int(table.sum()), generator)


@pytest.mark.parametrize(
    ("columns", "epsilon", "two_way", "three_way", "uniques", "runs"),
    [
        # Raab (2022), tables 2 and 3.
        (3, None, 0.96, 1.48, 0, 20),
        (3, 0.01, 245.71, 139.81, 0, 20),
        (3, 0.1, 12.63, 10.27, 0, 20),
        (3, 0.5, 1.69, 1.90, 0, 20),
        (3, 1, 1.15, 1.40, 0, 20),
        (3, 2, 1.08, 1.31, 0, 20),
        (3, 10, 1.06, 1.33, 0, 20),  # of a repetition; the paper has 1.15, 1.40
        (5, None, 1.0, 1.76, 1.67, 10),
        (5, 0.01, 325.45, 135.90, 0.01, 10),
        (5, 0.1, 99.01, 56.77, 0.04, 10),
        (5, 0.5, 14.59, 8.91, 0.99, 10),
        (5, 1, 5.48, 4.21, 1.29, 10),
        (5, 2, 2.84, 2.65, 1.55, 10),
        (5, 10, 1.15, 1.82, 1.63, 10),
        (7, None, 1.0, 1.77, 6.41, 2),  # epsilon below 1 is left out: with so much noise a fit takes over four minutes
        (7, 1, 15.21, 9.51, 3.46, 2),
        (7, 2, 5.86, 4.37, 5.55, 2),
        (7, 10, 1.64, 2.05, 6.68, 2),
    ],
)
@pytest.mark.newest
def test_the_published_figures_of_ipf(
    survey: duckdb.DuckDBPyConnection, columns: int, epsilon: float | None, two_way: float, three_way: float,
    uniques: float, runs: int,
) -> None:  # fmt: skip
    generator = np.random.default_rng(20220921)
    original = codes(survey, columns)
    made = [ipf(original, epsilon, generator) for _ in range(runs)]
    check_figures(original, made, epsilon, two_way, three_way, uniques)


@pytest.mark.newest
def test_the_published_figures_of_catall(survey: duckdb.DuckDBPyConnection) -> None:
    generator = np.random.default_rng(1)
    original = codes(survey, 5)
    made = [drawn(original + 1 / original.size, 5000, generator) for _ in range(20)]
    assert np.mean([standardised_pmse(original, one, 2) for one in made]) == pytest.approx(1, abs=0.1)
    # A unique stays one with a chance of 1/e: 36 to 37 per cent of them.
    assert np.mean([replicated_uniques(original, one) for one in made]) / 6.74 == pytest.approx(1 / math.e, abs=0.02)


def catall(table: np.ndarray, epsilon: float | None, generator: np.random.Generator) -> np.ndarray:
    """The synthesis of the whole table as published: Laplace noise with a seed; one record added; exact total."""
    noise = 0.0 if epsilon is None else generator.laplace(scale=1 / epsilon, size=table.shape)
    counts = made_positive(table + 1 / table.size + noise, table >= 0, table.sum())
    return drawn(counts, int(table.sum()), generator)


@pytest.mark.parametrize(
    ("columns", "epsilon", "two_way"),
    # Repetitions of the specification; the paper calls this method adequate for no file, which these 60 cells refute.
    [
        (3, 0.01, 111.8),
        (3, 0.1, 4.21),
        (3, 0.5, 1.08),
        (3, 1, 1.00),
        (3, 2, 1.05),
        (3, 10, 1.14),
        (5, 0.01, 145),
        (5, 0.1, 101),
        (5, 0.5, 35.7),
        (5, 1, 18.2),
        (5, 2, 8.8),
        (5, 10, 1.9),
        (7, 0.01, 169),
        (7, 0.1, 168),
        (7, 0.5, 162),
        (7, 1, 154),
        (7, 2, 139),
        (7, 10, 75),
    ],
)
@pytest.mark.newest
def test_the_figures_of_private_catall(
    survey: duckdb.DuckDBPyConnection, columns: int, epsilon: float, two_way: float
) -> None:
    generator = np.random.default_rng(20220921)
    original = codes(survey, columns)
    runs = 10 if columns < 7 else 3
    found = [standardised_pmse(original, catall(original, epsilon, generator), 2) for _ in range(runs)]
    assert np.mean(found) == pytest.approx(two_way, rel=0.15 if epsilon >= 1 else 0.35, abs=0.15)


@pytest.fixture(scope="module")
def fair() -> np.ndarray:
    """The eight columns of a survey that comes with statsmodels, as categories."""
    statsmodels = pytest.importorskip("statsmodels.datasets")
    frame = statsmodels.fair.load_pandas().data.iloc[:, :8]
    places = tuple(np.unique(frame[name], return_inverse=True)[1] for name in frame)
    table = np.zeros([place.max() + 1 for place in places], dtype=np.int64)
    np.add.at(table, places, 1)
    return table


def test_the_cells_of_the_affairs(fair: np.ndarray) -> None:
    tables = [margin(fair, range(columns)) for columns in range(2, 9)]
    assert [table.size for table in tables] == [30, 210, 1260, 5040, 30_240, 181_440, 1_088_640]
    assert [int((table > 0).sum()) for table in tables] == [30, 130, 415, 1017, 2219, 3431, 4829]
    assert [int((table == 1).sum()) for table in tables] == [1, 19, 105, 353, 1227, 2346, 3942]


@pytest.mark.parametrize(
    ("method", "columns", "epsilon", "uniques", "share", "two_way", "three_way"),
    [
        (catall, 5, None, 2.07, 37.3, 0.92, 0.98), (ipf, 5, None, 1.37, 24.8, 0.97, 1.47), (ipf, 5, 10, 1.36, 24.6, 1.13, 1.61),
        (ipf, 5, 1, 1.09, 19.6, 4.69, 3.72), (ipf, 5, 0.5, 0.79, 14.2, 9.54, 6.62), (catall, 5, 1, 1.41, 25.5, 31.9, 10.8),
        (catall, 7, None, 13.65, 37.0, 0.98, 1.00), (catall, 7, 1, 2.43, 6.6, 207, 54),
    ],
)  # fmt: skip
@pytest.mark.newest
def test_the_figures_of_the_affairs(
    fair: np.ndarray, method: Callable[[np.ndarray, float | None, np.random.Generator], np.ndarray], columns: int,
    epsilon: float | None, uniques: float, share: float, two_way: float, three_way: float,
) -> None:  # fmt: skip
    """Repetitions of the specification, by the tolerances of its survey; ipf of seven columns takes a minute more."""
    generator = np.random.default_rng(20220921)
    original = fair.sum(axis=tuple(range(columns, fair.ndim)))
    made = [method(original, epsilon, generator) for _ in range(10 if columns < 7 else 3)]
    found = check_figures(original, made, epsilon, two_way, three_way, uniques)
    of_uniques = 100 * (original == 1).sum() / original.sum()
    assert 100 * found / of_uniques == pytest.approx(share, abs=100 * (0.25 if columns < 7 else 0.5) / of_uniques)


@pytest.mark.parametrize(
    ("method", "epsilon", "low", "high"),
    # The noise of OpenDP has no seed. Of single runs, mean and standard deviation: 1.1 (0.2), 5.5 (1.2), 17.9 (1.6);
    # the law is skewed to the right, and the bounds are so wide that only a fault crosses them.
    [("ipf", 10, 0.05, 4), ("ipf", 1, 0.5, 40), ("catall", 1, 2, 80)],
)
@pytest.mark.newest
def test_the_figures_with_the_noise_of_opendp(
    survey: duckdb.DuckDBPyConnection, method: str, epsilon: float, low: float, high: float
) -> None:
    by = VARIABLES[:5]
    survey.execute(
        f"CREATE OR REPLACE TABLE made AS FROM sdc_synth_dp('survey', dimensions := {by}, epsilon := {epsilon}, method := '{method}', "
        "mechanism := 'laplace', prior_n := 1, total := 5000, public_domains := true)"
    )
    scores = []
    for first, second in itertools.combinations(by, 2):
        vw, cells = survey.execute(f"""
            SELECT sum((s - o) ** 2 / ((o + s) / 2)), count(*) FROM (
                SELECT sum(n) FILTER (original) AS o0, coalesce(o0, 0) AS o, coalesce(sum(n) FILTER (NOT original), 0) AS s
                FROM (
                    SELECT {first}, {second}, 1 AS n, true AS original FROM survey UNION ALL
                    SELECT {first}, {second}, count, false FROM made
                ) GROUP BY {first}, {second}
            )
        """).fetchall()[0]
        scores.append(float(vw) / (cells - 1))
    assert low < np.mean(scores) < high
    assert survey.execute("SELECT sum(count) FROM made").fetchall() == [(5000,)]


# --- the door --------------------------------------------------------------------------------------------------------

EXACT = "epsilon := 1e6"  # the chance that any noise differs from 0 is about exp(-10^5)
DOMAINS = "domains := {'ward': ['a', 'b', 'c', NULL], 'kind': [0, 1, 2, 3]}"


def with_visits(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """2000 records in 3 x 4 cells, one category NULL, one combination not there."""
    con.execute("""
        CREATE TABLE visits AS
        SELECT ['a', 'b', NULL][1 + (hash(3 * i) % 3)::BIGINT] AS ward, (hash(3 * i + 1) % 4)::INTEGER AS kind
        FROM range(2000) numbers(i) WHERE NOT (hash(3 * i) % 3 = 0 AND hash(3 * i + 1) % 4 = 2)
    """)
    return con


@pytest.fixture
def visits(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return with_visits(con)


@pytest.fixture(scope="module")
def same_visits(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return with_visits(lasting)


def made(con: duckdb.DuckDBPyConnection, arguments: str, source: str = "visits") -> list[tuple[object, ...]]:
    sql = f"FROM sdc_synth_dp('{source}', dimensions := ['ward', 'kind'], {arguments}) ORDER BY ALL"
    return con.execute(sql).fetchall()


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
@pytest.mark.parametrize("method", ["catall", "ipf"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_without_noise_the_table_comes_back(
    same_visits: duckdb.DuckDBPyConnection, method: str, mechanism: str, neighbours: str
) -> None:
    # Of two columns the two-way margin is the table itself.
    counts = same_visits.execute("SELECT ward, kind, count(*), true FROM visits GROUP BY ALL ORDER BY ALL").fetchall()
    arguments = (
        f"{EXACT}, method := '{method}', mechanism := '{mechanism}', neighbours := '{neighbours}', rounded := true"
    )
    assert made(same_visits, f"{arguments}, {DOMAINS}") == counts
    assert made(same_visits, f"{arguments}, public_domains := true") == counts
    counted = "(SELECT ward, kind, count(*) AS n FROM visits GROUP BY ALL)"
    assert made(same_visits, f"{arguments}, {DOMAINS}, freq := 'n'", counted) == counts
    shown = made(same_visits, f"{arguments}, {DOMAINS}, zeros := true")
    assert len(shown) == 16
    assert [row for row in shown if row[2]] == counts


def test_one_way_margins_are_kept_and_nothing_else(visits: duckdb.DuckDBPyConnection) -> None:
    n = visits.execute("SELECT count(*) FROM visits").fetchall()[0][0]
    fitted = made(visits, f"{EXACT}, margins := 'oneway', rounded := true, {DOMAINS}, zeros := true")
    rows = dict(visits.execute("SELECT ward, count(*) FROM visits GROUP BY ALL").fetchall())
    columns = dict(visits.execute("SELECT kind, count(*) FROM visits GROUP BY ALL").fetchall())
    for ward, kind, count, converged in fitted:
        assert abs(count - rows.get(ward, 0) * columns[kind] / n) <= 1  # type: ignore[operator, call-overload, index]
        assert converged
    assert fitted == made(
        visits, f"{EXACT}, margins := [['KIND'], ['ward']], rounded := true, {DOMAINS}, zeros := true"
    )


def test_every_call_has_noise_of_its_own(visits: duckdb.DuckDBPyConnection) -> None:
    for method in ("catall", "ipf"):
        arguments = f"epsilon := 0.01, method := '{method}', rounded := true, total := 1000, {DOMAINS}"
        assert made(visits, arguments) != made(visits, arguments)


def test_the_number_of_records(visits: duckdb.DuckDBPyConnection) -> None:
    n = visits.execute("SELECT count(*) FROM visits").fetchall()[0][0]

    def size(arguments: str) -> int:
        return sum(row[2] for row in made(visits, f"{arguments}, {DOMAINS}"))  # type: ignore[misc]

    for method in ("catall", "ipf"):
        assert size(f"epsilon := 0.1, method := '{method}', total := 123") == 123
        assert size(f"epsilon := 0.1, method := '{method}', neighbours := 'replace'") == n
        # The sum of 16 noises of scale 10: by Chernoff's bound the chance is below exp(-47).
        assert size(f"epsilon := 0.1, method := '{method}'") == pytest.approx(n, abs=800)
    assert size("epsilon := 1, total := 0") == 0
    # Added records are no records: they are spread over the cells, and not counted.
    assert size(f"{EXACT}, prior_n := 500") == n
    with pytest.raises(duckdb.Error, match="the number of records is lost in the noise"):
        _ = [made(visits, f"epsilon := 1e-20, {DOMAINS}") for _ in range(40)]  # the noise is as often negative
    records = made(visits, f"epsilon := 1, total := 321, records := true, {DOMAINS}")
    assert len(records) == 321
    assert len(records[0]) == 3


def test_structural_zeros_get_no_noise_and_no_records(visits: duckdb.DuckDBPyConnection) -> None:
    impossible = "structural_zeros := 'ward = ''a'' AND kind = 2 OR ward = ''c'''"
    for method in ("catall", "ipf"):
        shown = made(visits, f"epsilon := 0.05, method := '{method}', {DOMAINS}, zeros := true, {impossible}")
        assert len(shown) == 11
        assert all(row[0] != "c" and row[:2] != ("a", 2) for row in shown)
    with pytest.raises(duckdb.Error, match="a structural zero has records"):
        made(visits, f"epsilon := 1, {DOMAINS}, structural_zeros := 'kind = 1'")


def test_an_empty_table_hides_that_it_is_empty(visits: duckdb.DuckDBPyConnection) -> None:
    nobody = "(FROM visits WHERE false)"
    # The sum of the noise is above 0 in about every second call.
    sizes = [len(made(visits, f"epsilon := 0.1, {DOMAINS}", nobody)) for _ in range(32)]
    assert max(sizes) > 0
    assert made(visits, "epsilon := 0.1, public_domains := true", nobody) == []
    flight = "FROM sdc_synth_dp_preflight('{}', dimensions := ['ward', 'kind'], epsilon := 1{})"
    assert visits.execute("SELECT cells, p0, p1, signal_share " + flight.format(nobody, f", {DOMAINS}")).fetchall() == [
        (16, 100.0, None, 0.0)
    ] * 2  # fmt: skip
    assert visits.execute("SELECT cells, p0 " + flight.format(nobody, "")).fetchall() == [(0, None)] * 2


def test_types_and_names_that_are_not_plain(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE "the ""table" AS
        SELECT DATE '2020-01-01' + (i % 3)::INTEGER AS "it's", (['x', '"]', ''])[1 + i % 3]::ENUM ('x', '"]', '') AS "group",
            i % 3 / 4.0 AS share, i % 3 = 1 AS truth
        FROM range(90) t(i)
    """)
    call = f"""FROM sdc_synth_dp('the "table', dimensions := ['it''s', 'group', 'share', 'truth'], {EXACT}, method := 'catall',
        rounded := true, public_domains := true) ORDER BY ALL"""
    assert (
        con.execute(call).fetchall()
        == con.execute("""SELECT *, count(*), true FROM "the ""table" GROUP BY ALL ORDER BY ALL""").fetchall()
    )
    assert [row[1] for row in con.execute(f"DESCRIBE {call}").fetchall()] == [
        *(row[1] for row in con.execute("""DESCRIBE "the ""table" """).fetchall()), "BIGINT", "BOOLEAN",
    ]  # fmt: skip


def test_the_statement_adds_up(visits: duckdb.DuckDBPyConnection) -> None:
    for arguments, tables in (
        ("method := 'catall'", 1), ("", 1), ("margins := 'oneway'", 2), ("neighbours := 'replace', margins := 'oneway'", 2),
    ):  # fmt: skip
        rows = visits.execute(
            "FROM sdc_synth_dp_statement('visits', dimensions := ['ward', 'kind'], epsilon := 0.3, domains := {'kind': [0, 1, 2, 3]}, "
            f"public_domains := true{', ' if arguments else ''}{arguments})"
        ).fetchall()
        told = {row[0]: row[1:] for row in rows}
        shares = [row[2] for row in rows if row[0].startswith("table ")]
        assert len(shares) == tables
        assert sum(shares) == pytest.approx(0.3) == told["privacy"][1]
        assert told["categories of ward"] == ("from the data, said to be public", None, False)
        assert told["categories of kind"] == ("given in the statement", None, False)
        assert told["number of records"][2] is ("replace" not in arguments)
        assert f"scale {tables * (2 if 'replace' in arguments else 1) / 0.3:g}" in told["noise"][0]


def test_without_opendp(visits: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(duckdb.Error, match=r"needs the package 'opendp': pip install 'sdcduck\[dp\]'"):
        made(visits, f"epsilon := 1, {DOMAINS}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'visits', dimensions := ['ward'], public_domains := true", "argument 'epsilon' must be a number above 0"),
        *(
            (f"'visits', dimensions := ['ward'], public_domains := true, epsilon := {bad}", "argument 'epsilon' must be a number above 0")
            for bad in ("0", "-1", "NULL", "'nan'::DOUBLE", "'infinity'::DOUBLE")
        ),
        ("'nowhere', dimensions := ['ward'], epsilon := 1", "unknown table 'nowhere'"),
        ("'visits', epsilon := 1", "argument 'dimensions' must name the columns"),
        ("'visits', dimensions := ['wart'], epsilon := 1", "unknown column 'wart'"),
        ("'visits', dimensions := ['ward'], epsilon := 1", "the categories of column 'ward' would be taken from the data"),
        ("'visits', dimensions := ['ward'], epsilon := 1, domains := {'ward': ['a', 'b']}", "a category that is not in argument 'domains'"),
        ("'visits', dimensions := ['ward'], epsilon := 1, domains := {'wart': ['a']}", "unknown column 'wart' in 'dimensions' .argument 'domains'"),
        ("'visits', dimensions := ['ward'], epsilon := 1, method := 'cart'", "argument 'method' must be 'ipf' or 'catall'"),
        ("'visits', dimensions := ['ward'], epsilon := 1, mechanism := 'gauss'", "argument 'mechanism' must be 'geometric' or 'laplace'"),
        ("'visits', dimensions := ['ward'], epsilon := 1, neighbours := NULL", "argument 'neighbours' must be 'add_remove' or 'replace'"),
        ("'visits', dimensions := ['ward'], epsilon := 1, prior_n := -1", "argument 'prior_n' must be a number of at least 0"),
        ("'visits', dimensions := ['ward'], epsilon := 1, total := -1", "argument 'total' must be a whole number from 0 to"),
        ("'visits', dimensions := ['ward'], epsilon := 1, total := 1e13", "argument 'total' must be a whole number from 0 to"),
        ("'visits', dimensions := ['ward'], epsilon := 1, total := 1.5", "argument 'total' must be a whole number"),
        ("'visits', dimensions := ['ward'], epsilon := 1, public_domains := true, tol := 0", "argument 'tol' must be a number above 0"),
        ("'visits', dimensions := ['ward'], epsilon := 1, public_domains := true, tol := 'inf'::DOUBLE", "argument 'tol' must be a number above 0"),
        ("'visits', dimensions := ['ward'], epsilon := 1e-320, public_domains := true", "argument 'epsilon' is so small or so large"),
        ("'visits', dimensions := ['ward'], epsilon := 1, public_domains := true, max_iter := 0", "argument 'max_iter' must be"),
        *(
            (f"'visits', dimensions := ['ward', 'kind'], epsilon := 1, public_domains := true, margins := {margins}", message)
            for margins, message in (
                ("'threeway'", "argument 'margins' must be 'twoway'"), ("[]", "argument 'margins' must be 'twoway'"),
                ("[['ward']]", "column 'kind' is in no margin"), ("[['ward', 'day']]", "unknown column 'day' in 'dimensions' .argument 'margins'"),
                ("[['ward', 'WARD'], ['kind']]", "names a column twice"), ("[['ward', NULL]]", "argument 'margins' holds a NULL"),
                ("[['ward'], ['kind'], ['ward']]", "holds a margin twice"),
            )
        ),
        ("'visits', dimensions := ['ward'], epsilon := 1, public_domains := true, structural_zeros := 'nonsense'", "must be a condition"),
        ("'(SELECT 1 AS a, NULL::INT AS n)', dimensions := ['a'], freq := 'n', epsilon := 1, public_domains := true", "NULL, negative or no whole number"),
        ("'(SELECT 1 AS converged)', dimensions := ['converged'], epsilon := 1, public_domains := true", "is also one of the result"),
        (
            "'(SELECT i AS a, i AS b FROM range(20000) t(i))', dimensions := ['a', 'b'], epsilon := 1, public_domains := true",
            "more than 10000000 combinations of categories: take fewer columns",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(same_visits: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        same_visits.execute(f"FROM sdc_synth_dp({call})").fetchall()


# --- the ledger ------------------------------------------------------------------------------------------------------

SPENT = "SELECT data, neighbours, releases, spent, budget, remaining FROM sdc_synth_dp_budgets()"


def release(con: duckdb.DuckDBPyConnection, source: str, epsilon: float, more: str = "") -> None:
    con.execute(
        f"FROM sdc_synth_dp('{source}', dimensions := ['ward'], method := 'catall', epsilon := {epsilon}, "
        f"public_domains := true{more})"
    ).fetchall()


def test_releases_of_one_table_add_up_through_views_macros_and_queries(visits: duckdb.DuckDBPyConnection) -> None:
    visits.execute("CREATE SCHEMA other; CREATE TABLE other.wards AS SELECT DISTINCT ward FROM visits")
    visits.execute("CREATE VIEW first AS FROM visits WHERE kind = 1; CREATE MACRO all_visits() AS TABLE FROM first")
    for source, epsilon in (
        ("visits", 1), ("VISITS", 0.5), ("first", 0.25), ("(FROM all_visits())", 0.125),
        ("(WITH v AS MATERIALIZED (FROM visits) FROM v SEMI JOIN other.wards USING (ward), range(1))", 0.0625),
        ("(FROM query_table(''visits'') WHERE false)", 0.03125), ("(FROM range(3) numbers(ward))", 2),
    ):  # fmt: skip
        release(visits, source, epsilon, ", domains := {'ward': ['a', 'b', NULL]}" if "range(3)" not in source else "")
    assert visits.execute(SPENT).fetchall() == [
        ("(FROM range(3) numbers(ward))", "add_remove", 1, 2.0, None, None),
        ("other.wards", "add_remove", 1, 0.0625, None, None),
        ("visits", "add_remove", 6, 1.96875, None, None),
    ]
    ledger = visits.execute("SELECT release, data, epsilon, spent, what, source FROM sdc_synth_dp_ledger()").fetchall()
    assert [row[:4] for row in ledger if row[1] == "visits"] == [
        (1, "visits", 1, 1), (2, "visits", 0.5, 1.5), (3, "visits", 0.25, 1.75), (4, "visits", 0.125, 1.875),
        (5, "visits", 0.0625, 1.9375), (6, "visits", 0.03125, 1.96875),
    ]  # fmt: skip
    assert ledger[2][4:] == ("catall, geometric: ward", "first")


def test_a_statement_costs_once_and_what_only_looks_costs_nothing(visits: duckdb.DuckDBPyConnection) -> None:
    call = "FROM sdc_synth_dp('visits', dimensions := ['ward', 'kind'], epsilon := 1, public_domains := true)"
    visits.execute(f"DESCRIBE {call}")
    visits.execute(f"EXPLAIN {call}")
    visits.execute(f"CREATE VIEW made AS {call}")
    visits.execute(call.replace("sdc_synth_dp", "sdc_synth_dp_statement")).fetchall()
    visits.execute("FROM sdc_synth_dp_preflight('visits', dimensions := ['ward'], epsilon := 1)").fetchall()
    assert visits.execute(SPENT).fetchall() == []
    visits.execute(f"CREATE TABLE kept AS {call}")
    visits.execute("FROM kept").fetchall()
    assert visits.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(1.0,)]
    visits.execute("SELECT count(*) FROM made a JOIN made b USING (ward, kind)").fetchall()
    assert visits.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(3.0,)]
    for wrong in (
        "domains := {'ward': ['a']}",
        "epsilon := -1",
        "structural_zeros := 'kind = 1', public_domains := true",
    ):
        with pytest.raises(duckdb.Error):
            made(visits, wrong if "epsilon" in wrong else f"epsilon := 1, {wrong}")
    assert visits.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(3.0,)]


def test_a_budget_refuses_what_is_too_much(visits: duckdb.DuckDBPyConnection) -> None:
    release(visits, "visits", 1)
    assert visits.execute("FROM sdc_synth_dp_budget('visits', 2)").fetchall() == [("visits", "add_remove", 2.0, 0.0)]
    message = (
        "the releases of 'visits' may cost 2 together under neighbours := 'add_remove', and have cost 1; it would cost"
    )
    with pytest.raises(duckdb.Error, match=rf"{message} 1\.5 more"):
        release(visits, "visits", 1.5)
    # Nothing is read: an error would tell of the data.
    with pytest.raises(duckdb.Error, match=r"it would cost 1\.5 more"):
        release(visits, "visits", 1.5, ", domains := {'ward': ['a']}")
    assert visits.execute(SPENT).fetchall() == [("visits", "add_remove", 1, 1.0, 2.0, 1.0)]
    for _ in range(3):  # thirds, each certified as a little more
        release(visits, "(FROM visits)", 1 / 3)
    assert visits.execute("SELECT remaining FROM sdc_synth_dp_budgets()").fetchall()[0][0] == pytest.approx(0, abs=1e-9)
    with pytest.raises(duckdb.Error, match=r"it would cost 0\.001 more"):
        release(visits, "visits", 0.001)
    visits.execute("FROM sdc_synth_dp_budget('visits', NULL)").fetchall()
    release(visits, "visits", 0.5)
    assert visits.execute("SELECT releases, budget FROM sdc_synth_dp_budgets()").fetchall() == [(5, None)]
    visits.execute("FROM sdc_synth_dp_budget('visits', 0)").fetchall()
    with pytest.raises(duckdb.Error, match="may cost 0 together"):
        release(visits, "visits", 1e-9)


def test_the_two_neighbouring_relations_are_not_mixed_up(visits: duckdb.DuckDBPyConnection) -> None:
    replace = ", neighbours := 'replace'"
    visits.execute("FROM sdc_synth_dp_budget('visits', 3, neighbours := 'replace')").fetchall()
    release(visits, "visits", 1)  # removes and adds: twice
    with pytest.raises(duckdb.Error, match=r"have cost 2; it would cost 1\.5 more"):
        release(visits, "visits", 1.5, replace)
    release(visits, "visits", 1, replace)
    assert visits.execute(SPENT).fetchall() == [
        ("visits", "add_remove", 2, math.inf, None, None), ("visits", "replace", 2, 3.0, 3.0, 0.0),
    ]  # fmt: skip
    visits.execute("FROM sdc_synth_dp_budget('visits', 100)").fetchall()
    with pytest.raises(duckdb.Error, match="have cost inf"):
        release(visits, "visits", 0.1)
    visits.execute("CREATE TABLE more AS FROM visits")
    visits.execute("FROM sdc_synth_dp_budget('more', 100)").fetchall()
    with pytest.raises(duckdb.Error, match="it would tell the exact number of records"):
        release(visits, "more", 0.1, replace)


def test_threads_do_not_share_what_is_left(visits: duckdb.DuckDBPyConnection) -> None:
    visits.execute("FROM sdc_synth_dp_budget('visits', 5)").fetchall()
    refused = []

    def ask() -> None:
        with sdcduck.install(visits.cursor()) as con:
            try:
                release(con, "visits", 1)
            except duckdb.Error as problem:
                refused.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4
    assert all("have cost" in text for text in refused)
    assert visits.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(5.0,)]


def test_the_ledger_outlives_the_connection_and_a_rollback(tmp_path: Path) -> None:
    file = tmp_path / "survey.duckdb"
    with sdcduck.connect(file) as con:
        con.execute("CREATE TABLE visits AS SELECT 'a' AS ward FROM range(100)")
        con.execute("FROM sdc_synth_dp_budget('visits', 3)").fetchall()
        con.begin()
        release(con, "visits", 2)
        con.rollback()
    renamed = file.rename(tmp_path / "renamed.duckdb")
    with sdcduck.connect(renamed) as con:
        assert con.execute(SPENT).fetchall() == [("visits", "add_remove", 1, 2.0, 3.0, 1.0)]
        with pytest.raises(duckdb.Error, match="it would cost 2 more"):
            release(con, "visits", 2)
    with sdcduck.connect(renamed, read_only=True) as con:
        assert con.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(2.0,)]
        for call in (
            "sdc_synth_dp('visits', dimensions := ['ward'], epsilon := 1, public_domains := true)",
            "sdc_synth_dp_budget('visits', 9)",
        ):
            with pytest.raises(duckdb.Error, match="open for reading only"):
                con.execute(f"FROM {call}").fetchall()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nowhere', 1", "unknown table 'nowhere'"), ("NULL, 1", "argument 'data' must name a table"),
        ("'visits', -1", "argument 'epsilon' must be a number of at least 0"),
        ("'visits', 'nan'::DOUBLE", "argument 'epsilon' must be a number of at least 0"),
        ("'visits', 1, neighbours := 'some'", "argument 'neighbours' must be 'add_remove' or 'replace'"),
        ("'(FROM visits, sdc.settings)', 1", "must name one table; it reads 'sdc.settings', 'visits'"),
        ("'(FROM range(3))', 1", "must name a table of the database"),
    ],
)  # fmt: skip
def test_what_is_no_budget(same_visits: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        same_visits.execute(f"FROM sdc_synth_dp_budget({call})").fetchall()


def at_work() -> bool:
    return any(thread.name == "sdcduck" for thread in threading.enumerate())


def all_is_over(con: duckdb.DuckDBPyConnection) -> None:
    """The connection answers, and no thread goes on working."""
    assert con.execute("SELECT 42").fetchall() == [(42,)]
    deadline = time.monotonic() + 60
    while at_work() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not at_work()


@needs_duckdb_2
def test_an_interruption_after_the_charge_ends_the_fit_and_gives_nothing_back(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE many AS SELECT i % 30 AS a, i // 30 % 30 AS b, i // 900 % 30 AS c FROM range(90000) t(i)")
    con.execute("FROM sdc_synth_dp_budget('many', 1)").fetchall()
    endless = "epsilon := 0.1, public_domains := true, tol := 1e-300, max_iter := 1000000000"
    ledger = con.cursor()
    charged = lambda: bool(ledger.execute("FROM sdc.dp_releases").fetchall())  # noqa: E731
    with again_and_again(con.interrupt, charged), pytest.raises(duckdb.InterruptException, match="Interrupted"):
        con.execute(f"CREATE TABLE kept AS FROM sdc_synth_dp('many', dimensions := ['a', 'b', 'c'], {endless})")
    all_is_over(con)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'kept'").fetchall() == [(0,)]
    assert con.execute(SPENT).fetchall() == [
        ("many", "add_remove", 1, pytest.approx(0.1), 1.0, pytest.approx(0.9)),
    ]
    # The same statement once more is another release.
    release(con, "(SELECT a AS ward FROM many)", 0.1)
    assert con.execute("SELECT spent FROM sdc_synth_dp_budgets()").fetchall() == [(pytest.approx(0.2),)]


@needs_duckdb_2
def test_an_interruption_before_the_charge_costs_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE few AS SELECT i AS a FROM range(100000) t(i)")
    endless = "(SELECT (x.a + y.a) % 3 AS a FROM few x, few y)"  # ten thousand million records
    with again_and_again(con.interrupt, at_work), pytest.raises(duckdb.InterruptException, match="Interrupted"):
        con.execute(
            f"FROM sdc_synth_dp('{endless}', dimensions := ['a'], epsilon := 1, domains := {{'a': [0, 1, 2]}})"
        ).fetchall()
    all_is_over(con)
    assert con.execute("FROM sdc_synth_dp_ledger()").fetchall() == []
