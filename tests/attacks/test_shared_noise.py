"""Attacks on what published numbers have in common: noise that one answer tells of another, and many draws for one value.

Whoever knows the largest contributions of a cell knows the noise but for one draw. Two numbers that share it are rid of
it; a number that comes with several draws is their average. Each attack runs over every cell at once, and prints its
success beside that of numbers which share nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, Refused, guard

Show = Callable[[str], None]
CELLS, MONTHS = 120, 4


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """People, 30 in a cell, with two incomes; and the same people with a row a month, of which some are missing."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS
            SELECT i AS person, i % {CELLS} AS cell, i // 7 % 2 AS half, i // 11 % 3 AS third,
                20000 + i * 7919 % 9973 AS wage, 5000 + i * 104729 % 8191 AS rent FROM range({30 * CELLS}) t(i);
            CREATE TABLE months AS
            SELECT person, cell, month, 100 + (person * 31 + month * 7919) * 104729 % 887 AS spent, rent
            FROM people, range({MONTHS}) t(month) WHERE month < 2 OR person * 13 % 29 > 1;
        """)
        for table, dimensions, measures in (
            ("people", ["cell", "half", "third"], ["wage", "rent"]),
            ("months", ["cell", "month"], ["spent", "rent"]),
        ):
            connection.execute(f"FROM sdc_add_record_key('{table}', unit := 'person')").fetchall()
            connection.execute(
                f"FROM sdc_protect('{table}', unit := 'person', dimensions := {dimensions}, measures := {measures}, "
                "population := 'persons')"
            ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


def answers(guarded: Guard, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = guarded.sql(query).to_pylist()
    return rows


def truths(con: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    cursor = con.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, map(float, row), strict=True)) for row in cursor.fetchall()]


def alike(one: list[float], other: list[float]) -> int:
    """In how many cells two noises are the same."""
    return sum(abs(a - b) < 1e-6 for a, b in zip(one, other, strict=True))


def by_chance(one: list[float], other: list[float]) -> float:
    """In how many they would be if they had nothing to do with each other."""
    return statistics.fmean(alike(one, other[shift:] + other[:shift]) for shift in range(1, len(other)))


def draws(con: duckdb.DuckDBPyConnection, guarded: Guard, what: str, largest: str, source: str) -> list[float]:
    """The noise of each cell in units of a tenth of the largest contribution: what somebody knows who knows the cell."""
    published = answers(guarded, f"SELECT cell, {what} AS v FROM {source} GROUP BY cell ORDER BY cell")
    true = truths(con, f"SELECT cell, {what} AS v, {largest} AS t FROM {source} GROUP BY cell ORDER BY cell")
    return [(a["v"] - b["v"]) / (0.1 * b["t"]) for a, b in zip(published, true, strict=True)]


PAIRS = {
    "two measures": (("sum(wage)", "max(wage)", "people"), ("sum(rent)", "max(rent)", "people")),
    "two months": (
        ("sum(spent)", "max(spent)", "(FROM months WHERE month = 0)"),
        ("sum(spent)", "max(spent)", "(FROM months WHERE month = 1)"),
    ),
    "two tables": (("sum(wage)", "max(wage)", "people"), ("sum(spent)", "max(spent)", "(FROM months WHERE month = 0)")),
}


@pytest.mark.parametrize("name", list(PAIRS))
def test_the_noise_of_two_sums_does_not_cancel(
    con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show, name: str
) -> None:
    """sum(a) / top(a) - sum(b) / top(b) would be without noise."""
    first, second = (draws(con, guarded, *each) for each in PAIRS[name])
    found, usual = alike(first, second), by_chance(first, second)
    show(f"{name}: the noise of one sum is that of the other in {found} of {CELLS} cells, by chance in {usual:.1f}")
    assert found <= 2 * usual + 5


def test_the_noise_of_a_variance_is_not_that_of_the_sum(
    con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show
) -> None:
    sums = draws(con, guarded, "sum(wage)", "max(wage)", "people")
    published = answers(
        guarded, "SELECT cell, variance(wage) * (count(*) - 1) AS v FROM people GROUP BY cell ORDER BY cell"
    )
    true = truths(
        con,
        "SELECT var_pop(wage) * count(*) AS v, greatest(max(wage) - avg(wage), avg(wage) - min(wage)) ** 2 AS t "
        "FROM people GROUP BY cell ORDER BY cell",
    )
    spreads = [round((a["v"] - b["v"]) / (0.1 * b["t"]), 4) for a, b in zip(published, true, strict=True)]
    sums = [round(draw, 4) for draw in sums]
    found, usual = alike(sums, spreads), by_chance(sums, spreads)
    show(f"sum and variance: the same noise in {found} of {CELLS} cells, by chance in {usual:.1f}")
    assert found <= 2 * usual + 5


def test_the_noise_of_a_count_tells_nothing_about_that_of_a_sum(
    con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show
) -> None:
    """One key behind both: who knows the true count knows its noise, and what the noise of a sum is beside that one."""
    counts = [
        row["n"] - 30 for row in answers(guarded, "SELECT cell, count(*) AS n FROM people GROUP BY cell ORDER BY cell")
    ]
    expected = {
        row["v"]: row["m"]
        for row in truths(
            con,
            "SELECT sdc_ckm_count(30, k) - 30 AS v, avg(sdc_ckm_sum(1000, [10], k) - 1000) AS m "
            "FROM (SELECT i * 9973 AS k FROM range(10000) t(i)) GROUP BY v",
        )
    }

    def left(sums: list[float]) -> float:
        """What is left of the noise once that which goes with the noise of the count is subtracted."""
        beside = [draw - expected[count] for draw, count in zip(sums, counts, strict=True)]
        return statistics.fmean(map(abs, beside)) / statistics.fmean(map(abs, sums))

    guarded_sums = draws(con, guarded, "sum(wage)", "max(wage)", "people")
    plain = truths(
        con,
        "SELECT (sdc_sum(wage, record_key) - sum(wage)) / (0.1 * max(wage)) AS v FROM people GROUP BY cell ORDER BY cell",
    )
    one, other = left(guarded_sums), left([row["v"] for row in plain])
    show(f"the noise of a sum beside a known count: {one:.0%} is left, of sdc_sum {other:.0%}")
    assert one > 0.95
    assert other < one


WORDINGS = (
    "SELECT sum(wage) FROM people WHERE {0}",
    "SELECT sum(wage * 1) FROM people WHERE {0}",
    "SELECT sum(2 * wage) / 2 FROM people WHERE {0}",
    "SELECT -sum(-wage) FROM people WHERE {0}",
    "SELECT sum(wage / 4) * 4 FROM people WHERE {0}",
    "SELECT sum(wage + wage) / 2 FROM people WHERE {0}",
    "SELECT sum(3 * wage - wage) / 2 FROM people WHERE {0}",
    "SELECT sum(wage::DOUBLE) FROM people WHERE {0}",
    "SELECT sum(CAST(wage AS HUGEINT)) FROM people WHERE {0}",
    "SELECT sum(CAST(wage AS DECIMAL(18, 3))) FROM people WHERE {0}",
    "SELECT fsum(wage) FROM people WHERE {0}",
    "SELECT sum(coalesce(wage, 0)) FROM people WHERE {0}",
    "SELECT sum(wage) FILTER (WHERE {0}) FROM people",
    "SELECT sum(CASE WHEN {0} THEN wage END) FROM people",
    "SELECT sum(CASE WHEN NOT ({0}) THEN 0 ELSE wage END) FROM people",
    "SELECT sum(wage * CASE WHEN {0} THEN 1 ELSE 1 END) FROM people WHERE {0}",
    "SELECT sum(x) FROM (SELECT wage AS x, cell, half FROM people) WHERE {0}",
    "WITH c AS (SELECT wage AS rent, rent AS wage, cell, half FROM people) SELECT sum(rent) FROM c WHERE {0}",
    "SELECT s FROM (SELECT {0} AS chosen, sum(wage) AS s FROM people GROUP BY ALL) WHERE chosen",
    "SELECT s FROM (SELECT {0} AS chosen, sum(wage) AS s FROM people GROUP BY CUBE (chosen)) WHERE chosen",
    "SELECT sum(wage) FROM seen WHERE {0}",
    "SELECT sum(wage) FROM halved WHERE {0}",
    "SELECT sum(wage) FROM people JOIN months USING (person) WHERE month = 0 AND {1}",
)


def test_averaging_over_wordings_of_a_sum(con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show) -> None:
    """A measure over the same records has one noise: scaled, renamed, cast, filtered, in views, joined, repeated."""
    con.execute(
        "CREATE OR REPLACE VIEW seen AS SELECT person, cell, half, wage::DOUBLE AS wage, record_key FROM people"
    )
    con.execute(
        "CREATE OR REPLACE TABLE halved AS SELECT person, cell, half, wage, record_key FROM people WHERE half = 1"
    )
    for view in ("seen", "halved"):
        con.execute(
            f"FROM sdc_protect('{view}', unit := 'person', dimensions := ['cell', 'half'], measures := ['wage'])"
        ).fetchall()
    told = at_once = 0  # a draw of 0 tells the sum, whether one asks once or often
    for cell in (3, 50, 77, 101):
        found = [
            row
            for wording in WORDINGS
            for row in guarded.sql(
                wording.format(f"cell = {cell} AND half = 1", f"people.cell = {cell} AND half = 1")
            ).column(0).to_pylist()
        ]  # fmt: skip
        assert len(found) == len(WORDINGS)
        assert found == pytest.approx([found[0]] * len(found), rel=1e-9)
        true = con.execute(f"SELECT sum(wage) FROM people WHERE cell = {cell} AND half = 1").fetchall()[0][0]
        told += abs(statistics.fmean(found) - true) < 1
        at_once += abs(found[0] - true) < 1
    show(f"averaging over {len(WORDINGS)} wordings of a sum: {told} of 4 told, {at_once} by one")
    assert told == at_once < 4


def on_grids(number: float) -> set[float]:
    """What a number can be on a grid of 1, 2 or 5 times a power of ten."""
    grids = (one * 10.0**power for power in range(-3, 7) for one in (1, 2, 5))
    return {float(f"{math.floor(number / grid + 0.5) * grid:.12g}") for grid in grids}


def test_a_sum_that_is_rounded_otherwise_tells_no_more_digits(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    """A mean, and the sum over two months in which everybody has a row, are made of the published sum and nothing else.

    If each were rounded by itself, they would tell between them more digits of the noise than a sum has.
    """
    asked = (
        "SELECT people.cell, sum(wage) AS s, avg(wage) AS m, count(wage) AS n FROM people{} GROUP BY ALL ORDER BY ALL"
    )
    once, joined, twice = (
        answers(guarded, asked.format(joined))
        for joined in (
            "",
            " JOIN months USING (person) WHERE month = 0",
            " JOIN months USING (person) WHERE month < 2",
        )
    )
    largest = truths(con, "SELECT cell, max(wage) AS t FROM people GROUP BY cell ORDER BY cell")
    different = 0
    for row, same, two, contribution in zip(once, joined, twice, largest, strict=True):
        assert (same["s"], same["m"]) == (row["s"], row["m"])
        assert two["s"] in on_grids(2 * row["s"])
        assert abs(two["s"] - 2 * row["s"]) <= contribution["t"] / 8
        for group in (row, two):
            assert group["m"] in on_grids(group["s"] / group["n"])
            assert abs(group["m"] * group["n"] - group["s"]) <= contribution["t"] / 4
        different += two["s"] != 2 * row["s"]
    assert len(once) == CELLS
    assert different  # the second grid is one of its own


def test_averaging_over_wordings_of_other_numbers(guarded: Guard) -> None:
    """Counts, shares and spreads: one number each, whatever they are called and wherever they are asked."""
    for group in (
        ("count(*)", "count(1)", "count(wage)", "count(DISTINCT person)", "count_if(true)", "sum(1)", "sum(half * 0 + 1)"),
        ("avg(CASE WHEN half = 1 THEN 1 ELSE 0 END)", "sum((half = 1)::INTEGER) / count(*)",
         "count(*) FILTER (half = 1) / count(*)", "avg((half = 1)::INTEGER)"),
        ("variance(wage)", "var_samp(wage)", "stddev(wage) ** 2", "var_pop(wage) * count(*) / (count(*) - 1)",
         "variance(wage) FILTER (half < 2)", "variance(CASE WHEN half < 2 THEN wage END)"),
        ("median(wage)", "quantile_cont(wage, 0.5)", "quantile_disc(wage, 0.5)"),
    ):  # fmt: skip
        row = answers(guarded, f"SELECT {', '.join(f'{what} AS a{i}' for i, what in enumerate(group))} FROM people")[0]
        values = list(row.values())
        assert values == pytest.approx([values[0]] * len(values), rel=1e-6), group


def test_rows_of_the_same_people_do_not_share_their_noise(
    con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show
) -> None:
    """How many rows of a month are there? The difference of all rows and all others, which are rows of the same people."""
    told, usual = 0, 0
    for month in (2, 3):
        asked = (
            f"SELECT cell, count(*) - count(*) FILTER (month <> {month}) AS n FROM months GROUP BY cell ORDER BY cell"
        )
        direct = f"SELECT cell, count(*) FILTER (month = {month}) AS n FROM months GROUP BY cell ORDER BY cell"
        true = truths(con, direct)
        told += sum(a["n"] == b["n"] for a, b in zip(answers(guarded, asked), true, strict=True))
        usual += sum(a["n"] == b["n"] for a, b in zip(answers(guarded, direct), true, strict=True))
    show(f"differences of rows of the same people: {told} of {2 * CELLS} exact; one answer taken at its word: {usual}")
    assert told <= usual + 12


def test_a_row_is_not_the_difference_of_two_sums(con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show) -> None:
    """The sums of the same people with and without one of their months: the difference had no noise at all."""
    asked = "SELECT cell, sum(spent) - sum(spent) FILTER (month <> 3) AS v FROM months GROUP BY cell ORDER BY cell"
    true = truths(con, "SELECT cell, sum(spent) FILTER (month = 3) AS v FROM months GROUP BY cell ORDER BY cell")
    told = sum(abs(a["v"] - b["v"]) < 1 for a, b in zip(answers(guarded, asked), true, strict=True))
    show(f"the sum of a month by difference: {told} of {CELLS} exact")
    assert told <= CELLS // 20


def test_as_many_rows_of_everybody_is_one_question(guarded: Guard) -> None:
    """Months in which everybody has a row: their number does not give more than two draws for the number of people."""
    sums, rows = [], []
    for months in ((0,), (1,), (0, 1)):
        listed = ", ".join(map(str, months))
        row = answers(
            guarded, f"SELECT sum(rent) AS s, count(*) AS n FROM months WHERE cell = 5 AND month IN ({listed})"
        )[0]
        sums.append(row["s"])
        rows.append(row["n"] / len(months))
    assert sums[0] == sums[1]
    assert sums[2] in on_grids(2 * sums[0])
    assert rows[0] == rows[1]


def test_a_quantile_has_no_draw_of_its_own(guarded: Guard) -> None:
    """It is NULL where fewer than five published records lie on one side: that tells the published count, and no other."""
    for table, most, measure in (("people", 1, "wage"), ("months", MONTHS, "spent")):
        n = answers(guarded, f"SELECT count({measure}) AS n FROM {table} WHERE cell = 7")[0]["n"]
        edge = 5 * most / n
        shares = [edge * (1 - 1e-6), edge * (1 + 1e-6)]
        asked = ", ".join(f"quantile_cont({measure}, {share:.9f}) AS q{i}" for i, share in enumerate(shares))
        below, above = answers(guarded, f"SELECT {asked} FROM {table} WHERE cell = 7")[0].values()
        assert below is None
        assert above is not None


def test_a_grouping_set_twice_is_no_other_draw(guarded: Guard) -> None:
    """Everybody counted twice, three times, ..: each time with noise of its own, if rows of equal sets were put together."""
    for source in ("people", "months"):
        for group in (
            "GROUPING SETS ((cell), (cell))",
            "ROLLUP (cell, cell)",
            "CUBE (cell, (cell))",
            "ROLLUP (cell), ROLLUP (cell)",
        ):
            plain = {row["cell"]: row for row in answers(
                guarded, f"SELECT cell, count(*) AS n, sum(rent) AS s, sum(cell) AS f FROM {source} GROUP BY ROLLUP (cell)"
            )}  # fmt: skip
            try:
                rows = answers(
                    guarded,
                    f"SELECT cell, count(*) AS n, sum(rent) AS s, sum(cell) AS f FROM {source} GROUP BY {group}",
                )
            except Refused:
                assert source == "months"
                continue
            assert all(row == plain[row["cell"]] for row in rows)


def test_margins_added_up(con: duckdb.DuckDBPyConnection, guarded: Guard, show: Show) -> None:
    """A total is also the sum of its parts, which are other cells: what all ways together are worth is part of the method.

    Each way has the noise of all its parts, so the average of three ways is little better than the total itself.
    """
    rows = answers(
        guarded,
        "SELECT cell, half, third, count(*) AS n FROM people GROUP BY GROUPING SETS ((cell), (cell, half), (cell, third)) ORDER BY ALL",
    )
    direct, averaged = [], []
    for cell in range(CELLS):
        mine = [row for row in rows if row["cell"] == cell]
        total = next(row["n"] for row in mine if row["half"] is None and row["third"] is None)
        ways = [total, *(sum(row["n"] for row in mine if row[name] is not None) for name in ("half", "third"))]
        direct.append(abs(total - 30))
        averaged.append(abs(statistics.fmean(ways) - 30))
    one, other = statistics.fmean(direct), statistics.fmean(averaged)
    show(f"counts are off by {one:.2f}, by {other:.2f} if margins are added up and averaged")
    assert other > 0.6 * one
