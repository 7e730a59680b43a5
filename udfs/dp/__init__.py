"""Differentially private statistics."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.dp import allocation, calibration, release

FAMILIES = (
    Family(
        name="dp",
        temporary=("dp_tables.sql",),
        planners=(*allocation.PLANNERS, *release.PLANNERS),
        scalars=calibration.SCALARS,
    ),
)
