"""Differentially private statistics."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.dp import calibration

FAMILIES = (Family(name="dp", temporary=("dp_tables.sql",), scalars=calibration.SCALARS),)
