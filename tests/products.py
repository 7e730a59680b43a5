"""Products of forms and questions: all pairs in `make test-long`, in each run so many that each of either is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def each_once(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Parameters for all pairs of two lists.

    Each run has as many pairs as the longer list has values: each of them once, with the others in turn.
    """
    turn = min(len(one), len(other))
    return [
        pytest.param(a, b, marks=() if i % turn == j % turn else pytest.mark.long)
        for i, a in enumerate(one)
        for j, b in enumerate(other)
    ]
