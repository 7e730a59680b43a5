"""The encrypted vote in clear, and prototypes: the numbers of the reference run, other shapes, and bad input."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn import datasets

from sdcduck.methods.encrypted.fixed_point import Records, simulate, smallest_scale, vote, widest
from sdcduck.methods.encrypted.prototypes import clusters, evenly_spaced, prototypes, shares

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@cache
def split(name: str) -> tuple[Floats, Indices, Floats, Indices]:
    """Training rows, and every fifth row; columns from 0 to 1 over all rows."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    width = np.ptp(x, axis=0)
    x = (x - x.min(axis=0)) / np.where(width > 0, width, 1)
    test = np.arange(len(x)) % 5 == 0
    return x[~test], y[~test], x[test], y[test]


# --- the numbers of the reference run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n", "k", "tau", "accuracy", "plain", "agreement"),
    [
        ("iris", 40, 1, 1000, 0.9667, 0.9667, 1.0),
        ("iris", 40, 3, 1000, 0.9333, 0.9333, 1.0),
        ("iris", 40, 5, 1000, 0.9333, 0.9333, 1.0),
        ("iris", 120, 1, 1000, 0.9667, 0.9667, 1.0),
        ("iris", 120, 3, 1000, 0.9667, 0.9667, 1.0),
        ("iris", 120, 5, 1000, 0.9667, 0.9667, 1.0),
        ("wine", 40, 1, 1000, 0.9444, 0.9444, 1.0),
        ("wine", 40, 3, 1000, 0.9167, 0.9167, 1.0),
        ("wine", 40, 5, 1000, 0.9722, 0.9722, 1.0),
        ("wine", 142, 3, 1000, 0.9722, 1.0, 0.9722),
        ("breast_cancer", 455, 3, 1000, 0.9561, 0.9561, 1.0),
        ("breast_cancer", 455, 5, 1000, 0.9649, 0.9649, 1.0),
        ("digits", 1437, 3, 1000, 0.9833, 0.9833, 1.0),
        ("digits", 1437, 5, 1000, 0.9861, 0.9861, 1.0),
        ("iris", 40, 3, 100, 0.9333, 0.9333, 0.9333),
    ],
)
def test_accuracy_with_v_4(
    name: str, n: int, k: int, tau: int, accuracy: float, plain: float, agreement: float
) -> None:
    x, y, asked, truth = split(name)
    places = evenly_spaced(len(x), n)
    records = Records(x[places], y[places], int(y.max()) + 1, 4.0, tau)
    found, ordinary = simulate(records, asked, k)
    assert round(float((found.classes == truth).mean()), 4) == accuracy
    assert round(float((ordinary == truth).mean()), 4) == plain
    assert round(float((found.classes == ordinary).mean()), 4) == agreement


@pytest.mark.parametrize(
    ("name", "w", "v"),
    [("iris", 3.316, 2.575), ("wine", 7.008, 3.744), ("breast_cancer", 18.654, 6.108), ("digits", 31.113, 7.888)],
)
def test_v_must_be_so_large(name: str, w: float, v: float) -> None:
    x, _, asked, _ = split(name)
    assert widest(x) == pytest.approx(w, abs=5e-4)
    least = smallest_scale(x)
    assert least == pytest.approx(v, abs=5e-4)
    # No question that there is comes near half a turn; with the published 4 some go round where v must be larger.
    largest = {
        scale: np.ptp(Records(x, np.zeros(len(x), int), 1, scale, 1000).scores(asked), axis=1).max() / 2**32
        for scale in (least, 4.0)
    }
    assert largest[least] < 0.5
    assert (largest[4.0] > 0.5) == (v > 4)


def test_the_widest_difference_is_reached() -> None:
    chance = np.random.default_rng(1)
    x = chance.random((7, 3))
    corners = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], float)
    distances = ((corners[:, None] - x) ** 2).sum(axis=2)
    assert widest(x) == pytest.approx(np.ptp(distances, axis=1).max())


