"""Accuracy over margins of one, two or three columns: planners behind ``sql/utility_tables.sql``.

The records are read as a stream and counted as they come: what is in memory is a batch and the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.utility.margins import (
    Counts,
    Distances,
    chunks_of_subsets,
    count_margins,
    distances,
    subsets_of,
    worst_cells,
)
from sdcduck.udfs.arguments import whole
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.utility.columns import MOST_BUCKETS, Buckets, Compared, Side, buckets_of, code_batches

_BUCKETS = {1: 100, 2: 10, 3: 5}  # of Platzer and Reutterer (2021)
_MEMORY = 1 << 28  # bytes of counts of one side; with more margins the records are read again
_MOST_MARGINS = 2_000_000
_FAR_ABOVE_NOISE, _FAR_BELOW_NOISE = 0.1, 0.5

ACCURACY_COLUMNS = {
    "ways": "BIGINT", "margins": "BIGINT", "buckets": "BIGINT", "accuracy": "DOUBLE", "tvd": "DOUBLE", "l1": "DOUBLE",
    "hellinger": "DOUBLE", "tvd_max": "DOUBLE", "worst": "VARCHAR", "tvd_expected": "DOUBLE", "tvd_holdout": "DOUBLE",
    "ratio": "DOUBLE", "warning": "VARCHAR",
}  # fmt: skip
CELL_COLUMNS = {
    "column_a": "VARCHAR", "bucket_a": "VARCHAR", "column_b": "VARCHAR", "bucket_b": "VARCHAR", "column_c": "VARCHAR",
    "bucket_c": "VARCHAR", "original": "BIGINT", "synthetic": "BIGINT", "share_original": "DOUBLE",
    "share_synthetic": "DOUBLE", "difference": "DOUBLE",
}  # fmt: skip


@dataclass(frozen=True)
class _Call:
    compared: Compared
    ways: int
    buckets: int

    @classmethod
    def read(
        cls, session: Session, original: str | None, synthetic: str | None, columns: list[str] | None,
        ways: int | None, buckets: int | None, categorical: list[str] | None, holdout: str | None,
    ) -> _Call:  # fmt: skip
        most = None if buckets is None else whole(buckets, "buckets", least=1, most=MOST_BUCKETS)
        compared = Compared.read(session.cursor(), original, synthetic, columns, categorical, holdout=holdout)
        order = compared.ways(ways)
        margins = subsets_of(len(compared.names), order)
        if margins > _MOST_MARGINS:
            raise SDCError(f"{margins} margins are more than {_MOST_MARGINS}: name fewer columns")
        return cls(compared, order, most or _BUCKETS[order])


@dataclass(frozen=True)
class _Counted:
    """The counts of some margins on all sides."""

    subsets: NDArray[np.int64]
    counts: list[Counts]


def _counted(
    cursor: duckdb.DuckDBPyConnection, call: _Call, sides: list[Side], buckets: list[Buckets]
) -> Iterator[_Counted]:
    width = max(one.size for one in buckets) + 2
    cells = width**call.ways
    columns = len(call.compared.names)
    pieces = chunks_of_subsets(columns, call.ways, max(1, _MEMORY // (4 * cells)))
    check = shown_checkpoint()
    total, done = len(pieces) * sum(side.rows for side in sides), 0
    threads = first_row(cursor, "SELECT current_setting('threads')::INTEGER")
    workers = max(1, threads[0] if threads else 1)
    with ThreadPoolExecutor(workers) as pool:
        for subsets in pieces:
            used = sorted(set(subsets.ravel().tolist()))
            counted = []
            for side in sides:
                counts = np.zeros((len(subsets), cells), dtype=np.uint32)
                limits = np.linspace(0, len(subsets), workers + 1).astype(int)
                parts = [slice(low, high) for low, high in pairwise(limits) if high > low]
                running: list[Future[None]] = []
                for codes in code_batches(cursor, side, buckets, used):
                    # A batch is read while the one before it is counted.
                    for one in running:
                        one.result()
                    running = [pool.submit(count_margins, codes, subsets[part], width, counts[part]) for part in parts]
                    done += codes.shape[1]
                    check(done, total)
                for one in running:
                    one.result()
                counted.append(counts)
            yield _Counted(subsets, counted)


def _opened(cursor: duckdb.DuckDBPyConnection, call: _Call) -> tuple[list[Side], list[Buckets]]:
    sides = call.compared.open(cursor)
    return sides, buckets_of(cursor, call.compared, sides[0], call.buckets, call.buckets)


def _margin_table(cursor: duckdb.DuckDBPyConnection, call: _Call) -> tuple[pa.Table, list[Side], list[Buckets]]:
    """The distances of every margin."""
    sides, buckets = _opened(cursor, call)
    names = np.array(call.compared.names, dtype=object)
    tables = []
    for piece in _counted(cursor, call, sides, buckets):
        found: list[Distances | None] = [
            distances(piece.counts[0], other) if sides[0].rows and side.rows else None
            for side, other in zip(sides[1:], piece.counts[1:], strict=True)
        ]
        size = len(piece.subsets)
        nothing = np.full(size, np.nan)
        one = found[0]
        fresh = found[1].l1 / 2 if len(found) > 1 and found[1] is not None else nothing
        columns: dict[str, object] = {
            f"column_{letter}": names[piece.subsets[:, place]] if place < call.ways else [None] * size
            for place, letter in enumerate("abc")
        }
        columns["cells"] = [None] * size if one is None else one.cells.astype(np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            tvd = nothing if one is None else one.l1 / 2
            numbers = {
                "tvd": tvd, "accuracy": 1 - tvd, "l1": 2 * tvd,
                "mae": nothing if one is None else one.l1 / one.cells,
                "max_difference": nothing if one is None else one.largest,
                "hellinger": nothing if one is None else one.hellinger,
                "tvd_expected": nothing if one is None else one.l1_expected / 2,
                "tvd_holdout": fresh, "ratio": np.where(fresh > 0, tvd / fresh, np.nan),
            }  # fmt: skip
        arrays = {name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()}
        texts = {name: pa.array(values, pa.string()) for name, values in columns.items() if name != "cells"}
        cells = {"cells": pa.array(columns["cells"], pa.int64())}
        tables.append(pa.table({**texts, **cells, **arrays}))
    return pa.concat_tables(tables), sides, buckets


def plan_accuracy_margins(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, ways: int | None,
    buckets: int | None, categorical: list[str] | None, holdout: str | None,
) -> Rows:  # fmt: skip
    """``sdc_accuracy_margins``: the distances of each margin."""
    call = _Call.read(session, original, synthetic, columns, ways, buckets, categorical, holdout)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            return _margin_table(cursor, call)[0]

    return Rows(make)


def plan_accuracy(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, ways: int | None,
    buckets: int | None, categorical: list[str] | None, holdout: str | None,
) -> Rows:  # fmt: skip
    """``sdc_accuracy``: the means over all margins, with what makes them misleading."""
    call = _Call.read(session, original, synthetic, columns, ways, buckets, categorical, holdout)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            margins, sides, found = _margin_table(cursor, call)
        return _summary(call, margins, sides, found)

    return Rows(make)


def _mean(table: pa.Table, name: str) -> float | None:
    values = table[name].drop_null().to_numpy()
    return float(values.mean()) if len(values) else None


def _summary(call: _Call, margins: pa.Table, sides: list[Side], buckets: list[Buckets]) -> pa.Table:
    tvd, fresh, expected = (_mean(margins, name) for name in ("tvd", "tvd_holdout", "tvd_expected"))
    worst = None
    if tvd is not None:
        place = int(np.argmax(margins["tvd"].to_numpy()))
        names = [margins[f"column_{letter}"][place].as_py() for letter in "abc"]
        worst = " x ".join(name for name in names if name is not None)
    row = {
        "ways": call.ways, "margins": margins.num_rows, "buckets": call.buckets,
        "accuracy": None if tvd is None else 1 - tvd, "tvd": tvd, "l1": None if tvd is None else 2 * tvd,
        "hellinger": _mean(margins, "hellinger"),
        "tvd_max": None if tvd is None else float(margins["tvd"].to_numpy().max()), "worst": worst,
        "tvd_expected": expected, "tvd_holdout": fresh,
        "ratio": tvd / fresh if tvd is not None and fresh else None,
        "warning": _warning(call, tvd, expected, fresh, sides, buckets),
    }  # fmt: skip
    return table_of([row], ACCURACY_COLUMNS)


def _warning(
    call: _Call, tvd: float | None, expected: float | None, fresh: float | None, sides: list[Side],
    buckets: list[Buckets],
) -> str | None:  # fmt: skip
    """What makes the number misleading; None: nothing that was seen."""
    if tvd is None or expected is None:
        return "one of the tables is empty"
    told = []
    if call.ways == 1:
        told.append("single columns say nothing about relations: look at ways := 2 and 3")
    constant = [name for name, one in zip(call.compared.names, buckets, strict=True) if one.size <= 1]
    if constant:
        told.append(f"one bucket holds nearly all of {', '.join(constant)}: they count as accurate for nothing")
    noise = expected if fresh is None else fresh
    if noise > _FAR_ABOVE_NOISE:
        told.append(f"chance alone makes a distance of {noise:.2g}: too many cells for so few records")
    if tvd < _FAR_BELOW_NOISE * noise:
        told.append("closer than a fresh sample would be: look for copies of records")
    return "; ".join(told) or None


def plan_accuracy_cells(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, ways: int | None,
    buckets: int | None, categorical: list[str] | None, worst: int | None,
) -> Rows:  # fmt: skip
    """``sdc_accuracy_cells``: the cells that differ most."""
    call = _Call.read(session, original, synthetic, columns, ways, buckets, categorical, None)
    shown = whole(worst, "worst", least=1, most=1_000_000)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            sides, found = _opened(cursor, call)
            width = max(one.size for one in found) + 2
            best: list[tuple[float, dict[str, object]]] = []
            if all(side.rows for side in sides):
                for piece in _counted(cursor, call, sides, found):
                    one, other = piece.counts
                    best += [
                        (gap, _cell(call, found, width, piece, margin, cell, sides))
                        for gap, margin, cell in worst_cells(one, other, shown)
                    ]
                    best = sorted(best, key=lambda pair: -pair[0])[:shown]
        return table_of([row for _, row in best], CELL_COLUMNS)

    return Rows(make)


def _cell(
    call: _Call, buckets: list[Buckets], width: int, piece: _Counted, margin: int, cell: int, sides: list[Side]
) -> dict[str, object]:
    row: dict[str, object] = {}
    codes = np.unravel_index(cell, (width,) * call.ways)
    for number, letter in enumerate("abc"):
        row[f"column_{letter}"] = row[f"bucket_{letter}"] = None
        if number < call.ways:
            place = int(piece.subsets[margin, number])
            name = call.compared.names[place]
            row[f"column_{letter}"] = name
            row[f"bucket_{letter}"] = buckets[place].label(int(codes[number]), call.compared.sides[0].type_of(name))
    counts = [int(side[margin, cell]) for side in piece.counts]
    shares = [count / side.rows for count, side in zip(counts, sides, strict=True)]
    return {
        **row, "original": counts[0], "synthetic": counts[1], "share_original": shares[0],
        "share_synthetic": shares[1], "difference": shares[1] - shares[0],
    }  # fmt: skip


PLANNERS = (*planners(plan_accuracy, plan_accuracy_margins, plan_accuracy_cells),)
