"""Subqueries that name a group, LATERAL beside records, labels of UNION ALL, DISTINCT windows: other words for GROUP BY."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard

_ALL_AND_OLD = (
    "SELECT 'all' AS what, * FROM patients UNION ALL SELECT 'old', * FROM patients WHERE age > 60 "
    "UNION ALL SELECT 'north', * FROM patients WHERE region = 'n'"
)
_ONE_WAY = "SELECT 'region' AS dim, region AS val, id, income FROM patients UNION ALL SELECT 'decade', (age // 10)::VARCHAR, id, income FROM patients"
EQUAL = [
    # A subquery names the group
    "SELECT diagnosis, count(*), (SELECT kind FROM kinds k WHERE k.diagnosis = v.diagnosis) FROM visits v GROUP BY diagnosis",
    "SELECT age, count(*) * 100.0 / (SELECT max(w) FROM ages a WHERE a.age = p.age) AS rate FROM patients p GROUP BY age ORDER BY rate DESC NULLS LAST, age LIMIT 7",
    "SELECT age, avg(income) FILTER (region = 'n') FROM patients p GROUP BY age HAVING count(*) > (SELECT max(w) FROM ages a WHERE a.age = p.age)",
    "SELECT age // 10 AS decade, age, sum(income) FROM patients p GROUP BY 1, age HAVING EXISTS (SELECT 1 FROM ages a WHERE a.age = p.age AND a.w = 2)",
    "SELECT diagnosis, grouping(day), day, count(*) FROM visits v WHERE day < DATE '2024-01-09' GROUP BY diagnosis, ROLLUP (day) HAVING (SELECT kind FROM kinds k WHERE k.diagnosis = v.diagnosis) = 'wound'",
    "SELECT region, (SELECT count(*) FROM visits v JOIN patients q ON q.id = v.id WHERE q.region = p.region) AS n, count(*) FROM patients p GROUP BY region",
    "SELECT region, age, count(*) / (SELECT count(*) FROM patients q WHERE q.region = p.region) FROM patients p GROUP BY region, age",
    "SELECT region, age, count(*) - (SELECT avg(n) FROM (SELECT count(*) AS n FROM patients GROUP BY region, age)) AS d FROM patients p GROUP BY region, age HAVING age IN (SELECT a.age FROM ages a WHERE a.age = p.age AND a.w > 4)",
    "SELECT region, sum(count(*)) OVER () - (SELECT count(*) FROM patients q WHERE q.region = p.region), max(age) FROM patients p GROUP BY region",
    "SELECT w, count(*) FROM (SELECT id, (SELECT max(w) FROM ages a WHERE a.age = p.age) AS w FROM patients p GROUP BY id, age) GROUP BY w",
    "SELECT day, count(DISTINCT id) FROM visits v GROUP BY day QUALIFY row_number() OVER (ORDER BY count(*) DESC, (SELECT max(w) FROM ages a WHERE a.age = month(v.day) + 20), day) < 5",
    "SELECT diagnosis, count(*), (SELECT kind FROM kinds k WHERE k.diagnosis = v.diagnosis) AS kind FROM visits v GROUP BY ALL ORDER BY kind, diagnosis LIMIT 2",
    # .. or a unit
    "SELECT count(*) FROM (SELECT id FROM visits v GROUP BY id HAVING EXISTS (SELECT 1 FROM patients p WHERE p.id = v.id AND p.age > 40))",
    "SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id HAVING count(*) > (SELECT 2 * count(*) FROM patients p WHERE p.id = visits.id)) GROUP BY n",
    "SELECT k, count(*) FROM (SELECT id, (SELECT count(*) FROM patients p WHERE p.id = v.id AND p.region = 's') AS k FROM visits v GROUP BY id) GROUP BY k",
    # A subquery names a row of answers
    "WITH t AS (SELECT region, age, count(*) AS n FROM patients GROUP BY ALL) SELECT * FROM t WHERE n = (SELECT max(n) FROM t u WHERE u.region = t.region)",
    "WITH t AS (SELECT age, count(*) AS n FROM patients GROUP BY 1) SELECT age, (SELECT sum(n) FROM t u WHERE u.age <= t.age) AS running FROM t",
    "WITH t AS (SELECT age, count(*) AS n FROM patients GROUP BY 1) SELECT class, w FROM ages a WHERE EXISTS (SELECT 1 FROM t WHERE t.age = a.age AND t.n > a.w + 8)",
    # LATERAL
    "SELECT k, count(*), avg(income) FROM patients, LATERAL (SELECT age // 10 AS k) t GROUP BY k",
    "SELECT l.d, sum(l.e), count(l.e) FROM visits v CROSS JOIN LATERAL (SELECT month(v.day) AS m, v.cost * 2 AS c) t, LATERAL (SELECT t.m // 3 AS d, t.c + 1 AS e) l GROUP BY l.d",
    "SELECT region, n, count(*) FROM patients p LEFT JOIN LATERAL (SELECT count(*) AS n, max(day) AS last FROM visits v WHERE v.id = p.id AND v.diagnosis = 'flu') t ON true WHERE last > DATE '2024-03-01' GROUP BY ALL",
    "SELECT class, t.kind, count(*) FROM visits v, LATERAL (SELECT kind FROM kinds k WHERE k.diagnosis = v.diagnosis) t, patients p, LATERAL (SELECT class FROM ages a WHERE a.age = p.age) u WHERE p.id = v.id GROUP BY ALL",
    "SELECT t.diagnosis, count(*) FROM patients p, LATERAL (SELECT diagnosis FROM visits v WHERE v.id = p.id ORDER BY v.day DESC, v.diagnosis LIMIT 1) t GROUP BY ALL",
    "SELECT t.diagnosis, t.day, count(*) FROM patients p LEFT JOIN LATERAL (SELECT diagnosis, day FROM visits v WHERE v.id = p.id AND v.day < DATE '2024-02-01' ORDER BY day, diagnosis LIMIT 2) t ON true GROUP BY ALL",
    "WITH old AS (SELECT * FROM patients WHERE age > 50) SELECT k, count(*) FROM old o, LATERAL (SELECT o.age // 5 AS k) t WHERE k < 15 GROUP BY k HAVING count(*) > 2",
    "SELECT a.class, sum(l.n), max(l.m) FROM ages a, LATERAL (SELECT count(*) AS n, avg(income) AS m FROM patients p WHERE p.age = a.age AND p.region = 's') l GROUP BY a.class",
    "SELECT t.age, max(patients.age), count(*) FROM patients, LATERAL (SELECT patients.age + 1 AS age) t WHERE patients.age > 50 GROUP BY t.age",
    "SELECT a.age, l.n FROM ages a, LATERAL (SELECT t.n FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) t WHERE t.age = a.age) l",
    "SELECT k.kind, l.n FROM kinds k, LATERAL (SELECT count(*) AS n FROM visits v WHERE v.diagnosis = k.diagnosis) l",
    # Labels
    f"SELECT what, count(*), count(DISTINCT id), avg(income), max(age) FROM ({_ALL_AND_OLD}) GROUP BY what",
    f"WITH u AS ({_ALL_AND_OLD}) SELECT region, what, count(*) AS n FROM u GROUP BY ALL HAVING count(*) > 20 ORDER BY n DESC, region, what LIMIT 4",
    f"WITH o AS (SELECT * FROM patients WHERE age > 30), u AS ({_ALL_AND_OLD.replace('patients', 'o')}) SELECT what, sum(income) FROM u WHERE age < 70 GROUP BY what",
    f"SELECT dim, val, count(*), sum(income) FROM ({_ONE_WAY}) GROUP BY dim, val",
    f"SELECT dim, count(DISTINCT val), count(*) FROM ({_ONE_WAY}) GROUP BY dim",
    f"WITH u AS ({_ONE_WAY}) SELECT a.dim, a.val, a.n, b.m FROM (SELECT dim, val, count(*) AS n FROM u GROUP BY ALL) a JOIN (SELECT dim, count(*) AS m FROM u GROUP BY dim) b USING (dim)",
    "SELECT dim, val, count(*) FROM (UNPIVOT (SELECT id, region, (age // 10)::VARCHAR AS decade FROM patients) ON region, decade INTO NAME dim VALUE val) GROUP BY ALL",
    "SELECT k, kind, count(*) FROM (SELECT 'all' AS k, * FROM visits UNION ALL SELECT 'late', * FROM visits WHERE day > DATE '2025-01-01') u JOIN kinds USING (diagnosis) GROUP BY k, kind",
    "SELECT k, count(*), count(v) FROM (SELECT 'v' AS k, diagnosis AS v FROM visits UNION ALL (SELECT 'p', region FROM patients UNION ALL SELECT 'w', NULL FROM visits)) GROUP BY k",
    # DISTINCT windows
    "SELECT DISTINCT region, avg(income) OVER (PARTITION BY region) AS m, count(*) FILTER (age > 40) OVER (PARTITION BY region) FROM patients ORDER BY 1",
    "SELECT DISTINCT region, age, round(sum(income) OVER (PARTITION BY age, region) / 10) + 1 AS s FROM patients WHERE age > 70",
    "SELECT n, count(*) FROM (SELECT DISTINCT id, count(*) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


SAME = [
    (f"SELECT what, count(*) FROM ({_ALL_AND_OLD}) GROUP BY what HAVING what = 'old'", "SELECT 'old', count(*) FROM patients WHERE age > 60"),
    (f"SELECT val, count(*) FROM ({_ONE_WAY}) WHERE dim = 'region' GROUP BY dim, val", "SELECT region, count(*) FROM patients GROUP BY region"),
    ("SELECT k, count(*) FROM patients, LATERAL (SELECT age // 10 AS k) GROUP BY k", "SELECT age // 10, count(*) FROM patients GROUP BY 1"),
    ("SELECT diagnosis, count(*), (SELECT 1 FROM kinds k WHERE k.diagnosis = v.diagnosis) FROM visits v GROUP BY 1", "SELECT diagnosis, count(*), 1 FROM visits GROUP BY 1"),
    ("SELECT region, (SELECT count(*) FROM patients q WHERE q.region = p.region AND age > 60) FROM patients p GROUP BY 1", "SELECT region, count(*) FROM patients WHERE age > 60 GROUP BY 1"),
    ("SELECT DISTINCT region, count(*) OVER (PARTITION BY region) FROM patients", "SELECT region, count(*) FROM patients GROUP BY 1"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "plainly"), SAME)
def test_the_numbers_are_those_of_the_plain_question(guarded: tuple[str, Guard], query: str, plainly: str) -> None:
    """One noise, whatever the words."""
    _, guard = guarded
    assert answer(guard, query) == answer(guard, plainly)


REFUSED = [
    ("SELECT region, (SELECT count(*) FROM patients q WHERE q.id = max(p.id)) FROM patients p GROUP BY region", "SDC044", "id"),
    ("SELECT region, (SELECT count(*) FROM ages a WHERE a.age = p.age) FROM patients p GROUP BY region", "SDC044", ""),
    ("SELECT region, (SELECT income FROM patients q WHERE q.region = p.region) FROM patients p GROUP BY region", "SDC04", ""),
    ("SELECT id, (SELECT max(w) FROM ages a WHERE a.age = p.age) FROM patients p GROUP BY id, age", "SDC040", ""),
    ("SELECT count(*) FROM patients p, LATERAL (SELECT 1 AS one WHERE p.income > 500) t", "SDC044", "LATERAL beside records"),
    ("SELECT x, count(*) FROM patients p, LATERAL (SELECT p.income AS x) t GROUP BY x", "SDC041", "x"),
    ("SELECT t.diagnosis, count(*) FROM patients p, LATERAL (SELECT diagnosis FROM visits v WHERE v.id = p.id ORDER BY cost LIMIT 1) t GROUP BY ALL", "SDC041", "cost"),
    ("SELECT t.day, count(*) FROM patients p, LATERAL (SELECT day FROM visits v WHERE v.id = p.id ORDER BY day, diagnosis LIMIT 50%) t GROUP BY ALL", "SDC044", "id"),
    ("SELECT kind, EXISTS (SELECT 1 FROM patients WHERE age > 70 LIMIT 1%) FROM kinds", "SDC04", ""),
    ("SELECT k, m::VARCHAR, count(*) FROM (SELECT 'x' AS k, 0.5 AS m FROM visits UNION ALL SELECT 'y', 1.25 FROM visits) GROUP BY ALL", "SDC043", "there twice"),
    ("SELECT t.age FROM ages a, LATERAL (SELECT age FROM patients p WHERE p.age = a.age ORDER BY income LIMIT 1) t", "SDC04", ""),
    ("SELECT k, count(*) FROM (SELECT 'x' AS k, id FROM visits UNION ALL SELECT 'x', id FROM visits) GROUP BY k", "SDC043", "there twice"),
    ("SELECT diagnosis, count(*) FROM (SELECT 'x' AS k, diagnosis FROM visits UNION ALL SELECT 'y', diagnosis FROM visits) GROUP BY diagnosis", "SDC043", "there twice"),
    ("SELECT k, v, count(*) FROM (SELECT 'x' AS k, diagnosis AS v FROM visits UNION ALL SELECT 'y', day FROM visits) GROUP BY ROLLUP (k, v)", "SDC043", "different types"),
    ("SELECT k, count(*) FROM (SELECT 'x' AS k, id FROM visits UNION ALL SELECT 'y', id FROM visits) GROUP BY ROLLUP (k)", "SDC043", "there twice"),
    ("SELECT DISTINCT region, row_number() OVER (PARTITION BY region) FROM patients", "SDC042", ""),
    ("SELECT DISTINCT region, max(income) OVER (PARTITION BY region) FROM patients", "SDC050", "max"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(refused_as: Callable[[str, str, str], None], query: str, code: str, detail: str) -> None:
    refused_as(query, code, detail)
