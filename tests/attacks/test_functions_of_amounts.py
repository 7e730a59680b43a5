"""Attacks by functions of amounts: whether roots, logarithms and squares of an income tell more of it than its sum.

Whoever asks knows every amount but those of the targets, and the laws of the noise. The target stands beside six friends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, Refused, guard

Show = Callable[[str], None]
Numbers = npt.NDArray[np.float64]
TARGETS, FRIENDS, MOST = 100, 6, 20000
FUNCTIONS: dict[str, tuple[Callable[[Numbers], Numbers], float]] = {
    "sqrt(income)": (np.sqrt, math.sqrt(MOST)),
    "ln(income)": (np.log, math.log(MOST)),
    "ln(income + 1)": (np.log1p, math.log1p(MOST)),
    "income * income": (np.square, float(MOST**2)),
}
"""What is added up in place of the income, and how large it can be."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Towns of one target and friends; what was won is a loss for the target of every second town."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS SELECT town * 10 + house AS person, town, house,
                CASE WHEN house = 0 THEN 1500 + (town * 7919 + 5) % 9973 ELSE 300 + (town * 31 + house * 7919) % 1200 END::INTEGER
                    AS income,
                CASE WHEN house = 0 AND town % 2 = 0 THEN -1 ELSE 1 END * (100 + (town * 7919 + house * 577) % 907)::INTEGER AS won
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house)""")
        connection.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        connection.execute(f"""FROM sdc_protect('people', unit := 'person', dimensions := ['town', 'house'],
            measures := ['income', 'won'], bounds := {{'income': [1, {MOST}], 'won': [-1100, 1100]}},
            bands := {{'income': [0, 5000, 20000]}}, population := 'people')""").fetchall()
        connection.execute("CREATE TABLE visits AS SELECT person, record_key, nth FROM people, range(20) visits(nth)")
        connection.execute(
            "FROM sdc_protect('visits', unit := 'person', dimensions := ['nth'], population := 'people')"
        ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


def by_town(guarded: Guard, number: str) -> Numbers:
    """The answers of the towns; NaN where there is none."""
    found = np.full(TARGETS, np.nan)
    for row in guarded.sql(f"SELECT town, {number} AS x FROM people GROUP BY town").to_pylist():
        if row["x"] is not None:
            found[row["town"]] = row["x"]
    return found


def test_functions_tell_little_beside_a_sum(con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show) -> None:
    amounts = np.array(
        con.execute("SELECT list(income ORDER BY house) FROM people GROUP BY town ORDER BY town").fetchall()
    )
    exact, friends = amounts[:, 0, 0].astype(float), amounts[:, 0, 1:].astype(float)
    candidates = np.arange(100.0, 12_500.0, 2)
    largest = np.maximum(candidates[None, :], friends.max(axis=1)[:, None])
    told = by_town(guarded, "sum(income)")
    off = (told[:, None] - friends.sum(axis=1)[:, None] - candidates[None, :]) / (0.105 * largest)
    alone = off**2 / 2 + np.log(largest)
    together, hits = alone.copy(), {}
    for number, (function, most) in FUNCTIONS.items():
        told = by_town(guarded, f"sum({number})")
        off = (told[:, None] - function(friends).sum(axis=1)[:, None] - function(candidates)[None, :]) / (0.105 * most)
        together += off**2 / 2
        hits[number] = int((np.abs(candidates[np.argmin(off**2, axis=1)] - exact) <= 0.05 * exact).sum())
    before, after = (
        int((np.abs(candidates[np.argmin(loss, axis=1)] - exact) <= 0.05 * exact).sum()) for loss in (alone, together)
    )
    show(
        f"an income to within 5 %, of {TARGETS}: by its sum {before}, by functions alone {hits}, by all together {after}"
    )
    assert 15 <= before <= 45, "the sum alone has to be an attack that tells something"
    assert max(hits.values()) <= 25
    assert after <= before + 12


def test_no_two_answers_tell_by_being_equal_that_somebody_lost(guarded: Guard, show: Show) -> None:
    """Were the noise of a sum and of absolute values one, they would be equal just where nobody lost."""
    equal = by_town(guarded, "sum(won)") == by_town(guarded, "sum(abs(won))")
    show(f"sums that are those of absolute values, of {TARGETS} of which half have a loss in them: {equal.sum()}")
    assert equal[1::2].sum() <= 10, "nobody lost there"
    assert equal[::2].sum() <= 10


@pytest.mark.parametrize(
    "by", ["income - 0.0001", "income * 1.0001 - income * 0.0001", "income + 0 * won", "(income + income) / 2"]
)
def test_other_ways_to_write_a_sum_are_the_same_number(guarded: Guard, by: str) -> None:
    """A sum that is nearly another one is made of the same parts: there is no second draw of noise to average over."""
    asked, told = by_town(guarded, f"sum({by})"), by_town(guarded, "sum(income)")
    counted = by_town(guarded, "count(income)")
    wanted = told - 0.0001 * counted if by == "income - 0.0001" else told
    assert asked == pytest.approx(wanted, rel=1e-12)


def test_a_shift_does_not_make_the_noise_small(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    """Amounts less what they are about are small, and so would be noise of their size."""
    near = con.execute("SELECT town, sum(income - 2000) FROM people GROUP BY town ORDER BY town").fetchall()
    errors = by_town(guarded, "sum(income - 2000)") - np.array([value for _, value in near], dtype=float)
    plain = con.execute("SELECT town, sum(income) FROM people GROUP BY town ORDER BY town").fetchall()
    of_sums = by_town(guarded, "sum(income)") - np.array([value for _, value in plain], dtype=float)
    assert np.std(errors) >= np.std(of_sums) > 100


@pytest.mark.parametrize("number", FUNCTIONS)
def test_rows_that_repeat_a_function_do_not_make_its_noise_small(
    con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show, number: str
) -> None:
    """Of twenty visits each it is twenty times the function, and has twenty times its noise: there is no second draw."""
    rows = con.execute(f"SELECT sum({number})::DOUBLE AS x FROM people GROUP BY town ORDER BY town").fetchall()
    exact = np.array([x for (x,) in rows])
    alone = by_town(guarded, f"sum({number})") - exact
    errors = []
    for visits in (2, 5, 20):
        found = np.full(TARGETS, np.nan)
        query = f"""SELECT people.town, sum({number}) AS x FROM people JOIN visits USING (person)
            WHERE nth < {visits} GROUP BY people.town"""
        for row in guarded.sql(query).to_pylist():
            found[row["town"]] = np.nan if row["x"] is None else row["x"] / visits
        errors.append(np.nanstd(found - exact))
        grid = 0.125 * FUNCTIONS[number][1]
        assert np.nanmax(np.abs(found - exact - alone)) <= grid, "the same noise, but for digits"
    show(
        f"the noise of {number}: {np.nanstd(alone):.4g}, of 2, 5 and 20 visits, for each: {[f'{one:.4g}' for one in errors]}"
    )
    assert min(errors) >= 0.9 * np.nanstd(alone)


@pytest.mark.parametrize("border", [2500, 4999, 5001, 7500])
def test_an_income_cannot_be_halved_by_borders_of_ones_own(guarded: Guard, border: int) -> None:
    conditions = [
        f"income >= {border}",
        f"{border} > income",
        f"income < {border}.0",
        f"income - {border} >= 0",
        f"income / {border} >= 1",
    ]
    numbers = [
        f"count(*) FILTER (WHERE {condition})" for condition in conditions
    ] + [f"sum(CASE WHEN {condition} THEN income ELSE 0 END)" for condition in conditions] + [
        f"sum(greatest(income - {border}, 0))", f"sum(least(income, {border}))", f"sum(income // {border})", f"sum(abs(income - {border}))",
        f"sum(sign(income - {border}))", f"sum(power(income / {border}, 100))", f"sum(1 / (1 + exp(income - {border})))",
        f"sum(ln(greatest(income - {border}, 1)))", f"sum(sqrt(income - {border}))", f"sum(income % {border})",
    ]  # fmt: skip
    for number in numbers:
        with pytest.raises(Refused):
            guarded.sql(f"SELECT {number} AS x FROM people WHERE town = 7")


PRODUCTS = 20


def test_each_product_with_another_measure_is_another_draw(show: Show) -> None:
    """Of a table with twenty other measures that are known, and with bounds that are hardly wider than the amounts."""
    known = ", ".join(f"CASE WHEN house = 0 THEN 1000 ELSE 1 END AS m{j}" for j in range(PRODUCTS))
    names = [f"m{j}" for j in range(PRODUCTS)]
    bounds = ", ".join(f"'{name}': [1, 1000]" for name in names)
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(f"""CREATE TABLE people AS SELECT town * 10 + house AS person, town, house, {known},
            CASE WHEN house = 0 THEN 1500 + (town * 7919 + 5) % 9973 ELSE 300 + (town * 31 + house * 7919) % 1200 END::INTEGER AS income
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        con.execute(f"""FROM sdc_protect('people', unit := 'person', dimensions := ['town', 'house'],
            measures := {["income", *names]}, bounds := {{'income': [1, 12000], {bounds}}})""").fetchall()
        asked = guard(con)
        told = {
            number: by_town(asked, f"sum({number})") for number in ["income", *(f"income * {name}" for name in names)]
        }
        listed = "SELECT list(income ORDER BY house) FROM people GROUP BY town ORDER BY town"
        amounts = np.array(con.execute(listed).fetchall())[:, 0, :].astype(float)
    exact, friends = amounts[:, 0], amounts[:, 1:]
    candidates = np.arange(100.0, 12_500.0, 2)
    largest = np.maximum(candidates[None, :], friends.max(axis=1)[:, None])
    left = told.pop("income")[:, None] - friends.sum(axis=1)[:, None]
    loss = ((left - candidates) / (0.105 * largest)) ** 2 / 2 + np.log(largest)
    hits = []
    for products in range(PRODUCTS + 1):
        if products:
            left = told[f"income * m{products - 1}"][:, None] - friends.sum(axis=1)[:, None]
            loss = loss + ((left - candidates * 1000) / (0.105 * 12_000_000)) ** 2 / 2
        hits.append(int((np.abs(candidates[np.argmin(loss, axis=1)] - exact) <= 0.05 * exact).sum()))
    few = {products: hits[products] for products in (0, 1, 4, 10, 20)}
    show(f"an income to within 5 %, of {TARGETS}, by its sum and so many products with other measures: {few}")
    assert hits[0] < hits[4] < hits[20] <= 85, "as so many sums of different friends tell"


