"""Django, peewee and pgcli: real programs, each with its own way to look around and to ask."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_gateway import PASSWORD, Served

QUIET = ("-W", "ignore")  # what others will change in their own programs is not ours to test


def run(served: Served, *command: str, home: Path) -> str:
    """What a program says."""
    environment = {
        **os.environ,
        "PGPASSWORD": PASSWORD,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "PAGER": "cat",
    }
    done = subprocess.run(
        [sys.executable, *QUIET, *command], env=environment, capture_output=True, text=True, timeout=120, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_django(served: Served, tmp_path: Path) -> None:
    pytest.importorskip("django")
    pytest.importorskip("psycopg")
    program = Path(__file__).parent / "programs" / "django_orm.py"
    assert run(served, str(program), str(served.port), PASSWORD, home=tmp_path).splitlines() == [
        "inspectdb 3 False True",
        "count True ['count']",
        "groups East:True:True:True North:True:True:True South:True:True:True",
        "sorted 2 True",
        "case old young",
        "filter True",
        "texts True",
        "distinct East North South",
        "preview North",
        "savepoint True",
        "refused SDC040",
        "exists True False",
        "read only cannot",
        "explained True",
        "goes on True",
    ]


class TestPeewee:
    @pytest.fixture
    def people(self, served: Served) -> Iterator[Any]:
        peewee = pytest.importorskip("peewee")
        pytest.importorskip("psycopg2")
        options = {**served.options, "password": PASSWORD}
        db = peewee.PostgresqlDatabase(options.pop("dbname"), **options)

        class People(peewee.Model):
            person_id = peewee.BigIntegerField(primary_key=True)
            region, sex = peewee.TextField(), peewee.TextField()
            age, income = peewee.IntegerField(), peewee.IntegerField()

            class Meta:
                database, table_name = db, "people"

        with db:
            yield People

    def test_it_finds_tables_columns_and_indexes(self, people: Any) -> None:
        db = people._meta.database
        assert db.get_tables() == ["kinds", "numbers", "people"]
        assert [(column.name, column.data_type) for column in db.get_columns("people")] == [
            ("person_id", "bigint"), ("region", "character varying"), ("sex", "character varying"), ("age", "integer"),
            ("income", "integer"),
        ]  # fmt: skip
        assert db.get_indexes("people") == db.get_primary_keys("people") == db.get_foreign_keys("people") == []

    def test_questions(self, people: Any) -> None:
        from peewee import fn

        some = people.select().where(people.region.in_(["North", "South"]), people.age > 30)
        plain = people._meta.database.execute_sql(
            "SELECT count(*) FROM people WHERE region = ANY(%s) AND age > %s", (["North", "South"], 30)
        )
        assert plain.fetchone() == (some.count(),)
        units = people.select(fn.COUNT(fn.DISTINCT(people.person_id))).scalar()  # count(DISTINCT(person_id))
        assert units == people.select().count() > 0
        groups = people.select(people.region, fn.SUM(people.income)).group_by(people.region).order_by(people.region)
        assert [region for region, total in groups.tuples() if total > 0] == ["East", "North", "South"]
        assert people.select().limit(1).get().region == "North"  # of a preview

    def test_refusals_leave_a_session_that_answers(self, people: Any) -> None:
        import peewee

        db = people._meta.database
        with db.atomic():
            with pytest.raises(peewee.ProgrammingError, match="SDC040"), db.atomic():
                list(people.select().where(people.age == 30))
            assert people.select().count() > 0
        with pytest.raises(peewee.InternalError, match="only questions are answered"):
            people.create(person_id=1)
        db.rollback()
        assert people.select().count() > 0

    def test_pwiz_writes_the_models(self, people: Any, served: Served, tmp_path: Path) -> None:
        told = ["-e", "postgresql", "-H", "127.0.0.1", "-p", str(served.port), "-u", served.user, served.database]
        written = run(served, "-m", "pwiz", *told, home=tmp_path)
        assert re.findall(r"class (\w+)\(BaseModel\)", written) == ["Kinds", "Numbers", "People"]
        assert "income = IntegerField(null=True)" in written


def test_pgcli(served: Served, tmp_path: Path) -> None:
    pytest.importorskip("pgcli")
    commands = [
        r"\dt", r"\d people", r"\l", r"\dn", r"\du", r"\df", r"\dT", r"\dv", r"\dx", r"\dp", r"\db", r"\d+ people",
        "SELECT region, count(*) FROM people GROUP BY region",
    ]  # fmt: skip
    told = ["-h", "127.0.0.1", "-p", str(served.port), "-U", served.user, "-d", served.database]
    asked = [part for command in commands for part in ("-c", command)]
    program = "from pgcli.main import cli; cli()"
    said = run(served, "-c", program, *told, *asked, home=tmp_path)
    assert "SDC" not in said
    assert "measure: sum and avg" in said
    assert re.search(r"region +\| count", said)


def test_what_pgcli_asks_to_complete_names(served: Served) -> None:
    execute = pytest.importorskip("pgcli.pgexecute")
    con = execute.PGExecute(served.database, served.user, PASSWORD, "127.0.0.1", served.port)
    asked = len(served.asked())
    assert ("public", "people") in con.tables()
    assert ("public", "people", "income", "integer", False, None) in list(con.table_columns())
    assert "public" in con.schemata()
    for what in (con.views, con.view_columns, con.databases, con.foreignkeys, con.functions, con.datatypes, con.casing):
        list(what())
    assert len(served.asked()) == asked
    con.conn.close()
