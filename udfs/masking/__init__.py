"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import microaggregation

FAMILIES = (Family(name="masking", temporary=("masking_tables.sql",), planners=microaggregation.PLANNERS),)
