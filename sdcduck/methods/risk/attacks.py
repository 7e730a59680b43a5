"""Attacks on synthetic data, measured against people whom the generator never saw, and against guessing.

An attacker who has the synthetic records links two halves of a person, or infers an attribute (`predicates` has the
third attack, singling out). He would succeed at times without any leak, because the data tell what people are like. So
the same attack is run on a control group: what it gains on the originals over the control is the privacy risk. And
whoever only guesses is right at times too: an attack that does no better has failed, and says nothing.

Giomi, Boenisch, Wehmeyer and Tasnadi (2023), A unified framework for quantifying privacy risk in synthetic data; Wilson
(1927); Zou and Donner (2008) for the interval of the risk; Francis (2022) for the modal guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.risk.nearest import nearest

Matrix = NDArray[np.float64]
Check = Callable[[int, int], object]


@dataclass(frozen=True)
class Rate:
    """A success rate with its confidence interval."""

    value: float
    low: float
    high: float


def wilson(value: float, attacks: float, confidence: float) -> Rate:
    """The interval of Wilson for a share of so many attacks that do not depend on each other.

    >>> wilson(0.5, 10, 0.95)
    Rate(value=0.5, low=0.23659309051256405, high=0.763406909487436)
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (value + z * z / (2 * attacks)) / (1 + z * z / attacks)
    half = z / (1 + z * z / attacks) * math.sqrt(value * (1 - value) / attacks + z * z / (4 * attacks**2))
    return Rate(value, max(0.0, min(value, middle - half)), min(1.0, max(value, middle + half)))


def privacy_risk(attack: Rate, control: Rate) -> Rate | None:
    """What an attack gains on the originals, of all that there was to gain: (attack - control) / (1 - control).

    Its interval is composed of those of the two rates. None where the attack always succeeds on the control.
    """
    left = 1 - control.value
    if left <= 0:
        return None
    value = (attack.value - control.value) / left
    by_control = (1 - attack.value) / left**2
    down = math.hypot((attack.value - attack.low) / left, (control.high - control.value) * by_control)
    up = math.hypot((attack.high - attack.value) / left, (control.value - control.low) * by_control)
    return Rate(value, value - down, min(1.0, value + up))


# --- linkability -----------------------------------------------------------------------------------------------------


def linked(
    targets: Matrix, synthetic: Matrix, scales: Matrix, first: list[int], second: list[int], neighbours: int,
    generator: np.random.Generator, check: Check,
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether some synthetic record is among the nearest to a target in the first columns, and in the second ones.

    Args:
        targets, synthetic: n x p and m x p, as `nearest` takes them.
        scales: by column.
        first, second: places of the columns that the attacker has of the two halves.
        neighbours: how many synthetic records count as near.
        generator: decides between records that are equally near.
    """
    return _meet(
        _neighbours(targets[:, first], synthetic[:, first], scales[first], neighbours, generator, check),
        _neighbours(targets[:, second], synthetic[:, second], scales[second], neighbours, generator, check),
    )


def linked_to_modal(
    targets: Matrix, synthetic: Matrix, scales: Matrix, first: list[int], second: list[int], neighbours: int,
    generator: np.random.Generator, check: Check,
) -> NDArray[np.bool_]:  # fmt: skip
    """As `linked`, if the second half of everybody is taken to be the most frequent one."""
    most_frequent = np.array([[modal(synthetic[:, place]) for place in second]])
    near = _neighbours(targets[:, first], synthetic[:, first], scales[first], neighbours, generator, check)
    same = _neighbours(most_frequent, synthetic[:, second], scales[second], neighbours, generator, check)
    return _meet(near, np.broadcast_to(same, near.shape))


def linked_by_chance(records: int, neighbours: int) -> float:
    """How often two random sets of so many records have one in common.

    >>> round(linked_by_chance(10, 2), 6)  # 1 - 28/45
    0.377778
    """
    if 2 * neighbours > records:
        return 1.0
    n, k = records, neighbours
    return 1 - math.exp(2 * math.lgamma(n - k + 1) - math.lgamma(n - 2 * k + 1) - math.lgamma(n + 1))


def _neighbours(
    targets: Matrix, synthetic: Matrix, scales: Matrix, neighbours: int, generator: np.random.Generator, check: Check
) -> NDArray[np.int64]:
    """The nearest synthetic records; of equally near ones those that chance has put first."""
    order = generator.permutation(len(synthetic))
    found = nearest(targets, synthetic[order], scales, k=min(neighbours, len(synthetic)), rows=True, check=check).rows
    assert found is not None
    return order[found]


def _meet(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether two rows of numbers, each without repetition, have one in common."""
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)
    met: NDArray[np.bool_] = (both[:, 1:] == both[:, :-1]).any(axis=1)
    return met


# --- inference -------------------------------------------------------------------------------------------------------


def guesses(
    targets: Matrix, synthetic: Matrix, scales: Matrix, secret: Matrix, generator: np.random.Generator, check: Check
) -> Matrix:
    """The secret of the synthetic record that is nearest to each target.

    Args:
        targets, synthetic: the known columns, as `nearest` takes them.
        secret: of the synthetic records; NaN for NULL.
        generator: decides between records that are equally near.
    """
    return secret[_neighbours(targets, synthetic, scales, 1, generator, check)[:, 0]]


def right(guess: Matrix, truth: Matrix, tolerance: float) -> NDArray[np.bool_]:
    """Whether guesses are off by at most this share of the true value; NULL (NaN) is right for NULL."""
    low, high = _accepted(truth, tolerance)
    return (low <= guess) & (guess <= high) | np.isnan(guess) & np.isnan(truth)


def _accepted(truth: Matrix, tolerance: float) -> tuple[Matrix, Matrix]:
    allowed = tolerance * np.abs(truth)
    return truth - allowed, truth + allowed


def right_by_chance(truth: Matrix, secret: Matrix, tolerance: float) -> Matrix:
    """How often the secret of a random synthetic record is right for each target."""
    known = np.sort(secret[~np.isnan(secret)])
    low, high = _accepted(truth, tolerance)
    met = np.searchsorted(known, high, "right") - np.searchsorted(known, low, "left")
    found: Matrix = np.where(np.isnan(truth), len(secret) - len(known), met) / len(secret)
    return found


def modal(secret: Matrix, tolerance: float = 0.0) -> float:
    """The one guess that is right for most synthetic records; of several the least, and a value before NULL.

    >>> modal(np.array([1.0, 2.0, 2.0, np.nan])), modal(np.array([95.0, 100.0, 104.0, 7.0, 7.0]), 0.05)
    (2.0, 98.8)
    """
    known = secret[~np.isnan(secret)]
    if not len(known):
        return math.nan
    low, high = (np.sort(ends) for ends in _accepted(known, tolerance))
    # The best guess can be moved up to the lower end of what a value accepts.
    met = np.searchsorted(low, low, "right") - np.searchsorted(high, low, "left")
    best = int(np.argmax(met))
    return float(low[best]) if met[best] >= len(secret) - len(known) else math.nan
