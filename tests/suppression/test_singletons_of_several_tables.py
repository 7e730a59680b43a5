"""Who is alone in the crossing of several tables, and in no cell of any of them, is no singleton."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck

SETS = "(r, s), (r), (s), ()"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        # Some 4 records in a cell of r x s, of 50 ages: nearly all are alone in r x s x age.
        connection.execute("""
            CREATE TABLE people AS SELECT (i * 7919 % 10007) * (i * 31 % 1009) % 30 AS r,
                (i * 6151 % 10009) * (i * 17 % 997) % 20 AS s, (i * 104729 + i // 7 * 13) % 50 AS age
            FROM range(1, 1500) t(i)""")
        yield connection


def statuses(con: duckdb.DuckDBPyConnection, columns: str, sets: str) -> dict[tuple[bool, str], int]:
    """How many cells have each status, those of the table of ages apart."""
    found = con.execute(
        f"SELECT level = 'age', status, count(*) FROM sdc_suppress($$SELECT {columns}, count(*) AS n FROM people "
        f"GROUP BY GROUPING SETS ({sets})$$, max_count := 1, improve := false) GROUP BY ALL"
    ).fetchall()
    return {(of_ages, status): number for of_ages, status, number in found}


def test_a_further_table_of_large_cells_hides_nothing_more(con: duckdb.DuckDBPyConnection) -> None:
    alone = con.execute("SELECT count(*) FROM (SELECT r FROM people GROUP BY r, s, age HAVING count(*) = 1)").fetchall()
    assert alone[0][0] > 1000
    one_table = statuses(con, "r, s", SETS)
    assert one_table[False, "secondary"] > 20
    assert statuses(con, "r, s, age", f"{SETS}, (age)") == {**one_table, (True, "open"): 50}


def test_who_is_alone_in_a_cell_is_one_as_before(con: duckdb.DuckDBPyConnection) -> None:
    """The two singletons of a row would tell each other: a third cell of it goes, also with another table beside."""
    con.execute("""
        CREATE OR REPLACE TABLE few AS FROM (VALUES ('a', 'x', 1, 1), ('a', 'y', 1, 2), ('a', 'z', 9, 3), ('b', 'x', 9, 4),
            ('b', 'y', 9, 5), ('b', 'z', 9, 6), ('c', 'x', 9, 4), ('c', 'y', 9, 5), ('c', 'z', 9, 6)) t(r, s, n, k)""")
    con.execute("CREATE OR REPLACE TABLE few AS SELECT r, s, i % 3 AS age FROM few, range(n) u(i)")
    for sets in ("(r, s), (r)", "(r, s), (r), (age)"):
        columns = "r, s, age" if "age" in sets else "r, s"
        found = con.execute(
            f"SELECT s, status FROM sdc_suppress($$SELECT {columns}, count(*) AS n FROM few GROUP BY GROUPING SETS ({sets})$$, "
            "max_count := 1) WHERE r = 'a' AND s IS NOT NULL ORDER BY s"
        ).fetchall()
        assert found == [("x", "primary"), ("y", "primary"), ("z", "secondary")]
