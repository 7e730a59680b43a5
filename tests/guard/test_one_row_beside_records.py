"""An answer of one row beside records: CROSS JOIN, or a comma, with what is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard, Refused

_MOST = "(SELECT max(age) AS m, count(*) AS n FROM patients) t"
EQUAL = [
    f"SELECT region, count(*) FILTER (WHERE age > m - 20), sum(income) / max(n) FROM patients CROSS JOIN {_MOST} GROUP BY region",
    f"SELECT age > m - 20 AS old, count(*), sum(income) FROM {_MOST}, patients GROUP BY old",
    "WITH t AS (SELECT sum(income) AS total FROM patients) SELECT region, sum(income) / any_value(total) FROM patients, t GROUP BY region",
    "SELECT count(*) FROM patients JOIN (SELECT count(*) / 20 AS n FROM visits) t ON age < n",
    "SELECT count(*) FROM visits v CROSS JOIN (SELECT max(w) AS m FROM ages) t JOIN patients p ON p.id = v.id WHERE month(v.day) < t.m",
    "SELECT k, count(*) FROM (SELECT id, count(*) FILTER (WHERE month(day) > m) AS k FROM visits, (SELECT min(w) + 6 AS m FROM ages) t GROUP BY id) GROUP BY k",
    "SELECT diagnosis, kind, count(*) FROM visits JOIN kinds USING (diagnosis) CROSS JOIN (SELECT max(w) AS m FROM ages) t WHERE m = 6 GROUP BY ALL",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize(
    ("query", "other"),
    [
        (
            "SELECT avg((age - m) / s) AS x FROM patients CROSS JOIN (SELECT avg(age) AS m, stddev(age) AS s FROM patients) t WHERE s > 1",
            "SELECT sum((age - m) / s * n) / sum(n) AS x FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) CROSS JOIN "
            "(SELECT avg(age) AS m, stddev(age) AS s FROM patients) t",
        ),
        (
            "SELECT sum(income * m) AS x FROM patients CROSS JOIN (SELECT avg(age) AS m FROM patients) t",
            "SELECT sum(income) * (SELECT avg(age) FROM patients) AS x FROM patients",
        ),
        (
            "SELECT region, count(*) AS n FROM patients CROSS JOIN (SELECT avg(age) AS m FROM patients) t WHERE age > m GROUP BY region",
            "SELECT region, count(*) AS n FROM patients WHERE age > (SELECT avg(age) FROM patients) GROUP BY region",
        ),
    ],
)  # fmt: skip
def test_it_is_another_way_to_write_a_constant(noisy: Guard, query: str, other: str) -> None:
    found, wanted = ([list(map(float, row[-1:])) for row in answer(noisy, text)] for text in (query, other))
    assert found == [pytest.approx(row, rel=1e-6) for row in wanted] != []


REFUSED = [
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT unnest(list(DISTINCT age)) AS t FROM patients)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT unnest(range(max(w))) AS t FROM ages)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT region, count(*) AS t FROM patients GROUP BY region)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT count(*) AS t FROM patients HAVING count(*) > 5)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT count(*) AS t FROM patients LIMIT 0)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT sum(w) OVER () AS t FROM ages)", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN ages", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN visits", "SDC034"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT avg(income) AS m FROM patients) t WHERE income > m", "SDC041"),
    ("SELECT count(*) FROM patients CROSS JOIN (SELECT max(income) AS m FROM patients) t WHERE age > m", "SDC050"),
]


@pytest.mark.parametrize(("query", "code"), REFUSED)
def test_others_are_refused(noisy: Guard, query: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        noisy.sql(query)
