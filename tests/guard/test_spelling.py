"""Columns are called what DuckDB calls them, capitals included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sdcduck
from sdcduck.guard import Guard, guard

RECORDS = """
CREATE TABLE "Members" AS SELECT i AS "PersonID", (i + 1) * 7368787 % 100000000 AS "Key", 'Sex ' || i % 2 AS "Sex",
    ['North', 'South'][1 + i // 3 % 2] AS region, 20 + i % 50 AS "Age Group", 1000 + i AS "Income" FROM range(400) _(i);
CREATE TABLE "Regions" AS SELECT * FROM (VALUES ('North', 'A'), ('South', 'B')) _(region, "AreaCode");
"""
QUERIES = [
    'SELECT * FROM (SELECT region AS "Region", count(*) AS "Total N" FROM Members GROUP BY 1) AS q',
    'SELECT "q"."Total N", "q"."REGION" FROM (SELECT region, count(*) AS "Total N" FROM Members GROUP BY 1) AS q',
    "WITH q AS (SELECT region AS Area, count(*) AS TotalN FROM Members GROUP BY 1) FROM q",
    "WITH q AS (SELECT Sex, count(*) AS TotalN FROM Members GROUP BY 1) SELECT q.*, totaln * 2 AS Twice FROM q",
    "WITH q(A, b) AS (SELECT Sex, count(*) FROM Members GROUP BY 1), r AS (SELECT * FROM q) SELECT * FROM r",
    "SELECT * FROM (SELECT Sex, count(*) FROM Members GROUP BY 1) AS q(Who, N)",
    "SELECT sex, SUM(Income), count(*) FROM members GROUP BY SEX",
    "SELECT SEX AS sex, count(*) AS n FROM members GROUP BY ALL",
    'SELECT "age group", count(*) AS N FROM members GROUP BY 1 ORDER BY n, "AGE GROUP" LIMIT 3',
    "FROM regions",
    "SELECT * EXCLUDE (areacode) FROM Regions",
    "SELECT * RENAME (areacode AS Code) FROM Regions",
    "SELECT * REPLACE (lower(areacode) AS areaCODE) FROM Regions",
    "SELECT * FROM Regions JOIN (SELECT region AS REGION, count(*) AS N FROM Members GROUP BY 1) AS q USING (region)",
    "SELECT areacode, count(*) AS n FROM Members JOIN Regions USING (region) GROUP BY ALL",
    "FROM (PIVOT Members ON sex IN ('Sex 1', 'Sex 0') USING count(*), sum(income) AS Money GROUP BY REGION)",
    "PIVOT Members ON Sex IN ('Sex 1') USING count(*) GROUP BY Region",
    "SELECT Sex, count(*) AS N FROM Members GROUP BY 1 UNION ALL SELECT 'all' AS other, count(*) AS M FROM Members",
    "SELECT region AS R, count(*) AS N FROM Members GROUP BY 1 UNION ALL BY NAME SELECT sex AS S, 1 AS n FROM Members "
    "GROUP BY 1",
    "SELECT DISTINCT Sex FROM Members ORDER BY sex",
    "SELECT Sex, count(*) AS N FROM Members GROUP BY 1 LIMIT 0",
    "SELECT count(DISTINCT personid) AS People FROM Members",
    "SELECT count(DISTINCT(personid)), count(DISTINCT (region)) FROM Members",
    "SELECT count(DISTINCT personid), Max(sex), avg(income) FROM Members",
    "FROM (SELECT region, count(distinct m.PersonID) FROM Members m GROUP BY 1)",
    "SELECT *, rank() OVER (ORDER BY N DESC) AS Place FROM (SELECT sex, count(*) AS N FROM Members GROUP BY ALL)",
    "SELECT COLUMNS('^S') FROM (FROM regions JOIN (SELECT region, sex FROM Members GROUP BY ALL) q USING (REGION))",
    "SELECT COLUMNS(['N', 'SEX']) FROM (SELECT sex, count(*) AS n FROM Members GROUP BY ALL)",
    "SELECT COLUMNS('(S.*)') AS 'The \\1' FROM (SELECT sex, count(*) AS n FROM Members GROUP BY ALL)",
    "SELECT COLUMNS('.*') FROM (SELECT sex, count(*) AS N FROM Members GROUP BY ALL)",
]


@pytest.fixture(scope="module")
def one() -> Iterator[Guard]:
    with sdcduck.connect() as con:
        con.execute(RECORDS)
        con.execute("""FROM sdc_protect('Members', unit := 'PersonID', record_key := 'Key',
            dimensions := ['Sex', 'region', 'Age Group'], measures := ['Income'], method := 'threshold', min_units := 1)
            """).fetchall()
        con.execute("FROM sdc_declare_public('Regions')").fetchall()
        one = guard(con)
        yield one
        one.close()


@pytest.mark.parametrize("query", QUERIES)
def test_columns_are_spelled_as_duckdb_spells_them(one: Guard, query: str) -> None:
    with sdcduck.connect() as con:
        con.execute(RECORDS)
        wanted = con.sql(query).to_arrow_table()
    answer = one.sql(query)
    assert answer.column_names == wanted.column_names
    assert [name for name, _ in one.columns(query)] == wanted.column_names
    assert [column.name for column in one.explain(query).columns] in (wanted.column_names, [])
    assert answer.num_rows == wanted.num_rows


def test_relations_show_their_columns_as_they_are_spelled(one: Guard) -> None:
    shown = {policy.name: list(columns) for policy, columns in one.relations()}
    assert shown == {"Members": ["PersonID", "Sex", "region", "Age Group", "Income"], "Regions": ["region", "AreaCode"]}


def test_a_preview_spells_columns_as_the_table() -> None:
    with sdcduck.connect() as con:
        con.execute(RECORDS)
        con.execute("CREATE TABLE made_up AS SELECT 0 AS personid, 'Sex 0' AS sex, 'North' AS region FROM range(3)")
        con.execute("""FROM sdc_protect('Members', unit := 'PersonID', record_key := 'Key',
            dimensions := ['Sex', 'region'], preview := 'made_up')""").fetchall()
        one = guard(con)
        assert one.sql("SELECT * FROM members LIMIT 2").column_names == ["PersonID", "Sex", "region"]
        assert one.sql("SELECT SEX AS Who, REGION FROM members LIMIT 2").column_names == ["Who", "region"]
