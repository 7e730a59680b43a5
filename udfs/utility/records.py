"""Two tables of records in memory, column by column: as codes of groups, and as terms of a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.methods.utility.buckets import bucket_codes, bucket_count
from sdcduck.methods.utility.logit import Term
from sdcduck.methods.utility.tables import group_breaks
from sdcduck.udfs.arguments import among, is_finite, struct, wrong
from sdcduck.udfs.utility.columns import Compared, Side

Floats = NDArray[np.float64]
_MOST_LEVELS = 1000  # of a category in a regression


@dataclass(frozen=True)
class Grouped:
    """A column of two tables as codes.

    Attributes:
        codes: of the original and of the synthetic records.
        size: number of codes.
    """

    codes: tuple[NDArray[np.int32], NDArray[np.int32]]
    size: int


@dataclass(frozen=True)
class Column:
    """A column of two tables.

    Attributes:
        name: of it.
        kind: 'number', 'time' or 'category'.
        values: numbers of both, NaN for NULL; codes of both for a category, -1 for NULL.
        levels: names of the categories, in order.
        special: numbers that are categories of their own.
    """

    name: str
    kind: str
    values: tuple[NDArray[np.float64], NDArray[np.float64]] | tuple[NDArray[np.int32], NDArray[np.int32]]
    levels: tuple[str, ...] = ()
    special: tuple[float, ...] = ()

    def grouped(self, groups: int | None) -> Grouped:
        """Codes: each value its own, or ``groups`` of numbers; NULL and special values are codes of their own."""
        one, other = self.values
        if self.kind == "category":
            size = len(self.levels)
            codes = tuple(np.where(side < 0, size, side).astype(np.int32) for side in (one, other))
            return Grouped((codes[0], codes[1]), size + 1)
        pooled = np.concatenate([one, other]).astype(np.float64)
        if groups is None:
            known, places = np.unique(pooled, return_inverse=True)
            found, size = places.astype(np.int32), len(known)
        else:
            special = np.isin(pooled, self.special)
            breaks = group_breaks(pooled[np.isfinite(pooled) & ~special], groups)
            narrow = np.empty(len(pooled), dtype=np.uint8)
            bucket_codes(pooled, breaks, narrow, left=True)
            found, size = narrow.astype(np.int32), bucket_count(breaks) + 2
            for number, value in enumerate(self.special):
                found[pooled == value] = size + number
            size += len(self.special)
        return Grouped((found[: len(one)], found[len(one) :]), size)

    def terms(self, *, ranks: bool = False) -> list[Term]:
        """The column as one variable of a regression: NULL of a category is a level; NULL and special numbers are 0,
        with an indicator each.

        Args:
            ranks: numbers are their ranks, for trees.
        """
        if self.kind == "category":
            pooled = np.concatenate(self.values).astype(np.int64) + 1
            there = np.bincount(pooled, minlength=len(self.levels) + 1) > 0
            present, codes = np.flatnonzero(there) - 1, (np.cumsum(there) - 1)[pooled]
            if len(present) > _MOST_LEVELS:
                raise SDCError(
                    f"column '{self.name}' has more than {_MOST_LEVELS} different values: leave it out with 'columns', "
                    "or group them in a query"
                )
            # NULL comes first in `present`, and would be the reference.
            names = tuple("NULL" if code < 0 else self.levels[code] for code in present)
            if len(present) > 1 and present[0] < 0:
                codes = np.where(codes == 0, len(present) - 1, codes - 1)
                names = (*names[1:], names[0])
            return [Term(self.name, codes=codes.astype(np.int32), levels=names)]
        values = np.concatenate(self.values).astype(np.float64)
        outside = ~np.isfinite(values)
        marks = {"NULL": outside} if outside.any() else {}
        for value in self.special:
            if (values == value).any():
                marks[f"{value:g}"] = values == value
        plain = values.copy()
        for mark in marks.values():
            plain[mark] = 0
        if ranks:
            plain = np.unique(plain, return_inverse=True)[1].astype(np.float64)
        return [
            Term(self.name, values=plain),
            *(Term(f"{self.name} is {name}", values=mark.astype(np.float64)) for name, mark in marks.items()),
        ]

    def constant(self) -> bool:
        """Whether both have one and the same value throughout."""
        pooled = np.concatenate(self.values)
        return bool(len(pooled) == 0 or (pooled == pooled[0]).all() or np.isnan(pooled.astype(np.float64)).all())

    def finite(self) -> tuple[Floats, Floats]:
        """The numbers of both that are neither NULL, NaN, infinite nor special."""
        one, other = self.values
        return self.usable(one.astype(np.float64, copy=False)), self.usable(other.astype(np.float64, copy=False))

    def usable(self, numbers: Floats) -> Floats:
        """Those that are neither NULL, NaN, infinite nor special."""
        chosen = np.isfinite(numbers)
        if self.special:
            chosen &= ~np.isin(numbers, self.special)
        return numbers if chosen.all() else numbers[chosen]

    def in_order(self) -> tuple[Floats, Floats]:
        """The numbers of both from small to large, without NULL and NaN."""
        one, other = (np.sort(side[~np.isnan(side)].astype(np.float64, copy=False)) for side in self.values)
        return one, other


def columns_of(
    cursor: duckdb.DuckDBPyConnection, compared: Compared, sides: Sequence[Side],
    special: Mapping[str, Sequence[float]] | None = None,
) -> list[Column]:  # fmt: skip
    """All columns of the first two sides."""
    tables = [cursor.sql(f"FROM {side.relation}").to_arrow_table() for side in sides[:2]]
    found = []
    for place, (name, kind) in enumerate(zip(compared.names, compared.kinds, strict=True)):
        one, other = (table[f"c{place}"] for table in tables)
        if kind != "category":
            found.append(
                Column(name, kind, (one.to_numpy(), other.to_numpy()), (), tuple((special or {}).get(name, ())))
            )
            continue
        pooled = pa.chunked_array([*one.chunks, *other.chunks], pa.string()).combine_chunks().dictionary_encode()
        if isinstance(pooled, pa.ChunkedArray):
            pooled = pooled.combine_chunks() if pooled.num_chunks else pa.array([], pa.string()).dictionary_encode()
        names = pooled.dictionary.to_pylist()
        # Sorted, so that neither the order of the records nor of the tables matters.
        order = sorted(range(len(names)), key=lambda code: names[code])
        rank = np.empty(len(names) + 1, dtype=np.int32)
        rank[order] = np.arange(len(names))
        rank[-1] = -1
        codes = rank[pooled.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)]
        levels = tuple(names[code] for code in order)
        found.append(Column(name, kind, (codes[: len(one)], codes[len(one) :]), levels))
    return found


def special_values(text: str | None, compared: Compared) -> dict[str, list[float]]:
    """The argument ``special``, as JSON: numbers that are codes, such as those of missing values.

    Raises:
        SDCError: it is no struct of lists of numbers, or names a column that has no numbers.
    """
    given = struct(text, "special", "{'income': [-8]}")
    numbers = [name for name, kind in zip(compared.names, compared.kinds, strict=True) if kind == "number"]
    found = {}
    for place, values in zip(
        among(given, "special", numbers, "the numbers that are compared"), given.values(), strict=True
    ):
        if not isinstance(values, list) or not all(map(is_finite, values)):
            raise wrong("special", f"have a list of numbers for '{numbers[place]}'")
        found[numbers[place]] = [float(value) for value in values]
    return found
