"""Tables, publications and p-tables that are not as they were when the custodian declared a policy: nothing is answered."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from products import each_once

import sdcduck
from sdcduck.catalog import stored_ptable
from sdcduck.guard import Guard, Refused
from sdcduck.guard.ptables import is_as_stored

SECRET = "a secret for the tests of changes"
PUBLISHED = "SELECT region, count(*) AS n FROM published GROUP BY region ORDER BY region"
COUNTED = "SELECT region, count(*) AS n FROM counted GROUP BY region ORDER BY region"
OTHER = "SELECT region, count(*) AS n FROM other GROUP BY region ORDER BY region"
PUBLISH = (
    "FROM sdc_publish('p', 'SELECT region, sex, count(*) AS n, sum(income) AS income FROM {} "
    "GROUP BY CUBE (region, sex)', max_count := 3)"
)
PROTECT = (
    "FROM sdc_protect('{}', unit := 'id', dimensions := ['region', 'sex'], measures := ['income'], "
    "method := 'suppression', publication := 'p')"
)
KINDS = pytest.mark.parametrize("kind", ["connection", "file"])


class Database:
    """A file, written to over a connection, and the guard that looks at it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.con = sdcduck.connect(path, secret=SECRET)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.con.execute(statement).fetchall()

    def guard(self, kind: str) -> Guard:
        if kind == "connection":
            return sdcduck.open_guard(self.con)
        self.con.close()
        return sdcduck.open_guard(self.path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "some.duckdb"
    one = Database(path)
    one.run(
        "CREATE TABLE published AS SELECT i AS id, 'r' || i % 5 AS region, i % 2 AS sex, 100 + i % 90 AS income "
        "FROM range(400) t(i)",
        "CREATE TABLE counted AS FROM published",
        "CREATE TABLE other AS FROM published",
        "FROM sdc_add_record_key('counted', unit := 'id')",
        "FROM sdc_add_record_key('other', unit := 'id')",
        PUBLISH.format("published"),
        PROTECT.format("published"),
        "FROM sdc_protect('counted', unit := 'id', dimensions := ['region'], measures := ['income'])",
        "FROM sdc_protect('other', unit := 'id', dimensions := ['region'], method := 'rounding')",
    )
    one.con.close()
    return path


@pytest.fixture
def database(made: Path, tmp_path: Path) -> Iterator[Database]:
    one = Database(shutil.copy(made, tmp_path / "some.duckdb"))
    yield one
    one.con.close()


def refused(one: Guard, question: str, table: str) -> None:
    """Refused each time and in all ways, by the name of the table; the other table is still answered."""
    for ask in (one.sql, one.rewrite, one.columns, lambda asked: one.stream(asked).read_all(), one.sql):
        with pytest.raises(Refused, match=rf"^SDC060: .*\({table}: ") as problem:
            ask(question)
        assert not any(region in str(problem.value) for region in ("r0", "r1", "r2", "r3", "r4"))
    assert one.sql(OTHER).num_rows == 5


CHANGES = {
    "rows deleted": "DELETE FROM published WHERE id = 7",
    "a row of another group": "UPDATE published SET region = 'r1' WHERE id = 7",
    "another amount": "UPDATE published SET income = income + 1 WHERE id = 7",
    "a row for another": "DELETE FROM published WHERE id = 7; INSERT INTO published VALUES (1007, 'r1', 1, 107)",
    "another table": "CREATE OR REPLACE TABLE published AS SELECT * REPLACE ('r1' AS region) FROM published",
    "a column removed": "ALTER TABLE published DROP COLUMN income",
    "the table dropped": "DROP TABLE published",
    "the stencil dropped": "DROP TABLE sdc.p_stencil",
    "another stencil": "UPDATE sdc.p_stencil SET stencil = stencil + 1",
    "other inner cells": "UPDATE sdc.p_stencil SET n = n + 1 WHERE region = 'r1'",
    "an inner cell removed": "DELETE FROM sdc.p_stencil WHERE region = 'r1' AND sex = 0",
    "inner cells twice": "INSERT INTO sdc.p_stencil FROM sdc.p_stencil",
    "the stencil of another publication": "ALTER TABLE sdc.p_stencil DROP COLUMN income",
    "the publication removed": "DELETE FROM sdc.publications",
}


@pytest.mark.parametrize(("change", "kind"), each_once(list(CHANGES), ["connection", "file"]))
def test_a_publication_that_is_not_of_its_data(database: Database, kind: str, change: str) -> None:
    """Neither one that was open already nor one that is made afterwards answers from it."""
    one = database.guard("connection")
    assert one.sql(PUBLISHED).num_rows == one.sql(PUBLISHED).num_rows == 5
    database.run(CHANGES[change])
    refused(one, PUBLISHED, "published")
    one.close()
    refused(database.guard(kind), PUBLISHED, "published")


def test_a_change_that_is_taken_back_or_published(database: Database) -> None:
    one = database.guard("connection")
    before = one.sql(PUBLISHED)
    database.run("BEGIN", "DELETE FROM published WHERE id < 40", "ROLLBACK")
    assert one.sql(PUBLISHED) == before
    database.run("UPDATE published SET region = 'r1' WHERE id < 40")
    refused(one, PUBLISHED, "published")
    database.run(PUBLISH.format("published"))
    assert one.sql(PUBLISHED) != before
    assert one.sql(PUBLISHED).to_pylist() == database.con.sql(PUBLISHED).to_arrow_table().to_pylist()


def asked_over(one: Guard, questions: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a guard looks up for itself while the same question comes again and again."""
    seen: list[str] = []
    limited, value = one._schema._limited, one._schema._limited.value
    monkeypatch.setattr(limited, "value", lambda sql: seen.append(sql) or value(sql))  # type: ignore[func-returns-value]
    for _ in range(questions):
        one.sql(PUBLISHED)
        one.sql(OTHER)
    return seen


@KINDS
def test_what_is_looked_up(database: Database, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = database.guard(kind)
    seen = asked_over(one, 3, monkeypatch)
    assert sum("hash(" in sql for sql in seen) == (3 if kind == "connection" else 1)
    seen.clear()
    one.sql(OTHER)
    assert len(seen) == (1 if kind == "connection" else 0)


@pytest.mark.parametrize(
    ("source", "times"),
    [("SELECT * FROM published", 1), ("SELECT * FROM published WHERE current_date > DATE '2020-01-01'", 3)],
)
def test_views_of_a_file_may_change(
    database: Database, source: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(f"CREATE VIEW seen AS {source}", PUBLISH.format("seen"))
    seen = asked_over(database.guard("file"), 3, monkeypatch)
    assert sum("hash(" in sql for sql in seen) == times


OPTIONS = [
    "extend_zeros := true", "structural_zeros := 'region = ''r1'' AND sex = 3', extend_zeros := true", "after := 'p'",
]  # fmt: skip


@pytest.mark.parametrize(("options", "kind"), each_once(OPTIONS, ["connection", "file"]))
def test_publications_with_options(database: Database, kind: str, options: str) -> None:
    call = PUBLISH.format("published").replace("sdc_publish('p'", "sdc_publish('q'").removesuffix(")")
    database.run(f"{call}, {options})", PROTECT.format("published").replace("'p'", "'q'"))
    assert database.guard(kind).sql(PUBLISHED).num_rows == 5


def test_sums_of_floating_point_numbers_do_not_look_like_changes(database: Database) -> None:
    database.run(
        "CREATE TABLE large AS SELECT i AS id, 'r' || i % 5 AS region, i % 2 AS sex, sin(i) / 3 AS income "
        "FROM range(1000000) t(i)",
        PUBLISH.format("large"),
        PROTECT.format("large"),
        "SET threads = 4",
    )
    one, question = sdcduck.open_guard(database.con), PUBLISHED.replace("published", "large")
    for _ in range(5):
        assert one.sql(question).num_rows == 5
        assert database.con.execute("SELECT count(*) FROM sdc_suppress('p')").fetchall()
    database.run("UPDATE large SET income = income + 0.5 WHERE id = 7")
    refused(one, question, "large")


REMOVED = {
    "its row": "DELETE FROM sdc.ptables WHERE name = 'default'",
    "its intervals": "DELETE FROM sdc.ptable_intervals WHERE name = 'default'",
    "that of sums": "DELETE FROM sdc.ptables WHERE name = 'default_magnitude'",
    "all": "DELETE FROM sdc.ptables",
    "the table of p-tables": "DROP TABLE sdc.ptables",
    "the protected table": "DROP TABLE counted",
}


CHANGED = {
    "some intervals": "DELETE FROM sdc.ptable_intervals WHERE name = 'default' AND i = 3 AND v > 0",
    "one interval": "DELETE FROM sdc.ptable_intervals WHERE name = 'default' AND i = 3 AND v = 0",
    "a row": "DELETE FROM sdc.ptable_intervals WHERE name = 'default' AND i = 3",
    "the last row": "DELETE FROM sdc.ptable_intervals WHERE name = 'default' AND "
    "i = (SELECT max(i) FROM sdc.ptable_intervals WHERE name = 'default')",
    "noise": "UPDATE sdc.ptable_intervals SET v = v + 1 WHERE name = 'default' AND i = 3",
    "bounds": "UPDATE sdc.ptable_intervals SET ub = ub - 1 WHERE name = 'default' AND i = 3 AND v = 0",
    "an interval twice": "INSERT INTO sdc.ptable_intervals FROM sdc.ptable_intervals WHERE name = 'default' AND i = 3 LIMIT 1",
    "of sums": "UPDATE sdc.ptable_intervals SET v = -v WHERE name = 'default_magnitude' AND i > 0",
    "the grid": "UPDATE sdc.ptables SET step = 2 WHERE name = 'default'",
    "the keys": "UPDATE sdc.ptables SET modulus = 256 WHERE name = 'default'",
}


@pytest.mark.parametrize(("name", "kind"), each_once([*REMOVED, *CHANGED], ["connection", "file"]))
def test_a_ptable_that_was_removed_or_changed_in_part(database: Database, kind: str, name: str) -> None:
    change = (REMOVED | CHANGED)[name]
    if kind == "connection":
        one = database.guard(kind)
        assert one.sql(COUNTED).num_rows == 5
        database.run("BEGIN", change, "ROLLBACK")
        assert one.sql(COUNTED).num_rows == 5
        database.run(change)
    else:
        database.run(change)
        one = database.guard(kind)
    refused(one, COUNTED, "counted")


FORMS = {
    "counts": "(FROM sdc_ptable(D := 5, V := 3, js := 2))",
    "magnitudes": "(FROM sdc_ptable(D := 10, V := 3, kind := ''magnitudes'', step := 2, icat := [1, 10]))",
    "even and odd": "(FROM sdc_ptable(D := 5, V := 2, kind := ''magnitudes'', step := 5, icat := [1, 3, 5], "
    "type := ''even'') UNION ALL FROM sdc_ptable(D := 5, V := 1, kind := ''magnitudes'', step := 5, "
    "icat := [1, 3, 5], type := ''odd''))",
    "ONS": "(SELECT pcv, ckey, (pcv + ckey) % 3 - 1 AS pvalue FROM range(1, 751) a(pcv), range(256) b(ckey))",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_ptable_is_as_it_was_stored(database: Database, form: str) -> None:
    database.run(f"FROM sdc_store_ptable('it''s', '{form}')")
    con = database.con
    assert all(is_as_stored(con, stored_ptable(con, name)) for name in ("it's", "default", "default_magnitude"))
    assert is_as_stored(con, stored_ptable(con, "none")) is None


def test_a_gap_is_seen_after_the_macros_were_written_from_it(database: Database) -> None:
    database.run(
        "FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 3, V := 1))')",
        "FROM sdc_protect('counted', unit := 'id', dimensions := ['region'], ptable := 'mine')",
        "DELETE FROM sdc.ptable_intervals WHERE name = 'mine' AND i = 2 AND v = 0",
        "FROM sdc_store_ptable('another', '(FROM sdc_ptable(D := 2, V := 1))')",
    )
    refused(database.guard("connection"), COUNTED, "counted")


def test_what_becomes_of_another_ptable_is_no_matter(database: Database) -> None:
    database.run("FROM sdc_store_ptable('another', '(FROM sdc_ptable(D := 3, V := 1))')")
    one = database.guard("connection")
    before = one.sql(COUNTED)
    database.run("DELETE FROM sdc.ptable_intervals WHERE name = 'another' AND i = 2")
    assert one.sql(COUNTED) == before
    database.run("DELETE FROM sdc.ptables WHERE name = 'another'")
    assert one.sql(COUNTED) == before


def test_a_stored_ptable_that_is_dropped_and_stored_again(database: Database) -> None:
    store = "FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 3, V := 1))')"
    database.run(store, "FROM sdc_protect('counted', unit := 'id', dimensions := ['region'], ptable := 'mine')")
    one = database.guard("connection")
    before = one.sql(COUNTED)
    database.run("FROM sdc_drop_ptable('mine')")
    refused(one, COUNTED, "counted")
    database.run(store)
    assert one.sql(COUNTED) == before


DAMAGE = [
    "DELETE FROM sdc.ptable_intervals WHERE name = '{}' AND i = 1",
    "DELETE FROM sdc.ptable_intervals WHERE name = '{}'",
    "DELETE FROM sdc.ptables WHERE name = '{}'",
    "UPDATE sdc.ptable_intervals SET v = v + 1 WHERE name = '{}' AND i = 1",
]


@pytest.mark.parametrize(("damage", "name"), each_once(DAMAGE, ["default", "default_magnitude"]))
def test_what_is_said_of_a_damaged_built_in_ptable_mends_it(database: Database, name: str, damage: str) -> None:
    one = database.guard("connection")
    before = one.sql(COUNTED)
    database.run(damage.format(name))
    with pytest.raises(Refused) as caught:
        one.sql(COUNTED)
    assert caught.value.code == "SDC060"
    assert "sdc_store_ptable" not in str(caught.value)
    for part in (f"DELETE FROM sdc.ptables and sdc.ptable_intervals WHERE name = '{name}'", "uninstall and install"):
        assert part in caught.value.detail
    database.run(*(f"DELETE FROM sdc.{table} WHERE name = '{name}'" for table in ("ptables", "ptable_intervals")))
    sdcduck.install(sdcduck.uninstall(database.con))
    assert one.sql(COUNTED) == before


def test_all_ptables_that_are_gone_come_back(database: Database) -> None:
    one = database.guard("connection")
    before = one.sql(COUNTED)
    database.run("DELETE FROM sdc.ptables", "DELETE FROM sdc.ptable_intervals")
    with pytest.raises(Refused, match="all p-tables were removed, sdcduck"):
        one.sql(COUNTED)
    sdcduck.install(sdcduck.uninstall(database.con))
    assert one.sql(COUNTED) == before


@KINDS
def test_a_removed_table_does_not_hide_the_others(database: Database, kind: str) -> None:
    database.run("DROP TABLE counted")
    one = database.guard(kind)
    assert [policy.name for policy, _ in one.relations()] == ["other", "published"]
    with pytest.raises(duckdb.Error, match="counted"):
        one._con.execute("FROM counted")


SMALL = "SELECT region, count(*) AS n, sum(income) AS s FROM small GROUP BY region"
POLICIES = {
    "cell_key": ["unit", "record_key", "dimensions", "method", "ptable", "magnitude_ptable", "min_units"],
    "rounding": ["unit", "record_key", "dimensions", "min_units", "base"],
    "threshold": ["unit", "dimensions", "min_units"],
}


@pytest.mark.parametrize(
    ("lost", "kind"),
    each_once([(method, part) for method, parts in POLICIES.items() for part in parts], ["connection", "file"]),
)
def test_a_policy_that_lost_a_part(database: Database, kind: str, lost: tuple[str, str]) -> None:
    """A threshold that was removed is no threshold of one."""
    method, part = lost
    database.run(
        "CREATE TABLE small AS FROM counted WHERE id < 40",
        "FROM sdc_protect('small', unit := 'id', dimensions := ['region'], measures := ['income'], "
        f"method := '{method}', min_units := 20)",
        f"UPDATE sdc.policies SET {part} = NULL WHERE name = 'small'",
    )
    refused(database.guard(kind), SMALL, "small")


@KINDS
def test_a_secret_that_was_removed(database: Database, kind: str) -> None:
    """The noise of sums would hang on what anybody knows."""
    database.run("DELETE FROM sdc.settings WHERE name = 'noise_secret'")
    one = database.guard(kind)
    refused(one, COUNTED, "counted")


KEYS = {"all the same": "0::BIGINT", "the unit": "id", "the amount": "income"}


@pytest.mark.parametrize(("keys", "kind"), each_once(list(KEYS), ["connection", "file"]))
def test_records_that_came_with_keys_that_are_none(database: Database, kind: str, keys: str) -> None:
    load = (
        f"CREATE OR REPLACE TABLE counted AS SELECT * REPLACE ({KEYS[keys]} AS record_key) FROM counted WHERE id < 390"
    )
    if kind == "connection":
        one = database.guard(kind)
        assert one.sql(COUNTED).num_rows == 5
        database.run(load)
    else:
        database.run(load)
        one = database.guard(kind)
    refused(one, COUNTED, "counted")


@pytest.mark.parametrize(("column", "kind"), each_once(["id", "part", "income"], ["connection", "file"]))
def test_a_view_that_fails_for_a_record_that_came(database: Database, kind: str, column: str) -> None:
    """Who is in the group that fails would be told, and what of: the engine's message has the value."""
    database.run(
        "CREATE TABLE texts AS SELECT id::VARCHAR AS id, record_key, region, '1' AS part, income::VARCHAR AS income FROM counted",
        "CREATE VIEW seen AS SELECT id::INTEGER AS id, record_key, region, part::INTEGER AS part, income::INTEGER AS income FROM texts",
        "FROM sdc_protect('seen', unit := 'id', dimensions := ['region', 'part'], measures := ['income'])",
        f"INSERT INTO texts SELECT * REPLACE ('4711' AS id, 'a secret' AS {column}) FROM texts LIMIT 1"
        if column != "id"
        else "INSERT INTO texts SELECT * REPLACE ('a secret' AS id) FROM texts LIMIT 1",
    )
    one = database.guard(kind)
    for asked in ("part", "region"):
        with pytest.raises(Refused, match=r"SDC060: .*\(seen: the view fails for some of its rows") as problem:
            one.sql(f"SELECT {asked}, count(*) AS n FROM seen WHERE region = 'r3' GROUP BY {asked}")
        assert "secret" not in str(problem.value)


@KINDS
def test_a_publication_of_other_records(database: Database, kind: str) -> None:
    adults = PUBLISH.format("published WHERE income > 120").replace("'p'", "'adults'")
    database.run(
        adults, "CREATE TABLE adults AS FROM published WHERE income > 120", "CREATE TABLE later AS FROM adults"
    )
    protect = PROTECT.replace("publication := 'p'", "publication := 'adults'")
    with pytest.raises(duckdb.Error, match="'adults' counts other records than 'published' has"):
        database.run(protect.format("published"))
    database.run(protect.format("adults"), protect.format("later"), "DELETE FROM later WHERE id = 50")
    one = database.guard(kind)
    assert one.sql(PUBLISHED.replace("published", "adults")).num_rows == 5
    refused(one, PUBLISHED.replace("published", "later"), "later")
