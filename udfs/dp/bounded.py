"""Columns between public bounds, and their exact sums: what private statistics of records share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.methods.dp.moments import GRID, Moments, upper
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import is_finite, needed, share, struct, wrong
from sdcduck.udfs.dp.arguments import check_library, epsilon_of
from sdcduck.udfs.source import Source

NULLS = ("refuse", "middle")
MOST_COLUMNS = 100
_EXAMPLE = "{'income': [0, 100000], ..}"
_NARROWEST = 2.0**-20
"""Of bounds, beside how large they are: numbers in between are told apart."""

_WIDEST = 1e70
"""A bound may be as far from 0, and bounds as near to each other as one by it: products of units are numbers still."""

Pair = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """A column of numbers between public bounds, in units of its own.

    Attributes:
        low, high: the bounds; what lies outside is moved to them.
        centre, unit: a number x stands for (x - centre) / unit.
        least, most: the same of the bounds, in whole steps of 1 / `GRID`.
    """

    name: str
    low: float
    high: float
    centre: float
    unit: float
    least: int
    most: int

    @classmethod
    def symmetric(cls, name: str, bounds: Pair) -> Column:
        """From -1 to 1."""
        low, high = bounds
        return cls(name, low, high, low + (high - low) / 2, (high - low) / 2, -GRID, GRID)

    @classmethod
    def one_wide(cls, name: str, bounds: Pair, centre: float) -> Column:
        """About a centre within the bounds, which are 1 unit apart."""
        low, high = bounds
        least = math.floor((low - centre) / (high - low) * GRID + 0.5)
        return cls(name, low, high, centre, high - low, least, least + GRID)

    @property
    def steps(self) -> str:
        """SQL for the number in whole steps; NULL is the middle of the bounds."""
        x = f"coalesce({identifier(self.name)}::DOUBLE, {self.low + (self.high - self.low) / 2!r})"
        inside = f"floor(({x} - {self.centre!r}) / {self.unit!r} * {GRID} + 0.5)::BIGINT"
        return (
            f"CASE WHEN {x} <= {self.low!r} THEN {self.least} WHEN {x} >= {self.high!r} THEN {self.most} "
            f"ELSE least(greatest({inside}, {self.least}), {self.most}) END"
        )


def columns_of(relation: Source, names: Sequence[str | None] | None) -> tuple[str, ...]:
    """The columns of numbers of argument ``columns``."""
    needed(names, "columns", "name the columns of numbers")
    found = relation.named(names, "columns")
    for name in found:
        relation.number(name, "columns")
    if len(found) > MOST_COLUMNS:
        raise wrong("columns", f"name at most {MOST_COLUMNS} columns")
    return found


def bounds_of(names: Sequence[str], text: str | None) -> dict[str, Pair]:
    """Argument ``bounds``: two numbers for each of the columns, which nobody takes from the data."""
    given = pairs_of(names, text, "bounds", _EXAMPLE)
    for name in names:
        if name not in given:
            raise SDCError(
                f"argument 'bounds' has none for column '{name}': bounds must be public, they are not taken from the "
                f"data. Give them as {_EXAMPLE}; numbers outside are moved to the bound"
            )
        low, high = given[name]
        if low >= high:
            raise wrong("bounds", f"have the smaller number first, for column '{name}'")
        if not _NARROWEST * max(abs(low), abs(high)) <= high - low < math.inf:
            raise wrong("bounds", f"be farther apart beside their size, for column '{name}'")
        if max(abs(low), abs(high)) > _WIDEST or high - low < 1 / _WIDEST:
            raise wrong("bounds", f"be at most {_WIDEST:g} and at least {1 / _WIDEST:g} apart, for column '{name}'")
    return given


def pairs_of(names: Sequence[str], text: str | None, argument: str, example: str) -> dict[str, Pair]:
    """Two finite numbers by column, of a struct of lists; any case will do."""
    known, found = {folded(name): name for name in names}, {}
    for name, pair in struct(text, argument, example).items():
        if folded(name) not in known:
            raise unknown("column", name, names, where=f"the columns of the call (argument '{argument}')")
        if not isinstance(pair, list) or len(pair) != 2 or not all(map(is_finite, pair)):
            raise wrong(argument, f"hold two numbers for each column, such as {example}")
        if known[folded(name)] in found:
            raise SDCError(f"argument '{argument}' names column '{name}' twice")
        found[known[folded(name)]] = (float(pair[0]), float(pair[1]))
    return found


def costs(epsilon: float | None, delta: float | None = None, *, needs_delta: bool = False) -> Pair:
    """What a release may cost; a delta only where there is a use for it.

    Raises:
        SDCError: also where OpenDP is not installed.
    """
    cost = epsilon_of(epsilon)
    part = 0.0 if delta is None and not needs_delta else share(delta, "delta", zero=False, one=False)
    check_library()
    return cost, part


def moments_of(
    cursor: duckdb.DuckDBPyConnection, relation: Source, columns: Sequence[Column], nulls: str, *,
    shortened: tuple[float, Mapping[str, float]] | None = None, group: str | None = None,
) -> dict[Any, Moments]:  # fmt: skip
    """Exact sums over all records, by the value of ``group`` if there is one (None if not).

    Args:
        shortened: how long a record is at most, if longer ones are shortened to it, and what a unit of each column is
            in that length.

    Raises:
        SDCError: NaN, an infinite number, or a NULL that is refused.
    """
    named = [identifier(column.name) for column in columns]
    missing = " OR ".join(f"{name} IS NULL" for name in named)
    wild = " OR ".join(f"NOT isfinite({name}::DOUBLE)" for name in named)
    steps = ", ".join(f"{column.steps} AS z{place}" for place, column in enumerate(columns))
    inner = (
        f"SELECT {group or 'NULL::VARCHAR'} AS grp, coalesce({missing}, false) AS missing, "
        f"coalesce({wild}, false) AS wild, {steps} FROM {relation.sql}"
    )
    if shortened is not None:
        inner = _shortened(inner, columns, *shortened)
    pairs = upper(len(columns))
    sums = [f"sum(z{place})::HUGEINT" for place in range(len(columns))]
    products = [f"sum(z{i} * z{j})::HUGEINT" for i, j in pairs]
    rows = cursor.execute(
        f"SELECT grp, count(*), count(*) FILTER (missing), count(*) FILTER (wild), {', '.join([*sums, *products])} "
        f"FROM ({inner}) GROUP BY grp"
    ).fetchall()
    if any(row[3] for row in rows):
        raise SDCError("a record has NaN or an infinite number in one of the columns")
    if nulls == "refuse" and any(row[2] for row in rows):
        raise SDCError(
            "a record has NULL in one of the columns: nulls := 'middle' takes it for the middle of its bounds"
        )
    end = 4 + len(columns)
    return {row[0]: Moments(row[1], tuple(row[4:end]), tuple(row[end:])) for row in rows}


def _shortened(inner: str, columns: Sequence[Column], length: float, units: Mapping[str, float]) -> str:
    """Records that are too long, shortened: towards 0, so that none is too long by rounding."""
    squares = " + ".join(f"(z{place} * {units[column.name] / GRID!r})**2" for place, column in enumerate(columns))
    factor = (
        f"CASE WHEN square > {length * length!r} THEN {length * (1 - 2.0**-40)!r} / sqrt(square) ELSE 1.0::DOUBLE END"
    )
    steps = ", ".join(f"trunc(z{place} * ({factor}))::BIGINT AS z{place}" for place in range(len(columns)))
    return f"SELECT grp, missing, wild, {steps} FROM (SELECT *, {squares} AS square FROM ({inner}))"
