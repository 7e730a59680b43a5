"""k-noise and k-PRAM: planners and scalar functions behind ``sql/k_noise_tables.sql``."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Scalar, Session
from sdcduck.methods.masking.keyed import Identities, lots, uniforms
from sdcduck.methods.masking.local_groups import (
    exchanged_within,
    expected_within,
    intervals_of,
    kolmogorov,
    most_intervals,
    records_within,
    within_intervals,
)
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, needed, number, struct, whole, wrong
from sdcduck.udfs.masking.keyed import held, masked, numbers_of, numbers_shown, shown
from sdcduck.udfs.masking.records import there_are
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.source import Source, is_number, refuse_taken, source

Matrix = NDArray[np.float64]

_INTERVALS = ("interval_lo", "interval_hi", "interval_size")
_WITHIN = ("n_within", "expected_within", "masked_within")
_TOO_FAR = "the values lie so far apart that their range is no number"


# --- scalar functions ------------------------------------------------------------------------------------------------


def keyed_chances(session: Session, key: pa.ChunkedArray, seed: pa.ChunkedArray) -> pa.Array:
    """A number in (0, 1) for each key and seed, under the secret if there is one."""
    keys = key.to_numpy().astype(np.uint64)
    seeds = seed.to_numpy().astype(np.int64)
    drawn = np.empty(len(keys))
    secret = session.secret()
    for one in np.unique(seeds):
        rows = np.flatnonzero(seeds == one)
        stream = stream_of(secret, "k-noise", int(one))
        drawn[rows] = uniforms(Identities(keys[rows], np.zeros(len(rows), np.int64)), stream)
    return pa.array(drawn)


def kolmogorov_distances(_: Session, one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.Array:
    """The Kolmogorov distance of each pair of lists; NULL where one has no values."""
    pairs = zip(one.combine_chunks(), other.combine_chunks(), strict=True)
    found = [
        kolmogorov(_floats(a), _floats(b)) if a.is_valid and b.is_valid and len(a) and len(b) else None
        for a, b in pairs
    ]
    return pa.array(found, pa.float64())


def _floats(values: pa.ListScalar) -> Matrix:
    return np.asarray(values.values.to_numpy(zero_copy_only=False), dtype=np.float64)


# --- table functions -------------------------------------------------------------------------------------------------


def plan_k_noise_records(
    session: Session, text: str | None, delta: str | None, id: str | None, nulls: str | None, seed: int | None
) -> Rows:
    """``sdc_k_noise_records``: noise of each column, by its name and the record."""
    relation = source(session.cursor(), text, "source")
    example = "such as {'age': 2.5}"
    given = needed(struct(delta, "delta", example), "delta", f"say how far each column may move, {example}")
    for name, reach in given.items():
        relation.number(name, "delta")
        number(reach, "delta", above=0, why=f"that of '{name}'")
    call = masked(relation, list(given), id, nulls, seed, argument="delta")
    reaches = np.array([float(reach) for reach in given.values()])

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            found = held(cursor, call, [identifier(name) for name in call.names], exact=True)
        noise = [2 * uniforms(found.known, call.stream(session, "k-noise", name)) - 1 for name in call.names]
        values = found.values + np.column_stack(noise) * reaches
        return numbers_of(values, found.missing)

    return Rows(make, shown(call, numbers_shown(call)))


def plan_k_noise_delta(session: Session, text: str | None, x: str | None, k: int | None) -> str:
    """``sdc_k_noise_delta``: three maxima over the sorted values."""
    relation = source(session.cursor(), text, "source")
    value = f"{relation.number(x, 'x')}::DOUBLE"
    least = whole(k, "k", least=1, why="so many records lie within 2 delta of each point")
    there = "CASE WHEN n = 1 THEN 'is 1 record' ELSE 'are ' || n || ' records' END"
    fewer = f"'sdc_k_noise_delta: there ' || {there} || ' with a value, fewer than k := {least}'"
    return f"""
        WITH ordered AS (
            SELECT {value} AS v, row_number() OVER (ORDER BY {value}) AS i, count(*) OVER () AS n,
                lead({value}, {least}) OVER (ORDER BY {value}) AS later
            FROM {relation.sql} WHERE {value} IS NOT NULL
        ),
        terms AS (
            SELECT count(*) AS n, coalesce(bool_or(NOT isfinite(v)), false) AS odd,
                (max(v) FILTER (i = {least}) - min(v)) / 2 AS lowest,
                (max(v) - max(v) FILTER (i = n - {least} + 1)) / 2 AS highest, max(later - v) / 4 AS between_them
            FROM ordered
        )
        SELECT
            CASE
                WHEN odd THEN error('sdc_k_noise_delta: a record has NaN or an infinite number')
                WHEN n < {least} THEN error({fewer})
                ELSE greatest(lowest, highest, between_them)
            END AS delta_min,
            CASE greatest(lowest, highest, between_them)
                WHEN between_them THEN 'between' WHEN highest THEN 'highest' ELSE 'lowest'
            END AS binding_term,
            n, lowest, between_them AS "between", highest
        FROM terms"""


def plan_k_pram(
    session: Session, text: str | None, x: str | None, k: int | None, m: int | None, method: str | None,
    id: str | None, nulls: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_k_pram``: intervals first, and what each record becomes within its own."""
    relation = source(session.cursor(), text, "source")
    relation.number(x, "x")
    least = None if k is None else whole(k, "k", least=1, why="so many records an interval has")
    wanted = None if m is None else whole(m, "m", least=1, most=2**53, why="the number of intervals")
    if least is None and wanted is None:
        raise wrong("k", "say how many records an interval has, or 'm' how many intervals there are")
    swapping = choice(method, "method", ("uniform", "swap")) == "swap"
    call = masked(relation, [x], id, nulls, seed, _INTERVALS, "x")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            found = held(cursor, call, [identifier(call.names[0])], exact=True)
        rows = found.whole
        values, known = found.values[rows, 0], found.known.some(rows)
        if not len(rows):
            return table_of([], _PRAM_TYPES)
        low, span = float(values.min()), float(values.max()) - float(values.min())
        if not math.isfinite(span):
            raise SDCError(_TOO_FAR)
        if least is not None and len(rows) < least:
            raise SDCError(f"{there_are(len(rows))} with a value, fewer than k := {least}")
        count = wanted or most_intervals(np.sort(values), int(least or 1))
        places = intervals_of(values, low, span, count)
        _, compact, sizes = np.unique(places, return_inverse=True, return_counts=True)
        _check_intervals(sizes, count, least if span else None)
        if swapping:
            stream = call.stream(session, "k-PRAM exchange", call.names[0])
            drawn = values[exchanged_within(places, lots(known, stream), lots(known, stream, 1))]
        else:
            chance = uniforms(known, call.stream(session, "k-PRAM", call.names[0]))
            drawn = within_intervals(places, low, span, count, chance)
        borders = (low + places / count * span, low + (places + 1) / count * span)
        columns = (rows, drawn, *borders, sizes[compact])
        return pa.table(dict(zip(_PRAM_TYPES, columns, strict=True)))

    added = [f"m.{name} AS {name}" for name in _INTERVALS]
    return Rows(make, shown(call, {call.names[0]: "m.number"}, added))