def test_rounding_differences_goes_round_in_circles() -> None:
    # Why rows are rounded and not their differences: too few or too many are among the nearest, and the vote fails.
    x, y, asked, truth = split("iris")
    v, tau, k, right, wrong_size = 4.0, 100, 1, 0, 0
    norms = (x**2).sum(axis=1) / v**2
    for q, known in zip(asked, truth, strict=True):
        c = np.round(tau * (x[None] - x[:, None]) / v)  # of i (row) and i', for column i' - i
        d = norms[:, None] - norms + 2 * c @ (q / (v * tau))
        nearer = np.triu(d < 0, 1)
        rank = (nearer + np.tril(~nearer.T, -1)).sum(axis=0)
        mask = rank < k
        wrong_size += mask.sum() != k
        votes = [(mask & (y == one)).sum() for one in range(3)]
        right += int(np.argmax(votes)) == known
    assert (round(right / len(truth), 4), wrong_size) == (0.4333, 23)
    by_rows, _ = simulate(Records(x, y, 3, v, tau), asked, k)
    assert (by_rows.classes == truth).mean() > 0.9


def test_the_worked_example(lasting: duckdb.DuckDBPyConnection) -> None:
    known = Records(np.array([[0.1], [0.2], [0.6], [0.9]]), np.array([0, 0, 1, 1]), 2, 4.0, 1000)
    assert known.whole.ravel().tolist() == [25, 50, 150, 225]
    assert (known.norms / 2**32).round(9).tolist() == [0.000625, 0.0025, 0.0225, 0.050625]
    assert known.encoded(np.array([[0.3]]))[0, 0] / 2**32 == pytest.approx(7.5e-5, abs=2**-32)
    scores = known.scores(np.array([[0.3]]))
    assert scores[0] / 2**32 == pytest.approx([-0.003125, -0.005, 0, 0.016875], abs=1e-6)
    assert (scores[0, 0] - scores[0, 1]) / 2**32 == pytest.approx((0.04 - 0.01) / 16, abs=1e-6)
    found, _ = simulate(known, np.array([[0.3]]), 3)
    assert (found.votes.tolist(), found.classes.tolist()) == ([[2, 1]], [0])
    store(lasting, "line", [[0.1, "A"], [0.2, "A"], [0.6, "B"], [0.9, "B"]], ["x", "kind"])
    row = lasting.execute(
        "SELECT predicted, plain, votes, v FROM sdc_he_knn_simulate('line', '(SELECT 0.3 AS x)', 'kind', v := 4, bounds := {'x': [0, 1]})"
    ).fetchall()[0]
    assert row == ("A", "A", 2, 4.0)


# --- other shapes ----------------------------------------------------------------------------------------------------


def store(con: duckdb.DuckDBPyConnection, name: str, rows: list[list[object]], columns: list[str]) -> None:
    table = pa.table({column: list(values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)})
    con.register("made", table)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made")
    con.unregister("made")


def test_of_equal_rows_the_first_is_nearer_and_of_equal_votes_the_first_class_wins() -> None:
    found = vote(np.array([[5, 5, 5, 5]]), np.array([1, 0, 1, 0]), 2, 1)
    assert (found.classes.tolist(), found.gap.tolist()) == ([1], [0])
    assert vote(np.array([[5, 5, 5, 5]]), np.array([1, 0, 1, 0]), 2, 2).classes.tolist() == [0]
    everything = vote(np.array([[3, 1]]), np.array([1, 0]), 2, 2)
    assert np.isinf(everything.gap).all()


def test_the_whole_numbers_are_exact_at_the_largest_sizes() -> None:
    chance = np.random.default_rng(3)
    x, q = chance.random((50, 300)), chance.random((4, 300))
    known = Records(x, np.zeros(50, int), 1, smallest_scale(x), 10_000)
    products = [[sum(int(a) * int(b) for a, b in zip(one, row, strict=True)) for row in known.whole]
                for one in known.encoded(q)]  # fmt: skip
    assert (known.scores(q) == known.norms - 2 * np.array(products)).all()


