"""Cell keys, p-tables and what they do to tables."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.perturbation import ptables, samples

FAMILIES = (
    Family(
        name="perturbation",
        stored=("perturbation.sql",),
        temporary=("perturbation_tables.sql",),
        planners=(*ptables.PLANNERS, *samples.PLANNERS),
        scalars=ptables.SCALARS,
    ),
)
