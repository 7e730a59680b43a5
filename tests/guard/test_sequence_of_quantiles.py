"""Medians, quartiles and spreads under a limit: each is counted as if it told all values of its group exactly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from register_of_people import SECRET, outcome

import sdcduck
from sdcduck.guard import Guard

CREATED = """CREATE TABLE people AS SELECT i AS person_id, i % 4 AS a, CASE WHEN i < 2 THEN 9 ELSE i % 5 END AS b,
    hash(i * 13 + 3) % 10 < 3 AS ill, 1000 + hash(i * 3) % 4000 AS income FROM range(400) t(i)"""
POLICY = """FROM sdc_protect('people', unit := 'person_id', dimensions := ['a', 'b', 'ill'], measures := ['income'],
    min_units := 3, sequence := 'precision', secrets := ['ill'])"""
MEDIAN = "SELECT median(income) AS m FROM people"


@pytest.fixture
def register(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute(CREATED)
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute(POLICY).fetchall()
    return path


@pytest.fixture
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as guard:
        yield guard


def sets(guard: Guard) -> int:
    return int(guard.sql("SHOW sdc_sequence", user="ann").to_pylist()[0]["sets"])


@pytest.mark.parametrize(
    "figure", ["median(income)", "quantile_cont(income, 0.9)", "stddev(income)", "var_pop(income)"]
)
def test_a_group_less_one_person_is_not_looked_at(guard: Guard, figure: str) -> None:
    """Two medians of which one is without a single person: exact numbers would tell what this one has."""
    assert outcome(guard, f"SELECT {figure} FROM people WHERE a = 0") == "answered"
    assert outcome(guard, f"SELECT {figure} FROM people WHERE a = 0 AND b <> 9") == "SDC070"
    assert outcome(guard, f"SELECT {figure} FROM people WHERE a = 0 AND b <> 2") == "answered"
    assert outcome(guard, f"SELECT a, {figure} FROM people GROUP BY a") == "answered"


def test_all_quantiles_of_a_group_are_one_look(guard: Guard) -> None:
    assert outcome(guard, MEDIAN) == "answered"
    told = sets(guard)
    assert outcome(guard, "SELECT quantile_cont(income, [0.1, 0.25, 0.75]), median(income) FROM people") == "answered"
    assert sets(guard) == told
    assert outcome(guard, f"{MEDIAN} WHERE a < 3") == "answered"
    assert sets(guard) > told


def test_what_a_median_teaches_is_known_when_sums_are_asked_for(guard: Guard) -> None:
    """A median is taken to tell the sum exactly, so that a sum over all but one tells her value."""
    assert outcome(guard, f"{MEDIAN} WHERE a = 0") == "answered"
    assert outcome(guard, "SELECT sum(income) FROM people WHERE a = 0 AND b <> 9", "bob") == "answered"
    said = [outcome(guard, f"SELECT sum(income) FROM people WHERE a = 0 AND b <> 9 AND b <> {b}") for b in (1, 2, 3, 4)]
    assert set(said) == {"answered"}, "each with noise, and of many others"
    assert outcome(guard, f"{MEDIAN} WHERE a = 0 AND b <> 9") == "SDC070"


@pytest.mark.parametrize("query", [f"{MEDIAN} WHERE ill", "SELECT ill, stddev(income) FROM people GROUP BY ill"])
def test_not_by_the_secret(guard: Guard, query: str) -> None:
    assert outcome(guard, query) == "SDC071"


def test_of_what_is_known_of_everybody_they_tell_nothing(guard: Guard) -> None:
    assert outcome(guard, "SELECT median(b) FROM people") == "answered"
    assert {told["sets"] for told in guard.sql("SHOW sdc_sequence", user="ann").to_pylist()} == {0}
