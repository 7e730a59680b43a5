"""What columns without a name are called: as PostgreSQL 15 calls them, which was asked for each of these."""

from __future__ import annotations

import pytest
from served_gateway import Served

from sdcduck.gateway.postgres.names import names_of

OF_POSTGRESQL = {
    "date_trunc('day', d)": "date_trunc", "to_char(d, 'YYYY')": "to_char", "count(*)": "count", "count(DISTINCT a)": "count",
    "count(*) FILTER (WHERE q)": "count", "sum(a) OVER ()": "sum", "row_number() OVER ()": "row_number", "Max(a)": "max",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)": "percentile_cont", "true": "?column?", "NULL": "?column?",
    "extract(year FROM d)": "extract", "substring(x FROM 1 FOR 2)": "substring", "trim(x)": "btrim", "now()": "now",
    "trim(leading FROM x)": "ltrim", "d AT TIME ZONE 'UTC'": "timezone", "a::text": "a", "1::int": "int4", "-1": "?column?",
    "current_date": "current_date", "current_timestamp": "current_timestamp", "coalesce(a)": "coalesce", "ARRAY[1]": "array",
    "ARRAY(SELECT 1)": "array", "nullif(a, b)": "nullif", "(a)": "a", "round(avg(a), 2)": "round", "interval '1 day'": "interval",
    "date '2020-01-01'": "date", "x || x": "?column?", "greatest(a, b)": "greatest", "position('a' IN x)": "position",
    "pg_catalog.version()": "version", "cast('1' AS double precision)": "float8", "arr[1]": "arr", "string_agg(x, ',')": "string_agg",
    "CASE WHEN q THEN b ELSE a END": "a", "CASE WHEN q THEN 1 ELSE 0 END": "case", "CASE WHEN q THEN 1 END": "case",
    "(SELECT a FROM t)": "a", "(SELECT count(*) FROM t)": "count", "(SELECT 1)": "?column?", "row(1, 2)": "row", "x IS NULL": "?column?",
    "EXISTS (SELECT 1)": "exists", "current_user": "current_user", "1::numeric(10, 2)": "numeric", "'x'::varchar(3)": "varchar",
    "'{1}'::text[]": "text", "d::date": "d", "now()::date": "now", "'pg_class'::regclass::oid": "oid", "a = b": "?column?",
    "a IN (1)": "?column?", "NOT q": "?column?", "date(d)": "date", "sum(a) / count(*)": "?column?", "(count(*))": "count",
    '"lower"(x)': "lower", "'a'::char": "bpchar", "1::bigint": "int8", "'t'::bool": "bool", "'2020-01-01'::timestamp": "timestamp",
    "x COLLATE \"C\"": "x", "json_agg(a)": "json_agg", "avg(a)::int": "avg", "localtime": "localtime", "1.5": "?column?",
}  # fmt: skip


@pytest.mark.parametrize("item", OF_POSTGRESQL)
def test_names(item: str) -> None:
    assert names_of(f"SELECT {item} FROM t") in ((OF_POSTGRESQL[item],), (None,))
    assert names_of(f"SELECT a, {item} AS z, {item} FROM t")[:2] == (None, None)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT count(*) FROM t UNION ALL SELECT sum(a) FROM t", ("count",)),
        ("WITH w AS (SELECT 1 AS a) SELECT sum(a), a FROM w", ("sum", None)),
        ("SELECT * FROM (SELECT region, count(*) FROM t GROUP BY 1) u LIMIT 3", (None, "count")),
        ("SELECT * FROM (SELECT count(*) FROM t) u(n)", ()), ("SELECT *, count(*) FROM t", ()), ("VALUES (1, 2)", ("column1", "column2")),
        ("FROM t SELECT count(*)", ("count",)), ("not SQL (", ()), ("SELECT 1; SELECT 2", ()),
    ],
)  # fmt: skip
def test_names_of_questions(query: str, names: tuple[str | None, ...]) -> None:
    assert names_of(query) == names


@pytest.mark.parametrize("prepare", [False, True])
def test_clients_are_told_them(served: Served, prepare: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    ask = "SELECT region, count(*), sum(income), count(*) + 1, upper(region) FROM people GROUP BY region ORDER BY 2"
    with psycopg.connect(**served.options, autocommit=True) as con:
        for _ in range(2):
            found = con.execute(ask, prepare=prepare)
            assert [column.name for column in found.description] == ["region", "count", "sum", "?column?", "upper"]
        with con.cursor() as cursor, cursor.copy(f"COPY ({ask}) TO STDOUT (FORMAT csv, HEADER)") as copy:
            assert b"".join(map(bytes, copy)).splitlines()[0] == b"region,count,sum,?column?,upper"
        assert con.execute(f"EXPLAIN {ask}").description[0].name == "QUERY PLAN"
        assert con.execute("SELECT 1, version()").description[0].name == "?column?"
        n, *_ = con.execute("SELECT * FROM (SELECT count(*) FROM people) x").description
        assert n.name == "count"
