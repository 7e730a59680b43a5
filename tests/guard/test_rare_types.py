"""Columns of rare types: what DuckDB takes is answered, or refused with what to write, and no failure as it runs."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard, Refused

TYPES = {
    "place": ("GEOMETRY", "'POINT (1 2)'"),
    "either": ("UNION(num INTEGER, str VARCHAR)", "union_value(num := (i % 5)::INTEGER)"),
    "bits": ("BIT", "'01' || (i % 2)::VARCHAR"),
    "huge": ("UHUGEINT", "i % 5"),
    "pair": ("STRUCT(a INTEGER, b VARCHAR)", "{'a': i % 5, 'b': 'x'}"),
    "words": ("MAP(VARCHAR, INTEGER)", "map(['a'], [i % 5])"),
    "point": ("STRUCT(a DOUBLE)", "{'a': i % 5}"),
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        try:
            connection.execute("SELECT 'POINT (1 2)'::GEOMETRY")
        except duckdb.CatalogException:  # in DuckDB 1 it is a type of an extension
            TYPES.pop("place")
        columns = ", ".join(f"({value})::{kind} AS {name}" for name, (kind, value) in TYPES.items())
        connection.execute(f"CREATE TABLE people AS SELECT i AS id, {columns}, i % 7 AS x FROM range(1, 301) t(i)")
        connection.execute(f"CREATE TABLE known AS SELECT {', '.join(TYPES)} FROM people LIMIT 5")
        connection.execute("FROM sdc_declare_public('known')").fetchall()
        connection.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        connection.execute(
            f"FROM sdc_protect('people', unit := 'id', dimensions := {list(TYPES)}, measures := ['x'], "
            "method := 'threshold', min_units := 2)"
        ).fetchall()
        yield connection


ANSWERED = [
    "SELECT either, count(*) AS n FROM people GROUP BY either",
    "SELECT either, count(*) AS n, sum(x) AS s FROM people GROUP BY ROLLUP (either)",
    "SELECT bits::VARCHAR AS b, count(*) AS n FROM people GROUP BY b",
    "SELECT count(*) AS n FROM people WHERE bits = '010' OR bits IN ('011', '000')",
    "SELECT count(*) AS n FROM people WHERE huge IN (1, 2)",
    "SELECT count(*) AS n FROM people WHERE huge IN (1, 340282366920938463463374607431768211455)",
    "SELECT count(*) AS n FROM people WHERE huge IN (SELECT huge FROM known WHERE huge > 1)",
    "SELECT count(*) AS n FROM people WHERE pair.a = 1 AND words['a'] = 1",
    "SELECT count(*) AS n FROM known WHERE huge IN (1, 2)",
    "SELECT place, count(*) AS n FROM people GROUP BY place",
    "SELECT a, count(*) AS n FROM (SELECT DISTINCT id, point.a AS a FROM people) GROUP BY a",
    "SELECT pair.a AS a, count(*) AS n FROM (SELECT id, pair FROM people GROUP BY ALL) GROUP BY a",
]


@pytest.fixture(scope="module")
def guard(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize("query", ANSWERED)
def test_answered(guard: Guard, con: duckdb.DuckDBPyConnection, query: str) -> None:
    if "place" in query and "place" not in TYPES:
        return
    assert answer(guard, query) == answer_of_duckdb(con, query) != []


REFUSED = {
    "SELECT count(*) AS n FROM known WHERE either.num = 1": r"SDC015.*a field of a UNION",
    "SELECT either.num, count(*) FROM people GROUP BY ALL": r"SDC015.*a field of a UNION",
    "SELECT place.x, count(*) FROM people GROUP BY ALL": r"SDC015.*a field of a GEOMETRY",
    "SELECT count(*) FROM people WHERE people.either.num = 1": r"SDC015.*a field of a UNION",
    "SELECT median(bits) FROM people": "SDC052",
    "SELECT count(*) FROM people WHERE bits IN (SELECT bits FROM known)": r"SDC046.*same type",
    "SELECT sum(bits) FROM people": "SDC052",
    # -0.0 or 0.0: that of the row of the unit which is stored first
    "SELECT point::VARCHAR AS p, count(*) FROM (SELECT DISTINCT id, point FROM people) GROUP BY p": r"SDC050.*take one number",
    "SELECT point.a AS p, count(*) FROM (SELECT id, min(point) AS point FROM people GROUP BY id) GROUP BY p": r"SDC050.*take one number",
}


@pytest.mark.parametrize("query", REFUSED)
def test_refused_with_a_lesson(guard: Guard, query: str) -> None:
    if "place" in query and "place" not in TYPES:
        return
    with pytest.raises(Refused, match=REFUSED[query]):
        guard.sql(query)
