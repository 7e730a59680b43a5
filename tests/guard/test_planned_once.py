"""Groups are asked for as a result, which is planned once; what may be larger than its groups comes as a stream."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.running import begun

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
        con.execute("FROM sdc_public('numbers')").fetchall()
        yield sdcduck.guard(con)


@pytest.mark.parametrize("question", [*GROUPED, *LARGER])
def test_both_ways_give_the_same(one: Guard, question: str) -> None:
    rewritten, _ = one.rewritten(question)
    assert rewritten.grouped == (question in GROUPED)
    parameters = ["r3"] if "$1" in question else None
    found = []
    for grouped in (True, False):
        cursor = one._con.cursor()
        columns, reader = begun(cursor, rewritten.sql, parameters, 100, grouped=grouped)
        found.append((columns, reader.read_all()))
        cursor.close()
    assert found[0] == found[1]
    assert one.sql(question, parameters).equals(found[0][1])
    assert one.stream(question, parameters).read_all().equals(found[0][1])


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
