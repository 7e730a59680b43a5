"""Columns of one or more tables of records as features, and as classes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import compute

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.methods.models.forests import Features, indicators, numbers
from sdcduck.methods.models.scores import Codes
from sdcduck.udfs.compared import Compared


def need_scikit_learn() -> None:
    """Refuse where it is not there.

    Raises:
        SDCError: it is not.
    """
    if find_spec("sklearn") is None:
        raise SDCError("this needs scikit-learn: pip install 'sdcduck[synthesis]'")


def threads_of(cursor: duckdb.DuckDBPyConnection) -> int:
    """How many DuckDB uses."""
    row = first_row(cursor, "SELECT current_setting('threads')::INTEGER")
    return int(row[0]) if row else 1


class Records:
    """The records of all tables, one table after the other, each in an order that does not come from storage."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, compared: Compared) -> None:
        """Reads them; numbers and times as numbers, all else as texts."""
        self._compared = compared
        tables = []
        for argument in compared.tables:
            shown = ", ".join(f"{self._read(argument, name)} AS c{place}" for place, name in enumerate(compared.names))
            sql = f"SELECT {shown} FROM {compared.tables[argument].sql} ORDER BY ALL"
            tables.append(cursor.sql(sql).to_arrow_table())
        self.sizes = tuple(len(table) for table in tables)
        self._columns = pa.concat_tables(tables).combine_chunks()

    def _is_number(self, name: str) -> bool:
        return self._compared.kind(name) not in ("text", "boolean")

    def _read(self, argument: str, name: str) -> str:
        if self._is_number(name) and not self._compared.kind(name).startswith("time"):
            return self._compared.number(argument, name)
        return f"{self._compared.category(argument, name)}::VARCHAR"

    def _values(self, name: str) -> pa.Array:
        return self._columns[f"c{self._compared.names.index(name)}"].combine_chunks()

    def classes(self, name: str) -> tuple[Codes, list[str | float]]:
        """A column as codes of its values in order, and these; NULL is the code -1."""
        values = self._values(name)
        found = values.unique().drop_null().to_pylist()
        known = sorted(found)
        codes = compute.index_in(values, value_set=pa.array(known, values.type))
        return codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), known

    def features(self, names: Sequence[str]) -> Features:
        """Columns side by side."""
        found = []
        for name in names:
            values = self._values(name)
            if pa.types.is_floating(values.type):
                found.append(numbers(values.to_numpy(zero_copy_only=False)))
            else:
                codes, known = self.classes(name)
                found.append(indicators(codes, len(known)))
        return np.ascontiguousarray(np.hstack(found), dtype=np.float32)
