"""The attack of `examples/sequence_attack.py`: it works without a limit, and a limit of 0.8 keeps it near guessing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from sdcduck.methods.sequence.attacker import best_guess, right_at_error
from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.sets import Cells, Sets

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sequence_attack", ROOT / "examples" / "sequence_attack.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sequence_attack"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("persons", [60, 1000])
def test_with_the_default_an_analyst_is_hardly_better_than_guessing(example: ModuleType, persons: int) -> None:
    """At most 8 points at any number of questions, on average over eight seeds, with lists of half of the categories."""
    runs = [example.attack(persons, seed, 0.8, 700) for seed in example.SEEDS]
    assert example.worst(runs) <= 0.08
    assert np.mean([run.answered[700] for run in runs]) > 0.05  # and something was answered
    assert all(run.answered[700] < 0.5 for run in runs)


@pytest.mark.parametrize("persons", [60, 1000])
def test_nor_with_short_lists(example: ModuleType, persons: int) -> None:
    """Many small questions bring more persons to the limit: they are the better attack, and gain no more than 8 points."""
    runs = [example.attack(persons, seed, 0.8, 1000, "short") for seed in example.SEEDS]
    assert 0.005 < example.worst(runs) <= 0.08


def test_a_limit_that_answers_every_dashboard_leaves_more(example: ModuleType) -> None:
    """Of charts with filters of their own all 72 are answered at 0.72 to 0.74: the attack gains more than 8 points there."""
    assert example.worst([example.attack(60, seed, 0.74, 700) for seed in example.SEEDS]) > 0.08
    assert example.worst([example.attack(60, seed, 0.72, 1000, "short") for seed in example.SEEDS]) > 0.08


def test_the_same_persons_have_the_same_noise(example: ModuleType) -> None:
    """As they have in the guard: who asks for them again in other words learns nothing, which is what the limit counts.

    With new noise each time the analyst would know them by the mean, at whatever limit.
    """
    chance = np.random.default_rng(3)
    asked = example.boxes(chance, 400, "short")[:, :40]  # few cells in which somebody is: many boxes have the same
    told = example.answers(chance, asked.astype(float), np.ones(40))
    for row in np.unique(asked, axis=0):
        assert len(set(told.values[(asked == row).all(axis=1)])) == 1
    assert len(told.new) == len(np.unique(asked, axis=0)) < 300
    assert len(np.unique(asked[told.new], axis=0)) == len(told.new)


@pytest.mark.parametrize("error", [0.95, 0.8, 0.6])
@pytest.mark.parametrize("chance", [0.05, 0.3, 0.5])
def test_what_an_error_leaves(error: float, chance: float) -> None:
    """Right as often as who sees the property with normal noise that leaves this error, and tries every threshold."""
    draws = np.random.default_rng(5)
    has = draws.random(400_000) < chance
    seen = has + draws.normal(0, np.sqrt(chance * (1 - chance) * error**2 / (1 - error**2)), len(has))
    order = np.argsort(seen)
    wrong_above = np.concatenate([[(~has).sum()], (~has).sum() - np.cumsum(~has[order])])
    wrong_below = np.concatenate([[0], np.cumsum(has[order])])
    assert right_at_error(error, chance) == pytest.approx(1 - (wrong_above + wrong_below).min() / len(has), abs=0.003)


def test_no_attack_by_least_squares_is_better_than_what_an_error_leaves() -> None:
    """Of who asks for sets of 30 persons until one more would bring some person below the limit, and knows the chance."""
    for chance in (0.1, 0.3, 0.5):
        draws, known, asked = np.random.default_rng(6), Knowledge({"": Cells.numbered(np.ones(30))}), []
        for row in draws.random((200, 30)) < 0.3:
            would = known.would({"": Answers.of(Sets.of_rows(row[None].astype(float)), 1.2)})
            if would.least_error >= 0.8:
                known.keep(would)
                asked.append(row.astype(float))
        rows, prior = np.array(asked), chance * (1 - chance)
        left = prior - prior**2 * np.einsum(
            "ij,ij->j", rows, np.linalg.solve(prior * rows @ rows.T + 1.2 * np.eye(len(rows)), rows)
        )
        noise = prior * left / (prior - left)  # of the one number that the answers are for each person
        assert (noise >= prior * 0.8**2 / (1 - 0.8**2) - 1e-9).all()
        assert noise.min() < 1.5 * 0.25 * 0.8**2 / (1 - 0.8**2)


def test_the_law_of_the_noise_tells_no_more_than_its_variance(example: ModuleType) -> None:
    """Who draws from all secrets that are possible, given the whole law of the noise, is right as often as by least squares."""
    by_law, by_least_squares, guessed = [], [], []
    for seed in example.SEEDS:
        draws = np.random.default_rng(seed)
        places, secret = draws.integers(0, 512, 60), draws.random(60) < example.SECRET
        kept, cell_of, units = np.unique(places, return_inverse=True, return_counts=True)
        asked = example.boxes(draws, 1000, "short")[:, kept].astype(float)
        told = example.answers(draws, asked, np.bincount(cell_of, secret, minlength=len(kept)))
        known, had = Knowledge({"": Cells.numbered(units)}), []
        for place in told.new:
            would = known.would({"": Answers.of(Sets.of_rows(asked[place]), example.VARIANCE)})
            if would.least_error >= 0.8:
                known.keep(would)
                had.append(place)
        rows, values = asked[had], told.values[had]
        best = best_guess(rows, values, units, example.VARIANCE, example.SECRET)[cell_of]
        chances = _drawn(draws, rows[:, cell_of], values, secret, example)
        by_least_squares.append(((best > 0.5) == secret).mean())
        by_law.append(((chances > 0.5) == secret).mean())
        guessed.append(max(secret.mean(), 1 - secret.mean()))
    assert np.mean(by_law) - np.mean(guessed) <= 0.08
    assert abs(np.mean(by_law) - np.mean(by_least_squares)) <= 0.03


def _drawn(
    draws: np.random.Generator, rows: NDArray[np.float64], told: NDArray[np.float64], secret: NDArray[np.bool_],
    example: ModuleType,
) -> NDArray[np.float64]:  # fmt: skip
    """The chance of each person by Gibbs sampling. It begins with the truth, which is itself a draw of what is possible."""
    whole = np.arange(-example.LARGEST - 2, example.LARGEST + 3)
    law = np.bincount(
        (example.noise(np.random.default_rng(1), 400_000) + example.LARGEST + 2).astype(int), minlength=len(whole)
    )
    with np.errstate(divide="ignore"):
        log = np.log(law / law.sum())
    has = secret.astype(float)
    rest = np.rint(told - rows @ has).astype(int)
    of, sums, odds = [np.flatnonzero(column) for column in rows.T], np.zeros(len(has)), np.log(1 / example.SECRET - 1)
    for _ in range(200):
        for person, answers in enumerate(of):
            without = rest[answers] + int(has[person])
            no, yes = (log[np.clip(without - one, whole[0], whole[-1]) - whole[0]].sum() for one in (0, 1))
            chance = 1 / (1 + np.exp(np.clip(no - yes + odds, -700, 700)))
            sums[person] += chance
            has[person] = draws.random() < chance
            rest[answers] = without - int(has[person])
    return sums / 200


@pytest.mark.parametrize(("error", "chance"), [(0, 0.5), (1, 0.5), (0.5, 0), (0.5, 1), (float("nan"), 0.5)])
def test_no_error_and_no_chance(error: float, chance: float) -> None:
    with pytest.raises(ValueError, match="must lie above 0 and below 1"):
        right_at_error(error, chance)


@pytest.mark.parametrize(("persons", "questions", "of_the_way"), [(60, 400, 0.7), (1000, 1000, 0.6)])
def test_without_a_limit_the_attack_works(example: ModuleType, persons: int, questions: int, of_the_way: float) -> None:
    """Most of what knowing each cell exactly would add to guessing."""
    runs = [example.attack(persons, seed, None, questions) for seed in example.SEEDS]
    gain = np.mean([run.right[questions] - run.guess for run in runs])
    assert gain > of_the_way * np.mean([run.told_all - run.guess for run in runs])
    assert gain > 0.08


def test_the_noise_has_the_law_that_the_attacker_takes(example: ModuleType) -> None:
    drawn = example.noise(np.random.default_rng(1), 200_000)
    assert set(drawn.tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.var() == pytest.approx(example.VARIANCE, abs=0.01)


def test_the_picture_and_the_table(example: ModuleType) -> None:
    found = {(60, "half", limit): [example.attack(60, seed, limit, 50) for seed in (5, 6)] for limit in (0.8, None)}
    said = example.figures(found, 50)
    assert [line.split("|")[2].strip() for line in said.splitlines()[2:]] == ["0.80", "off"]
    assert "no limit" in example.draw(found).svg
