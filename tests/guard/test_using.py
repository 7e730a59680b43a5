"""JOIN .. USING and NATURAL JOIN tie what DuckDB ties, or are refused."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Guard, guard
from sdcduck.guard.refusals import Refused

TABLES = """
CREATE TABLE a AS SELECT i AS id, i % 4 AS k FROM range(20) _(i);
CREATE TABLE b AS SELECT i AS bid, i % 5 AS k FROM range(12) _(i);
CREATE TABLE d AS SELECT i AS k, 'd' || i AS e FROM range(1, 7) _(i);
CREATE TABLE f AS SELECT i AS k, 'f' || i AS g FROM range(3, 9) _(i);
"""
QUERIES = [
    "SELECT * FROM a JOIN b USING (k) LEFT JOIN d USING (k)",
    "FROM a JOIN b USING (k) NATURAL LEFT JOIN d",
    "SELECT k, count(*) AS n FROM a LEFT JOIN d USING (k) GROUP BY k",
    "SELECT a.k, b.k AS other, f.g FROM a JOIN d USING (k) JOIN b ON a.id = b.bid LEFT JOIN f ON f.k = b.k",
    "SELECT coalesce(d.k, a.k) AS k, k AS left_one FROM a LEFT JOIN d USING (k)",
    "SELECT k FROM (SELECT k FROM d FULL JOIN f USING (k)) q JOIN f USING (k)",
    "SELECT k, (SELECT max(k) FROM d FULL JOIN f USING (k)) AS top FROM d JOIN f USING (k)",
    "SELECT k FROM a LEFT JOIN (SELECT k::DOUBLE AS k, e FROM d) d USING (k) JOIN f USING (k)",
    "SELECT k, g FROM a LEFT JOIN f USING (k) JOIN d USING (k) ORDER BY k",
    "SELECT * FROM d FULL JOIN f USING (k)",
    "SELECT * FROM d FULL JOIN f USING (k) JOIN (SELECT DISTINCT id FROM a) q ON q.id = d.k",
    "SELECT count(*) AS n FROM d, a JOIN (SELECT k AS j FROM f) q ON a.k = q.j",
    "WITH q AS (SELECT k, count(*) AS n FROM a GROUP BY k) FROM q JOIN d USING (k) WHERE k > 1",
    "SELECT * FROM (VALUES (1, 'x'), (2, 'y')) v(k, s) JOIN d USING (k)",
    "FROM a SEMI JOIN d USING (k) JOIN f USING (k)",
    "SELECT COLUMNS(*) FROM d FULL JOIN f USING (k)",
    "SELECT COLUMNS('k|g') FROM d RIGHT JOIN f USING (k)",
    "SELECT COLUMNS(d.*) FROM d RIGHT JOIN f USING (k)",
    "SELECT max(COLUMNS(*)) FROM d RIGHT JOIN f USING (k)",
    "SELECT COLUMNS(*) FROM (SELECT * FROM d FULL JOIN f USING (k)) q",
]
REFUSED = {
    # The column on the left is behind the last comma: sqlglot ties the first one that there is.
    "SELECT count(*) AS n FROM d, b JOIN a USING (k)": "SDC031",
    "FROM d, b JOIN a USING (k) SELECT count(*) AS n": "SDC031",
    "SELECT count(*) AS n FROM a, d NATURAL JOIN b": "SDC031",
    "WITH q AS (FROM d) SELECT count(*) AS n FROM q, (FROM b) r JOIN a USING (k)": "SDC031",
    # What FULL and RIGHT JOIN made of two columns is not the first of them.
    "SELECT k, g FROM a FULL JOIN d USING (k) JOIN f USING (k)": "SDC022",
    "SELECT count(*) AS n FROM a RIGHT JOIN d USING (k) JOIN f USING (k)": "SDC022",
    "SELECT count(*) AS n FROM a NATURAL FULL JOIN d NATURAL FULL JOIN f": "SDC022",
    "SELECT -k AS k, g FROM d RIGHT JOIN f USING (k) ORDER BY k + 1 LIMIT 2": "SDC031",
    # A column of the same name that is not tied is shown, too.
    "SELECT * FROM a JOIN d USING (k) JOIN b ON a.id = b.bid": "SDC031",
    "SELECT * FROM a JOIN d USING (k), b": "SDC031",
    "SELECT k FROM a LEFT JOIN d USING (k) FULL JOIN b ON a.id = b.bid": "SDC031",
    "FROM b NATURAL JOIN d SEMI JOIN d USING (k)": "SDC031",
}


def rows(answer: pa.Table) -> list[str]:
    return sorted(map(str, zip(*(column.to_pylist() for column in answer.columns), strict=True)))


@pytest.fixture(scope="module")
def one() -> Iterator[Guard]:
    with sdcduck.connect() as con:
        con.execute(TABLES)
        for table in "abdf":
            con.execute("FROM sdc_declare_public($1)", [table]).fetchall()
        yield guard(con)


@pytest.mark.parametrize("query", QUERIES)
def test_joins_are_those_of_duckdb(one: Guard, query: str) -> None:
    with sdcduck.connect() as con:
        wanted = con.execute(TABLES).sql(query).to_arrow_table()
    answer = one.sql(query)
    assert answer.column_names == wanted.column_names
    assert rows(answer) == rows(wanted)


@pytest.mark.parametrize("query", REFUSED)
def test_joins_that_would_be_others_are_refused(one: Guard, query: str) -> None:
    with pytest.raises(Refused) as caught:
        one.sql(query)
    assert caught.value.code == REFUSED[query]


OF_UNITS = [
    "SELECT sex, count(*) AS n, count(DISTINCT id) AS persons, sum(cost) AS cost FROM visits "
    "JOIN (SELECT id, sex FROM persons JOIN homes USING (id)) q USING (id) GROUP BY sex",
    "WITH q AS (SELECT id, sex, town FROM persons LEFT JOIN homes USING (id)) "
    "SELECT town, sex, count(id) AS n, sum(cost) AS cost FROM q JOIN visits USING (id) GROUP BY ALL",
    "WITH q AS (SELECT id, town, ward FROM persons JOIN homes USING (id) LEFT JOIN visits USING (id)) "
    "SELECT town, count(DISTINCT id) AS persons FROM q WHERE ward = 'A' GROUP BY town",
    "SELECT sex, count(*) AS n FROM persons WHERE id IN (SELECT id FROM visits JOIN homes USING (id) WHERE town = 'x') "
    "GROUP BY sex",
    "SELECT n, count(*) AS persons FROM (SELECT id, count(*) AS n FROM persons JOIN visits USING (id) GROUP BY id) GROUP BY n",
]


def registers(method: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("""
        CREATE TABLE persons AS SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex FROM range(90) _(i);
        CREATE TABLE homes AS SELECT i AS id, ['x', 'y', 'z'][1 + i * i % 3] AS town FROM range(5, 80) _(i);
        CREATE TABLE visits AS SELECT i % 60 AS id, ['A', 'B'][1 + i // 60 % 2] AS ward, i * 7 % 40 AS cost
            FROM range(150) _(i);
    """)
    for table, column in (("persons", "sex"), ("homes", "town"), ("visits", "ward")):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        measures = "['cost']" if table == "visits" else "[]::VARCHAR[]"
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['{column}'], measures := {measures}, "
            f"population := 'persons', method := '{method}'{', min_units := 1' if method == 'threshold' else ''})"
        ).fetchall()
    return con


@pytest.mark.parametrize("query", OF_UNITS)
def test_the_unit_of_tables_joined_on_it_is_the_unit(query: str) -> None:
    with registers("threshold") as con:
        assert rows(guard(con).sql(query)) == rows(con.sql(query).to_arrow_table())


@pytest.mark.parametrize("query", OF_UNITS)
def test_written_with_the_table_in_front_it_is_the_same_number(query: str) -> None:
    in_front = query.replace("SELECT id, sex", "SELECT persons.id, sex").replace(
        "SELECT id, town", "SELECT persons.id, town"
    )
    in_front = in_front.replace("(SELECT id FROM visits", "(SELECT visits.id FROM visits")
    in_front = in_front.replace(
        "SELECT id, count(*) AS n FROM persons", "SELECT persons.id, count(*) AS n FROM persons"
    )
    in_front = in_front.replace("GROUP BY id)", "GROUP BY persons.id)")
    assert in_front != query
    with registers("cell_key") as con:
        assert rows(guard(con).sql(query)) == rows(guard(con).sql(in_front))


def test_it_is_not_shown() -> None:
    with registers("threshold") as con, pytest.raises(Refused) as caught:
        guard(con).sql("SELECT id FROM (SELECT id FROM persons JOIN homes USING (id)) q")
    assert caught.value.code == "SDC040"
