"""Names for reconstructed records, and how good they are by luck: planners behind ``sql/recon_links_tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.risk.linking import People, expected_matches, expected_pairs, link, people_in_reach
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import needed, wrong
from sdcduck.udfs.arguments import number as distance
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.source import Source, source

_MOST_COMBINATIONS = 1_000_000


# --- links -----------------------------------------------------------------------------------------------------------


def _number(relation: Source, name: str | None, argument: str) -> str:
    """SQL for a column of numbers; NULL and NaN are not known."""
    column = relation.number(name, argument)
    if relation.type_of(str(name)) in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN NOT isnan({column}) THEN {column} END::DOUBLE"
    return f"{column}::DOUBLE"


def _whole_column(relation: Source, name: str | None, argument: str) -> str:
    column = relation.number(name, argument)
    wrong = f"error({literal(f'column {column} holds a NULL or no whole number')})"
    return f"CASE WHEN {column} = round({column}) AND abs({column}) < 1e15 THEN {column}::BIGINT ELSE {wrong} END"


def plan_recon_link(
    session: Session, records: str | None, external: str | None, keys: list[str] | None, near: str | None,
    tolerance: float | None, id: str | None, order: list[str] | None, slot: str | None, draw: str | None,
) -> Rows:  # fmt: skip
    """``sdc_recon_link``: the person that each record of each draw is taken for."""
    cursor = session.cursor()
    ours, theirs = source(cursor, records, "records"), source(cursor, external, "external")
    names = ours.named(keys, "keys")
    needed(names, "keys", "name the columns by which a record and a person go together")
    others = theirs.named(names, "keys")
    check_kinds({"records": ours, "external": theirs}, names, "keys")
    far = distance(tolerance, "tolerance", least=0)
    [person] = map(identifier, theirs.named([id], "id", ("draw", "slot", "exact")))
    first = "".join(f"{identifier(name)} ASC NULLS FIRST, " for name in theirs.named(order, "order"))
    value, known = "0::DOUBLE", "0::DOUBLE"
    if near is not None:
        value, known = _number(ours, near, "near"), _number(theirs, near, "near")
    wrong = f"error({literal('a person has no name, or one that somebody else has')})"
    once = (
        f"CASE WHEN {person} IS NOT NULL AND count(*) OVER (PARTITION BY {person}) = 1 THEN {person} ELSE {wrong} END"
    )
    shown = [", ".join(f"{identifier(name)} AS _g{k}" for k, name in enumerate(those)) for those in (names, others)]
    axes = ", ".join(f"_g{k}" for k in range(len(names)))
    people = (
        f"SELECT {shown[1]}, {known} AS _value, {once} AS _id, "
        f"row_number() OVER (ORDER BY {first}{person}) - 1 AS _place FROM {theirs.sql}"
    )
    drawn = (
        f"SELECT {shown[0]}, {value} AS _value, {_whole_column(ours, draw, 'draw')} AS _draw, "
        f"{_whole_column(ours, slot, 'slot')} AS _slot FROM {ours.sql}"
    )
    equal = " AND ".join(f"r._g{k} = g._g{k}" for k in range(len(names)))  # what is not known matches nobody

    def make() -> pa.Table:
        # One statement, so that records which are drawn anew at each look are looked at once.
        with session.cursor() as inner:
            table = inner.sql(f"""
                WITH _people AS MATERIALIZED ({people}),
                _groups AS MATERIALIZED (SELECT {axes}, row_number() OVER () - 1 AS _group FROM (
                    SELECT DISTINCT {axes} FROM _people)),
                _all AS (
                    SELECT {axes}, _value, NULL::BIGINT AS _draw, _place AS _slot FROM _people UNION ALL
                    SELECT {axes}, _value, _draw, _slot FROM ({drawn})
                )
                SELECT coalesce(g._group, -1)::BIGINT AS grouped, _value AS value, _draw AS draw, _slot AS slot
                FROM _all r LEFT JOIN _groups g ON {equal} ORDER BY _draw NULLS FIRST, _slot""").to_arrow_table()
        outside = table["draw"].null_count  # the people stand first
        groups, values, draws, slots = (
            table[name].slice(start).to_numpy()
            for name, start in (("grouped", 0), ("value", 0), ("draw", outside), ("slot", 0))
        )
        places = People(groups[:outside], values[:outside])
        groups, values, slots = groups[outside:], values[outside:], slots[outside:]
        if ((np.diff(draws) == 0) & (np.diff(slots) == 0)).any():
            raise SDCError("a draw has two records of one slot")
        ends = [0, *(np.flatnonzero(np.diff(draws)) + 1).tolist(), len(draws)]
        found, exact = np.full(len(draws), -1, np.int64), np.zeros(len(draws), np.bool_)
        check = shown_checkpoint()
        for start, end in pairwise(ends):
            check(start, len(draws))
            part = People(groups[start:end], values[start:end])
            found[start:end], exact[start:end] = link(part, places, far)
        nobody = found < 0
        return pa.table(
            {
                "place": pa.array(found, pa.int64(), mask=nobody),
                "draw": pa.array(draws, pa.int64()),
                "slot": pa.array(slots, pa.int64()),
                "exact": pa.array(exact, pa.bool_(), mask=nobody),
            }
        )

    return Rows(
        make,
        f"SELECT p._id AS {person}, r.draw, r.slot, r.exact FROM {{rows}} r "
        f"LEFT JOIN ({people}) p ON r.place = p._place ORDER BY r.draw, r.slot",
    )


def _claimed(
    session: Session, links: str | None, id: str | None, more: Sequence[tuple[str | None, str]], taken: Sequence[str]
) -> tuple[Source, list[str]]:
    relation = source(session.cursor(), links, "links")
    names = [name for name, argument in [(id, "id"), *more] if relation.column(name, argument)]
    if len({folded(str(name)) for name in names}) < len(names):
        raise SDCError(
            f"arguments {', '.join(repr(argument) for argument in ['id', *(a for _, a in more)])} must differ"
        )
    return relation, [identifier(name) for name in relation.named(names, "id", taken)]


def plan_recon_designations(session: Session, links: str | None, sensitive: str | None, id: str | None) -> str:
    """``sdc_recon_designations``: what each person is taken to be, over the draws."""
    relation, [person, value] = _claimed(session, links, id, [(sensitive, "sensitive")], ("draws", "share", "modal"))
    return f"""
        SELECT *, draws / sum(draws) OVER (PARTITION BY {person}) AS share,
            draws = max(draws) OVER (PARTITION BY {person}) AS modal
        FROM (
            SELECT {person}, {value}, count(*) AS draws FROM {relation.sql} WHERE {person} IS NOT NULL GROUP BY ALL
        ) ORDER BY {person}, draws DESC, {value}"""


def plan_recon_refutations(
    session: Session, links: str | None, claim: int | None, slot: str | None, draw: str | None, id: str | None
) -> str:
    """``sdc_recon_refutations``: whom else each record of one draw is taken for in the others."""
    if claim is None:
        raise wrong("claim", "be the number of a draw")
    more = [(slot, "slot"), (draw, "draw")]
    relation, [person, record, number] = _claimed(session, links, id, more, ("others", "unlinked"))
    return f"""
        WITH _links AS MATERIALIZED (SELECT {record} AS _slot, {number} AS _draw, {person} AS _id FROM {relation.sql})
        SELECT c._slot AS {record}, c._id AS {person},
            coalesce(list_sort(list(DISTINCT o._id) FILTER (o._id <> c._id)), []) AS others,
            count(*) FILTER (o._draw IS NOT NULL AND o._id IS NULL) AS unlinked
        FROM _links c LEFT JOIN _links o ON o._slot = c._slot AND o._draw <> c._draw
        WHERE c._draw = {int(claim)} AND c._id IS NOT NULL GROUP BY c._slot, c._id ORDER BY c._slot"""


# --- luck ------------------------------------------------------------------------------------------------------------


def plan_chance_match(
    session: Session, text: str | None, area: str | None, keys: list[str] | None, near: str | None,
    tolerance: float | None, sensitive: str | None,
) -> Rows:  # fmt: skip
    """``sdc_chance_match``: how many people a reconstruction drawn at random gets right."""
    relation = source(session.cursor(), text, "source")
    where = relation.column(area, "area")
    names = [identifier(name) for name in relation.named(keys, "keys")]
    far = distance(tolerance, "tolerance", least=0)
    number = None if near is None else _number(relation, near, "near")
    if not names and number is None:
        raise wrong("keys", "name the columns that are reconstructed")
    if number is not None and folded(identifier(str(near))) in map(folded, names):
        raise wrong("near", "name another column than 'keys'")
    alone = f"CASE WHEN {where} IS NULL THEN error('an area is NULL') ELSE {where} END"
    guessed = "NULL::BIGINT" if sensitive is None else (
        f"(SELECT sum(_most) FROM (SELECT max(_n) AS _most FROM (SELECT {where}, count(*) AS _n FROM {relation.sql} "
        f"GROUP BY {where}, {relation.column(sensitive, 'sensitive')}) GROUP BY {where}))"
    )  # fmt: skip

    def make() -> pa.Table:
        with session.cursor() as inner:
            sizes = inner.execute(f"SELECT count(*) AS n FROM {relation.sql} GROUP BY {alone}").fetchnumpy()["n"]
            group = f"dense_rank() OVER (ORDER BY {', '.join(names) or '1'})"
            combined = inner.sql(
                f"SELECT _group, _value, count(*) AS _n "
                f"FROM (SELECT {group} AS _group, {number or '0::DOUBLE'} AS _value FROM {relation.sql}) "
                f"GROUP BY ALL ORDER BY _group, _value NULLS LAST LIMIT {_MOST_COMBINATIONS + 1}"
            ).to_arrow_table()
            modal = inner.execute(f"SELECT {guessed}::DOUBLE").fetchall()[0][0]
        if len(combined) > _MOST_COMBINATIONS:
            raise SDCError(f"more than {_MOST_COMBINATIONS:,} combinations of values: take fewer keys, or group them")
        people = int(sizes.sum())
        counts = combined["_n"].to_numpy().astype(np.float64)
        reach = people_in_reach(combined["_group"].to_numpy(), combined["_value"].to_numpy(), counts, far)
        found = pairs = share = None
        if people:
            sizes = sizes.astype(np.int64)
            found = expected_matches(sizes, counts / people, reach / people) / people
            pairs = expected_pairs(sizes, counts / people) / people if far == 0 or number is None else None
            share = None if modal is None else modal / people
        return pa.table(
            {
                "persons": pa.array([people], pa.int64()),
                "units": pa.array([len(sizes)], pa.int64()),
                "combinations": pa.array([len(counts)], pa.int64()),
                "matched": pa.array([found], pa.float64()),
                "matched_once": pa.array([pairs], pa.float64()),
                "modal_share": pa.array([share], pa.float64()),
                "by_luck": pa.array([None if found is None or share is None else found * share], pa.float64()),
            }
        )

    return Rows(make)


FAMILY = Family(
    name="recon_links",
    temporary=("recon_links_tables.sql",),
    planners=(
        *planners(plan_recon_designations, plan_recon_refutations, plan_chance_match),
        planner(plan_recon_link, {"place": "BIGINT", "draw": "BIGINT", "slot": "BIGINT", "exact": "BOOLEAN"}),
    ),
)
