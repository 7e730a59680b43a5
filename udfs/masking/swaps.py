"""Rank swapping and data shuffling: planners behind ``sql/rank_swap_tables.sql``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.keyed import normals
from sdcduck.methods.masking.swaps import random_words, reach_of, shuffled, swapped_ranks, swapped_within
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import needed, number, share
from sdcduck.udfs.masking.keyed import Held, Masked, held, masked, numbers_of, numbers_shown, shown
from sdcduck.udfs.masking.records import listed, records
from sdcduck.udfs.source import Source, source

Indices = NDArray[np.int64]

_TIMES = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_NEAR = 1e-9  # 0.05 of 100 records are five, whatever the last digit says


def _in_order(relation: Source, name: str, argument: str) -> str:
    """SQL of a number that orders the values of a column of numbers, dates or times."""
    if relation.type_of(name) not in _TIMES:
        return relation.number(name, argument)
    quoted = relation.column(name, argument)
    instant = f"epoch_us({quoted})::DOUBLE"
    if relation.type_of(name) == "TIME":
        return instant
    return f"CASE WHEN isfinite({quoted}) THEN {instant} WHEN {quoted} IS NOT NULL THEN 'infinity'::DOUBLE END"


def _stratum(call: Masked, by: tuple[str, ...]) -> str:
    """SQL of the number of the stratum of a record."""
    for name in by:
        if name in call.names:
            raise SDCError(f"column '{name}' is one of those that are changed, and can not be in 'by'")
    return f"dense_rank() OVER (ORDER BY {', '.join(map(identifier, by))})" if by else "1"


def _read(session: Session, call: Masked, expressions: list[str], stratum: str) -> tuple[Held, Indices]:
    """What the records hold, and the stratum of each."""
    with reads(session.cursor()) as cursor:
        found = held(cursor, call, [*expressions, stratum], exact=True)
    return found, found.values[:, -1].astype(np.int64)


def _each(strata: Indices, rows: Indices) -> Iterator[Indices]:
    """The rows of each stratum in turn."""
    order = rows[np.argsort(strata[rows], kind="stable")]
    return iter(np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)) if len(rows) else iter(())


def _exchanged(call: Masked) -> str:
    """SQL of all records: `{rows}` has the place of the one whose value each column takes, ``givers``."""
    columns = [
        f"d{call.names.index(name)}.v AS {identifier(name)}" if name in call.names else f"r.{identifier(name)}"
        for name in call.relation.columns
    ]
    joins = "".join(
        f" LEFT JOIN (SELECT _sdc_place, {identifier(name)} AS v FROM _sdc_all) d{place} "
        f"ON d{place}._sdc_place = m.givers[{place + 1}]"
        for place, name in enumerate(call.names)
    )
    return f"""
        WITH _sdc_all AS MATERIALIZED (
            SELECT *, row_number() OVER (ORDER BY {call.order}) - 1 AS _sdc_place FROM {call.relation.sql}
        )
        SELECT {", ".join(columns)} FROM _sdc_all r LEFT JOIN {{rows}} m ON r._sdc_place = m.place{joins}"""


def plan_rank_swap(
    session: Session, text: str | None, columns: list[str] | None, p: float | None, correlation: float | None,
    top: float | None, bottom: float | None, by: list[str] | None, id: str | None, nulls: str | None,
    seed: int | None, k0: float | None,
) -> Rows:  # fmt: skip
    """``sdc_rank_swap``: each column by itself, records by their values and who they are."""
    relation = source(session.cursor(), text, "source")
    call = masked(relation, needed(columns, "columns", "name the columns whose values are swapped"), id, nulls, seed)
    expressions = [_in_order(relation, name, "columns") for name in call.names]
    stratum = _stratum(call, relation.named(by, "by"))
    if sum(one is not None for one in (p, correlation, k0)) > 1:
        raise SDCError("give one of 'p', 'correlation' and 'k0', which all say how far ranks may move")
    factor = None if k0 is None else number(k0, "k0", above=0, why="a share of the mean")
    reach = 0.05 if p is None else share(p, "p", zero=False, why="how far ranks may move")
    if correlation is not None:
        reach = reach_of(share(correlation, "correlation", one=False))
    ends = (share(bottom, "bottom"), share(top, "top"))
    if sum(ends) > 1:
        raise SDCError("arguments 'top' and 'bottom' are more than all records together")
    for name in call.names if sum(ends) or factor is not None else ():
        relation.number(name, "columns")

    def make() -> pa.Table:
        found, strata = _read(session, call, expressions, stratum)
        check, values = shown_checkpoint(), found.values[:, : len(call.names)].copy()
        givers = np.tile(np.arange(len(values))[:, None], len(call.names))
        for place, name in enumerate(call.names):
            check(place, len(call.names))
            words = random_words(found.known.key, found.known.among, call.stream(session, "rank swap", name))
            for rows in _each(strata, np.flatnonzero(~found.missing[:, place])):
                steps, low, high = (math.floor(part * len(rows) + _NEAR) for part in (reach, *ends))
                here = values[rows, place]
                order = np.lexsort((found.known.among[rows], found.known.key[rows], here))
                between = order[low : len(order) - high]
                if factor is not None:
                    taken = _near_in_value(between, here, factor, words[rows], name)
                elif steps < 1:
                    raise SDCError(f"ranks of {records(len(rows))} cannot move by {reach:g} of all: make 'p' larger")
                else:
                    taken = swapped_ranks(between, steps, words[rows])
                givers[rows, place] = rows[taken]
                values[rows, place] = _coded(here[taken], (order[:low], order[len(order) - high :]))
        missing = found.missing[:, : len(call.names)]
        table = numbers_of(values, missing)
        return table.append_column("givers", listed(givers, missing))

    return Rows(make, shown(call, numbers_shown(call)) if sum(ends) else _exchanged(call))


def _near_in_value(
    order: Indices, values: NDArray[np.float64], factor: float, words: NDArray[np.uint64], name: str
) -> Indices:
    """The swap of records, ordered by value, that moves values by no more than a share of their mean."""
    if not len(order):
        return np.arange(len(values))
    taken, steps = swapped_within(order, values, factor * abs(float(values[order].mean())), words)
    if not steps:
        raise SDCError(
            f"no values of column '{name}' can change place with k0 := {factor:g}: make 'k0' larger, or give 'top' and "
            "'bottom', which take the extreme ones out"
        )
    return taken


def _coded(values: NDArray[np.float64], groups: tuple[Indices, Indices]) -> NDArray[np.float64]:
    """Values of which some groups have their means."""
    for rows in groups:
        if len(rows):
            values[rows] = values[rows].mean()
    return values


def plan_shuffle(
    session: Session, text: str | None, columns: list[str] | None, predictors: list[str] | None, by: list[str] | None,
    id: str | None, nulls: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_shuffle``: an order of the values that a normal copula draws, given what stays."""
    relation = source(session.cursor(), text, "source")
    given = needed(columns, "columns", "name the columns whose values are shuffled")
    call = masked(relation, given, id, nulls, seed, together=True)
    kept = relation.named(predictors, "predictors")
    for name in kept:
        if name in call.names:
            raise SDCError(f"column '{name}' is one of those that are shuffled, and can not be in 'predictors'")
    # The answer does not depend on how columns are listed.
    expressions = [
        *(_in_order(relation, name, "columns") for name in call.names),
        *(_in_order(relation, name, "predictors") for name in sorted(kept, key=folded)),
    ]
    stratum = _stratum(call, relation.named(by, "by"))

    def make() -> pa.Table:
        found, strata = _read(session, call, expressions, stratum)
        count, check = len(call.names), shown_checkpoint()
        givers = np.tile(np.arange(len(strata))[:, None], count)
        ordered = np.array([call.names.index(name) for name in call.sorted_names])
        noise = np.column_stack(
            [normals(found.known, call.stream(session, "shuffle", name)) for name in call.sorted_names]
        )
        order = np.lexsort((found.known.among, found.known.key))  # equal values are told apart by who has them
        rank = np.argsort(order)
        for alike, there in found.alike(call):
            some = ordered[there[ordered]]
            kept = np.flatnonzero(there[:-1])
            for rows in _each(strata, alike[np.argsort(rank[alike])]) if len(some) else ():
                values, others = found.values[np.ix_(rows, some)], found.values[np.ix_(rows, kept[kept >= count])]
                chances = noise[np.ix_(rows, there[ordered].nonzero()[0])]
                givers[np.ix_(rows, some)] = rows[shuffled(values, others, chances, check)]
        return pa.table({"place": np.arange(len(givers)), "givers": listed(givers)})

    return Rows(make, _exchanged(call))


PLANNERS = (
    planner(plan_rank_swap, {"place": "BIGINT", "numbers": "DOUBLE[]", "givers": "BIGINT[]"}),
    planner(plan_shuffle, {"place": "BIGINT", "givers": "BIGINT[]"}),
)
