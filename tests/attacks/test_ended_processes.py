"""Answers that Arrow cannot read end the whole process: that of the guard, or of a client that got them by Flight."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused

MAPS = [
    "SELECT MAP {}",
    "SELECT [MAP {}]",
    "SELECT {'a': [MAP {}]}",
    "SELECT MAP {'a': map([], [])}",
    "SELECT map(NULL, NULL)",
    "SELECT map_from_entries([])",
    "SELECT TRY(map([NULL], [1]))",
    "SELECT histogram(x) FROM (SELECT NULL AS x)",
    "SELECT region, MAP {} FROM people GROUP BY region",
]
"""Keys without a type, which DuckDB 2 has: where Arrow looked at such an array, the process was gone."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guard]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, ['n', 's'][1 + i % 2] AS region FROM range(90) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
        yield sdcduck.open_guard(con)


def asked(guard: Guard, query: str, door: str) -> int:
    if door == "sql":
        return guard.sql(query).num_rows
    if door == "stream":
        return guard.stream(query).read_all().num_rows
    question = guard.question(query)
    question.ask()
    return sum(batch.num_rows for batch in question.batches())


@pytest.mark.parametrize("door", ["sql", "stream", "question"])
@pytest.mark.parametrize("query", MAPS)
def test_a_map_without_a_type_ends_nothing(guarded: Guard, query: str, door: str) -> None:
    if duckdb.__version__.startswith("1."):
        assert asked(guarded, query, door) > 0
        return
    with pytest.raises(Refused, match=r"SDC090.*a map whose keys have no type"):
        asked(guarded, query, door)


@pytest.mark.parametrize("door", ["sql", "stream", "question"])
def test_other_maps_are_answered(guarded: Guard, door: str) -> None:
    for query in (
        "SELECT MAP {'a': 1}",
        "SELECT MAP {1: NULL}",
        "SELECT NULL::MAP(INTEGER, VARCHAR)",
        "SELECT TRY(map([NULL::INTEGER], [1]))",
        "SELECT histogram(x) FROM (VALUES (1), (NULL)) t(x)",
    ):
        assert asked(guarded, query, door) == 1
    assert asked(guarded, "SELECT MAP {region: count(*)} FROM people GROUP BY region", door) == 2
