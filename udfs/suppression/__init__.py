"""Suppression and rounding of linked tables."""

from __future__ import annotations

from sdcduck.udfs.suppression import tables

FAMILIES = (tables.FAMILY,)
