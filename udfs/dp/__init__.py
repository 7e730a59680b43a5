"""Differentially private statistics."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.dp import allocation, calibration, composition, mean_region, means, pca, regression, release

FAMILIES = (
    Family(
        name="dp",
        temporary=("dp_tables.sql",),
        planners=(*allocation.PLANNERS, *release.PLANNERS, *composition.PLANNERS, *mean_region.PLANNERS),
        scalars=calibration.SCALARS,
    ),
    Family(name="dp_means", temporary=("dp_means_tables.sql",), planners=means.PLANNERS),
    Family(name="dp_regression", temporary=("dp_regression_tables.sql",), planners=regression.PLANNERS),
    Family(name="dp_pca", temporary=("dp_pca_tables.sql",), planners=pca.PLANNERS),
)
