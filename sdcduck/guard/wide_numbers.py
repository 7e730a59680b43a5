"""UHUGEINT in Arrow: DuckDB hands its 128 bits over as a number with a sign, so 2^128 - 1 would leave as -1."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import compute, types

from sdcduck.guard.refusals import Refused

_UNSIGNED = re.compile(r"\bUHUGEINT\b")
_TOO_LARGE = "a UHUGEINT of 2^127 or more, for which an answer has no type: CAST it to VARCHAR or to DOUBLE"


def without_wrong_signs(reader: pa.RecordBatchReader, kinds: list[str]) -> pa.RecordBatchReader:
    """The same rows; refused where a number without a sign has got one.

    Args:
        kinds: the DuckDB types of the columns.

    Raises:
        Refused: while it is read.
    """
    places = [place for place, kind in enumerate(kinds) if _UNSIGNED.search(kind)]
    if not places:
        return reader

    def checked() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            if any(_has_sign(batch.column(place)) for place in places):
                raise Refused("SDC090", _TOO_LARGE)
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, checked())


def _has_sign(values: pa.Array) -> bool:
    """Whether a number of 128 bits in it is negative.

    >>> from decimal import Decimal
    >>> _has_sign(pa.array([[{"a": Decimal(3)}], None], pa.list_(pa.struct({"a": pa.decimal128(38)}))))
    False
    >>> _has_sign(pa.array([[{"a": Decimal(-1)}], None], pa.list_(pa.struct({"a": pa.decimal128(38)}))))
    True
    """
    kind = values.type
    if types.is_decimal128(kind):
        return bool(compute.any(compute.less(values, pa.scalar(0, kind))).as_py())
    if types.is_struct(kind):
        return any(map(_has_sign, values.flatten()))
    if types.is_map(kind):
        return _has_sign(values.keys) or _has_sign(values.items)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _has_sign(values.flatten())
    return False
