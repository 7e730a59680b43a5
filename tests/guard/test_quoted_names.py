"""Tables whose names need quotes are protected like any other."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("my table", "my table"), ("my table", '"my table"'), ("My Table", '"my table"'), ("my.table", '"my.table"'),
        ("my.table", "my.table"), ("it's", "it's"), ('a"b', '"a""b"'), ("select", '"select"'),
    ],
)  # fmt: skip
def test_a_name_in_quotes_is_a_name(name: str, argument: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    with sdcduck.connect(secret="the secret of the tests") as con:
        for table in (quoted, "plain"):
            con.execute(
                f"CREATE TABLE {table} AS SELECT id AS person_id, ['N', 'S'][1 + id % 2] AS region, id AS income FROM range(300) u(id)"
            )
        answers: list[list[tuple[object, ...]]] = []
        guard: Guard | None = None
        for table, told in ((quoted, argument), ("plain", "plain")):
            con.execute("FROM sdc_add_record_key(?, unit := 'person_id')", [told]).fetchall()
            con.execute(
                "FROM sdc_protect(?, unit := 'person_id', dimensions := ['region'], measures := ['income'])", [told]
            ).fetchall()
            asked = f"SELECT t.region, count(*), sum(income) FROM {table} AS t GROUP BY ALL ORDER BY ALL"
            guard = guard or sdcduck.open_guard(con)
            answers.append([tuple(row.values()) for row in guard.sql(asked).to_pylist()])
            with pytest.raises(Refused, match="SDC040"):
                guard.sql(f"SELECT income FROM {table}")
        assert guard is not None
        assert answers[0] == answers[1]
        con.execute("FROM sdc_unprotect(?)", [argument]).fetchall()
        with pytest.raises(Refused, match="SDC020"):
            guard.sql(f"SELECT count(*) FROM {quoted}")
        con.execute("FROM sdc_declare_public(?)", [argument]).fetchall()
        assert guard.sql(f"SELECT count(*) AS n FROM {quoted}").to_pylist() == [{"n": 300}]


@pytest.mark.parametrize(
    "argument", ['main."my table"', '"main"."my table"', '"my table" LIMIT 5', '"my table" AS x', "(FROM plain)"]
)
def test_what_is_no_name_alone_is_refused(argument: str) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute('CREATE TABLE "my table" AS SELECT 1 AS person_id; CREATE TABLE plain AS SELECT 1 AS person_id')
        with pytest.raises(duckdb.Error, match="must name a table or view"):
            con.execute("FROM sdc_declare_public(?)", [argument]).fetchall()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


ODD = (
    "people--x",
    "people/*x*/",
    "people::x",
    "?",
    "$1",
    'a"b',
    "a b",
    "Öl",
    "ORDER",
    "tables",
    "databases",
    "pg_class",
    "'",
    "%s",
)


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_not_read_as_sql(name: str) -> None:
    """Of a table and of a dimension; beside it are a table and a column with what another reading would name."""
    odd = _quoted(name)
    with sdcduck.connect(secret="the secret of the tests") as con:
        rows = "SELECT id AS person_id, ['N', 'S'][1 + id % 2] AS {}, 5 AS income, 900000 + id AS people FROM range(300) u(id)"
        con.execute(f"CREATE TABLE {odd} AS {rows.format(odd)}; CREATE TABLE people AS {rows.format('region')}")
        for table, dimension in ((odd, name), ("people", "region")):
            con.execute("FROM sdc_add_record_key(?, unit := 'person_id')", [table]).fetchall()
            con.execute(
                "FROM sdc_protect(?, unit := 'person_id', dimensions := [?], measures := ['income'], population := 'p')",
                [table, dimension],
            ).fetchall()
        guard = sdcduck.open_guard(con)
        plain = guard.sql("SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region").to_pylist()
        expected = [(row["region"], row["n"]) for row in plain]
        for asked in (
            f"SELECT {odd}, count(*) AS n FROM {odd} GROUP BY {odd} ORDER BY {odd}",
            f"SELECT {odd}.{odd}, count(*) FROM {odd} JOIN people USING (person_id) GROUP BY ALL ORDER BY ALL",
            f"SELECT p.{odd}, count(*) FROM main.{odd} AS p GROUP BY ALL ORDER BY ALL",
        ):
            assert list(zip(*guard.sql(asked).to_pydict().values(), strict=True)) == expected
        assert [name for name, _ in guard.columns(f"SELECT * FROM {odd} LIMIT 0")] == ["person_id", name, "income"]
        for hidden in (
            "SELECT people FROM {}",
            "SELECT people.people FROM {}",
            "SELECT max({}.people) FROM {}",
            "FROM {}",
        ):
            with pytest.raises(Refused) as refused:
                guard.sql(hidden.replace("{}", odd))
            assert "900" not in str(refused.value)


def test_a_name_with_spaces_around_it_is_not_that_without() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute('CREATE TABLE people AS SELECT 1 AS id; CREATE TABLE "people " AS SELECT 2 AS id')
        for argument in ("people ", '"people "'):
            with pytest.raises(duckdb.Error, match=r"spaces around its name|must name a table or view"):
                con.execute("FROM sdc_declare_public(?)", [argument]).fetchall()
        assert con.execute("SELECT count(*) FROM sdc.policies").fetchall() == [(0,)]


def test_a_view_with_a_column_called_rowid_is_looked_at_again() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT id AS person_id, id % 2 AS region, 900000 + id AS income FROM range(300) u(id); "
            "CREATE VIEW shown AS SELECT 1::BIGINT AS rowid, 2::BIGINT AS income"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])").fetchall()
        con.execute("FROM sdc_declare_public('shown')").fetchall()
        guard = sdcduck.open_guard(con)
        assert guard.sql("SELECT income FROM shown").to_pylist() == [{"income": 2}]
        con.execute("CREATE OR REPLACE VIEW shown AS SELECT 1::BIGINT AS rowid, income FROM people")
        with pytest.raises(Refused, match="SDC060"):
            guard.sql("SELECT income FROM shown")
