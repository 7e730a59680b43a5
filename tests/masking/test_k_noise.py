"""k-noise and k-PRAM: the numbers of Biswal, Arbuckle and Kulik, the theorem, and what may not change with the others."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcduck
from sdcduck.methods.masking.local_groups import (
    expected_within,
    intervals_of,
    kolmogorov,
    most_intervals,
    records_within,
)

AGES = "(SELECT unnest([24, 26, 27, 30, 31, 33, 38, 41]) AS age)"
numbers = st.lists(st.integers(-50, 50), min_size=1, max_size=30)


def test_the_smallest_delta(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(f"FROM sdc_k_noise_delta('{AGES}', 'AGE', k := 3)").fetchall()
    assert found == [(4.0, "highest", 8, 1.5, 2.5, 4.0)]
    assert con.execute(f"FROM sdc_k_noise_delta('{AGES}', 'age', k := 8)").fetchall() == [
        (8.5, "highest", 8, 8.5, None, 8.5)
    ]


def test_how_many_are_expected_around_a_number(con: duckdb.DuckDBPyConnection) -> None:
    around = (
        "SELECT age, n_within, expected_within FROM sdc_local_k('{}', '{}', {}) WHERE age IN (24, 33, 41) ORDER BY age"
    )
    assert con.execute(around.format(AGES, AGES, 4)).fetchall() == [(24, 5, 4.75), (33, 6, 6.125), (41, 2, 2.875)]
    assert con.execute(around.format(AGES, AGES, 4.01)).fetchall()[2][1] == 3
    single = [
        con.execute(around.format(f"(SELECT {age} AS age)", "(SELECT 24 AS age)", 4)).fetchall()[0][2]
        for age in (24, 26, 27, 30, 31, 33, 38, 41)
    ]  # fmt: skip
    assert single == [1, 1, 1, 0.75, 0.625, 0.375, 0, 0]


@given(numbers, st.integers(1, 10))
def test_the_theorem(values: list[int], k: int) -> None:
    """With delta above the smallest one, each point has k originals, and more than half of those around it are expected."""
    ordered = np.sort(np.array(values, float))
    n = len(ordered)
    k = min(k, n)
    terms = [ordered[k - 1] - ordered[0], ordered[-1] - ordered[n - k]]
    terms = [term / 2 for term in terms] + [float(way) / 4 for way in ordered[k:] - ordered[:-k]]
    delta = max(terms) + 0.001
    at = np.linspace(ordered[0], ordered[-1], 997)
    around = records_within(ordered, at, 2 * delta, closed=False)
    assert around.min() >= k
    assert (expected_within(ordered, at, delta) > around / 2).all()
    below = max(terms) * 0.999
    if below > 0:
        fewer = records_within(ordered, np.linspace(ordered[0], ordered[-1], 99_991), 2 * below, closed=False)
        assert fewer.min() < k


def test_delta_of_sql_is_that_of_the_definition(lasting: duckdb.DuckDBPyConnection) -> None:
    chance = np.random.default_rng(4)
    for n, k in ((5, 1), (9, 3), (40, 7)):
        values = np.sort(chance.integers(0, 1000, n)).tolist()
        delta = lasting.execute(
            f"SELECT delta_min FROM sdc_k_noise_delta('(SELECT unnest({values}) AS x)', 'x', k := {k})"
        ).fetchall()[0][0]
        at = np.linspace(values[0], values[-1], 200_001)
        for reach, enough in ((delta * 1.0001 + 1e-9, True), (delta * 0.999, False)):
            assert (records_within(np.array(values, float), at, 2 * reach, closed=False).min() >= k) == enough


def test_counts_are_those_that_are_expected(con: duckdb.DuckDBPyConnection) -> None:
    """Four standard errors; the variance of a count is at most n / 4."""
    delta, releases = 4.01, 2000
    con.execute(f"CREATE TABLE p AS SELECT age, age AS id FROM {AGES}")
    counts = con.execute(
        f"""SELECT c.age, count(*) FILTER (abs(sdc_k_noise(p.age, {delta}, p.id, seed := s) - c.age) <= {2 * delta}) / {releases}
        FROM p, range({releases}) r(s), p c GROUP BY c.age ORDER BY c.age"""
    ).fetchall()
    ages = np.array([24.0, 26, 27, 30, 31, 33, 38, 41])
    expected = expected_within(ages, ages, delta)
    assert [row[0] for row in counts] == ages.tolist()
    assert np.abs(np.array([row[1] for row in counts]) - expected).max() < 4 * math.sqrt(len(ages) / 4 / releases)


def _utility(con: duckdb.DuckDBPyConnection, masked: str) -> tuple[float, ...]:
    row = con.execute(f"SELECT u.* FROM (SELECT sdc_mask_utility(x, y) AS u FROM ({masked}))").fetchone()
    assert row is not None
    return row


def _ages(rows: int) -> str:
    """Whole ages 0 to 54, equally many, and one of 55: eleven intervals of five years."""
    return f"(SELECT i AS id, CASE WHEN i = 0 THEN 55 ELSE i % 55 END AS x FROM range({rows}) r(i))"


def test_the_errors_of_659_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE p AS FROM {_ages(659)}")
    noise = _utility(con, "SELECT x, sdc_k_noise(x, 2.5, id, seed := 3) AS y FROM p")
    con.execute("CREATE TABLE m AS FROM sdc_k_pram('p', 'x', m := 11, id := 'id', seed := 3)")
    pram = _utility(con, "SELECT p.x, m.x AS y FROM p JOIN m USING (id)")
    assert noise[0] == pram[0] == 659
    assert abs(noise[1]) < 0.17
    # Whole ages begin their intervals: 24, .., 28 become 26.5 in the mean, and the published 4.33 has this half year in it.
    middle = con.execute("SELECT avg((interval_lo + interval_hi) / 2 - p.x) FROM p JOIN m USING (id)").fetchall()[0][0]
    assert middle == pytest.approx(0.5, abs=0.01)
    assert abs(pram[1] - middle) < 0.25
    assert noise[2] == pytest.approx(2.083, abs=0.22)
    assert pram[2] == pytest.approx(4.33, abs=0.58)
    assert 1.7 < pram[2] / noise[2] < 2.5
    for found in (noise, pram):
        assert found[3] == pytest.approx(math.sqrt(found[2]))


def test_the_errors_of_a_million_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE p AS FROM {_ages(1_000_000)}")
    noise = _utility(con, "SELECT x, sdc_k_noise(x, 2.5, id, seed := 3) AS y FROM p")
    assert noise[2] == pytest.approx(2.5**2 / 3, rel=0.005)
    assert abs(noise[1]) < 4 * math.sqrt(2.0833 / 1e6)
    for method, expected in (("uniform", 13 / 3), ("swap", 4.0)):
        con.execute(
            f"CREATE OR REPLACE TABLE m AS FROM sdc_k_pram('p', 'x', m := 11, method := '{method}', id := 'id', seed := 3)"
        )
        found = _utility(con, "SELECT p.x, m.x AS y FROM p JOIN m USING (id)")
        assert found[2] == pytest.approx(expected, rel=0.005)
        odd = "round(interval_hi - interval_lo, 9) <> 5 OR x < interval_lo OR x > interval_hi"
        assert con.execute(f"SELECT count(*), count(DISTINCT interval_lo) FROM m WHERE {odd}").fetchall() == [(0, 0)]
        assert (found[4] == 0) == (method == "swap")


def _most_by_definition(values: list[int], k: int) -> int:
    ordered = np.sort(np.array(values, float))
    span = float(ordered[-1] - ordered[0])
    if span == 0:
        return 1
    for m in range(len(ordered) // k, 0, -1):
        if np.bincount(intervals_of(ordered, ordered[0], span, m), minlength=m).min() >= k:
            return m
    raise AssertionError


@given(numbers, st.integers(1, 6))
def test_there_are_as_many_intervals_as_can_be(values: list[int], k: int) -> None:
    k = min(k, len(values))
    assert most_intervals(np.sort(np.array(values, float)), k) == _most_by_definition(values, k)


def test_intervals_keep_their_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * i * 37) % 1009 AS x, 'n' || i AS name FROM range(500) r(i)")
    for method in ("uniform", "swap"):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_k_pram('p', 'x', k := 9, method := '{method}', id := 'id')")
        borders = "(SELECT DISTINCT interval_lo AS lo, interval_hi AS hi, interval_size AS n FROM m)"
        for table in ("p", "m"):
            counts = con.execute(
                f"SELECT n, count(*) FILTER (x >= lo AND (x < hi OR (x = hi AND hi = (SELECT max(interval_hi) FROM m)))) "
                f"FROM {borders} b, {table} GROUP BY lo, n"
            ).fetchall()
            assert sum(row[0] for row in counts) == 500
            assert all(before == after >= 9 for before, after in counts)
        assert con.execute("SELECT count(*) FROM m JOIN p USING (id, name)").fetchall() == [(500,)]
        assert con.execute("SELECT count(*) > 450 FROM m JOIN p USING (id) WHERE m.x <> p.x").fetchall() == [(True,)]
    assert con.execute("SELECT (SELECT list_sort(list(x::INT)) FROM m) = (SELECT list_sort(list(x::INT)) FROM p)").fetchall() == [(True,)]  # fmt: skip


def test_noise_belongs_to_a_record(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * i % 31 AS x, i % 7 AS y FROM range(60) r(i)")
    con.execute("CREATE TABLE fewer AS SELECT * FROM p WHERE id % 3 > 0 ORDER BY hash(id)")
    for known in (", id := 'id'", ""):
        call = "SELECT id, x FROM sdc_k_noise_records('{}', {}" + known + ", seed := 5) WHERE id % 3 > 0 ORDER BY id"
        whole = con.execute(call.format("p", "{'x': 2}")).fetchall()
        assert con.execute(call.format("fewer", "{'x': 2}")).fetchall() == whole
        assert con.execute(call.format("p", "{'y': 1, 'X': 2}")).fetchall() == whole
        assert con.execute(call.format("p", "{'x': 2}").replace(":= 5", ":= 6")).fetchall() != whole
    scalar = "SELECT id, sdc_k_noise(x, 2, id) FROM {} WHERE id % 3 > 0 ORDER BY id"
    assert con.execute(scalar.format("p")).fetchall() == con.execute(scalar.format("fewer")).fetchall()
    noise = con.execute(
        "SELECT corr(m.x - p.x, m.y - p.y) FROM p JOIN sdc_k_noise_records('p', {'x': 1, 'y': 1}, id := 'id') m USING (id)"
    )
    assert abs(noise.fetchall()[0][0]) < 4 / math.sqrt(60)  # columns have noise of their own
    assert con.execute(
        "SELECT x, count(DISTINCT y) FROM sdc_k_noise_records('(SELECT 1 AS x, 2 AS y FROM range(4))', {'y': 1}) GROUP BY x"
    ).fetchall() == [(1, 4)]  # equal records are told apart by their number


def test_the_secret_is_part_of_the_noise() -> None:
    found = []
    for secret in ("a long secret of the custodian", "another long secret", None, None):
        with sdcduck.connect(secret=secret) as con:
            found.append(con.execute("SELECT sdc_k_noise(10, 1, 'p1'), x FROM sdc_k_noise_records('(SELECT 10 AS x)', {'x': 1})").fetchall())  # fmt: skip
    assert found[2] == found[3]
    assert len({row[place] for (row,) in found for place in (0, 1)}) == 6
    # What has been released once must not move: neither with versions of DuckDB nor of sdcduck.
    assert found[2][0] == (10.593833834604926, 9.140460387964325)


def test_rounded_and_bounded(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(
        "SELECT sdc_k_noise(i % 10, 3, i, low := 0, high := 9, round_to := 0.5) AS y FROM range(500) r(i)"
    ).fetchall()
    values = np.array([row[0] for row in rows])
    assert (values.min(), values.max()) == (0, 9)
    assert (values * 2 == np.rint(values * 2)).all()
    assert con.execute("SELECT sdc_k_noise(NULL, 1, 1), sdc_k_noise(7, 0, 1)").fetchall() == [(None, 7.0)]


def test_records_without_a_number(con: duckdb.DuckDBPyConnection) -> None:
    con.execute('CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 5 THEN i END AS "The x" FROM range(50) r(i)')
    for call in ("sdc_k_noise_records('p', {'the X': 1}, id := 'id', nulls := 'keep')", "sdc_k_pram('p', 'the X', k := 3, nulls := 'keep')"):  # fmt: skip
        found = con.execute(f'SELECT count(*), count("The x"), count(*) FILTER ("The x" IS NULL AND id % 5 = 0) FROM {call}')  # fmt: skip
        assert found.fetchall() == [(50, 40, 10)]
    assert con.execute("SELECT n FROM sdc_k_noise_delta('p', 'the x')").fetchall() == [(40,)]
    assert con.execute("SELECT u.n, u.bias FROM (SELECT sdc_mask_utility(\"The x\", id + 1) AS u FROM p)").fetchall() == [(40, 1.0)]  # fmt: skip
    assert con.execute("SELECT u.n, u.mse, u.ks FROM (SELECT sdc_mask_utility(id, id) AS u FROM p WHERE id < 0)").fetchall() == [(0, None, None)]  # fmt: skip


def test_what_is_alike_or_not_there(con: duckdb.DuckDBPyConnection) -> None:
    same = "(SELECT 5 AS x FROM range(6))"
    assert con.execute(f"SELECT DISTINCT x, interval_lo, interval_hi, interval_size FROM sdc_k_pram('{same}', 'x', k := 3)").fetchall() == [(5.0, 5.0, 5.0, 6)]  # fmt: skip
    assert con.execute(f"SELECT delta_min FROM sdc_k_noise_delta('{same}', 'x', k := 3)").fetchall() == [(0.0,)]
    nobody = "(SELECT 5 AS x WHERE false)"
    for call in (f"sdc_k_noise_records('{nobody}', {{'x': 1}})", f"sdc_k_pram('{nobody}', 'x', k := 3)", f"sdc_local_k('{same}', '{nobody}', 1)"):  # fmt: skip
        assert con.execute(f"FROM {call}").fetchall() == []
    assert con.execute(f"SELECT DISTINCT n_within, expected_within, masked_within FROM sdc_local_k('{nobody}', '{same}', 1)").fetchall() == [(0, 0.0, 6)]  # fmt: skip
    assert con.execute("SELECT x FROM sdc_k_noise_records('(SELECT 1.5::DECIMAL(9,2) AS x)', {'x': 1})").fetchall()[0][0] != 1.5  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_k_noise_records('p')", "argument 'delta' must say how far each column may move"),
        ("sdc_k_noise_records('p', {'y': 1})", "unknown column 'y' in 'p'"),
        ("sdc_k_noise_records('p', {'x': 0})", "argument 'delta' must be a number above 0: that of 'x'"),
        ("sdc_k_noise_records('p', {'x': 'a'})", "argument 'delta' must be a number above 0: that of 'x'"),
        ("sdc_k_noise_records('p', {'day': 1})", "'day' of 'p' is DATE"),
        ("sdc_k_noise_records('p', {'yes': 1})", "'yes' of 'p' is BOOLEAN"),
        ("sdc_k_noise_records('p', {'x': 1}, id := 'x')", "column 'x' is one of those that are changed"),
        ("sdc_k_noise_records('p', {'x': 1}, id := 'yes')", "column 'yes' is the same in several records"),
        ("sdc_k_noise_records('p', {'x': 1}, seed := 1.5)", "argument 'seed' must be a whole number"),
        ("sdc_k_noise_records('p', {'x': 1}, seed := NULL)", "argument 'seed' must be a whole number"),
        ("sdc_k_noise_records('p', {'gap': 1})", "1 of 5 records have NULL in a column that is to be changed"),
        ("sdc_k_noise_records('p', {'odd': 1})", "a record has NaN or an infinite number"),
        ("sdc_k_noise_records('p', {'huge': 1})", "column 'huge' has whole numbers beyond 2^53"),
        ("sdc_k_noise_records('p', {'x': 1}, nulls := 'apart')", "argument 'nulls' must be 'refuse' or 'keep'"),
        ("sdc_k_noise_records('(SELECT 1 AS x, 2 AS _sdc_y)', {'x': 1})", "a column may not begin with _sdc_"),
        ("sdc_k_noise_delta('p', 'x', k := 6)", "there are 5 records with a value, fewer than k := 6"),
        ("sdc_k_noise_delta('p', 'x', k := 0)", "argument 'k' must be a whole number of at least 1"),
        ("sdc_k_noise_delta('p')", "argument 'x' must name a column of 'p'"),
        ("sdc_k_noise_delta('p', 'odd')", "a record has NaN or an infinite number"),
        ("sdc_k_pram('p', 'x')", "argument 'k' must say how many records an interval has"),
        ("sdc_k_pram('p', 'x', k := 6)", "there are 5 records with a value, fewer than k := 6"),
        ("sdc_k_pram('p', 'x', k := 2, m := 3)", "intervals have fewer than k := 2 records"),
        ("sdc_k_pram('p', 'x', m := 0)", "argument 'm' must be a whole number from 1"),
        ("sdc_k_pram('p', 'x', k := 2, method := 'swp')", "argument 'method' must be 'uniform' or 'swap'; did you mean 'swap'?"),
        ("sdc_k_pram('p', 'odd', k := 2)", "a record has NaN or an infinite number"),
        ("sdc_k_pram('p', 'wide', k := 2)", "their range is no number"),
        ("sdc_k_pram('(SELECT 1 AS x, 2 AS interval_lo)', 'x', k := 1)", "is also one of the result"),
        ("sdc_local_k('p', 'p', 1)", "argument 'x' must name a column of numbers of 'p', which has"),
        ("sdc_local_k('p', 'p', 0, 'x')", "argument 'delta' must be a number above 0"),
        ("sdc_local_k('p', 'p', 1, 'x', 'odd')", "a record has NaN or an infinite number"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT i AS x, DATE '2020-01-01' + i::INT AS day, true AS yes, nullif(i, 3) AS gap, "
        "CASE WHEN i = 2 THEN 'nan'::DOUBLE ELSE i END AS odd, i + 9007199254740992 AS huge, "
        "CASE WHEN i = 2 THEN 1.7e308 ELSE -1.7e308 END AS wide FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("1, -1, 1", "argument 'delta' must be a number of at least 0"),
        ("1, NULL, 1", "argument 'delta' must be a number of at least 0"),
        ("1, 1, NULL", "argument 'id' is NULL"),
        ("'nan'::DOUBLE, 1, 1", "argument 'x' is NaN or infinite"),
        ("1, 1, 1, seed := 1.5", "argument 'seed' must be a whole number"),
        ("1, 1, 1, low := 2, high := 1", "argument 'low' must not be above 'high'"),
        ("1, 1, 1, round_to := 0", "argument 'round_to' must be a number above 0"),
    ],
)
def test_bad_input_of_the_scalar(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"SELECT sdc_k_noise({call})").fetchall()
    assert message in str(raised.value)


def test_the_distance_of_two_samples() -> None:
    assert kolmogorov(np.array([1.0, 1, 2]), np.array([1.0, 2, 2])) == pytest.approx(1 / 3)
    assert math.isnan(kolmogorov(np.array([]), np.array([1.0])))
