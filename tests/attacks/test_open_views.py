"""Views that are open to all: whatever function they read records or the catalog with, they show neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

SERIALIZED = "json_execute_serialized_sql(json_serialize_sql('FROM people'))"
HIDING = (
    f"FROM {SERIALIZED}",
    f"SELECT count(*) AS n FROM {SERIALIZED} WHERE income > 1000",
    "SELECT * FROM (DESCRIBE people)",
    "SELECT * FROM (SHOW people)",
    # DuckDB has no text of a plan that reads a file.
    "SELECT s.* FROM sdc.settings AS s, '{file}'",
    "SELECT t.* FROM duckdb_columns() AS t, '{file}'",
    "SELECT t.* FROM pragma_storage_info('people') AS t, '{file}'",
    "SELECT t.* FROM information_schema.columns AS t, '{file}'",
    f"SELECT t.* FROM {SERIALIZED} AS t, '{{file}}'",
    "SELECT t.* FROM between_them AS t, '{file}'",
    "SELECT t.* FROM made_by_macro() AS t, '{file}'",
    "SELECT t.* FROM elsewhere.regions_too AS t, '{file}'",
    "SELECT t.* FROM people AS t, '{file}'",
    "SELECT t.* FROM main.people AS t, '{file}'",
    "SELECT t.* FROM memory.people AS t, '{file}'",
    "SELECT t.* FROM Memory.main.people AS t, '{file}'",
    "SELECT t.* FROM Main.\"PEOPLE\" AS t, '{file}'",
    # The labels of a type that only a hidden column has.
    "SELECT enum_range(NULL::mood) AS x",
    "SELECT unnest(enum_range(NULL::mood)) AS x",
    "SELECT TRY_CAST(text AS mood) AS x FROM texts",
    "SELECT enum_code(TRY_CAST(text AS mood)) AS x FROM texts",
    "SELECT count(*) AS n FROM texts WHERE TRY_CAST(text AS mood) IS NOT NULL",
    "SELECT count(*) AS n FROM texts WHERE [text]::mood[] IS NOT NULL",
    "SELECT typeof(NULL::mood) AS x",
    "SELECT NULL::mood AS x",
    "SELECT x FROM labels_between",
    "SELECT labels_by_macro() AS x",
    "SELECT enum_range(NULL::mood) AS x FROM '{file}'",
    "SELECT t.x FROM labels_between AS t, '{file}'",
    # By sequences records are numbered, and a question would write; a plan has columns, types and numbers of rows.
    "SELECT currval('numbers') AS n",
    "SELECT region FROM regions WHERE nextval('numbers') > 0",
    "SELECT json_serialize_plan('FROM people', optimize := true) AS plan",
    "SELECT t.* FROM (SELECT nextval('numbers') AS n) AS t, '{file}'",
    "SELECT t.* FROM (SELECT planned() AS plan) AS t, '{file}'",
)
OPEN = (
    "SELECT '10'::BIT::VARCHAR AS b, region FROM regions",
    "FROM '{file}'",
    "SELECT a, r.region FROM '{file}', regions AS r",
    "FROM read_csv('{file}')",
    "FROM query('FROM regions')",
    "FROM range(3)",
    "FROM (VALUES (1), (2)) AS t(a)",
    "SELECT mood, 'big'::size AS size FROM texts WHERE kind = 'one'",
    "SELECT enum_range(kind) AS x FROM texts",
    "SELECT kind AS mood, size FROM texts, '{file}'",
)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    file = Path(tmp_path_factory.mktemp("files")) / "some.csv"
    file.write_text("a,b\n1,2\n")
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(f"""
            CREATE TYPE mood AS ENUM ('sad', 'it''s', 'very sad'); CREATE TYPE kind AS ENUM ('one', 'two');
            CREATE TYPE size AS ENUM ('big', 'small');
            CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, i % 3 AS region, i * 17 AS income,
                'hidden' AS secret, {{'deep': ['sad'::mood]}} AS said, 'one'::kind AS kind FROM range(99) _(i);
            CREATE TABLE texts AS SELECT 'sad' AS text, 'sad' AS mood, 'one'::kind AS kind, 'big'::size AS size;
            CREATE TABLE regions AS SELECT i AS region FROM range(3) _(i);
            CREATE SCHEMA elsewhere; CREATE VIEW elsewhere.regions_too AS FROM {SERIALIZED};
            CREATE VIEW regions_too AS FROM regions; CREATE SCHEMA zz; CREATE VIEW zz.regions_too AS FROM regions;
            CREATE SEQUENCE numbers; CREATE MACRO planned() AS json_serialize_plan('FROM people');
            CREATE VIEW between_them AS FROM {SERIALIZED};
            CREATE VIEW labels_between AS SELECT enum_range(NULL::mood) AS x;
            CREATE MACRO labels_by_macro() AS enum_last(NULL::mood);
            CREATE MACRO made_by_macro() AS TABLE FROM {SERIALIZED}""")
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'])"
        ).fetchall()
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        con.execute("FROM sdc_declare_public('texts')").fetchall()
        con.execute(f"SET VARIABLE file = '{file}'")
        con.execute("SELECT nextval('numbers')").fetchall()
        yield con


def named(con: duckdb.DuckDBPyConnection, view: str) -> str:
    return view.replace("{file}", con.execute("SELECT getvariable('file')").fetchall()[0][0])


@pytest.fixture(scope="module")
def one(con: duckdb.DuckDBPyConnection) -> Guard:
    """That hears of all changes."""
    return guard(con)


@pytest.mark.parametrize("view", HIDING)
def test_a_view_of_records_or_of_the_catalog_is_open_to_nobody(
    con: duckdb.DuckDBPyConnection, one: Guard, view: str
) -> None:
    con.execute(f"CREATE OR REPLACE VIEW shown AS {named(con, view)}")
    with pytest.raises(duckdb.Error, match="which is not for everybody"):
        con.execute("FROM sdc_declare_public('shown')")
    con.execute("CREATE OR REPLACE VIEW shown AS FROM regions")
    con.execute("FROM sdc_declare_public('shown')").fetchall()
    assert one.sql("FROM shown").num_rows == 3
    con.execute(f"CREATE OR REPLACE VIEW shown AS {named(con, view)}")
    for asked in (one, guard(con)):
        with pytest.raises(Refused, match="SDC060"):
            asked.sql("SELECT count(*) AS n FROM shown")
    con.execute("FROM sdc_unprotect('shown')").fetchall()


@pytest.mark.parametrize("view", OPEN)
def test_views_of_files_and_of_what_is_open_are_shown(con: duckdb.DuckDBPyConnection, view: str) -> None:
    con.execute(f"CREATE OR REPLACE VIEW shown AS {named(con, view)}")
    con.execute("FROM sdc_declare_public('shown')").fetchall()
    assert guard(con).sql("FROM shown").num_rows == len(con.execute("FROM shown").fetchall())
    con.execute("FROM sdc_unprotect('shown')").fetchall()


@pytest.mark.parametrize(
    ("view", "is_open"),
    [
        ("SELECT max(income) AS most FROM '{folder}/people.parquet'", False),
        ("FROM read_parquet('{folder}/p*.parquet')", False),
        (
            "FROM read_parquet(['{folder}/regions.parquet', '{folder}/../{name}/people.parquet'], union_by_name := true)",
            False,
        ),
        ("SELECT r.* FROM regions AS r, '{folder}/people.parquet'", False),
        ("FROM between", False),
        ("FROM '{folder}/regions.parquet'", True),
        ("FROM read_parquet('{folder}/r*.parquet')", True),
    ],
)
def test_a_view_of_the_file_that_records_are_in_is_open_to_nobody(tmp_path: Path, view: str, is_open: bool) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            f"COPY (SELECT i AS id, sdc_record_key(i) AS record_key, i % 3 AS region, i * 17 AS income FROM range(99) _(i)) TO '{tmp_path}/people.parquet'"
        )
        con.execute(f"COPY (SELECT i AS region FROM range(3) _(i)) TO '{tmp_path}/regions.parquet'")
        con.execute(f"CREATE VIEW people AS FROM '{tmp_path}/people.parquet'")
        con.execute(f"CREATE VIEW between AS SELECT income FROM read_parquet('{tmp_path}/people.parquet')")
        con.execute("CREATE TABLE regions AS FROM range(3) _(region)")
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'])"
        ).fetchall()
        con.execute(f"CREATE VIEW shown AS {view.format(folder=tmp_path, name=tmp_path.name)}")
        if is_open:
            con.execute("FROM sdc_declare_public('shown')").fetchall()
            assert guard(con).sql("FROM shown").num_rows == 3
        else:
            with pytest.raises(duckdb.Error, match=r"'shown' reads '(people|what DuckDB does not tell)', which is not"):
                con.execute("FROM sdc_declare_public('shown')")
