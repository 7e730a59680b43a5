"""Rows that stand for many: planner of ``sdc_prototypes``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.encrypted.prototypes import evenly_spaced, prototypes
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, whole
from sdcduck.udfs.encrypted.rows import Known, listed

_MOST = 10_000
_COLUMNS = {"prototype": "BIGINT", "numbers": "DOUBLE[]", "label": "VARCHAR", "records": "BIGINT"}


def plan_prototypes(
    session: Session, text: str | None, label: str | None, columns: list[str] | None, n: int | None,
    method: str | None, min_records: int | None, bounds: str | None, key: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_prototypes``: means of clusters, or records."""
    known = Known.read(session, text, label, columns, bounds, key, taken=("prototype", "records"))
    most = whole(n, "n", least=1, most=_MOST)
    how = choice(method, "method", ("means", "records", "spaced"))
    least = whole(min_records, "min_records", least=1)
    start = whole(seed, "seed", least=0)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            rows = known.rows(cursor)
        sizes: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
        if how == "spaced":
            if most > len(rows.values):
                raise SDCError(f"there are fewer records than {most}: make 'n' smaller")
            places = evenly_spaced(len(rows.values), most)
            values, classes = rows.values[places], rows.classes[places]
        else:
            if most < len(rows.labels):
                raise SDCError(f"there are more classes than {most}: each needs a prototype, make 'n' larger")
            if np.bincount(rows.classes).min() < least:
                raise SDCError(
                    f"a class has fewer than {least} records: join it to another in a query, or make 'min_records' "
                    "smaller"
                )
            found = prototypes(
                rows.scaled(rows.values), rows.classes, len(rows.labels), most, least, start, shown_checkpoint()
            )
            width = np.where(rows.high > rows.low, rows.high - rows.low, 0.0)
            values = rows.low + found.centres * width if how == "means" else rows.values[found.nearest]
            classes, sizes = found.classes, found.records
        return pa.table(
            {
                "prototype": np.arange(1, len(values) + 1),
                "numbers": listed(values),
                "label": pa.array([rows.labels[one] for one in classes], pa.string()),
                "records": pa.array(sizes) if sizes is not None else pa.nulls(len(values), pa.int64()),
            }
        )

    shown = ", ".join(f"numbers[{place}] AS {identifier(name)}" for place, name in enumerate(known.names, 1))
    return Rows(
        make,
        f"SELECT {shown}, label::{known.label_type} AS {identifier(known.label)}, prototype, records FROM {{rows}}",
    )


PLANNERS = (planner(plan_prototypes, _COLUMNS),)
