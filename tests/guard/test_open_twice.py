"""Two policies over the same records in one role: one noise, or they are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused, guard

SECRET = "the secret of the tests"
VIEWS = {
    "women": "FROM people WHERE sex = 'f'",
    "men": "FROM people WHERE sex = 'm'",
    "again": "FROM people",
    "of_women": "FROM women",
    "joined": "SELECT height, home, p.* FROM places JOIN (FROM people ORDER BY income) p USING (region) WHERE height >= 0",
    "joined_by_home": "SELECT height, p.home AS id, p.home_key AS record_key, p.* EXCLUDE (id, record_key) FROM places JOIN people p USING (region)",
    "other_keys": "SELECT * REPLACE (other_key AS record_key) FROM people",
    "other_units": "SELECT * REPLACE ('p' || id AS id, other_key AS record_key) FROM people",
    "by_home": "SELECT * EXCLUDE (id, record_key), home AS id, home_key AS record_key FROM people",
    "paid": "SELECT * EXCLUDE (income), income AS pay FROM people",
    "monthly": "SELECT * EXCLUDE (income), income / 12 + 5 AS pay FROM people WHERE sex = 'f'",
    "called_so": "SELECT id AS who, record_key AS key, region, sex, income FROM people",
    "with_places": "FROM people JOIN places USING (region)",
    "firms": "SELECT *, 7 AS other FROM firms_as_they_are JOIN places USING (region)",
}


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=SECRET) as connection:
        fill(connection)
        yield connection


def fill(con: duckdb.DuckDBPyConnection) -> None:
    """People, views of them, and firms that have nothing to do with them but the names of regions."""
    con.execute("""CREATE TABLE people AS SELECT i AS id, i // 3 AS home, 'r' || i % 5 AS region, ['f', 'm'][1 + i % 2] AS sex,
            1000 + i * 7919 % 4001 AS income FROM range(600) t(i);
        CREATE TABLE places AS SELECT 'r' || i AS region, i AS height FROM range(5) t(i);
        CREATE TABLE firms_as_they_are AS SELECT 10000 + i AS id, 'r' || i % 5 AS region, i AS staff FROM range(200) t(i)""")
    for table, unit, key in (
        ("people", "id", "record_key"), ("people", "home", "home_key"), ("firms_as_they_are", "id", "record_key"),
    ):  # fmt: skip
        con.execute(f"FROM sdc_add_record_key('{table}', unit := '{unit}', record_key := '{key}')").fetchall()
    con.execute(
        "ALTER TABLE people ADD COLUMN other_key BIGINT; UPDATE people SET other_key = sdc_record_key(id + 9000)"
    )
    for name, view in VIEWS.items():
        con.execute(f"CREATE VIEW {name} AS {view}")


def protect(con: duckdb.DuckDBPyConnection, table: str, more: str = "", measures: str = "['income']") -> None:
    arguments = "unit := 'id', " if "unit :=" not in more else ""
    con.execute(
        f"FROM sdc_protect('{table}', {arguments}dimensions := ['region', 'sex'], measures := {measures} {more})"
    ).fetchall()


ONE_NOISE = {
    "women": "", "again": "", "of_women": "", "called_so": ", unit := 'who', record_key := 'key'",
    "with_places": ", population := 'persons'", "joined": "",
}  # fmt: skip


@pytest.mark.parametrize("table", ONE_NOISE)
def test_the_same_policy_and_keys_are_one_noise(con: duckdb.DuckDBPyConnection, table: str) -> None:
    protect(con, "people")
    protect(con, table, ONE_NOISE[table])
    one = guard(con)
    asked = "SELECT region, count(*) AS n, sum(income) AS s, avg(income) AS a FROM {} WHERE sex = 'f' GROUP BY region"
    assert one.sql(asked.format(table)).to_pylist() == one.sql(asked.format("people")).to_pylist()


@pytest.mark.parametrize("method", ["threshold", "rounding"])
def test_so_they_are_under_other_methods(con: duckdb.DuckDBPyConnection, method: str) -> None:
    for table in ("people", "women"):
        protect(con, table, f", method := '{method}', min_units := 4")
    one = guard(con)
    asked = "SELECT region, count(*) AS n FROM {} WHERE sex = 'f' GROUP BY region"
    assert one.sql(asked.format("women")).to_pylist() == one.sql(asked.format("people")).to_pylist()


def test_halves_that_no_unit_is_in_both_of(con: duckdb.DuckDBPyConnection) -> None:
    for table in ("men", "women"):
        protect(con, table)
    con.execute("CREATE VIEW odd AS SELECT * REPLACE (other_key AS record_key) FROM people WHERE sex = 'm'")
    con.execute("FROM sdc_unprotect('men')").fetchall()
    with pytest.raises(duckdb.Error, match="unit or record_key"):
        protect(con, "odd")


DIFFERENT = {
    "method": ("women", ", method := 'threshold', min_units := 3", "['income']", r"method \('threshold' and 'cell_key'\)"),
    "p-table": ("women", ", ptable := 'mild'", "['income']", r"ptable \('mild' and 'default'\)"),
    "least": ("again", ", min_units := 3", "['income']", r"min_units \(3, and 1 there\)"),
    "bounds": ("again", ", bounds := {'income': [1, 20000]}", "['income']", "bounds of 'income'"),
    "keys": ("other_keys", "", "['income']", "record_key: 600 units have other keys there"),
    "units": ("other_units", "", "['income']", "unit or record_key"),
    "homes": ("by_home", "", "['income']", r"unit \('home' and 'id' of 'people'\)"),
    "homes of a join": ("joined_by_home", "", "['income']", r"unit \('home' and 'id' of 'people'\)"),
    "kinds": (
        "again", ", units := ['id', 'home'], record_key := {'id': 'record_key', 'home': 'home_key'}, unit := NULL",
        "['income']", r"units \('home, id' and 'id'\)",
    ),
    "a name": ("paid", "", "['pay']", "'pay' follows from what is called 'income' there"),
    "a multiple": ("monthly", "", "['pay']", "'pay' follows from what is called 'income' there"),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_noise_is_refused(con: duckdb.DuckDBPyConnection, what: str) -> None:
    table, more, measures, differs = DIFFERENT[what]
    con.execute("FROM sdc_store_ptable('mild', '(FROM sdc_ptable(D := 2, V := 1))')") if "mild" in more else None
    protect(con, "people", ", bounds := {'income': [1, 10000]}" if what == "bounds" else "")
    with pytest.raises(duckdb.Error, match=differs) as problem:
        protect(con, table, more, measures)
    assert f"'{table}' and 'people' both have records of 'people'" in str(problem.value)
    assert "for another role" in str(problem.value)
    with pytest.raises(Refused, match="SDC020"):  # nothing was stored
        guard(con).sql(f"SELECT count(*) FROM {table}")


def test_of_two_thresholds_the_smaller_one_would_rule(con: duckdb.DuckDBPyConnection) -> None:
    protect(con, "people", ", method := 'threshold', min_units := 10")
    with pytest.raises(duckdb.Error, match=r"min_units \(3, and 10 there\)"):
        protect(con, "women", ", method := 'threshold', min_units := 3")
    with pytest.raises(duckdb.Error, match=r"unit \('home' and 'id'\)"):
        protect(con, "women", ", method := 'threshold', min_units := 10, unit := 'home'")


def test_two_bases_of_rounding(con: duckdb.DuckDBPyConnection) -> None:
    protect(con, "people", ", method := 'rounding', base := 3")
    with pytest.raises(duckdb.Error, match=r"base \(5 and 3\)"):
        protect(con, "women", ", method := 'rounding', base := 5")


def test_two_publications_of_the_same_records(con: duckdb.DuckDBPyConnection) -> None:
    for name, table in (("p", "people"), ("w", "women"), ("q", "again")):
        con.execute(
            f"FROM sdc_publish('{name}', 'SELECT region, sex, count(*) AS n, sum(income) AS income FROM {table} "
            "GROUP BY CUBE (region, sex)', max_count := 2)"
        ).fetchall()
    suppression = ", method := 'suppression', publication := '{}'"
    protect(con, "people", suppression.format("p"))
    with pytest.raises(duckdb.Error, match=r"publication \('w' and 'p'\)"):
        protect(con, "women", suppression.format("w"))
    with pytest.raises(duckdb.Error, match=r"publication \('q' and 'p'\)"):
        protect(con, "again", suppression.format("q"))
    protect(con, "again", suppression.format("P"))  # one publication is one pattern
    asked = "SELECT region, sum(income) AS s FROM {} GROUP BY region"
    assert guard(con).sql(asked.format("again")) == guard(con).sql(asked.format("people"))


def test_roles_have_one_each(con: duckdb.DuckDBPyConnection) -> None:
    """What is for everybody is for each role, too, but for what that role has a policy of."""
    threshold = ", method := 'threshold', min_units := 3"
    protect(con, "people", ", role := 'a'")
    protect(con, "women", f"{threshold}, role := 'b'")
    with pytest.raises(duckdb.Error, match="they differ in their method"):
        protect(con, "men", threshold)  # for everybody, 'a' among them
    protect(con, "people", f"{threshold}, role := 'a'")
    protect(con, "men", threshold)
    for role, table in (("a", "people"), ("a", "men"), ("b", "women"), ("b", "men")):
        assert guard(con, role=role).sql(f"SELECT count(*) AS n FROM {table}").num_rows == 1


def test_what_is_only_looked_up_may_be_public(con: duckdb.DuckDBPyConnection) -> None:
    firms = "FROM sdc_protect('firms', unit := 'id', dimensions := ['region'], method := 'threshold', min_units := 3)"
    protect(con, "with_places")
    with pytest.raises(duckdb.Error, match="if 'places' only looks something up, make it public first"):
        con.execute(firms)
    con.execute("FROM sdc_declare_public('places')").fetchall()
    con.execute(firms).fetchall()
    one = guard(con)
    assert one.sql("SELECT count(*) AS n FROM firms").to_pylist() == [{"n": 200}]
    con.execute("FROM sdc_unprotect('places')").fetchall()
    with pytest.raises(Refused, match="SDC060"):
        one.sql("SELECT count(*) AS n FROM firms")


@pytest.mark.parametrize("reads", ["read_parquet('{0}/people.parquet')", "'{0}/p*.parquet'"])
def test_views_of_one_file(con: duckdb.DuckDBPyConnection, tmp_path: Path, reads: str) -> None:
    con.execute(f"COPY people TO '{tmp_path}/people.parquet'")
    con.execute(f"CREATE VIEW filed AS FROM '{tmp_path}/people.parquet'")
    con.execute(f"CREATE VIEW too AS FROM {reads.format(tmp_path)}")
    protect(con, "filed")
    with pytest.raises(duckdb.Error, match="they differ in their method"):
        protect(con, "too", ", method := 'threshold', min_units := 3")
    protect(con, "too")


def test_a_view_that_is_replaced_is_looked_at_again(con: duckdb.DuckDBPyConnection) -> None:
    """The guard that is open, and one that is opened later; the message says nothing of what is not seen."""
    con.execute(
        "CREATE OR REPLACE VIEW again AS SELECT * EXCLUDE (staff), staff AS income, 'f' AS sex FROM firms_as_they_are"
    )
    protect(con, "people")
    protect(con, "again", ", min_units := 3")
    one, asked = guard(con), "SELECT count(*) AS n FROM again"
    assert one.sql(asked).num_rows == 1
    for view in ("FROM people", VIEWS["other_keys"], "FROM people WHERE id < 200"):
        con.execute(f"CREATE OR REPLACE VIEW again AS {view}")
        for looks in (one, guard(con)):
            for table in ("again", "people"):
                with pytest.raises(Refused, match="SDC060") as problem:
                    looks.sql(f"SELECT count(*) AS n FROM {table}")
                assert "key" not in str(problem.value).replace("other keys", "")
                assert not any(figure in str(problem.value) for figure in "0123456789"[1:] if figure not in "60")
    con.execute("CREATE OR REPLACE VIEW again AS FROM people")
    protect(con, "again")
    for looks in (one, guard(con)):
        assert looks.sql(asked).to_pylist() == looks.sql("SELECT count(*) AS n FROM people").to_pylist()


def test_keys_that_a_view_changes(con: duckdb.DuckDBPyConnection) -> None:
    """As many records as before, and other keys: seen by the text of the view."""
    for table in ("people", "again"):
        protect(con, table)
    one, asked = guard(con), "SELECT count(*) AS n FROM again"
    one.sql(asked)
    con.execute(f"CREATE OR REPLACE VIEW again AS {VIEWS['other_keys']}")
    with pytest.raises(Refused, match="SDC060"):
        one.sql(asked)


def test_a_file_that_only_a_guard_holds(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(path, secret=SECRET) as con:
        fill(con)
        for table in ("people", "women"):
            protect(con, table)
        con.execute(f"CREATE OR REPLACE VIEW women AS {VIEWS['other_keys']}")
    one = sdcduck.open_guard(path)
    for table in ("people", "women"):
        with pytest.raises(Refused, match="SDC060"):
            one.sql(f"SELECT count(*) AS n FROM {table}")
    one.close()
