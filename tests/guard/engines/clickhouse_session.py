"""ClickHouse in this process, for tests."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

_NUMBERS = itertools.count()


def clickhouse(tables: dict[str, pa.Table]) -> Any:
    """A session with tables in a database of their own: all sessions of a process have theirs together."""
    session = pytest.importorskip("chdb.session", reason="chdb is not installed").Session()
    database = f"tests_{next(_NUMBERS)}"
    session.query(f"CREATE DATABASE {database}")
    session.query(f"USE {database}")
    for name, rows in tables.items():
        assert rows.num_rows >= 0  # read by its name below
        session.query(f"CREATE TABLE {name} ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM Python(rows)")
    return session
