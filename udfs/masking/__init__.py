"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import loss, microaggregation

PLANNERS = (*microaggregation.PLANNERS, *loss.PLANNERS)
FAMILIES = (Family(name="masking", temporary=("masking_tables.sql",), planners=PLANNERS),)
