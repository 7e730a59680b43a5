"""Hidden columns, which subqueries carry along for protection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sdcduck.catalog import Policy

CARRIED = "_sdc_h"
"""What they are called, with their place behind it; no analyst's column may be called so."""

FIRST, SECOND = (f"{CARRIED}{place}" for place in (0, 1))


def carried_along(policy: Policy, **changes: Any) -> Policy:
    """A policy for a subquery, in which a column may be another than that of the table."""
    kinds = tuple(
        replace(kind, record_key=f"{CARRIED}{2 * place}", unit=f"{CARRIED}{2 * place + 1}")
        for place, kind in enumerate(policy.kinds)
    )
    return replace(policy, **changes, kinds=kinds, without_null=frozenset(), without_zero=frozenset())
