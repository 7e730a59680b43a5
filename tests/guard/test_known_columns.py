"""What DuckDB knows of a column that nobody can change makes a question cheaper, and its answer no other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.refusals import Refused

QUESTIONS = (
    "SELECT region, sum(always) AS a, avg(always) AS b, count(always) AS c FROM people GROUP BY region ORDER BY region",
    "SELECT region, sum(often) AS a, avg(often) AS b, count(often) AS c FROM people GROUP BY region ORDER BY region",
    "SELECT region, sum(mixed) AS a, avg(mixed) AS b, median(mixed) AS c FROM people GROUP BY region ORDER BY region",
    "SELECT region, sum(below) AS a, stddev(below) AS b, median(always) AS c FROM people GROUP BY region ORDER BY region",
    "SELECT sum(always) FILTER (region <> 'r1') AS a, sum(CASE WHEN region = 'r2' THEN always END) AS b FROM people",
    "SELECT region, sum(a) AS a FROM (SELECT region, always AS a FROM people) GROUP BY region ORDER BY 1",
    "SELECT region, sum(people.always) AS a FROM (SELECT region, often AS always FROM people) people GROUP BY region ORDER BY 1",
    "SELECT c.area, sum(P.ALWAYS) AS a FROM people P JOIN areas c USING (region) GROUP BY c.area ORDER BY 1",
    "SELECT region, sum(price) AS a, sum(2 * always) AS b FROM people GROUP BY region ORDER BY region",
)  # fmt: skip


def rows(one: Guard, question: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in one.sql(question).to_pylist()]


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[pa.Table], Guard]:
    """Answers over a connection, where nothing is known, and a guard over the file, opened again, where something is."""
    path = tmp_path_factory.mktemp("known") / "people.duckdb"
    with sdcduck.connect(path, secret="a secret for the tests of columns") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS person, 'r' || i % 4 AS region, 1 + hash(i) % 900 AS always,
                CASE WHEN i % 4 = 3 OR i % 7 = 0 THEN NULL ELSE hash(i) % 50 END AS often,
                (hash(i) % 21)::INTEGER - 10 AS mixed, -1.5 - hash(i) % 9 AS below, (1 + i % 5)::DECIMAL(9, 2) AS price
            FROM range(800) t(i);
            CREATE TABLE areas AS SELECT 'r' || i AS region, 'a' || i // 2 AS area FROM range(4) t(i)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'person', dimensions := ['region'],
            measures := ['always', 'often', 'mixed', 'below', 'price'])""").fetchall()
        con.execute("FROM sdc_declare_public('areas')").fetchall()
        connected = sdcduck.open_guard(con)
        answered = [connected.sql(question) for question in QUESTIONS]
    return answered, sdcduck.open_guard(path)


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_answers_are_the_same(guards: tuple[list[pa.Table], Guard], place: int) -> None:
    answered, of_file = guards
    assert of_file.sql(QUESTIONS[place]) == answered[place]


def test_what_is_known_is_not_asked_for(guards: tuple[list[pa.Table], Guard]) -> None:
    of_file = guards[1]
    never = "SELECT sum({}) AS a FROM people"
    assert "IS NULL" not in of_file.rewrite(never.format("always"))
    assert "<> 0" not in of_file.rewrite(never.format("always"))
    assert "<> 0" not in of_file.rewrite(never.format("below"))
    assert "IS NULL" in of_file.rewrite(never.format("often"))
    assert '"mixed" <> 0' in of_file.rewrite(never.format("mixed"))
    renamed = "SELECT sum(always) AS a FROM (SELECT often AS always FROM people) people"
    assert "IS NULL" in of_file.rewrite(renamed)


def test_a_connection_may_change_its_data() -> None:
    with sdcduck.connect(secret="a secret for the tests of columns") as con:
        con.execute("CREATE TABLE t AS SELECT i AS id, i % 2 AS side, 1 AS y FROM range(40) t(i)")
        con.execute("FROM sdc_add_record_key('t', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('t', unit := 'id', dimensions := ['side'], measures := ['y'])").fetchall()
        one = sdcduck.open_guard(con)
        question = "SELECT side, sum(y) AS y, count(y) AS n FROM t GROUP BY side ORDER BY side"
        before = rows(one, question)
        con.execute("UPDATE t SET y = NULL WHERE side = 1")
        after = rows(one, question)
        assert before[0] == after[0]
        assert after[1] == (1, None, 0)


def test_an_empty_table_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.duckdb"
    with sdcduck.connect(path) as con:
        con.execute("CREATE TABLE t (id BIGINT, side BIGINT, y BIGINT, record_key BIGINT)")
        con.execute(
            "FROM sdc_protect('t', unit := 'id', dimensions := ['side'], measures := ['y'], record_key := 'record_key')"
        )
    one = sdcduck.open_guard(path)
    assert rows(one, "SELECT side, sum(y) AS y FROM t GROUP BY side") == []
    with pytest.raises(Refused, match="SDC010"):
        one.sql("SELECT stats(y) FROM t")
