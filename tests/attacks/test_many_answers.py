"""Many answers together: who is ill, by least squares from questions with lists, with and without a limit on the sequence.

The attacker knows who is in which cell of the other dimensions, the law of the noise, and how many are ill altogether.
Each answer is safe alone. Without a limit a few hundred of them tell of nearly everybody; with one, hardly more than
guessing does. Each prints its success beside that of who only guesses.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import times
from fixtures_of_attacks import show
from register_of_people import DIMENSIONS, SECRET, made, outcome

import sdcduck
from sdcduck.guard import Guard, Refused

VARIANCE = 1.3  # of the noise of small counts under the p-table of the policy
Vector = np.ndarray[Any, Any]


def _question(chance: random.Random) -> tuple[str, list[set[int]]]:
    lists = [set(chance.sample(range(8), 4)) for _ in "abc"]
    chosen = (f"{name} IN ({', '.join(map(str, sorted(of)))})" for name, of in zip("abc", lists, strict=True))
    return f"SELECT count(*) AS n FROM people WHERE ill AND {' AND '.join(chosen)}", lists


def _people(register: Path) -> tuple[Vector, Vector]:
    """Who is in which cell, and who is ill."""
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        rows = con.execute("SELECT a, b, c, ill FROM people ORDER BY person_id").fetchall()
    return np.array([row[:3] for row in rows], int), np.array([row[3] for row in rows])


def _right(guard: Guard, known: Vector, ill: Vector, asked: int) -> tuple[float, int]:
    """The share of people of whom the attacker is right, and how many questions were answered."""
    chance, rows, numbers = random.Random(9), [], []
    for _ in range(asked):
        query, lists = _question(chance)
        try:
            [number] = guard.sql(query, user="attacker").column("n").to_pylist()
        except Refused as refused:
            assert refused.code == "SDC070"
            continue
        if number is not None:
            rows.append(np.all([np.isin(known[:, place], list(of)) for place, of in enumerate(lists)], axis=0))
            numbers.append(number)
    share = ill.mean()
    # Of each person a chance, at first that of everybody; the noise of each answer is known in its law.
    asked_of, told = np.array(rows, float).reshape(len(rows), len(ill)), np.array(numbers, float)
    prior = share * (1 - share)
    gain = prior * asked_of.T @ np.linalg.inv(prior * asked_of @ asked_of.T + VARIANCE * np.eye(len(rows)))
    guess = share + gain @ (told - share * asked_of.sum(axis=1))
    return float(((guess > 0.5) == ill).mean()), len(rows)


@pytest.mark.parametrize("limited", [False, True], ids=["off", "precision"])
def test_least_squares_from_questions_with_lists(tmp_path: Path, limited: bool, show: Callable[[str], None]) -> None:
    success, guessed, answered = [], [], []
    for seed in range(5, 5 + times(2, 8)):
        register = made(tmp_path / str(seed), seed=seed, least=1)
        if not limited:
            with closing(sdcduck.connect(register, secret=SECRET)) as con:
                off = f"FROM sdc_protect('people', unit := 'person_id', dimensions := {DIMENSIONS})"
                con.execute(off).fetchall()
        known, ill = _people(register)
        with closing(sdcduck.open_guard(register)) as guard:
            right, number = _right(guard, known, ill, times(50, 600) if limited else times(150, 600))
        success.append(right)
        guessed.append(max(ill.mean(), 1 - ill.mean()))
        answered.append(number)
    mode = "limited" if limited else "off"
    rates = f"{np.mean(success):.3f} right on average, who guesses {np.mean(guessed):.3f}"
    show(f"sequence {mode}: {rates}, {min(answered)} to {max(answered)} answers of 60 people's data")
    if limited:
        assert np.mean(success) <= np.mean(guessed) + 0.08
        assert max(answered) < 60
    else:
        assert np.mean(success) >= np.mean(guessed) + 0.15


def test_the_same_people_in_other_sets_are_no_free_answers(tmp_path: Path) -> None:
    """Who asks for the ill of one cell together with everybody of another has new noise each time, and is charged."""
    with closing(sdcduck.open_guard(made(tmp_path / "register"))) as guard:
        one = "(ill AND a = 1 AND b < 6)"
        asked = [
            f"SELECT count(*) FROM people WHERE {one} OR (a = 2 AND b = {b} AND c < {c})"
            for b in range(8)
            for c in (4, 8)
        ]
        outcomes = [outcome(guard, query) for query in [*asked, *(one.replace("a = 2", "a = 3") for one in asked)]]
        told = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()[0]
    assert told["sets"] > 3
    assert told["least_error"] < 0.97
    assert set(outcomes) <= {"answered", "SDC070"}


@pytest.mark.parametrize("turned", range(3, 3 + times(1, 8)))
def test_refusals_are_the_same_whatever_one_person_has(tmp_path: Path, turned: int) -> None:
    """Two registers that differ in one person's secret refuse the same questions."""
    chance = random.Random(turned)
    asked = [_question(chance)[0] for _ in range(times(30, 300))]
    asked += [
        "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b",
        "SELECT c, count(*) FROM people WHERE ill GROUP BY c",
    ]
    asked += [f"SELECT count(*) FROM people WHERE ill AND a = {a} AND b = {b}" for a in range(3) for b in range(3)]
    found = []
    for name, other in (("one", None), ("other", turned)):
        with closing(sdcduck.open_guard(made(tmp_path / name, turned=other))) as guard:
            found.append([outcome(guard, query) for query in asked])
    assert found[0] == found[1]
    assert set(found[0]) == {"answered", "SDC070"}
