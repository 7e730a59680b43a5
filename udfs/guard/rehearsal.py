"""What a limit on the sequence of answers would have said: the planner behind ``sql/sequence_rehearsal_tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.above import rehearsal
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.udfs.arguments import needed
from sdcduck.udfs.source import read_file

_COLUMNS = {
    "login": "VARCHAR", "number": "BIGINT", "time": "VARCHAR", "question": "VARCHAR", "cells": "BIGINT",
    "new_sets": "BIGINT", "least_error": "DOUBLE", "smallest": "BIGINT", "verdict": "VARCHAR",
}  # fmt: skip


def plan_sequence_rehearsal(
    session: Session, path: str | None, tbl: str | None, login: str | None, mode: str | None,
    secrets: Sequence[str] | None, least_error: float | None, min_units: int | None, granted: str | None,
    role: str | None,
) -> Rows:  # fmt: skip
    """``sdc_sequence_rehearsal``: one row for each question of the log about the table."""
    name, how = needed(tbl, "tbl", "name the table"), needed(mode, "mode", "name a limit, as sdc_protect does")
    share = needed(least_error, "least_error", "be a share, as 0.8")
    asks = rehearsal()

    def ask() -> pa.Table:
        cursor = session.cursor()
        try:
            return asks(
                cursor, str(read_file(cursor, path, "filename, size")), name, login, role=role or "", mode=how,
                secrets=secrets or (), least_error=share, min_units=min_units, granted=granted,
            )  # fmt: skip
        except OSError:
            raise SDCError(f"there is no file '{path}', or it cannot be read") from None
        finally:
            cursor.close()

    return Rows(ask, 'SELECT * REPLACE ("time"::TIMESTAMP AS "time") FROM {rows}')


FAMILY = Family(
    name="rehearsal",
    temporary=("sequence_rehearsal_tables.sql",),
    planners=(planner(plan_sequence_rehearsal, _COLUMNS),),
)
