"""GROUP BY and ORDER BY find scalar subqueries without a name by their number."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import guard

RELATIONS = """
CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i * 17 AS income FROM range(99) _(i);
CREATE TABLE nums AS FROM (VALUES (1, 'b'), (2, 'a'), (3, 'b')) t(a, b)
"""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(RELATIONS)
        con.execute(
            "ALTER TABLE people ADD COLUMN record_key BIGINT; UPDATE people SET record_key = sdc_record_key(id)"
        )
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        con.execute("FROM sdc_declare_public('nums')").fetchall()
        yield con


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, (SELECT count(*) FROM people), count(*) FROM people GROUP BY 1 ORDER BY 2, 1",
        "SELECT b, (SELECT max(a) FROM nums) FROM nums GROUP BY 1, 2 ORDER BY 1",
        "SELECT (SELECT min(a) FROM nums), b FROM nums ORDER BY 1, 2, a",
        "WITH w AS (SELECT (SELECT min(a) FROM nums), b FROM nums ORDER BY 1, 2) SELECT b FROM w ORDER BY b",
    ],
)
def test_a_subquery_has_a_number(con: duckdb.DuckDBPyConnection, query: str) -> None:
    plain = duckdb.connect()
    plain.execute(RELATIONS)
    answer = guard(con).sql(query)
    found = list(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    assert found == plain.execute(query).fetchall()
