"""What a sequence of questions teaches: the planner of ``sdc_sequence_check``."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.sequence.knowledge import TooMuchKnown
from sdcduck.methods.sequence.rehearsal import MODES, Limit, rehearse
from sdcduck.methods.sequence.sets import Cells, Sets
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import choice, number, share, wrong
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

_COLUMNS = {
    "place": "BIGINT", "cells": "BIGINT", "sets": "BIGINT", "new_sets": "BIGINT", "error": "DOUBLE",
    "smallest": "DOUBLE", "verdict": "VARCHAR",
}  # fmt: skip


def plan_sequence_check(
    session: Session, sets: str | None, cells: str | None, mode: str | None, variance: float | None,
    min_units: float | None, least_error: float | None, on_breach: str | None,
) -> Rows:  # fmt: skip
    """``sdc_sequence_check``: questions, sets and cells are numbered by SQL."""
    asked, units = source(session.cursor(), sets, "sets"), source(session.cursor(), cells, "cells")
    question, one, cell = (asked.column(name, "sets") for name in ("question", "set", "cell"))
    known, size = units.column("cell", "cells"), units.number("units", "cells")
    limit = Limit(
        choice(mode, "mode", MODES), number(min_units, "min_units", least=1),
        share(least_error, "least_error"),
    )  # fmt: skip
    log = choice(on_breach, "on_breach", ("refuse", "log")) == "log"
    weight = f"{asked.number('weight', 'sets')}::DOUBLE" if _has(asked, "weight") else "1::DOUBLE"
    spread = _variance(asked, limit.mode, variance)
    cells_sql = (
        f"SELECT {known}::VARCHAR AS cell, {size}::DOUBLE AS units, row_number() OVER (ORDER BY {known}::VARCHAR) - 1 "
        f"AS place FROM {units.sql}"
    )
    sets_sql = (
        f"SELECT dense_rank() OVER (ORDER BY {question}) - 1 AS question, "
        f"dense_rank() OVER (ORDER BY {question}, {one}) - 1 AS number, {cell}::VARCHAR AS cell, {weight} AS weight, "
        f"{spread} AS variance, {question} IS NULL OR {one} IS NULL AS unnamed FROM {asked.sql}"
    )

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            groups = _cells(cursor, cells_sql)
            given, question_of, variances = _sets(cursor, sets_sql, cells_sql, limit.mode)
        check = shown_checkpoint()
        try:
            found = list(rehearse(groups, given, question_of, variances, limit, keep_refused=log, check=check))
        except TooMuchKnown as problem:
            raise SDCError(f"{problem}: take fewer questions, or coarser cells") from None
        rows = [
            {
                "place": place, "cells": verdict.cells, "sets": verdict.sets, "new_sets": verdict.new_sets,
                "error": verdict.error, "smallest": verdict.smallest,
                "verdict": "answer" if verdict.answered else "refuse",
            }
            for place, verdict in enumerate(found)
        ]  # fmt: skip
        return table_of(rows, _COLUMNS)

    questions = f"SELECT {question} AS question, row_number() OVER (ORDER BY {question}) - 1 AS place"
    return Rows(
        make,
        f"SELECT q.question, r.* EXCLUDE (place) FROM {{rows}} r "
        f"JOIN ({questions} FROM (SELECT DISTINCT {question} FROM {asked.sql})) q USING (place) ORDER BY place",
    )


def _has(table: Source, name: str) -> bool:
    return folded(name) in map(folded, table.columns)


def _variance(asked: Source, mode: str, variance: float | None) -> str:
    """SQL for the variance of the noise of a set."""
    if mode != "precision":
        if variance is not None:
            raise SDCError("argument 'variance' is for mode := 'precision': the other modes are about exact answers")
        return "0::DOUBLE"
    if variance is not None:
        return f"{number(variance, 'variance', least=0)!r}::DOUBLE"
    if not _has(asked, "variance"):
        raise wrong("variance", "be that of the noise of an answer", "sdc_noise knows it; or 'sets' has it as a column")
    return f"{asked.number('variance', 'sets')}::DOUBLE"


def _cells(cursor: duckdb.DuckDBPyConnection, sql: str) -> Cells:
    """The cells in the order of their names."""
    rows, named, different, sized = cursor.execute(
        "SELECT count(*), count(cell), count(DISTINCT cell), count(*) FILTER (units >= 0 AND isfinite(units)) "
        f"FROM ({sql})"
    ).fetchall()[0]
    if named < rows:
        raise SDCError("argument 'cells': a cell is NULL")
    if different < rows:
        raise SDCError("argument 'cells': a cell is there twice")
    if sized < rows:
        raise SDCError("argument 'cells': 'units' must be a number of at least 0 in each cell")
    return Cells.numbered(cursor.sql(f"SELECT units FROM ({sql}) ORDER BY place").fetchnumpy()["units"].astype(float))


def _sets(
    cursor: duckdb.DuckDBPyConnection, sets: str, cells: str, mode: str
) -> tuple[Sets, np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The sets, the question of each, and the variance of its noise."""
    unnamed, strange, weights, variances = cursor.execute(
        "SELECT count(*) FILTER (s.unnamed OR s.cell IS NULL), count(*) FILTER (c.cell IS NULL), "
        "count(*) FILTER (s.weight IS NULL OR NOT isfinite(s.weight)), "
        "count(*) FILTER (s.variance IS NULL OR NOT isfinite(s.variance) OR s.variance < 0) "
        f"FROM ({sets}) s LEFT JOIN ({cells}) c ON s.cell = c.cell"
    ).fetchall()[0]
    if unnamed:
        raise SDCError("argument 'sets': 'question', 'set' and 'cell' must not be NULL")
    if strange:
        raise SDCError("argument 'sets': a cell is not among those of 'cells'")
    if weights:
        raise SDCError("argument 'sets': 'weight' must be a finite number")
    if variances:
        raise SDCError("argument 'sets': 'variance' must be a finite number of at least 0")
    found = cursor.sql(
        "SELECT s.question, s.number, c.place, s.weight, s.variance "
        f"FROM ({sets}) s JOIN ({cells}) c ON s.cell = c.cell"
    ).fetchnumpy()
    numbers = np.asarray(found["number"], dtype=np.int64)
    count = int(numbers.max(initial=-1)) + 1
    question_of, variance = np.zeros(count, np.int64), np.full(count, np.inf)
    question_of[numbers] = found["question"]
    np.minimum.at(variance, numbers, np.asarray(found["variance"], dtype=np.float64))
    try:
        given = Sets.of_pairs(numbers, found["place"], count, found["weight"])
    except ValueError as problem:
        raise SDCError(f"argument 'sets': {problem}") from None
    return given, question_of, variance


PLANNERS = (planner(plan_sequence_check, _COLUMNS),)
