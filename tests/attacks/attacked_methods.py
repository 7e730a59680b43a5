"""One population under every method: what attacks with many answers are asked of.

Everything is known of these people but whether they are ill, which is a dimension like the others.
"""

from __future__ import annotations

import functools
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest
from attacked_database import LONG

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guard.md"
REGIONS, SEXES = "NSEW", "fm"
DIMENSIONS = ("region", "age", "sex", "ill")
METHODS = {
    "cell_key": "method := 'cell_key', min_units := 3",
    "suppression": "method := 'suppression', publication := 'cells'",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5",
}
"""What `sdc_protect` is told, for each method."""
ALONE, WITHOUT_ZEROS = "cell_key, min_units 1", "suppression, zeros not protected"
ROUNDED_OF_FEW = "rounding, min_units 3"
PRIVATE = "dp"
"""It has no place among the methods: its noise is drawn anew for each population, so that no page can say what is found
out, and what that is at most is proven (`test_private_answers`)."""
DECLARED = METHODS | {
    ALONE: "method := 'cell_key'",
    WITHOUT_ZEROS: METHODS["suppression"],
    ROUNDED_OF_FEW: METHODS["rounding"] + ", min_units := 3",
    PRIVATE: "method := 'dp', epsilon := 1000, delta := 1e-9, per_question := 0.5, bounds := {'income': [0, 10000000]}, "
    "domains := {'region': ['N', 'S', 'E', 'W'], 'age': range(0, 60), 'sex': ['f', 'm']}",
}
PUBLISH = """FROM sdc_publish('cells', 'SELECT region, age, sex, ill, count(*) AS n, sum(income) AS income FROM people
    GROUP BY CUBE(region, age, sex, ill)', max_count := 2, protect_zeros := {})"""


def compare_with_the_page(attack: str, method: str, found: int, guessed: int, of: int) -> None:
    """`docs/guard.md` says what each attack finds: the same as here.

    Raises:
        pytest.fail.Exception: it does not. An attack that is known to succeed fails an assertion, which this is not.
    """
    if LONG or method not in METHODS:
        return
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    names = next(row for row in rows if row[:2] == ["attack", "guessing"])
    row = dict(zip(names, next(row for row in rows if row[0] == attack), strict=True))
    if (row["guessing"], row[method].split(",")[0]) != (f"{guessed} of {of}", str(found)):
        pytest.fail(f"{attack}, {method}: {found}, guessing {guessed} of {of}; {PAGE.name} says {row}")


@dataclass(frozen=True)
class Person:
    """What is known of somebody, and what is not: `ill` and `income`."""

    number: int
    region: str
    age: int
    sex: str
    ill: bool
    income: int

    @property
    def known(self) -> tuple[str, int, str]:
        """By what somebody can be described."""
        return self.region, self.age, self.sex

    @property
    def described(self) -> str:
        """The same, as a condition."""
        return f"(region = '{self.region}' AND age = {self.age} AND sex = '{self.sex}')"


@dataclass(frozen=True)
class Population:
    """People under one method."""

    con: duckdb.DuckDBPyConnection
    guarded: Guard
    people: tuple[Person, ...]
    _counted: dict[str, int | None] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    """Of the file, where what questions cost is kept beside it; it is there as long as this is."""

    @property
    def alone(self) -> list[Person]:
        """Those whom nobody else is like."""
        like = Counter(person.known for person in self.people)
        return [person for person in self.people if like[person.known] == 1]

    def count(self, *conditions: str) -> list[int | None]:
        """The answers to so many questions for a number of people."""
        waiting = [condition for condition in dict.fromkeys(conditions) if condition not in self._counted]
        for first in range(0, len(waiting), 30):
            asked = waiting[first : first + 30]
            shown = ", ".join(f"count(*) FILTER ({condition})" for condition in asked)
            (row,) = self.guarded.sql(f"SELECT {shown} FROM people").to_pylist()
            self._counted.update(zip(asked, row.values(), strict=True))
        return [self._counted[condition] for condition in conditions]

    def answer(self, query: str) -> list[object] | None:
        """The first column of an answer; None where the method refuses to answer such a question."""
        try:
            return list(self.guarded.sql(query).column(0).to_pylist())
        except Refused as refused:
            assert refused.code == "SDC052", refused
            return None

    def suppressed(self) -> set[tuple[object, ...]]:
        """The cells of the publication that are not published; None stands for all values."""
        rows = self.con.execute(
            f"SELECT {', '.join(DIMENSIONS)} FROM sdc.cells_cells WHERE status IN ('primary', 'secondary')"
        )
        return set(rows.fetchall())


@functools.cache
def population(method: str, seed: int, size: int, ages: int) -> Population:
    """People of so many ages, of whom a third is ill."""
    chance = random.Random(seed)
    people = tuple(
        Person(
            i, chance.choice(REGIONS), chance.randrange(ages), chance.choice(SEXES), chance.random() < 0.33,
            chance.randrange(10**6, 10**7),
        )
        for i in range(size)
    )  # fmt: skip
    folder = tempfile.TemporaryDirectory() if method == PRIVATE else None
    file = ":memory:" if folder is None else str(Path(folder.name) / "people.duckdb")
    con = sdcduck.connect(file, secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people (id INTEGER, region VARCHAR, age INTEGER, sex VARCHAR, ill BOOLEAN, income INTEGER, record_key INTEGER)"
    )
    con.executemany(
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*vars(person).values(), chance.randrange(10**8)) for person in people],
    )
    if DECLARED[method] == METHODS["suppression"]:
        con.execute(PUBLISH.format(method != WITHOUT_ZEROS)).fetchall()
    con.execute(
        f"FROM sdc_protect('people', unit := 'id', dimensions := {list(DIMENSIONS)}, measures := ['income'], {DECLARED[method]})"
    ).fetchall()
    return Population(con, guard(con), people, _folder=folder)
