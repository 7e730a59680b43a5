"""What DuckDB hands over to Arrow as another value, without a word.

Of UHUGEINT the 128 bits, as a number with a sign: 2^128 - 1 would leave as -1. Of INTERVAL nanoseconds in 64 bits,
which go around after 292 years of hours. Of TIMETZ the time alone, without its zone. Of BIT and BIGNUM the bytes
in which it keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from sdcduck.guard.refusals import Refused


def without_wrong_values(reader: pa.RecordBatchReader, kinds: list[str]) -> pa.RecordBatchReader:
    """The same rows; refused where a value would be another one.

    Args:
        kinds: the DuckDB types of the columns.

    Raises:
        Refused: while it is read.
    """
    places = [
        (place, is_wrong, why)
        for place, kind in enumerate(kinds)
        for named, is_wrong, why in _WRONG
        if named.search(kind)
    ]
    if not places:
        return reader

    def checked() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            for place, is_wrong, why in places:
                if any(map(is_wrong, _leaves(batch.column(place)))):
                    raise Refused("SDC090", f"{why}, for which an answer has no type: CAST it to VARCHAR")
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, checked())


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """What lists and structs are made of.

    >>> from decimal import Decimal
    >>> listed = pa.array([[{"a": Decimal(-1)}], None], pa.list_(pa.struct({"a": pa.decimal128(38)})))
    >>> [_has_sign(leaf) for leaf in _leaves(listed)]
    [True]
    """
    kind = values.type
    if types.is_struct(kind):
        inside = values.flatten()
    elif types.is_map(kind):
        inside = [values.keys, values.items]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inside = [values.flatten()]
    elif types.is_union(kind):
        inside = [values.field(place) for place in range(kind.num_fields)]
    else:
        yield values
        return
    for part in inside:
        yield from _leaves(part)


def _has_sign(values: pa.Array) -> bool:
    """Whether a number of 128 bits is negative."""
    kind = values.type
    return types.is_decimal128(kind) and bool(compute.any(compute.less(values, pa.scalar(0, kind))).as_py())


def _went_around(values: pa.Array) -> bool:
    """Whether nanoseconds are no microseconds: 2^64 has a rest of 616 by 1000. From 73,000 years on a few are."""
    if not types.is_interval(values.type) or len(values) == values.null_count:
        return False
    parts = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    found = np.frombuffer(values.buffers()[1], parts, len(values), values.offset * parts.itemsize)["nanoseconds"]
    return bool((found[np.asarray(values.is_valid())] % 1000 != 0).any())


def _has_time(values: pa.Array) -> bool:
    return bool(types.is_time(values.type) and values.null_count < len(values))


def _has_bytes(values: pa.Array) -> bool:
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    return bool(types.is_binary(stored.type) and stored.null_count < len(stored))


_WRONG: list[tuple[re.Pattern[str], Callable[[pa.Array], bool], str]] = [
    (re.compile(r"\bUHUGEINT\b"), _has_sign, "a UHUGEINT of 2^127 or more"),
    (re.compile(r"\bINTERVAL\b"), _went_around, "an INTERVAL of more than 292 years in hours and less"),
    (re.compile(r"\bTIME WITH TIME ZONE\b"), _has_time, "a TIMETZ"),
    (re.compile(r"\b(BIT|BIGNUM)\b"), _has_bytes, "a BIT or BIGNUM"),
]
