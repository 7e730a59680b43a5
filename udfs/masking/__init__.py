"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import anonymization, loss, microaggregation

PLANNERS = (*microaggregation.PLANNERS, *loss.PLANNERS, *anonymization.PLANNERS)
FAMILIES = (Family(name="masking", temporary=("masking_tables.sql", "anonymize_tables.sql"), planners=PLANNERS),)
from sdcduck.udfs.masking import local_suppression, microaggregation, recoding

FAMILIES = (
    Family(name="masking", temporary=("masking_tables.sql",), planners=microaggregation.PLANNERS),
    Family(name="masking", temporary=("local_suppression_tables.sql",), planners=local_suppression.PLANNERS),
    Family(name="masking", temporary=("recoding_tables.sql",), planners=recoding.PLANNERS),
)
