"""Random rounding to a base: a p-table like others, whose last rows serve larger counts in turn."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck
from sdcduck.guard import guard

KEYS = "(SELECT k * 5000 + 1234 AS key FROM range(20000) keys(k))"  # evenly over all keys


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = sdcduck.connect(secret="the secret of the tests")
    for base in (2, 3, 5, 100):
        made.execute(f"FROM sdc_store_ptable('to {base}', '(FROM sdc_rounding_ptable({base}))')").fetchall()
    return made


@pytest.mark.parametrize("base", [2, 3, 5, 100])
def test_counts_become_multiples_without_bias(con: duckdb.DuckDBPyConnection, base: int) -> None:
    rows = con.execute(
        f"""SELECT n, list_sort(list(DISTINCT rounded)), avg(rounded)
        FROM (SELECT n, sdc_ckm_count(n, key, ptable := 'to {base}') AS rounded FROM range({3 * base + 2}) t(n), {KEYS})
        GROUP BY n ORDER BY n"""
    ).fetchall()
    assert len(rows) == 3 * base + 2
    for n, values, mean in rows:
        below = n // base * base
        assert values == ([n] if n == below else [below, below + base]), n
        assert mean == pytest.approx(n, abs=base * 0.01)


def test_the_share_that_is_rounded_up(con: duckdb.DuckDBPyConnection) -> None:
    # By hand: of 10^8 keys the lower 2/3 take 1 to 0, and the lower 1/3 take 2 to 0; the rest become 3.
    asked = "SELECT " + ", ".join(
        f"sdc_ckm_count({n}, {key}, ptable := 'to 3')"
        for n, key in ((1, 66666666), (1, 66666667), (2, 33333332), (2, 33333333), (7, 66666666), (7, 66666667))
    )
    assert con.execute(asked).fetchall() == [(0, 3, 0, 3, 6, 9)]


def test_the_columns(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute("SELECT i, j, v, repeat, p FROM sdc_rounding_ptable(3)").fetchall()
    assert [row[:4] for row in rows] == [(0, 0, 0, 3), (1, 0, -1, 3), (1, 3, 2, 3), (2, 0, -2, 3), (2, 3, 1, 3), (3, 3, 0, 3)]  # fmt: skip
    assert [row[4] for row in rows] == pytest.approx([1, 2 / 3, 1 / 3, 1 / 3, 2 / 3, 1])
    assert con.execute("FROM sdc_rounding_ptable()").fetchall() == con.execute("FROM sdc_rounding_ptable(3)").fetchall()
    checked = con.execute("SELECT i, round(p_var, 6), ok FROM sdc_ptable_check('to 3')").fetchall()
    assert checked == [(0, 0, True), (1, 2, True), (2, 2, True), (3, 0, True)]


@pytest.mark.parametrize("base", ["1", "0", "-3", "2.5", "101", "NULL"])
def test_no_base(con: duckdb.DuckDBPyConnection, base: str) -> None:
    with pytest.raises(duckdb.Error, match="base must be a whole number from 2 to 100"):
        con.execute(f"FROM sdc_rounding_ptable({base})").fetchall()


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT * REPLACE (0 AS repeat) FROM sdc_rounding_ptable(3))",
        "(SELECT * REPLACE (4 AS repeat) FROM sdc_rounding_ptable(3))",
        "(SELECT * REPLACE (1.5 AS repeat) FROM sdc_rounding_ptable(3))",
        "(SELECT * REPLACE (1 + i % 2 AS repeat) FROM sdc_rounding_ptable(3))",
        "(SELECT *, 2 AS repeat FROM sdc_ptable(kind := ''magnitudes'', D := 5, V := 1, icat := [1, 5]))",
    ],
)
def test_no_rows_to_repeat(con: duckdb.DuckDBPyConnection, source: str) -> None:
    with pytest.raises(duckdb.Error, match="repeat must be one whole number everywhere"):
        con.execute(f"FROM sdc_store_ptable('wrong', '{source}')").fetchall()
    with pytest.raises(duckdb.Error, match="the values of column 'repeat' must be numbers"):
        con.execute(
            "FROM sdc_store_ptable('wrong', '(SELECT * REPLACE (NULL AS repeat) FROM sdc_rounding_ptable(3))')"
        ).fetchall()


def test_one_may_repeat(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_store_ptable('once', '(SELECT *, 1 AS repeat FROM sdc_ptable(D := 2, V := 1))')").fetchall()
    con.execute("FROM sdc_store_ptable('plain', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
    assert con.execute(
        f"""SELECT count(*) FILTER (sdc_ckm_count(n, key, ptable := 'once') <> sdc_ckm_count(n, key, ptable := 'plain'))
        FROM range(20) t(n), {KEYS}"""
    ).fetchall() == [(0,)]


def test_the_guard_rounds(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT i AS id, i % 7 AS region, i % 11 AS age FROM range(500) t(i)")
    con.execute("ALTER TABLE people ADD COLUMN record_key INTEGER")
    con.execute("UPDATE people SET record_key = sdc_record_key(id)")
    con.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], method := 'cell_key', ptable := 'to 3')"
    ).fetchall()
    asked = guard(con)
    rows = asked.sql("SELECT region, age, count(*) AS n FROM people GROUP BY CUBE (region, age)").to_pylist()
    assert {row["n"] % 3 for row in rows} == {0}
    assert {row["n"] for row in rows if None not in (row["region"], row["age"])} == {6, 9}
    # The same people, however they are chosen.
    (again,) = asked.sql("SELECT count(*) AS n FROM people WHERE region = 2 AND age < 1").to_pylist()
    assert again["n"] == next(row["n"] for row in rows if (row["region"], row["age"]) == (2, 0))
