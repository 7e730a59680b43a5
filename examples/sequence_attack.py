"""Counts with noise, asked again and again with other lists of categories: who is found out, and what a limit changes.

Persons stand in the 8 x 8 x 8 cells of three dimensions, and some have a secret. An analyst asks how many of those in a
box of cells have it (`WHERE a IN (..) AND b IN (..) AND c IN (..)`). Each count has noise, the same for the same
persons, however they are asked for. He knows who is in which cell, how common the secret is and the law of the noise,
and makes the best linear guess of each person from all answers that he had. `precision` refuses an answer if a group of
fewer than 3 persons would then be known better than `least_error`.

python sequence_attack.py [questions] [picture.svg] [seeds]        eight seeds and 1,000 questions: some minutes
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.sequence.attacker import best_guess
from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.sets import Cells, Sets
from sdcduck.pictures.svg import COLOURS, Panel, Picture, Scale, picture

LEVELS, DIMENSIONS = 8, 3
SECRET = 0.3
"""The chance that a person has the secret."""
VARIANCE, LARGEST = 1.2, 2
"""Of the noise: it is a whole number from -2 to 2."""
SEEDS = (5, 6, 7, 8, 9, 10, 11, 12)
LIMITS = (0.9, 0.8, 0.7, 0.6, 0.5, None)
"""Values of `least_error`; None is no limit."""
PERSONS = (60, 1000)
LISTS = ("half", "short")
Case = tuple[int, str, float | None]
"""Persons, kind of lists, limit."""
CHECKED = (10, 20, 50, 100, 200, 400, 700, 1000, 2000, 5000)
"""After so many questions the analyst guesses."""


@dataclass(frozen=True)
class Found:
    """What came out of one analyst.

    Attributes:
        guess: share of persons of whom who guesses what is more common is right.
        told_all: share of whom who knows the number of each cell exactly is right: persons of one cell look alike.
        right: share of whom the analyst is right, by the questions asked so far.
        answered: share of the questions that were answered, by the same.
    """

    guess: float
    told_all: float
    right: dict[int, float]
    answered: dict[int, float]


def noise(chance: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Whole numbers with mean 0 and the variance."""
    # of the laws with this variance and no larger numbers the one of maximal entropy: p(k) ~ exp(-s k^2)
    whole = np.arange(-LARGEST, LARGEST + 1)
    low, high = 0.0, 10.0
    for _ in range(80):
        middle = (low + high) / 2
        law = np.exp(-middle * whole**2)
        law /= law.sum()
        low, high = (middle, high) if (law * whole**2).sum() > VARIANCE else (low, middle)
    return chance.choice(whole, count, p=law).astype(np.float64)


def boxes(chance: np.random.Generator, count: int, lists: str) -> NDArray[np.bool_]:
    """Questions: of each, in which of all cells it counts. A list is of half of the categories, or of one to four."""
    drawn = chance.random((count, DIMENSIONS, LEVELS))
    if lists == "half":
        chosen = drawn < 0.5
    else:
        chosen = drawn.argsort(axis=2).argsort(axis=2) < chance.integers(1, 5, (count, DIMENSIONS, 1))
    inside = np.ones((count, 1), np.bool_)
    for dimension in range(DIMENSIONS):
        inside = (inside[:, :, None] & chosen[:, dimension, None, :]).reshape(count, -1)
    return inside


@dataclass(frozen=True)
class Told:
    """Answers to questions.

    Attributes:
        values: counts with noise.
        new: int64, of which questions nobody asked for the same persons before.
    """

    values: NDArray[np.float64]
    new: NDArray[np.int64]


def answers(chance: np.random.Generator, asked: NDArray[np.float64], having: NDArray[np.float64]) -> Told:
    """Counts with noise: where the same persons are asked for again it is the same answer, noise and all."""
    _, first, again = np.unique(asked, axis=0, return_index=True, return_inverse=True)
    return Told((asked @ having + noise(chance, len(asked)))[first[again.ravel()]], np.sort(first))


