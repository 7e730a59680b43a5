"""Previews: made-up rows for whoever wants to see what a table looks like, and never a record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PROTECT = (
    "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'], preview := {})"
)


@contextlib.contextmanager
def declared() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute("""
            CREATE TABLE people AS
            SELECT 9000 + i AS id, 'N' AS region, (20 + i % 50)::TINYINT AS age, 7000 + i AS income FROM range(100) t(i);
            CREATE TABLE made_up AS
            SELECT 'made up' AS remark, 'S' AS region, 30 + i AS age, 100 + i AS income, 9000 + i AS id FROM range(20) t(i);
            CREATE TABLE regions AS SELECT 'N' AS region;
        """)
        connection.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        connection.execute("FROM sdc_declare_public('regions')").fetchall()
        connection.execute(PROTECT.format("'made_up'")).fetchall()
        yield connection


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with declared() as connection:
        yield connection


@pytest.fixture(scope="module")
def same() -> Iterator[Guard]:
    """For tests that change nothing."""
    with declared() as connection:
        yield guard(connection)


@pytest.fixture
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM people LIMIT 10",
        "FROM people LIMIT 10",
        "SELECT p.* FROM people AS p LIMIT 10",
        'SELECT "region", "age", "income", "id" FROM "people" LIMIT 10 OFFSET 0',
    ],
)
def test_the_preview_answers(same: Guard, query: str) -> None:
    answer = same.sql(query)
    expected = {"region": "S", "age": 30, "income": 100, "id": None}
    assert answer.num_rows == 10
    assert answer.to_pylist()[0] == {name: expected[name] for name in answer.column_names}
    assert (
        answer.schema.metadata[b"sdcduck.notice"].decode().startswith("a preview: rows of 'made_up', which are made up")
    )


def test_a_stream_says_so_too(guarded: Guard) -> None:
    reader = guarded.stream("FROM people LIMIT 3")
    assert reader.schema.metadata[b"sdcduck.notice"].decode().startswith("a preview")
    assert reader.read_all() == guarded.sql("FROM people LIMIT 3")


def test_its_columns_are_those_of_the_table(guarded: Guard) -> None:
    assert guarded.sql("FROM people LIMIT 5").schema.types == guarded.sql("FROM people LIMIT 0").schema.types
    answer = guarded.sql("SELECT age AS years, region FROM people LIMIT 3 OFFSET 18")
    assert answer.to_pylist() == [{"years": 48, "region": "S"}, {"years": 49, "region": "S"}]
    assert guarded.explain("FROM people LIMIT 5").notes[0].startswith("a preview")
    assert b"sdcduck.notice" not in (guarded.sql("SELECT count(*) FROM people LIMIT 5").schema.metadata or {})


def test_how_many_rows_a_parameter_says(guarded: Guard) -> None:
    asked = guarded.sql("SELECT age, region FROM people LIMIT $1 OFFSET $2", parameters={"1": 2, "2": 18})
    assert asked == guarded.sql("SELECT age, region FROM people LIMIT 2 OFFSET 18")
    with pytest.raises(Refused, match="SDC045"):
        guarded.sql("SELECT age, region FROM people WHERE age > $2 LIMIT $1", parameters={"1": 2, "2": 18})


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT * FROM people", "SDC040"),
        ("SELECT * FROM people WHERE age > 30 LIMIT 10", "SDC045"),
        ("SELECT * FROM people ORDER BY age LIMIT 10", "SDC045"),
        ("SELECT income * 2 AS x FROM people LIMIT 10", "SDC041"),
        ("SELECT DISTINCT income FROM people LIMIT 10", "SDC041"),
        ("SELECT remark FROM people LIMIT 10", "SDC030"),
        ("SELECT record_key FROM people LIMIT 10", "SDC030"),
        ("SELECT * FROM people JOIN regions USING (region) LIMIT 10", "SDC045"),
        ("SELECT * FROM (SELECT * FROM people) LIMIT 10", "SDC045"),
        ("SELECT * FROM (SELECT * FROM people LIMIT 10)", "SDC045"),
        ("SELECT count(*) FROM (SELECT * FROM people LIMIT 10)", "SDC045"),
        ("SELECT region FROM people LIMIT 10 UNION ALL SELECT region FROM regions", "SDC001"),
        ("SELECT * FROM people LIMIT (SELECT max(income) FROM people)", "SDC050"),
        ("SELECT * FROM people LIMIT 10%", "SDC045"),
        ("SELECT * FROM made_up LIMIT 10", "SDC020"),
    ],
)
def test_nothing_is_asked_of_a_preview(same: Guard, query: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        same.sql(query)
    assert caught.value.code == code


def test_what_cannot_be_a_preview(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE VIEW copied AS SELECT region, age, income FROM people WHERE age > 30")
    con.execute("CREATE TABLE copies AS SELECT region, age, income FROM people UNION ALL SELECT 'X', 1, 2")
    con.execute("CREATE TABLE narrow AS SELECT 'N' AS region, 3 AS age")
    for preview, message in (
        ("people", "made of the records of 'people'"),
        ("copied", "made of the records of 'people'"),
        ("copies", "are records of 'people'"),
        ("narrow", "unknown column 'income'"),
        ("nothing", "unknown table 'nothing'"),
        ("(FROM made_up)", "must name a table or view"),
    ):
        with pytest.raises(duckdb.Error) as caught:
            con.execute(PROTECT.format(f"'{preview}'")).fetchall()
        assert message in str(caught.value)
    assert guard(con).sql("FROM people LIMIT 1").num_rows == 1


@pytest.mark.parametrize("columns", ["region, age, id", "region, age, income", "*"])
def test_a_copy_of_the_records_is_no_preview(con: duckdb.DuckDBPyConnection, columns: str) -> None:
    con.execute(f"CREATE TABLE copied AS SELECT {columns} FROM people")
    protect = PROTECT if "id" not in columns else PROTECT.replace("measures := ['income'], ", "")
    if columns == "*":
        protect = PROTECT.replace("measures := ['income'], ", "")
    with pytest.raises(duckdb.Error, match="most rows of the preview 'copied' are records of 'people'"):
        con.execute(protect.format("'copied'"))


def test_a_preview_that_became_a_table_of_records_is_not_shown(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_add_record_key('made_up', unit := 'id')").fetchall()
    con.execute("FROM sdc_protect('made_up', unit := 'id', dimensions := ['region'])").fetchall()
    with pytest.raises(Refused, match="SDC045"):
        guard(con).sql("FROM people LIMIT 5")


def test_a_preview_can_be_taken_back_and_is_of_a_role(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PROTECT.format("NULL")).fetchall()
    con.execute(PROTECT.format("'made_up', role := 'guest'")).fetchall()
    with pytest.raises(Refused, match="SDC045"):
        guard(con).sql("FROM people LIMIT 5")
    assert guard(con, role="guest").sql("FROM people LIMIT 5").num_rows == 5
    assert con.execute("SELECT role, preview FROM sdc_policies() WHERE name = 'people' ORDER BY ALL").fetchall() == [
        ("", None),
        ("guest", "made_up"),
    ]


def test_the_log_tells_a_preview(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    guard(con, log=tmp_path / "log.jsonl").sql("FROM people LIMIT 5")
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert (line["verdict"], line["methods"], line["tables"], line["rows"]) == ("answered", ["preview"], ["people"], 5)


@pytest.mark.parametrize("change", ["DROP TABLE made_up", "ALTER TABLE made_up DROP COLUMN region"])
@pytest.mark.parametrize("asked_before", [False, True])
def test_a_preview_that_is_not_there_any_more(
    con: duckdb.DuckDBPyConnection, guarded: Guard, change: str, asked_before: bool
) -> None:
    question = "SELECT region FROM people LIMIT 3"
    if asked_before:
        assert guarded.sql(question).num_rows == 3
    con.execute(change)
    with pytest.raises(Refused, match=r"SDC060: .*its preview was removed or has other columns, sdc_protect"):
        guarded.sql(question)
    assert guarded.sql("SELECT count(*) AS n FROM people").num_rows == 1
    con.execute("CREATE OR REPLACE TABLE made_up AS SELECT 'W' AS region, 3 AS age, 4 AS income")
    with pytest.raises(Refused, match=r"SDC060: .*other rows"):
        guarded.sql(question)
    con.execute(PROTECT.format("'made_up'")).fetchall()
    assert guarded.sql(question).to_pylist() == [{"region": "W"}]


CHANGES = (
    "INSERT INTO made_up BY NAME SELECT region, age, income FROM people LIMIT 1",
    "UPDATE made_up SET income = (SELECT max(income) FROM people) WHERE age = 30",
    "CREATE OR REPLACE TABLE made_up AS FROM people",
    "DELETE FROM made_up",
    "DELETE FROM sdc.settings WHERE starts_with(name, 'preview')",
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("asked_before", [False, True])
def test_rows_that_came_later_are_not_shown(
    con: duckdb.DuckDBPyConnection, guarded: Guard, change: str, asked_before: bool
) -> None:
    """They may be records."""
    if asked_before:
        assert guarded.sql("FROM people LIMIT 3").num_rows == 3
    con.execute(change)
    for question in ("FROM people LIMIT 3", "SELECT region FROM people LIMIT 50"):
        with pytest.raises(
            Refused, match=r"SDC060: .*its preview has other rows than it was declared with, sdc_protect"
        ):
            guarded.sql(question)
    assert guarded.sql("SELECT count(*) AS n FROM people").num_rows == 1


def test_what_is_not_shown_of_a_preview_may_change(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    con.execute("UPDATE made_up SET remark = 'of 2026', id = NULL")
    assert guarded.sql("FROM people LIMIT 3").num_rows == 3


def test_a_file_with_a_preview(tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    with declared() as con:
        con.execute(f"ATTACH '{file}' AS kept; COPY FROM DATABASE memory TO kept; DETACH kept")
    opened = sdcduck.open_guard(file)
    for _ in range(2):
        assert opened.sql("FROM people LIMIT 3").num_rows == 3
    opened.close()
