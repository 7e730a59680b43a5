"""Attacks on record keys: the key of a cell is the sum of those of its records, so that counts of known sets tell them.

Whoever can describe a few people counts them in all combinations. The answers say nothing about anybody, for it is known
how many they are; but each says where the sum of some keys lies, and all together where each key does, to a hundredth.
From then on the noise of any count of these people can be worked out, and one answer about a secret says what many did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from attacked_methods import PAGE
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, guard

Show = Callable[[str], None]
Numbers = npt.NDArray[np.float64]
Set = tuple[int, ...]
TOWNS, HOUSES, KEPT, TRIED = 20, 5, 400, 12
SETS: list[Set] = [chosen for size in range(1, HOUSES + 1) for chosen in combinations(range(HOUSES), size)]
SCALE = 10**8


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Towns of some people, each alone in a house; some are ill."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS
            SELECT i AS person, i // {HOUSES} AS town, i % {HOUSES} AS house, (i * 7919 + i * i * 31) % 101 < 40 AS ill,
                1000 + i * 7919 % 5003 AS income
            FROM range({TOWNS * HOUSES}) t(i);
        """)
        connection.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        connection.execute(
            "FROM sdc_protect('people', unit := 'person', dimensions := ['town', 'house', 'ill'], measures := ['income'])"
        ).fetchall()
        yield connection


class Law:
    """The noise of so many people whose keys have a sum, as shares of the scale: the p-table, which everybody can read."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        rows = con.execute("SELECT i, ub, v FROM sdc.ptable_intervals WHERE name = 'default' ORDER BY i, ub").fetchall()
        self.last = max(int(i) for i, _, _ in rows)
        self.rows = [
            (np.array([ub / SCALE for i, ub, _ in rows if i == row]), np.array([v for i, _, v in rows if i == row]))
            for row in range(self.last + 1)
        ]

    def published(self, n: int, keys: Numbers) -> Numbers:
        """The published numbers of n people, for sums of keys."""
        edges, noise = self.rows[min(n, self.last)]
        found: Numbers = n + noise[np.minimum(np.searchsorted(edges, keys % 1, side="right"), len(noise) - 1)]
        return found


def counts(guarded: Guard, sets: Sequence[Set], condition: str) -> npt.NDArray[np.int64]:
    """The published numbers of people of a set for whom a condition holds, of which each town has a row."""
    shown = ", ".join(
        f"count(*) FILTER ({condition} AND house IN ({', '.join(map(str, chosen))})) AS a{place}"
        for place, chosen in enumerate(sets)
    )
    found = np.zeros((TOWNS, len(sets)), dtype=np.int64)
    for row in guarded.sql(f"SELECT town, {shown} FROM people GROUP BY town").to_pylist():
        found[row["town"]] = [row[f"a{place}"] for place in range(len(sets))]
    return found


def keys_of(law: Law, answers: npt.NDArray[np.int64], random: np.random.Generator) -> Numbers:
    """Keys of the houses of a town that go with all its counts, or with most: several guesses, one after the other."""
    guesses = np.zeros((KEPT, 0))

    def wrong(keys: Numbers) -> npt.NDArray[np.int64]:
        off = np.zeros(len(keys), dtype=np.int64)
        for place, chosen in enumerate(SETS):
            if chosen[-1] < keys.shape[1]:
                off += law.published(len(chosen), keys[:, chosen].sum(axis=1)) != answers[place]
        return off

    for _ in range(HOUSES):
        guesses = np.repeat(guesses, TRIED, axis=0)
        guesses = np.hstack([guesses, random.random((len(guesses), 1))])
        off = wrong(guesses)
        best = np.argsort(off, kind="stable")[:KEPT]
        guesses, off = guesses[best], off[best]
        for _ in range(30):
            moved = random.normal(0, 10 ** random.uniform(-3.5, -1), guesses.shape) * (
                random.random(guesses.shape) < 0.4
            )
            tried = (guesses + moved) % 1
            now = wrong(tried)
            guesses[now <= off], off = tried[now <= off], np.minimum(now, off)
    best_ones: Numbers = guesses[off == off.min()]
    return best_ones


def likeliest(law: Law, told: npt.NDArray[np.int64], asked: Sequence[Set], keys: Numbers | None) -> set[int]:
    """Who is ill in a town: the set that goes best with counts of the ill, with or without keys."""
    found, best = set[int](), -1.0
    for chosen in [(), *SETS]:
        chance = 1.0
        for answer, among in zip(told, asked, strict=True):
            ill = tuple(house for house in among if house in chosen)
            spread = np.linspace(0, 1, 400, endpoint=False) if keys is None else keys[:, ill].sum(axis=1)
            chance *= (
                float((law.published(len(ill), spread) == answer).mean()) + 1e-3 if ill else float(answer == 0) + 1e-9
            )
        if chance > best:
            found, best = set(chosen), chance
    return found


def test_keys_and_then_secrets(con: duckdb.DuckDBPyConnection, show: Show) -> None:
    guarded, law, random = guard(con), Law(con), np.random.default_rng(1)
    known = counts(guarded, SETS, "true")
    records = con.execute("SELECT record_key, ill FROM people ORDER BY person").fetchall()
    exact = np.array([key / SCALE for key, _ in records]).reshape(TOWNS, HOUSES)
    ill = np.array([is_ill for _, is_ill in records]).reshape(TOWNS, HOUSES)
    keys = [keys_of(law, known[town], random) for town in range(TOWNS)]
    off = np.array([np.median(np.abs((keys[town] - exact[town] + 0.5) % 1 - 0.5)) for town in range(TOWNS)])
    show(
        f"{len(SETS)} counts of {HOUSES} people each: their keys are found to {np.median(off):.1%} of the scale, in "
        f"{int((off < 0.03).sum())} of {TOWNS} towns to 3 %"
    )
    asked: list[Set] = [(0, 1, 2, 3, 4), (0, 1, 2), (2, 3, 4), (0, 3), (1, 4)]
    told = counts(guarded, asked, "ill")
    guessed = max(int(ill.sum()), ill.size - int(ill.sum()))
    right = {}
    for number in (1, 3, 5):
        for name in ("without", "with"):
            right[name, number] = sum(
                (house in likeliest(law, told[town, :number], asked[:number], keys[town] if name == "with" else None))
                == ill[town, house]
                for town in range(TOWNS)
                for house in range(HOUSES)
            )
        show(
            f"{number} counts of the ill of a town: {right['without', number]} of {ill.size} secrets right without keys, "
            f"{right['with', number]} with them; guessing {guessed}"
        )
    # The page has these figures.
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{right['with', 3]} of {ill.size} secrets, where {right['without', 3]} are told without keys" in page
    assert right["without", 5] <= guessed + 20
    assert int((off < 0.03).sum()) >= TOWNS // 2
