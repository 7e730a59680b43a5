"""Columns of which records are near or far: numbers by their differences, categories by whether they are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.quoting import identifier
from sdcduck.udfs.compared import kind_of
from sdcduck.udfs.source import Source

Matrix = NDArray[np.float64]


def is_category(relation: Source, name: str) -> bool:
    """Whether only equality counts.

    Raises:
        SDCError: the column holds neither numbers nor categories.
    """
    kind = kind_of(relation.type_of(name))
    if kind is None:
        held = relation.type_of(name).split("(")[0]  # labels are data
        raise SDCError(
            f"column '{name}' ({held}) holds neither numbers nor categories: cast it in a query in parentheses"
        )
    return kind in ("text", "boolean")


def as_number(relation: Source, name: str) -> str:
    """SQL for a column of numbers, dates or times as DOUBLE; instants are microseconds."""
    column, sql_type = identifier(name), relation.type_of(name)
    if kind_of(sql_type) == "number":
        return f"{column}::DOUBLE"
    return f"epoch_us({column if sql_type == 'TIME' else f'{column}::TIMESTAMP'})::DOUBLE"


def scaled(columns: Sequence[Matrix], count: int, argument: str) -> Matrix:
    """The columns divided by their ranges; a constant one is 0 everywhere. NaN is what is missing.

    Raises:
        SDCError: an infinite number.
    """
    made = []
    for column in columns:
        if np.isinf(column).any():
            raise SDCError(f"argument '{argument}': a record has an infinite number")
        known = column[~np.isnan(column)]
        low = float(known.min(initial=np.inf)) if len(known) else 0.0
        spread = float(known.max(initial=-np.inf)) - low if len(known) else 0.0
        made.append((column - low) / (spread or 1.0))
    return np.column_stack(made) if made else np.zeros((count, 0))
