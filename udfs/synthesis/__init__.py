"""Synthetic tables and records, and records that change place."""

from __future__ import annotations

from sdcduck.udfs.synthesis import private_synthesis, record_swapping, records, tables

FAMILIES = (tables.FAMILY, record_swapping.FAMILY, private_synthesis.FAMILY, records.FAMILY)
