"""Public relations joined m:n to records of which only the groups are asked for: they are looked in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard, Refused

_PATIENTS = "(SELECT id, region, age, age % 7 AS m FROM patients) p"
EQUAL = [
    f"SELECT DISTINCT region FROM {_PATIENTS}, ages a WHERE p.m = a.w AND a.age > 75 AND p.age < 24",
    f"SELECT region, m FROM {_PATIENTS} JOIN ages a ON p.m = a.w JOIN ages b ON b.class = a.class AND b.age = 79 GROUP BY ALL ORDER BY m, region LIMIT 9",
    f"SELECT p.region || a.class FROM ages a, ages b, {_PATIENTS}, ages c WHERE a.age = p.age AND b.w = a.w AND b.age = 35 AND c.w = p.m AND c.class = 2 GROUP BY 1",
    "SELECT diagnosis FROM visits v, (SELECT 'flu' AS d UNION ALL SELECT 'flu' UNION ALL SELECT NULL) x WHERE v.diagnosis = x.d GROUP BY diagnosis",
    "SELECT DISTINCT k.kind FROM kinds k, visits v, (FROM (VALUES ('flu', 1), ('flu', 2), ('cut', 3)) y(d, n)) y WHERE k.diagnosis = v.diagnosis AND y.d = v.diagnosis AND y.n < 3",
    "SELECT region FROM patients p JOIN ages a ON a.age = p.age AND a.w = 3 GROUP BY region HAVING region > 'e'",
    "SELECT DISTINCT region FROM patients p, ages a, ages b WHERE p.age = a.age AND b.w = a.w AND b.age = a.age",
    "SELECT DISTINCT region FROM patients p, ages a WHERE p.age = a.age AND a.w < a.class",
    "SELECT DISTINCT w FROM ages a WHERE age > 30 AND (SELECT count(*) FROM ages b WHERE (b.class = a.class AND (b.w = 1 OR b.age = 40)) OR (b.class = a.class AND b.w = 2)) > 2",
    "SELECT DISTINCT p.region FROM patients p, ages a WHERE (p.age = a.age AND a.w = 1 AND p.region = 'n') OR (p.age = a.age AND a.w = 2)",
    # One row of DISTINCT is found, however it is compared.
    "SELECT region, count(*) FROM patients p JOIN (SELECT DISTINCT age, w FROM ages) a ON a.age = p.age AND a.w = (p.age + 1) % 7 GROUP BY region",
    "SELECT count(*) FROM visits v JOIN (SELECT DISTINCT diagnosis FROM visits WHERE day < DATE '2024-06-01') d ON d.diagnosis = v.diagnosis",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


def test_it_is_another_way_to_write_in(noisy: Guard) -> None:
    joined = f"SELECT DISTINCT region, p.age FROM {_PATIENTS}, ages a WHERE p.m = a.w AND a.class = 1"
    looked_in = f"SELECT DISTINCT region, age FROM {_PATIENTS} WHERE m IN (SELECT w FROM ages WHERE class = 1)"
    assert answer(noisy, joined) == answer(noisy, looked_in) != []


REFUSED = [
    # Counted, a record that is there several times would be several
    (f"SELECT region, count(*) FROM {_PATIENTS}, ages a WHERE p.m = a.w GROUP BY region", "SDC034"),
    (f"SELECT region, min(p.age) FROM {_PATIENTS}, ages a WHERE p.m = a.w GROUP BY region", "SDC034"),
    (f"SELECT region FROM {_PATIENTS}, ages a WHERE p.m = a.w GROUP BY region HAVING count(*) > 5", "SDC034"),
    (f"SELECT DISTINCT region, a.class FROM {_PATIENTS}, ages a WHERE p.m = a.w", "SDC034"),
    (f"SELECT DISTINCT region FROM {_PATIENTS}, ages a WHERE p.m < a.w", "SDC034"),
    ("SELECT DISTINCT region FROM patients p, ages a WHERE p.id = a.age", "SDC040"),
    ("SELECT DISTINCT region FROM patients p, ages a WHERE p.income = a.age", "SDC041"),
    ("SELECT DISTINCT region FROM patients p, visits v WHERE p.region = v.diagnosis", "SDC035"),
    ("SELECT DISTINCT region FROM patients p LEFT JOIN ages a ON p.age = a.w", "SDC034"),
]


@pytest.mark.parametrize(("query", "code"), REFUSED)
def test_others_are_refused(noisy: Guard, query: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        noisy.sql(query)
