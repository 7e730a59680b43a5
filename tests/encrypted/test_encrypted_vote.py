"""The encrypted vote: encrypted equals clear. Mostly with few bits, which hide nothing and make the same circuit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris

from sdcduck.methods.encrypted.encrypted_vote import (
    Circuit,
    decrypted_class,
    decrypted_votes,
    encrypted_class,
    encrypted_scores,
    encrypted_votes,
)
from sdcduck.methods.encrypted.fixed_point import COMPARISON_NOISE, ROOM, Records, simulate, smallest_scale
from sdcduck.methods.encrypted.prototypes import prototypes
from sdcduck.methods.encrypted.tfhe import (
    PAPER,
    TOY,
    Parameters,
    Words,
    encrypt,
    evaluation_key,
    phases,
    rotation,
    secret_bits,
    signs,
    stream,
)


def keys(sizes: Parameters, threads: int = 2) -> tuple[Words, Circuit]:
    draw = stream(1)
    secret = secret_bits(draw, sizes)
    return secret, Circuit(rotation(*evaluation_key(secret, draw, sizes), sizes), threads)


@pytest.fixture(scope="module")
def small() -> tuple[Words, Circuit]:
    return keys(TOY)


def iris(n: int) -> tuple[Records, NDArray[np.float64]]:
    """Reference rows of the rows that are not asked for."""
    x, y = load_iris(return_X_y=True)
    x = (x - x.min(axis=0)) / np.ptp(x, axis=0)
    test = np.arange(len(x)) % 5 == 0
    found = prototypes(x[~test], y[~test], 3, n, 3, seed=0)
    return Records(found.centres, found.classes, 3, smallest_scale(found.centres, ROOM), 1000), x[test]


def same(secret: Words, circuit: Circuit, sizes: Parameters, records: Records, asked: NDArray[np.float64], k: int) -> int:  # fmt: skip
    """Asks all questions; how many of them were answered otherwise than in clear though noise could not decide."""
    clear, _ = simulate(records, asked, k)
    draw, wrong = stream(2), 0
    for place, numbers in enumerate(records.encoded(asked)):
        question = encrypt(numbers, secret, draw, sizes)
        votes = encrypted_votes(circuit, records, question, k)
        told = decrypted_votes(votes, secret, k)
        chosen = decrypted_class(encrypted_class(circuit, votes, k), secret)
        if clear.gap[place] > 5 * COMPARISON_NOISE:
            wrong += told.tolist() != clear.votes[place].tolist() or chosen != clear.classes[place]
        assert told.sum() == k
    assert (clear.gap > 5 * COMPARISON_NOISE).mean() > 0.5
    return wrong


def test_samples_are_decrypted_and_add_up(small: tuple[Words, Circuit]) -> None:
    secret, _ = small
    numbers = np.array([0, 2**28, -(2**28), 2**31 - 2**10])
    samples = encrypt(numbers, secret, stream(3), TOY)
    assert abs(phases(samples, secret) - numbers).max() < 50
    assert abs(phases(samples[1:2] + samples[2:3] * np.uint32(3), secret)[0] + 2**29) < 100
    assert abs(phases(samples, 1 - secret) - numbers).min() > 2**10  # another secret tells nothing


def test_signs_have_the_noise_that_is_computed_and_no_thread_changes_them(small: tuple[Words, Circuit]) -> None:
    secret, circuit = small
    numbers = np.random.default_rng(1).uniform(0.06, 0.44, 60) * np.where(np.arange(60) % 2, 1, -1)
    samples = encrypt((numbers * 2**32).astype(np.int64), secret, stream(4), TOY)
    made = signs(samples, 2**28, circuit.key, 1)
    noise = phases(made, secret) / 2**32 - np.sign(numbers) / 16
    assert noise.std() == pytest.approx(TOY.bootstrapped, rel=0.6)
    assert (made == signs(samples, 2**28, circuit.key, 3)).all()


def test_scores_of_the_worked_example(small: tuple[Words, Circuit]) -> None:
    secret, circuit = small
    records = Records(np.array([[0.1], [0.2], [0.6], [0.9]]), np.array([0, 0, 1, 1]), 2, 4.0, 1000)
    question = encrypt(records.encoded(np.array([[0.3]]))[0], secret, stream(5), TOY)
    scores = phases(encrypted_scores(records, question), secret) / 2**32
    assert scores == pytest.approx([-0.003125, -0.005, 0, 0.016875], abs=2e-6)
    votes = encrypted_votes(circuit, records, question, 3)
    assert decrypted_votes(votes, secret, 3).tolist() == [2, 1]
    assert decrypted_class(encrypted_class(circuit, votes, 3), secret) == 0
    assert decrypted_class(votes, secret) is None or decrypted_class(votes, 1 - secret) is None


@pytest.mark.parametrize(("n", "k"), [(10, 3), (6, 2)])
def test_encrypted_equals_clear_on_20_questions(small: tuple[Words, Circuit], n: int, k: int) -> None:
    records, asked = iris(n)
    assert same(*small, TOY, records, asked[:20], k) == 0


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 10])
def test_encrypted_equals_clear_for_one_and_for_all_neighbours(small: tuple[Words, Circuit], k: int) -> None:
    records, asked = iris(10)
    assert same(*small, TOY, records, asked[:20], k) == 0


@pytest.mark.long
def test_encrypted_equals_clear_on_20_questions_with_the_sizes_of_the_paper() -> None:
    records, asked = iris(10)
    assert same(*keys(PAPER), PAPER, records, asked[:20], 3) == 0