def test_questions_in_sql_are_answered_as_by_the_kernel(lasting: duckdb.DuckDBPyConnection) -> None:
    x, y = datasets.load_iris(return_X_y=True)
    names = ["a", "b", "c", "d", "kind", "i"]
    rows = [[*map(float, row), int(kind), i] for i, (row, kind) in enumerate(zip(x, y, strict=True))]
    store(lasting, "iris", rows, names)
    lasting.execute("CREATE OR REPLACE TABLE refs AS FROM sdc_prototypes('(FROM iris WHERE i % 5 > 0)', 'kind', n := 40, method := 'spaced', id := 'i')")  # fmt: skip
    assert [row[1] for row in lasting.execute("DESCRIBE refs").fetchall()] == [*["DOUBLE"] * 4, *["BIGINT"] * 3]
    ends = {name: [float(x[:, j].min()), float(x[:, j].max())] for j, name in enumerate("abcd")}
    for k, accuracy in ((1, 0.9667), (3, 0.9333)):
        found = lasting.execute(
            f"SELECT count(*), round(avg((predicted = kind)::INT), 4), avg((predicted = plain)::INT), min(gap) FROM sdc_he_knn_simulate('refs', '(FROM iris WHERE i % 5 = 0)', 'kind', ['a', 'b', 'c', 'd'], k := {k}, v := 4, bounds := {ends}, id := 'prototype')"
        ).fetchall()[0]
        assert found[:3] == (30, accuracy, 1.0)
        assert found[3] > 0
    # What lies outside counts as the end; a question that is there twice is answered twice.
    both = lasting.execute(
        "SELECT a::DOUBLE, predicted FROM sdc_he_knn_simulate('refs', '(SELECT unnest([99, 7.9, 7.9]) AS a, 3 AS b, 6.9 AS c, 2.5 AS d)', 'kind', k := 3)"
    ).fetchall()
    assert sorted(both) == [(7.9, 2), (7.9, 2), (99.0, 2)]


def test_what_rows_share_decides_nothing_and_no_question_is_answered_by_no_row(lasting: duckdb.DuckDBPyConnection) -> None:  # fmt: skip
    store(lasting, "flat", [[1.0, 2.0, True], [1.0, 3.0, False]], ["same", "x", "yes"])
    row = lasting.execute("SELECT predicted, gap IS NULL FROM sdc_he_knn_simulate('flat', '(SELECT 9 AS same, 2.9 AS x)', 'yes', k := 2)").fetchall()[0]  # fmt: skip
    assert row == (False, True)
    assert lasting.execute("SELECT count(*) FROM sdc_he_knn_simulate('flat', '(FROM flat WHERE x > 9)', 'yes', ['x'], k := 1)").fetchall() == [(0,)]  # fmt: skip
    assert lasting.execute("SELECT predicted FROM sdc_he_knn_simulate('(FROM flat WHERE yes)', 'flat', 'yes', ['same', 'x'], k := 1)").fetchall() == [(True,), (True,)]  # fmt: skip


# --- prototypes ------------------------------------------------------------------------------------------------------


def test_prototypes_choose_by_class_and_answer_as_well_as_all_records() -> None:
    x, y, asked, truth = split("digits")
    found = prototypes(x, y, 10, 60, 3, seed=0)
    assert len(found.centres) == 60
    assert set(found.classes) == set(range(10))
    assert found.records.sum() == len(x)
    assert found.records.min() >= 3
    assert (y[found.nearest] == found.classes).all()
    spaced = evenly_spaced(len(x), 60)
    accuracy = []
    for points, classes in ((found.centres, found.classes), (x[found.nearest], found.classes), (x[spaced], y[spaced])):
        records = Records(points, classes, 10, smallest_scale(points), 1000)
        accuracy.append((simulate(records, asked, 1)[0].classes == truth).mean())
    assert accuracy[0] > 0.95 > accuracy[2] + 0.05
    assert accuracy[1] > accuracy[2]
    again = prototypes(x, y, 10, 60, 3, seed=0)
    assert (again.centres == found.centres).all()


def test_clusters_are_means_of_enough_records() -> None:
    points = np.array([[0.0], [0.1], [0.2], [0.9], [1.0], [5.0]])
    centres, owner = clusters(points, 3, 2, np.random.default_rng(0))
    assert np.bincount(owner).min() >= 2
    for place, centre in enumerate(centres):
        assert centre == pytest.approx(points[owner == place].mean(axis=0))
    # Copies of one record make one cluster.
    assert len(clusters(np.zeros((5, 2)), 3, 1, np.random.default_rng(0))[0]) == 1


def test_shares_of_classes() -> None:
    assert shares(np.array([100, 50, 1]), 10, 1).tolist() == [6, 3, 1]
    assert shares(np.array([4, 4]), 100, 2).tolist() == [2, 2]


