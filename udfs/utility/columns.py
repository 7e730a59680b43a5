"""Two tables of records side by side: which columns they share, of what kind these are, and their values as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.methods.utility.buckets import bucket_codes, bucket_count, quantile_breaks
from sdcduck.udfs.arguments import among, wrong
from sdcduck.udfs.compared import COMPARED
from sdcduck.udfs.source import Source, is_number, shared_columns, source

MOST_BUCKETS = 250  # a code has one byte, and two more codes stand for what is outside and for NULL
_KINDS = {"number": "numbers", "time": "dates or times", "category": "categories"}
_AT_ONCE = 4_000_000  # numbers that are in memory at a time to find breaks, or one column if it has more
_BATCH = 122_880  # records read at a time: a row group of DuckDB


def kind_of(sql_type: str) -> str:
    """What a column is to the measures: 'number', 'time' or 'category'.

    >>> kind_of("DECIMAL(9,2)"), kind_of("TIMESTAMP WITH TIME ZONE"), kind_of("BOOLEAN"), kind_of("INTEGER[]")
    ('number', 'time', 'category', 'category')
    """
    if is_number(sql_type):
        return "number"
    timed = sql_type.startswith(("DATE", "TIME")) and not sql_type.endswith("]")
    return "time" if timed else "category"


@dataclass(frozen=True)
class Compared:
    """The columns by which tables of records are compared.

    Attributes:
        sides: original, synthetic, and further tables.
        names: the columns, as the original calls them.
        kinds: of each: 'number', 'time' or 'category'.
    """

    sides: tuple[Source, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def read(
        cls, cursor: duckdb.DuckDBPyConnection, original: str | None, synthetic: str | None,
        columns: list[str] | None, categorical: list[str] | None = None, *, holdout: str | None = None,
        leave_out: Sequence[str] = (),
    ) -> Compared:  # fmt: skip
        """The columns that the arguments describe: those named, or all that both have.

        Args:
            categorical: columns of numbers or dates that are categories.
            leave_out: columns that are not compared, unless they are named.

        Raises:
            SDCError: an unknown column, one named twice, or one that is of different kinds in the tables.
        """
        tables = {"original": source(cursor, original, "original"), "synthetic": source(cursor, synthetic, "synthetic")}
        if holdout is not None:
            tables["holdout"] = source(cursor, holdout, "holdout")
        sides = list(tables.values())
        names = shared_columns(tables, columns, leaving_out=leave_out)
        coded = {names[place] for place in among(categorical, "categorical", names, COMPARED)}
        kinds = tuple("category" if name in coded else kind_of(sides[0].type_of(name)) for name in names)
        for name, kind in zip(names, kinds, strict=True):
            for side in sides[1:]:
                other = kind_of(side.type_of(name))
                if kind != other and name not in coded:
                    raise SDCError(
                        f"column '{name}' has {_KINDS[kind]} in {sides[0].described} and {_KINDS[other]} in "
                        f"{side.described}: cast one of them in a query, or name it in argument 'categorical'"
                    )
        return cls(tuple(sides), names, kinds)

    def ways(self, given: int | None) -> int:
        """The number of columns of a table.

        Raises:
            SDCError: none that a table can have, or more than are compared.
        """
        if given not in (1, 2, 3):
            raise wrong("ways", "be 1, 2 or 3", "so many columns at a time")
        if len(self.names) < given:
            raise SDCError(f"ways := {given} needs at least {given} columns, there are {len(self.names)}")
        return given

    def expression(self, place: int, side: Source) -> str:
        """A column of one side, as DOUBLE or VARCHAR."""
        name, kind = self.names[place], self.kinds[place]
        column, sql_type = side.column(name, "columns"), side.type_of(name)
        if kind == "number":
            return f"{column}::DOUBLE"
        if kind == "time":
            if sql_type.startswith(("DATE", "TIMESTAMP")):
                # An infinite date has no place on an axis; it counts as NULL.
                cast = f"{column}::TIMESTAMP" if sql_type.startswith("DATE") else column
                return f"CASE WHEN isfinite({column}) THEN epoch_us({cast})::DOUBLE END"
            return f"epoch_us({column}::TIME)::DOUBLE"
        wanted = self.sides[0].type_of(name)
        if sql_type != wanted and kind_of(sql_type) == kind_of(wanted) == "number":
            # The code 1 is '1' on one side and '1.0' on the other.
            return (
                f"CASE WHEN {column}::DOUBLE = floor({column}::DOUBLE) AND abs({column}::DOUBLE) < 1e15 "
                f"THEN {column}::BIGINT::VARCHAR ELSE {column}::DOUBLE::VARCHAR END"
            )
        return f"{column}::VARCHAR"

    def open(self, cursor: duckdb.DuckDBPyConnection, marks: str | None = None) -> list[Side]:
        """The sides, ready to be read any number of times: a query or a view is computed once.

        Args:
            marks: a further column of the synthetic side, as text.
        """
        opened = []
        cursor.begin()  # whatever is read, and however often, is of one moment
        for number, side in enumerate(self.sides):
            shown = ", ".join(f"{self.expression(place, side)} AS c{place}" for place in range(len(self.names)))
            if marks is not None and number == 1:
                shown += f", {marks}::VARCHAR AS marks"
            kind = "VIEW" if _is_table(cursor, side) else "TABLE"
            cursor.execute(f"CREATE TEMP {kind} _sdc_side{number} AS SELECT {shown} FROM {side.sql}")
            count = first_row(cursor, f"SELECT count(*) FROM _sdc_side{number}")
            opened.append(Side(f"_sdc_side{number}", count[0] if count else 0))
        return opened


@dataclass(frozen=True)
class Side:
    """One table, with its columns as c0, c1, .., DOUBLE or VARCHAR.

    Attributes:
        relation: a temporary table or view of the cursor.
        rows: how many records it has.
    """

    relation: str
    rows: int


def _is_table(cursor: duckdb.DuckDBPyConnection, side: Source) -> bool:
    if side.text.startswith("("):
        return False
    row = first_row(
        cursor, "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND database_name = current_database()",
        [side.text],
    )  # fmt: skip
    return bool(row and row[0])


# --- buckets of the original -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Buckets:
    """The buckets of a column.

    Attributes:
        breaks: of numbers and times; None for categories.
        values: of categories: those that have a bucket of their own, most frequent first.
    """

    breaks: NDArray[np.float64] | None
    values: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many there are, without those for other values and for NULL."""
        return len(self.values) if self.breaks is None else bucket_count(self.breaks)

    def label(self, code: int, sql_type: str) -> str | None:
        """What a code stands for; None is NULL."""
        if code > self.size:
            return None
        if code == self.size:
            return "other"
        if self.breaks is None:
            return self.values[code]
        texts = [shown_number(value, sql_type) for value in self.breaks]
        if len(texts) == 1:
            return texts[0]
        return f"{'[' if code == 0 else '('}{texts[code]}, {texts[code + 1]}]"


