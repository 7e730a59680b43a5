"""Targeted record swapping: planners behind ``sql/record_swapping_tables.sql``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import checkpoint, reads
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.synthesis.record_swapping import (
    NO_DONOR_LEFT,
    NO_SIMILAR,
    Swapping,
    levels_above,
    levels_at_risk,
    rarities,
    smallest_counts,
    swap_records,
)
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import needed, number, share, whole, wrong
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.source import Source, refuse_taken, source

_ADDED = ("swapped_with", "swap_level", "at_risk_level")
_K = 3  # `k` where it is not given

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes."""

    relation: Source
    household: str
    hierarchy: tuple[str, ...]
    similar: tuple[tuple[str, ...], ...]
    risk: tuple[str, ...]
    carried: tuple[str, ...]
    k: int
    rate: float
    seed: int | None
    given: tuple[str, ...]
    threshold: float

    @property
    def moving(self) -> tuple[str, ...]:
        """The columns that change place."""
        return (*self.hierarchy, *self.carried)


def _lists(text: str | None) -> list[list[str]]:
    """The profiles of argument ``similar``: one list of columns, or a list of lists."""
    given = json.loads(text or "[]")
    profiles = given if given and all(isinstance(one, list) for one in given) else [given]
    names = [name for one in profiles for name in one]
    if not isinstance(given, list) or not all(profiles) or not all(isinstance(name, str) for name in names):
        wanted = "name what has to be equal in two households that change place"
        raise wrong("similar", f"{wanted}, such as ['size'], or several lists in order of preference")
    return profiles


def _read_call(
    session: Session, text: str | None, household: str | None, hierarchy: list[str] | None, similar: str | None,
    risk: list[str] | None, k: int | None, rate: float | None, carried: list[str] | None, seed: int | None,
    given: list[str] | None, threshold: float | None,
) -> _Call:  # fmt: skip
    relation = source(session.cursor(), text, "source")
    lived_in = needed(household, "household", "name the column that tells which records move together")
    needed(hierarchy, "hierarchy", "name the columns of the geography, the widest first")
    least, swapped = whole(k, "k", least=0), share(rate, "swaprate")
    need_seed_or_secret(session, seed, "a swap can be undone")
    call = _Call(
        relation, relation.named([lived_in], "household")[0], relation.named(hierarchy, "hierarchy"),
        tuple(relation.named(profile, "similar") for profile in _lists(similar)),
        relation.named(risk, "keys"), relation.named(carried, "carry_along"), least, swapped, seed,
        relation.named(given, "risk"), math.inf if threshold is None else number(threshold, "threshold", least=0),
    )  # fmt: skip
    _check_risk(call, threshold)
    relation.check_names(tuple(relation.columns))
    others = (("keys", call.risk), ("carry_along", call.carried), *(("similar", one) for one in call.similar))
    for argument, columns in (("hierarchy", call.hierarchy), *others):
        if call.household in columns:
            raise SDCError(f"argument '{argument}' names the column of the household")
    for argument, columns in others:
        for column in columns:
            if column in call.hierarchy:
                raise SDCError(f"argument '{argument}' names column '{column}', which is one of the hierarchy")
    return call


def _check_risk(call: _Call, threshold: float | None) -> None:
    """That a risk is given for every level, and says all about who is at risk."""
    if bool(call.given) != (threshold is not None):
        raise SDCError(
            "arguments 'risk' and 'threshold' go together: columns, and above which risk a household is moved"
        )
    if call.given and call.risk:
        raise SDCError("give 'keys', from which the risk is counted, or 'risk', and not both")
    if call.given and call.k != _K:
        raise SDCError("argument 'k' goes with 'keys': with 'risk', 'threshold' says who is at risk")
    if call.given and len(call.given) != len(call.hierarchy):
        raise wrong(
            "risk", "name a column for each one of 'hierarchy': the risk of a record in the areas of that level"
        )
    for name in call.given:
        call.relation.number(name, "risk")


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Households:
    """The households in their canonical order, as the kernel wants them; ``name`` is text."""

    name: pa.ChunkedArray
    key: NDArray[np.uint64]
    area: Indices
    ancestors: Indices
    profiles: Indices
    alike: Indices
    unit: Indices
    risk: NDArray[np.float64]


def _differs(column: str) -> str:
    return f"(min({column}) IS DISTINCT FROM max({column}) OR count({column}) NOT IN (0, count(*)))"


