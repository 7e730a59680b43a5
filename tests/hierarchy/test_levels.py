"""(child, parent) tables as level columns: complete partitions at every level, and clear words for what is no tree."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest


def levels(con: duckdb.DuckDBPyConnection, pairs: str, arguments: str = "") -> list[tuple[Any, ...]]:
    con.execute(f"CREATE OR REPLACE TABLE geo AS SELECT * FROM (VALUES {pairs}) geo(child, parent)")
    return con.execute(f"FROM sdc_levels('geo'{arguments})").fetchall()


def test_a_leaf_has_every_code_above_it(con: duckdb.DuckDBPyConnection) -> None:
    pairs = "('m1', 'c1'), ('m2', 'c1'), ('m3', 'c2'), ('c1', 'land'), ('c2', 'land')"
    assert levels(con, pairs) == [
        ("m1", "land", "c1", "m1"),
        ("m2", "land", "c1", "m2"),
        ("m3", "land", "c2", "m3"),
    ]
    assert [column[0] for column in con.execute("FROM sdc_levels('geo', prefix := 'geo')").description or ()] == [
        "code", "geo1", "geo2", "geo3",
    ]  # fmt: skip


def test_a_leaf_higher_up_repeats_itself_downwards(con: duckdb.DuckDBPyConnection) -> None:
    assert levels(con, "('a', 'top'), ('b', 'top'), ('b1', 'b'), ('alone', NULL)") == [
        ("alone", "alone", "alone", "alone"),
        ("a", "top", "a", "a"),
        ("b1", "top", "b", "b1"),
    ]


def test_every_level_is_a_partition_of_the_records(con: duckdb.DuckDBPyConnection) -> None:
    draw = random.Random(7)
    for size in (1, 5, 40, 300):
        parents = {f"n{k}": (f"n{draw.randrange(k)}" if k > 2 else None) for k in range(size)}
        con.execute("CREATE OR REPLACE TABLE geo (child VARCHAR, parent VARCHAR)")
        con.executemany("INSERT INTO geo VALUES (?, ?)", [list(pair) for pair in parents.items()])
        rows = con.execute("FROM sdc_levels('geo')").fetchall()
        assert {row[0] for row in rows} == set(parents) - set(parents.values())
        for code, *path in rows:
            up = [code]
            while parents[up[0]] is not None:
                up.insert(0, str(parents[up[0]]))
            assert path == up + [code] * (len(path) - len(up))


def test_the_codes_keep_their_type(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE numbers AS SELECT 11::SMALLINT AS child, 1::BIGINT AS parent")
    described = con.execute("DESCRIBE FROM sdc_levels('numbers')").fetchall()
    assert [(row[0], row[1]) for row in described] == [("code", "BIGINT"), ("level_1", "BIGINT"), ("level_2", "BIGINT")]
    assert con.execute("FROM sdc_levels('numbers')").fetchall() == [(11, 1, 11)]


def test_identical_rows_count_once_and_the_order_of_rows_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    once = levels(con, "('a', 'x'), ('b', 'x'), ('c', 'y')")
    assert levels(con, "('c', 'y'), ('a', 'x'), ('b', 'x'), ('a', 'x'), ('c', 'y')") == once


def test_an_empty_table_gives_an_empty_result_with_its_columns(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE nothing (child VARCHAR, parent VARCHAR)")
    result = con.execute("FROM sdc_levels('nothing')")
    assert [column[0] for column in result.description or ()] == ["code", "level_1"]
    assert result.fetchall() == []


def test_other_columns_and_queries_will_do(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""CREATE TABLE "my geo" AS SELECT 'a' AS "the code", 'top' AS above""")
    assert con.execute("FROM sdc_levels('my geo', child := 'The Code', parent := 'above')").fetchall() == [
        ("a", "top", "a")
    ]
    query = "(SELECT unnest([''a'', ''b'']) AS child, ''top'' AS parent)"
    assert con.execute(f"FROM sdc_levels('{query}')").fetchall() == [("a", "top", "a"), ("b", "top", "b")]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("('a', 'b'), ('b', 'a')", "2 codes in 'geo' are each on or below a cycle of parents"),
        ("('a', 'b'), ('b', 'a'), ('x', 'a'), ('m', 'c')", "3 codes in 'geo' are each on or below a cycle"),
        ("('a', 'x'), ('a', 'y')", "one code in 'geo' has two parents or more; groupings that overlap"),
        ("('a', 'x'), ('a', NULL), ('b', 'x'), ('b', 'y')", "2 codes in 'geo' have two parents or more"),
        ("('a', 'x'), (NULL, 'x')", "the child is NULL in 'geo'; a code at the top has the parent NULL, or no row"),
        ("('a', 'a')", "one code in 'geo' is a parent of itself"),
        ("('a', 'x'), ('x', 'x')", "one code in 'geo' is a parent of itself"),
    ],
)
def test_what_is_no_tree_is_refused(con: duckdb.DuckDBPyConnection, pairs: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=f"sdc_levels: {message}"):
        levels(con, pairs)


