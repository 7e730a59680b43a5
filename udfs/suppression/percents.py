"""Percentages of a published table: the planner of ``sdc_percent_table``.

They are made of the stored cells of a publication alone, of which suppressed numbers are NULL, so that they tell
nothing that these do not: there is one where a number and the total that it is a part of are published both.
"""

from __future__ import annotations

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import among, needed, whole
from sdcduck.udfs.publication import read_publication
from sdcduck.udfs.source import refuse_taken

_MADE = ("level", "number", "total", "percent", "reason")
_MOST_DIGITS = 12


def plan_percent_table(
    session: Session, publication: str | None, columns: list[str | None] | None, measure: str | None,
    digits: int | None,
) -> str:  # fmt: skip
    """``sdc_percent_table``: each number as a percentage of the one with these columns totalled."""
    cursor = session.cursor()
    stored = catalog.publication(cursor, needed(publication, "publication", "be the name of a stored publication"))
    if stored.fingerprint is None:
        raise SDCError(f"'{stored.name}' has not been published yet: FROM sdc_publish('{stored.name}', ..)")
    read = read_publication(cursor, stored.query, session.engine)
    refuse_taken([name for name in read.dimensions if folded(name) in _MADE], _MADE)
    places = set(
        needed(
            among(columns, "columns", read.dimensions, "the grouping columns"),
            "columns", "name grouping columns, whose categories add up to 100 per cent",
        )
    )  # fmt: skip
    rounded = whole(digits, "digits", least=0, most=_MOST_DIGITS)
    counts = any(one.kind == "count" for one in read.measures)
    value = identifier(read.measure(measure, "measure", "count" if counts else "sum").name)
    levels = [read.level_of(one) for one in read.sets]
    if len(set(levels)) < len(levels):
        raise SDCError(f"'{stored.name}' has columns whose names cannot be told apart in totals: call them otherwise")
    parts = {
        level: read.level_of(tuple(place for place in one if place not in places))
        for level, one in zip(levels, read.sets, strict=True)
        if places & set(one)
    }
    if not any(total in levels for total in parts.values()):
        raise SDCError(f"'{stored.name}' has no totals over these columns: publish them, too, as a GROUPING SET")
    cells = catalog.cells_table(stored.name)
    hidden = "status IN ('primary', 'secondary')"
    whens = " ".join(f"WHEN {literal(level)} THEN {literal(total)}" for level, total in parts.items())
    totals = ", ".join(dict.fromkeys(map(literal, parts.values())))
    dimensions = "".join(f"c.{name}, " for name in read.quoted_dimensions)
    same = "".join(
        f" AND t.{name} IS NOT DISTINCT FROM c.{name}"
        for place, name in enumerate(read.quoted_dimensions)
        if place not in places
    )
    shown = "CASE WHEN isfinite({0}::DOUBLE) THEN {0}::DOUBLE END"
    return f"""
        SELECT {dimensions}c.level, c._sdc_number AS number, t._sdc_total AS total,
            CASE WHEN t._sdc_total <> 0 THEN round(100 * {shown.format("c._sdc_number")}
                / {shown.format("t._sdc_total")}, {rounded}) END AS percent,
            CASE WHEN c._sdc_hidden THEN 'suppressed' WHEN t.level IS NULL THEN 'no total'
                WHEN t._sdc_hidden THEN 'total suppressed' WHEN c._sdc_number IS NULL THEN 'no number'
                WHEN coalesce(t._sdc_total, 0) = 0 THEN 'total is 0' END AS reason
        FROM (
            SELECT *, CASE level {whens} END AS _sdc_of, CASE WHEN NOT {hidden} THEN {value} END AS _sdc_number,
                {hidden} AS _sdc_hidden
            FROM {cells} WHERE status <> 'hidden'
        ) c LEFT JOIN (
            SELECT *, CASE WHEN NOT {hidden} THEN {value} END AS _sdc_total, {hidden} AS _sdc_hidden
            FROM {cells} WHERE status <> 'hidden' AND level IN ({totals})
        ) t ON t.level = c._sdc_of{same}
        WHERE c._sdc_of IS NOT NULL"""
