"""The vote of the k nearest on an encrypted question: distances, ranks, votes and class, and no decryption in between.

A comparison is a sign. Rounding a sample to 2N parts of a turn costs 0.003 of a turn, more than many distances differ
by, so that a sign is looked at twice where it must be sharper: first that of 16 times the number, which is right up to
1/32 of a turn and anything beyond; with 1/64 of a turn of that sign added, numbers near 0 are far from it, and others
keep their side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.encrypted.fixed_point import TORUS, Records
from sdcduck.methods.encrypted.tfhe import Rotation, Words, phases, signs

_CLOSER = 16
_AWAY = TORUS // 64
_WITHIN = 0.46
"""Of a turn: how far the ends of a count are from 0, so that neither noise nor the second look goes round."""
_SAFE = 6.0
_WON = TORUS // 8


@dataclass(frozen=True)
class Circuit:
    """What is computed with.

    Attributes:
        key: an evaluation key, transformed.
        threads: the result does not depend on it.
        check: called after some signs with how many these were.
    """

    key: Rotation
    threads: int = 1
    check: Callable[[int], object] | None = None

    def looks(self, margin: float) -> int:
        """How many signs a comparison needs."""
        return 2 if margin < _SAFE * self.key.sizes.rounding else 1

    def compare(self, samples: Words, level: int, margin: float) -> Words:
        """Samples of `level` where a number is positive, else of minus that.

        Args:
            margin: how near to 0 a number may be that must be told from 0, in turns.
        """
        if self.looks(margin) > 1:
            first = signs(samples * np.uint32(_CLOSER), _AWAY, self.key, self.threads, self.check)
            samples = samples + first
        return signs(samples, level, self.key, self.threads, self.check)

    def ranks(self, scores: Words, unit: int) -> Words:
        """Of each sample of a score how many are lower, in units; of equal ones noise decides, for one of the two."""
        n = len(scores)
        one, other = np.triu_indices(n, 1)
        before = self.compare(scores[other] - scores[one], unit // 2, 0.0)
        made = np.zeros_like(scores)
        np.add.at(made, other, before)
        np.subtract.at(made, one, before)
        made[:, -1] += np.uint32((n - 1) * (unit // 2))
        return made


def _unit(largest: float) -> int:
    """An even number of parts of a turn, so that a count up to `largest` lies within half a turn."""
    return int(_WITHIN * TORUS / largest) // 2 * 2


def vote_unit(k: int) -> int:
    """What a vote counts in encrypted votes, in parts of a turn."""
    return _unit(k + 0.5)


def encrypted_scores(records: Records, question: Words) -> Words:
    """Samples of scores: whole multiples of the samples of the question, and the norms in clear."""
    products = records.whole @ question.astype(np.int64)
    made = (-2 * products).astype(np.uint32)
    made[:, -1] += records.norms.astype(np.uint32)
    return made


def encrypted_votes(circuit: Circuit, records: Records, question: Words, k: int) -> Words:
    """A sample for each class of its votes among the k nearest, in units of `vote_unit`."""
    n = len(records.points)
    unit = _unit(max(k, n - k))
    ranks = circuit.ranks(encrypted_scores(records, question), unit)
    near = np.negative(ranks)
    near[:, -1] += np.uint32(unit * k - unit // 2)
    half = vote_unit(k) // 2
    among = circuit.compare(near, half, unit / 2 / TORUS)
    among[:, -1] += np.uint32(half)
    made = np.zeros((records.count, among.shape[1]), np.uint32)
    np.add.at(made, records.classes, among)
    return made


def encrypted_class(circuit: Circuit, votes: Words, k: int) -> Words:
    """A sample for each class that is positive for the one with most votes; of equal ones the first."""
    count = len(votes)
    one, other = np.triu_indices(count, 1)
    difference = votes[one] - votes[other]
    difference[:, -1] += np.uint32(vote_unit(k) // 2)
    unit = _unit(count)
    wins = circuit.compare(difference, unit // 2, vote_unit(k) / 2 / TORUS)
    made = np.zeros_like(votes)
    np.add.at(made, one, wins)
    np.subtract.at(made, other, wins)
    # So many wins as there are others, less a half.
    made[:, -1] -= np.uint32(((count - 1) * (unit // 2) - unit // 2) % TORUS)
    return circuit.compare(made, _WON, unit / 2 / TORUS)


def signs_needed(circuit: Circuit, records: Records, k: int) -> int:
    """How many signs a question needs, up to its class."""
    n, count = len(records.points), records.count
    ranked = n * circuit.looks(_unit(max(k, n - k)) / 2 / TORUS)
    won = count * (count - 1) // 2 * circuit.looks(vote_unit(k) / 2 / TORUS)
    return n * (n - 1) // 2 * circuit.looks(0.0) + ranked + won + count * circuit.looks(_unit(count) / 2 / TORUS)


def decrypted_class(answer: Words, secret: Words) -> int | None:
    """The class of an answer; None if it is not just one, as with another secret."""
    places = np.flatnonzero(phases(answer, secret) > 0)
    return int(places[0]) if len(places) == 1 else None


def decrypted_votes(answer: Words, secret: Words, k: int) -> NDArray[np.int64]:
    """The votes of an answer that holds these."""
    found: NDArray[np.int64] = np.round(phases(answer, secret) / vote_unit(k)).astype(np.int64)
    return found
