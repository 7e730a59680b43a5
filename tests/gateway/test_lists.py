"""What clients of DuckDB ask about a database, through both doors: what the user may see, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served_gateway import Served
from test_flight import connected

psycopg = pytest.importorskip("psycopg")

HIDDEN = ("secrets", "answer", "record_key", "made_up")
VISIBLE = ["person_id", "region", "sex", "age", "income"]
PUBLIC = ["kinds", "numbers", "people"]
USES = {
    "person_id": "unit: count(DISTINCT person_id)", "region": "dimension: group by it, filter on it",
    "income": "measure: sum and avg",
}  # fmt: skip
OF_COLUMNS = {
    "DESCRIBE people": 0, "desc public.people": None, "SHOW people": 0, "describe main.people;": 0,
    "DESCRIBE SELECT * FROM people": 0, "PRAGMA table_info('people')": 1,
    "SELECT column_name FROM duckdb_columns() WHERE table_name = 'people' ORDER BY column_index": 0,
    "SELECT name FROM pragma_table_info('people') ORDER BY cid": 0, "SELECT * FROM (DESCRIBE people)": None,
    "SUMMARIZE people": 0, "/* of a tool */ SUMMARIZE SELECT * FROM people": 0,
}  # fmt: skip
OF_TABLES = {
    "SHOW TABLES": 0, "show tables from main": 0, "PRAGMA show_tables": 0, "SHOW ALL TABLES": 2, "DESCRIBE": 2,
    "SELECT table_name FROM duckdb_tables() ORDER BY 1": 0,
    "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('main', 'public') ORDER BY 1": 0,
}  # fmt: skip


@pytest.fixture(params=["postgres", "flight"])
def con(request: pytest.FixtureRequest, served: Served) -> Iterator[Any]:
    opened = connected(served) if request.param == "flight" else psycopg.connect(**served.options, autocommit=True)
    with opened as door:
        yield door


def rows(con: Any, query: str) -> list[tuple[Any, ...]]:
    with con.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


@pytest.mark.parametrize(("query", "place"), [item for item in OF_COLUMNS.items() if item[1] is not None])
def test_columns_are_those_that_the_user_sees(con: Any, query: str, place: int) -> None:
    found = rows(con, query)
    assert [row[place] for row in found] == VISIBLE
    assert not any(hidden in str(found) for hidden in HIDDEN)


@pytest.mark.parametrize(("query", "place"), OF_TABLES.items())
def test_tables_are_those_that_the_user_sees(con: Any, query: str, place: int) -> None:
    found = rows(con, query)
    assert [row[place] for row in found] == PUBLIC
    assert not any(hidden in str(found) for hidden in HIDDEN)


def test_what_columns_are_for(con: Any) -> None:
    found = {row[0]: row for row in rows(con, "DESCRIBE people")}
    assert found["age"][1] == "INTEGER"
    assert {name: found[name][5] for name in USES} == USES


def test_a_summary_is_made_of_the_answers_to_plain_questions(con: Any) -> None:
    of = {row[0]: row for row in rows(con, "SUMMARIZE people")}
    ((least, most, ages, mean, n),) = rows(
        con, "SELECT min(age), max(age), count(DISTINCT age), avg(income), count(*) FROM people"
    )
    assert of["age"][2:5] == (str(least), str(most), ages)
    assert (float(of["income"][5]), of["income"][10]) == (mean, n)
    assert of["income"][2:5] == (None, None, None)


def test_other_pragmas_and_settings_are_as_before(served: Served) -> None:
    with psycopg.connect(**served.options, autocommit=True) as con:
        assert con.execute("SHOW server_encoding").fetchall() == [("UTF8",)]
        assert len(con.execute("SHOW ALL").fetchall()) > 10
        for refused in ("PRAGMA database_list", "PRAGMA storage_info('people')", "PRAGMA table_info('secrets')"):
            with pytest.raises(psycopg.Error):
                con.execute(refused)
        with pytest.raises(psycopg.errors.UndefinedObject):
            con.execute("SHOW secrets")
        with pytest.raises(psycopg.errors.UndefinedTable, match="did you mean 'people'") as told:
            con.execute("DESCRIBE peple")
        assert "secrets" not in str(told.value)


def test_columns_are_told_before_the_rows(served: Served) -> None:
    """As drivers ask that prepare each statement."""
    with psycopg.connect(**served.options, autocommit=True) as con, con.cursor(binary=True) as cursor:
        for query, names in (("SHOW TABLES", ["name"]), ("PRAGMA table_info('people')", ["cid", "name", "type"])):
            cursor.execute(query, prepare=True)
            assert [column.name for column in cursor.description or []][:3] == names


def test_of_several_statements_the_refused_one_is_named(served: Served) -> None:
    with psycopg.connect(**served.options, autocommit=True) as con:
        with pytest.raises(psycopg.Error) as told:
            con.execute("SELECT 1; SELECT max(income)\n FROM people; SELECT 2")
        assert told.value.diag.message_detail.endswith("In statement 2 of 3: SELECT max(income) FROM people")
        with pytest.raises(psycopg.Error) as told:
            con.execute("SELECT 1; DROP TABLE people")
        assert told.value.diag.message_detail == "In statement 2 of 2: DROP TABLE people"
        with pytest.raises(psycopg.Error) as told:
            con.execute("SELECT max(income) FROM people")
        assert "statement" not in told.value.diag.message_detail
