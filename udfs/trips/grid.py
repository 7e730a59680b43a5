"""From points to cells: planners of ``sdc_trips_grid`` and ``sdc_trips_check``."""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.udfs.arguments import is_finite, truth, whole, wrong
from sdcduck.udfs.source import Source, is_number, source
from sdcduck.udfs.trips.columns import time_column

_FINEST = 10_000


@dataclass(frozen=True)
class _Points:
    """Points of trips, and the box around them; names are quoted."""

    relation: Source
    trip: str
    x: str
    y: str
    t: str
    unit: str
    west: float
    south: float
    east: float
    north: float
    timed: str

    @classmethod
    def read(
        cls, session: Session, text: str | None, trip: str | None, x: str | None, y: str | None, t: str | None,
        unit: str | None, box: list[float | None] | None,
    ) -> _Points:  # fmt: skip
        relation = source(session.cursor(), text, "source")
        relation.check_names(tuple(relation.columns))
        what = "hold west, south, east and north, such as [-122.6, 37.4, -122.0, 37.9]"
        if box is None or len(box) != 4 or not all(map(is_finite, box)):
            raise wrong("box", what)
        west, south, east, north = (float(one or 0) for one in box)
        if not (west < east and south < north):
            raise wrong("box", what, "west is less than east, and south less than north")
        known, time = relation.column(trip, "trip"), time_column(relation, t, hours=False)
        kind = relation.type_of(str(t))
        return cls(
            relation, known, relation.number(x, "x"), relation.number(y, "y"), time,
            known if unit is None else relation.column(unit, "unit"), west, south, east, north,
            f"isfinite({time}::DOUBLE)" if is_number(kind) else f"isfinite({time})",
        )  # fmt: skip

    @property
    def inside(self) -> str:
        """SQL of whether a point is in the box; NaN is greater than any number, and so in none."""
        return (
            f"{self.x}::DOUBLE BETWEEN {self.west!r} AND {self.east!r} "
            f"AND {self.y}::DOUBLE BETWEEN {self.south!r} AND {self.north!r}"
        )


def _along(value: str, low: float, high: float, resolution: int) -> str:
    """SQL of the column or row of a cell; the upper edge of the box belongs to the last one."""
    step = f"floor(({value}::DOUBLE - {low!r}) / ({high!r} - {low!r}) * {resolution})"
    return f"least({resolution - 1}, {step}::BIGINT)"


def plan_trips_grid(
    session: Session, text: str | None, trip: str | None, x: str | None, y: str | None, t: str | None,
    box: list[float | None] | None, resolution: int | None, collapse: bool | None, unit: str | None,
    min_units: int | None, min_length: int | None, max_length: int | None,
) -> str:  # fmt: skip
    """``sdc_trips_grid``: the cells that each trip goes through."""
    points = _Points.read(session, text, trip, x, y, t, unit, box)
    r = whole(resolution, "resolution", least=1, most=_FINEST, why="so many columns and rows")
    least = whole(min_units, "min_units", least=1)
    shortest = whole(min_length, "min_length", least=1)
    longest = None if max_length is None else whole(max_length, "max_length", least=1)
    if longest is not None and longest < shortest:
        raise SDCError("argument 'max_length' must not be below 'min_length'")
    merged = truth(collapse, "collapse")
    width, height = (points.east - points.west) / r, (points.north - points.south) / r
    visited = "_sdc_inside"
    if least > 1:
        visited = (
            "(FROM _sdc_inside SEMI JOIN (SELECT cell FROM _sdc_inside GROUP BY cell "
            f"HAVING count(DISTINCT unit) >= {least}) USING (cell))"
        )
    order = "PARTITION BY trip ORDER BY t, x, y"
    return f"""
        WITH _sdc_inside AS (
            SELECT {points.trip} AS trip, {points.unit} AS unit, {points.t} AS t, {points.x}::DOUBLE AS x,
                {points.y}::DOUBLE AS y, {_along(points.y, points.south, points.north, r)} * {r}
                + {_along(points.x, points.west, points.east, r)} AS cell
            FROM {points.relation.sql} WHERE {points.trip} IS NOT NULL AND {points.timed} AND {points.inside}
        ), _sdc_steps AS (
            SELECT trip, unit, t, x, y, cell FROM (
                SELECT *, lag(cell) OVER ({order}) AS before FROM {visited}
            ) {"WHERE before IS DISTINCT FROM cell" if merged else ""}
        ), _sdc_labels AS (
            SELECT cell, row_number() OVER (ORDER BY cell) - 1 AS label FROM (SELECT DISTINCT cell FROM _sdc_steps)
        )
        SELECT trip, unit, seq, cell, label, {points.west!r} + (cell % {r} + 0.5::DOUBLE) * {width!r} AS lon,
            {points.south!r} + (cell // {r} + 0.5::DOUBLE) * {height!r} AS lat, t
        FROM (
            SELECT *, row_number() OVER ({order}) AS seq, count(*) OVER (PARTITION BY trip) AS _sdc_length
            FROM _sdc_steps
        ) JOIN _sdc_labels USING (cell)
        WHERE _sdc_length >= {shortest} {"" if longest is None else f"AND _sdc_length <= {longest}"}"""


def plan_trips_check(
    session: Session, text: str | None, trip: str | None, x: str | None, y: str | None, t: str | None,
    box: list[float | None] | None,
) -> str:  # fmt: skip
    """``sdc_trips_check``: what is left out of the points, and why."""
    points = _Points.read(session, text, trip, x, y, t, None, box)
    placed = " AND ".join(f"coalesce(NOT isnan({name}::DOUBLE), false)" for name in (points.x, points.y))
    return f"""
        WITH _sdc_told AS (
            SELECT {points.trip} AS trip, {points.t} AS t, {points.trip} IS NOT NULL AS named,
                coalesce({points.timed}, false) AS timed, {placed} AS placed, coalesce({points.inside}, false) AS inside
            FROM {points.relation.sql}
        ), _sdc_used AS (
            SELECT trip, count(*) AS points, count(*) - count(DISTINCT t) AS same_time
            FROM _sdc_told WHERE named AND timed AND inside GROUP BY trip
        )
        SELECT p.*, coalesce(u.used, 0)::BIGINT AS used, u.trips, coalesce(u.same_time, 0)::BIGINT AS same_time,
            u.single
        FROM (
            SELECT count(*) AS points, count(*) FILTER (NOT named) AS no_trip,
                count(*) FILTER (named AND NOT timed) AS no_time,
                count(*) FILTER (named AND timed AND NOT placed) AS no_place,
                count(*) FILTER (named AND timed AND placed AND NOT inside) AS outside FROM _sdc_told
        ) p, (
            SELECT sum(points) AS used, count(*) AS trips, sum(same_time) AS same_time,
                count(*) FILTER (points = 1) AS single FROM _sdc_used
        ) u"""


PLANNERS = (*planners(plan_trips_grid, plan_trips_check),)
