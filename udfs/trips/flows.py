"""What is published of trips: planners of ``sdc_trips_ends`` and ``sdc_trips_flows``."""

from __future__ import annotations

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.udfs.arguments import whole
from sdcduck.udfs.trips.columns import Cells, time_column

_HOURS = 24


def _ends(
    session: Session, text: str | None, trip: str | None, seq: str | None, cell: str | None, t: str | None,
    unit: str | None, hours: int | None,
) -> str:  # fmt: skip
    """SQL of a row for each trip."""
    known = Cells.read(session, text, trip, seq, cell)
    time = time_column(known.relation, t, hours=True)
    who = known.trip if unit is None else known.relation.column(unit, "unit")
    width = whole(hours, "hours", least=1, most=_HOURS, why="so many make one row")
    first = f"row({known.by_place})"
    return f"""
        SELECT {known.trip} AS trip, min({who}) AS unit, arg_min({known.cell}, {first})::BIGINT AS origin,
            arg_max({known.cell}, {first})::BIGINT AS destination,
            date_part('hour', min({time})) // {width} * {width} AS hour, count(*) AS cells
        FROM {known.rows} GROUP BY {known.trip}"""


def plan_trips_ends(
    session: Session, text: str | None, trip: str | None, seq: str | None, cell: str | None, t: str | None,
    unit: str | None, hours: int | None,
) -> str:  # fmt: skip
    """``sdc_trips_ends``: where each trip begins and ends, and when."""
    return _ends(session, text, trip, seq, cell, t, unit, hours)


def plan_trips_flows(
    session: Session, text: str | None, min_units: int | None, trip: str | None, seq: str | None, cell: str | None,
    t: str | None, unit: str | None, hours: int | None,
) -> str:  # fmt: skip
    """``sdc_trips_flows``: how many trips went from where to where, in which hour."""
    least = whole(min_units, "min_units", least=1)
    ends = _ends(session, text, trip, seq, cell, t, unit, hours)
    return f"""
        SELECT origin, destination, hour, count(*) AS trips, count(DISTINCT unit) AS units FROM ({ends})
        GROUP BY origin, destination, hour HAVING count(DISTINCT unit) >= {least}
        ORDER BY origin, destination, hour"""


PLANNERS = (*planners(plan_trips_ends, plan_trips_flows),)
