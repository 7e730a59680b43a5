"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import anonymization, loss, microaggregation

PLANNERS = (*microaggregation.PLANNERS, *loss.PLANNERS, *anonymization.PLANNERS)
FAMILIES = (Family(name="masking", temporary=("masking_tables.sql", "anonymize_tables.sql"), planners=PLANNERS),)
