"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import estimates, integral, loss, microaggregation, raking, treatment

FAMILIES = (
    Family(
        name="masking",
        temporary=("masking_tables.sql",),
        planners=(*microaggregation.PLANNERS, *loss.PLANNERS),
    ),
    Family(
        name="estimates",
        temporary=("estimates_tables.sql",),
        planners=(*estimates.PLANNERS, *raking.PLANNERS, *treatment.PLANNERS),
    ),
    Family(name="integral", temporary=("integral_tables.sql",), planners=integral.PLANNERS),
)
