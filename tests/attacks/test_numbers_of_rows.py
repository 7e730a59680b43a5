"""Attacks on how many rows somebody has: visits of people, some of whom come once and some twenty times.

Counts of rows are whole numbers and have no grid: their noise is so many units times the rows of that unit which has most,
that of a sum, and up to half of these rows. Without the last the counts lay in heaps so many rows apart as the target has,
and sixteen questions told 98 of 100 numbers, four questions 55. The attack knows all laws, and how often the friends of its
target came, and takes what is likeliest. Beside it what the same questions tell under rounding, which rounds rows.

Whoever chooses which rows of the target are counted needs no laws: where nobody has more than one row, the numbers of rows and
of units are one number, and a quantile may be shown that is NULL where somebody has two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import duckdb
import numpy as np
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, guard

Show = Callable[[str], None]
TARGETS, FRIENDS, MOST = 100, 4, 20
NUMBERS = range(1, MOST + 1)
FORMS = {
    "one question": [()],
    "four questions": [(), (1,), (2,), (1, 2)],
    "sixteen questions": [
        chosen for size in range(FRIENDS + 1) for chosen in combinations(range(1, FRIENDS + 1), size)
    ],
}
"""The friends that are counted with the target; a friend came as often as the number says."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Towns of one target, whose number of visits is not known, and four friends, who came once, twice, .."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS
            SELECT town * 10 + house AS person, town, house,
                CASE WHEN house = 0 THEN 1 + (town * 7919 + 3) % 101 % {MOST} ELSE house END::INTEGER AS visits
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house);
            CREATE TABLE visits AS SELECT person, town, house, (100 + (person * 31 + nth * 7919) % 900)::INTEGER AS cost
            FROM people, range({MOST}) numbers(nth) WHERE nth < visits;
        """)
        connection.execute("FROM sdc_add_record_key('visits', unit := 'person')").fetchall()
        columns = "unit := 'person', dimensions := ['town', 'house']"
        for role, how in (
            ("cell_key", "measures := ['cost'], method := 'cell_key'"),
            ("rounding", "method := 'rounding', base := 5"),
        ):
            connection.execute(f"FROM sdc_protect('visits', {columns}, {how}, role := '{role}')").fetchall()
        yield connection


def truth(con: duckdb.DuckDBPyConnection) -> list[int]:
    found = con.execute("SELECT visits FROM people WHERE house = 0 ORDER BY town").fetchall()
    return [visits for (visits,) in found]


def answers(one: Guard, friends: Sequence[int]) -> dict[int, int]:
    """The published numbers of visits of the target and these friends, by town."""
    houses = ", ".join(map(str, (0, *friends)))
    rows = one.sql(f"SELECT town, count(*) AS n FROM visits WHERE house IN ({houses}) GROUP BY town").to_pylist()
    return {row["town"]: row["n"] for row in rows}


class Attack:
    """What each number of visits makes of a question, and how likely: by the laws, which everybody can read."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        table = """SELECT i, v, sum(ub - lb) / 1e8 FROM sdc.ptable_intervals WHERE name = 'default' GROUP BY ALL"""
        self.counts: dict[int, list[tuple[float, float]]] = {}
        for units, noise, chance in con.execute(table).fetchall():
            self.counts.setdefault(int(units), []).append((noise, chance))
        # The noise of a sum and the share of the largest unit's rows come from one key, of which these are as good as any.
        keys = np.arange(5, 10**8, 10**5)
        edges, steps = (
            np.array(column)
            for column in zip(*con.execute(
                """SELECT ub, v FROM sdc.ptable_intervals WHERE name = 'default_magnitude'
                AND i = (SELECT max(i) FROM sdc.ptable_intervals WHERE name = 'default_magnitude') ORDER BY ub"""
            ).fetchall(), strict=True)
        )  # fmt: skip
        self.of_sum = 0.1 * steps[np.searchsorted(edges, keys, side="right")]
        self.share = keys / 99_999_989 - 0.5

    def chances(self, friends: Sequence[int], visits: int) -> dict[int, float]:
        """Of each answer, if the target came so often."""
        most, total, units = max(visits, *friends, 0), visits + sum(friends), 1 + len(friends)
        off = most * (self.of_sum + self.share) if most > 1 else np.zeros(1)
        whole = (np.sign(off) * np.floor(np.abs(off) + 0.5)).astype(int)
        found: dict[int, float] = {}
        for noise, chance in self.counts[min(max(self.counts), units)]:
            for shown, times in zip(*np.unique(whole, return_counts=True), strict=True):
                answer = max(0, total + round(most * noise) + int(shown))
                found[answer] = found.get(answer, 0.0) + chance * times / len(whole)
        return found


def likeliest(
    asked: list[dict[int, int]],
    forms: list[tuple[int, ...]],
    chances: dict[tuple[tuple[int, ...], int], dict[int, float]],
) -> list[int]:
    """Of each target, in the order of towns; a group that does not appear is 0."""
    found = []
    for town in range(TARGETS):
        by_number = [
            sum(
                math.log(chances[friends, visits].get(answer.get(town, 0), 0.0) + 1e-9)
                for friends, answer in zip(forms, asked, strict=True)
            )
            for visits in NUMBERS
        ]
        found.append(1 + int(np.argmax(by_number)))
    return found


def rounded(friends: Sequence[int], visits: int) -> dict[int, float]:
    """The same under rounding to multiples of 5."""
    below, above = divmod(visits + sum(friends), 5)
    return {5 * below: 1 - above / 5, **({5 * below + 5: above / 5} if above else {})}


@pytest.mark.parametrize(("name", "most"), [("one question", 20), ("four questions", 40), ("sixteen questions", 85)])
def test_numbers_of_visits(con: duckdb.DuckDBPyConnection, name: str, most: int, show: Show) -> None:
    """Sixteen questions still tell most numbers up to twenty; the bounds keep it from getting worse unseen."""
    forms, exact, laws = FORMS[name], truth(con), {"cell_key": Attack(con).chances, "rounding": rounded}
    hits = {}
    for role, chances in laws.items():
        guarded = guard(con, role=role)
        asked = [answers(guarded, friends) for friends in forms]
        known = {(friends, visits): chances(friends, visits) for friends in forms for visits in NUMBERS}
        found = likeliest(asked, forms, known)
        hits[role] = sum(map(int.__eq__, found, exact))
        near = sum(abs(one - other) <= 2 for one, other in zip(found, exact, strict=True))
        show(
            f"{role}, {name}: {hits[role]} of {TARGETS} numbers of visits (guessing {max(map(exact.count, NUMBERS))}), "
            f"{near} within two"
        )
    assert 5 <= hits["cell_key"] <= most
    if len(forms) == 16:
        assert hits["rounding"] >= 50, "the docs say that rounding is for tables with one row of each unit"


LEAST = range(1, MOST)
"""From which of the target's rows on they are counted: those who have so many have one there."""
ROWS = "(SELECT *, row_number() OVER (PARTITION BY person ORDER BY house) AS nth FROM visits)"


