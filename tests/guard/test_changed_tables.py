"""A question that was asked before is answered, or refused, as if it were asked for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from products import each_once

import sdcduck
from sdcduck.guard import Guard, Refused

JOINED = "SELECT name, count(*) AS n FROM people JOIN regions USING (region) GROUP BY name ORDER BY name"
EARNED = "SELECT region, sum(income) AS income FROM people GROUP BY region ORDER BY region"
QUESTIONS = (
    "FROM regions",
    "FROM regions LIMIT 0",
    "FROM shown",
    JOINED,
    EARNED,
    "SELECT DISTINCT region FROM people ORDER BY region",
)


def declared(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i::INTEGER AS income FROM range(900) t(i);
        CREATE TABLE regions AS SELECT range AS region, 'r' || range AS name FROM range(3);
        CREATE VIEW shown AS FROM regions;
        FROM sdc_add_record_key('people', unit := 'id');
        FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income']);
        FROM sdc_declare_public('regions');
        FROM sdc_declare_public('shown');
    """)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of changes") as con:
        declared(con)
        yield con


def _asked(one: Guard, question: str) -> object:
    answer = one.sql(question)
    return answer.schema, answer.to_pylist()


def _streamed(one: Guard, question: str) -> object:
    answer = one.stream(question).read_all()
    return answer.schema, answer.to_pylist()


def _of_columns(one: Guard, question: str) -> object:
    return one.columns(question)


def outcome(ask: Callable[[Guard, str], object], one: Guard, question: str) -> object:
    try:
        return ask(one, question)
    except Refused as refused:
        return str(refused)


CHANGES = [
    "DROP TABLE regions",
    "ALTER TABLE regions RENAME name TO title",
    "ALTER TABLE regions ALTER region TYPE VARCHAR",
    "ALTER TABLE regions ADD COLUMN area INTEGER DEFAULT 7",
    "CREATE OR REPLACE TABLE regions AS SELECT range AS region, range AS name FROM range(3)",
    "ALTER TABLE regions RENAME TO places; CREATE VIEW regions AS SELECT name, region FROM places",
    "DROP VIEW shown",
    "ALTER TABLE people ALTER income TYPE DOUBLE",
    "ALTER TABLE people ALTER region TYPE VARCHAR",
    "ALTER TABLE people DROP income",
    "DROP TABLE people",
]


@pytest.mark.parametrize(
    ("change", "ask"),
    each_once(CHANGES, [_asked, _streamed, _of_columns]),
    ids=lambda value: value if isinstance(value, str) else value.__name__.strip("_"),
)
def test_what_is_remembered_makes_no_difference(
    con: duckdb.DuckDBPyConnection, change: str, ask: Callable[[Guard, str], object]
) -> None:
    one = sdcduck.open_guard(con)
    for question in QUESTIONS:
        ask(one, question)
    con.execute(change)
    other = sdcduck.open_guard(con)
    fresh = [outcome(ask, other, question) for question in QUESTIONS]
    for _ in range(2):
        assert [outcome(ask, one, question) for question in QUESTIONS] == fresh
    assert not any("SDC090" in str(found) for found in fresh)


@pytest.mark.parametrize("question", ["FROM regions", "FROM regions LIMIT 0", JOINED])
def test_a_public_table_that_was_removed_is_named(con: duckdb.DuckDBPyConnection, question: str) -> None:
    one = sdcduck.open_guard(con)
    one.sql(question)
    con.execute("DROP TABLE regions")
    with pytest.raises(Refused, match=r"SDC060: .*\(regions: the table was removed\)"):
        one.sql(question)
    assert one.sql(EARNED).num_rows == 3
    con.execute("CREATE TABLE regions AS SELECT range AS region, 'r' || range AS name FROM range(3)")
    assert one.sql(question).column_names[-1] in ("name", "n")


def test_a_table_that_became_a_view_is_joined_as_a_view(con: duckdb.DuckDBPyConnection) -> None:
    """An expression of a view may fail, and must not do so for single records."""
    one = sdcduck.open_guard(con)
    before = one.rewrite(JOINED)
    con.execute("ALTER TABLE regions RENAME TO places; CREATE VIEW regions AS SELECT region, name FROM places")
    after = one.rewrite(JOINED)
    assert before != after == sdcduck.open_guard(con).rewrite(JOINED)


def test_a_file_that_was_replaced_is_answered_as_it_was(tmp_path: Path) -> None:
    """The guard holds the file that it opened: a new one in its place is for a guard that opens it anew."""
    path, other = tmp_path / "some.duckdb", tmp_path / "other.duckdb"
    with sdcduck.connect(path, secret="a secret for the tests of changes") as con:
        declared(con)
    with sdcduck.connect(other, secret="a secret for the tests of changes") as con:
        declared(con)
        con.execute("DROP VIEW shown; DROP TABLE regions")
    one = sdcduck.open_guard(path)
    before = [outcome(_asked, one, question) for question in QUESTIONS]
    other.replace(path)
    assert [outcome(_asked, one, question) for question in QUESTIONS] == before
    one.close()
    with pytest.raises(Refused, match="the table was removed"):
        sdcduck.open_guard(path).sql("FROM regions")
