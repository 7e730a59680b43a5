"""What dashboards and cohort studies write: the largest groups of a filter, values that are looked for, long lists,
records of one unit beside each other within a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard

_AGES = "CASE WHEN age >= 40 THEN age END"
_TOP = f"(SELECT {_AGES} AS a, count(*) AS n FROM patients GROUP BY {_AGES} ORDER BY n DESC, a LIMIT 3) t"
_PEOPLE = f"(SELECT region, {_AGES} AS a FROM patients) p"
_TWO = f"(SELECT region AS r, {_AGES} AS a, count(*) AS n FROM patients GROUP BY ALL ORDER BY n DESC, r, a LIMIT 7) t"
_LIST = ", ".join(f"'diagnosis number {i}'" for i in range(150))
EQUAL = [
    # The largest groups, as Tableau filters by them
    f"SELECT region, count(*) FROM {_PEOPLE} WHERE EXISTS (SELECT 1 AS one FROM {_TOP} WHERE p.a = t.a) GROUP BY region",
    f"SELECT region, count(*) FROM {_PEOPLE} WHERE EXISTS (SELECT 1 FROM {_TOP} WHERE p.a = t.a OR (p.a IS NULL AND t.a IS NULL)) GROUP BY region",
    f"SELECT region, count(*) FROM {_PEOPLE} WHERE EXISTS (SELECT 1 FROM {_TOP} WHERE (t.a IS NULL AND p.a IS NULL) OR t.a = p.a) GROUP BY region",
    f"SELECT region, a, count(*) FROM {_PEOPLE} WHERE NOT EXISTS (SELECT 1 FROM {_TOP} WHERE p.a IS NOT DISTINCT FROM t.a) GROUP BY ALL",
    f"SELECT region, count(*) FROM {_PEOPLE} WHERE EXISTS (SELECT 1 FROM {_TWO} WHERE p.a IS NOT DISTINCT FROM t.a AND p.region = t.r) GROUP BY ALL",
    f"SELECT region, a, count(*) FROM {_PEOPLE} WHERE EXISTS (SELECT 1 FROM {_TWO} WHERE p.a IS NOT DISTINCT FROM t.a AND t.r IS NOT DISTINCT FROM p.region) GROUP BY ALL",
    f"SELECT region, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM {_TOP} WHERE p.a IS NOT DISTINCT FROM t.a)) FROM {_PEOPLE} GROUP BY region",
    # A row that is looked for
    f"SELECT a FROM (SELECT {_AGES} AS a FROM patients) WHERE a IS NULL LIMIT 1",
    "SELECT region AS r, 1 AS one FROM patients WHERE (region = 'n') AND age > 30 LIMIT 1",
    "SELECT 1 FROM patients LIMIT 1 OFFSET 0",
    # Long lists of texts, and labels
    f"SELECT count(*) FROM visits WHERE diagnosis NOT IN ({_LIST})",
    f"SELECT count(*) FILTER (WHERE diagnosis IN ({_LIST}, 'flu')) FROM visits",
    f"SELECT CASE {' '.join(f'WHEN age = {i} THEN ' + repr(f'the label of those who are {i}') for i in range(20, 45))} ELSE 'older' END AS g, count(*) FROM patients GROUP BY 1",
    # Public rows without records
    "SELECT k.* FROM (SELECT * FROM kinds UNION ALL SELECT 'burn', 'wound') k LEFT JOIN visits v ON v.diagnosis = k.diagnosis WHERE v.diagnosis IS NULL",
    "SELECT a.w, count(*) FROM ages a LEFT JOIN (SELECT age FROM patients WHERE region = 'n') p ON a.age = p.age AND a.class > 1 WHERE (p.age IS NULL) AND a.age > 30 GROUP BY a.w",
    # Ages, and times between
    "SELECT avg(extract(year FROM age(TIMESTAMP '2026-01-01', day))), sum(date_part('day', day::TIMESTAMP - TIMESTAMP '2023-12-31'))::BIGINT FROM visits",
    "SELECT region, avg(extract(epoch FROM (v.day::TIMESTAMP - TIMESTAMP '2023-12-31')) / 86400)::DECIMAL(9, 3) FROM patients p JOIN visits v ON v.id = p.id GROUP BY region",
    "SELECT count(*) FROM visits WHERE day < DATE '2024-03-01' - INTERVAL '1' MILLISECOND",
    # Records of one unit beside each other
    "SELECT a.diagnosis, count(*), count(DISTINCT a.id) FROM visits a JOIN visits b ON a.id = b.id AND b.day > a.day AND b.day <= a.day + 30 GROUP BY 1",
    "SELECT b.diagnosis, sum(b.cost) FROM visits a JOIN visits b ON a.id = b.id AND b.day BETWEEN a.day AND a.day + 60 WHERE a.diagnosis = 'flu' GROUP BY 1",
    "SELECT p.region, count(*), count(v.id), count(DISTINCT v.id) FROM patients p LEFT JOIN visits v ON v.id = p.id AND v.day < DATE '2024-03-01' AND v.diagnosis <> 'cut' WHERE p.region <> 'e' GROUP BY 1",
    "SELECT count(DISTINCT f.id) AS n, sum(CASE WHEN v.id IS NULL THEN 0 ELSE 1 END) AS again FROM (SELECT id, min(day) AS first FROM visits GROUP BY id) f LEFT JOIN visits v ON v.id = f.id AND v.day > f.first AND (v.day <= f.first + 30 OR v.diagnosis = 'cut')",
    "SELECT region, count(*), count(v.id) FROM patients p LEFT JOIN visits v ON v.id = p.id AND month(v.day) = 1 + p.age % 12 WHERE region <> 'e' GROUP BY region",
    "SELECT p.region, count(*) FROM patients p LEFT JOIN visits v ON v.id = p.id AND v.day > DATE '2025-10-01' JOIN visits w ON w.id = p.id AND w.day < DATE '2024-02-01' AND w.diagnosis <> 'cut' WHERE v.id IS NULL GROUP BY 1",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


def test_ties_that_hold_between_nulls_have_the_noise_of_other_ways_to_write_them(noisy: Guard) -> None:
    tied = f"SELECT region, count(*) AS n FROM {_PEOPLE} WHERE EXISTS (SELECT 1 FROM {_TOP} WHERE p.a IS NOT DISTINCT FROM t.a) GROUP BY region"
    known = ", ".join(str(row[0]) for row in answer(noisy, f"SELECT a FROM {_TOP}") if row[0] is not None)
    missing = f"SELECT a FROM {_TOP} WHERE a IS NULL"
    condition = f"a IN ({known})" + (" OR a IS NULL" if answer(noisy, missing) else "")
    assert answer(noisy, tied) == answer(
        noisy, f"SELECT region, count(*) AS n FROM {_PEOPLE} WHERE {condition} GROUP BY 1"
    )


def test_a_row_that_is_looked_for_is_a_published_group(noisy: Guard) -> None:
    looked_for = "SELECT diagnosis FROM visits WHERE diagnosis = '{}' LIMIT 1"
    assert answer(noisy, looked_for.format("flu")) == [("flu",)]
    assert answer(noisy, looked_for.format("none")) == []
    assert noisy.sql(looked_for.replace("'{}'", "$1"), ["flu"]).to_pylist() == [{"diagnosis": "flu"}]


REFUSED = [
    ("SELECT k.kind FROM kinds k LEFT JOIN visits v ON v.diagnosis = k.diagnosis WHERE v.day IS NULL", "SDC033", ""),
    ("SELECT k.kind FROM kinds k LEFT JOIN visits v ON v.diagnosis = k.diagnosis AND v.cost > 3 WHERE v.diagnosis IS NULL", "SDC041", "cost"),
    ("SELECT a.age FROM ages a LEFT JOIN visits v ON v.id = a.age WHERE v.id IS NULL", "SDC044", ""),
    ("SELECT region FROM patients WHERE region = 'n' LIMIT 2", "SDC045", "limit"),  # there are two
    ("SELECT region FROM patients WHERE region = 'n' LIMIT 1 OFFSET 1", "SDC045", "limit"),
    ("SELECT region, age FROM patients WHERE region = 'n' LIMIT 1", "SDC045", "limit"),
    ("SELECT region FROM patients WHERE region = 'n' OR age = 3 LIMIT 1", "SDC045", "limit"),
    ("SELECT income FROM patients WHERE income IS NULL LIMIT 1", "SDC041", "income"),
    ("SELECT id FROM patients WHERE id = 3 LIMIT 1", "SDC040", "id is the unit"),
    ("SELECT region FROM patients WHERE region = 'n' AND id = 3 LIMIT 1", "SDC040", "id is the unit"),
    ("SELECT p.region, count(*) FROM patients p LEFT JOIN visits v ON v.id = p.id AND v.cost > 3 GROUP BY 1", "SDC041", "cost"),
    ("SELECT count(*) FROM patients p LEFT JOIN visits v ON v.id = p.id AND v.id > 3", "SDC040", "id"),
    ("SELECT count(*) FROM patients p LEFT JOIN visits v ON v.id = p.id OR v.day > DATE '2024-03-01'", "SDC040", "id"),
    ("SELECT count(*) FROM patients p JOIN visits v ON v.day > DATE '2024-03-01'", "SDC03", ""),
    (f"SELECT count(*) FROM visits WHERE diagnosis = '{'x' * 301}'", "SDC002", "300 characters"),
    (f"SELECT count(*) FROM visits WHERE replace(diagnosis, 'f', '{'x' * 200}') <> '{'x' * 101}' || lower('{'y' * 200}')", "SDC002", "300 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(refused_as: Callable[[str, str, str], None], query: str, code: str, detail: str) -> None:
    refused_as(query, code, detail)


def test_a_rank_among_records_leads_to_quantiles(refused_as: Callable[[str, str, str], None]) -> None:
    ranked = "SELECT min(CASE WHEN r < 0.5 * n THEN 99 ELSE age END) FROM (SELECT age, row_number() OVER (ORDER BY age) AS r, count(*) OVER () AS n FROM patients)"
    refused_as(ranked, "SDC045", "quantile_disc(age, 0.5)")
