"""Uniques of a sample, how special they are and how many are of the population.

The planners behind ``sql/special_uniques_tables.sql``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import checkpoint, reads, shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.risk.loglinear import deviance, expected_frequencies, unique_risks
from sdcduck.methods.risk.suda import MOST_KEYS, SpecialUniques, dis, dis_scores, special_uniques
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import among, choice, share, whole
from sdcduck.udfs.risk.classes import Classes
from sdcduck.udfs.source import is_number, refuse_taken

_MOST_SETS = 2_000_000
_NULLS = ("category", "ignore")
_ADDED = ("uniques", "smallest", "suda", "dis_suda", "contributions")


@dataclass(frozen=True)
class _Call:
    """A checked call.

    Attributes:
        classes: the records and their keys.
        unknown: SQL condition on each key: its value is not known.
        largest: keys that a unique may have.
        fraction: of the population that is in the sample.
    """

    classes: Classes
    unknown: tuple[str, ...]
    largest: int
    fraction: float

    def numbered(self) -> str:
        """A query for the classes of one record, by number: keys and ``_place``, from 0 on."""
        order = ", ".join(f"{identifier(name)} ASC NULLS FIRST" for name in self.classes.keys)
        keys = self.classes.columns
        return (
            f"SELECT {keys}, row_number() OVER (ORDER BY {order}) - 1 AS _place "
            f"FROM (SELECT {keys} FROM {self.classes.relation.sql} GROUP BY ALL HAVING count(*) = 1)"
        )


def _read_call(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, fraction: float | None,
    missing: str | None, nulls: str | None,
) -> _Call:  # fmt: skip
    choice(nulls, "nulls", _NULLS)
    classes = Classes.read(session, text, keys, "category", taken=_ADDED)
    if len(classes.keys) > MOST_KEYS:
        raise SDCError(f"argument 'keys' may name at most {MOST_KEYS} columns")
    sampled = share(fraction, "dis", zero=False, why="the part of the population in the sample")
    largest = min(len(classes.keys), len(classes.keys) if max_size is None else whole(max_size, "max_size", least=1))
    if sum(math.comb(len(classes.keys), size) for size in range(1, largest + 1)) > _MOST_SETS:
        raise SDCError(f"more than {_MOST_SETS:,} combinations of keys: give max_size, such as max_size := 3")
    unknown = []
    for name in classes.keys:
        column, parts = identifier(name), []
        if nulls == "ignore":
            parts.append(f"{column} IS NULL")
        if missing is not None:
            parts.append(f"{column}::VARCHAR IS NOT DISTINCT FROM {literal(missing)}")
        unknown.append(f"({' OR '.join(parts)})" if parts else "false")
    return _Call(classes, tuple(unknown), largest, sampled)


def _search(session: Session, call: _Call) -> tuple[SpecialUniques, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The uniques of the classes of one record, in the order of their numbers, and their DIS scores."""
    keys = call.classes.keys
    with reads(session.cursor()) as cursor:
        _read_classes(cursor, call)
        columns = cursor.execute(
            f"SELECT {', '.join(f'_c{place}' for place in range(len(keys)))}, _single FROM _coded "
            "ORDER BY _single DESC, _place"
        ).fetchnumpy()
        row = cursor.execute("SELECT count(*) FROM _classes WHERE _records = 2").fetchone()
    pairs = 2 * row[0] if row else 0
    single = np.asarray(columns["_single"], dtype=bool)
    codes = np.array([columns[f"_c{place}"] for place in range(len(keys))], dtype=np.int32).reshape(len(keys), -1)
    found = special_uniques(codes, single, call.largest, shown_checkpoint())
    alone = int(single.sum())
    # Whose only difference to others is a value that is not known is no unique.
    known = (codes >= 0).all(axis=0)
    uniques = int((single & (known | (found.count > 0))).sum())
    chances = dis_scores(found.score, dis(uniques, pairs, call.fraction), len(keys))
    kept = SpecialUniques(found.count[:alone], found.smallest[:alone], found.score[:alone], found.share[:alone])
    return kept, chances[:alone]


