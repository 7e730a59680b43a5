"""Subqueries beside records tell nothing that the numbers do not tell: of measures, of other units, of failures."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pytest
from effort import times

import sdcduck
from sdcduck.guard import Guard, Refused

METHODS = ("method := 'cell_key'", "method := 'threshold', min_units := 3", "method := 'rounding', base := 5")
_MADE = """
    CREATE TABLE people AS SELECT i AS id, ['n', 's', 'e'][1 + i % 3] AS region, 20 + i * 7 % 60 AS age,
        (100 + i * 11 % 900)::BIGINT AS income FROM range(200) t(i);
    CREATE TABLE visits AS SELECT i * i * 7 % 190 AS id, ['flu', 'cold', 'cut'][1 + i * 5 % 7 % 3] AS diagnosis,
        (i * 37 % 100)::INTEGER AS day, (10 + i * 13 % 91)::BIGINT AS cost FROM range(500) t(i);
    CREATE TABLE ages AS SELECT 20 + i AS age, i % 7 AS w FROM range(60) t(i);
"""


def made(method: str = METHODS[0]) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(_MADE)
    con.execute("FROM sdc_public('ages')").fetchall()
    for table, dimensions, measure in (
        ("people", ["region", "age"], "income"),
        ("visits", ["diagnosis", "day"], "cost"),
    ):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := ['{measure}'], "
            f"population := 'persons', {method})"
        ).fetchall()
    return con


def rows(guard: Guard, query: str) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in guard.sql(query).to_pylist())


def condition(random: Random, depth: int = 2) -> str:
    """A condition on people by their visits, at random."""
    if depth and random.random() < 0.6:
        left, right = condition(random, depth - 1), condition(random, depth - 1)
        return random.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
    own = random.choice(["diagnosis = 'flu'", "day < 40", "diagnosis <> 'cut' AND day > 20", "true"])
    return random.choice(
        [f"p.id IN (SELECT id FROM visits WHERE {own})", f"p.id NOT IN (SELECT id FROM visits WHERE {own})",
         f"EXISTS (FROM visits v WHERE v.id = p.id AND {own})", "EXISTS (FROM visits v WHERE v.id = p.id AND v.day > p.age)",
         f"p.id IN (SELECT id FROM visits WHERE {own} EXCEPT SELECT id FROM visits WHERE day > 80)",
         f"p.id IN (SELECT id FROM visits WHERE {own} UNION SELECT id FROM people WHERE age < 25)",
         f"(SELECT count(*) FROM visits v WHERE v.id = p.id AND {own}) > 1", "(SELECT w FROM ages a WHERE a.age = p.age) > 2"]
    )  # fmt: skip


FORMS = (
    "SELECT count(*) AS n FROM people p WHERE {}",
    "SELECT count(*) FILTER (WHERE {}) AS n FROM people p",
    "SELECT n FROM (SELECT {} AS k, count(*) AS n FROM people p GROUP BY k) WHERE k",
    "SELECT sum(CASE WHEN {} THEN 1 END) AS n FROM people p",
)


@pytest.mark.parametrize("method", METHODS)
def test_no_value_of_a_measure_decides_who_counts(method: str) -> None:
    """All amounts are changed: the counts are what they were."""
    random = Random(5)
    queries = [random.choice(FORMS).format(condition(random)) for _ in range(times(12, 200))]
    with made(method) as con:
        one = sdcduck.open_guard(con)
        before = [rows(one, query) for query in queries]
        con.execute("UPDATE people SET income = 1_000_000 - income * income")
        con.execute("UPDATE visits SET cost = CASE WHEN cost % 2 = 0 THEN NULL ELSE -cost END")
        other = sdcduck.open_guard(con)
        assert [rows(other, query) for query in queries] == before
    assert len(set(map(str, before))) > len(queries) / 2


def test_no_unit_decides_whether_another_counts() -> None:
    """One person's visits and attributes are changed: a count of people changes by that person or not at all."""
    random = Random(7)
    changed = 0
    with made("method := 'threshold', min_units := 1") as con:
        for _ in range(times(15, 200)):
            query, person = random.choice(FORMS[:1]).format(condition(random)), random.randrange(190)
            first = sdcduck.open_guard(con).sql(query).to_pylist()[0]["n"] or 0
            con.execute(f"UPDATE visits SET diagnosis = 'cut', day = {random.randrange(100)} WHERE id = {person}")
            con.execute(f"UPDATE people SET age = {random.randrange(20, 80)} WHERE id = {person}")
            second = sdcduck.open_guard(con).sql(query).to_pylist()[0]["n"] or 0
            assert abs(first - second) <= 1, query
            changed += first != second
    assert changed > 0


@pytest.fixture(scope="module", params=METHODS)
def guard(request: pytest.FixtureRequest) -> Iterator[Guard]:
    with made(request.param) as con:
        yield sdcduck.open_guard(con)


def test_a_comparison_with_an_answer_is_the_answer_written_out(guard: Guard) -> None:
    """Who compares with a published number knows no more than who asks for it first and writes it down."""
    number = "SELECT region, count(*) // 2 AS n FROM people WHERE id IN (SELECT id FROM visits WHERE diagnosis = 'flu') GROUP BY region"
    known = guard.sql(number).to_pylist()
    written = " ".join(f"WHEN '{row['region']}' THEN {row['n']}" for row in known)
    asked = rows(guard, f"SELECT region, count(*) FROM people p WHERE age > CASE region {written} END GROUP BY region")
    inner = "SELECT count(*) // 2 FROM people q WHERE q.id IN (SELECT id FROM visits WHERE diagnosis = 'flu') AND q.region = p.region"
    assert len(known) > 1
    assert asked == rows(guard, f"SELECT region, count(*) FROM people p WHERE age > ({inner}) GROUP BY region")
    assert asked == rows(
        guard,
        f"SELECT p.region, count(*) FROM people p JOIN ({number}) t ON t.region = p.region WHERE age > n GROUP BY 1",
    )


