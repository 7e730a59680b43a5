"""Local suppression: the planners of ``sdc_local_suppress`` and ``sdc_local_suppress_report``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.local_suppression import METHODS, Demand, LocalSuppression, order_of_keys
from sdcduck.methods.masking.matches import MOST_KEYS
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, is_finite, needed, share, whole, wrong
from sdcduck.udfs.masking.records import check_ids, order_of, there_are
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, refuse_taken, source

Indices = NDArray[np.int64]

_EXAMPLE = "give a number to each key, such as {'age': 2, 'sex': 1}"


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes."""

    relation: Source
    keys: tuple[str, ...]
    demands: tuple[Demand, ...]
    importance: tuple[float, ...] | None
    alpha: float
    method: str
    by: tuple[str, ...]
    id: str | None

    @property
    def order(self) -> str:
        """By which records are known: what they have decides, and not how they lie in the table."""
        return order_of(self.relation, self.id, self.keys)


def _call(
    session: Session, text: str | None, keys: list[str] | None, k: str | None, importance: str | None,
    alpha: float | None, method: str | None, combs: list[int] | None, by: list[str] | None, id: str | None,
) -> _Call:  # fmt: skip
    relation = source(session.cursor(), text, "source")
    names = relation.named(needed(keys, "keys", "name the columns by which a person could be found"), "keys")
    if len(names) > MOST_KEYS:
        raise SDCError(f"argument 'keys' names {len(names)} columns: at most {MOST_KEYS} are looked at together")
    call = _Call(
        relation, names, _demands(len(names), k, combs), _importance(importance, names), share(alpha, "alpha"),
        choice(method, "method", METHODS), relation.named(by, "by"), relation.named([id], "id")[0] if id else None,
    )  # fmt: skip
    for name in (*call.by, *([call.id] if call.id else [])):
        if name in names:
            raise SDCError(f"column '{name}' is one of 'keys', and can be neither in 'by' nor 'id'")
    relation.check_names(tuple(relation.columns))
    return call


def _demands(keys: int, text: str | None, combs: list[int] | None) -> tuple[Demand, ...]:
    """Which keys must be alike in how many records, in the order in which that is seen to."""
    given = json.loads(text or "null")
    several = given if isinstance(given, list) else [given]
    if not all(isinstance(one, int | None) and not isinstance(one, bool) for one in several):
        raise wrong("k", "be a whole number of at least 2")
    ks = [whole(one, "k", least=2) for one in several]
    if combs is None:
        if len(ks) != 1:
            raise SDCError("several numbers as 'k' are for several sizes in 'combs'")
        return (Demand(tuple(range(keys)), ks[0]),)
    if not combs or len(ks) not in (1, len(combs)):
        raise wrong("k", "be one number, or one for each size in 'combs'")
    sizes = [whole(one, "combs", least=1, most=keys, why="how many keys are looked at together") for one in combs]
    ks = ks if len(ks) == len(sizes) else ks * len(sizes)
    return tuple(
        Demand(some, least) for size, least in zip(sizes, ks, strict=True) for some in combinations(range(keys), size)
    )


def _importance(text: str | None, keys: tuple[str, ...]) -> tuple[float, ...] | None:
    """A number of each key: that with the largest is suppressed first."""
    given: Any = json.loads(text or "null")
    if given is None:
        return None
    if isinstance(given, list) and len(given) == len(keys):
        given = dict(zip(keys, given, strict=True))
    if not isinstance(given, dict) or not all(is_finite(one) for one in given.values()):
        raise wrong("importance", _EXAMPLE)
    known = {folded(name): float(one) for name, one in given.items()}
    for name in given:
        if folded(name) not in map(folded, keys):
            raise SDCError(f"argument 'importance' has a number for '{name}', which is not one of 'keys'")
    if len(known) < len(keys):
        raise wrong("importance", _EXAMPLE)
    return tuple(known[folded(key)] for key in keys)


