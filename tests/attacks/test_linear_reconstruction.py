"""Linear reconstruction, against every method: who is ill, from the numbers of ill people in a great many random sets.

Dinur and Nissim (2003): with noise that is small beside the root of the number of people, enough random sums give nearly
all of them away. The equations are solved by least squares and by linear programming; the sets overlap, so that either
also averages over cells that have people in common. Each prints its success beside that of who only guesses.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from attacked_database import LONG
from attacked_methods import METHODS, REGIONS, SEXES, Population, compare_with_the_page, population
from fixtures_of_attacks import show
from scipy import sparse
from scipy.optimize import linprog, lsq_linear
from suppression_audit import Span, determined

Vector = np.ndarray[Any, Any]
SIZE = (2, 600, 60) if LONG else (2, 240, 30)
ASKED = 2000 if LONG else 400
PARTS, TOGETHER = 5, 8


class Partition:
    """A way to divide everybody into as many parts at random, by what is known of them."""

    def __init__(self, chance: random.Random) -> None:
        self.age, self.offset = chance.randrange(1, 101), chance.randrange(101)
        self.of_region, self.of_sex = ({value: chance.randrange(101) for value in known} for known in (REGIONS, SEXES))

    @property
    def sql(self) -> str:
        """Which part, as an analyst asks."""
        known = {"region": self.of_region, "sex": self.of_sex}
        numbers = [f"CASE {name} {_whens(numbers)} END" for name, numbers in known.items()]
        return f"(age * {self.age} + {' + '.join(numbers)}) * (age + {self.offset}) % 101 % {PARTS}"

    def of(self, known: tuple[str, int, str]) -> int:
        """The part of somebody."""
        region, age, sex = known
        number = (age * self.age + self.of_region[region] + self.of_sex[sex]) * (age + self.offset)
        return number % 101 % PARTS


def _whens(numbers: dict[str, int]) -> str:
    return " ".join(f"WHEN '{value}' THEN {number}" for value, number in numbers.items())


@dataclass(frozen=True)
class Answers:
    """What was learned: which kinds of people each answer is about, and how many of these are ill."""

    kinds: list[tuple[str, int, str]]
    chosen: Vector
    numbers: Vector
    questions: int


def _learned(kinds: list[tuple[str, int, str]], told: list[tuple[list[bool], int]], questions: int) -> Answers:
    chosen, numbers = zip(*sorted(told), strict=True)  # rows come in any order
    return Answers(kinds, np.array(chosen, dtype=float), np.array(numbers, dtype=float), questions)


def _kinds() -> list[tuple[str, int, str]]:
    return [(region, age, sex) for region in REGIONS for age in range(SIZE[2]) for sex in SEXES]


def _cell(values: Sequence[object], kinds: Sequence[tuple[object, ...]]) -> list[bool]:
    """Which of these have such values; None: any."""
    return [all(value in (None, mine) for value, mine in zip(values, one, strict=True)) for one in kinds]


@functools.cache
def answers(method: str) -> Answers:
    """All margins of what is known, and random sets."""
    asked, chance, kinds = population(method, *SIZE), random.Random(4), _kinds()
    told, questions = [], 0
    for *values, n in _rows(
        asked, "SELECT region, age, sex, count(*) AS n FROM people WHERE ill GROUP BY CUBE(region, age, sex)"
    ):
        questions += 1
        if n is not None:
            told.append((_cell(values, kinds), n))
    while questions < ASKED:
        partitions = {f"p{i}": Partition(chance) for i in range(TOGETHER)}
        shown = ", ".join(f"{one.sql} AS {name}" for name, one in partitions.items())
        grouped = ", ".join(f"({name})" for name in partitions)
        questions += TOGETHER * PARTS
        for *parts, n in _rows(
            asked,
            f"SELECT {', '.join(partitions)}, count(*) AS n FROM (SELECT {shown} FROM people WHERE ill) GROUP BY GROUPING SETS ({grouped})",
        ):
            ((one, part),) = [
                (one, part) for one, part in zip(partitions.values(), parts, strict=True) if part is not None
            ]
            if n is not None:
                told.append(([one.of(kind) == part for kind in kinds], n))
    return _learned(kinds, told, questions)


def _rows(asked: Population, query: str) -> list[list[Any]]:
    return [list(row.values()) for row in asked.guarded.sql(query).to_pylist()]


def by_least_squares(chosen: Vector, numbers: Vector, sizes: Vector) -> Vector:
    """How many are ill of each kind of people: as near to the answers as can be, and else to a third."""
    doubt = 0.01
    equations = np.r_[chosen, doubt * np.eye(len(sizes))]
    found: Vector = lsq_linear(equations, np.r_[numbers, doubt * sizes / 3], (0, sizes)).x
    return found


def by_linear_programming(chosen: Vector, numbers: Vector, sizes: Vector) -> Vector:
    """The same, with the least sum of absolute differences from the answers."""
    questions, kinds = chosen.shape
    slack = sparse.eye_array(questions)
    found: Vector = linprog(
        np.r_[np.zeros(kinds), np.ones(2 * questions)],
        A_eq=sparse.hstack([sparse.csr_array(chosen), slack, -slack]),
        b_eq=numbers,
        bounds=[*((0, size) for size in sizes), *[(0, None)] * 2 * questions],
        method="highs",
    ).x[:kinds]
    return found


SOLVED = {"least squares": by_least_squares, "linear programming": by_linear_programming}
NOISE = "inherent in noise that does not grow with the number of questions: see `docs/limits.md`, many answers say more than one"
NOT_PROMISED = {
    "cell_key": NOISE,
    "threshold": "inherent in thresholds: the answers are original numbers",
    "rounding": NOISE,
}


@pytest.mark.parametrize("solved", list(SOLVED))
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            name,
            marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=NOT_PROMISED[name])
            if name in NOT_PROMISED
            else (),
        )
        for name in METHODS
    ],
)
def test_linear_reconstruction(show: Callable[[str], None], method: str, solved: str) -> None:
    asked = population(method, *SIZE)
    learned, targets = answers(method), asked.alone
    found = _found(asked, learned, solved)
    modal = max(Counter(person.ill for person in targets).values())
    # What is published is there to tell something of everybody: answers under suppression may tell that, and no more.
    baseline = _found(asked, published(asked), solved) if method == "suppression" else modal
    show(
        f"{solved}, {method}: {found} of {len(targets)} secrets right from {len(learned.numbers)} answers to "
        f"{learned.questions} questions; modal guess {modal}"
        + (f"; from the publication {baseline}" if method == "suppression" else "")
    )
    if solved == "least squares":  # the other solution is one of many that are as good
        compare_with_the_page("401 questions, by least squares", method, found, modal, len(targets))
    assert len(targets) > 30
    assert found <= baseline + (0 if method == "suppression" else 0.05 * len(targets))


def _found(asked: Population, learned: Answers, solved: str) -> int:
    """How many secrets are right."""
    sizes = Counter(person.known for person in asked.people)
    known = np.array([sizes[kind] for kind in learned.kinds], dtype=float)
    there = known > 0
    ill = SOLVED[solved](learned.chosen[:, there], learned.numbers, known[there])
    guesses = dict(zip((kind for kind in learned.kinds if sizes[kind]), ill > 0.5, strict=True))
    return sum(bool(guesses[person.known]) == person.ill for person in asked.alone)


def published(asked: Population) -> Answers:
    """What the publication itself says of the ill."""
    kinds = _kinds()
    rows = asked.con.execute("SELECT region, age, sex, n FROM sdc.cells_cells WHERE ill AND status = 'open'").fetchall()
    return _learned(kinds, [(_cell(values, kinds), n) for *values, n in rows], len(rows))


def test_no_suppressed_cell_follows(show: Callable[[str], None]) -> None:
    """Exactly, of all answers together: neither by equations nor because no number is negative."""
    asked, learned = population("suppression", *SIZE), answers("suppression")
    inner: list[tuple[object, ...]] = [(*kind, ill) for kind in learned.kinds for ill in (False, True)]
    count = Counter((*person.known, person.ill) for person in asked.people)
    together = Span(len(inner))
    place = {kind: i for i, kind in enumerate(learned.kinds)}
    for chosen, number in zip(learned.chosen.astype(bool), learned.numbers, strict=True):
        about = np.array([ill and chosen[place[(*kind,)]] for *kind, ill in inner])
        assert sum(count[cell] for cell, mine in zip(inner, about, strict=True) if mine) == number
        together.add(about)
    plain = _rows(asked, "SELECT region, age, sex, ill, count(*) AS n FROM people GROUP BY CUBE(region, age, sex, ill)")
    for *values, number in plain:
        if number is not None:
            together.add(np.array(_cell(values, inner)))
    suppressed = [np.array(_cell(cell, inner)) for cell in sorted(asked.suppressed(), key=repr)]
    shown = len(learned.numbers) + sum(number is not None for *_, number in plain)
    assert len(suppressed) > 100
    assert shown > 100
    follow = sum(cell in together for cell in suppressed)
    looked_at = suppressed if LONG else suppressed[::40]
    bounded = determined(looked_at, together, np.array([count[cell] for cell in inner]), 0)
    show(
        f"suppression: of {len(suppressed)} suppressed cells {follow} follow by equations from {shown} answers, "
        f"{bounded} of {len(looked_at)} by bounds"
    )
    assert follow == bounded == 0
