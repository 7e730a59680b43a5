"""Utility of protected records: the family, put together from its measures."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs import (
    utility_accuracy,
    utility_measures,
    utility_profile,
    utility_quality,
    utility_regression,
    utility_samples,
)

FAMILY = Family(
    name="utility",
    stored=("utility.sql",),
    temporary=("utility_tables.sql",),
    planners=(
        *utility_accuracy.PLANNERS,
        *utility_measures.PLANNERS,
        *utility_regression.PLANNERS,
        *utility_samples.PLANNERS,
        *utility_profile.PLANNERS,
        *utility_quality.PLANNERS,
    ),
)
