"""A view under a policy is what it was when it was declared, down to the macros that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.catalog import Texts
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

MADE = """
    CREATE TABLE people AS SELECT i AS id, i % 3 AS region, 'ill ' || i % 2 AS ill, i::INTEGER AS income FROM range(300) t(i);
    CREATE TABLE regions AS SELECT range AS region, 'r' || range AS name FROM range(3);
    CREATE TABLE hidden AS SELECT 4711 AS answer;
    CREATE MACRO shown_of(a, b) AS a;
    CREATE MACRO through(a, b) AS shown_of(a, b);
    CREATE MACRO "odd name"(x) AS x;
    CREATE MACRO keyed(x) AS x;
    CREATE MACRO titled(x) AS upper(x);
    CREATE MACRO unused(x) AS x;
    CREATE MACRO shift(by_all := 0) AS by_all;
    CREATE MACRO within(a, b := shift()) AS a + b;
    CREATE MACRO sdc_own(a, b) AS a;
    CREATE MACRO of_people() AS TABLE FROM people"""
VIEWS = """
    CREATE VIEW sdc_view AS SELECT id, keyed(record_key) AS record_key, region, ill, income FROM of_people();
    CREATE VIEW inner_view AS SELECT id, record_key, sdc_own(region, ill) AS region, ill, income FROM sdc_view;
    CREATE VIEW persons AS SELECT id, record_key, region, through(region, ill) AS kind, within("odd name"(income)) AS income
        FROM inner_view;
    CREATE VIEW named AS SELECT region, titled(name) AS name FROM regions;
    CREATE VIEW made_up AS SELECT 1 AS region, shown_of(1, 2) AS kind, 5 AS income"""
POLICY = (
    "FROM sdc_protect('persons', unit := 'id', dimensions := ['region', 'kind'], measures := ['income'], "
    "preview := 'made_up')"
)
COUNTS = "SELECT region, kind, count(*) AS n, sum(income) AS income FROM persons GROUP BY ALL ORDER BY ALL"
PREVIEW = "SELECT region, kind, income FROM persons LIMIT 3"
QUESTIONS = (COUNTS, PREVIEW, "FROM named")

REPLACED = [
    "CREATE OR REPLACE MACRO shown_of(a, b) AS b",
    "CREATE OR REPLACE MACRO shown_of(a, b) AS a + 1",
    "CREATE OR REPLACE MACRO shown_of(a, b) AS (SELECT answer FROM hidden)",
    "CREATE OR REPLACE MACRO through(a, b) AS b",
    "CREATE OR REPLACE MACRO through(b, a) AS shown_of(a, b)",
    'CREATE OR REPLACE MACRO "odd name"(x) AS x % 100',
    "CREATE OR REPLACE MACRO keyed(x) AS 7",
    "CREATE OR REPLACE MACRO keyed(x) AS (x + 5000) % 99999999",
    "CREATE OR REPLACE MACRO within(a, b := 7) AS a + b",
    "CREATE OR REPLACE MACRO within(a, b := 1.5) AS a + b",
    "CREATE OR REPLACE MACRO within(a) AS a + 1, (a, b) AS a + b",
    "CREATE OR REPLACE MACRO sdc_own(a, b) AS a + length(b)",
    "CREATE OR REPLACE VIEW sdc_view AS SELECT id, record_key, region, ill, 7 AS income FROM people",
    "CREATE OR REPLACE MACRO of_people() AS TABLE FROM people WHERE ill = 'ill 0'",
    "CREATE OR REPLACE VIEW inner_view AS SELECT id, record_key, region, ill, 7 AS income FROM people",
    "CREATE OR REPLACE VIEW persons AS SELECT id, record_key, region, ill AS kind, income FROM people",
    "DROP VIEW persons; CREATE TABLE persons AS SELECT id, record_key, region, ill AS kind, income FROM people",
]


def declared(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(MADE)
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(VIEWS)
    con.execute(POLICY).fetchall()
    for name in ("regions", "named"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of changes") as con:
        declared(con)
        yield con


def refused(one: Guard, question: str) -> str:
    with pytest.raises(Refused) as found:
        one.sql(question)
    return found.value.code


@pytest.mark.parametrize("change", REPLACED)
def test_what_a_protected_view_is_made_of_stays_as_it_was(con: duckdb.DuckDBPyConnection, change: str) -> None:
    one = sdcduck.open_guard(con)
    for question in QUESTIONS:
        one.sql(question)
    con.execute(change)
    for guard in (one, sdcduck.open_guard(con)):
        assert refused(guard, COUNTS) == "SDC060"
        assert refused(guard, PREVIEW) == "SDC060"
        guard.sql("FROM named")
    if "keyed" not in change:  # other record keys, or none, are refused when declared
        con.execute("CREATE OR REPLACE VIEW made_up AS SELECT region, kind, income FROM persons LIMIT 0")
        con.execute(POLICY.replace(", preview := 'made_up'", "")).fetchall()
        assert one.sql(COUNTS).num_rows >= 3


def test_other_macros_and_the_same_ones_written_anew_change_nothing(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    before = [one.sql(question) for question in QUESTIONS]
    con.execute("""
        CREATE OR REPLACE MACRO unused(x) AS x + 1; CREATE MACRO another(x) AS x;
        CREATE OR REPLACE MACRO shown_of(a, b) AS /* the same */ a;
        CREATE OR REPLACE MACRO keyed(x) AS (x);
        CREATE OR REPLACE MACRO within(aa, b := 0) AS aa + b; CREATE OR REPLACE MACRO within(a, b := 0) AS (a + b);
        INSERT INTO hidden VALUES (7)""")
    assert [one.sql(question) for question in QUESTIONS] == before


def test_functions_are_listed_once_for_all_that_a_question_needs(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To list them takes as long as a question of a table; the next question finds what is there by then."""
    of_duckdb, listed = vars(Texts)["_functions"].func, []
    counted = cached_property(lambda texts: listed.append(texts) or of_duckdb(texts))
    counted.__set_name__(Texts, "_functions")
    monkeypatch.setattr(Texts, "_functions", counted)
    one = sdcduck.open_guard(con)
    for place, question in enumerate([PREVIEW, "SELECT name FROM named", COUNTS], 1):
        one.sql(question)
        assert len(listed) == place


