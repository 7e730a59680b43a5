"""What a released model adds to what can be guessed of a person anyway: three attacks, repeated.

Slokom, de Wolf & Larson (2022). Somebody owns records with all attributes and guesses one of others: by the shares of
its values alone, by the other attributes (a population model), or by these and what the model says of the true record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.models.forests import Features, votes
from sdcduck.methods.models.scores import Codes, Guessed, by_shares, guessed

ATTACKS = ("random", "baseline", "black_box")


@dataclass(frozen=True)
class Pool:
    """Records of the attacker first, then those of the victims.

    Attributes:
        known: what the attacker knows.
        answer: columns with what the model says of the true record; None: there is no model.
        sensitive: codes of what is guessed.
        attacker: how many are his; None: a half that is drawn anew each time.
    """

    known: Features
    answer: Features | None
    sensitive: Codes
    attacker: int | None

    def halves(self, chance: np.random.Generator) -> tuple[Codes, Codes]:
        """His, and theirs."""
        everybody = np.arange(len(self.sensitive))
        if self.attacker is not None:
            return everybody[: self.attacker], everybody[self.attacker :]
        drawn = chance.permutation(everybody)
        half = len(drawn) // 2
        return np.sort(drawn[:half]), np.sort(drawn[half:])

    def of(self, part: Codes) -> Pool:
        """These records alone, to be halved each time.

        Args:
            part: their places, in order.
        """
        told = None if self.answer is None else self.answer[part]
        return Pool(self.known[part], told, self.sensitive[part], None)


def inferred(
    pool: Pool, repeats: int, trees: int, seed: int, threads: int, check: Callable[[int, int], None]
) -> list[tuple[Guessed, ...]]:
    """For each repetition, what each attack reaches; two without a model.

    >>> z, s = np.tile([[0.0], [1.0]], (100, 1)).astype(np.float32), np.tile([0, 1], 100)
    >>> [round(one.accuracy, 2) for one in inferred(Pool(z, None, s, 100), 1, 5, 0, 1, lambda done, total: None)[0]]
    [0.5, 1.0]
    """
    found = []
    tables = [pool.known] if pool.answer is None else [pool.known, np.hstack([pool.known, pool.answer])]
    for repeat, start in enumerate(np.random.SeedSequence(seed).spawn(repeats)):
        chance = np.random.default_rng(start)
        own, victims = pool.halves(chance)
        truth = pool.sensitive[victims]
        told = [by_shares(pool.sensitive[own], truth)]
        for place, table in enumerate(tables):
            done = len(tables) * repeat + place

            def step(done: int = done) -> None:
                check(done, len(tables) * repeats)

            one = votes(
                table[own], pool.sensitive[own], table[victims], trees, int(chance.integers(2**31)), threads, step
            )
            told.append(guessed(truth, np.argmax(one, axis=1)))
        found.append(tuple(told))
    return found


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The deviation of one is NaN.

    >>> mean_and_deviation([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    given = np.array(values)
    return float(given.mean()), float(given.std(ddof=1)) if len(given) > 1 else math.nan


def gain(more: Sequence[float], less: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """The mean of paired differences and its interval, by Student's t over the repetitions.

    >>> [round(value, 3) for value in gain([0.6, 0.7, 0.65], [0.5, 0.5, 0.5], 0.95)]
    [0.15, 0.026, 0.274]
    """
    from scipy.special import stdtrit

    differences = np.array(more) - np.array(less)
    mean, deviation = mean_and_deviation(differences.tolist())
    if math.isnan(deviation):
        return mean, math.nan, math.nan
    half = float(stdtrit(len(differences) - 1, (1 + confidence) / 2)) * deviation / math.sqrt(len(differences))
    return mean, mean - half, mean + half