def test_wrong_arguments(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE geo AS SELECT 'a' AS child, 'x' AS parent")
    for call, message in (
        ("'geo', child := 'chidl'", "unknown column 'chidl' in 'geo'; did you mean 'child'"),
        ("'geo', parent := NULL", "argument 'parent' must name a column"),
        ("'gea'", "unknown table 'gea'; did you mean 'geo'"),
        ("NULL", "argument 'source' must name a table"),
        ("'geo', prefix := NULL", "argument 'prefix'"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM sdc_levels({call})")


def test_a_tree_may_have_a_hundred_levels_and_no_more(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE chain AS SELECT i AS child, i - 1 AS parent FROM range(1, 100) t(i)")
    [row] = con.execute("FROM sdc_levels('chain')").fetchall()
    assert row == (99, *range(100))
    con.execute("INSERT INTO chain VALUES (100, 99)")
    with pytest.raises(duckdb.Error, match="the hierarchy in 'chain' has more than 100 levels"):
        con.execute("FROM sdc_levels('chain')")


def test_a_tree_that_grows_deeper_after_the_statement_was_prepared_is_noticed(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE geo AS SELECT 'a' AS child, 'x' AS parent")
    con.execute("PREPARE tree AS FROM sdc_levels('geo')")
    con.execute("INSERT INTO geo VALUES ('b', 'x')")
    assert con.execute("EXECUTE tree").fetchall() == [("a", "x", "a"), ("b", "x", "b")]
    con.execute("INSERT INTO geo VALUES ('b1', 'b')")
    # DuckDB 2.0 binds the statement again, 1.5 does not.
    if duckdb.__version__ >= "2":
        assert con.execute("EXECUTE tree").fetchall() == [("a", "x", "a", "a"), ("b1", "x", "b", "b1")]
    else:
        with pytest.raises(duckdb.Error, match="became deeper since the statement was prepared"):
            con.execute("EXECUTE tree").fetchall()


def test_a_large_tree(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE tree AS SELECT i AS child, i // 10 AS parent FROM range(10, 200000) t(i)")
    count = con.execute(
        "SELECT count(*), count(DISTINCT level_2) FROM sdc_levels('tree') WHERE level_2 < 100"
    ).fetchone()
    assert count == (180000, 90)


PUBLICATION = """
    SELECT h.level_1 AS region, h.level_2 AS county, h.level_3 AS municipality, count(*) AS n
    FROM people JOIN sdc_levels('geo') h ON people.municipality = h.code
    GROUP BY GROUPING SETS ((region, county, municipality), (region, county), (region), ())"""


def test_a_publication_over_levels_is_suppressed_as_one_table(con: duckdb.DuckDBPyConnection) -> None:
    levels(con, "('a1', 'a'), ('a2', 'a'), ('b1', 'b'), ('b2', 'b'), ('a', 'N'), ('b', 'N'), ('s', NULL)")
    con.execute(
        "CREATE TABLE people AS SELECT municipality FROM (VALUES ('a1', 1), ('a2', 7), ('b1', 5), ('b2', 6), ('s', 9)) "
        "t(municipality, n), range(n)"
    )
    rows = con.execute(
        f"SELECT region, county, municipality, n, status FROM sdc_suppress($${PUBLICATION}$$, max_count := 2)"
    ).fetchall()
    assert {row[:3]: row[4] for row in rows if row[3] is None} == {
        ("N", "a", "a1"): "primary",
        ("N", "a", "a2"): "secondary",
    }
    assert {row[3] for row in rows if row[0] == "s"} == {9}  # one cell at three levels


def test_reading_a_publication_over_levels_of_a_file(con: duckdb.DuckDBPyConnection, tmp_path: Any) -> None:
    (tmp_path / "geo.hrc").write_text("N\n@a\n@@a1\n@@a2\n@b\n@@b1\ns\n")
    assert con.execute(f"FROM sdc_levels('(FROM sdc_read_hrc(''{tmp_path}/geo.hrc''))')").fetchall() == [
        ("a1", "N", "a", "a1"),
        ("a2", "N", "a", "a2"),
        ("b1", "N", "b", "b1"),
        ("s", "s", "s", "s"),
    ]
