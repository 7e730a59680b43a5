"""Cubes and ranges of their cells, in SQL: cells at whole places along each dimension, ranges as boxes of such places.

A range is told by rows ``(range_id, dim, lo, hi)``, one for each dimension that it bounds. The values of a dimension
have the places 0, 1, 2, .. in their order, so that all kinds of values are cut into blocks and are found alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from sdcduck.quoting import folded, folded_sql, identifier, literal
from sdcduck.udfs.arguments import needed, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.source import Source, source

_LARGEST = "1e18"  # of a measure, so that sums in whole steps do not overflow
_TAKEN = ("range_id", "block_id")
_COLUMNS_OF_RANGES = ("range_id", "dim", "lo", "hi")


@dataclass(frozen=True)
class Cube:
    """A table of cells.

    Attributes:
        relation: the table.
        names: its dimensions, as the cube calls them that came first.
        measure: SQL of the value of a cell.
        argument: that named the table.
    """

    relation: Source
    names: tuple[str, ...]
    measure: str
    argument: str

    @classmethod
    def read(
        cls, cursor: duckdb.DuckDBPyConnection, text: str | None, argument: str, dimensions: Sequence[str] | None,
        measure: str | None, *, called: str = "measure", taken: Sequence[str] = (),
    ) -> Cube:  # fmt: skip
        """The cube that arguments describe.

        Args:
            called: the argument that names the measure.
            taken: names of the result's columns, which no dimension may have.
        """
        relation = source(cursor, text, argument)
        names = relation.named(
            needed(dimensions, "dimensions", "name the dimensions of the cube"), "dimensions", (*_TAKEN, *taken)
        )
        column = relation.number(needed(measure, called, "name the column of the values"), called)
        if column in map(identifier, names):
            raise wrong(called, "name a column that is none of the dimensions")
        return cls(relation, names, column, argument)

    def beside(
        self, cursor: duckdb.DuckDBPyConnection, text: str | None, argument: str, measure: str | None, called: str
    ) -> Cube:
        """Another cube of the same dimensions."""
        relation = source(cursor, text, argument)
        check_kinds({self.argument: self.relation, argument: relation}, self.names, "dimensions")
        return Cube(relation, self.names, relation.number(measure, called), argument)

    @property
    def has_ranges(self) -> bool:
        """Whether its cells are those of several ranges, which need not agree."""
        return "range_id" in map(folded, self.relation.columns)

    def cells(self, *, negative: bool = False, by_range: bool = False) -> str:
        """SQL of the cells that are not empty: ``d0``, .., ``value``; with ``by_range`` each range's own (``own``).

        Args:
            negative: whether a value may be below 0, as noise makes it.
        """
        dimensions = [f"{self.relation.column(name, 'dimensions')} AS d{i}" for i, name in enumerate(self.names)]
        own = ["range_id AS own"] if by_range else []
        keys = [*(f"d{i}" for i in range(len(self.names))), *(["own"] if by_range else [])]
        is_null = " OR ".join(f"d{i} IS NULL" for i in range(len(self.names)))
        below = "" if negative else f"WHEN min(v) < 0 THEN {problem(self.argument, 'has a cell below 0')} "
        return f"""
            SELECT {", ".join(keys)}, CASE
                WHEN {is_null} THEN {problem(self.argument, "has a dimension that is NULL: leave totals out")}
                WHEN count(*) > 1 THEN {problem(self.argument, "has several rows of one cell: add them up")}
                WHEN NOT isfinite(min(v)) OR abs(min(v)) > {_LARGEST}
                    THEN {problem(self.argument, f"has a cell that is NaN, infinite or above {_LARGEST}")}
                {below}ELSE min(v) END AS value
            FROM (SELECT {", ".join([*dimensions, *own])}, {self.measure}::DOUBLE AS v FROM {self.relation.sql})
            WHERE v <> 0 GROUP BY {", ".join(keys)}"""

    def axis(self, place: int, other: Cube | None = None) -> str:
        """SQL of the places of the values of a dimension: ``v``, ``p``."""
        cubes = [self] if other is None else [self, other]
        name = self.names[place]
        parts = [f"SELECT {cube.relation.column(name, 'dimensions')} AS v FROM {cube.relation.sql}" for cube in cubes]
        return (
            f"SELECT v, row_number() OVER (ORDER BY v) - 1 AS p FROM (SELECT DISTINCT v FROM "
            f"({' UNION ALL '.join(parts)}) WHERE v IS NOT NULL)"
        )

    def axes(self, other: Cube | None = None) -> list[str]:
        """The common table expressions ``axis0``, .. ."""
        return [f"axis{place} AS MATERIALIZED ({self.axis(place, other)})" for place in range(len(self.names))]

    def placed(self, cells: str, *, by_range: bool = False) -> str:
        """SQL of cells with their places: ``p0``, .., ``value``."""
        joins = " ".join(f"JOIN axis{i} ON axis{i}.v = c.d{i}" for i in range(len(self.names)))
        places = ", ".join(f"axis{i}.p AS p{i}" for i in range(len(self.names)))
        return f"SELECT {places}, c.value{', c.own' if by_range else ''} FROM ({cells}) c {joins}"

    def boxes(self, cursor: duckdb.DuckDBPyConnection, text: str | None, argument: str) -> str:
        """SQL of ranges: ``range_id``, the places ``lo0``, ``hi0``, .. that are in them, and the sum that was ``told``.

        NULL is one range of all cells. A range without a value of a dimension has no place there (NULL).
        """
        names = self.names
        if text is None:
            bounds = "SELECT 1 AS range_id, NULL::DOUBLE AS told"
            bounds += "".join(f", NULL AS from{i}, NULL AS to{i}" for i in range(len(names)))
        else:
            bounds = self._bounds(source(cursor, text, argument), argument)
        found = "".join(
            f" LEFT JOIN (SELECT b.range_id, min(a.p) AS lo, max(a.p) AS hi FROM _bounds b JOIN axis{i} a "
            f"ON (b.from{i} IS NULL OR a.v >= b.from{i}) AND (b.to{i} IS NULL OR a.v <= b.to{i}) GROUP BY b.range_id) "
            f"f{i} ON f{i}.range_id = b.range_id"
            for i in range(len(names))
        )
        ends = ", ".join(f"f{i}.lo AS lo{i}, f{i}.hi AS hi{i}" for i in range(len(names)))
        return (
            f"WITH _bounds AS MATERIALIZED ({bounds}) SELECT b.range_id, b.told::DOUBLE AS told, {ends} "
            f"FROM _bounds b{found}"
        )

    def _bounds(self, ranges: Source, argument: str) -> str:
        """The ends of ranges, as values of the dimensions; each row is looked at."""
        for name in _COLUMNS_OF_RANGES:
            ranges.column(name, argument)
        told = ranges.number("told", argument) if "told" in map(folded, ranges.columns) else "NULL"
        dim = folded_sql("dim::VARCHAR")
        known = ", ".join(literal(folded(name)) for name in self.names)
        tests = [
            ("ranges.range_id IS NULL", "has a range_id that is NULL"),
            (f"bool_or(coalesce({dim} NOT IN ({known}), true))", "has a 'dim' that is none of the dimensions"),
            (f"count(*) > count(DISTINCT {dim})", "has a range with two rows of one dimension"),
            ("count(DISTINCT told) > 1 OR bool_or(NOT isfinite(told))", "has a range that was told two sums, or none"),
        ]
        ends = []
        for i, name in enumerate(self.names):
            kind = self.relation.type_of(name)
            one = f"FILTER ({dim} = {literal(folded(name))})"
            low, high = (f"TRY_CAST(any_value({end}::VARCHAR) {one} AS {kind})" for end in ("lo", "hi"))
            ends += [f"{low} AS from{i}", f"{high} AS to{i}"]
            unread = " OR ".join(
                f"({value} IS NULL AND count({end}) {one} > 0)" for value, end in ((low, "lo"), (high, "hi"))
            )
            tests.append((unread, f"has an end that is no value such as those of '{name}'"))
            tests.append((f"{low} > {high}", f"has a range of '{name}' with 'lo' above 'hi'"))
        cases = " ".join(f"WHEN {test} THEN {problem(argument, what)}" for test, what in tests)
        return (
            f"SELECT CASE {cases} ELSE ranges.range_id END AS range_id, any_value(told) AS told, {', '.join(ends)} "
            f"FROM (SELECT range_id, dim, lo, hi, {told}::DOUBLE AS told FROM {ranges.sql}) ranges "
            "GROUP BY ranges.range_id"
        )

    def inside(self, cell: str = "c", box: str = "b") -> str:
        """SQL for whether a cell is in a range."""
        return " AND ".join(f"{cell}.p{i} BETWEEN {box}.lo{i} AND {box}.hi{i}" for i in range(len(self.names)))

    def values(self, cell: str = "c") -> tuple[str, str, str]:
        """SQL of the values of a placed cell's dimensions, under their names; of the joins for it; of its place."""
        shown = ", ".join(f"axis{i}.v AS {identifier(name)}" for i, name in enumerate(self.names))
        joins = " ".join(f"JOIN axis{i} ON axis{i}.p = {cell}.p{i}" for i in range(len(self.names)))
        return shown, joins, ", ".join(f"{cell}.p{i}" for i in range(len(self.names)))


def problem(argument: str, what: str) -> str:
    """SQL of the error that an argument is wrong."""
    told = f"argument '{argument}' {what}"
    return f"error({literal(told)})"