def plan_local_suppress(
    session: Session, text: str | None, keys: list[str] | None, k: str | None, importance: str | None,
    alpha: float | None, method: str | None, combs: list[int] | None, by: list[str] | None, id: str | None,
) -> Rows:  # fmt: skip
    """``sdc_local_suppress``: records are known by their place in an order that their values alone decide."""
    call = _call(session, text, keys, k, importance, alpha, method, combs, by, id)
    refuse_taken(call.relation.columns, ("suppressed",))
    bit = {name: 1 << place for place, name in enumerate(call.keys)}
    shown = [
        f"CASE WHEN m.pattern & {bit[name]} > 0 THEN NULL ELSE r.{identifier(name)} END AS {identifier(name)}"
        if name in bit
        else f"r.{identifier(name)}"
        for name in call.relation.columns
    ]

    def make() -> pa.Table:
        patterns = _chosen(session, call)[1] @ (1 << np.arange(len(call.keys)))
        places = np.flatnonzero(patterns)
        return pa.table({"place": places, "pattern": patterns[places]})

    return Rows(
        make,
        f"""SELECT {", ".join(shown)}, coalesce(bit_count(m.pattern), 0)::BIGINT AS suppressed
        FROM (SELECT *, row_number() OVER (ORDER BY {call.order}) - 1 AS _sdc_place FROM {call.relation.sql}) r
        LEFT JOIN {{rows}} m ON r._sdc_place = m.place""",
    )


def plan_local_suppress_report(
    session: Session, text: str | None, keys: list[str] | None, k: str | None, importance: str | None,
    alpha: float | None, method: str | None, combs: list[int] | None, by: list[str] | None, id: str | None,
) -> Rows:  # fmt: skip
    """``sdc_local_suppress_report``: the same, added up by key."""
    call = _call(session, text, keys, k, importance, alpha, method, combs, by, id)

    def make() -> pa.Table:
        codes, suppressed = _chosen(session, call)
        known, gone = (codes >= 0).sum(axis=0).tolist(), suppressed.sum(axis=0).tolist()
        turn = _order(call, codes)
        rows = [
            {"key": name, "turn": turn.index(place) + 1, "known": known[place], "suppressed": gone[place],
             "share": gone[place] / known[place] if known[place] else None}
            for place, name in enumerate(call.keys)
        ]  # fmt: skip
        return table_of(rows, _REPORT.columns)

    return Rows(make)


def _order(call: _Call, codes: Indices) -> tuple[int, ...]:
    """The keys in the order in which they are suppressed."""
    order = order_of_keys(codes)
    if call.importance is None:
        return order
    weights = call.importance
    return tuple(sorted(order, key=lambda key: -weights[key]))  # of equally important ones as without


def _chosen(session: Session, call: _Call) -> tuple[Indices, NDArray[np.bool_]]:
    """The values of the keys as numbers, and which are suppressed, in the order of the records."""
    with reads(session.cursor()) as cursor:
        if call.id:
            check_ids(cursor, call.relation, call.id)
        codes, strata = _read(cursor, call)
    if not len(codes):
        return codes, np.zeros(codes.shape, np.bool_)
    least, fewest = max(one.k for one in call.demands), int(np.bincount(strata).min())
    if fewest < least:
        where = " in one of the strata" if call.by else ""
        raise SDCError(f"{there_are(fewest)}{where}, fewer than k := {least}")
    how = LocalSuppression(call.demands, _order(call, codes), call.alpha, call.method)
    return codes, how.of(codes, strata, shown_checkpoint())


def _read(cursor: duckdb.DuckDBPyConnection, call: _Call) -> tuple[Indices, Indices]:
    """Of all records a number for each key, -1 for NULL, and the stratum."""
    numbers = [
        f"CASE WHEN {identifier(name)} IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY {identifier(name)}) - 1 END "
        f"AS c{place}"
        for place, name in enumerate(call.keys)
    ]
    by = ", ".join(map(identifier, call.by))
    stratum = f"dense_rank() OVER (ORDER BY {by}) - 1" if by else "0::BIGINT"
    found = cursor.sql(
        f"SELECT {', '.join(numbers)}, {stratum} AS stratum FROM {call.relation.sql} ORDER BY {call.order}"
    ).to_arrow_table()
    columns = [column.to_numpy().astype(np.int64) for column in found.columns]
    return np.column_stack(columns[:-1]), columns[-1]


_REPORT = planner(plan_local_suppress_report)
PLANNERS = (planner(plan_local_suppress, {"place": "BIGINT", "pattern": "BIGINT"}), _REPORT)