@pytest.mark.parametrize(
    ("kind", "decimals", "people"), [("DOUBLE", 4, 7), ("DOUBLE", 12, 7), ("FLOAT", 5, 150), ("DOUBLE", 12, 600)]
)
def test_decimals_beyond_the_fourth_make_no_other_noise_where_rows_repeat(
    show: Show, kind: str, decimals: int, people: int
) -> None:
    """Sums of floating-point numbers are made on a grid of four decimals, and so are the keys of their noise: rows are
    put on it one by one, or the sum of each number of copies would have another key, of 600 people nearly always."""
    towns, copies = 20, 16
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(f"""CREATE TABLE people AS SELECT i AS person, sdc_record_key(i) AS record_key, i // {people} AS town,
                round(sqrt(100 + i * 7919 % 900) * 100, {decimals})::{kind} AS income FROM range({people * towns}) numbers(i);
            CREATE TABLE visits AS SELECT person, record_key, nth FROM people, range({copies}) visits(nth)""")
        for name, more in (("people", "['town'], measures := ['income']"), ("visits", "['nth']")):
            policy = f"'{name}', unit := 'person', dimensions := {more}, population := 'people'"
            con.execute(f"FROM sdc_protect({policy})").fetchall()
        asked = guard(con)
        exact = np.array(con.execute("SELECT sum(income) FROM people GROUP BY town ORDER BY town").fetchall())[:, 0]
        alone = "SELECT town, sum(income) AS x FROM people GROUP BY town"
        once = {row["town"]: row["x"] for row in asked.sql(alone).to_pylist()}
        errors = []
        for visits in range(1, copies + 1):
            joined = f"FROM people JOIN visits USING (person) WHERE nth < {visits}"
            query = f"SELECT town, sum(income) AS x {joined} GROUP BY town"
            found = {row["town"]: row["x"] / visits for row in asked.sql(query).to_pylist()}
            errors.append(np.array([found[town] for town in range(towns)]) - exact)
            if visits == 1:
                assert found == once
            by_unit = f"SELECT town, person, sum(income) AS income {joined} GROUP BY ALL"
            with_subquery = asked.sql(f"SELECT town, sum(income) AS x FROM ({by_unit}) GROUP BY town").to_pylist()
            assert {row["town"]: row["x"] / visits for row in with_subquery} == found
    one, mean = np.std(errors[0]), np.std(np.mean(errors[1:], axis=0))
    show(
        f"{people} people, {kind} with {decimals} decimals: the error of a sum {one:.0f}, of the mean of {copies - 1} sums "
        f"of repeated rows {mean:.0f}"
    )
    assert mean >= 0.95 * one