def _refuse(cursor: duckdb.DuckDBPyConnection, query: str, messages: list[str]) -> None:
    """An error with the message of the first column of the query that is true."""
    for found, message in zip(cursor.execute(query).fetchall()[0], messages, strict=True):
        if found:
            raise SDCError(message)


def _numbers(cursor: duckdb.DuckDBPyConnection, query: str) -> list[NDArray[np.int64]]:
    return [np.asarray(column) for column in cursor.execute(query).fetchnumpy().values()]


def _names(prefix: str, columns: tuple[str, ...]) -> list[str]:
    return [f"_{prefix}{place}" for place in range(len(columns))]


def _make_units(cursor: duckdb.DuckDBPyConnection, equal: Sequence[Sequence[str]]) -> None:
    """Number the households, and in each profile those that are alike."""
    profiles = "".join(
        f", dense_rank() OVER (ORDER BY {', '.join(profile)}) - 1 AS _p{place}" for place, profile in enumerate(equal)
    )
    cursor.execute(
        "CREATE TEMP TABLE _units AS SELECT _household, _key, _area, row_number() OVER (ORDER BY _key, _household) - 1 "
        f"AS _unit{profiles} FROM _homes"
    )


def _read_households(cursor: duckdb.DuckDBPyConnection, call: _Call) -> _Households:
    """Reads the source once, into temporary tables of the cursor.

    Raises:
        SDCError: a NULL where none may be, areas that do not nest, or a household that is not in one piece.
    """
    check = checkpoint()
    levels, risks, carries = _names("g", call.hierarchy), _names("r", call.risk), _names("c", call.carried)
    alike_in = tuple(dict.fromkeys(column for profile in call.similar for column in profile))
    similars = _names("s", alike_in)
    kept = zip(
        [*call.hierarchy, *call.risk, *call.carried, *alike_in, *call.given],
        [*levels, *risks, *carries, *similars, *_names("q", call.given)], strict=True,
    )  # fmt: skip
    cursor.execute(
        f"CREATE TEMP TABLE _persons AS SELECT {identifier(call.household)}::VARCHAR AS _household, "
        + ", ".join(f"{identifier(column)} AS {name}" for column, name in kept)
        + f" FROM {call.relation.sql}"
    )
    check()
    _refuse(
        cursor,
        "SELECT " + ", ".join(f"count(*) > count({name})" for name in ("_household", *levels)) + " FROM _persons",
        ["a record has no household (NULL)", *(f"a record has NULL in '{column}'" for column in call.hierarchy)],
    )
    paths = [", ".join(levels[: place + 1]) for place in range(len(levels))]
    codes = ", ".join(f"dense_rank() OVER (ORDER BY {path}) - 1 AS _a{place}" for place, path in enumerate(paths))
    cursor.execute(f"CREATE TEMP TABLE _areas AS SELECT *, {codes} FROM (SELECT DISTINCT {paths[-1]} FROM _persons)")
    for place in range(1, len(levels)):
        _refuse(
            cursor,
            f"SELECT EXISTS (SELECT 1 FROM _areas GROUP BY {levels[place]} "
            f"HAVING min(_a{place - 1}) < max(_a{place - 1}))",
            [
                f"the hierarchy does not nest: a '{call.hierarchy[place]}' lies in more than one "
                f"'{call.hierarchy[place - 1]}'"
            ],
        )
    narrowest = f"_a{len(levels) - 1}"
    one_each = [*similars, *carries]
    cursor.execute(
        f"CREATE TEMP TABLE _homes AS SELECT _household, md5_number_lower(_household) AS _key, "
        f"min({narrowest}) AS _area, min({narrowest}) < max({narrowest}) AS _apart"
        + "".join(f", any_value({name}) AS {name}, {_differs(name)} AS _differs{name}" for name in one_each)
        + f" FROM _persons JOIN _areas USING ({paths[-1]}) GROUP BY _household"
    )
    check()
    _refuse(
        cursor,
        "SELECT " + ", ".join(f"bool_or({flag})" for flag in ("_apart", *(f"_differs{name}" for name in one_each)))
        + " FROM _homes",
        [
            "a household lives in two areas",
            *(f"column '{column}' differs within a household" for column in (*alike_in, *call.carried)),
        ],
    )  # fmt: skip
    equal = [[similars[alike_in.index(column)] for column in profile] for profile in call.similar]
    _make_units(cursor, equal)
    check()
    same = " AND ".join(f"p.{name} IS NOT DISTINCT FROM a.{name}" for name in risks) or "true"
    cursor.execute(
        "CREATE TEMP TABLE _alike AS SELECT *, row_number() OVER () - 1 AS _alike "
        f"FROM (SELECT DISTINCT {', '.join(risks) or '0'} FROM _persons)"
    )
    unit, alike = _numbers(
        cursor, f"SELECT u._unit, a._alike FROM _persons p JOIN _units u USING (_household) JOIN _alike a ON {same}"
    )
    check()
    names = ", ".join(f"_p{place}" for place in range(len(equal)))
    key, area, *codes_of = _numbers(cursor, f"SELECT _key, _area, {names} FROM _units ORDER BY _unit")
    ancestors = _numbers(cursor, f"SELECT {', '.join(f'_a{h}' for h in range(len(levels)))} FROM _areas ORDER BY ALL")
    household = cursor.sql("SELECT _household FROM _units ORDER BY _unit").to_arrow_table()["_household"]
    return _Households(
        household, key.astype(np.uint64), area, np.array(ancestors, dtype=np.int64),
        np.array(codes_of, dtype=np.int64), alike, unit, _read_risks(cursor, call),
    )  # fmt: skip


