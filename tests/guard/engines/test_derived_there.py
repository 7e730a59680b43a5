"""Dimensions that the engine derives, by a view of its own; and a server that ends the session of a question."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Refused

sys.path.insert(0, str(Path(__file__).parent))
from every_engine import ENGINES
from postgres_server import postgres

_SECRET = "the secret of those who derive"
_RECORDS = """SELECT i AS id, sdc_record_key(i)::INTEGER AS record_key, (i * 7 % 90)::INTEGER AS age, i % 13 AS hours,
    ['north', 'south'][1 + i % 2] AS region FROM range(700) r(i)"""
_DERIVED = "SELECT *, age / 10 AS decade, substr(region, 1, 1) AS letter FROM records"
_QUESTION = "SELECT decade, letter, count(*) AS n, sum(hours) AS h FROM people GROUP BY CUBE (decade, letter)"
_PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['decade', 'letter', 'age'], measures := ['hours'])"


def _in_duckdb(records: pa.Table) -> Any:
    con: duckdb.DuckDBPyConnection = ENGINES["duckdb"]({"records": records})
    con.execute(f"CREATE VIEW people AS {_DERIVED.replace('/', '//')}")
    return con


def _in_datafusion(records: pa.Table) -> Any:
    session = ENGINES["datafusion"]({"records": records})
    session.sql(f"CREATE VIEW people AS {_DERIVED}").collect()
    return session


def _in_postgres(records: pa.Table) -> Any:
    address = ENGINES["postgres"]({"records": records})
    postgres().run(f"CREATE MATERIALIZED VIEW people AS {_DERIVED}")
    return address


@pytest.mark.parametrize("made", [_in_duckdb, _in_datafusion, _in_postgres])
def test_a_dimension_that_a_view_of_the_engine_derives(made: Callable[[pa.Table], Any]) -> None:
    with sdcduck.connect(secret=_SECRET) as alone:
        alone.execute(f"CREATE TABLE records AS {_RECORDS}")
        alone.execute(f"CREATE TABLE people AS {_DERIVED.replace('/', '//')}")
        alone.execute(_PROTECT).fetchall()
        [(noise,)] = alone.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall()
        meant = sdcduck.open_guard(alone).sql(_QUESTION).to_pylist()
        records = made(alone.sql("FROM records").to_arrow_table())
        with sdcduck.connect(secret=_SECRET, records=records) as con:
            con.execute(_PROTECT).fetchall()
            con.execute("UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'", [noise])
            guard = sdcduck.open_guard(con, records=records)
            assert guard.sql(_QUESTION).to_pylist() == meant
            assert len(meant) > 20
            guard.close()


def test_a_session_that_ends_during_a_question(tmp_path: Path) -> None:
    with sdcduck.connect(secret=_SECRET) as alone:
        rows = alone.sql(_RECORDS).to_arrow_table()
    server = postgres()
    server.fill({"people": rows})
    with sdcduck.connect(tmp_path / "policies.duckdb", secret=_SECRET, records=server.address) as con:
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
    guard = sdcduck.open_guard(tmp_path / "policies.duckdb", records=server.address)
    question = "SELECT region, count(*) AS n FROM people GROUP BY region"
    before = guard.sql(question)
    slow = "CREATE VIEW people AS SELECT * FROM those WHERE (SELECT pg_sleep(60)) IS NOT NULL"
    server.run("ALTER TABLE people RENAME TO those", slow)
    ended = threading.Event()

    def end() -> None:
        while not ended.wait(0.05):
            server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")

    ending = threading.Thread(target=end)
    ending.start()
    try:
        with pytest.raises(Refused, match=r"SDC090.*engine that has the records") as refused:
            guard.sql(question)
    finally:
        ended.set()
        ending.join()
    assert "terminat" not in str(refused.value)
    server.run("DROP VIEW people", "ALTER TABLE those RENAME TO people")
    assert guard.sql(question).equals(before)
    guard.close()
