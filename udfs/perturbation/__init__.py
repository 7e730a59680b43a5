"""Cell keys, p-tables and what they do to tables; numbers that records share."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.perturbation import microaggregation, ptables

FAMILIES = (
    Family(
        name="perturbation",
        stored=("perturbation.sql",),
        temporary=("perturbation_tables.sql",),
        planners=(*ptables.PLANNERS, *microaggregation.PLANNERS),
        scalars=ptables.SCALARS,
    ),
)
