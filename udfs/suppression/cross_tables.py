"""Published tables in files for readers and programs: the planner of ``sdc_write_table``.

A file is made of the stored cells of a publication alone, of which suppressed numbers are NULL: nothing in it has seen
anything else. Which rule suppressed a cell, and which cells are secondary, is left out.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.catalog.engines import Engine
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded, harmless, identifier, literal
from sdcduck.udfs.arguments import choice, needed
from sdcduck.udfs.publication import read_publication
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.target import Target

TOTAL, UNKNOWN = "_T", "_U"
_FORMATS = {".csv": "csv", ".xlsx": "xlsx", ".json": "json-stat"}
_MOST_CELLS = 20_000_000  # of a cross table, those that no grouping set has among them
_WHOLE = 2**53  # up to here floating-point numbers are told apart by ones
_SHEET = (1_048_576, 16_384)  # rows and columns of a sheet
_WRITTEN = {"publication": "VARCHAR", "format": "VARCHAR", "cells": "BIGINT", "suppressed": "BIGINT"}
_OF_SDMX = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "MEASURE", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS")


@dataclass(frozen=True)
class Words:
    """What stands for what is no number or category.

    Attributes:
        suppressed: a number that is not for the public.
        missing: one that the publication does not have, or a sum of no values.
        total, unknown: a total over a column, and a category that is NULL.
    """

    suppressed: str
    missing: str
    total: str
    unknown: str

    def label(self, code: str) -> str:
        """A category as readers see it."""
        return {TOTAL: self.total, UNKNOWN: self.unknown}.get(code, code)


@dataclass(frozen=True)
class Cube:
    """The numbers of a publication, by categories.

    Attributes:
        name: of the publication.
        dimensions: names of the grouping columns.
        codes: of each its categories in their order, the total first.
        measures: names.
        places: of each cell the number of its category, a column a dimension.
        numbers: of each measure, one a cell; None: suppressed, or there is none.
        suppressed: of each cell.
    """

    name: str
    dimensions: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    measures: tuple[str, ...]
    places: NDArray[np.int64]
    numbers: tuple[list[Any], ...]
    suppressed: NDArray[np.bool_]

    @classmethod
    def read(cls, cursor: duckdb.DuckDBPyConnection, name: str, engine: Engine | None) -> Cube:
        """A stored publication that has been published.

        Raises:
            SDCError: it was not, or its categories have a code that stands for totals or NULL.
        """
        stored = catalog.publication(cursor, name)
        if stored.fingerprint is None:
            raise SDCError(f"'{name}' has not been published yet: FROM sdc_publish('{name}', ..)")
        publication = read_publication(cursor, stored.query, engine)
        levels = [publication.level_of(columns) for columns in publication.sets]
        if len(set(levels)) < len(levels):
            raise SDCError(f"'{name}' has columns whose names cannot be told apart in totals: call them otherwise")
        cells = f"(SELECT * FROM {catalog.cells_table(stored.name)} WHERE status <> 'hidden')"
        columns, codes = [], []
        for place, column in enumerate(publication.quoted_dimensions):
            having = [level for level, one in zip(levels, publication.sets, strict=True) if place in one]
            is_there = f"level IN ({', '.join(map(literal, having))})" if having else "false"
            columns.append(
                f"CASE WHEN NOT ({is_there}) THEN '{TOTAL}' "
                f"ELSE coalesce({column}::VARCHAR, '{UNKNOWN}') END AS _d{place}"
            )
            codes.append(_categories(cursor, cells, column, is_there, whole=len(having) == len(levels)))
        numbers = [f"{identifier(measure.name)} AS _m{place}" for place, measure in enumerate(publication.measures)]
        shown = ", ".join([*columns, *numbers, "status IN ('primary', 'secondary') AS _suppressed"])
        found = cursor.sql(f"SELECT {shown} FROM {cells}").to_arrow_table()
        places = [
            pc.index_in(found[f"_d{place}"], pa.array(one, pa.string())).to_numpy() for place, one in enumerate(codes)
        ]
        return cls(
            stored.name, publication.dimensions, tuple(codes), tuple(measure.name for measure in publication.measures),
            np.column_stack(places).astype(np.int64) if places else np.zeros((found.num_rows, 0), np.int64),
            tuple(list(map(_finite, found[f"_m{place}"].to_pylist())) for place in range(len(publication.measures))),
            found["_suppressed"].to_numpy().astype(bool),
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each dimension has."""
        return tuple(map(len, self.codes))

    def grid(self, measure: int, words: Words, across: int | None) -> tuple[list[list[str]], list[list[Any]]]:
        """A cross table of a measure: the categories that head each row, and its numbers and words.

        Args:
            across: the dimension of the columns; None: there are no more than one, and one column.
        """
        down = [place for place in range(len(self.dimensions)) if place != across]
        rows, row = self._rows(down)
        wide = 1 if across is None else len(self.codes[across])
        column = np.zeros(len(row), np.int64) if across is None else self.places[:, across]
        if rows and len(rows) * wide > _MOST_CELLS:
            raise SDCError(f"a cross table of {len(rows)} rows and {wide} columns: take another column across")
        made = np.full((max(1, len(rows)), wide), words.missing, dtype=object)
        made[row, column] = [
            words.suppressed if hidden else words.missing if number is None else number
            for number, hidden in zip(self.numbers[measure], self.suppressed.tolist(), strict=True)
        ]
        return [[words.label(code) for code in one] for one in rows], made.tolist()

    def _rows(self, down: list[int]) -> tuple[list[list[str]], NDArray[np.int64]]:
        """The categories of each row, in their order, and the row of each cell."""
        if not down:
            return [[]], np.zeros(len(self.places), np.int64)
        different, row = np.unique(self.places[:, down], axis=0, return_inverse=True)
        return [
            [self.codes[place][code] for place, code in zip(down, one, strict=True)] for one in different.tolist()
        ], row.reshape(-1)


