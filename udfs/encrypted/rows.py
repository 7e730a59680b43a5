"""Rows with a class: columns of numbers, scaled by public ends or their own, and classes in order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.methods.encrypted.fixed_point import scaled
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import wrong
from sdcduck.udfs.dp.bounded import pairs_of
from sdcduck.udfs.source import Source, refuse_taken, source

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_COLUMNS = 1000
BOUNDS = "{'income': [0, 100000], ..}"


@dataclass(frozen=True)
class Known:
    """A table of rows with a class.

    Attributes:
        relation: the table.
        names: of the columns of numbers, as it calls them.
        label: the column of the class, as it calls it.
        bounds: public ends of columns.
        order: SQL of the order of the rows.
    """

    relation: Source
    names: tuple[str, ...]
    label: str
    bounds: dict[str, tuple[float, float]]
    order: str

    @classmethod
    def read(
        cls, session: Session, text: str | None, label: str | None, columns: list[str] | None, bounds: str | None,
        key: str | None, taken: Collection[str] = (), beside: Source | None = None,
    ) -> Known:  # fmt: skip
        """From arguments.

        Args:
            taken: names that the columns may not have.
            beside: a table that must have the columns of numbers, too.
        """
        relation = source(session.cursor(), text, "source")
        relation.check_names(tuple(relation.columns))
        relation.column(label, "label")
        (known,) = relation.named([label], "label")
        others = [known, *(relation.named([key], "id") if key is not None else ())]
        names = relation.named(columns, "columns") or tuple(
            name for name in relation.columns
            if name not in others and (beside is None or folded(name) in map(folded, beside.columns))
        )  # fmt: skip
        if not names:
            raise wrong("columns", "name columns of numbers")
        if len(names) > MOST_COLUMNS:
            raise wrong("columns", f"name at most {MOST_COLUMNS} columns")
        for name in names:
            if name in others:
                raise SDCError(f"column '{name}' cannot say how near rows are: it is their class or 'id'")
            for one in (relation, *(() if beside is None else (beside,))):
                one.number(name, "columns")
        refuse_taken([*names, known], taken)
        pairs = pairs_of(names, bounds, "bounds", BOUNDS)
        for name, (low, high) in pairs.items():
            if not 0 < high - low < float("inf"):
                raise wrong("bounds", f"have the smaller number first, for column '{name}'")
        listed = ", ".join(f"{identifier(name)}::DOUBLE" for name in names)
        order = f"{listed}, {identifier(known)}"
        return cls(relation, names, known, pairs, order if key is None else f"{relation.column(key, 'id')}, {order}")

    @property
    def label_type(self) -> str:
        """The SQL type of the class."""
        return self.relation.type_of(self.label)

    def rows(self, cursor: duckdb.DuckDBPyConnection, what: str = "records") -> Rows:
        """The rows in order; a row that is not complete is an error.

        Raises:
            SDCError: there is none, or one has a gap.
        """
        label = identifier(self.label)
        texts = [
            row[0] for row in
            cursor.sql(f"SELECT DISTINCT {label}::VARCHAR, {label} FROM {self.relation.sql} ORDER BY 2").fetchall()
        ]  # fmt: skip
        if None in texts:
            raise SDCError(f"column '{self.label}' holds NULL: leave such {what} out in a query")
        if not texts:
            raise SDCError(f"there are no {what}")
        table = cursor.sql(
            f"SELECT {numbers_sql(self.names)}, {label}::VARCHAR AS label FROM {self.relation.sql} "
            f"ORDER BY {self.order}"
        ).to_arrow_table()
        values = numbers_of(table, self.names, what)
        found = pc.index_in(table["label"], value_set=pa.array(texts, pa.string()))
        classes = found.to_numpy().astype(np.int64)
        low, high = values.min(axis=0), values.max(axis=0)
        for place, name in enumerate(self.names):
            if name in self.bounds:
                low[place], high[place] = self.bounds[name]
        return Rows(values, classes, texts, low, high)


@dataclass(frozen=True)
class Rows:
    """What a table holds.

    Attributes:
        values: a row each, a column each.
        classes: of the rows, places in `labels`.
        labels: texts of the classes, in order.
        low, high: ends of the columns.
    """

    values: Floats
    classes: Indices
    labels: list[str]
    low: Floats
    high: Floats

    def scaled(self, values: Floats) -> Floats:
        """Numbers from 0 to 1; a column whose ends are the same is 0."""
        return scaled(values, self.low, self.high)


def numbers_sql(names: tuple[str, ...]) -> str:
    """SQL of the columns as c0, c1, .."""
    return ", ".join(f"{identifier(name)}::DOUBLE AS c{place}" for place, name in enumerate(names))


def numbers_of(table: object, names: tuple[str, ...], what: str) -> Floats:
    """The columns c0, c1, .. of an Arrow table side by side.

    Raises:
        SDCError: one holds a gap.
    """
    values = np.column_stack(
        [table[f"c{place}"].to_numpy().astype(np.float64) for place in range(len(names))]  # type: ignore[index]
    )
    for place, name in enumerate(names):
        if not np.isfinite(values[:, place]).all():
            raise SDCError(f"column '{name}' holds NULL, NaN or an infinite number: leave such {what} out in a query")
    return values


def listed(values: Floats) -> pa.Array:
    """Each row as a list."""
    ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(ends, np.ascontiguousarray(values).ravel())