def attack(persons: int, seed: int, limit: float | None, questions: int, lists: str = "half") -> Found:
    """Ask all questions, and guess the secrets from what was answered."""
    chance = np.random.default_rng(seed)
    places = chance.integers(0, LEVELS**DIMENSIONS, persons)
    secret = chance.random(persons) < SECRET
    kept, cell_of, units = np.unique(places, return_inverse=True, return_counts=True)
    having = np.bincount(cell_of, secret, minlength=len(kept))
    asked = boxes(chance, questions, lists)[:, kept].astype(np.float64)
    told = answers(chance, asked, having)
    fresh = set(told.new.tolist())
    known = Knowledge({"secret": Cells.numbered(units)})
    many, had, right, shares = 0, [], {}, {}
    for place in range(questions):
        question = {"secret": Answers.of(Sets.of_rows(asked[place]), VARIANCE)}
        answered = True
        if limit is not None:
            would = known.would(question)
            answered = would.least_error >= limit or not would.new_sets
            if answered:
                known.keep(would)
        many += answered
        if answered and place in fresh:
            had.append(place)
        if place + 1 in CHECKED or place + 1 == questions:
            guessed = best_guess(asked[had], told.values[had], units, VARIANCE, SECRET)[cell_of] > 0.5
            right[place + 1] = float((guessed == secret).mean())
            shares[place + 1] = many / (place + 1)
    told_all = np.maximum(having, units - having).sum() / persons
    return Found(float(max(secret.mean(), 1 - secret.mean())), float(told_all), right, shares)


def figures(found: dict[Case, list[Found]], questions: int) -> str:
    """The table of limits: what is answered, and how much better than guessing the analyst is, in points."""
    lines = ["persons | lists | least_error | answered | guessing | right | told all | points above, at the worst"]
    lines.append("--------+-------+-------------+----------+----------+-------+----------+----------------------------")
    for (persons, lists, limit), runs in found.items():
        answered = np.mean([run.answered[questions] for run in runs]) * questions
        guess, right = np.mean([run.guess for run in runs]), np.mean([run.right[questions] for run in runs])
        told_all = np.mean([run.told_all for run in runs])
        lines.append(
            f"{persons:>7,} | {lists:5} | {'off' if limit is None else format(limit, '.2f'):>11} | {answered:8,.0f} | "
            f"{guess:8.3f} | {right:5.3f} | {told_all:8.3f} | {100 * worst(runs):27.1f}"
        )
    return "\n".join(lines)


def worst(runs: Sequence[Found]) -> float:
    """The mean over the seeds of what the analyst is better than guessing, where that is largest."""
    return float(max(np.mean([run.right[at] - run.guess for run in runs]) for at in runs[0].right))


def draw(found: dict[Case, list[Found]]) -> Picture:
    """A panel for each number of persons and kind of lists: right, by the questions asked, a line for each limit."""
    panels = []
    for persons, lists in dict.fromkeys((size, kind) for size, kind, _ in found):
        lines = {limit: runs for (size, kind, limit), runs in found.items() if (size, kind) == (persons, lists)}
        ticks = sorted(next(iter(lines.values()))[0].right)
        x = Scale(ticks[0], ticks[-1], tuple(at for at in (10, 100, 1000) if ticks[0] <= at <= ticks[-1]), "log")
        title = f"{persons:,} persons, lists: {'half of 8' if lists == 'half' else '1 to 4 of 8'} categories"
        y = Scale(0.6, 1, (0.6, 0.7, 0.8, 0.9, 1))
        panel = Panel(title, x, y, "questions asked", "share right", width=340, height=220)
        for colour, (limit, runs) in zip(COLOURS, lines.items(), strict=False):
            panel.line([(float(at), float(np.mean([run.right[at] for run in runs]))) for at in ticks], colour)
            panel.legend.append(("line", colour, "no limit" if limit is None else f"least_error {limit:g}"))
        panels.append(panel)
    described = "Lines of the share of persons of whom the analyst is right by the questions asked, for each limit."
    return picture("What many counts with noise tell of single persons", described, panels)


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    file = sys.argv[2] if len(sys.argv) > 2 else "sequence.svg"
    seeds = SEEDS[: int(sys.argv[3])] if len(sys.argv) > 3 else SEEDS
    found = {
        (persons, lists, limit): [attack(persons, seed, limit, questions, lists) for seed in seeds]
        for persons in PERSONS
        for lists in LISTS
        for limit in LIMITS
    }
    print(figures(found, questions))
    print(f"wrote {draw(found).save(file)}")


if __name__ == "__main__":
    main()
