"""The sequence of answers: how near what somebody knows is to what nobody should know."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.sequence import answers, check, cubes, plans, policy_distance, policy_tracker, question_budget

FAMILIES = (
    Family(
        name="sequence",
        stored=("sequence.sql",),
        temporary=(
            "sequence_tables.sql",
            "cubes_tables.sql",
            "plans_tables.sql",
            "sequence_check_tables.sql",
            "sequence_answers_tables.sql",
            "sequence_budget_tables.sql",
        ),
        planners=(
            *policy_distance.PLANNERS,
            *policy_tracker.PLANNERS,
            *cubes.PLANNERS,
            *plans.PLANNERS,
            *check.PLANNERS,
            *answers.PLANNERS,
            *question_budget.PLANNERS,
        ),
    ),
)