def _read_classes(cursor: duckdb.DuckDBPyConnection, call: _Call) -> None:
    """Temporary tables of the cursor: ``_classes`` with their records, ``_coded`` with a number for each value."""
    keys = call.classes.columns
    cursor.execute(
        f"CREATE TEMP TABLE _classes AS SELECT {keys}, count(*) AS _records "
        f"FROM {call.classes.relation.sql} GROUP BY ALL"
    )
    joins, codes = [], []
    for place, name in enumerate(call.classes.keys):
        column = identifier(name)
        joins.append(
            f"JOIN (SELECT {column} AS _v, (row_number() OVER () - 1)::INTEGER AS _n FROM _classes GROUP BY {column}) "
            f"_k{place} ON c.{column} IS NOT DISTINCT FROM _k{place}._v"
        )
        codes.append(f"CASE WHEN c._unknown{place} THEN -1 ELSE _k{place}._n END AS _c{place}")
    unknown = ", ".join(f"{condition} AS _unknown{place}" for place, condition in enumerate(call.unknown))
    alike = call.classes.alike("c", "s")
    cursor.execute(
        f"CREATE TEMP TABLE _coded AS SELECT {', '.join(codes)}, c._records = 1 AS _single, s._place "
        f"FROM (SELECT *, {unknown} FROM _classes) c {' '.join(joins)} LEFT JOIN ({call.numbered()}) s ON {alike}"
    )


_COLUMNS: Mapping[str, str] = {
    "place": "BIGINT", "uniques": "BIGINT", "smallest": "BIGINT", "suda": "DOUBLE", "dis_suda": "DOUBLE",
    "shares": "DOUBLE[]",
}  # fmt: skip


