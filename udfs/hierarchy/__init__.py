"""Hierarchies of codes, and the files that hold them."""

from __future__ import annotations

from sdcduck.udfs.hierarchy import levels

FAMILIES = (levels.FAMILY,)
