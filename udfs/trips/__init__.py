"""Trips: points as cells of a grid, what is published of them, synthetic ones, and what these give away."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.trips import flows, grid, measures, synthetic

FAMILIES = (
    Family(
        name="trips",
        temporary=("trips_tables.sql",),
        planners=(*grid.PLANNERS, *flows.PLANNERS, *synthetic.PLANNERS, *measures.PLANNERS),
    ),
)