def plan_suda(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, dis: float | None,
    missing: str | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_suda``: the records of the source with their scores."""
    call = _read_call(session, text, keys, max_size, dis, missing, nulls)
    relation = call.classes.relation
    refuse_taken(relation.columns, _ADDED)

    def make() -> pa.Table:
        found, chances = _search(session, call)
        some = np.flatnonzero(found.count)
        shares = pa.ListArray.from_arrays(
            np.arange(0, len(some) * len(call.classes.keys) + 1, len(call.classes.keys), dtype=np.int32),
            pa.array(100 * found.share[some].ravel()),
        )
        return pa.table(
            {
                "place": some, "uniques": found.count[some], "smallest": found.smallest[some],
                "suda": found.score[some], "dis_suda": chances[some], "shares": shares,
            }
        )  # fmt: skip

    names = ", ".join(literal(name) for name in call.classes.keys)
    shown = ", ".join(f"r.{identifier(name)}" for name in relation.columns)
    return Rows(
        make,
        f"""
        WITH _found AS MATERIALIZED (FROM {{rows}}),
        _scored AS (SELECT n.* EXCLUDE (_place), f.* FROM ({call.numbered()}) n JOIN _found f ON n._place = f.place)
        SELECT {shown}, coalesce(uniques, 0) AS uniques, smallest, coalesce(suda, 0) AS suda,
            coalesce(dis_suda, 0) AS dis_suda,
            CASE WHEN suda IS NOT NULL THEN map([{names}], shares) END AS contributions
        FROM {relation.sql} r LEFT JOIN _scored s ON {call.classes.alike("r", "s")}""",
    )


def plan_suda_contributions(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, missing: str | None,
    nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_suda_contributions``: by key, what it has to do with all the scores."""
    call = _read_call(session, text, keys, max_size, 1.0, missing, nulls)

    def make() -> pa.Table:
        found, _ = _search(session, call)
        total = float(found.score.sum())
        parts = (found.share * found.score[:, None]).sum(axis=0)
        return pa.table(
            {
                "variable": list(call.classes.keys),
                "records": (found.share > 0).sum(axis=0),
                "contribution": pa.array(100 * parts / total if total > 0 else [None] * len(parts), pa.float64()),
            }
        )

    return Rows(make, "SELECT * FROM {rows} ORDER BY contribution DESC, variable")


# --- uniques of the population ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Model:
    """A checked call of ``sdc_model_risk``.

    Attributes:
        classes: the records, their keys and weights.
        fraction: of the population that is in the sample, where there are no weights.
        order: keys that may interact.
        trends: places of the keys whose values count as numbers.
        method: where the frequencies of the population come from.
    """

    classes: Classes
    fraction: float | None
    order: int
    trends: tuple[int, ...]
    method: str

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """The margins that the model keeps, the widest only: they hold all that are in them."""
        factors = [place for place in range(len(self.classes.keys)) if place not in self.trends]
        return list(combinations(factors, min(self.order, len(factors)))) if factors else [()]


def _read_model(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, fraction: float | None,
    interactions: int | None, trends: list[str] | None, method: str | None,
) -> _Model:  # fmt: skip
    classes = Classes.read(session, text, keys, "category", weight=weight)
    if (weight is None) == (fraction is None):
        raise SDCError("give either 'weight', a column of sampling weights, or 'fraction', the share that was sampled")
    sampled = None if fraction is None else share(fraction, "fraction", zero=False)
    order = whole(interactions, "interactions", least=1, why="1 for main effects, 2 for pairs")
    fitted = choice(method, "method", _METHODS)
    if method in _WEIGHTED and weight is None:
        raise SDCError(f"method '{method}' {_WEIGHTED[str(method)]}: give 'weight'")
    places = among(trends, "trends", classes.keys, "the keys")
    for place in places:
        if not is_number(classes.relation.type_of(classes.keys[place])):
            raise SDCError(f"argument 'trends' names '{classes.keys[place]}', which is no number")
    return _Model(classes, sampled, order, tuple(dict.fromkeys(places)), fitted)


def _read_frequencies(
    cursor: duckdb.DuckDBPyConnection, model: _Model
) -> tuple[list[np.ndarray[tuple[int], np.dtype[np.int64]]], list[np.ndarray[tuple[int], np.dtype[np.float64]]],
           np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:  # fmt: skip
    """Codes of the classes by key, values of the keys (0 where they are no trends), records and population."""
    cursor.execute(f"CREATE TEMP TABLE _classes AS {model.classes.counted()}")
    joins, codes, values = [], [], []
    for place, name in enumerate(model.classes.keys):
        column = identifier(name)
        value = f"{column}::DOUBLE" if place in model.trends else "0::DOUBLE"
        cursor.execute(
            f"CREATE TEMP TABLE _k{place} AS SELECT {column} AS _v, {value} AS _x, "
            f"row_number() OVER (ORDER BY {column} ASC NULLS FIRST) - 1 AS _n FROM _classes GROUP BY {column}"
        )
        joins.append(f"JOIN _k{place} ON c.{column} IS NOT DISTINCT FROM _k{place}._v")
        codes.append(f"_k{place}._n AS _c{place}")
        scores = cursor.execute(f"SELECT _x FROM _k{place} ORDER BY _n").fetchnumpy()["_x"]
        if np.ma.is_masked(scores) or not np.isfinite(np.asarray(scores)).all():
            raise SDCError(f"argument 'trends' names '{name}', which holds NULL, or is not finite")
        values.append(np.asarray(scores, dtype=np.float64))
    fetched = cursor.execute(
        f"SELECT {', '.join(codes)}, c.records::DOUBLE AS _f, coalesce(c.population, c.records) AS _w "
        f"FROM _classes c {' '.join(joins)} ORDER BY ALL"
    ).fetchnumpy()
    places = [np.asarray(fetched[f"_c{place}"], dtype=np.int64) for place in range(len(values))]
    return places, values, np.asarray(fetched["_f"], dtype=np.float64), np.asarray(fetched["_w"], dtype=np.float64)


def plan_model_risk(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, fraction: float | None,
    interactions: int | None, trends: list[str] | None, method: str | None,
) -> Rows:  # fmt: skip
    """``sdc_model_risk``: one row."""
    model = _read_model(session, text, keys, weight, fraction, interactions, trends, method)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            codes, values, records, population = _read_frequencies(cursor, model)
        row: dict[str, float | int | None] = {
            "records": int(records.sum()), "classes": len(records), "cells": 0, "uniques": int((records == 1).sum()),
        }  # fmt: skip
        if len(records):
            row |= _modelled(model, codes, values, records, population)
        return pa.table({name: [row.get(name)] for name in _MODEL_COLUMNS}, schema=_MODEL_SCHEMA)

    return Rows(make)


def _modelled(
    model: _Model, codes: list[np.ndarray[tuple[int], np.dtype[np.int64]]],
    values: list[np.ndarray[tuple[int], np.dtype[np.float64]]], records: np.ndarray[tuple[int], np.dtype[np.float64]],
    population: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> dict[str, float | int | None]:  # fmt: skip
    shape = [len(one) for one in values]
    cells = math.prod(shape)
    if cells > _MOST_CELLS:
        raise SDCError(
            f"the keys have {cells:,} combinations, and the model takes at most {_MOST_CELLS:,}: "
            "take fewer keys, or coarser ones"
        )
    sampled = np.minimum(records / population, 1.0) if model.fraction is None else np.full(len(records), model.fraction)
    places = tuple(codes)
    observed, exposure, covariate = np.zeros(shape), None, None
    observed[places] = population if model.method == "pseudo" else records
    if model.method == "sdcmicro_pml":
        observed[places] = population * (records.sum() / population.sum())
    elif model.method == "sdcmicro_weighted":
        covariate = np.zeros(shape)
        covariate[places] = population
    elif model.method == "sdcmicro_ce":
        exposure = np.full(shape, _TENTH)
        exposure[places] += records / population
    trends = {place: values[place] for place in model.trends}
    fitted = expected_frequencies(observed, model.terms, trends, checkpoint(), exposure=exposure, covariate=covariate)
    lone = records == 1
    rate = fitted[places][lone]
    if model.method == "poisson":
        rate = rate / sampled[lone]
    alone, match = unique_risks(rate, sampled[lone])
    tau1, tau2 = float(alone.sum()), float(match.sum())
    uniques = int(lone.sum())
    return {
        "cells": cells, "tau1": tau1, "tau2": tau2, "share1": tau1 / uniques if uniques else None,
        "share2": tau2 / uniques if uniques else None, "gr1": tau1 / len(records), "gr2": tau2 / len(records),
        "deviance": deviance(observed, fitted),
    }  # fmt: skip


_METHODS = ("poisson", "pseudo", "sdcmicro", "sdcmicro_ce", "sdcmicro_pml", "sdcmicro_weighted")
_WEIGHTED: Mapping[str, str] = {
    "pseudo": "fits the sums of the weights",
    "sdcmicro_ce": "sees that shares sampled differ by the weights",
    "sdcmicro_pml": "fits the sums of the weights",
    "sdcmicro_weighted": "explains frequencies by the weights",
}
_TENTH = 0.1  # what sdcMicro adds to the share sampled, of which a class of nobody has none
_MOST_CELLS = 10_000_000
_MODEL_COLUMNS: Mapping[str, str] = {
    "records": "BIGINT", "classes": "BIGINT", "cells": "BIGINT", "uniques": "BIGINT", "tau1": "DOUBLE",
    "tau2": "DOUBLE", "share1": "DOUBLE", "share2": "DOUBLE", "gr1": "DOUBLE", "gr2": "DOUBLE", "deviance": "DOUBLE",
}  # fmt: skip
_MODEL_SCHEMA = pa.schema(
    [(name, pa.int64() if kind == "BIGINT" else pa.float64()) for name, kind in _MODEL_COLUMNS.items()]
)


FAMILY = Family(
    name="special_uniques",
    temporary=("special_uniques_tables.sql",),
    planners=(
        *planners(plan_suda_contributions, plan_model_risk),
        planner(plan_suda, _COLUMNS),
    ),
)
