"""Sums of fractions in SQL that are the same to the last bit whatever the number of threads."""

from __future__ import annotations

_STEPS = 1 << 60


def total(term: str, where: str | None = None) -> str:
    """SQL for the sum of a term of type DOUBLE, NULL without rows; the terms count in whole steps of 2^-60.

    Whole numbers add up to the same in any order, numbers of type DOUBLE do not, and threads take their rows in any.
    A step is less than the last digit of any term from 0.004 on; terms may be as large as 10^20.

    >>> total("x / y", "y > 0")
    'sum((1152921504606846976 * CASE WHEN y > 0 THEN x / y END)::HUGEINT)::DOUBLE / 1152921504606846976'
    """
    some = f"({term})" if where is None else f"CASE WHEN {where} THEN {term} END"  # FILTER is too late for a cast
    return f"sum(({_STEPS} * {some})::HUGEINT)::DOUBLE / {_STEPS}"
