"""Public rows that a record meets several of, each in a group of its own; and ASOF JOIN, which finds the nearest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from visits_database import answer

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.relations import Unique

STEPS = "(VALUES (30, 'a'), (50, 'b'), (70, 'c')) t(x, y)"
TWICE = "(VALUES (30, 'a'), (50, 'a'), (50, 'b')) t(x, y)"
WEEKS = "(SELECT x::DATE AS d, x::DATE - 27 AS f FROM generate_series(DATE '2024-02-01', DATE '2024-04-01', INTERVAL 7 DAY) s(x)) w"
RATES = "(VALUES (DATE '2024-01-09', 1.5), (DATE '2024-05-01', 2.5), (DATE '2025-01-01', 4)) r(since, rate)"

NESTED = """WITH stage AS (
    SELECT part, region, CASE WHEN part = 0 THEN count(1) END AS n, CASE WHEN part = 1 THEN age // 30 END AS ages, CASE WHEN part = 1 THEN count(1) END AS n_1
    FROM patients AS base CROSS JOIN (SELECT unnest(generate_series(0, 1, 1)) AS part) AS part GROUP BY 1, 2, 4)
SELECT region, max(CASE WHEN part = 0 THEN n END) AS n,
    coalesce(list({'ages': ages, 'n': n_1} ORDER BY n_1 DESC NULLS LAST, ages) FILTER (WHERE part = 1), []) AS by_age
