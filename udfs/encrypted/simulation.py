"""The encrypted vote in clear: planner of ``sdc_he_knn_simulate``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.encrypted.fixed_point import COMPARISON_NOISE, ROOM, Records, simulate, smallest_scale
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import number, whole
from sdcduck.udfs.encrypted import rows as table_rows
from sdcduck.udfs.encrypted.rows import Known
from sdcduck.udfs.source import refuse_taken, source

MOST_TAU = 10_000
_MOST_K = 10_000
_ADDED = {"predicted": "VARCHAR", "plain": "VARCHAR", "votes": "BIGINT", "gap": "DOUBLE", "v": "DOUBLE"}
_COLUMNS = {"numbers": "DOUBLE[]", **_ADDED}


def scale_of(points: table_rows.Floats, v: float | None, room: float = 0.0) -> float:
    """Argument ``v``, or the smallest that is safe.

    Raises:
        SDCError: it is smaller, so that differences would go round.
    """
    least = smallest_scale(points, room)
    if v is None:
        return max(smallest_scale(points, ROOM), 1e-3)
    if v < least:
        # Rounded up, so that the number that is told is one that is taken.
        raise SDCError(
            f"argument 'v' must be at least {np.ceil(least * 1000) / 1000:g} for these reference rows: a question "
            "could have a difference of distances that goes round and compares the wrong way; NULL takes what is safe"
        )
    return v


def plan_he_knn_simulate(
    session: Session, text: str | None, questions: str | None, label: str | None, columns: list[str] | None,
    k: int | None, tau: int | None, v: float | None, bounds: str | None, key: str | None,
) -> Rows:  # fmt: skip
    """``sdc_he_knn_simulate``: what each question would be answered."""
    asked = source(session.cursor(), questions, "questions")
    asked.check_names(tuple(asked.columns))
    refuse_taken(asked.columns, tuple(_ADDED))
    known = Known.read(session, text, label, columns, bounds, key, beside=asked)
    near = whole(k, "k", least=1, most=_MOST_K)
    precision = whole(tau, "tau", least=1, most=MOST_TAU)
    given = None if v is None else number(v, "v", above=0)
    numbers = ", ".join(f"{identifier(name)}::DOUBLE" for name in known.names)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            rows = known.rows(cursor, "reference rows")
            # Questions that are the same are answered once.
            table = cursor.sql(
                f"SELECT DISTINCT {table_rows.numbers_sql(known.names)} FROM {asked.sql} ORDER BY ALL"
            ).to_arrow_table()
        if near > len(rows.values):
            raise SDCError(f"there are fewer than k = {near} reference rows: make 'k' smaller")
        values = table_rows.numbers_of(table, known.names, "questions")
        points = rows.scaled(rows.values)
        scale = scale_of(points, given)
        records = Records(points, rows.classes, len(rows.labels), scale, precision)
        found, plain = simulate(records, rows.scaled(values), near, shown_checkpoint())
        labels = pa.array(rows.labels, pa.string())
        gap = found.gap / COMPARISON_NOISE
        return pa.table(
            {
                "numbers": table_rows.listed(values),
                "predicted": labels.take(pa.array(found.classes)), "plain": labels.take(pa.array(plain)),
                "votes": found.votes.max(axis=1, initial=0), "gap": pa.array(gap, mask=~np.isfinite(gap)),
                "v": np.full(len(values), scale),
            }
        )  # fmt: skip

    kind = known.label_type
    return Rows(
        make,
        f"SELECT q.*, m.predicted::{kind} AS predicted, m.plain::{kind} AS plain, m.votes, m.gap, m.v "
        f"FROM {asked.sql} q JOIN {{rows}} m ON [{', '.join(f'q.{one}' for one in numbers.split(', '))}] = m.numbers",
    )


PLANNERS = (planner(plan_he_knn_simulate, _COLUMNS),)
