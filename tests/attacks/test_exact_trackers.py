"""Exact counts of enough units each: trackers and systems of equations, with and without a limit on the sequence.

Under a threshold each answer is about enough units, and two of them differ in one person. With `sequence := 'atoms'` no
group of fewer is told apart by all answers together; `'pairwise'` looks at two at a time, and systems of many equations
pass it: what each leaves is printed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from effort import times
from fixtures_of_attacks import show
from register_of_people import SECRET, told

import sdcduck
from sdcduck.guard import Guard, Refused

MODES = ("off", "pairwise", "atoms")


@pytest.mark.parametrize("mode", MODES)
def test_the_tracker_of_one_woman_in_a_department(tmp_path: Path, mode: str) -> None:
    """20 people, 11 men, 9 women of whom one is in Law: M, F, and M or (F and Law); as of Domingo-Ferrer's question."""
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS person, CASE WHEN i < 11 THEN 'M' ELSE 'F' END AS sex,
            CASE WHEN i < 4 OR i = 11 THEN 'Law' ELSE 'Maths' END AS department FROM range(20) t(i)""").fetchall()
        con.execute(f"""FROM sdc_protect('people', unit := 'person', dimensions := ['sex', 'department'],
            method := 'threshold', min_units := 3, sequence := '{mode}')""").fetchall()
    with closing(sdcduck.open_guard(path)) as guard:
        assert told(guard, "sex = 'F' AND department = 'Law'") is None
        men, women = told(guard, "sex = 'M'"), told(guard, "sex = 'F'")
        padded = told(guard, "sex = 'M' OR (sex = 'F' AND department = 'Law')")
        others = told(guard, "NOT sex = 'M' OR (sex = 'F' AND department = 'Law')")
    assert (men, women) == (11, 9)
    if mode == "off":
        assert (padded, others) == (12, 9)
        assert padded + others - 20 == 1
    else:
        assert padded is None
        assert others == 9, "these are the women, of whom it is known"


@pytest.mark.parametrize("mode", MODES)
def test_systems_of_equations(tmp_path: Path, mode: str, show: Callable[[str], None]) -> None:
    """Boxes of lists, as somebody asks who collects equations; he knows who is in which cell of three dimensions."""
    success, guessed, answered = [], [], []
    for seed in range(5, 5 + times(2, 8)):
        path = tmp_path / f"{seed}.duckdb"
        with closing(sdcduck.connect(path, secret=SECRET)) as con:
            con.execute(f"""CREATE TABLE people AS SELECT i AS person, hash(i) % 4 AS a, hash(i * 7 + 1) % 4 AS b,
                hash(i * 11 + 2) % 4 AS c, hash(i * 13 + 3) % 10 < 3 AS ill
                FROM range({1000 * seed}, {1000 * seed + 60}) t(i)""").fetchall()
            con.execute(f"""FROM sdc_protect('people', unit := 'person', dimensions := ['a', 'b', 'c', 'ill'],
                method := 'threshold', min_units := 3, sequence := '{mode}')""").fetchall()
            rows = con.execute("SELECT a, b, c, ill FROM people ORDER BY person").fetchall()
        known, ill = np.array([row[:3] for row in rows], int), np.array([row[3] for row in rows])
        chance, sets, numbers = random.Random(seed), [np.ones(len(ill))], [float(ill.sum())]
        with closing(sdcduck.open_guard(path)) as guard:
            for _ in range(times(150, 400)):
                lists = [sorted(chance.sample(range(4), 2)) for _ in "abc"]
                where = (f"{name} IN ({of[0]}, {of[1]})" for name, of in zip("abc", lists, strict=True))
                number = told(guard, f"ill AND {' AND '.join(where)}")
                if number is not None:
                    sets.append(np.all([np.isin(known[:, place], of) for place, of in enumerate(lists)], axis=0))
                    numbers.append(float(number))
        share = ill.mean()
        asked = np.array(sets, float)
        rest = np.array(numbers) - share * asked.sum(axis=1)
        guess = share + np.linalg.lstsq(asked, rest, rcond=1e-9)[0]
        success.append(((guess > 0.5) == ill).mean())
        guessed.append(max(share, 1 - share))
        answered.append(len(numbers) - 1)
    right = f"{np.mean(success):.3f} right on average, who guesses {np.mean(guessed):.3f}"
    show(f"threshold, sequence {mode}: {right}, {min(answered)} to {max(answered)} answers of 60 people's data")
    if mode == "atoms":
        assert np.mean(success) <= np.mean(guessed) + 0.08
    elif mode == "off":
        assert np.mean(success) >= np.mean(guessed) + 0.12
