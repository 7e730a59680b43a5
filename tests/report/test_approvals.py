"""Who approved what leaves the house: an approval is of numbers, not of a name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET

QUERY = "SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("house") / "house.duckdb"
    with sdcduck.connect(path, secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        con.execute(f"FROM sdc_publish('by_region', '{QUERY}', max_count := 1)").fetchall()
        con.execute(f"FROM sdc_publication('only_a_draft', '{QUERY}')").fetchall()
        con.execute("CREATE TABLE \"it's\" AS SELECT 'N' AS region, 3 AS n UNION ALL SELECT NULL, 9")
        con.execute("COMMENT ON TABLE \"it's\" IS 'Release: midpoint rounding'")
    return path


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path))


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


def test_what_is_to_leave_is_listed_and_approved(file: Path) -> None:
    with sdcduck.connect(file) as con:
        listed = rows(con, "SELECT name, kind, cells, approved_by, current FROM sdc_releases()")
        assert listed == [("by_region", "publication", 12, None, None), ("it's", "table", 2, None, None)]
        assert rows(con, "SELECT name, approved_by, cells FROM sdc_approve('BY_REGION', ' Ann  Lee')") == [
            ("by_region", "Ann Lee", 12)
        ]
        con.execute("FROM sdc_approve('it''s', 'Bob', note := ' board ')").fetchall()
    with sdcduck.connect(file, read_only=True) as con:  # it is stored
        listed = rows(con, "SELECT name, approved_by, note, current FROM sdc_releases()")
        assert listed == [("by_region", "Ann Lee", None, True), ("it's", "Bob", "board", True)]
        with pytest.raises(duckdb.Error, match="open for reading only"):
            con.execute("FROM sdc_approve('by_region', 'Ann')")


def test_other_numbers_are_not_approved_and_those_in_another_order_are(file: Path) -> None:
    with sdcduck.connect(file) as con:
        con.execute("FROM sdc_approve('it''s', 'Bob')").fetchall()
        [(seen,)] = rows(con, "SELECT fingerprint FROM sdc_releases() WHERE kind = 'table'")
        con.execute('CREATE TABLE turned AS FROM "it\'s" ORDER BY n DESC')
        con.execute('DROP TABLE "it\'s"; ALTER TABLE turned RENAME TO "it\'s"')
        con.execute("COMMENT ON TABLE \"it's\" IS 'Release: in another order'")
        assert rows(con, "SELECT current FROM sdc_releases() WHERE kind = 'table'") == [(True,)]
        con.execute('UPDATE "it\'s" SET n = 4 WHERE n = 3')
        assert rows(con, "SELECT current FROM sdc_releases() WHERE kind = 'table'") == [(False,)]
        with pytest.raises(duckdb.Error, match="other numbers than those that were looked at"):
            con.execute(f"FROM sdc_approve('it''s', 'Ann', fingerprint := '{seen}')").fetchall()
        con.execute("FROM sdc_approve('it''s', 'Ann')").fetchall()
        listed = rows(con, "SELECT approved_by, current FROM sdc_releases() WHERE kind = 'table'")
        assert listed == [("Bob", False), ("Ann", True)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("sdc_approve('by_regoin', 'Ann')", "unknown release 'by_regoin'; did you mean 'by_region'"),
        ("sdc_approve('people', 'Ann')", "unknown release 'people'"),
        ("sdc_approve('only_a_draft', 'Ann')", "unknown release"),
        ("sdc_approve(NULL, 'Ann')", "unknown release"),
        ("sdc_approve('by_region', '  ')", "'approved_by' must name a person"),
        ("sdc_approve('by_region', NULL)", "'approved_by' must name a person"),
        ("sdc_approve('by_region', 'Аnn')", "plain letters"),
    ],
)
def test_what_cannot_be_approved(file: Path, call: str, words: str) -> None:
    with sdcduck.connect(file) as con, pytest.raises(duckdb.Error, match=words):
        con.execute(f"FROM {call}")
    with sdcduck.connect(file) as con:
        assert rows(con, "SELECT count(approved_by) FROM sdc_releases()") == [(0,)]


def test_a_publication_and_a_table_of_one_name_are_told_apart_by_nobody(file: Path) -> None:
    with sdcduck.connect(file) as con:
        con.execute("CREATE TABLE by_region AS SELECT 1 AS n; COMMENT ON TABLE by_region IS 'Release: rounded'")
        with pytest.raises(duckdb.Error, match="a publication and a table 'by_region'"):
            con.execute("FROM sdc_approve('by_region', 'Ann')")


@pytest.mark.parametrize("column", ["r", "_row", "_ROW"])
def test_a_column_is_never_taken_for_all_of_them(column: str) -> None:
    with sdcduck.connect() as con:
        con.execute(f"CREATE TABLE rates AS SELECT 1 AS {column}, 1 AS _row_, 3 AS n")
        con.execute("COMMENT ON TABLE rates IS 'Release: rounded'")
        con.execute("FROM sdc_approve('rates', 'Ann')").fetchall()
        con.execute("UPDATE rates SET n = 4")
        assert rows(con, "SELECT current FROM sdc_releases()") == [(False,)]
