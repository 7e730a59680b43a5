"""Attacks on the digits of sums: the noise comes in steps of the largest contribution, and incomes are whole numbers.

Each attack knows all that the docs say: the p-table, the law of the noise, the incomes of friends. It is made twice: on
sums with the same noise in full digits, as `sdc_sum` gives them, where it finds incomes to the unit, and on those of
the guard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pytest
from effort import times
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, guard

Show = Callable[[str], None]
Asked = Callable[[str], float]
"""The answer to what is added up under a condition; NaN where few are counted as nobody."""

TOWNS, HOUSES = 20, 150
INCOMES = np.arange(300, 40_001)
"""Whatever whole number an income could be."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """People of towns, each alone in a house."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS
            SELECT i AS person, i // {HOUSES} AS town, i % {HOUSES} AS house, i % 3 AS third,
                (1500 + i * 7919 % 9973 + 13 * (i * 104729 % 89))::INTEGER AS income,
                ((i * 7919 % 99991) - 40000) / 7 AS profit
            FROM range({TOWNS * HOUSES}) t(i);
        """)
        connection.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        connection.execute(
            "FROM sdc_protect('people', unit := 'person', dimensions := ['town', 'house', 'third'], "
            "measures := ['income', 'profit'])"
        ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


@pytest.fixture(scope="module")
def law(con: duckdb.DuckDBPyConnection) -> dict[int, float]:
    """The probability of each step of the noise, which everybody can read."""
    rows = con.execute("""
        SELECT round(v * 5)::INTEGER, ub - lb FROM sdc.ptable_intervals
        WHERE name = 'default_magnitude' AND i = (SELECT max(i) FROM sdc.ptable_intervals WHERE name = 'default_magnitude')
    """).fetchall()
    return {step: width / 1e8 for step, width in rows}


@pytest.fixture(scope="module", params=["full digits", "guard"])
def asked(request: pytest.FixtureRequest, con: duckdb.DuckDBPyConnection, guarded: Guard) -> tuple[str, Asked]:
    def in_full(condition: str) -> float:
        found = con.execute(f"SELECT sdc_sum(income, record_key) FROM people WHERE {condition}").fetchone()
        return float((found or [math.nan])[0])

    def of_guard(condition: str) -> float:
        answer = guarded.sql(f"SELECT sum(income) AS s FROM people WHERE {condition}").to_pylist()
        value = answer[0]["s"] if answer else None
        return math.nan if value is None else float(value)

    return request.param, in_full if request.param == "full digits" else of_guard


def incomes(con: duckdb.DuckDBPyConnection) -> dict[tuple[int, int], int]:
    return {
        (town, house): income
        for town, house, income in con.execute("FROM people SELECT town, house, income").fetchall()
    }


def of_people(town: int, houses: Sequence[int]) -> str:
    return f"town = {town} AND house IN ({', '.join(map(str, houses))})"


def log_likelihood(answers: Sequence[float], known: Sequence[float], law: dict[int, float], grid: float) -> Any:
    """Of each income, how likely these sums with known people are, where it is the largest in each of them."""
    found = np.zeros(len(INCOMES))
    for answer, others in zip(answers, known, strict=True):
        least = np.full(len(INCOMES), 1e-300)
        for step, chance in law.items():
            there = INCOMES + others + 0.02 * INCOMES * step
            least += np.where(np.abs(there - answer) <= grid / 2 + 1e-6, chance, 0.0)
        found += np.log(least)
    return found


def seen_grid(answers: Sequence[float]) -> float:
    """The coarsest of 1, 2 and 5 times a power of ten that all answers lie on."""
    for power in range(5, -6, -1):
        for one in (5, 2, 1):
            grid = one * 10.0**power
            if all(abs(answer / grid - round(answer / grid)) < 1e-9 for answer in answers):
                return grid
    return 0.0


def test_the_sum_of_one_person_leaves_many_candidates(
    con: duckdb.DuckDBPyConnection, asked: tuple[str, Asked], show: Show
) -> None:
    """In full digits a whole number times a step of the noise is the answer for few incomes, and for some for one."""
    truth, left = incomes(con), []
    steps = 1 + 0.02 * np.arange(-25, 26)
    distance = 1e-6 if asked[0] == "full digits" else 0.01 * INCOMES  # half the finest grid that there is for an income
    for house in range(0, HOUSES, times(4, 2)):
        answer = asked[1](of_people(3, [house]))
        if math.isnan(answer):
            continue
        candidates = np.abs(np.outer(INCOMES, steps) - answer).min(axis=1) <= distance
        assert candidates[truth[3, house] - INCOMES[0]]
        left.append(int(candidates.sum()))
    show(
        f"{asked[0]}: one question about one person leaves {min(left)} incomes at least, {np.median(left):.0f} in the middle"
    )
    assert len(left) >= times(15, 40)
    if asked[0] == "full digits":
        assert min(left) == 1
    else:
        assert min(left) >= 1000


def test_sums_with_friends_do_not_give_an_income(
    con: duckdb.DuckDBPyConnection, asked: tuple[str, Asked], law: dict[int, float], show: Show
) -> None:
    """Four questions, with two friends whose incomes are known and smaller: in full digits all 60 of 60 to the unit."""
    truth, exact, near = incomes(con), 0, 0
    targets = range(0, 60, times(3, 1))
    for nth in targets:
        town = nth % TOWNS
        by_income = sorted(range(HOUSES), key=lambda house: truth[town, house])
        target, friends = by_income[90 + nth // 3], [by_income[1 + nth // 20], by_income[5 + nth // 20]]
        sets = [[], friends[:1], friends[1:], friends]
        told = [
            (asked[1](of_people(town, [target, *others])), sum(truth[town, other] for other in others))
            for others in sets
        ]
        answers, known = zip(*(pair for pair in told if not math.isnan(pair[0])), strict=True)
        likely = log_likelihood(answers, known, law, 0.0 if asked[0] == "full digits" else seen_grid(answers))
        best = np.flatnonzero(likely == likely.max())
        found = INCOMES[best[len(best) // 2]]
        exact += len(best) == 1 and found == truth[town, target]
        near += abs(found - truth[town, target]) <= 0.05 * truth[town, target]
    show(
        f"{asked[0]}: four questions with friends give {exact} of {len(targets)} incomes to the unit, {near} within 5 %"
    )
    if asked[0] == "full digits":
        assert exact >= 0.9 * len(targets)
    else:
        assert exact <= 1
        assert near <= 0.75 * len(targets)


def test_the_lattice_of_the_noise_does_not_show(
    con: duckdb.DuckDBPyConnection, asked: tuple[str, Asked], show: Show
) -> None:
    """Sixteen sums with and without four people who are known differ by multiples of 0.02 of the largest income."""
    truth, exact, near = incomes(con), 0, 0
    towns = range(times(8, TOWNS))
    for town in towns:
        by_income = sorted(range(HOUSES), key=lambda house: truth[town, house])
        known = by_income[10:50:10]
        sets = [chosen for size in range(5) for chosen in combinations(known, size)]
        without = {chosen: [house for house in known if house not in chosen] for chosen in sets}
        answers = [
            asked[1](f"town = {town} AND house NOT IN ({', '.join(map(str, [-1, *without[chosen]]))})")
            - sum(truth[town, house] for house in chosen)
            for chosen in sets
        ]
        differences = np.array(answers[1:]) - answers[0]
        largest = by_income[-1]
        steps = differences[:, None] / (0.02 * INCOMES[None, :])
        misfit = np.abs(steps - np.round(steps)).max(axis=0) * 0.02 * INCOMES
        fits = np.flatnonzero(misfit <= misfit.min() + 1e-6)
        found = INCOMES[fits.max()]  # its divisors fit, too
        exact += found == truth[town, largest]
        near += abs(found - truth[town, largest]) <= 0.05 * truth[town, largest]
    show(
        f"{asked[0]}: the steps of the noise give {exact} of {len(towns)} largest incomes to the unit, {near} within 5 %"
    )
    if asked[0] == "full digits":
        assert exact >= 0.9 * len(towns)
    else:
        assert exact == 0
        assert near <= 0.2 * len(towns)


MEASURES = {"income": 1.0, "profit": 1.0}


@pytest.mark.parametrize("measure", list(MEASURES))
def test_no_grid_is_finer_than_the_steps_of_the_noise(
    con: duckdb.DuckDBPyConnection, guarded: Guard, measure: str
) -> None:
    """Sums, means and variances; and the grid is no coarser than it has to be, which is one eighth of the contribution."""
    truth = con.execute(f"""
        SELECT town, third, max(abs({measure})), greatest(max({measure}) - avg({measure}), avg({measure}) - min({measure})) ** 2
        FROM people GROUP BY ROLLUP (town, third) ORDER BY town, third
    """).fetchall()
    answers = guarded.sql(f"""
        SELECT town, third, count({measure}) AS n, sum({measure}) AS s, avg({measure}) AS m, var_samp({measure}) AS v
        FROM people GROUP BY ROLLUP (town, third) ORDER BY town, third
    """).to_pylist()
    assert len(truth) == len(answers) == 4 * TOWNS + 1
    for (town, third, largest, deviation), row in zip(truth, answers, strict=True):
        assert (row["town"], row["third"]) == (town, third)
        for number, contribution in (
            (row["s"], largest), (row["m"], largest / row["n"]), (row["v"], deviation / (row["n"] - 1))
        ):  # fmt: skip
            # The step of the grid is one of these; a number may lie on a coarser one by chance.
            possible = [one * 10.0**power for power in range(-6, 10) for one in (1, 2, 5)]
            steps = [
                step for step in possible if 0.02 * contribution <= step * (1 + 1e-12) and step <= 0.125 * contribution
            ]
            on = [step for step in steps if abs(number / step - round(number / step)) < 1e-9]
            assert on, (row, contribution)
            assert number == float(f"{number:.12g}")  # the decimals that it looks like


def test_the_grid_of_one_largest_contribution_is_one(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    """With a grid for each set of records, many sets would tell where between two steps the contribution lies."""
    truth = incomes(con)
    largest = max(range(HOUSES), key=lambda house: truth[7, house])
    others = [house for house in range(HOUSES) if house != largest][:120]
    answers = [
        guarded.sql(
            f"SELECT sum(income) AS s FROM people WHERE {of_people(7, [largest, *others[nth::40]])}"
        ).to_pylist()[0]["s"]
        for nth in range(40)
    ]
    grids = {
        grid
        for grid in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
        if all(one % grid == 0 for one in answers)
    }
    assert 0.02 * truth[7, largest] <= max(grids) <= 0.125 * truth[7, largest]


def test_the_same_number_in_other_words_is_on_the_same_grid(guarded: Guard) -> None:
    one, half, real, inner = (
        guarded.sql(f"SELECT town, {what} AS s FROM {source} GROUP BY town ORDER BY town").column("s").to_pylist()
        for what, source in (
            ("sum(income)", "people"),
            ("sum(2 * income) / 2", "people"),
            ("sum(income::DOUBLE)", "people"),
            ("sum(x)", "(SELECT town, income AS x FROM people)"),
        )
    )
    assert one == half == real == inner
