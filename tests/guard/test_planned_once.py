"""A question is planned once where DuckDB can; all ways to ask give the same; what is constant is asked for once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.catalog.audit_reading import read_log
from sdcduck.guard import Guard, Refused
from sdcduck.guard import question as asking
from sdcduck.guard.running import begun, plans_once

GROUPED = (
    "SELECT region, count(*) AS n, sum(income) AS y FROM people GROUP BY region ORDER BY n DESC LIMIT 3",
    "SELECT region, n FROM (SELECT region, count(*) AS n FROM people GROUP BY region) WHERE n > 10 ORDER BY region",
    "SELECT region, sex, avg(income) AS m FROM people GROUP BY CUBE (region, sex) ORDER BY ALL",
    "SELECT count(*) AS n FROM people WHERE region = $1",
)
LARGER = (
    "SELECT region, r FROM (SELECT region, count(*) AS n FROM people GROUP BY region), numbers ORDER BY ALL",
    "WITH a AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT a.n FROM a, a b, a c ORDER BY ALL",
    "SELECT r FROM numbers ORDER BY r",
    "SELECT count(*) AS n FROM people UNION ALL SELECT r FROM numbers ORDER BY ALL",
)


@pytest.fixture(scope="module")
def one() -> Iterator[Guard]:
    with sdcduck.connect(secret="a secret for the tests of planning") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, 'r' || i % 7 AS region, i % 2 AS sex, 100 + i % 90 AS income
                FROM range(900) t(i);
            CREATE TABLE numbers AS SELECT i AS r FROM range(50) t(i)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex'], measures := ['income'])")
        con.execute("FROM sdc_declare_public('numbers')").fetchall()
        yield sdcduck.open_guard(con)


@pytest.mark.parametrize("question", [*GROUPED, *LARGER])
def test_all_ways_give_the_same(one: Guard, question: str) -> None:
    rewritten, _ = one.rewritten(question)
    assert rewritten.grouped == (question in GROUPED)
    parameters = ["r3"] if "$1" in question else None
    found = []
    for at_once, grouped in ((False, True), (False, False), (one.at_once, False)):
        cursor = one._con.cursor()
        columns, reader = begun(cursor, rewritten.sql, parameters, 100, at_once=at_once, grouped=grouped)
        found.append((columns, reader.read_all()))
        cursor.close()
    assert found[0] == found[1] == found[2]
    assert one.sql(question, parameters).equals(found[0][1])
    assert one.stream(question, parameters).read_all().equals(found[0][1])


def test_how_the_engine_is_asked(one: Guard) -> None:
    assert one.at_once == (not duckdb.__version__.startswith("1."))


@pytest.mark.parametrize("other", [object(), SimpleNamespace(_submit=lambda *_: SimpleNamespace(description=[]))])
def test_a_version_without_that_call_or_with_another_is_asked_as_everybody_may(other: Any) -> None:
    assert not plans_once(other)


CONSTANT = ("SELECT 1", "SELECT 1 AS a, 'x' AS b, NULL AS c, true AS d, 1.50", "select 'SELECT 1'")


@pytest.mark.parametrize("question", CONSTANT)
def test_the_engine_is_asked_once_for_what_stands_in_the_question(
    one: Guard, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.constants.clear()
    first, second = one.question(question), one.question(question)
    columns, rows = first.ask(), list(first.batches())
    with monkeypatch.context() as patched:
        patched.setattr(asking, "begun", None)
        assert second.ask() == columns
        assert second.ended is False
        assert second.schema == first.schema
        assert list(second.batches()) == rows
        assert second.ended
    assert pa.Table.from_batches(rows) == one.sql(question)
    assert pa.Table.from_batches(rows) == one.stream(question).read_all()


@pytest.mark.parametrize(
    "question",
    [
        "SELECT 1 LIMIT 0",
        "SELECT 1 WHERE false",
        "SELECT 1 UNION ALL SELECT 2",
        "SELECT current_date AS d",
        "SELECT 'today'::DATE AS d",
        "SELECT 1 + 1 AS two",
        "SELECT $1 AS x",
        "SELECT count(*) AS n FROM people",
        "SELECT '" + "x" * 2000 + "' AS x",
    ],
)
def test_what_is_asked_for_each_time(one: Guard, question: str) -> None:
    one.constants.clear()
    try:
        assert not one.rewritten(question)[0].constant
        one.stream(question, ["x"] if "$1" in question else None).read_all()
    except Refused:
        pass
    assert not one.constants


def test_each_time_it_is_written_down(one: Guard, tmp_path: Path) -> None:
    logged = sdcduck.open_guard(one._con, log=tmp_path / "log.jsonl")
    for _ in range(3):
        assert logged.stream("SELECT 1 AS a", user="ann").read_all().to_pylist() == [{"a": 1}]
    lines = read_log(tmp_path / "log.jsonl")
    assert [(line["verdict"], line["rows"], line["user"]) for line in lines] == [("answered", 1, "ann")] * 3


def test_an_answer_is_not_remembered_where_it_was_refused(one: Guard) -> None:
    one.constants.clear()
    asked = one.question("SELECT 1 AS a")
    asked.interrupt()
    with pytest.raises(Refused):
        asked.ask()
    assert not one.constants


def test_no_more_are_remembered_than_there_is_room_for(one: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_MOST_CONSTANTS", 5)
    for number in range(20):
        assert one.stream(f"SELECT {number} AS a").read_all().to_pylist() == [{"a": number}]
        assert len(one.constants) <= 5


def test_long_questions_are_not_remembered(one: Guard) -> None:
    numbers = [str(10**17 + place) for place in range(3_000)]
    short, long = (
        f"SELECT count(*) AS n FROM numbers WHERE r NOT IN ({', '.join(given)})" for given in (numbers[:9], numbers)
    )
    for question in (short, long):
        assert one.sql(question).to_pylist() == one.sql(question).to_pylist()
    assert short in one._rewritings._rewritten
    assert all(len(text) < 50_000 for text in one._rewritings._rewritten)


def test_where_every_warning_is_an_error(one: Guard) -> None:
    usual = one.sql(GROUPED[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one.sql(GROUPED[0]).equals(usual)


def test_rows_that_are_made_of_one_are_no_groups(one: Guard) -> None:
    question = "SELECT region, unnest([1, 2, 3]) AS i FROM (SELECT region, count(*) AS n FROM people GROUP BY region)"
    try:
        rewritten, _ = one.rewritten(question)
    except sdcduck.errors.SDCError:
        return
    assert not rewritten.grouped