ISOLATING = [
    # Whose income, or whose rows, would decide
    "SELECT count(*) FROM ((SELECT * FROM people) ORDER BY income DESC LIMIT 1) t WHERE region = 'n'",
    "SELECT count(*) FROM people WHERE id IN ((SELECT id FROM people) ORDER BY income LIMIT 1)",
    "SELECT id IN (SELECT id FROM people ORDER BY income LIMIT 1) AS k, count(*) FROM people GROUP BY k",
    "SELECT count(*) FILTER (WHERE income IN (SELECT max(income) FROM people)) FROM people",
    "SELECT count(*) FILTER (WHERE income = (SELECT w FROM ages WHERE age = 30)) FROM people",
    "SELECT count(*) FROM people p WHERE (SELECT sum(cost) FROM visits v WHERE v.id = p.id) > 50",
    "SELECT (SELECT cost FROM visits v WHERE v.id = p.id LIMIT 1) AS c, count(*) FROM people p GROUP BY c",
    "SELECT count(*) FROM people p WHERE income > (SELECT avg(income) FROM people q WHERE q.region = p.region)",
    "SELECT count(*) FROM people p JOIN (SELECT region, sum(income) AS s FROM people GROUP BY region) t ON p.region = t.region WHERE p.income * 100 > s",
    "SELECT count(*) FROM people p WHERE EXISTS (FROM visits v WHERE v.id = p.id AND v.cost > p.income)",
    "SELECT count(*) FROM (SELECT id, income FROM people INTERSECT SELECT id, 500 FROM people)",
    "SELECT count(*) FROM (SELECT id, income FROM people UNION SELECT id, income FROM people)",
    # Where others would be looked at
    "SELECT count(*) FROM people p WHERE EXISTS (FROM people q WHERE q.age = p.age AND q.id <> p.id)",
    "SELECT EXISTS (FROM people q WHERE q.age = p.age AND q.region <> p.region) AS k, count(*) FROM people p GROUP BY k",
    "SELECT count(*) FROM people p WHERE age IN (SELECT age FROM people q WHERE q.id = 17)",
    "SELECT region IN (SELECT diagnosis FROM visits) AS k, count(*) FROM people GROUP BY k",
    "SELECT count(*) FROM (SELECT region FROM people WHERE age > 70 EXCEPT ALL SELECT region FROM people WHERE id IN (SELECT id FROM visits))",
    "SELECT count(*) FROM visits v WHERE id IN (SELECT id + 1 FROM people)",
    "SELECT count(*) FROM people WHERE id + 0 IN (SELECT id FROM visits)",
    "SELECT id IN (17) AS k, count(*) FROM people GROUP BY k",
    "SELECT count(*) FROM people p JOIN ages a ON a.age = p.age OR a.w = p.age",
    # Who the units are
    "SELECT a.age FROM ages a WHERE a.age IN (SELECT id FROM people WHERE region = 'n')",
    "SELECT a.age, count(p.id) FROM ages a LEFT JOIN people p ON p.id = a.age GROUP BY a.age",
    "SELECT a.age, (SELECT count(*) FROM people p WHERE p.id = a.age) FROM ages a",
    "SELECT a.age, (SELECT p.region FROM people p WHERE p.id = a.age) FROM ages a",
    "SELECT list(DISTINCT id) FROM people",
    "SELECT string_agg(DISTINCT income::VARCHAR, ',') FROM people",
    "SELECT mode(income) FROM people",
]  # fmt: skip


@pytest.mark.parametrize("query", ISOLATING)
def test_what_would_single_somebody_out_is_refused(guard: Guard, query: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(query)
    assert refused.value.code not in ("SDC001", "SDC090"), refused.value


FAILING = [
    "SELECT count(*) AS n FROM people WHERE id IN (SELECT id FROM visits WHERE 1 / (day - {0}) > -2)",
    "SELECT id IN (SELECT id FROM visits WHERE ('x' || diagnosis)::VARCHAR[day - {0}:] <> 'y') AS k, count(*) AS n FROM people GROUP BY k",
    "SELECT count(*) FILTER (WHERE CASE WHEN id IN (SELECT id FROM visits WHERE day = {0}) THEN region::INTEGER > 3 ELSE true END) AS n FROM people",
    "SELECT CASE WHEN EXISTS (FROM visits v WHERE v.id = p.id AND day = {0}) THEN region::INTEGER ELSE 0 END AS k, count(*) AS n FROM people p GROUP BY k",
    "SELECT count(*) AS n FROM people p WHERE EXISTS (FROM visits v WHERE v.id = p.id AND (CASE WHEN day = {0} THEN diagnosis ELSE '1' END)::INTEGER <= p.age)",
    "SELECT count(*) AS n FROM people p WHERE age > (SELECT (CASE WHEN a.age = 20 + {0} % 60 THEN 'bad' ELSE '1' END)::INTEGER FROM ages a WHERE a.age = p.age)",
]  # fmt: skip


@pytest.mark.parametrize("query", FAILING)
def test_whether_it_fails_does_not_depend_on_records(guard: Guard, query: str) -> None:
    """A value that some records have, and one that none has: both are answered, or neither."""
    found = set()
    for value in (37, 1000 + 37):
        try:
            guard.sql(query.format(value))
            found.add("answered")
        except Refused as refused:
            found.add(refused.code)
    assert len(found) == 1, found
