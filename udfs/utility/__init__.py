"""Utility of protected records."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.utility import accuracy, events, measures, profile, quality, regression, samples

FAMILIES = (
    Family(
        name="utility",
        stored=("utility.sql",),
        temporary=("utility_tables.sql",),
        planners=(
            *accuracy.PLANNERS,
            *events.PLANNERS,
            *measures.PLANNERS,
            *regression.PLANNERS,
            *samples.PLANNERS,
            *profile.PLANNERS,
            *quality.PLANNERS,
        ),
    ),
)
