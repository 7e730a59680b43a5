"""The rows of a unit are brought together before a join where that is cheaper: with the same numbers, to the bit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest
from visits_database import made

import sdcduck
from sdcduck.guard import Guard

BEFORE = re.compile(r"JOIN \(SELECT|FROM \(SELECT \"v\"\.\"id\" AS \"id\"")
ALL = "p.age >= 0"  # holds for every patient, and keeps the rows from being brought together before the join


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = made("cell_key")
    yield con
    con.close()


@pytest.fixture(scope="module")
def guard(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


FASTER = [
    "SELECT p.region, count(*) FROM patients p JOIN visits v ON p.id = v.id WHERE {} GROUP BY p.region",
    "SELECT p.region, count(*), count(v.cost), sum(v.cost), avg(v.cost), sum(v.fee), sum(v.wide) FROM visits v JOIN patients p USING (id) WHERE {} GROUP BY 1",
    "SELECT count(*), count(DISTINCT p.id), sum(fee) FROM patients p JOIN visits v ON v.id = p.id WHERE {}",
    "SELECT p.region, p.age // 20 AS a, median(v.cost), stddev(v.cost) FROM patients p JOIN visits v ON p.id = v.id WHERE {} GROUP BY ALL",
    "SELECT class, count(*), sum(cost) FROM patients p JOIN visits v ON p.id = v.id JOIN ages a ON a.age = p.age WHERE {} GROUP BY class",
    "SELECT p.region, count(*) FILTER (WHERE v.diagnosis = 'flu') AS flu, sum(CASE WHEN v.diagnosis = 'cut' THEN v.cost END) FROM patients p JOIN visits v ON p.id = v.id WHERE v.day < DATE '2025-03-01' AND {} GROUP BY p.region",
    "SELECT DISTINCT p.region FROM patients p, visits v WHERE p.id = v.id AND {}",
]  # fmt: skip


@pytest.mark.parametrize("query", FASTER)
def test_the_numbers_are_those_of_rows_that_are_joined_first(guard: Guard, query: str) -> None:
    before, after = query.format("true"), query.format(ALL)
    assert BEFORE.search(guard.rewrite(before))
    assert not BEFORE.search(guard.rewrite(after))
    assert guard.sql(before).equals(guard.sql(after))


JOINED_FIRST = [
    "SELECT v.diagnosis, count(*) FROM patients p JOIN visits v ON p.id = v.id GROUP BY v.diagnosis",
    "SELECT p.region, count(*) FROM patients p LEFT JOIN visits v ON p.id = v.id GROUP BY p.region",
    "SELECT p.region, sum(p.income) FROM patients p JOIN visits v ON p.id = v.id GROUP BY p.region",
    "SELECT p.region, count(*) FROM patients p JOIN visits v ON p.id = v.id GROUP BY ROLLUP (p.region)",
    "SELECT p.region, count(*) FILTER (WHERE v.day > DATE '2024-01-01' + CAST(p.age AS INTEGER)) FROM patients p JOIN visits v ON p.id = v.id GROUP BY p.region",
    "SELECT p.region, count(*) FROM patients p JOIN visits v ON p.id = v.id JOIN kinds k ON k.diagnosis = v.diagnosis GROUP BY p.region",
    "SELECT p.region, count(*) FROM patients p JOIN visits v ON p.id = v.id WHERE p.id IN (SELECT id FROM visits WHERE diagnosis = 'flu') GROUP BY p.region",
]  # fmt: skip


@pytest.mark.parametrize("query", JOINED_FIRST)
def test_where_it_would_not_be_the_same_rows_are_joined_first(guard: Guard, query: str) -> None:
    assert not BEFORE.search(guard.rewrite(query))
    assert guard.sql(query).num_rows > 0


def test_tables_of_few_units_and_units_that_are_texts_are_joined_first(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE panel AS SELECT id, region FROM patients WHERE id < 100")
    con.execute("CREATE TABLE named AS SELECT id::VARCHAR AS id, region FROM patients")
    con.execute("CREATE TABLE named_visits AS SELECT id::VARCHAR AS id, diagnosis FROM visits")
    for table, dimensions in (("panel", ["region"]), ("named", ["region"]), ("named_visits", ["diagnosis"])):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, population := 'persons')"
        ).fetchall()
    one = sdcduck.open_guard(con)
    for joined in ("panel p JOIN visits v", "named p JOIN named_visits v"):
        query = f"SELECT p.region, count(*) FROM {joined} ON p.id = v.id GROUP BY p.region"
        assert not BEFORE.search(one.rewrite(query))
