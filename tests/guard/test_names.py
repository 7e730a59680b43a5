"""What a name means where an alias is also a column: as DuckDB answers the same text itself, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from effort import times

import sdcduck
from sdcduck.guard import Guard, Refused, guard


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Records whose protected numbers are the true ones, and the same records as a public table."""
    connection = sdcduck.connect(secret="the secret of the tests")
    connection.execute("""
        CREATE TABLE people AS SELECT i AS id, i % 7 AS a, i % 3 AS b, i % 50 AS m FROM range(1, 400) t(i);
        CREATE TABLE open AS SELECT * FROM people;
        CREATE TABLE places AS SELECT i AS b, 10 - i AS rank FROM range(3) t(i)""")
    connection.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['a', 'b'], measures := ['m'], method := 'threshold', min_units := 1)"
    ).fetchall()
    connection.execute("FROM sdc_declare_public('open')").fetchall()
    connection.execute("FROM sdc_declare_public('places')").fetchall()
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


def answer(guarded: Guard, query: str) -> list[tuple[object, ...]]:
    """Rows as they come, numbers as numbers of Python."""
    rows = zip(*(column.to_pylist() for column in guarded.sql(query).columns), strict=True)
    return [tuple(None if value is None else float(value) for value in row) for row in rows]


def by_duckdb(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]] | None:
    """What DuckDB answers to the text itself; None: it finds no meaning in it."""
    try:
        rows = con.execute(query).fetchall()
    except duckdb.Error:
        return None
    return [tuple(None if value is None else float(value) for value in row) for row in rows]


ITEMS = ["a // 3 AS a", "b AS a", "count(*) AS a", "-sum(m) AS a", "a // 3 AS z", "-a AS A"]
GROUPS = [
    "GROUP BY ALL",
    "GROUP BY 1, 2",
    "GROUP BY a, b",
    "GROUP BY b",
    "GROUP BY a // 3, b",
    "GROUP BY ROLLUP (a, b)",
]
CLAUSES = [
    "HAVING a > 1", "HAVING a + 0 > 1 AND b > 0", "HAVING z > 0", "HAVING count(*) FILTER (a > 1) > 3",
    "HAVING coalesce(count(*) FILTER (b > 0), 0) > coalesce(count(*) FILTER (a > 4), 0)", "HAVING (a) > 1",
    "QUALIFY a > 1 AND row_number() OVER (ORDER BY count(*)) > 0", "QUALIFY rank() OVER (ORDER BY a) <= 2",
    "ORDER BY a, 1, 2, 3 LIMIT 3", "ORDER BY (a), 1, 2, 3 LIMIT 3", "ORDER BY -a, 1, 2, 3 LIMIT 3",
    "ORDER BY A + 0 DESC, 1, 2, 3 LIMIT 3", "ORDER BY rank() OVER (ORDER BY a), 1, 2, 3 LIMIT 3",
    "ORDER BY CASE WHEN a > 1 THEN 0 ELSE 1 END, 1, 2, 3 LIMIT 3", "ORDER BY coalesce(count(*) FILTER (a > 1), 0), 1, 2, 3 LIMIT 3",
]  # fmt: skip


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("table", ["people", "open"])
def test_a_name_means_what_duckdb_means(
    guarded: Guard, con: duckdb.DuckDBPyConnection, table: str, clause: str
) -> None:
    first, step = CLAUSES.index(clause) + 3 * (table == "open"), times(len(GROUPS), 1)
    for number, item in enumerate(ITEMS, first):
        for group in GROUPS[number % step :: step]:
            query = f"SELECT {item}, b, count(*) AS n FROM {table} {group} {clause}"
            wanted = by_duckdb(con, query)
            try:
                found = answer(guarded, query)
            except Refused:
                continue
            # GROUP BY ALL beside QUALIFY or an expression in ORDER BY is nothing to DuckDB yet.
            assert wanted is not None or group == "GROUP BY ALL", query
            if wanted is not None:
                assert (found if clause.startswith("ORDER") else sorted(found, key=repr)) == (
                    wanted if clause.startswith("ORDER") else sorted(wanted, key=repr)
                ), query


ANSWERED = [
    "SELECT a // 3 AS a, count(*) FROM people GROUP BY 1 HAVING a > 1",
    "SELECT a // 3 AS a, count(*) FROM people GROUP BY people.a HAVING a > 1",
    "SELECT a // 3 AS a, count(*) FROM people GROUP BY 1 HAVING count(*) FILTER (a > 1) > 3",
    "SELECT a, count(*) FROM people GROUP BY ALL HAVING a > 1",
    "SELECT a, b, count(*) FROM people GROUP BY ALL HAVING a > 1 AND b + a > 2 AND count(*) > 3",
    "SELECT a // 3 AS z, count(*) AS n FROM people GROUP BY ALL HAVING n > 100",
    "SELECT b AS a, -count(*) AS b FROM people GROUP BY people.b ORDER BY -b",
    "SELECT -count(*) AS n, b FROM people GROUP BY b ORDER BY n + 0, b",
    "SELECT -a AS a, count(*) FROM (SELECT a // 2 AS a FROM people) p GROUP BY p.a ORDER BY a + 0",
    "WITH p AS (SELECT a // 2 AS a FROM people) SELECT -a AS a, count(*) FROM p GROUP BY p.a ORDER BY a + 0",
    "SELECT -rank AS rank, count(*) FROM people JOIN places USING (b) GROUP BY places.rank ORDER BY rank + 0",
    "SELECT -n AS n, a FROM (SELECT a, count(*) + a AS n FROM people GROUP BY a) ORDER BY n + 0",
    "SELECT -a AS a FROM open ORDER BY a + 0, id LIMIT 3",
    "SELECT a // 3 AS a, count(*) FROM open GROUP BY ALL HAVING a > 1",
    "SELECT -n AS n, count(*) FROM (SELECT a, count(*) + a AS n FROM people GROUP BY a) t GROUP BY t.n ORDER BY n + 0",
]


@pytest.mark.parametrize("query", ANSWERED)
def test_names_that_are_answered(guarded: Guard, con: duckdb.DuckDBPyConnection, query: str) -> None:
    found, wanted = answer(guarded, query), by_duckdb(con, query)
    assert wanted
    assert (found if "ORDER" in query else sorted(found, key=repr)) == (
        wanted if "ORDER" in query else sorted(wanted, key=repr)
    )


REFUSED = {
    # DuckDB groups by the columns of HAVING, too: there would be more groups than SELECT shows.
    "SELECT a // 3 AS a, count(*) AS n FROM people GROUP BY ALL HAVING a > 1": (
        "SDC047", "HAVING beside GROUP BY ALL groups by its columns, too: name the group keys, as in GROUP BY 1, 2"
    ),
    "SELECT a // 3 AS z, count(*) AS n FROM people GROUP BY ALL HAVING z > 1": ("SDC047", "name the group keys"),
    "SELECT count(*) AS n FROM people GROUP BY ALL HAVING b > 1": ("SDC047", "name the group keys"),
    "SELECT b AS a, count(*) FROM people GROUP BY b ORDER BY a + 0": ("SDC042", "a"),
    "SELECT a + b AS b, b, count(*) FROM people GROUP BY 1, 2 ORDER BY b": ("SDC031", "write the number of the column"),
}  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_names_that_are_refused(guarded: Guard, query: str) -> None:
    with pytest.raises(Refused) as caught:
        guarded.sql(query)
    code, words = REFUSED[query]
    assert caught.value.code == code
    assert words in str(caught.value)
