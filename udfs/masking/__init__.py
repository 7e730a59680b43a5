"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import local_groups, loss, microaggregation, pram

PLANNERS = (*microaggregation.PLANNERS, *loss.PLANNERS)
FAMILIES = (
    Family(name="masking", temporary=("masking_tables.sql",), planners=PLANNERS),
    Family(
        name="k_noise",
        temporary=("k_noise_tables.sql",),
        planners=local_groups.PLANNERS,
        scalars=local_groups.SCALARS,
    ),
    Family(name="pram", temporary=("pram_tables.sql",), planners=pram.PLANNERS),
)
