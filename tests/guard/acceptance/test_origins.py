"""What an explanation says of each column: public, a group, a protected number and how, and whether NULL means withheld."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from table import METHODS, guarded

from sdcduck.guard import Guard


@pytest.fixture(scope="module", params=METHODS)
def under(request: pytest.FixtureRequest) -> Iterator[tuple[str, Guard]]:
    with guarded(request.param) as one:
        yield request.param, one


def kinds(guard: Guard, query: str) -> list[str]:
    explained = guard.explain(query)
    assert explained.answered, explained.notes
    return [f"{column.kind}{'?' if column.withholds else ''}" for column in explained.columns]


KIND = {"cell_key": "perturbed", "suppression": "exact", "threshold": "exact", "rounding": "rounded"}

CLAIMS = [
    ("SELECT region, count(*) AS n FROM people GROUP BY region", ["group", "P?"]),
    ("SELECT region, count(*) * 2 AS n FROM people GROUP BY region", ["group", "P"]),
    ("SELECT 1 AS one, count(*)::DOUBLE AS n FROM people", ["public", "P?"]),
    ("SELECT region, climate FROM regions", ["public", "public"]),
    ("SELECT climate, count(*) FROM regions GROUP BY climate", ["public", "public"]),
    ("WITH a AS (SELECT region, count(*) AS n FROM people GROUP BY 1) SELECT climate, n FROM a JOIN regions USING (region)", ["public", "P?"]),
    ("SELECT climate, n FROM regions LEFT JOIN (SELECT region, count(*) AS n FROM people GROUP BY 1) a USING (region)", ["public", "P"]),
    ("SELECT count(*) FROM (SELECT region, count(*) AS n FROM people GROUP BY 1) a WHERE n > 9", ["P"]),
    ("SELECT region, rank() OVER (ORDER BY count(*)) AS place FROM people GROUP BY 1", ["group", "P"]),
    ("SELECT region, (SELECT count(*) FROM people) AS n FROM regions", ["public", "P"]),
    ("SELECT region, 0 AS n FROM regions UNION ALL SELECT region, count(*) FROM people GROUP BY 1", ["group", "P"]),
    ("SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, count(*) AS a FROM people", ["P", "public"]),
    ("SELECT 1 AS a UNION ALL BY NAME SELECT count(*) AS n, region FROM people GROUP BY region", ["public", "P", "group"]),
    ("WITH a(r, m) AS (SELECT region, count(*) FROM people GROUP BY 1) SELECT m, r FROM a", ["P?", "group"]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "claimed"), CLAIMS)
def test_kinds(under: tuple[str, Guard], query: str, claimed: list[str]) -> None:
    method, guard = under
    assert kinds(guard, query) == [kind.replace("P", KIND[method]) for kind in claimed]


def test_nothing_is_said_of_refusals_and_empty_answers(under: tuple[str, Guard]) -> None:
    _, guard = under
    assert guard.explain("SELECT * FROM people").columns == ()
    assert guard.explain("SELECT region FROM people LIMIT 0").columns == ()
