"""Tables whose names need quotes, through the doors: those that were declared answer, and no other does instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served_gateway import PASSWORD, Served, start

import sdcduck
from sdcduck.quoting import identifier

psycopg = pytest.importorskip("psycopg")

PROTECTED = (
    'a"b',
    "a.b",
    "a--b",
    "?",
    "$1",
    "select",
    "tables",
    "pg_class",
    "public",
    "main.people",
    "Öl",
    "a\\b",
    "%s",
)
PUBLIC = ("p'q", "p.q", "pg_type", "register.public.secrets", "information_schema.tables", "\u212aunden")
UNNAMED = ("secrets", "people", "a", "p", "kunden", "ö l", "pg_attribute", "b")
FORMS = ("{}", "public.{}", "main.{}", "register.public.{}", '"register"."main".{}')


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Each table tells its own number as a region; nothing else of what a record holds may be seen."""
    path = tmp_path_factory.mktemp("odd") / "register.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute("CREATE SCHEMA a; CREATE TABLE a.b AS SELECT 987654 AS income, 'hidden' AS region")
    for number, name in enumerate((*PROTECTED, *PUBLIC, *UNNAMED)):
        quoted = identifier(name)
        con.execute(
            f"CREATE TABLE {quoted} AS SELECT id AS person_id, 't{number}' AS region, id % 3 AS {identifier(name + '_')}, "
            "987000 + id AS income, 'hidden' AS more FROM range(300) u(id)"
        )
        if name in PROTECTED:
            con.execute("FROM sdc_add_record_key(?, unit := 'person_id')", [quoted]).fetchall()
            con.execute(
                "FROM sdc_protect(?, unit := 'person_id', dimensions := ['region', ?], measures := ['income'])",
                [quoted, name + "_"],
            ).fetchall()
        elif name in PUBLIC:
            con.execute("FROM sdc_declare_public(?)", [quoted]).fetchall()
    con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}', role := 'analyst')").fetchall()
    con.close()
    running = start(path, path.with_name("odd"), "--flight-port", "0")
    yield running
    assert running.stop() == 0


def test_the_catalog_has_what_was_declared(odd: Served) -> None:
    with psycopg.connect(**odd.options) as con:
        asked = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        found = set(con.execute(asked).fetchall())
        named = con.execute(
            "SELECT relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'"
        )
        assert {name for (name,) in named.fetchall()} == {*PROTECTED, *PUBLIC}
    seen = {(name, column) for name in PROTECTED for column in ("person_id", "region", name + "_", "income")}
    seen |= {(name, column) for name in PUBLIC for column in ("person_id", "region", name + "_", "income", "more")}
    assert found == seen


def test_the_table_that_is_named_answers(odd: Served) -> None:
    with psycopg.connect(**odd.options, autocommit=True) as con:
        for number, name in enumerate((*PROTECTED, *PUBLIC)):
            for form in FORMS:
                table, column = form.format(identifier(name)), identifier(name + "_")
                asked = (
                    f"SELECT region, count(*) FROM {table} AS t WHERE t.{column} < ".replace("%", "%%")
                    + "%s GROUP BY region"
                )
                ((region, n),) = con.execute(asked, (2,)).fetchall()
                assert (region, 190 < n < 210) == (f"t{number}", True)


@pytest.mark.parametrize("name", [*PROTECTED, *UNNAMED])
def test_no_record_is_shown(odd: Served, name: str) -> None:
    with psycopg.connect(**odd.options, autocommit=True) as con:
        for form in (
            "SELECT income FROM {}",
            "SELECT more FROM {} LIMIT 1",
            "TABLE {}",
            "COPY (SELECT max({}.more) FROM {}) TO STDOUT",
        ):
            for table in (*(form_.format(identifier(name)) for form_ in FORMS[::2]), f"a.{identifier(name)}"):
                if name.startswith("pg_") and "public" not in table and form.startswith("TABLE"):
                    continue  # the relation of PostgreSQL's own
                with pytest.raises(psycopg.Error) as caught:
                    con.execute(form.replace("{}", table).encode())
                assert caught.value.sqlstate not in (None, "XX000")
                assert "987" not in str(caught.value)


def test_a_table_that_is_called_as_a_parameter_changes_no_types(odd: Served) -> None:
    with psycopg.connect(**odd.options) as con:
        found = con.execute(
            'SELECT person_id + %s AS a FROM "p.q" WHERE person_id < %s ORDER BY a', ("10", "2")
        ).fetchall()
    assert found == [(10,), (11,)]


@pytest.mark.parametrize("text", ["TABLE ?", "TABLE $1", "SELECT 1 ? 2"])
def test_what_no_parser_takes_is_refused_as_such(odd: Served, text: str) -> None:
    with psycopg.connect(**odd.options) as con, pytest.raises(psycopg.Error) as caught:
        con.execute(text.encode())
    assert caught.value.sqlstate == "42601"


def test_flight_has_the_same_tables(odd: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    login = {"username": "ann", "password": PASSWORD}
    with adbc.connect(f"grpc://127.0.0.1:{odd.flight}", db_kwargs=login) as con:
        objects = con.adbc_get_objects(depth="columns").read_all().to_pylist()
        tables = {
            table["table_name"]: [column["column_name"] for column in table["table_columns"]]
            for catalog in objects
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        }
        assert set(tables) == {*PROTECTED, *PUBLIC}
        for name in (*PROTECTED, *UNNAMED):
            assert "more" not in tables.get(name, [])
            with con.cursor() as cursor, pytest.raises(adbc.Error) as caught:
                cursor.execute(f"SELECT more FROM {identifier(name)}")
            assert "hidden" not in str(caught.value)
