"""The audit of `private_audit.py`, a hundredth of it; all of it is ``make dp-audit``."""

from __future__ import annotations

import numpy as np
import pytest
from effort import times
from private_audit import CASES, RUNS, WRONG, Case, proved_epsilon

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_more_is_proved_than_is_charged(case: Case) -> None:
    found, control = case.proved(times(RUNS // 100, RUNS))
    assert found <= case.epsilon < control


def test_the_audit_is_as_sharp_as_it_says() -> None:
    # Laplace noise of scale 1: an epsilon of 1, and half of it is proved by 20,000 draws.
    generator = np.random.default_rng(1)
    one, other = (generator.laplace(size=(20_000, 1)) + shift for shift in (0, 1))
    assert 0.75 < proved_epsilon(one, other, 0.0) <= 1
    assert 0.5 < proved_epsilon(one, other, 0.1) < proved_epsilon(one, other, 0.0)
    # What is the same proves nothing, however often it is tried.
    assert WRONG < 1e-5
    for _ in range(20):
        one, other = (generator.normal(size=(500, 3)) for _ in range(2))
        assert proved_epsilon(one, other, 0.0) == 0