def test_prototypes_in_sql(lasting: duckdb.DuckDBPyConnection) -> None:
    store(lasting, "few", [[float(i), i % 3 // 2, f"p{i}"] for i in range(12)], ["x", "kind", "name"])
    means = lasting.execute("FROM sdc_prototypes('few', 'kind', ['x'], n := 2)").fetchall()
    assert means == [(5.0, 0, 1, 8), (6.5, 1, 2, 4)]
    records = lasting.execute("SELECT x, kind FROM sdc_prototypes('few', 'kind', ['x'], n := 4, method := 'records', min_records := 1) ORDER BY x").fetchall()  # fmt: skip
    assert set(records) <= set(lasting.execute("SELECT x, kind FROM few").fetchall())
    spaced = lasting.execute("SELECT x, records FROM sdc_prototypes('few', 'kind', id := 'name', columns := ['x'], n := 3, method := 'spaced')").fetchall()  # fmt: skip
    assert [x for x, _ in spaced] == [0.0, 4.0, 9.0]  # p0, p1, p10, p11, p2, p3, p4, .., p9
    assert {records for _, records in spaced} == {None}
    # Numbers outside of public bounds are the end.
    ends = lasting.execute("SELECT x FROM sdc_prototypes('few', 'kind', ['x'], n := 2, bounds := {'x': [0, 4]})").fetchall()  # fmt: skip
    assert ends == [((0 + 1 + 3 + 4 * 5) / 8,), ((2 + 4 + 4 + 4) / 4,)]


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_prototypes('bad', 'kind', ['gap'])", "column 'gap' holds NULL, NaN or an infinite number"),
        ("sdc_prototypes('bad', 'kind', ['nan'])", "column 'nan' holds NULL, NaN"),
        ("sdc_prototypes('bad', 'none', ['x'])", "column 'none' holds NULL"),
        ("sdc_prototypes('bad', 'kind', ['word'])", "must name a column of numbers"),
        ("sdc_prototypes('bad', 'kind', ['x', 'x'])", "names column 'x' twice"),
        ("sdc_prototypes('bad', 'kind', ['y'])", "unknown column 'y'"),
        ("sdc_prototypes('bad', 'x', ['x'])", "cannot say how near"),
        ("sdc_prototypes('bad', NULL, ['x'])", "argument 'label' must name a column"),
        ("sdc_prototypes('bad', 'kind', ['x'], n := 0)", "argument 'n' must be a whole number from 1"),
        ("sdc_prototypes('bad', 'kind', ['x'], n := 1, min_records := 1)", "more classes than 1"),
        ("sdc_prototypes('bad', 'kind', ['x'], n := 3)", "a class has fewer than 3 records"),
        ("sdc_prototypes('bad', 'kind', ['x'], n := 5, method := 'spaced')", "fewer records than 5"),
        ("sdc_prototypes('bad', 'kind', ['x'], method := 'mean')", "did you mean 'means'"),
        ("sdc_prototypes('bad', 'kind', ['x'], bounds := {'x': [1, 0]})", "smaller number first"),
        ("sdc_prototypes('bad', 'kind', ['x'], bounds := {'z': [0, 1]})", "unknown column 'z'"),
        ("sdc_prototypes('(FROM bad WHERE x > 99)', 'kind', ['x'])", "there are no records"),
        ("sdc_prototypes('(SELECT x AS records, kind FROM bad)', 'kind')", "is also one of the result"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], k := 0)", "argument 'k' must be a whole number from 1"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], k := 5)", "fewer than k = 5 reference rows"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], v := 0.1)", "argument 'v' must be at least 1.415"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], v := 'nan'::DOUBLE)", "argument 'v' must be a number above 0"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], tau := 0)", "argument 'tau'"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], tau := 1000000)", "argument 'tau'"),
        ("sdc_he_knn_simulate('bad', '(SELECT NULL::INT AS x)', 'kind', ['x'])", "leave such questions out"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS z)', 'kind', ['x'])", "unknown column 'x'"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS z)', 'kind')", "argument 'columns' must name"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x, 2 AS v)', 'kind', ['x'])", "is also one of the result"),
        ("sdc_he_knn_simulate('bad', '(SELECT 1 AS x)', 'kind', ['x'], bounds := {'x': [0, NULL]})", "hold two numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_said_at_once(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE bad AS SELECT i AS x, CASE WHEN i > 1 THEN 'a' ELSE 'b' END AS kind, nullif(i, 1) AS gap, "
        "CASE WHEN i = 1 THEN 'nan'::DOUBLE ELSE 1 END AS nan, 'w' AS word, CASE WHEN i > 1 THEN 1 END AS none FROM range(4) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert message in str(raised.value)
