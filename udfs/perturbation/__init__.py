"""Cell keys, p-tables and what they do to tables."""

from __future__ import annotations

from sdcduck.udfs.perturbation import ptables

FAMILIES = (ptables.FAMILY,)
