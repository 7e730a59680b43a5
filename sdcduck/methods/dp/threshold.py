"""From which noisy number of units on a group appears, where nobody may know which groups there are.

A table is grouped, of each group the units are counted, noise is added, and what is below a threshold T is left out
(stable partitions: Korolova, Kenthapadi, Mishra and Ntoulas 2009; Balle, Bun and others, in the words of Rogers
2023). Groups of fewer than ``least`` units are left out before, without noise, which saves the draws for all that is
rare.

Theorem. Let one unit be in at most ``groups`` groups, and let all numbers of all groups with their noise cost rho
where the groups are known. With ``groups * P(Z >= T - least) <= delta`` for the noise Z of the number of units, the
release of the groups that appear, with all their numbers, is delta-approximately rho-zCDP (Bun and Steinke 2016,
definition 8.1), and in the same way for epsilon.

Proof. Of neighbours D and D' call a group rare in which fewer than ``least`` units are that both have. Only what
differs can add to it: the unit that is there, or that is another one, is in at most ``groups`` groups. A rare group
without that unit has fewer than ``least`` units and is left out in any case. One with it has at most ``least`` units,
and appears with a chance of P(least + Z >= T) at most. So with a chance of at least 1 - delta no rare group appears,
in D (event E) and in D' (event E') alike: these events are about the noise of rare groups, which is independent of
all other noise. Given E and E' what is released are the groups that have ``least`` units that both have, known groups
with known noise, and leaving out those below T is done with the noisy numbers. Other numbers of a group are drawn
after it appeared, which is the same as before.

Such releases add up however the next one follows from the answers before it: rho to rho, delta to delta, and all
together are (epsilon - log(1 - delta), delta + delta') private where rho has epsilon at delta'. For the release given
all events E has densities that are no more than 1 / (1 - delta) times those of the release itself, and the release
itself is it but for a chance of delta.

OpenDP's make_laplace_threshold and make_gaussian_threshold are not used: in version 0.16 they keep what is equal to
T, and certify the delta of what is above it (`tests/dp/test_threshold.py` counts that). The noise is OpenDP's.
"""

from __future__ import annotations

import math

_FARTHEST = 2**61


def log_tail(scale: float, least: int, *, gaussian: bool) -> float:
    """The logarithm of a bound of the chance that whole noise of this scale is ``least`` or more, for at least 1.

    Exact for Laplace noise. Of Gaussian noise the terms of the sum fall faster than those of the geometric series that
    begins as they do, and the sum of all terms is at least that of its integral (Poisson), and at least the term of 0.

    >>> [round(math.exp(log_tail(2.0, 5, gaussian=gaussian)), 5) for gaussian in (True, False)]
    [0.01173, 0.05109]
    """
    if not gaussian:
        return -least / scale - math.log1p(math.exp(-1 / scale))
    square = 2 * scale * scale
    falls = -math.expm1(-(2 * least + 1) / square)
    return -least * least / square - math.log(falls) - max(0.0, math.log(2 * math.pi * scale * scale) / 2)


def threshold(scale: float, delta: float, groups: int, least: int, *, gaussian: bool, finer: int = 1) -> int:
    """The least noisy number of units with which a group appears.

    Args:
        scale: of the noise of the number of units.
        delta: what all groups of a unit together may have.
        groups: that a unit is in at most.
        least: units without which a group is left out before.
        finer: steps of the noise in one unit, where it is drawn on a finer grid and rounded: half a unit of noise is
            one then, so that more is than of noise drawn in units.

    >>> threshold(1.0, 1e-8, 1, 1, gaussian=True), threshold(1.0, 1e-8, 1, 1, gaussian=True, finer=2**34)
    (7, 8)
    >>> threshold(10.0, 1e-8, 1, 1, gaussian=True), threshold(10.0, 1e-8, 1, 1, gaussian=False)
    (58, 179)
    """
    wanted = math.log(delta) - math.log(groups) - 1e-9

    def is_likelier(units: int) -> bool:
        return log_tail(scale * finer, units * finer - finer // 2, gaussian=gaussian) > wanted

    low, high = 0, 1
    while is_likelier(high) and high < _FARTHEST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_likelier(middle) else (low, middle)
    return least + high


def least_units(scale: float) -> int:
    """Units without which a group is left out before noise: half a scale of it, which the threshold hardly notices.

    >>> least_units(0.4), least_units(39.5)
    (1, 19)
    """
    return max(1, math.floor(scale / 2))
