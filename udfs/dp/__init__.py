"""Differentially private statistics."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.dp import allocation, calibration, composition, mean_region, release

FAMILIES = (
    Family(
        name="dp",
        temporary=("dp_tables.sql",),
        planners=(*allocation.PLANNERS, *release.PLANNERS, *composition.PLANNERS, *mean_region.PLANNERS),
        scalars=calibration.SCALARS,
    ),
)
