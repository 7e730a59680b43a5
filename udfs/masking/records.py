"""What all functions that change records share: by what a record is known, and how it is counted in a message."""

from __future__ import annotations

from collections.abc import Collection

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.quoting import identifier
from sdcduck.udfs.source import Source


def records(count: int) -> str:
    """Some records in words.

    >>> records(1), records(2)
    ('1 record', '2 records')
    """
    return f"{count} record{'' if count == 1 else 's'}"


def there_are(count: int) -> str:
    """The same, as a message begins.

    >>> there_are(1), there_are(2)
    ('there is 1 record', 'there are 2 records')
    """
    return f"there {'is' if count == 1 else 'are'} {records(count)}"


def order_of(relation: Source, id: str | None, first: Collection[str] = ()) -> str:
    """The order in which records are taken, to stand after ORDER BY: what they have decides, not how they lie.

    Args:
        id: the column that is different in each record; None: the values of all columns decide.
        first: the columns that are looked at first, then.
    """
    if id:
        return identifier(id)
    return ", ".join(map(identifier, (*first, *(name for name in relation.columns if name not in first))))


def key_of(relation: Source, id: str | None) -> str:
    """SQL for 64 bits that a record is known by wherever it stands: of its identifier, or of all that it has.

    Records with the same values have the same key.
    """
    names = [id] if id else sorted(relation.columns)
    texts = [f"{identifier(name)}::VARCHAR" for name in names]
    parts = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
    return f"md5_number_lower({parts})"


def check_ids(cursor: duckdb.DuckDBPyConnection, relation: Source, id: str) -> None:
    """That each record has an identifier of its own.

    Raises:
        SDCError: some have none, or share one; with counts only.
    """
    name = identifier(id)
    rows, known, different = cursor.execute(
        f"SELECT count(*), count({name}), count(DISTINCT {name}) FROM {relation.sql}"
    ).fetchall()[0]
    if known < rows:
        raise SDCError(f"column '{id}' is NULL in {records(rows - known)}")
    if different < rows:
        raise SDCError(f"column '{id}' is the same in several records: {records(rows)} have {different} different ones")


def listed(values: NDArray[np.generic], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Lines of a matrix as lists."""
    flat = pa.array(values.reshape(-1), mask=None if nulls is None else nulls.reshape(-1))
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), flat)
