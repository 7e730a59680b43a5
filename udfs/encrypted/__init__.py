"""Votes of nearest neighbours on questions that stay encrypted."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.encrypted import prototypes, questions, simulation

FAMILIES = (
    Family(
        name="encrypted",
        temporary=("encrypted_tables.sql",),
        planners=(*prototypes.PLANNERS, *simulation.PLANNERS, *questions.PLANNERS),
    ),
)
