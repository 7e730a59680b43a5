"""JOIN .. USING and NATURAL JOIN tie what DuckDB ties, or are refused."""

from __future__ import annotations

from collections.abc import Iterator

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
    "SELECT k, g FROM a FULL JOIN d USING (k) JOIN f USING (k)": "SDC005",
    "SELECT count(*) AS n FROM a RIGHT JOIN d USING (k) JOIN f USING (k)": "SDC005",
    "SELECT count(*) AS n FROM a NATURAL FULL JOIN d NATURAL FULL JOIN f": "SDC005",
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