def _read_risks(cursor: duckdb.DuckDBPyConnection, call: _Call) -> NDArray[np.float64]:
    """The risk of the riskiest member of each household at each level, where there are columns of it.

    Raises:
        SDCError: one is NULL, negative or not finite.
    """
    columns = _names("q", call.given)
    if not columns:
        return np.zeros((0, 0))
    wrong_one = ", ".join(
        f"count(*) FILTER (({name} >= 0 AND {name}::DOUBLE < 'infinity'::DOUBLE) IS NOT TRUE) > 0" for name in columns
    )
    _refuse(
        cursor, f"SELECT {wrong_one} FROM _persons",
        [f"a risk in '{name}' is NULL, negative or not finite" for name in call.given],
    )  # fmt: skip
    largest = ", ".join(f"max({name})::DOUBLE AS {name}" for name in columns)
    found = cursor.execute(
        f"SELECT {largest} FROM _persons JOIN _units USING (_household) GROUP BY _unit ORDER BY _unit"
    ).fetchnumpy()
    return np.array([np.asarray(found[name], dtype=np.float64) for name in columns])


def _swap(session: Session, call: _Call) -> tuple[_Households, Indices, Swapping]:
    """The households, the level at which each is at risk (-1: none), and who changes place with whom."""
    with reads(session.cursor()) as cursor:
        homes = _read_households(cursor, call)
    smallest: Indices | NDArray[np.float64]
    if call.given:
        smallest, at_risk = rarities(homes.risk), levels_above(homes.risk, call.threshold)
    else:
        smallest = smallest_counts(homes.alike, homes.unit, homes.area, homes.ancestors)
        at_risk = levels_at_risk(smallest, call.k)
    swapping = swap_records(
        homes.area, homes.ancestors, smallest, homes.profiles, homes.key, k=call.k, rate=call.rate,
        seed=stream_of(session.secret(), "record swapping", call.seed), check=checkpoint(), at_risk=at_risk,
    )  # fmt: skip
    return homes, at_risk, swapping


# --- the functions ---------------------------------------------------------------------------------------------------


def plan_record_swap(
    session: Session, text: str | None, household: str | None, hierarchy: list[str] | None, similar: str | None,
    keys: list[str] | None, k: int | None, swaprate: float | None, carry_along: list[str] | None,
    return_swapped_id: bool | None, seed: int | None, risk: list[str] | None, threshold: float | None,
) -> Rows:  # fmt: skip
    """``sdc_record_swap``: the records of the source, with the geography of the other household."""
    call = _read_call(
        session, text, household, hierarchy, similar, keys, k, swaprate, carry_along, seed, risk, threshold
    )
    refuse_taken(call.relation.columns if return_swapped_id else (), _ADDED)

    def make() -> pa.Table:
        homes, at_risk, swapping = _swap(session, call)
        told = np.flatnonzero((swapping.partner >= 0) | (at_risk >= 0))
        partner = swapping.partner[told]
        return pa.table(
            {
                "_sdc_household": homes.name.take(pa.array(told)),
                "_sdc_partner": homes.name.take(pa.array(partner, mask=partner < 0)),
                "_sdc_level": pa.array(swapping.level[told], mask=partner < 0),
                "_sdc_at_risk": pa.array(at_risk[told], mask=at_risk[told] < 0),
            }
        )

    return Rows(make, _with_places_changed(call, bool(return_swapped_id)))


