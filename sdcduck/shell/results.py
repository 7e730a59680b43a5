"""How a result is written: as a box, CSV, JSON, a Markdown table, a line for each value, or a Parquet file.

DuckDB turns values into text, batch by batch, in an instance of its own that holds nothing.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from sdcduck.quoting import harmless, identifier, literal
from sdcduck.shell.boxes import WITHHELD, Column, Row, box, clean, legend

_FROM_TEXT = ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "uuid")
_AS_DUCKDB = r"regexp_replace({}, '^(\d+-\d+-\d+)(.*) BC$', '\1 (BC)\2')"
"""PostgreSQL has the BC of a moment behind it, DuckDB behind the day."""


class Texts:
    """Values as text."""

    def __init__(self) -> None:
        self._con = duckdb.connect()

    def of(self, batch: pa.RecordBatch) -> pa.Table:
        """Every value as DuckDB writes it."""
        return self._made(batch, ", ".join(f"CAST(c{place} AS VARCHAR)" for place in range(batch.num_columns)))

    def separated(self, batch: pa.RecordBatch, numbers: Sequence[bool]) -> list[str]:
        """A line of comma separated values for each row; an apostrophe is before what a spreadsheet would run.

        Args:
            numbers: which columns are; they stay as they are.
        """
        parts = []
        for place, is_number in enumerate(numbers):
            value = f"CAST(c{place} AS VARCHAR)"
            if not is_number:
                value = f"""if(regexp_matches({value}, '^[-=+@\\t\\r]'), '''' || {value}, {value})"""
            quoted = f"""'"' || replace({value}, '"', '""') || '"'"""
            parts.append(f"""CASE WHEN regexp_matches({value}, '[",\r\n]|^$') THEN {quoted} ELSE {value} END""")
        return [
            str(text)
            for text in self._made(batch, " || ',' || ".join(f"coalesce({part}, '')" for part in parts))[0].to_pylist()
        ]

    def objects(self, batch: pa.RecordBatch, names: Sequence[str]) -> list[str]:
        """A JSON object for each row; what JSON has no number for is null."""
        parts = []
        for place, (name, field) in enumerate(zip(names, batch.schema, strict=True)):
            value = f"c{place}"
            if pa.types.is_floating(field.type):
                value = f"CASE WHEN isfinite({value}) THEN {value} END"
            parts.append(f"{literal(name)}, {value}")
        return [str(text) for text in self._made(batch, f"json_object({', '.join(parts)})")[0].to_pylist()]

    def parquet(self, batches: Sequence[pa.RecordBatch], columns: Sequence[Column], file: Path) -> None:
        """Write a Parquet file. Values that came as text for want of a type in Python get theirs."""
        names = [f"c{place}" for place in range(len(columns))]
        if batches:
            tables = [pa.Table.from_batches([batch]).rename_columns(names) for batch in batches]
            table = pa.concat_tables(tables, promote_options="permissive")
        else:
            table = pa.table({name: pa.array([], pa.string()) for name in names})
        values = []
        for field, column in zip(table.schema, columns, strict=True):
            typed = pa.types.is_string(field.type) and (not batches or column.type in _FROM_TEXT)
            value = f"CAST({_AS_DUCKDB.format(field.name)} AS {column.type or 'VARCHAR'})" if typed else field.name
            values.append(f"{value} AS {identifier(column.name)}")
        self._con.from_arrow(table).project(", ".join(values)).write_parquet(str(file))

    def _made(self, batch: pa.RecordBatch, what: str) -> pa.Table:
        table = pa.Table.from_batches([batch]).rename_columns([f"c{place}" for place in range(batch.num_columns)])
        return self._con.from_arrow(table).project(what).to_arrow_table()


class Writer(Protocol):
    """Writes one result."""

    def batch(self, batch: pa.RecordBatch) -> None:
        """Some rows."""

    def end(self) -> None:
        """There are no more."""


def withheld(columns: Sequence[Column], batch: pa.RecordBatch) -> bool:
    """Whether some rows have a number that is not shown."""
    return any(
        column.null == WITHHELD and values.null_count for column, values in zip(columns, batch.columns, strict=True)
    )


class Boxed:
    """The first and the last rows of a result, as a box."""

    def __init__(
        self, console: Console, texts: Texts, columns: Sequence[Column], *, most: int, width: int | None
    ) -> None:
        self._console, self._texts, self._columns = console, texts, columns
        self._most, self._width = most, width
        self._head: list[Row] = []
        self._tail: deque[pa.RecordBatch] = deque()
        self._rows = self._in_tail = 0
        self._withheld = False

    def batch(self, batch: pa.RecordBatch) -> None:
        """Keep what may be shown."""
        self._withheld |= withheld(self._columns, batch)
        self._rows += batch.num_rows
        room = batch.num_rows if not self._most else (self._most + 1) // 2 - len(self._head)
        if room > 0:
            self._head += _rows(self._texts.of(batch[:room]))
            batch = batch[room:]
        if batch.num_rows:
            self._tail.append(batch)
            self._in_tail += batch.num_rows
            while self._in_tail - self._tail[0].num_rows >= self._most // 2:
                self._in_tail -= self._tail.popleft().num_rows

    def end(self) -> None:
        """Draw it."""
        tail = [row for batch in self._tail for row in _rows(self._texts.of(batch[-self._most :]))]
        tail = tail[-(self._most // 2) :] if self._most // 2 else []
        head = self._head
        if len(head) + len(tail) == self._rows:
            head, tail = [*head, *tail], []
        self._console.print(box(self._columns, head, tail, self._rows, self._width), soft_wrap=True)
        if told := legend(self._columns, withheld=self._withheld):
            self._console.print(told, style="dim", markup=False, highlight=False, soft_wrap=True)


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class CSV:
    """Comma separated values; NULL is nothing, an empty text a pair of quotes, and formulas have an apostrophe."""

    def __init__(self, write: Callable[[str], object], texts: Texts, columns: Sequence[Column]) -> None:
        self._write, self._texts = write, texts
        self._numbers = [column.is_number for column in columns]
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow([harmless(column.name) for column in columns])
        write(header.getvalue())

    def batch(self, batch: pa.RecordBatch) -> None:
        """Some rows."""
        self._write("".join(f"{line}\n" for line in self._texts.separated(batch, self._numbers)))

    def end(self) -> None:
        """Nothing more."""


class JSON:
    """A list of objects, one a line."""

    def __init__(self, write: Callable[[str], object], texts: Texts, columns: Sequence[Column]) -> None:
        self._write, self._texts = write, texts
        self._names = [column.name for column in columns]
        self._before = "["

    def batch(self, batch: pa.RecordBatch) -> None:
        """Some rows."""
        self._write(self._before + ",\n".join(self._texts.objects(batch, self._names)))
        self._before = ",\n"

    def end(self) -> None:
        """The end of the list."""
        self._write("[]\n" if self._before == "[" else "]\n")


class Markdown:
    """A table of Markdown, and a legend where something was protected."""

    def __init__(self, write: Callable[[str], object], texts: Texts, columns: Sequence[Column]) -> None:
        self._write, self._texts, self._columns = write, texts, columns
        names = [clean(column.name).replace("|", "\\|") for column in columns]
        rule = ["---:" if column.is_number else "---" for column in columns]
        write(f"| {' | '.join(names)} |\n|{'|'.join(rule)}|\n")
        self._withheld = False

    def batch(self, batch: pa.RecordBatch) -> None:
        """Some rows."""
        self._withheld |= withheld(self._columns, batch)
        cells = []
        for column, values in zip(self._columns, self._texts.of(batch).columns, strict=True):
            values = pc.replace_substring(pc.fill_null(values, column.null), "|", "\\|")
            cells.append(pc.replace_substring_regex(values, r"[\r\n]+", "<br>"))
        lines = pc.binary_join_element_wise(*cells, " | ") if len(cells) > 1 else cells[0]
        self._write("".join(f"| {line} |\n" for line in lines.to_pylist()))

    def end(self) -> None:
        """The legend."""
        if told := legend(self._columns, withheld=self._withheld):
            self._write(f"\n{told}\n")


class Lines:
    """Each value on a line of its own, after the name of its column."""

    def __init__(self, write: Callable[[str], object], texts: Texts, columns: Sequence[Column]) -> None:
        self._write, self._texts, self._columns = write, texts, columns
        self._before, self._withheld = "", False

    def batch(self, batch: pa.RecordBatch) -> None:
        """Some rows."""
        self._withheld |= withheld(self._columns, batch)
        width = max(len(clean(column.name)) for column in self._columns)
        cells = []
        for column, values in zip(self._columns, self._texts.of(batch).columns, strict=True):
            title = pa.scalar(f"{clean(column.name):>{width}} = ")
            values = pc.replace_substring(pc.fill_null(values, column.null), "\n", "\\n")
            cells.append(pc.binary_join_element_wise(title, values, ""))
        blocks = pc.binary_join_element_wise(*cells, "\n") if len(cells) > 1 else cells[0]
        self._write(self._before + "\n\n".join(map(_cleaned, blocks.to_pylist())) + "\n")
        self._before = "\n"

    def end(self) -> None:
        """The legend."""
        if told := legend(self._columns, withheld=self._withheld):
            self._write(f"\n{told}\n")


def _cleaned(block: str) -> str:
    return "\n".join(map(clean, block.split("\n")))


class Parquet:
    """A Parquet file, written as soon as the whole result is there."""

    def __init__(self, file: Path, texts: Texts, columns: Sequence[Column]) -> None:
        self._file, self._texts, self._columns = file, texts, columns
        self._batches: list[pa.RecordBatch] = []

    def batch(self, batch: pa.RecordBatch) -> None:
        """Keep some rows."""
        self._batches.append(batch)

    def end(self) -> None:
        """Write them."""
        self._texts.parquet(self._batches, self._columns, self._file)


FORMS: dict[str, Callable[[Callable[[str], object], Texts, Sequence[Column]], Writer]] = {
    "csv": CSV,
    "json": JSON,
    "markdown": Markdown,
    "line": Lines,
}
"""The forms beside the box."""
MODES = ("box", *FORMS)
ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".parquet": "parquet"}
"""The form of a file, by the end of its name."""
