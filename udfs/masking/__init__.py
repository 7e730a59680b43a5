"""Masking: records whose values are changed before they are released."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.masking import (
    added_noise,
    anonymization,
    estimates,
    integral,
    local_groups,
    local_suppression,
    loss,
    microaggregation,
    plan,
    pram,
    raking,
    recoding,
    record_checks,
    rest_groups,
    swaps,
    treatment,
)

FAMILIES = (
    Family(
        name="masking",
        temporary=("masking_tables.sql",),
        planners=(*microaggregation.PLANNERS, *loss.PLANNERS, *plan.PLANNERS),
    ),
    Family(name="anonymize", temporary=("anonymize_tables.sql",), planners=anonymization.PLANNERS),
    Family(name="local_suppression", temporary=("local_suppression_tables.sql",), planners=local_suppression.PLANNERS),
    Family(name="recoding", temporary=("recoding_tables.sql",), planners=(*recoding.PLANNERS, *rest_groups.PLANNERS)),
    Family(
        name="k_noise",
        temporary=("k_noise_tables.sql",),
        planners=local_groups.PLANNERS,
        scalars=local_groups.SCALARS,
    ),
    Family(name="pram", temporary=("pram_tables.sql",), planners=pram.PLANNERS),
    Family(name="rank_swap", temporary=("rank_swap_tables.sql",), planners=swaps.PLANNERS),
    Family(name="add_noise", temporary=("add_noise_tables.sql",), planners=added_noise.PLANNERS),
    Family(
        name="estimates",
        temporary=("estimates_tables.sql",),
        planners=(*estimates.PLANNERS, *raking.PLANNERS, *treatment.PLANNERS),
    ),
    Family(name="integral", temporary=("integral_tables.sql",), planners=integral.PLANNERS),
    Family(name="record_rules", temporary=("record_rules_tables.sql",), planners=record_checks.PLANNERS),
)