def more_than_one(one: Guard, friends: Sequence[int]) -> dict[int, set[int]]:
    """From which rows on the numbers of rows and of units differ, by town; of the friends the first row is counted."""
    houses = ", ".join(map(str, friends))
    chosen = [f"house = 0 AND nth >= {least} OR house IN ({houses}) AND nth = 1" for least in LEAST]
    asked = ", ".join(
        f"count(*) FILTER (WHERE {rows}) AS r{least}, count(DISTINCT person) FILTER (WHERE {rows}) AS u{least}"
        for least, rows in zip(LEAST, chosen, strict=True)
    )
    answer = one.sql(f"SELECT town, {asked} FROM {ROWS} GROUP BY town").to_pylist()
    return {row["town"]: {least for least in LEAST if row[f"r{least}"] != row[f"u{least}"]} for row in answer}


@pytest.mark.parametrize(("questions", "least"), [(1, 70), (3, 95)])
def test_numbers_of_rows_beside_units(con: duckdb.DuckDBPyConnection, questions: int, least: int, show: Show) -> None:
    """The docs say that these tell nearly all numbers of rows."""
    exact, one = truth(con), guard(con, role="cell_key")
    told = [more_than_one(one, friends) for friends in ((1, 2, 3, 4), (1, 2, 3), (2, 3, 4))[:questions]]
    found = [1 + max((row for rows in told for row in rows.get(town, ())), default=0) for town in range(TARGETS)]
    hits = sum(map(int.__eq__, found, exact))
    show(f"rows beside units, {questions} questions of {2 * len(LEAST)} numbers: {hits} of {TARGETS} numbers of visits")
    assert hits >= least
    assert all(map(int.__le__, found, exact)), "where they differ, somebody has several rows"


