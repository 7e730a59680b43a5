"""Parts of the records by their keys: the same from every engine, and all of them together the table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck

sys.path.insert(0, str(Path(__file__).parent))
from every_engine import ENGINES, in_duckdb

_SECRET = "the secret of the records of persons"
_PERSONS = """SELECT i AS id, sdc_record_key(i)::INTEGER AS record_key, ['n', 's', 'e', NULL][1 + i % 4] AS region,
    i % 3 = 0 AS married, DATE '2001-01-01' + (i % 5)::INTEGER AS since, ((i * 7 % 13) / 10)::DECIMAL(4, 1) AS fee,
    sqrt(i) AS income FROM range(2000) r(i)"""
_PART = "FROM sdc_sample('persons', parts := 20, part := 3, seed := 7) ORDER BY id"


@pytest.fixture(scope="module")
def alone() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=_SECRET) as con:
        con.execute(f"CREATE TABLE persons AS {_PERSONS}")
        yield con


def _of(engine: str, alone: duckdb.DuckDBPyConnection) -> Any:
    return ENGINES[engine]({"persons": alone.sql("FROM persons").to_arrow_table()})


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_same_records_from_every_engine(alone: duckdb.DuckDBPyConnection, engine: str) -> None:
    meant = alone.sql(_PART).to_arrow_table()
    assert 50 < meant.num_rows < 150
    with sdcduck.connect(secret=_SECRET, records=_of(engine, alone)) as con:
        assert con.sql(_PART).to_arrow_table().equals(meant)


def test_all_parts_together_are_the_table(alone: duckdb.DuckDBPyConnection) -> None:
    with sdcduck.connect(secret=_SECRET, records=_of("duckdb", alone)) as con:
        parts = " UNION ALL ".join(f"FROM sdc_sample('persons', parts := 7, part := {part})" for part in range(1, 8))
        rows = con.sql(f"FROM ({parts}) ORDER BY id").to_arrow_table()
        assert rows.equals(alone.sql("FROM persons ORDER BY id").to_arrow_table())
        one, other = (con.sql(f"FROM sdc_sample('persons', seed := {seed})").fetchall() for seed in (1, 2))
        assert sorted(one) != sorted(other)


def test_a_method_that_needs_records_takes_a_sample(alone: duckdb.DuckDBPyConnection) -> None:
    with sdcduck.connect(secret=_SECRET, records=_of("duckdb", alone)) as con:
        asked = "SELECT count(*) FROM sdc_individual_risk({}, keys := ['region', 'since'])"
        with pytest.raises(duckdb.Error, match="by sdc_sample"):
            con.execute(asked.format("'persons'"))
        con.execute("CREATE TABLE drawn AS FROM sdc_sample('persons', parts := 4)")
        drawn = con.sql("SELECT count(*) FROM drawn").fetchall()
        assert con.sql(asked.format("'drawn'")).fetchall() == drawn
        assert 0 < drawn[0][0] < 2000


def test_units_of_several_records_come_whole(alone: duckdb.DuckDBPyConnection) -> None:
    twice = "(FROM persons UNION ALL FROM persons)"
    counts = alone.sql(f"SELECT count(*) AS n FROM sdc_sample('{twice}', parts := 5) GROUP BY id").fetchall()
    assert set(counts) == {(2,)}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("'persons', parts := 0", "'parts' must be a whole number from 1"),
        ("'persons', parts := 3, part := 4", "'part' must be a whole number from 1 to 3"),
        ("'persons', record_key := 'fee'", "a column of whole numbers"),
        ("'persons', record_key := 'nobody'", "unknown column 'nobody'"),
        ("'(FROM persons WHERE married)'", "name that table itself"),
        ("'lacking'", "without a key"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_what_is_refused(alone: duckdb.DuckDBPyConnection, there: bool, call: str, says: str) -> None:
    lacking = "SELECT id, CASE WHEN id <> 5 THEN record_key END AS record_key FROM persons"
    tables = {
        name: alone.sql(sql).to_arrow_table() for name, sql in (("persons", "FROM persons"), ("lacking", lacking))
    }
    records = in_duckdb(tables)
    with sdcduck.connect(secret=_SECRET, records=records) if there else records.cursor() as con:
        sdcduck.install(con, secret=_SECRET)
        if not there and "name that" in says:
            assert con.execute(f"SELECT count(*) FROM sdc_sample({call})").fetchall()[0][0] > 0
            return
        with pytest.raises(duckdb.Error) as refused:
            con.execute(f"FROM sdc_sample({call})").fetchall()
        assert says in str(refused.value)


def test_without_a_secret_it_needs_a_seed(alone: duckdb.DuckDBPyConnection) -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE persons AS SELECT i AS id, i * 7919 AS record_key FROM range(9) r(i)")
        with pytest.raises(duckdb.Error, match="large random number"):
            con.execute("FROM sdc_sample('persons')")
        assert con.execute("SELECT count(*) FROM sdc_sample('persons', parts := 1, seed := 1)").fetchall() == [(9,)]
