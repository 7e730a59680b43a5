"""What a trained model tells about the records that it was fitted to."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.models import inference, membership, structure

FAMILIES = (
    Family(
        name="models",
        temporary=("models_tables.sql",),
        planners=(*membership.PLANNERS, *inference.PLANNERS, *structure.PLANNERS),
    ),
)
