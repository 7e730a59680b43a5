"""From which noisy number of units on a group appears that nobody may know."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from sdcduck.methods.dp.noise import steps_of_one
from sdcduck.methods.dp.threshold import least_units, log_tail, threshold


def exact_tail(scale: float, least: int, *, gaussian: bool) -> float:
    """The sum of the chances, as the laws have them."""
    if not gaussian:
        a = math.exp(-1 / scale)
        return sum(a**z for z in range(least, 5000)) * (1 - a) / (1 + a)
    terms = [math.exp(-z * z / (2 * scale * scale)) for z in range(5000)]
    return sum(terms[least:]) / (terms[0] + 2 * sum(terms[1:]))


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.5, 40.0])
def test_a_tail_is_never_less_than_it_is(scale: float, gaussian: bool) -> None:
    for least in (1, 2, 5, int(6 * scale) + 1):
        exact = exact_tail(scale, least, gaussian=gaussian)
        bound = math.exp(log_tail(scale, least, gaussian=gaussian))
        assert bound >= exact * (1 - 1e-12)
        if gaussian and scale >= 1 and least > 3 * scale:
            assert bound <= exact * 1.2  # and hardly more, where thresholds are


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("scale", "groups", "least"), [(1.0, 1, 1), (40.0, 1, 20), (12.0, 5, 6)])
def test_groups_of_one_unit_appear_as_rarely_as_was_said(scale: float, groups: int, least: int, gaussian: bool) -> None:
    """And one less would be too often: the threshold is no larger than it must be."""
    for delta in (1e-3, 1e-8):
        found = threshold(scale, delta, groups, least, gaussian=gaussian)
        assert groups * exact_tail(scale, found - least, gaussian=gaussian) <= delta
        lower = groups * exact_tail(scale, found - least - 1, gaussian=gaussian)
        assert lower > delta / (1.2 if gaussian else 1 + 1e-6)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 12.0, 1000.0])
def test_noise_that_is_rounded_needs_half_a_unit_more(scale: float) -> None:
    """Drawn on the grid of normal noise, half a unit is one: the threshold of noise in units would be passed too often."""
    finer = steps_of_one(scale)
    for delta in (1e-3, 1e-5, 1e-8, 1e-12):
        found = threshold(scale, delta, 1, 1, gaussian=True, finer=finer) - 1
        assert delta >= norm.sf((found - 0.5) / scale)
        assert norm.sf((found - 1.5) / scale) > delta / 1.3
    assert norm.sf((threshold(1.0, 1e-8, 1, 1, gaussian=True) - 1.5) / 1.0) > 1.8e-8


def test_half_a_scale_of_units_is_left_out_before() -> None:
    assert [least_units(scale) for scale in (0.1, 1.0, 3.9, 100.0)] == [1, 1, 1, 50]


def test_thresholds_of_opendp_are_not_used() -> None:
    """It keeps what is equal to the threshold, and certifies what is above it: 0.0022 for what happens 0.016 times.

    Where this fails, OpenDP has changed, and `sdcduck.methods.dp.threshold` can be looked at again.
    """
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    of_one = dp.map_domain(dp.atom_domain(T=dp.i64), dp.atom_domain(T=dp.i64))
    metric = dp.l01inf_distance(dp.absolute_distance(T=dp.i64))
    kept = dp.m.make_laplace_threshold(of_one, metric, 0.5, 3)
    certified = kept.map((1, 1, 1))[1]
    appeared = len(kept(dict.fromkeys(range(20_000), 1)))
    assert appeared > 200 > 3 * 20_000 * certified  # 323 are expected, where 44 are certified
    assert threshold(0.5, 1.001 * certified, 1, 1, gaussian=False) == 4
