"""Aggregates that hold all their values, over joins that pair every row with every other one."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Guard, duckdb.DuckDBPyConnection]]:
    con = sdcduck.connect()
    con.execute("""
        CREATE TABLE long AS SELECT i AS k, i * 7919 % 1009 AS t, i / 4 AS r, 'x' || i % 5 AS s FROM range(1001) l(i);
        CREATE TABLE "Short" AS FROM long WHERE k < 30;
        CREATE VIEW seen AS FROM long;
        CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i % 7 AS size FROM range(600) p(i);
        FROM sdc_protect('people', unit := 'id', method := 'threshold', min_units := 3, dimensions := ['region', 'size']);
        FROM sdc_declare_public('long'); FROM sdc_declare_public('Short'); FROM sdc_declare_public('seen')""")
    open_ = guard(con)
    yield open_, con
    open_.close()
    con.close()


HOLDING = (
    "list(a.k ORDER BY b.t)", "list(a.k)", "array_agg(DISTINCT a.k)", "string_agg(a.s, ', ')", "median(a.r + b.r)",
    "quantile_disc(a.k, 0.5)", "quantile_cont(a.k, [0.1, 0.5])", "mode(a.k + b.k)", "first(a.k ORDER BY b.t)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY a.r)", "count(*) FILTER (a.k > 3), median(a.k) FILTER (a.k > 3)",
    "favg(a.r ORDER BY b.t)", "a.s, max(a.k) OVER (), median(a.k + b.k) OVER (PARTITION BY a.s)",
)  # fmt: skip


@pytest.mark.parametrize("holding", HOLDING)
def test_they_are_refused_where_the_join_may_be_long(
    asked: tuple[Guard, duckdb.DuckDBPyConnection], holding: str
) -> None:
    for joined in ("long a, long b", "long a JOIN long b ON a.k < b.k", "long a CROSS JOIN long b WHERE a.k + b.k = 7"):
        with pytest.raises(Refused, match=r"SDC091.*a join without an equality makes: join by column = column"):
            asked[0].sql(f"SELECT {holding} FROM {joined}")


LONG = (
    "SELECT median(x) AS m FROM (SELECT a.r + b.r AS x FROM long a, long b)",
    "WITH c AS (SELECT a.r, b.r AS q FROM long a LEFT JOIN long b ON a.k > b.k), d AS (FROM c) SELECT mode(r) AS m FROM d",
    "SELECT (SELECT median(b.r) FROM long b WHERE b.t > a.t) AS m FROM long a",
    "SELECT a.k FROM long a WHERE a.r > (SELECT median(b.r) FROM long b WHERE b.t > a.t)",
    'SELECT median(a.k) AS m FROM "Short" a, "Short" b, "Short" c, "Short" d, "Short" e',
    "SELECT median(a.k) AS m FROM seen a, (VALUES (1), (2)) b(k)",
    "SELECT median(a.k) AS m FROM long a JOIN long b USING (k), long c",
    "SELECT median(a.k) AS m FROM (SELECT unnest([1, 2, 3]) AS k FROM long) a, long b",
    "SELECT count(*) AS n FROM long GROUP BY s HAVING median(k) > (SELECT median(a.k) FROM long a, long b)",
    "SELECT k FROM long UNION ALL SELECT median(a.k) FROM long a, long b",
    "SELECT median(a.n) AS m FROM (SELECT region, count(*) AS n FROM people GROUP BY region) a, long b, \"Short\" c",
)  # fmt: skip


@pytest.mark.parametrize("query", LONG)
def test_wherever_the_join_is(asked: tuple[Guard, duckdb.DuckDBPyConnection], query: str) -> None:
    with pytest.raises(Refused, match=r"SDC091.*a join without an equality"):
        asked[0].sql(query)


ANSWERED = (
    *(f'SELECT {holding} FROM long a JOIN "Short" b ON a.k < b.k' for holding in ("median(a.k) AS m", "mode(b.r) AS m")),
    "SELECT list(a.k ORDER BY b.t, a.k) AS m FROM long a JOIN long b ON a.k = b.k",
    "SELECT quantile_disc(a.k, 0.5) AS m FROM long a, long b WHERE a.k = b.t",
    "SELECT median(a.k) AS m FROM seen a JOIN seen b USING (k)",
    "SELECT median(a.k) AS m FROM seen a JOIN long b ON a.k + 1 = b.k AND a.t > b.t",
    "SELECT median(a.k - b.m) AS m FROM seen a, (SELECT avg(k) AS m FROM long) b",
    "SELECT median(k) AS m FROM seen",
    "SELECT median(a.k) AS m FROM (FROM long ORDER BY k LIMIT 40) a, long b",
    "SELECT a.s, (SELECT median(b.k) FROM long b WHERE b.s = a.s) AS m FROM long a",
    "SELECT k, (SELECT median(b.k) FROM long b) AS m FROM long a",
    "SELECT median(a.k) AS m FROM long a SEMI JOIN long b ON a.k < b.t",
    "SELECT sum(a.k) AS m, count(*) AS n, max(b.r) AS r FROM long a, long b",
    "SELECT median(a.n / b.n) AS m FROM (SELECT region, count(*) AS n FROM people GROUP BY region) a, "
    "(SELECT size, count(*) AS n FROM people GROUP BY size) b",
)  # fmt: skip


@pytest.mark.parametrize("query", ANSWERED)
def test_others_are_answered(asked: tuple[Guard, duckdb.DuckDBPyConnection], query: str) -> None:
    open_, con = asked
    answer = [tuple(row.values()) for row in open_.sql(query).to_pylist()]
    assert sorted(answer, key=repr) == sorted(con.cursor().execute(query).fetchall(), key=repr)
