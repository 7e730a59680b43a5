"""``sdc_microaggregate`` of categories and dates: Gower's distance, means and the most frequent category."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.masking.choice import Grouping
from sdcduck.methods.masking.mixed import loss, mixed_mdav, mixed_v_mdav, over_range, representatives

CATEGORY = np.array([False, True, True, False])


def random_points(seed: int, size: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    numbers, codes = chance.integers(0, 8, (size, 2)), chance.integers(0, 3, (size, 2))
    return over_range(np.column_stack([numbers[:, 0], codes, numbers[:, 1]]).astype(float), CATEGORY)


def gower(one: np.ndarray, other: np.ndarray) -> float:
    apart = 0.0
    for column, category in enumerate(CATEGORY):
        step = abs(one[column] - other[column])
        apart += float(step > 0) if category else step
    return apart


def middle(points: np.ndarray, rows: list[int]) -> np.ndarray:
    found = np.zeros(4)
    for column, category in enumerate(CATEGORY):
        values = [points[row, column] for row in rows]
        found[column] = (
            min(values, key=lambda one: (-values.count(one), one)) if category else sum(values) / len(values)
        )
    return found


def take(points: np.ndarray, left: list[int], one: int, k: int) -> list[int]:
    others = sorted((row for row in left if row != one), key=lambda row: (gower(points[row], points[one]), row))
    return [one, *others[: k - 1]]


def farthest(points: np.ndarray, left: list[int], center: np.ndarray) -> int:
    return max(left, key=lambda row: (gower(points[row], center), -row))


def plain_mdav(points: np.ndarray, k: int) -> list[list[int]]:
    """The steps of spec 01, 2.3, one after the other."""
    left, groups = list(range(len(points))), []
    while len(left) >= 2 * k:
        ends, several = [farthest(points, left, middle(points, left))], len(left) >= 3 * k
        groups.append(take(points, left, ends[0], k))
        left = [row for row in left if row not in groups[-1]]
        if several:
            groups.append(take(points, left, farthest(points, left, points[ends[0]]), k))
            left = [row for row in left if row not in groups[-1]]
    return [*groups, left] if left else groups


def plain_v_mdav(points: np.ndarray, k: int, gamma: float) -> list[list[int]]:
    """The steps of spec 01, 2.4."""
    left, groups = list(range(len(points))), []
    center = middle(points, left)
    while len(left) >= k:
        group = take(points, left, farthest(points, left, center), k)
        left = [row for row in left if row not in group]
        while gamma > 0 and len(group) < 2 * k - 1 and len(left) > 1:
            near = {row: min(gower(points[row], points[member]) for member in group) for row in left}
            joins = min(left, key=lambda row: (near[row], row))
            if near[joins] >= gamma * min(gower(points[joins], points[row]) for row in left if row != joins):
                break
            group.append(joins)
            left.remove(joins)
        groups.append(group)
    centers = [middle(points, group) for group in groups]
    for row in left:
        groups[min(range(len(centers)), key=lambda place: gower(points[row], centers[place]))].append(row)
    return groups


def as_sets(groups: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)}


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), size=st.integers(6, 40), k=st.integers(2, 4))
def test_the_groups_are_those_of_the_steps(seed: int, size: int, k: int) -> None:
    points = random_points(seed, max(size, 2 * k))
    assert as_sets(mixed_mdav(points, CATEGORY, k)) == {frozenset(one) for one in plain_mdav(points, k)}
    for gamma in (0.0, 0.5, 1.1):
        found = mixed_v_mdav(points, CATEGORY, k, gamma)
        assert as_sets(found) == {frozenset(one) for one in plain_v_mdav(points, k, gamma)}
        sizes = np.bincount(found)
        assert sizes.min() >= k


def test_what_stands_for_a_group() -> None:
    """The mean of numbers, the most frequent category, and of equally frequent ones the smallest."""
    values = np.array([[1.0, 2, 0, 0], [3, 2, 1, 0], [5, 0, 1, 0], [9, 1, 2, 4], [11, 0, 0, 6]])
    made = representatives(values, CATEGORY, np.array([0, 0, 0, 1, 1]))
    assert made[0].tolist() == [3, 2, 1, 0]
    assert made[4].tolist() == [10, 0, 0, 5]
    assert loss(values, CATEGORY, np.array([0, 0, 0, 1, 1])) == 2 + 0 + 2 + 1 + 1 + 2 + 1 + 1 + 1 + 1


def test_without_gamma_the_best_is_taken() -> None:
    points = random_points(7, 60)
    free = Grouping("vmdav", 3).mixed(points, CATEGORY)
    others = [Grouping("vmdav", 3, gamma).mixed(points, CATEGORY) for gamma in (0.0, 0.2, 0.6, 1.0)]
    assert loss(points, CATEGORY, free) <= min(loss(points, CATEGORY, one) for one in others)


PEOPLE = """CREATE TABLE p AS SELECT i AS id, i * 37 % 61 AS "Age", ['n', 'O''x', 'é'][i * i % 3 + 1] AS region, i % 5 = 0 AS ill,
    (['hi', 'lo', 'mid'][i * 7 % 3 + 1])::ENUM('lo', 'mid', 'hi') AS level, DATE '2020-01-01' + (i * 31 % 97)::INTEGER AS born,
    TIMESTAMP '2020-01-01 12:00:00' + INTERVAL 1 HOUR * (i * 11 % 83) AS seen, i * 13 % 17 AS pay FROM range(120) r(i)"""
NAMES = "['age', 'region', 'ill', 'level', 'born', 'seen']"


@pytest.mark.parametrize("method", ["mdav", "vmdav"])
def test_records_share_all_that_is_masked(con: duckdb.DuckDBPyConnection, method: str) -> None:
    con.execute(PEOPLE)
    con.execute(f"CREATE TABLE m AS FROM sdc_microaggregate('p', {NAMES}, k := 4, method := '{method}', id := 'id')")
    kinds = [row[1] for row in con.execute("DESCRIBE m").fetchall()]
    assert kinds[:3] == ["BIGINT", "DOUBLE", "VARCHAR"]
    assert kinds[3:7] == ["BOOLEAN", "ENUM('lo', 'mid', 'hi')", "DATE", "TIMESTAMP"]
    before, after = (
        con.execute(f"SELECT k FROM sdc_k_anonymity('{name}', {NAMES})").fetchall()[0][0] for name in ("p", "m")
    )
    assert before == 1
    assert after >= 4
    wrong = con.execute(
        """SELECT count(*) FROM (SELECT group_id, any_value(m) AS one, count(*) AS n, any_value(group_size) AS size, avg(p."Age") AS age,
            list(p.region) AS regions, list(p.level) AS levels, round(avg(p.born - DATE '2020-01-01')) AS born
            FROM m JOIN p USING (id) GROUP BY group_id)
        WHERE n <> size OR n < 4 OR abs(one."Age" - age) > 1e-9 OR abs((one.born - DATE '2020-01-01') - born) > 1
            OR list_count(list_filter(regions, lambda x: x = one.region))
                < list_max([list_count(list_filter(regions, lambda x: x = y)) for y in regions])
            OR list_count(list_filter(levels, lambda x: x = one.level))
                < list_max([list_count(list_filter(levels, lambda x: x = y)) for y in levels])"""
    ).fetchall()  # fmt: skip
    assert wrong == [(0,)]
    con.execute("CREATE TABLE q AS FROM p ORDER BY id * 7 % 121; SET threads = 1")
    again = con.execute(f"FROM sdc_microaggregate('q', {NAMES}, k := 4, method := '{method}', id := 'id') ORDER BY id")
    assert again.fetchall() == con.execute("FROM m ORDER BY id").fetchall()


def test_small_groups_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    """Two groups far apart; of equally frequent labels the smallest, and of an ENUM the first."""
    con.execute(
        """CREATE TABLE p AS SELECT id, x, c, e::ENUM('z', 'a') AS e, b, d::DATE AS d FROM (VALUES (1, 0, 'u', 'a', true, '2020-01-01'),
        (2, 2, 't', 'z', false, '2020-01-04'), (3, 100, 'w', 'a', true, '2021-01-01'), (4, 102, 'w', 'a', true, '2021-01-01')) t(id, x, c, e, b, d)"""
    )
    rows = con.execute(
        "SELECT DISTINCT x, c, e, b, d FROM sdc_microaggregate('p', ['x', 'c', 'e', 'b', 'd'], k := 2) ORDER BY x"
    ).fetchall()
    assert rows == [
        (1.0, "t", "z", False, datetime.date(2020, 1, 3)), (101.0, "w", "a", True, datetime.date(2021, 1, 1)),
    ]  # fmt: skip


def test_dates_with_every_method_of_numbers(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    for method in ("swap", "pca", "onedims"):
        rows = con.execute(
            f"SELECT min(n), count(*) FROM (SELECT born, count(*) AS n FROM sdc_microaggregate('p', ['born', 'seen'], k := 5, method := '{method}') GROUP BY born)"
        ).fetchall()
        assert rows[0][0] >= 5
    best = con.execute(
        "SELECT DISTINCT seen FROM sdc_microaggregate('p', ['seen'], k := 120, method := 'optimal')"
    ).fetchall()
    mean = con.execute("SELECT make_timestamp(round(avg(epoch_us(seen)))::BIGINT) FROM p").fetchall()
    assert best == mean


def test_missing_categories(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 > 0 THEN 'c' || i % 3 END AS c, i AS x, CASE WHEN i > 3 THEN DATE '2020-01-01' + i::INTEGER END AS d FROM range(20) r(i)"
    )
    with pytest.raises(duckdb.Error, match="5 of 20 records have NULL in a column"):
        con.execute("FROM sdc_microaggregate('p', ['c', 'x'])").fetchall()
    kept = con.execute(
        "SELECT id, c, x, group_id FROM sdc_microaggregate('p', ['c', 'x'], nulls := 'keep') WHERE id % 4 = 0 ORDER BY id"
    ).fetchall()
    assert kept == [(i, None, float(i), None) for i in range(0, 20, 4)]
    apart = con.execute(
        "SELECT count(*), count(DISTINCT group_id), count(c) FROM sdc_microaggregate('p', ['c', 'x'], k := 5, nulls := 'apart') GROUP BY id % 4 = 0 ORDER BY ALL"
    ).fetchall()
    assert apart == [(5, 1, 0), (15, 3, 15)]
    dates = con.execute(
        "SELECT count(*), count(d) FROM sdc_microaggregate('p', ['c', 'd'], k := 2, nulls := 'keep')"
    ).fetchall()
    assert dates == [(20, 16)]


def test_lists_of_categories_and_of_numbers(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    rows = con.execute(
        "SELECT id, pay, group_id_2 FROM sdc_microaggregate('p', [['region', 'ill'], ['age', 'pay']], id := 'id') ORDER BY id"
    ).fetchall()
    alone = con.execute(
        "SELECT id, pay, group_id FROM sdc_microaggregate('p', ['age', 'pay'], id := 'id') ORDER BY id"
    ).fetchall()
    assert rows == alone


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("['c'], method := 'onedims'", "method := 'onedims' takes columns of numbers, and 'c' is VARCHAR: categories are for method := 'mdav' or 'vmdav'"),
        ("['e'], method := 'decompose'", "'e' is ENUM"),
        ("['t']", "argument 'columns' must name a column of numbers: 't' of 'p' is TIME"),
        ("['never', 'c']", "a record has NaN or an infinite number"),
        ("['c'], k := 9", "there are 8 records, fewer than k := 9"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT 'c' || i AS c, 'a'::ENUM('a') AS e, TIME '10:00:00' AS t, 'infinity'::DATE AS never FROM range(8) r(i)"
    )
    with pytest.raises(duckdb.Error) as problem:
        lasting.execute(f"FROM sdc_microaggregate('p', {call})").fetchall()
    assert message in str(problem.value)
