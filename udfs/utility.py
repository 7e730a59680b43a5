"""Utility of protected records: the family, put together from its measures."""

from __future__ import annotations

from sdcduck.udfs import utility_accuracy

from sdcduck.registry import Family

FAMILY = Family(
    name="utility",
    temporary=("utility_tables.sql",),
    planners=(*utility_accuracy.PLANNERS,),
)
