"""Widening intervals: afterwards every primary cell can move as far as asked, and what cannot is named."""

from __future__ import annotations

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.intervals import widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix


def two_way(a: int, b: int) -> DummyMatrix:
    """Inner cells, row totals, column totals and the total of an a x b table."""
    rows, columns = np.indices((a, b)).reshape(2, -1)
    inner = rows * b + columns
    cells = np.concatenate([inner, a * b + rows, a * b + a + columns, np.full(a * b, a * b + a + b)])
    return DummyMatrix.from_pairs(np.tile(inner, 4), cells, (a * b, a * b + a + b + 1))


@settings(max_examples=times(12, 40), deadline=None)
@given(st.integers(3, 5), st.integers(3, 5), st.integers(0, 10_000), st.integers(1, 5))
def test_afterwards_every_interval_is_wide_enough(a: int, b: int, seed: int, width: int) -> None:
    x = two_way(a, b)
    y = np.random.default_rng(seed).poisson(7, a * b).astype(float)
    z = x.totals(y).astype(float)
    primary = (np.arange(x.columns) < a * b) & (z > 0) & (z <= 4)
    wanted = np.where(primary, float(width), 0.0)
    found = widen_intervals(
        x, y, primary.copy(), np.flatnonzero(primary), wanted, wanted, cost=z + 1, ineligible=z == 0
    )
    assert not (primary & ~found.suppressed).any()
    assert not (found.suppressed & (z == 0)).any()
    result = audit(x, z, found.suppressed, upl=wanted, lpl=np.minimum(wanted, z))
    narrow = result.cells[~result.protected]
    assert set(narrow[primary[narrow]]) == set(found.impossible)


def test_what_cannot_move_is_named() -> None:
    x = two_way(1, 2)
    y = np.array([3.0, 0.0])
    primary = np.array([True, False, False, False, False, False])
    wanted = np.where(primary, 1.0, 0.0)
    everything_else = ~primary
    found = widen_intervals(
        x, y, primary.copy(), np.array([0]), wanted, wanted, cost=np.ones(6), ineligible=everything_else
    )
    assert found.impossible.tolist() == [0]


@pytest.mark.parametrize("name", ["y", "upl", "cost"])
def test_bad_input(name: str) -> None:
    x = two_way(2, 2)
    arguments = {"y": np.ones(4), "upl": np.ones(9), "cost": np.ones(9)}
    arguments[name] = arguments[name] * np.nan
    with pytest.raises(ValueError, match="must be finite"):
        widen_intervals(
            x, arguments["y"], np.zeros(9, bool), np.array([0]), arguments["upl"], np.ones(9), cost=arguments["cost"],
            ineligible=np.zeros(9, bool),
        )  # fmt: skip
