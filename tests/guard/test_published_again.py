"""What follows from a publication for a policy (the column that counts records, which measures are never missing) is
renewed when it is published again."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused

MEAN = "SELECT region, avg(income) AS mean, count(income) AS earning FROM people GROUP BY region ORDER BY region"
COUNT = "SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region ORDER BY region"


def publish(con: duckdb.DuckDBPyConnection, measures: str) -> None:
    con.execute(
        f"FROM sdc_publish('p', 'SELECT region, {measures} FROM people GROUP BY CUBE (region)', max_count := 1)"
    ).fetchall()


def protect(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'],
        method := 'suppression', publication := 'p')""").fetchall()


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of changes") as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i % 100 AS income FROM range(300) t(i)")
        yield con


def plain(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return con.execute(query).fetchall()


def answered(one: Guard, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in one.sql(query).to_pylist()]


def test_missing_values_that_came_are_not_counted(con: duckdb.DuckDBPyConnection) -> None:
    """The mean would be the sum of those who have an income, over the number of all."""
    publish(con, "count(*) AS n, sum(income) AS income")
    protect(con)
    one = sdcduck.open_guard(con)
    assert answered(one, MEAN) == plain(con, MEAN)
    con.execute("UPDATE people SET income = NULL WHERE id % 2 = 0")
    publish(con, "count(*) AS n, sum(income) AS income")
    for each in (one, sdcduck.open_guard(con)):
        with pytest.raises(Refused, match=r"SDC052: .*missing values"):
            each.sql(MEAN)
        assert answered(each, COUNT) == plain(con, COUNT)


def test_missing_values_that_went_refuse_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("UPDATE people SET income = NULL WHERE id % 2 = 0")
    publish(con, "count(*) AS n, sum(income) AS income")
    protect(con)
    one = sdcduck.open_guard(con)
    with pytest.raises(Refused, match=r"SDC052: .*missing values"):
        one.sql(MEAN)
    con.execute("UPDATE people SET income = 5 WHERE income IS NULL")
    publish(con, "count(*) AS n, sum(income) AS income")
    assert answered(one, MEAN) == plain(con, MEAN)


def test_records_are_counted_by_what_counts_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("UPDATE people SET income = NULL WHERE id % 2 = 0")
    publish(con, "count(income) AS earning, count(*) FILTER (id > 9) AS later, count(*) AS n, sum(income) AS income")
    protect(con)
    assert answered(sdcduck.open_guard(con), COUNT) == plain(con, COUNT)


def test_columns_of_other_kinds_answer_nothing_wrong(con: duckdb.DuckDBPyConnection) -> None:
    publish(con, "count(*) AS n, sum(income) AS income")
    protect(con)
    one = sdcduck.open_guard(con)
    before = answered(one, COUNT)
    publish(con, "sum(income) AS n, count(*) AS records, sum(income) AS income")
    assert answered(one, COUNT) == before
    for measures in (
        "count(*) AS n, count(income) AS income",
        "count(*) AS n",
        "count(*) FILTER (id > 9) AS n, sum(income) AS income",
    ):
        publish(con, measures)
        with pytest.raises(Refused, match=r"SDC060: .*\(people: its publication has other columns, sdc_protect\)"):
            one.sql(COUNT)
    publish(con, "count(*) AS n, sum(income) AS income")
    assert answered(one, COUNT) == before


def test_a_publication_without_a_count_of_records_protects_nothing(con: duckdb.DuckDBPyConnection) -> None:
    publish(con, "count(*) FILTER (id > 9) AS n, sum(income) AS income")
    with pytest.raises(duckdb.Error, match=r"no count of all its records: publish it with count\(\*\) AS n"):
        protect(con)
