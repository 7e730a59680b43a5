"""How far from 0 noise is at most: against the laws, added up one by one, and against what OpenDP draws."""

from __future__ import annotations

import math
from itertools import accumulate, count

import pytest

from sdcduck.methods.dp.spread import spread

SCALES = (0.05, 0.3, 1.0, 2.5, 17.3, 400.0)
LEVELS = (0.5, 0.9, 0.95, 0.999, 0.999999)


def beyond(scale: float, *, gaussian: bool) -> list[float]:
    """The probability of q or more steps on either side, for each q from 1 on, added up from the smallest one."""
    weights = [1.0]
    for k in count(1):
        weights.append(math.exp(-0.5 * (k / scale) ** 2) if gaussian else math.exp(-k / scale))
        if weights[-1] < 1e-30:
            break
    tails = [*accumulate(reversed(weights[1:]))][::-1]
    return [2 * tail / (weights[0] + 2 * tails[0]) for tail in tails]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_it_is_the_smallest_number_of_steps(scale: float, gaussian: bool) -> None:
    tails = beyond(scale, gaussian=gaussian)
    for level in LEVELS:
        steps = spread(scale, level, gaussian=gaussian)
        assert tails[steps] <= (1 - level) * (1 + 1e-9)
        assert steps == 0 or tails[steps - 1] > (1 - level) * (1 - 1e-9)


def test_of_large_normal_noise_it_is_that_of_the_normal_law_within_a_step() -> None:
    """Also where the law is added up up to a scale, and bounded beyond it."""
    for scale in (999.0, 1001.0, 123456.7, 2.0**40):
        assert 0 <= spread(scale, 0.95, gaussian=True) - 1.959963984540054 * scale <= 1 + 1e-9 * scale or scale < 1000
        assert spread(scale, 0.95, gaussian=True) == pytest.approx(1.959963984540054 * scale, abs=1 + 1e-9 * scale)


@pytest.mark.parametrize("gaussian", [False, True])
def test_what_is_drawn_stays_within_it_as_often_as_it_says(gaussian: bool) -> None:
    """100,000 draws of OpenDP, at ten standard errors: no luck can fail it."""
    pytest.importorskip("opendp")
    from sdcduck.methods.dp.noise import noisy

    draws, scale = 100_000, 6.5
    drawn = noisy([0] * draws, scale, gaussian=gaussian)
    tails = beyond(scale, gaussian=gaussian)
    for level in (0.5, 0.95):
        steps = spread(scale, level, gaussian=gaussian)
        expected = 1 - tails[steps]
        within = sum(abs(number) <= steps for number in drawn) / draws
        assert level <= expected
        assert within == pytest.approx(expected, abs=10 * math.sqrt(expected * (1 - expected) / draws))
