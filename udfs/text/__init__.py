"""Texts: masking them, and whom they are about all the same."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.text import masks, risk

FAMILIES = (
    Family(
        name="text",
        stored=("text.sql",),
        temporary=("text_tables.sql",),
        planners=(*masks.PLANNERS, *risk.PLANNERS),
    ),
)
