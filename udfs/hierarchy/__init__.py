"""Hierarchies of codes, and the files that hold them."""

from __future__ import annotations

from dataclasses import replace

from sdcduck.udfs.hierarchy import levels, records

FAMILIES = (replace(levels.FAMILY, planners=(*levels.FAMILY.planners, *records.PLANNERS)),)