@pytest.mark.parametrize(
    "body", ["(SELECT max(income)::VARCHAR FROM people)", "(SELECT string_agg(kind) FROM persons)"]
)
def test_a_macro_of_a_public_view_cannot_come_to_read_records(con: duckdb.DuckDBPyConnection, body: str) -> None:
    one = sdcduck.open_guard(con)
    one.sql("FROM named")
    con.execute(f"CREATE OR REPLACE MACRO titled(x) AS {body}")
    assert refused(one, "FROM named") == "SDC060"
    assert refused(sdcduck.open_guard(con), "FROM named") == "SDC060"


@pytest.mark.parametrize("change", [REPLACED[0], REPLACED[6], REPLACED[8], REPLACED[10]])
def test_a_file_in_which_it_was_replaced_is_not_answered(tmp_path: Path, change: str) -> None:
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path, secret="a secret for the tests of changes") as con:
        declared(con)
    one = sdcduck.open_guard(path)
    before = [one.sql(question) for question in QUESTIONS]
    one.close()
    with sdcduck.connect(path) as con:  # written anew, as it is in a file
        assert [sdcduck.open_guard(con).sql(question) for question in QUESTIONS] == before
        con.execute(change)
    one = sdcduck.open_guard(path)
    assert [refused(one, question) for question in (COUNTS, PREVIEW)] == ["SDC060", "SDC060"]
    one.close()


def test_a_file_of_an_older_version_is_taken_as_it_is_when_it_is_opened_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path, secret="a secret for the tests of changes") as con:
        declared(con)
        con.execute("DELETE FROM sdc.settings WHERE starts_with(name, 'definition ') OR name = 'sql'")
    with sdcduck.connect(path) as con:
        one = sdcduck.open_guard(con)
        assert one.sql(COUNTS).num_rows == 3
        con.execute(REPLACED[0])
        assert refused(one, COUNTS) == "SDC060"


def test_another_type_of_a_parameter_is_seen(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE MACRO shown_of(a BIGINT, b) AS a")
    con.execute(POLICY).fetchall()
    one = sdcduck.open_guard(con)
    one.sql(COUNTS)
    con.execute("CREATE OR REPLACE MACRO shown_of(a BOOLEAN, b) AS a")
    assert refused(one, COUNTS) == "SDC060"


def test_a_default_value_of_our_own_macros_is_seen(con: duckdb.DuckDBPyConnection) -> None:
    """It changed counts without a word."""
    one = sdcduck.open_guard(con)
    one.sql(COUNTS)
    (text,) = con.execute(
        "SELECT macro_definition FROM duckdb_functions() WHERE function_name = 'sdc_cell_key'"
    ).fetchall()[0]
    con.execute(f"CREATE OR REPLACE MACRO sdc_cell_key(record_key, filter := true, digits := 7) AS {text}")
    with pytest.raises(SDCError, match="not those of this sdcduck"):
        sdcduck.open_guard(con)
    con.execute(POLICY).fetchall()
    assert refused(one, COUNTS) == "SDC060"


def test_a_type_of_a_parameter_of_our_own_macros_is_seen(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE MACRO _sdc_try(x) AS list_transform([0], lambda _sdc_once: TRY(x))[1]")
    sdcduck.open_guard(con)
    con.execute("CREATE OR REPLACE MACRO _sdc_try(x INTEGER) AS list_transform([0], lambda _sdc_once: TRY(x))[1]")
    with pytest.raises(SDCError, match="not those of this sdcduck"):
        sdcduck.open_guard(con)