def _categories(
    cursor: duckdb.DuckDBPyConnection, cells: str, column: str, is_there: str, *, whole: bool
) -> tuple[str, ...]:
    rows = cursor.execute(
        f"SELECT DISTINCT ON ({column}) coalesce({column}::VARCHAR, '{UNKNOWN}'), {column} IS NULL FROM {cells} "
        f"WHERE {is_there} ORDER BY {column} NULLS LAST"
    ).fetchall()
    if any(code in (TOTAL, UNKNOWN) and not missing for code, missing in rows):
        raise SDCError(f"a category has the code {TOTAL} or {UNKNOWN}, which are for totals and NULL: give it another")
    codes = tuple(code for code, _ in rows)
    if len(set(codes)) < len(codes):
        raise SDCError(f"two categories of {column} are written alike")
    return codes if whole else (TOTAL, *codes)


def _finite(number: Any) -> Any:
    """A number as it is written: whole ones without a point, and what is no number not at all."""
    if not isinstance(number, float):
        return number
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


# --- Formats ----------------------------------------------------------------------------------------------------------


def _across(cube: Cube, across: str | None) -> int | None:
    """Which dimension goes across: the last one, if there are two or more."""
    if across is None:
        return len(cube.dimensions) - 1 if len(cube.dimensions) > 1 else None
    names = [folded(name) for name in cube.dimensions]
    if folded(across) not in names:
        raise unknown("column", across, list(cube.dimensions), where="argument 'across'")
    return names.index(folded(across))


def _lines(cube: Cube, words: Words, across: int | None) -> Iterator[list[Any]]:
    """The lines of a cross table; with several measures and columns each row says of which measure it is."""
    down = [name for place, name in enumerate(cube.dimensions) if place != across]
    if across is None:
        yield [*down, *cube.measures]
        grids = [cube.grid(place, words, None) for place in range(len(cube.measures))]
        for row, head in enumerate(grids[0][0]):
            yield [*head, *(numbers[row][0] for _, numbers in grids)]
        return
    several = len(cube.measures) > 1
    yield [*down, *(["measure"] if several else []), *map(words.label, cube.codes[across])]
    for place, measure in enumerate(cube.measures):
        for head, numbers in zip(*cube.grid(place, words, across), strict=True):
            yield [*head, *([measure] if several else []), *numbers]


