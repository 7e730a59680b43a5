"""Each ? is the parameter that it is for DuckDB, wherever it stands and however often it is written."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.refusals import Refused

GROUPS = "SELECT age AS n, count(*) AS m FROM people WHERE age < ? GROUP BY age"
QUERIES: list[tuple[str, list[object]]] = [
    ("SELECT age + ? AS k, count(*) AS n FROM people GROUP BY 1 ORDER BY 1", [1]),
    ("SELECT age + ? AS k, count(*) AS n FROM people WHERE age > ? GROUP BY k HAVING count(*) > ? ORDER BY k", [7, 21, 3]),
    ("SELECT age + ? AS k, count(*) AS n FROM people WHERE age > ? GROUP BY ROLLUP (1) ORDER BY 1", [7, 21]),
    ("SELECT CASE WHEN age > ? THEN ? ELSE ? END AS k, count(*) AS n FROM people GROUP BY 1 ORDER BY 1", [21, "b", "a"]),
    (f"WITH z AS ({GROUPS}) SELECT n + ? AS k FROM z WHERE n > ? ORDER BY k LIMIT ? OFFSET ?", [26, 100, 20, 3, 1]),
    (f"SELECT n + ? AS k, m FROM ({GROUPS}) z ORDER BY 1 LIMIT ? OFFSET ?", [100, 26, 2, 1]),
    (f"SELECT n + ?::INTEGER AS k, max(m) AS m FROM ({GROUPS}) z GROUP BY 1 ORDER BY 1 LIMIT ?", [100, 26, 2]),
    ("FROM people SELECT age + ? AS k, count(*) AS n WHERE age > ? GROUP BY 1 ORDER BY 1", [5, 21]),
    ("SELECT ?::VARCHAR || '?' AS a, count(*) AS n FROM people -- ?", ["x"]),
    (f"PIVOT ({GROUPS}) ON n IN (21, 22) USING sum(m + ?)", [26, 7]),
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, 20 + i % 7 AS age FROM range(70) t(i);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['age'], method := 'threshold', min_units := 1);
        """).fetchall()
        yield con


@pytest.fixture(scope="module")
def guard(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize(("query", "values"), QUERIES)
def test_parameters_are_those_of_duckdb(
    guard: Guard, con: duckdb.DuckDBPyConnection, query: str, values: list[object]
) -> None:
    wanted = con.execute(query, values).fetchall()
    assert wanted
    assert [tuple(row.values()) for row in guard.sql(query, values).to_pylist()] == wanted


def test_parameters_of_two_kinds_are_refused(guard: Guard) -> None:
    with pytest.raises(Refused, match="SDC006"):
        guard.sql("SELECT $1 AS a, ? AS b, count(*) AS n FROM people", [1, 2])