def _with_places_changed(call: _Call, told: bool) -> str:
    """The records of the source beside what was computed, ``{rows}``."""
    names = {column: f"_sdc_m{place}" for place, column in enumerate(call.moving)}
    household = identifier(call.household)
    moved = ", ".join(f"any_value({identifier(column)}) AS {name}" for column, name in names.items())
    shown = [
        f"CASE WHEN _sdc_partner IS NULL THEN s.{identifier(column)} ELSE {names[column]} END AS {identifier(column)}"
        if column in names
        else f"s.{identifier(column)}"
        for column in call.relation.columns
    ]
    if told:
        levels = f"[{', '.join(literal(column) for column in call.hierarchy)}]"
        shown += [
            "_sdc_id AS swapped_with", f"{levels}[_sdc_level + 1] AS swap_level",
            f"{levels}[_sdc_at_risk + 1] AS at_risk_level",
        ]  # fmt: skip
    return f"""
        WITH _swapped AS MATERIALIZED (FROM {{rows}}),
        _others AS (
            SELECT {household}::VARCHAR AS _sdc_other, any_value({household}) AS _sdc_id, {moved}
            FROM {call.relation.sql} GROUP BY _sdc_other
        ),
        _places AS (FROM _swapped LEFT JOIN _others ON _sdc_partner = _sdc_other)
        SELECT {", ".join(shown)}
        FROM {call.relation.sql} s LEFT JOIN _places ON s.{household}::VARCHAR = _sdc_household"""


def plan_record_swap_report(
    session: Session, text: str | None, household: str | None, hierarchy: list[str] | None, similar: str | None,
    keys: list[str] | None, k: int | None, swaprate: float | None, carry_along: list[str] | None,
    seed: int | None, risk: list[str] | None, threshold: float | None,
) -> Rows:  # fmt: skip
    """``sdc_record_swap_report``: what the swap with the same arguments does, by level."""
    call = _read_call(
        session, text, household, hierarchy, similar, keys, k, swaprate, carry_along, seed, risk, threshold
    )

    def make() -> pa.Table:
        _, at_risk, swapping = _swap(session, call)
        swapped, stays = swapping.partner >= 0, swapping.partner < 0
        rows = []
        for level, name in [*enumerate(call.hierarchy), (None, None)]:
            here = at_risk >= 0 if level is None else at_risk == level
            moved = int((swapped if level is None else swapping.level == level).sum())
            rows.append(
                {
                    "level": name,
                    "households": len(at_risk),
                    "at_risk": int(here.sum()),
                    "at_risk_swapped": int((here & swapped).sum()),
                    "no_similar": int((here & stays & (swapping.failed == NO_SIMILAR)).sum()),
                    "no_donor_left": int((here & stays & (swapping.failed == NO_DONOR_LEFT)).sum()),
                    "swapped": moved,
                    "wanted": swapping.wanted if level is None else None,
                    "rate": moved / len(at_risk) if len(at_risk) else None,
                }
            )
        return table_of(rows, _REPORT_COLUMNS)

    return Rows(make)


_SWAP_COLUMNS = {
    "_sdc_household": "VARCHAR", "_sdc_partner": "VARCHAR", "_sdc_level": "BIGINT", "_sdc_at_risk": "BIGINT",
}  # fmt: skip
_REPORT_COLUMNS = {
    "level": "VARCHAR", "households": "BIGINT", "at_risk": "BIGINT", "at_risk_swapped": "BIGINT",
    "no_similar": "BIGINT", "no_donor_left": "BIGINT", "swapped": "BIGINT", "wanted": "BIGINT", "rate": "DOUBLE",
}  # fmt: skip

FAMILY = Family(
    name="record_swapping",
    temporary=("record_swapping_tables.sql",),
    planners=(
        *planners(plan_record_swap_report),
        planner(plan_record_swap, _SWAP_COLUMNS),
    ),
)
