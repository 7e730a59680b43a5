"""Two or three tables of records with the same columns: originals, synthetic records, and a holdout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from sdcduck.errors import SDCError
from sdcduck.quoting import folded, literal
from sdcduck.udfs.source import NUMBERS, Source, shared_columns, source

_KINDS = {
    **dict.fromkeys(NUMBERS, "number"), "BIGNUM": "number", "BOOLEAN": "boolean",
    "DATE": "instant", "TIMESTAMP": "instant", "TIMESTAMP_S": "instant", "TIMESTAMP_MS": "instant",
    "TIMESTAMP_NS": "instant", "TIMESTAMP WITH TIME ZONE": "instant with time zone", "TIME": "time",
    "VARCHAR": "text", "ENUM": "text", "UUID": "text", "JSON": "text",
}  # fmt: skip

COMPARED = "those that are compared"
"""The columns of a `Compared`, in messages."""


def kind_of(sql_type: str) -> str | None:
    """What the values of a type are; None for types that hold neither numbers nor categories.

    >>> kind_of("DECIMAL(9,2)"), kind_of("ENUM('a', 'b')"), kind_of("INTEGER[]")
    ('number', 'text', None)
    """
    return None if sql_type.endswith("]") else _KINDS.get(sql_type.split("(")[0].strip())


def _shown(sql_type: str) -> str:
    """A type without the labels of its values, which are data."""
    return re.split(r"\(", sql_type)[0] if sql_type.startswith(("ENUM", "STRUCT", "UNION", "MAP")) else sql_type


def check_kinds(tables: Mapping[str, Source], names: Sequence[str | None], argument: str) -> None:
    """Refuse two tables whose values of a column are never equal, such as codes that are numbers here and texts there.

    Args:
        tables: two, by the name of their argument.
        names: the columns.
        argument: that named them.

    Raises:
        SDCError: a column holds another kind of value in the other table, or is not there.
    """
    for name in names:
        for table in tables.values():
            table.column(name, argument)
        one, other = tables
        types = [table.type_of(str(name)) for table in tables.values()]
        kinds = [kind_of(sql_type) or sql_type for sql_type in types]
        if kinds[0] != kinds[1] and '"NULL"' not in types:
            raise SDCError(
                f"column '{name}' is {_shown(types[0])} in '{one}' and {_shown(types[1])} in '{other}': "
                "cast one of them in a query in parentheses"
            )


@dataclass(frozen=True)
class Compared:
    """The tables, and the columns that are compared.

    Attributes:
        tables: the originals first, then the others, by the name of their argument.
        names: the columns, as the originals call them.
        left_out: columns that not all tables have, where none were named.
    """

    tables: dict[str, Source]
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, cursor: duckdb.DuckDBPyConnection, tables: dict[str, str | None], columns: Sequence[str] | None, *,
        argument: str = "columns", leaving_out: str | None = None,
    ) -> Compared:  # fmt: skip
        """Resolve the arguments.

        Args:
            tables: by name of the argument; a holdout may be None, others not.
            columns: those to compare; none: all that every table has.
            argument: that named the columns.
            leaving_out: a column that is not compared unless it is named.

        Raises:
            SDCError: tables or columns that are not there, or types that cannot be compared.
        """
        found = {
            name: source(cursor, text, name) for name, text in tables.items() if text is not None or name != "holdout"
        }
        names = cls(found, ()).named(columns, argument, leaving_out=[leaving_out] if leaving_out else [])
        out = {folded(leaving_out)} if leaving_out else set()
        others_only = {
            folded(name): name
            for table in found.values()
            for name in table.columns
            if not columns and folded(name) not in out | {folded(name) for name in names}
        }
        return cls(found, names, tuple(others_only.values()))

    def named(
        self, columns: Sequence[str] | None, argument: str, *, leaving_out: Sequence[str] = ()
    ) -> tuple[str, ...]:  # fmt: skip
        """Columns that all tables have and that can be compared, as the originals call them; see `shared_columns`.

        Raises:
            SDCError: columns that are not there, or types that cannot be compared.
        """
        names = shared_columns(self.tables, columns, argument, leaving_out=leaving_out)
        for name in names:
            self.kind(name)
        return names

    @property
    def warning(self) -> str | None:
        """What to say of the columns that were left out."""
        if not self.left_out:
            return None
        shown = ", ".join(f"'{name}'" for name in self.left_out[:5]) + (", .." if len(self.left_out) > 5 else "")
        return f"not compared, because not all tables have it: {shown}"

    def kind(self, name: str) -> str:
        """What a column holds.

        Raises:
            SDCError: nothing that can be compared, or not the same in all tables.
        """
        kinds = {argument: self.tables[argument].type_of(name) for argument in self.tables}
        (first, its_type), *others = kinds.items()
        for argument, sql_type in kinds.items():
            if kind_of(sql_type) is None:
                raise SDCError(
                    f"column '{name}' of '{argument}' ({_shown(sql_type)}) holds neither numbers nor categories: "
                    "leave it out of 'columns', or cast it in a query in parentheses"
                )
        for argument, sql_type in others:
            if kind_of(sql_type) != kind_of(its_type):
                raise SDCError(
                    f"column '{name}' is {_shown(its_type)} in '{first}' and {_shown(sql_type)} in '{argument}': "
                    "cast one of them in a query in parentheses"
                )
        return str(kind_of(its_type))

    def category(self, argument: str, name: str) -> str:
        """SQL for a value of which only equality counts: the same for equal values of all tables."""
        table = self.tables[argument]
        column, sql_type = table.column(name, "columns"), table.type_of(name)
        if self.kind(name) == "text":
            return f"{column}::VARCHAR"
        if self.kind(name) == "instant":
            return f"{column}::TIMESTAMP"
        return f"CASE WHEN NOT isnan({column}) THEN {column} END" if sql_type in ("FLOAT", "DOUBLE") else column

    def number(self, argument: str, name: str) -> str:
        """SQL for a number of which differences count; it refuses infinite ones, and NaN is NULL."""
        table = self.tables[argument]
        column, sql_type, kind = table.column(name, "columns"), table.type_of(name), self.kind(name)
        number = f"{column}::DOUBLE" if kind == "number" else f"epoch_us({self.category(argument, name)})::DOUBLE"
        if sql_type not in ("FLOAT", "DOUBLE") and not kind.startswith("instant"):
            return number
        problem = (
            f"column '{name}' of '{argument}' holds infinite values, which have no distance: leave such records "
            "out, or make the values NULL"
        )
        refused = f"error({literal(problem)})"
        known = f"NOT isnan({column})" if kind == "number" else "true"
        return f"CASE WHEN isinf({column}) THEN {refused}::DOUBLE WHEN {known} THEN {number} END"

    def all_records(self) -> str:
        """A query for the records of all tables: columns ``c0``, ``c1``, .. as categories, and ``_of0``, ``_of1``, ..

        The latter are NULL but for the records of that table: to count them is faster than to count by a filter.
        """
        parts = []
        for place, argument in enumerate(self.tables):
            shown = ", ".join(f"{self.category(argument, name)} AS c{k}" for k, name in enumerate(self.names))
            which = ", ".join(f"{1 if k == place else 'NULL::INTEGER'} AS _of{k}" for k in range(len(self.tables)))
            parts.append(f"SELECT {shown}, {which} FROM {self.tables[argument].sql}")
        return " UNION ALL ".join(parts)

    def counted(self) -> str:
        """A query for the distinct records: columns ``c0``, ``c1``, .., and how many each table has of it.

        These are ``n0`` (originals), ``n1`` and ``n2``.
        """
        there = range(len(self.tables))
        counts = ", ".join(f"count(_of{place}) AS n{place}" if place in there else "0 AS n2" for place in range(3))
        keys = ", ".join(f"c{place}" for place in range(len(self.names)))
        return f"SELECT {keys}, {counts} FROM ({self.all_records()}) GROUP BY {keys}"
