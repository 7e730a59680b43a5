"""Rows that a planner has computed, as the table that it answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

_TYPES = {
    "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(),
    "DOUBLE[]": pa.list_(pa.float64()),
}  # fmt: skip


def table_of(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> pa.Table:
    """The rows with these columns, by name their SQL type; what a row has not is NULL.

    >>> table_of([{"n": 1}], {"n": "BIGINT", "share": "DOUBLE"}).to_pylist()
    [{'n': 1, 'share': None}]
    """
    return pa.Table.from_pylist(list(rows), pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()]))