FROM stage GROUP BY 1 ORDER BY 1"""  # as Malloy writes a nested query

EQUAL = [
    f"SELECT x, count(*), sum(income), avg(income) FROM patients JOIN {STEPS} ON age < x GROUP BY x",
    f"SELECT x, y, count(*), count(DISTINCT id) FROM patients, {STEPS} WHERE age < x GROUP BY x, y ORDER BY x",
    f"SELECT x, y, region, count(*), count(DISTINCT region) FROM {STEPS}, patients WHERE x > age AND region <> 'e' GROUP BY ALL",
    f"SELECT y, count(*) FROM patients JOIN {STEPS} ON age < x AND x > 30 GROUP BY y HAVING count(*) > 3",
    f"SELECT x, sum(count(*)) OVER () FROM patients JOIN {STEPS} ON age < x GROUP BY x",
    f"SELECT x, count(*), sum(cost) FROM patients p JOIN visits v ON v.id = p.id JOIN {STEPS} ON age < x GROUP BY x",
    f"SELECT x, kind, count(*) FROM patients p JOIN visits v ON v.id = p.id JOIN {STEPS} ON age < x JOIN kinds USING (diagnosis) GROUP BY x, kind",
    f"SELECT d, count(DISTINCT id), count(*), sum(cost) FROM visits JOIN {WEEKS} ON day BETWEEN f AND d GROUP BY d",
    f"SELECT x, n, count(*) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id) JOIN {STEPS} ON n * 9 < x GROUP BY x, n",
    f"SELECT x, z, count(*) FROM patients JOIN {STEPS} ON age < x JOIN (VALUES (22), (33)) s(z) ON age >= z AND z < x GROUP BY x, z",
    f"SELECT x, y, count(*) FROM patients JOIN {TWICE} ON age < x GROUP BY x, y",
    "SELECT a.age, count(*), sum(income) FROM patients p JOIN ages a ON a.w = p.age % 7 GROUP BY a.age",
    f"SELECT x + 1, upper(y), count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY 1, 2",
    f"SELECT d::TIMESTAMP AS until, count(DISTINCT id) FROM visits JOIN {WEEKS} ON day BETWEEN f AND d GROUP BY until",
    f"SELECT strftime(d, '%m-%d') AS until, count(v.id) FROM {WEEKS} LEFT JOIN visits v ON v.day BETWEEN f AND d GROUP BY 1",
    # Each row of it, tied by nothing.
    f"SELECT x, count(*), sum(income) FROM patients CROSS JOIN {STEPS} GROUP BY x",
    f"SELECT x, y, region, count(*) FROM {STEPS}, patients WHERE region <> 'e' GROUP BY ALL",
    f"SELECT x, z, count(*) FROM patients, {STEPS}, (VALUES (22), (33)) s(z) WHERE z < x GROUP BY x, z",
    f"SELECT x, z, count(*) FROM patients, {STEPS}, (VALUES ('a', 22), ('b', 33)) s(k, z) WHERE s.k = y AND z < age GROUP BY x, z",
    "SELECT w, count(*) FROM patients JOIN (VALUES (2, 'a'), (3, 'b')) v(x, w) ON age // 10 = v.x + 1 GROUP BY w",
    "SELECT w, count(*) FROM patients JOIN (VALUES (12, 'a'), (23, 'b')) v(x, w) ON age - v.x = v.x GROUP BY w",
    NESTED,
    # The nearest row of a public table.
    f"SELECT rate, count(*), sum(cost) FROM visits ASOF JOIN {RATES} ON day >= since GROUP BY rate",
    f"SELECT rate, count(*), sum(cost) FROM visits ASOF LEFT JOIN {RATES} ON since < day GROUP BY rate",
    f"SELECT rate, count(*) FROM visits ASOF JOIN {RATES} ON day <= since GROUP BY rate",
    f"SELECT rate, count(*) FROM visits v ASOF JOIN (SELECT diagnosis AS d, since, rate FROM kinds, {RATES} WHERE rate > 2 OR diagnosis <> 'flu') q ON q.d = v.diagnosis AND v.day >= q.since GROUP BY rate",
    f"SELECT kind, rate, count(*) FROM visits ASOF JOIN {RATES} ON day >= since JOIN kinds USING (diagnosis) GROUP BY ALL",
    "SELECT class, count(*) FROM patients p ASOF JOIN ages a ON p.age - 30 >= a.age GROUP BY ROLLUP (class)",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


REFUSED = [
    # A record would be in one group twice: of subtotals, of rows that are not told apart, of a number for all.
    (f"SELECT x, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY ROLLUP (x)", "SDC034", "both borders"),
    (f"SELECT x, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY GROUPING SETS ((x), ())", "SDC034", ""),
    (f"SELECT x, y, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY CUBE (x, y)", "SDC034", ""),
    (f"SELECT y, count(*) FROM patients JOIN {TWICE} ON age < x GROUP BY y", "SDC034", "several rows for a value of y"),
    (f"SELECT x, count(*) FROM patients JOIN {TWICE} ON age < x GROUP BY x", "SDC034", "several rows for a value of x"),
    (f"SELECT count(*) FROM patients JOIN {STEPS} ON age < x", "SDC034", ""),
    (f"SELECT region, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY region", "SDC034", "both borders"),
    (f"SELECT x + (SELECT 1), count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY x + (SELECT 1)", "SDC034", ""),
    (f"SELECT x + age % 2, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY 1", "SDC034", ""),
    (f"SELECT x // 100 AS x, count(*) FROM patients JOIN {STEPS} ON age < x GROUP BY 1", "SDC034", ""),
    ("SELECT a.class, count(*) FROM patients p JOIN ages a ON a.w = p.age % 7 GROUP BY a.class", "SDC034", "of w"),
    (f"SELECT DISTINCT x, region FROM patients JOIN {STEPS} ON age < x", "SDC034", ""),
    (f"SELECT count(*) FROM patients CROSS JOIN {STEPS}", "SDC034", ""),
    (f"SELECT x, count(*) FROM patients CROSS JOIN {STEPS} GROUP BY ROLLUP (x)", "SDC034", ""),
    (f"SELECT y, count(*) FROM patients, {TWICE} GROUP BY y", "SDC034", "several rows for a value of y"),
    (f"SELECT x, count(*) FROM patients LEFT JOIN {STEPS} ON true GROUP BY x", "SDC034", ""),
    ("SELECT v.day, count(*) FROM patients CROSS JOIN visits v GROUP BY v.day", "SDC034", ""),
    ("SELECT n, count(*) FROM patients, (SELECT region, count(*) AS n FROM patients GROUP BY region) q GROUP BY n", "SDC034", ""),
    # What each unit has, and records that stay records.
    (f"SELECT n, count(*) FROM (SELECT id, x, count(*) AS n FROM patients JOIN {STEPS} ON age < x GROUP BY id, x) GROUP BY n", "SDC034", ""),
    (f"SELECT x, count(*) FROM (SELECT id, x FROM patients JOIN {STEPS} ON age < x) GROUP BY x", "SDC034", ""),
    (f"SELECT x, count(*) FROM patients LEFT JOIN {STEPS} ON age < x GROUP BY x", "SDC034", "two borders"),
    (f"SELECT x, count(*) FROM patients JOIN {STEPS} ON income < x GROUP BY x", "SDC041", "income"),
    (f"SELECT x, count(*) FROM patients JOIN {STEPS} ON id < x GROUP BY x", "SDC040", "id"),
    ("SELECT n, count(*) FROM patients p JOIN (SELECT age, count(*) AS n FROM patients GROUP BY age) t ON p.age < t.age GROUP BY n", "SDC034", ""),
    # Which of several equally near rows is found is up to how they are stored.
    ("SELECT w, count(*) FROM patients p ASOF JOIN ages a ON p.age % 7 <= a.w GROUP BY w", "SDC034", "of w"),
    (f"SELECT y, count(*) FROM patients ASOF JOIN {TWICE} ON age >= x GROUP BY y", "SDC034", "of x"),
    ("SELECT count(*) FROM ages ASOF JOIN ages b ON ages.age >= b.age", "SDC022", "without records"),
    ("SELECT count(*) FROM (SELECT region, count(*) AS n FROM patients GROUP BY region) a ASOF JOIN ages b ON a.n >= b.age", "SDC022", "without records"),
    ("SELECT region FROM patients WHERE age IN (SELECT ages.age FROM ages ASOF JOIN ages b ON ages.age >= b.age) GROUP BY region", "SDC022", "without records"),
    ("SELECT class, count(*) FROM patients ASOF JOIN ages USING (age) GROUP BY class", "SDC022", "USING"),
    ("SELECT class, count(*) FROM ages a ASOF JOIN patients p ON p.age >= a.age GROUP BY class", "SDC033", "start FROM"),
    ("SELECT count(*) FROM patients p ASOF JOIN visits v ON p.id = v.id AND p.age > v.day", "SDC034", ""),
    ("SELECT count(*) FROM patients p ASOF JOIN visits v ON p.id = v.id", "SDC033", "a public table"),
    ("SELECT count(*) FROM patients ASOF JOIN ages ON patients.income >= ages.age", "SDC041", "income"),
    ("SELECT count(*) FROM patients ASOF JOIN ages ON patients.id >= ages.age", "SDC040", "id"),
    ("SELECT count(*) FROM patients ASOF JOIN (SELECT age, count(*) AS n FROM patients GROUP BY age) a ON patients.age >= a.age", "SDC034", ""),
    (f"SELECT y, count(*) FROM patients ASOF RIGHT JOIN {STEPS} ON age >= x GROUP BY y", "SDC033", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(refused_as: Callable[[str, str, str], None], query: str, code: str, detail: str) -> None:
    refused_as(query, code, detail)


def test_each_number_is_that_of_a_question_by_itself(guarded: tuple[str, Guard]) -> None:
    """Whoever asks by a table of steps learns what as many questions tell, in the same noise, and no second draw."""
    method, guard = guarded
    numbers = "count(*) AS n" if method == "rounding" else "count(*) AS n, sum(income) AS s"
    together = answer(guard, f"SELECT x, {numbers} FROM patients JOIN {STEPS} ON age < x GROUP BY x")
    alone = [
        answer(guard, f"SELECT {x} AS x, {numbers} FROM patients WHERE age < {x}")[0] for x in (30, 50, 70)
    ]  # fmt: skip
    assert together == alone
    [everybody] = answer(guard, f"SELECT {numbers} FROM patients")
    each = answer(guard, f"SELECT x, {numbers} FROM patients, {STEPS} GROUP BY x")
    assert [row[1:] for row in each] == [everybody] * 3
    several = answer(guard, f"SELECT d, count(*) AS n FROM visits JOIN {WEEKS} ON day BETWEEN f AND d GROUP BY d")
    asked = "SELECT d, (SELECT count(*) FROM visits WHERE day BETWEEN DATE '{0}' - 27 AND DATE '{0}') AS n FROM (SELECT DATE '{0}' AS d)"
    assert several == [answer(guard, asked.format(row[0]))[0] for row in several]
    nearest = f"SELECT rate, count(*) AS n FROM visits ASOF JOIN {RATES} ON day >= since GROUP BY rate"
    between = "SELECT count(*) AS n FROM visits WHERE day >= DATE '2024-05-01' AND day < DATE '2025-01-01'"
    assert [row[1:] for row in answer(guard, nearest) if row[0] == "2.5"] == answer(guard, between)


def test_where_noise_is_drawn_a_record_is_in_one_group(tmp_path: Path) -> None:
    """A record in several groups would be charged once, and tell several times."""
    with closing(sdcduck.connect(tmp_path / "people.duckdb", secret="6" * 64)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 90 AS age FROM range(900) t(i)")
        con.execute("CREATE TABLE steps AS FROM (VALUES (30), (50)) t(x)")
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['age'], method := 'dp', epsilon := 1, per_question := 0.1)"
        )
        con.execute("FROM sdc_declare_public('steps')").fetchall()
        guard = sdcduck.open_guard(con)
        for join in ("JOIN steps ON age < x", "CROSS JOIN steps", "ASOF JOIN steps ON age >= x"):
            with pytest.raises(Refused, match="SDC0"):
                guard.sql(f"SELECT x, count(*) AS n FROM people {join} GROUP BY x")


def test_rows_that_differ_in_their_groups() -> None:
    asked = Unique("(FROM (VALUES (1, 'a'), (1, 'b'), (NULL, 'b'), (NULL, 'c')) t(x, y))", (("x", "x"),))
    with duckdb.connect() as con:
        for groups, wanted in (("xy", True), ("x", False), ("y", False)):
            told = Unique(asked.source, asked.columns, groups=tuple((name, name) for name in groups)).in_groups()
            assert told is not None
            assert con.execute(told).fetchone() == (wanted,)
    assert asked.in_groups() is None


def test_sides_of_a_union_keep_what_is_set_apart_for_them(same_as_duckdb: Callable[[str], None]) -> None:
    """The WITH of the first side was read as that of all, and the question refused."""
    asked = "SELECT '{0}' AS what, count(*) AS n FROM patients WHERE age IN (SELECT age FROM ages WHERE w > {0})"
    three = " UNION ALL ".join(asked.format(w) for w in (1, 2, 3))
    same_as_duckdb(f"SELECT what, sum(n) FROM ({three}) GROUP BY ROLLUP (what)")
    same_as_duckdb(f"SELECT count(*) FROM ({asked.format(1)} INTERSECT {asked.format(1)} INTERSECT {asked.format(1)})")
