"""Microaggregation of records: the planner of ``sdc_microaggregate``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.perturbation.microaggregation import group_means, mdav
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import needed, whole
from sdcduck.udfs.source import source


def plan_microaggregate(session: Session, text: str | None, columns: list[str] | None, k: int | None) -> Rows:
    """``sdc_microaggregate``: records are known by their place in an order that their values alone decide."""
    relation = source(session.cursor(), text, "source")
    needed(columns, "columns", "name the columns of numbers that records are to share")
    masked = relation.named(columns, "columns", ("group_number",))
    least = whole(k, "k", least=2, why="so many records share their numbers")
    relation.check_names(tuple(relation.columns))
    wrong = literal("a record has NULL, NaN or an infinite number in a column that is to be shared")
    numbers = [f"{relation.number(name, 'columns')}::DOUBLE" for name in masked]
    checked = [f"CASE WHEN isfinite({number}) THEN {number} ELSE error({wrong}) END" for number in numbers]
    others = [identifier(name) for name in relation.columns if name not in masked]
    order = ", ".join([*map(identifier, masked), *others])

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            found = cursor.execute(
                f"SELECT {', '.join(f'{one} AS c{place}' for place, one in enumerate(checked))} "
                f"FROM {relation.sql} ORDER BY {order}"
            ).fetchnumpy()
        values = np.column_stack([np.asarray(column, np.float64) for column in found.values()])
        if 0 < len(values) < least:
            raise SDCError(f"there are {len(values)} records, fewer than k := {least}")
        groups = mdav(values, least, shown_checkpoint())
        means = group_means(values, groups)
        return pa.table({"place": np.arange(len(values)), "group": groups, "means": pa.array(list(means), _MEANS)})

    shown = [
        f"m.means[{masked.index(name) + 1}] AS {identifier(name)}" if name in masked else f"r.{identifier(name)}"
        for name in relation.columns
    ]
    return Rows(
        make,
        f"""SELECT {", ".join(shown)}, m."group" + 1 AS group_number
        FROM (SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS _sdc_place FROM {relation.sql}) r
        JOIN {{rows}} m ON r._sdc_place = m.place""",
    )


_MEANS = pa.list_(pa.float64())
PLANNERS = (planner(plan_microaggregate, {"place": "BIGINT", "group": "BIGINT", "means": "DOUBLE[]"}),)
