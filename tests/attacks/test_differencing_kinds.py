"""Attacks on a firm, and on a person, in a table of jobs that has both as units.

Two registers that differ in one firm, or one person: where persons are the only units, the number of jobs of a firm is
found to within the noise of a few persons; with firms as units, too, the noise is in proportion to the firm itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import duckdb
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, guard

Show = Callable[[str], None]
FIRMS, TARGETS = 400, 60
assert show  # a fixture


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Towns with six firms each, of 50 to 250 persons; a third of the persons have a job in two firms of the town."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE firms AS SELECT i AS firm_id, i // 6 AS town, i % 6 AS nth, 50 + i * i * 31 % 201 AS size FROM range({FIRMS}) t(i);
            CREATE TABLE jobs AS
            SELECT firm_id * 1000 + p AS person_id, firm_id, town, nth, (900 + (firm_id * 31 + p * 7919) % 900)::INTEGER AS wage
            FROM firms, range(250) persons(p) WHERE p < size
            UNION ALL SELECT (firm_id - 1) * 1000 + p, firm_id, town, nth, 800 FROM firms, range(0, 50, 3) persons(p) WHERE nth > 0;
        """)
        for unit in ("person", "firm"):
            connection.execute(
                f"FROM sdc_add_record_key('jobs', unit := '{unit}_id', record_key := '{unit}_key')"
            ).fetchall()
        columns = "dimensions := ['town', 'nth'], measures := ['wage']"
        connection.execute(
            f"FROM sdc_protect('jobs', units := ['person_id', 'firm_id'], record_key := ['person_key', 'firm_key'], {columns})"
        ).fetchall()
        connection.execute(
            f"FROM sdc_protect('jobs', unit := 'person_id', record_key := 'person_key', {columns}, role := 'of persons')"
        ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


def differences(guarded: Guard, number: str) -> list[float]:
    """Of each town the number of all firms, less that of all but the first."""
    found = guarded.sql(
        f"SELECT town, {number} AS every, {number} FILTER (nth > 0) AS others FROM jobs WHERE town < {TARGETS} "
        "GROUP BY town ORDER BY town"
    ).to_pylist()
    told = {row["town"]: float(row["every"] - row["others"]) for row in found if None not in row.values()}
    return [told.get(town, math.inf) for town in range(TARGETS)]  # some are published as nobody


@pytest.mark.parametrize("number", ["count(*)", "sum(wage)", "count(DISTINCT person_id)"])
def test_a_firm_is_not_the_difference_of_two_answers(
    con: duckdb.DuckDBPyConnection, guarded: Guard, number: str, show: Show
) -> None:
    """How many jobs or wages the firm has, to within a tenth; guessing takes the median firm."""
    true = [
        float(every - others)
        for every, others in con.execute(
            f"SELECT {number}, {number} FILTER (nth > 0) FROM jobs WHERE town < {TARGETS} GROUP BY town ORDER BY town"
        ).fetchall()
    ]
    guess = sorted(true)[TARGETS // 2]

    def near(found: list[float]) -> int:
        return sum(abs(one - of) <= of / 10 for one, of in zip(found, true, strict=True))

    alone, both, guessed = (
        near(differences(guard(con, role="of persons"), number)),
        near(differences(guarded, number)),
        near([guess] * TARGETS),
    )
    show(
        f"{number}, of {TARGETS} firms to within a tenth: guessing {guessed}, of persons {alone}, of persons and firms {both}"
    )
    assert alone > TARGETS * 0.9
    assert both < guessed + TARGETS * 0.25


def test_a_firm_whose_persons_stay_changes_the_noise(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    """The same persons, with and without second jobs in a firm: with one noise the difference would be exact."""
    query = "SELECT count(DISTINCT person_id) AS persons FROM jobs WHERE town = {} AND (nth < 2 {})"
    same = 0
    for town in range(20):
        wide, narrow = (query.format(town, more) for more in ("OR (nth = 2 AND town < 0)", ""))
        assert guarded.sql(wide).to_pylist() == guarded.sql(narrow).to_pylist()  # one set of units, in other words
        both = "SELECT count(DISTINCT person_id) AS n FROM jobs WHERE town = {} AND nth <= 1"
        second = con.execute(f"SELECT count(*) FROM jobs WHERE town = {town} AND nth = 1 AND person_id // 1000 % 6 = 0")
        assert second.fetchall() == [(17,)]
        same += (
            guarded.sql(both.format(town)).to_pylist() == guarded.sql(both.format(town) + " AND nth < 1").to_pylist()
        )
    assert same < 3


def test_whether_a_person_is_there_does_not_follow(guarded: Guard, con: duckdb.DuckDBPyConnection, show: Show) -> None:
    """Twins: registers with and without one person; both numbers are spread over more than the person."""
    jobs = con.execute("SELECT count(*) FROM jobs WHERE town = 0").fetchall()[0][0]
    con.execute("CREATE TABLE twin AS FROM jobs WHERE town < 60 AND NOT (nth = 0 AND person_id % 1000 = 1)")
    con.execute(
        "FROM sdc_protect('twin', units := ['person_id', 'firm_id'], record_key := ['person_key', 'firm_key'], "
        "dimensions := ['town', 'nth'], measures := ['wage'])"
    ).fetchall()
    one = guard(con)
    count = "SELECT count(*) AS n FROM {} WHERE town < 60 GROUP BY town ORDER BY town"
    pairs = zip(one.sql(count.format("jobs")).to_pylist(), one.sql(count.format("twin")).to_pylist(), strict=True)
    larger = sum(with_["n"] > without["n"] for with_, without in pairs)
    show(f"of 60 registers of some {jobs} jobs {larger} are larger with one person more")
    assert 18 <= larger <= 42


def test_min_units_are_no_oracle(con: duckdb.DuckDBPyConnection) -> None:
    """A group of 3 firms and one of 2, by `min_units := 3`: whether there is a number does not tell them apart."""
    con.execute(
        "FROM sdc_protect('jobs', units := ['person_id', 'firm_id'], record_key := ['person_key', 'firm_key'], "
        "dimensions := ['town', 'nth'], measures := ['wage'], min_units := {'person_id': 1, 'firm_id': 3}, role := 'few')"
    ).fetchall()
    one = guard(con, role="few")
    shown = [
        sum(
            row["n"] is not None
            for row in one.sql(f"SELECT town, count(*) FILTER (nth < {firms}) AS n FROM jobs GROUP BY town").to_pylist()
        )
        for firms in (2, 3)
    ]
    towns = con.execute("SELECT count(DISTINCT town) FROM jobs").fetchall()[0][0]
    assert 0 < shown[0] < towns
    assert 0 < shown[1] < towns
