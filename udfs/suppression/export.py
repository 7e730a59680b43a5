"""Published tables in a file of their own, for everybody: the planner behind `sdc_export`.

The file is made in an instance of its own, from nothing but the published cells and numbers that were made of them, so
that no page, statistic or name in it has seen anything else. What stands in for the inner cells is drawn from the
published sums alone (`stand_ins`).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.catalog import EXPORT, EXPORT_SAYS
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.suppression.stencil import STENCIL_PRIME, stand_ins, stencil
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import needed
from sdcduck.udfs.publication import Measure
from sdcduck.udfs.suppression.pattern import ARGUMENTS, Call, choose_pattern, pattern_table, protected_cells, read_call
from sdcduck.udfs.target import Target

_STORAGE = "v1.0.0"
_MOST_DECIMALS = 4
_OFF_GRID = 1e-6
_INSIDE = ("status", "why")  # 'primary' alone would say that a count is small


def plan_export(
    session: Session, names: str | None, file: str | None, with_stencil: bool | None, force: bool | None
) -> Rows:
    """``sdc_export``: the file is written when the statement runs."""
    cursor = session.cursor()
    publications = _names(names)
    target = Target.read(cursor, file, force)
    for name in publications:
        if catalog.publication(cursor, name).fingerprint is None:
            raise SDCError(f"'{name}' has not been published yet: FROM sdc_publish('{name}', ..)")

    def export() -> pa.Table:
        target.check(session.cursor())
        exported = [_exported(session, name, with_stencil is not False) for name in publications]
        target.write("export.duckdb", lambda made: _write(exported, made))
        return pa.table(
            {
                "publication": [one.name for one in exported],
                "cells": [one.cells.num_rows for one in exported],
                "inner_cells": [0 if one.inner is None else one.inner.num_rows for one in exported],
                "left_out": [", ".join(one.left_out) or None for one in exported],
            }
        )

    return Rows(export)


def _names(text: str | None) -> list[str]:
    """The publications: one name, or the text of a list of them."""
    plain = (text or "").strip()
    if plain.startswith("[") and plain.endswith("]"):
        plain = plain[1:-1]
    found = [name.strip() for name in plain.split(", ") if name.strip()]
    needed(found, "publications", "be the name of a stored publication, or a list of names")
    if len({folded(name) for name in found}) < len(found):
        raise SDCError("argument 'publications' has a name twice")
    return found


# --- What is exported -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exported:
    """What leaves the house of one publication.

    Attributes:
        name: of it.
        cells, inner: Arrow tables; inner: the stencil with stand-ins, None where nobody wants it.
        cell_types, inner_types: SQL types of their columns.
        dimensions, measures: names of columns.
        left_out: measures that the stencil has not.
    """

    name: str
    cells: pa.Table
    cell_types: list[str]
    inner: pa.Table | None
    inner_types: list[str]
    dimensions: tuple[str, ...]
    measures: tuple[Measure, ...]
    left_out: tuple[str, ...]


def _exported(session: Session, name: str, with_stencil: bool) -> _Exported:
    cursor = session.cursor()
    call = read_call(session, name, None, [None] * len(ARGUMENTS))
    publication = call.publication
    if "suppressed" in (folded(column) for column in publication.columns):
        raise SDCError(f"'{name}' has a column 'suppressed', as the exported table has: publish it under another name")
    stored = (
        f"(SELECT * EXCLUDE ({', '.join(_INSIDE)}), status IN ('primary', 'secondary') AS suppressed "
        f"FROM {catalog.cells_table(name)})"
    )
    cells, cell_types = _plain(cursor, stored)
    inner: pa.Table | None = None
    inner_types: list[str] = []
    left_out: tuple[str, ...] = ()
    if with_stencil:
        inner, inner_types, left_out = _stencil(session, name, call)
    return _Exported(
        name, cells, cell_types, inner, inner_types, publication.dimensions, publication.measures, left_out
    )


def _plain(cursor: duckdb.DuckDBPyConnection, relation: str) -> tuple[pa.Table, list[str]]:
    """A relation and the types of its columns; an ENUM would list values that nobody published, so it becomes text."""
    described = cursor.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    kinds = [(str(row[0]), "VARCHAR" if "ENUM" in str(row[1]) else str(row[1])) for row in described]
    shown = ", ".join(f"CAST({identifier(column)} AS {kind}) AS {identifier(column)}" for column, kind in kinds)
    return cursor.sql(f"SELECT {shown} FROM {relation}").to_arrow_table(), [kind for _, kind in kinds]


def _stencil(session: Session, name: str, call: Call) -> tuple[pa.Table, list[str], tuple[str, ...]]:
    """The inner cells with stand-ins for their numbers and a stencil, the types, and the measures left out."""
    cursor, publication = session.cursor(), call.publication
    # What was stored is what the rules give: chosen anew, but where that takes as long as to publish it.
    pattern = choose_pattern(session, call if call.options.protect_intervals else replace(call, published=None))
    _check_stored(cursor, name, call, pattern_table(pattern))
    cells = f"({publication.inner_cells(extend=call.extend)})"
    numbers = [(measure, _whole(cursor, cells, measure)) for measure in publication.measures]
    kept = [(measure, whole) for measure, whole in numbers if whole is not None]
    left_out = tuple(measure.name for measure, whole in numbers if whole is None)
    freq = next(whole for measure, whole in numbers if measure.name == call.freq)
    if freq is None or not np.array_equal(freq.values, pattern.inner.inner_freq):
        raise SDCError(f"the data of '{name}' changed while it was exported; try again")
    values = np.column_stack([whole.values for _, whole in kept])
    drawn = stand_ins(pattern.null_space, values, seed=secrets.randbits(63))
    dimensions, kinds = _plain(
        cursor, f"(SELECT {', '.join(publication.quoted_dimensions)} FROM {cells} ORDER BY _sdc_inner)"
    ) if publication.dimensions else (pa.table({}), [])  # fmt: skip
    columns = {column: dimensions[column] for column in dimensions.column_names}
    for place, (measure, whole) in enumerate(kept):
        columns[measure.name] = pa.array(drawn[:, place])
        kinds.append("BIGINT" if whole.decimals == 0 else f"DECIMAL(38, {whole.decimals})")
    columns["stencil"] = pa.array(stencil(pattern.null_space, seed=secrets.randbits(63))[:, 0])
    scales = {measure.name: whole.decimals for measure, whole in kept}
    table = pa.table(columns).replace_schema_metadata({"decimals": json.dumps(scales)})
    return table, [*kinds, "BIGINT"], left_out


def _check_stored(cursor: duckdb.DuckDBPyConnection, name: str, call: Call, pattern: pa.Table) -> None:
    """The cells that were published are those whose sums the stand-ins keep, or nothing leaves the house."""
    cursor.register("_sdc_pattern", pattern)
    shown = ", ".join([*call.publication.quoted_dimensions, "level", "status"])
    now = f"SELECT {shown} FROM ({protected_cells(call).replace('{rows}', '_sdc_pattern')})"
    before = f"SELECT {shown} FROM {catalog.cells_table(name)}"
    other = catalog.first_row(
        cursor, f"SELECT count(*) FROM (({now} EXCEPT ALL {before}) UNION ALL ({before} EXCEPT ALL {now}))"
    )
    if other is None or other[0]:
        raise SDCError(f"the cells of '{name}' are not those that its rules give now; use sdc_publish again")


@dataclass(frozen=True)
class _Whole:
    """Inner values in whole steps of 10^-decimals."""

    values: NDArray[np.int64]
    decimals: int


def _whole(cursor: duckdb.DuckDBPyConnection, cells: str, measure: Measure) -> _Whole | None:
    """The inner values of a measure, if they have few decimals and their sum fits the prime."""
    column = f"coalesce({identifier(measure.name)}, 0)"
    decimal = re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", measure.sql_type)
    steps: dict[int, str] = {}
    if measure.sql_type in ("DOUBLE", "FLOAT"):
        for decimals in range(_MOST_DECIMALS + 1):
            scaled = f"{column}::DOUBLE * {10**decimals}"
            steps[decimals] = (
                f"CASE WHEN abs({scaled} - round({scaled})) <= {_OFF_GRID} THEN try_cast(round({scaled}) AS BIGINT) END"
            )
    else:
        steps[int(decimal[1]) if decimal else 0] = f"try_cast(replace({column}::VARCHAR, '.', '') AS BIGINT)"
    for decimals, step in steps.items():
        values = cursor.sql(f"SELECT {step} AS v FROM {cells} ORDER BY _sdc_inner").to_arrow_table()["v"]
        if not values.null_count:
            whole = values.to_numpy().astype(np.int64)
            if np.abs(whole.astype(np.float64)).sum() < STENCIL_PRIME / 4:
                return _Whole(whole, decimals)
    return None


# --- The file ---------------------------------------------------------------------------------------------------------


def _write(exported: Sequence[_Exported], made: Path) -> None:
    with duckdb.connect(str(made), config={"storage_compatibility_version": _STORAGE}) as con:
        _fill(con, exported)
        con.execute("CHECKPOINT")


def _fill(con: duckdb.DuckDBPyConnection, exported: Sequence[_Exported]) -> None:
    con.execute(f"CREATE TABLE {EXPORT} (relation VARCHAR, publication VARCHAR, description VARCHAR, example VARCHAR)")
    if any(one.inner is not None for one in exported):
        con.execute((files("sdcduck.sql") / "exported_stencil.sql").read_text(encoding="utf-8"))
    for one in exported:
        _create(con, f"{one.name}_cells", one.cells, one.cell_types)
        _describe_cells(con, one)
        if one.inner is not None:
            _create(con, f"{one.name}_stencil", _with_decimals(one.inner), one.inner_types)
            _describe_stencil(con, one)
    con.execute(f"COMMENT ON TABLE {EXPORT} IS {literal(EXPORT_SAYS)}")


def _create(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, kinds: Sequence[str]) -> None:
    columns = ", ".join(f"{identifier(column)} {kind}" for column, kind in zip(rows.column_names, kinds, strict=True))
    con.execute(f"CREATE TABLE {identifier(name)} ({columns})")
    con.register("_sdc_rows", rows)
    con.execute(f"INSERT INTO {identifier(name)} FROM _sdc_rows")
    con.unregister("_sdc_rows")


def _with_decimals(inner: pa.Table) -> pa.Table:
    """Stand-ins of numbers with decimals are divided into their steps, exactly."""
    scales = json.loads((inner.schema.metadata or {})[b"decimals"])
    for place, column in enumerate(inner.column_names):
        decimals = scales.get(column, 0)
        if decimals:
            steps = inner[column].cast(pa.decimal128(19, 0)).combine_chunks()
            moved = pa.Array.from_buffers(pa.decimal128(19, decimals), len(steps), steps.buffers(), offset=steps.offset)
            inner = inner.set_column(place, column, moved)
    return inner


def _describe_cells(con: duckdb.DuckDBPyConnection, one: _Exported) -> None:
    table = identifier(f"{one.name}_cells")
    what = "The published cells. Numbers of suppressed cells are NULL; a grouping column is NULL in totals over it."
    _remember(con, one, table, what, f"FROM {table};")
    _comment(con, table, "level", "the grouping columns of the cell, or total")
    _comment(con, table, "suppressed", "whether the numbers are left out")


def _describe_stencil(con: duckdb.DuckDBPyConnection, one: _Exported) -> None:
    assert one.inner is not None
    table = identifier(f"{one.name}_stencil")
    measures = [measure for measure in one.measures if measure.name in one.inner.column_names]
    shown = ", ".join(
        f"sdc_open_{'count' if measure.kind == 'count' else 'sum'}({identifier(measure.name)}, stencil) AS "
        f"{identifier(measure.name)}"
        for measure in measures
    )
    groups = ", ".join(identifier(name) for name in one.dimensions[:1])
    example = f"SELECT {groups + ', ' if groups else ''}{shown} FROM {table}{' GROUP BY ' + groups if groups else ''};"
    what = (
        "For tables of your own: sums of these rows that follow from published cells are shown, all others are NULL. "
        "The numbers of single rows are random and mean nothing."
    )
    _remember(con, one, table, what, example)
    for measure in measures:
        kind = "count" if measure.kind == "count" else "sum"
        _comment(con, table, measure.name, f"random; only for sdc_open_{kind}({measure.name}, stencil)")
    _comment(con, table, "stencil", "random; which sums may be shown")


def _remember(con: duckdb.DuckDBPyConnection, one: _Exported, table: str, what: str, example: str) -> None:
    con.execute(f"COMMENT ON TABLE {table} IS {literal(what)}")
    con.execute(f"INSERT INTO {EXPORT} VALUES (?, ?, ?, ?)", [table.strip('"'), one.name, what, example])


def _comment(con: duckdb.DuckDBPyConnection, table: str, column: str, text: str) -> None:
    con.execute(f"COMMENT ON COLUMN {table}.{identifier(column)} IS {literal(text)}")