def test_what_is_nothing_on_the_grid_has_one_noise_too() -> None:
    """Amounts of less than half of the last decimal: their people stand behind a sum in all forms, or in none."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""CREATE TABLE people AS SELECT i AS person, sdc_record_key(i) AS record_key, i // 40 AS town,
                CASE WHEN i % 3 = 0 THEN 1e-5 ELSE 1 + i % 97 END::DOUBLE AS income FROM range(2000) numbers(i);
            CREATE TABLE visits AS SELECT person, record_key, nth FROM people, range(4) visits(nth)""")
        for name, more in (("people", "['town'], measures := ['income']"), ("visits", "['nth']")):
            policy = f"'{name}', unit := 'person', dimensions := {more}, population := 'people'"
            con.execute(f"FROM sdc_protect({policy})").fetchall()
        asked = guard(con)
        joined = "FROM people JOIN visits USING (person) WHERE nth < 1"
        forms = [
            "SELECT town, sum(income) AS x FROM people GROUP BY town ORDER BY town",
            f"SELECT town, sum(income) AS x {joined} GROUP BY town ORDER BY town",
            f"SELECT town, sum(x) AS x FROM (SELECT town, person, sum(income) AS x {joined} GROUP BY ALL) GROUP BY town "
            "ORDER BY town",
        ]
        found = [asked.sql(form) for form in forms]
        assert found[0].num_rows == 50
        assert found[0] == found[1] == found[2]
