"""IS NOT DISTINCT FROM in a join, as Tableau and others write it: NULL is a value that finds that of the other side."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard

_PATIENTS = "(SELECT id, age, nullif(region, 'n') AS region FROM patients)"
_AREAS = "(SELECT 's' AS region, 'south' AS area UNION ALL SELECT NULL::VARCHAR, 'unknown')"

ANSWERED = [
    # with a public table
    f"SELECT area, count(*) AS n FROM {_PATIENTS} p JOIN {_AREAS} a ON p.region IS NOT DISTINCT FROM a.region GROUP BY area",
    f"SELECT area, count(*) AS n FROM {_PATIENTS} p LEFT JOIN {_AREAS} a ON a.region IS NOT DISTINCT FROM p.region GROUP BY area",
    f"SELECT area, count(*) AS n FROM {_PATIENTS} p, {_AREAS} a WHERE p.region IS NOT DISTINCT FROM a.region AND p.age < 40 GROUP BY area",
    "SELECT kind, count(*) AS n FROM visits v JOIN kinds k ON v.diagnosis IS NOT DISTINCT FROM k.diagnosis GROUP BY kind",
    # with an answer, as Tableau writes a level of detail
    "SELECT sum(n) AS s FROM patients p JOIN (SELECT region AS r, count(*) AS n FROM patients GROUP BY 1) t ON p.region IS NOT DISTINCT FROM t.r",
    f'SELECT p.region AS "region", SUM(t0."__measure__1") AS m FROM {_PATIENTS} p INNER JOIN (SELECT q.region AS region, COUNT(1) AS "__measure__1" '
    f"FROM {_PATIENTS} q GROUP BY 1) t0 ON (p.region IS NOT DISTINCT FROM t0.region) GROUP BY 1",
    f"SELECT t.n, count(*) AS k FROM {_PATIENTS} p JOIN (SELECT region, age // 40 AS a, count(*) AS n FROM {_PATIENTS} GROUP BY ALL) t "
    "ON (p.region IS NOT DISTINCT FROM t.region) AND (p.age // 40 IS NOT DISTINCT FROM t.a) GROUP BY t.n",
]  # fmt: skip


@pytest.mark.parametrize("query", ANSWERED)
def test_null_finds_null(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


def test_those_without_a_value_are_one_set_however_they_are_found(noisy: Guard) -> None:
    joined = f"SELECT count(*) FROM {_PATIENTS} p JOIN {_AREAS} a ON p.region IS NOT DISTINCT FROM a.region WHERE area = 'unknown'"
    assert answer(noisy, joined) == answer(noisy, "SELECT count(*) FROM patients WHERE region = 'n'")


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        (f"SELECT count(*) FROM {_PATIENTS} p JOIN (FROM {_AREAS} UNION ALL SELECT NULL, 'x') a ON p.region IS NOT DISTINCT FROM a.region",
         "SDC034", "several rows"),
        # 'x' is no number, and would be NULL
        (f"SELECT count(*) FROM {_PATIENTS} p JOIN {_AREAS} a ON p.age IS NOT DISTINCT FROM a.region", "SDC034", "write ="),
        (f"SELECT count(*) FROM {_PATIENTS} p JOIN (SELECT 1.5::DOUBLE AS x) a ON p.age::DOUBLE IS NOT DISTINCT FROM a.x", "SDC034", "write ="),
        ("SELECT count(*) FROM patients p JOIN visits v ON p.id IS NOT DISTINCT FROM v.id", "SDC040", "join on it"),
    ],
)  # fmt: skip
def test_what_else_null_would_find_is_refused(
    refused_as: Callable[[str, str, str], None], query: str, code: str, said: str
) -> None:
    refused_as(query, code, said)
