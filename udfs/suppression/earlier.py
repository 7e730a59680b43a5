"""Publications that were published before, and whose cells stay as they are in one that comes after them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.publication import Publication, digest, read_publication


@dataclass(frozen=True)
class Earlier:
    """A publication that was published before, and whose cells are cells of the joint publication.

    Attributes:
        name: of the publication.
        dimensions: its grouping columns.
        levels: of each of its grouping sets the name in its stored cells, and the number in the joint publication.
        freq: its count(..) column.
    """

    name: str
    dimensions: tuple[str, ...]
    levels: tuple[tuple[str, int], ...]
    freq: str


def joined(session: Session, publication: Publication, name: str) -> tuple[Publication, tuple[Earlier, ...]]:
    """A publication together with one published before it, and those that came before that one."""
    cursor, found = session.cursor(), list[tuple[str, Publication]]()
    freqs: dict[str, str | None] = {}
    after: str | None = name
    while after is not None and after not in (known for known, _ in found):
        stored = catalog.publication(cursor, after)
        if stored.fingerprint is None or stored.arguments is None:
            raise SDCError(f"argument 'after': '{after}' has not been published (sdc_publish)")
        before = read_publication(cursor, stored.query, session.engine)
        if digest(cursor, before) != stored.fingerprint:
            raise SDCError(f"argument 'after': the data of '{after}' changed since it was published")
        given = json.loads(stored.arguments)
        freqs[after] = given.get("freq")
        found.append((after, before))
        after = given["after"]
    places = {folded(dimension): place for place, dimension in enumerate(publication.dimensions)}
    translated: list[list[tuple[int, ...]]] = []
    for known, before in found:
        missing = [dimension for dimension in before.dimensions if folded(dimension) not in places]
        if missing:
            raise SDCError(
                f"argument 'after': '{known}' groups by '{missing[0]}', which is no grouping column here; "
                "add it, so that both are sums of the same inner cells"
            )
        translated.append(
            [tuple(sorted(places[folded(before.dimensions[k])] for k in columns)) for columns in before.sets]
        )
    every = [*publication.sets, *(columns for sets in translated for columns in sets)]
    joint = replace(publication, sets=tuple(sorted(dict.fromkeys(every), key=len)))
    earlier = tuple(
        Earlier(
            known,
            before.dimensions,
            tuple((before.level_of(b), joint.sets.index(a)) for a, b in zip(sets, before.sets, strict=True)),
            before.measure(freqs[known], "freq", "count").name,
        )
        for (known, before), sets in zip(found, translated, strict=True)
    )
    return joint, earlier


def beside(cursor: duckdb.DuckDBPyConnection, name: str, query: str, earlier: Sequence[Earlier]) -> list[str]:
    """The other publications that read a table that this one reads, and that it was not suppressed with.

    Args:
        name, query: of the publication.
        earlier: the publications whose cells it keeps to.
    """
    known = {folded(name), *(folded(one.name) for one in earlier)}
    tables = _tables(cursor, query)
    return [
        other.name
        for other in catalog.publications(cursor)
        if other.fingerprint is not None and folded(other.name) not in known and tables & _tables(cursor, other.query)
    ]


def _tables(cursor: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """What a publication reads, through views and macros; nothing where that is not there any more."""
    try:
        return {folded(table) for table in cursor.get_table_names(query)}
    except duckdb.Error:
        return set()


def with_earlier(cursor: duckdb.DuckDBPyConnection, marked: str, earlier: Earlier, freq: str) -> str:
    """SQL of the marked cells where those of an earlier publication stay as they are.

    Raises:
        SDCError: cells of the earlier publication that are not there any more, or have other counts.
    """
    number = " ".join(f"WHEN {literal(level)} THEN {place}" for level, place in earlier.levels)
    match = " AND ".join(
        [
            f"CASE e.level {number} END = m._sdc_set",
            *(f"m.{identifier(name)} IS NOT DISTINCT FROM e.{identifier(name)}" for name in earlier.dimensions),
        ]
    )
    before = catalog.cells_table(earlier.name)
    lost = catalog.first_row(
        cursor,
        f"""SELECT count(*) FROM {before} e LEFT JOIN ({marked}) m ON {match}
        WHERE m._sdc_cell IS NULL
            OR e.status IN ('open', 'forced') AND e.{identifier(earlier.freq)} <> m.{identifier(freq)}""",
    )
    if lost is not None and lost[0]:
        raise SDCError(
            f"argument 'after': {lost[0]} cells of '{earlier.name}' are not in this publication, or have other counts; "
            "the two must be made from the same records"
        )
    return f"""
        SELECT m.* REPLACE (
            coalesce(m._sdc_forced OR e.status IN ('open', 'forced'), m._sdc_forced) AS _sdc_forced,
            coalesce(m._sdc_primary OR e.status IN ('primary', 'secondary'), m._sdc_primary) AS _sdc_primary,
            concat_ws(', ', nullif(m._sdc_why, ''), CASE WHEN e.status IN ('primary', 'secondary') THEN 'after' END)
                AS _sdc_why
        ) FROM ({marked}) m LEFT JOIN {before} e ON {match}"""