def _check_intervals(sizes: NDArray[np.int64], m: int, k: int | None) -> None:
    """That each interval has enough records, where both numbers were given."""
    few = 0 if k is None else int((sizes < k).sum()) + m - len(sizes)
    if few:
        raise SDCError(f"{few} of {m} intervals have fewer than k := {k} records; leave 'm' out, and it is chosen")


_PRAM_TYPES = {
    "place": "BIGINT", "number": "DOUBLE", "interval_lo": "DOUBLE", "interval_hi": "DOUBLE", "interval_size": "BIGINT",
}  # fmt: skip


def plan_local_k(
    session: Session, original: str | None, protected: str | None, delta: float | None, x: str | None, y: str | None
) -> Rows:
    """``sdc_local_k``: how many records lie, and are expected, around each masked value."""
    before, after = (
        source(session.cursor(), text, name) for text, name in ((original, "original"), (protected, "masked"))
    )
    one = _numbers_of(before, x, "x")
    other = _numbers_of(after, x if y is None and x is not None and _has(after, x) else y, "y")
    after.check_names(tuple(after.columns))
    refuse_taken(after.columns, _WITHIN)
    reach = number(delta, "delta", above=0)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            values, points = (
                np.sort(
                    cursor.sql(f"SELECT {name}::DOUBLE AS v FROM {sql} WHERE {name} IS NOT NULL")
                    .to_arrow_table()["v"]
                    .to_numpy()
                )
                for name, sql in ((one, before.sql), (other, after.sql))
            )
        if not (np.isfinite(values).all() and np.isfinite(points).all()):
            raise SDCError("a record has NaN or an infinite number in one of the columns")
        at = np.unique(points)
        found = (
            records_within(values, at, 2 * reach, closed=False), expected_within(values, at, reach),
            records_within(points, at, 2 * reach, closed=True),
        )  # fmt: skip
        return pa.table({"number": at, **dict(zip(_WITHIN, found, strict=True))})

    added = ", ".join(f"m.{name}" for name in _WITHIN)
    return Rows(make, f"SELECT r.*, {added} FROM {after.sql} r LEFT JOIN {{rows}} m ON r.{other}::DOUBLE = m.number")


def _has(relation: Source, name: str) -> bool:
    return any(known.lower() == name.lower() for known in relation.columns)


def _numbers_of(relation: Source, name: str | None, argument: str) -> str:
    """The named column of numbers, or the only one."""
    if name is None:
        found = [known for known, kind in relation.columns.items() if is_number(kind)]
        if len(found) != 1:
            raise wrong(argument, f"name a column of numbers of {relation.described}, which has {len(found)}")
        name = found[0]
    return relation.number(name, argument)


PLANNERS = (
    planner(plan_k_noise_records, {"place": "BIGINT", "numbers": "DOUBLE[]"}),
    planner(plan_k_noise_delta),
    planner(plan_k_pram, _PRAM_TYPES),
    planner(
        plan_local_k,
        {"number": "DOUBLE", "n_within": "BIGINT", "expected_within": "DOUBLE", "masked_within": "BIGINT"},
    ),
)
SCALARS = (
    Scalar("_sdc_keyed_chance", ("UBIGINT", "BIGINT"), "DOUBLE", keyed_chances),
    Scalar("_sdc_kolmogorov", ("DOUBLE[]", "DOUBLE[]"), "DOUBLE", kolmogorov_distances),
)
