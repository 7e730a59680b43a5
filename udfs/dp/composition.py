"""What several releases cost together, and what each of many may cost: ``sdc_dp_composition`` and its like."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.composition import RULES, Releases
from sdcduck.methods.dp.pca import advanced_epsilon, crossing_epsilon
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import share, whole
from sdcduck.udfs.dp.allocation import sql_number
from sdcduck.udfs.dp.arguments import Floats, cost
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

MOST_RELEASES = 10**7
MOST_QUERIES = 10**12
_MOST_COST = 1e100
"""Of a release: squares of what is more are no numbers."""
_COLUMNS = ("epsilon", "delta", "rho", "ratio", "times")


def _column(relation: Source, name: str) -> str:
    """SQL of a column, if the source has it."""
    known = {folded(one) for one in relation.columns}
    return f"{relation.number(name, 'source')}::DOUBLE" if name in known else "NULL::DOUBLE"


def _checked(columns: list[Floats]) -> Releases:
    """The releases, one by one.

    Raises:
        SDCError: a row is none.
    """
    epsilon, delta, rho, ratio, times = columns
    delta, times = np.where(np.isnan(delta), 0.0, delta), np.where(np.isnan(times), 1.0, times)
    for name, values in (("epsilon", epsilon), ("rho", rho), ("ratio", ratio)):
        if (values < 0).any() or (values > _MOST_COST).any():
            raise SDCError(f"column '{name}' must hold numbers of at least 0, up to {_MOST_COST:g}, or NULL")
    if not ((delta >= 0) & (delta <= 1)).all():
        raise SDCError("column 'delta' must hold numbers between 0 and 1, or NULL")
    if not ((times >= 0) & (times == np.floor(times))).all() or times.sum() > MOST_RELEASES:
        raise SDCError(f"column 'times' must hold whole numbers of at least 0, up to {MOST_RELEASES:,} together")
    if (np.isnan(epsilon) & np.isnan(rho) & np.isnan(ratio)).any():
        raise SDCError("each row of argument 'source' must have an epsilon, a rho or a ratio")
    each = times.astype(np.int64)
    return Releases(*(np.repeat(values, each) for values in (epsilon, delta, rho, ratio)))


def plan_dp_composition(session: Session, text: str | None, delta: float | None) -> Rows:
    """``sdc_dp_composition``: a row a rule."""
    beside = share(delta, "delta", zero=False, one=False)
    with session.cursor() as cursor:
        relation = source(cursor, text, "source")
        shown = ", ".join(_column(relation, name) for name in _COLUMNS)
        if not {"epsilon", "rho", "ratio"} & set(map(folded, relation.columns)):
            raise SDCError("argument 'source' must have a column epsilon, rho or ratio")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            read = cursor.sql(f"SELECT {shown} FROM {relation.sql}").to_arrow_table()
        releases = _checked([np.asarray(column.to_numpy(), dtype=np.float64) for column in read.columns])
        return table_of([_row(releases, rule, beside) for rule in RULES], PLANNERS[0].columns)

    return Rows(make)


def _row(releases: Releases, rule: str, beside: float) -> dict[str, object]:
    """One rule; NULL where it does not say."""
    epsilon, delta = releases.by(rule, beside)
    said = not math.isnan(epsilon)
    rho = float(releases.concentrated.sum()) if rule == "zcdp" else None
    return {
        "rule": rule, "releases": len(releases.epsilon), "epsilon": epsilon if said else None,
        "delta": delta if said else None, "rho": rho,
    }  # fmt: skip


def plan_dp_composition_each(session: object, epsilon: float | None, delta: float | None, queries: int | None) -> str:
    """``sdc_dp_composition_each``: one row; it reads no data."""
    whole_cost, part = cost(epsilon, delta)
    count = whole(queries, "queries", least=1, most=MOST_QUERIES)
    equal, advanced = whole_cost / count, advanced_epsilon(whole_cost, count, part)
    return (
        f"SELECT {sql_number(equal)} AS naive, {sql_number(advanced)} AS advanced, "
        f"'{'advanced' if advanced > equal else 'naive'}' AS better, "
        f"{sql_number(crossing_epsilon(count, part))} AS crossing"
    )


PLANNERS = planners(plan_dp_composition, plan_dp_composition_each)
