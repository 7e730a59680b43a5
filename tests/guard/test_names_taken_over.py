"""Names that mean something else than what was declared: macros, tables that were renamed, other schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pytest
from products import each_once

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

COUNTED = "SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region ORDER BY region"
SHOWN = "SELECT region, upper(name) || '!' AS name, abs(region - 2) + 1 AS far FROM regions ORDER BY region"
ASKED: dict[str, Callable[[Guard, str], object]] = {
    "sql": lambda one, query: one.sql(query).to_pylist(),
    "stream": lambda one, query: one.stream(query).read_all().to_pylist(),
    "columns": lambda one, query: one.columns(query),
}


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    yield from of_people()


@pytest.fixture(scope="module")
def lasting() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same for tests that leave it as it was."""
    yield from of_people()


def of_people() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of names") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i AS income FROM range(900) t(i);
            CREATE TABLE regions AS SELECT range AS region, 'r' || range AS name FROM range(3);
            FROM sdc_add_record_key('people', unit := 'id');
            CREATE TABLE alike AS SELECT * REPLACE (-id AS id) FROM people;
            FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income']);
            FROM sdc_declare_public('regions');
            FROM sdc_declare_public('alike');
        """)
        yield con


MACROS = [
    "count(x) AS 7", "sum(x) AS 7", "upper(x) AS 'secret'", "abs(x) AS 7", '"||"(a, b) AS 7', '"+"(a, b) AS 7', "max(x) AS 7",
]  # fmt: skip


@pytest.fixture(scope="module")
def wanted(lasting: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], object]:
    """What is answered where there is no such macro, at each door."""
    one = sdcduck.open_guard(lasting)
    return {(door, query): ask(one, query) for door, ask in ASKED.items() for query in (COUNTED, SHOWN)}


@pytest.mark.parametrize(("macro", "door"), each_once(MACROS, list(ASKED)))
@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("query", [COUNTED, SHOWN])
def test_a_macro_of_another_connection_does_not_run_in_place_of_a_function(
    lasting: duckdb.DuckDBPyConnection,
    wanted: dict[tuple[str, str], object],
    macro: str,
    query: str,
    asked_before: bool,
    door: str,
) -> None:
    ask, one = ASKED[door], sdcduck.open_guard(lasting)
    if asked_before:
        assert ask(one, query) == wanted[door, query]
    lasting.cursor().execute(f"CREATE MACRO {macro}")
    try:
        assert ask(one, query) == wanted[door, query]
    finally:
        lasting.cursor().execute(f"DROP MACRO {macro.split('(')[0]}")


@pytest.mark.parametrize(
    "hiding",
    [
        "duckdb_functions() AS TABLE FROM system.main.duckdb_functions() WHERE function_name NOT IN ('upper', 'duckdb_functions')",
        "lower(s) AS CASE WHEN s IN ('upper', 'lower') THEN random()::VARCHAR ELSE system.main.lower(s) END",
    ],
)
def test_a_macro_does_not_hide_another_one(con: duckdb.DuckDBPyConnection, hiding: str) -> None:
    con.execute(f"CREATE MACRO upper(x) AS 'secret'; CREATE MACRO {hiding}")
    with pytest.raises(SDCError, match="would run in place of DuckDB's function of that name"):
        sdcduck.open_guard(con)


def test_records_are_not_judged_by_a_macro(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    one.sql(COUNTED)
    con.execute("CREATE MACRO min(x) AS 1; CREATE MACRO max(x) AS 1")  # by which keys of a unit would be compared
    con.execute("INSERT INTO people SELECT id, region, income, (record_key + 1) % 1000000 FROM people WHERE id = 7")
    with pytest.raises(Refused, match=r"SDC060: .*a macro has the name of a function of DuckDB, DROP MACRO"):
        one.sql(COUNTED)
    con.execute("DROP MACRO min; DROP MACRO max")
    with pytest.raises(Refused, match=r"SDC060: .*\(people\)"):
        one.sql(COUNTED)


@pytest.mark.parametrize("door", ASKED)
@pytest.mark.parametrize("asked_before", [True, False])
def test_a_public_name_is_not_that_of_the_records_after_they_were_renamed(
    con: duckdb.DuckDBPyConnection, asked_before: bool, door: str
) -> None:
    ask, one = ASKED[door], sdcduck.open_guard(con)
    if asked_before:
        ask(one, "FROM alike")
        ask(one, COUNTED)
    swap = "ALTER TABLE {0} RENAME TO aside; ALTER TABLE {1} RENAME TO {0}; ALTER TABLE aside RENAME TO {1}"
    con.cursor().execute(swap.format("people", "alike"))  # the same columns
    for query, name, first in (("FROM alike", "alike", "people"), (COUNTED, "people", "alike")):
        with pytest.raises(Refused, match=f"SDC060: .*{name}: another table has this name now") as refused:
            ask(one, query)
        assert first not in str(refused.value)
    ask(one, "FROM regions")
    con.cursor().execute(swap.format("people", "alike"))
    ask(one, "FROM alike")
    ask(one, COUNTED)


@pytest.mark.parametrize("left", ["", "ALTER TABLE regions_before RENAME TO people"])
def test_a_guard_made_later_does_not_show_the_records_under_a_public_name(
    con: duckdb.DuckDBPyConnection, left: str
) -> None:
    con.execute(f"ALTER TABLE regions RENAME TO regions_before; ALTER TABLE people RENAME TO regions; {left}")
    one = sdcduck.open_guard(con)
    for query in ("FROM regions", "SELECT region FROM regions", "SELECT count(*) AS n FROM regions"):
        with pytest.raises(Refused, match=r"SDC060: .*regions: it has the columns of people, which has them no more"):
            one.sql(query)
    con.execute("ALTER TABLE regions RENAME TO away")
    con.execute("CREATE OR REPLACE TABLE regions AS SELECT 1 AS region")
    assert sdcduck.open_guard(con).sql("FROM regions").to_pylist() == [{"region": 1}]


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_public_view_does_not_show_the_records_that_took_the_name_of_what_it_reads(
    con: duckdb.DuckDBPyConnection, asked_before: bool
) -> None:
    con.execute("CREATE TABLE opened AS SELECT 5::BIGINT AS income; CREATE VIEW shown AS SELECT income FROM opened")
    con.execute("FROM sdc_declare_public('shown')")
    one, asked = sdcduck.open_guard(con), "SELECT max(income) AS m FROM shown"
    if asked_before:
        assert one.sql(asked).to_pylist() == [{"m": 5}]
    con.cursor().execute("ALTER TABLE opened RENAME TO aside; ALTER TABLE people RENAME TO opened")
    for guarded in (one, sdcduck.open_guard(con)):
        with pytest.raises(Refused, match=r"SDC060: .*\(shown: ") as refused:
            guarded.sql(asked)
        assert "opened" not in str(refused.value)
    con.cursor().execute("ALTER TABLE opened RENAME TO people; ALTER TABLE regions RENAME TO opened")
    con.cursor().execute("CREATE OR REPLACE VIEW shown AS SELECT region AS income FROM opened")
    assert one.sql(asked).to_pylist() == [{"m": 2}]  # which was public before


def test_the_records_behind_a_view_are_not_shown_under_a_public_name(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE raw AS SELECT id AS pid, record_key, region AS k, income AS euros FROM people;
        CREATE VIEW seen AS SELECT pid AS id, record_key, k AS region, euros AS income FROM raw;
        FROM sdc_protect('seen', unit := 'id', dimensions := ['region'], measures := ['income']);
        ALTER TABLE regions RENAME TO aside; ALTER TABLE raw RENAME TO regions;
    """)
    with pytest.raises(Refused, match=r"SDC060: .*regions: it has the columns of seen, which has them no more"):
        sdcduck.open_guard(con).sql("SELECT max(pid) AS m FROM regions")


