"""Each engine that the tests have, filled with tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse
from postgres_server import postgres


def in_datafusion(tables: dict[str, pa.Table]) -> Any:
    """A session of DataFusion, with several batches of records."""
    session = pytest.importorskip("datafusion", reason="DataFusion is not installed").SessionContext()
    for name, rows in tables.items():
        session.register_record_batches(name, [rows.to_batches(max_chunksize=50)])
    return session


def in_duckdb(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Another database of DuckDB."""
    con = duckdb.connect()
    for name, rows in tables.items():
        con.register("given", rows)
        con.execute(f"CREATE TABLE {name} AS FROM given")
        con.unregister("given")
    return con


ENGINES: dict[str, Callable[[dict[str, pa.Table]], Any]] = {
    "duckdb": in_duckdb,
    "datafusion": in_datafusion,
    "postgres": lambda tables: postgres().fill(tables),
    "clickhouse": clickhouse,
}