def test_what_is_in_a_row(show: Show) -> None:
    """A diagnosis that is in the second row of some, beside the first row of each: they have two rows, or one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(f"""
            CREATE TABLE visits AS SELECT town * 10 + house AS person, town, house, nth,
                CASE WHEN house = 0 AND nth = 2 AND town * 7919 % 101 % 3 = 0 THEN 'rare' ELSE 'common' END AS diagnosis
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house), range(3) numbers(nth)""")
        con.execute("FROM sdc_add_record_key('visits', unit := 'person')").fetchall()
        con.execute(
            "FROM sdc_protect('visits', unit := 'person', dimensions := ['town', 'house', 'nth', 'diagnosis'], min_units := 3)"
        ).fetchall()
        ill = {town for (town,) in con.execute("SELECT town FROM visits WHERE diagnosis = 'rare'").fetchall()}
        answer = guard(con).sql(
            "SELECT town, count(*) AS r, count(DISTINCT person) AS u FROM visits "
            "WHERE house = 0 AND (nth = 0 OR diagnosis = 'rare') OR house > 0 AND nth = 0 GROUP BY town"
        )
    told = {row["town"] for row in answer.to_pylist() if row["r"] != row["u"]}
    show(f"one question: {len(told)} of {len(ill)} diagnoses, {len(told - ill)} wrongly")
    assert told <= ill, "where they differ, somebody has several rows"
    assert len(told) > 0.8 * len(ill), "the docs say that they nearly always do"


SHARES = (0.11, 0.115, 0.12, 0.125, 0.13, 0.18, 0.3, 0.5)
"""Of these, some quantiles of forty people are NULL and some are shown."""


def test_whether_there_is_a_quantile(con: duckdb.DuckDBPyConnection, show: Show) -> None:
    """Beside the first rows of forty friends, nobody with several rows is told from those with one.

    When a quantile was NULL where five units could not have as many rows as the largest one, one share told it of all. The
    people are the same in either case: whether they are among the counted is told by differences, as it is by counts.
    """
    exact, one, least = truth(con), guard(con, role="cell_key"), MOST // 2
    several = [visits > least for visits in exact]
    guessing = max(several.count(True), several.count(False))
    hits = []
    for share in SHARES:
        asked = ", ".join(
            f"quantile_disc(cost, {share}) FILTER (WHERE house = 0 AND town % 10 = {last} AND (nth = 1 OR nth > {least}) "
            f"OR house > 0 AND nth = 1) AS q{last}"
            for last in range(10)
        )
        answer = one.sql(f"SELECT town // 10 AS tens, {asked} FROM {ROWS} GROUP BY tens").to_pylist()
        hidden = {10 * row["tens"] + last: row[f"q{last}"] is None for row in answer for last in range(10)}
        right = sum(hidden[town] == secret for town, secret in enumerate(several))
        hits.append(max(right, TARGETS - right))  # whichever way round tells more, as if somebody knew that
    show(
        f"whether a quantile is NULL: {hits} of {TARGETS} rightly told to have more than {least} visits, guessing {guessing}"
    )
    assert max(hits) <= guessing + 12, (
        "what a count of these people tells, in the better of two ways, by the best of eight shares"
    )