def shown_number(value: float, sql_type: str) -> str:
    """A number, or the date or time that it stands for, as text."""
    if sql_type.startswith("DATE"):
        return str(np.datetime64(int(value), "us").astype("datetime64[D]"))
    if sql_type.startswith("TIMESTAMP"):
        return str(np.datetime64(int(value), "us").astype("datetime64[s]")).replace("T", " ")
    if sql_type.startswith("TIME"):
        return str(np.datetime64(int(value), "us").astype("datetime64[s]")).split("T")[1]
    return f"{value:.15g}"


def buckets_of(cursor: duckdb.DuckDBPyConnection, compared: Compared, side: Side, most: int, top: int) -> list[Buckets]:
    """At most ``most`` quantile buckets of each number, and the ``top`` most frequent values of each category."""
    found: dict[int, Buckets] = {}
    for place, values in numbers(cursor, compared, side):
        found[place] = Buckets(quantile_breaks(values[np.isfinite(values)], most))
    for place, kind in enumerate(compared.kinds):
        if kind == "category":
            # Ties are broken by value, so that the order of the records does not matter.
            rows = cursor.execute(
                f"SELECT c{place} FROM {side.relation} WHERE c{place} IS NOT NULL "
                f"GROUP BY ALL ORDER BY count(*) DESC, c{place} LIMIT {top}"
            ).fetchall()
            found[place] = Buckets(None, tuple(row[0] for row in rows))
    return [found[place] for place in range(len(compared.kinds))]


def numbers(
    cursor: duckdb.DuckDBPyConnection, compared: Compared, side: Side
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The columns of numbers and times, one after the other; NULL is NaN."""
    places = [place for place, kind in enumerate(compared.kinds) if kind != "category"]
    together = max(1, _AT_ONCE // max(side.rows, 1))
    for start in range(0, len(places), together):
        block = places[start : start + together]
        shown = ", ".join(f"c{place}" for place in block)
        table = cursor.sql(f"SELECT {shown} FROM {side.relation}").to_arrow_table()
        for place in block:
            yield place, _floats(table[f"c{place}"])


def _floats(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    """NULL becomes NaN."""
    if isinstance(column, pa.ChunkedArray):
        values: NDArray[np.float64] = column.to_numpy()
        return values
    single: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return single


def code_batches(
    cursor: duckdb.DuckDBPyConnection, side: Side, buckets: Sequence[Buckets], used: Sequence[int]
) -> Iterator[NDArray[np.uint8]]:
    """The records as codes (columns, records), a batch at a time; only the columns ``used`` are read and filled."""
    sets = {place: pa.array(buckets[place].values, pa.string()) for place in used if buckets[place].breaks is None}
    shown = ", ".join(f"c{place}" for place in used)
    reader = cursor.sql(f"SELECT {shown} FROM {side.relation}").to_arrow_reader(_BATCH)
    for batch in reader:
        codes = np.zeros((len(buckets), batch.num_rows), dtype=np.uint8)
        for number, place in enumerate(used):
            column, one = batch.column(number), buckets[place]
            if one.breaks is not None:
                bucket_codes(_floats(column), one.breaks, codes[place])
                continue
            looked_up = pc.index_in(column, value_set=sets[place])
            known = looked_up.fill_null(one.size).to_numpy(zero_copy_only=False)
            codes[place] = known
            if column.null_count:
                codes[place][column.is_null().to_numpy(zero_copy_only=False)] = one.size + 1
        yield codes
