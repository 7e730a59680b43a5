"""Attacks on sums of profits and losses: values of both signs come to nearly nothing beside people who are known.

The noise of `sdc_sum` is no larger than the sum, whose sign it never changes. So the sign of a sum of somebody and people
whose losses are known says which is larger, and a few such questions close in on the profit. The attack is made twice: on
sums with that noise, as `sdc_sum` gives them, and on those of the guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import guard

Show = Callable[[str], None]
Asked = Callable[[str], float | None]
TARGETS, FRIENDS, QUESTIONS = 40, 10, 8
MOST = 10_000


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Towns of one target, with a profit, and friends, all of whom have losses."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE firms AS
            SELECT town * 100 + house AS firm, town, house,
                CASE WHEN house = 0 THEN 500 + (town * 7919 + 3) % 6101 ELSE -(40 << (house - 1)) // 5 - town % 7 END::INTEGER AS profit
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house);
        """)
        connection.execute("FROM sdc_add_record_key('firms', unit := 'firm')").fetchall()
        connection.execute(
            "FROM sdc_protect('firms', unit := 'firm', dimensions := ['town', 'house'], measures := ['profit'])"
        ).fetchall()
        yield connection


@pytest.fixture(params=["sdc_sum", "guard"])
def asked(request: pytest.FixtureRequest, con: duckdb.DuckDBPyConnection) -> tuple[str, Asked]:
    guarded = guard(con)

    def plain(condition: str) -> float | None:
        found = con.execute(f"SELECT sdc_sum(profit, record_key) FROM firms WHERE {condition}").fetchall()
        return float(found[0][0])

    def of_guard(condition: str) -> float | None:
        value: float | None = guarded.sql(f"SELECT sum(profit) AS s FROM firms WHERE {condition}").to_pylist()[0]["s"]
        return value

    return request.param, plain if request.param == "sdc_sum" else of_guard


def profits(con: duckdb.DuckDBPyConnection) -> dict[tuple[int, int], int]:
    return {
        (town, house): profit for town, house, profit in con.execute("SELECT town, house, profit FROM firms").fetchall()
    }


def bracket(asked: Asked, truth: dict[tuple[int, int], int], town: int) -> tuple[float, float]:
    """Between which two sums of losses the signs put a profit."""
    chosen = (np.arange(2**FRIENDS)[:, None] >> np.arange(FRIENDS)) & 1
    losses = -(chosen @ np.array([truth[town, house] for house in range(1, FRIENDS + 1)]))
    low, high = 0.0, float(MOST)
    for _ in range(QUESTIONS):
        nearest = int(np.abs(losses - (low + high) / 2).argmin())
        houses = [0, *(1 + np.flatnonzero(chosen[nearest]))]
        answer = asked(f"town = {town} AND house IN ({', '.join(map(str, houses))})")
        if not answer:
            continue
        low, high = (max(low, losses[nearest]), high) if answer > 0 else (low, min(high, losses[nearest]))
    return low, high


def test_signs_do_not_close_in_on_a_profit(
    con: duckdb.DuckDBPyConnection, asked: tuple[str, Asked], show: Show
) -> None:
    truth = profits(con)
    sure = near = 0
    for town in range(TARGETS):
        low, high = bracket(asked[1], truth, town)
        sure += low <= truth[town, 0] <= high
        near += abs((low + high) / 2 - truth[town, 0]) <= 0.05 * truth[town, 0]
    show(f"{asked[0]}: {QUESTIONS} signs: the profit is where they say for {sure} of {TARGETS}, {near} within 5 %")
    if asked[0] == "sdc_sum":
        assert (sure, near >= 30) == (TARGETS, True)
    else:
        assert sure <= 30
        assert near <= 20


def test_a_sum_that_comes_to_nothing_has_noise(con: duckdb.DuckDBPyConnection, show: Show) -> None:
    """A sum of 0 was published as 0 and was thereby known to be."""
    with sdcduck.connect(secret="the secret of the tests") as other:
        other.execute(
            "CREATE TABLE firms AS SELECT i AS firm, i // 2 AS pair, (1000 + i // 2) * (1 - 2 * (i % 2)) AS profit FROM range(200) t(i)"
        )
        other.execute("FROM sdc_add_record_key('firms', unit := 'firm')").fetchall()
        other.execute(
            "FROM sdc_protect('firms', unit := 'firm', dimensions := ['pair'], measures := ['profit'])"
        ).fetchall()
        found = guard(other).sql("SELECT sum(profit) AS s FROM firms GROUP BY pair").column("s").to_pylist()
    zeros = sum(value == 0 for value in found)
    show(f"{zeros} of {len(found)} sums that are 0 are published as 0")
    assert len(found) > 80
    assert zeros <= len(found) // 3
    assert 50 <= float(np.std(found)) <= 200