def test_tables_that_are_made_anew_or_changed_are_answered(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    one.sql("FROM regions")
    con.execute("CREATE OR REPLACE TABLE regions AS SELECT 1 AS region, 'new' AS name")
    assert one.sql("SELECT name FROM regions").to_pylist() == [{"name": "new"}]
    con.execute(
        "ALTER TABLE regions ADD COLUMN other INTEGER; DROP TABLE regions; CREATE TABLE regions AS SELECT 2 AS a"
    )
    assert one.sql("FROM regions").to_pylist() == [{"a": 2}]


@pytest.mark.parametrize("use", ["USE other", "USE elsewhere", "SET search_path = 'other,main'"])
@pytest.mark.parametrize(
    "declare", ["sdc_declare_public('info')", "sdc_protect('info', unit := 'id', dimensions := ['a'])"]
)
def test_a_name_is_declared_where_it_means_the_table_of_the_main_schema(
    con: duckdb.DuckDBPyConnection, use: str, declare: str
) -> None:
    con.execute("""
        ATTACH ':memory:' AS elsewhere; CREATE SCHEMA other;
        CREATE TABLE info AS SELECT range AS id, range % 2 AS a FROM range(90);
        FROM sdc_add_record_key('info', unit := 'id');
        CREATE TABLE other.info AS SELECT 1 AS id, 'open' AS a, 5 AS record_key;
        CREATE TABLE elsewhere.info AS FROM other.info;
    """)
    con.execute(use)
    sdcduck.install(con)  # there is none of its functions in another database
    with pytest.raises(duckdb.Error, match=r'USE "memory"\."main" first; for a table of another schema make a view'):
        con.execute(f"FROM {declare}")
    with pytest.raises(Refused, match="SDC020"):
        sdcduck.open_guard(con).sql("SELECT count(*) AS n FROM info")
    con.execute("USE memory.main")
    con.execute(f"FROM {declare}")
    assert len(sdcduck.open_guard(con).sql("SELECT count(*) AS n FROM info")) == 1