def _write_csv(cube: Cube, words: Words, across: int | None, made: Path) -> None:
    with made.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for line in _lines(cube, words, across):
            writer.writerow([harmless(value) if isinstance(value, str) else value for value in line])


def _write_xlsx(cube: Cube, words: Words, across: int | None, made: Path) -> None:
    """A sheet for each measure, or one where there is nothing across; below each what its signs mean."""
    from xlsxwriter import Workbook

    with Workbook(str(made), {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        bold, sign = book.add_format({"bold": True}), book.add_format({"align": "right"})
        whole, broken = book.add_format({"num_format": "#,##0"}), book.add_format({"num_format": "#,##0.00"})
        legend = [f"{words.suppressed}  confidential", f"{words.missing}  not available"]
        for place, name in enumerate(_sheets(cube, across)):
            sheet = book.add_worksheet(name)
            one = cube if across is None else _of_measure(cube, place)
            by = ", ".join(cube.dimensions) or "total"
            sheet.write_string(0, 0, f"{cube.name}: {', '.join(one.measures)} by {by}", bold)
            number, heads = 2, len(cube.dimensions) - (across is not None)
            for number, line in enumerate(_lines(one, words, across), 2):
                if number + len(legend) + 2 > _SHEET[0] or len(line) > _SHEET[1]:
                    raise SDCError("a cross table has more rows or columns than a sheet: write a csv file")
                for column, value in enumerate(line):
                    if isinstance(value, str):
                        is_sign = number > 2 and column >= heads
                        sheet.write_string(number, column, value, bold if number == 2 else sign if is_sign else None)
                    else:
                        is_whole = not isinstance(value, (float, Decimal)) or value == int(value)
                        sheet.write_number(number, column, value, whole if is_whole else broken)
            for below, text in enumerate(legend, number + 2):
                sheet.write_string(below, 0, text)
            sheet.freeze_panes(3, heads)


def _of_measure(cube: Cube, place: int) -> Cube:
    return Cube(
        cube.name, cube.dimensions, cube.codes, cube.measures[place : place + 1], cube.places,
        cube.numbers[place : place + 1], cube.suppressed,
    )  # fmt: skip


def _sheets(cube: Cube, across: int | None) -> list[str]:
    """Names of sheets: short, of letters that a sheet may have, no two alike."""
    names: list[str] = []
    for name in [cube.name] if across is None else cube.measures:
        plain = "".join("_" if letter in "[]:*?/\\'" else letter for letter in name)[:28] or "table"
        taken = {folded(one) for one in names}
        numbered = (plain if number == 1 else f"{plain} {number}" for number in range(1, len(names) + 2))
        names.append(next(one for one in numbered if folded(one) not in taken))
    return names


def _write_json_stat(cube: Cube, words: Words, across: int | None, made: Path) -> None:
    """JSON-stat 2.0: a dataset with a dimension for the measures; status `c` confidential, `m` missing."""
    metric = "measure"
    if metric in map(folded, cube.dimensions):
        raise SDCError("a column is called 'measure', as that of the measures is: publish it under another name")
    shape = (*cube.shape, len(cube.measures))
    values: dict[str, Any] = {}
    status: dict[str, str] = {}
    base = np.ravel_multi_index((*cube.places.T, np.zeros(len(cube.places), np.int64)), shape).tolist()
    for place, numbers in enumerate(cube.numbers):
        for at, number, hidden in zip(base, numbers, cube.suppressed.tolist(), strict=True):
            if hidden or number is None:
                status[str(at + place)] = "c" if hidden else "m"
            else:
                values[str(at + place)] = number
    dimensions = {
        name: {"label": name, "category": {"index": list(codes), "label": {code: words.label(code) for code in codes}}}
        for name, codes in zip((*cube.dimensions, metric), (*cube.codes, cube.measures), strict=True)
    }
    dataset = {
        "version": "2.0", "class": "dataset", "label": cube.name, "id": [*cube.dimensions, metric], "size": list(shape),
        "role": {"metric": [metric]}, "dimension": dimensions, "value": _in_order(values), "status": _in_order(status),
        "extension": {"status": {"c": words.suppressed, "m": words.missing}},
    }  # fmt: skip
    with made.open("w", encoding="utf-8") as file:
        json.dump(dataset, file, ensure_ascii=False, default=_json_number)


def _in_order(by_place: Mapping[str, Any]) -> dict[str, Any]:
    return {place: by_place[place] for place in sorted(by_place, key=int)}


def _json_number(number: Any) -> Any:
    if isinstance(number, Decimal):
        return int(number) if number == int(number) else float(number)
    raise TypeError(type(number).__name__)


def _write_sdmx(cube: Cube, structure: str, made: Path) -> None:
    """SDMX-CSV 2.0: an observation a line."""
    for name in cube.dimensions:
        if name.upper() in _OF_SDMX:
            raise SDCError(f"a column is called '{name}', as one of SDMX-CSV is: publish it under another name")
    with made.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow([*_OF_SDMX[:3], *cube.dimensions, *_OF_SDMX[3:]])
        for cell, (places, hidden) in enumerate(zip(cube.places.tolist(), cube.suppressed.tolist(), strict=True)):
            codes = [codes[place] for codes, place in zip(cube.codes, places, strict=True)]
            for measure, numbers in zip(cube.measures, cube.numbers, strict=True):
                number = None if hidden else numbers[cell]
                told = ("Q", "N") if hidden else ("A" if number is not None else "O", "F")
                writer.writerow(["dataflow", structure, "I", *codes, measure, number, *told])


# --- The function -----------------------------------------------------------------------------------------------------


def plan_write_table(
    session: Session, publication: str | None, file: str | None, format: str | None, across: str | None,
    suppressed: str | None, missing: str | None, total: str | None, without: str | None, structure: str | None,
    force: bool | None,
) -> Rows:  # fmt: skip
    """``sdc_write_table``: the file is written when the statement runs."""
    name = needed(publication, "publication", "be the name of a stored publication")
    target = Target.read(session.cursor(), file, force)
    how = _format(format, target.path)
    given: Mapping[str, str | None] = {"suppressed": suppressed, "missing": missing, "total": total, "unknown": without}
    words = Words(*(needed(word, argument, "be a word or sign") for argument, word in given.items()))
    if words.suppressed == words.missing:
        raise SDCError("arguments 'suppressed' and 'missing' are the same: readers could not tell them apart")
    if how == "xlsx" and find_spec("xlsxwriter") is None:
        raise SDCError("an xlsx file needs the package 'xlsxwriter': pip install 'sdcduck[xlsx]'")
    if (structure is not None) != (how == "sdmx"):
        raise SDCError("argument 'structure', such as 'ORG:INCOMES(1.0.0)', and format := 'sdmx' need each other")
    if across is not None and how in ("sdmx", "json-stat"):
        raise SDCError("argument 'across' is for cross tables: csv and xlsx")

    def write() -> pa.Table:
        cursor = session.cursor()
        target.check(cursor)
        cube = Cube.read(cursor, name, session.engine)
        place = _across(cube, across)
        if how == "sdmx":
            target.write("written", lambda made: _write_sdmx(cube, str(structure), made))
        else:
            writers = {"csv": _write_csv, "xlsx": _write_xlsx, "json-stat": _write_json_stat}
            target.write("written", lambda made: writers[how](cube, words, place, made))
        hidden = int(cube.suppressed.sum())
        return table_of([dict(zip(_WRITTEN, (cube.name, how, len(cube.places), hidden), strict=True))], _WRITTEN)

    return Rows(write)


def _format(given: str | None, path: Path) -> str:
    if given is not None:
        return choice(given, "format", ("csv", "xlsx", "json-stat", "sdmx"))
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise SDCError(
            "argument 'format' must be 'csv', 'xlsx', 'json-stat' or 'sdmx', or the file end with .csv, .xlsx or .json"
        )
    return found
