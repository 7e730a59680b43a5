"""Intervals around private numbers: they hold what they are about as often as they say, and cost nothing."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_numbers import charged
from private_people import RECORDS, made

import sdcduck
from sdcduck.guard import Guard, Refused

pytest.importorskip("opendp")


@pytest.fixture(scope="module", params=["1e-9", "0"], ids=["normal", "laplace"])
def untouched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a register that nobody has asked."""
    folder = tmp_path_factory.mktemp("untouched")
    made(folder / "register", epsilon="900", delta=request.param, per_question="1")
    return folder


@pytest.fixture
def guard(untouched: Path, tmp_path: Path) -> Iterator[Guard]:
    shutil.copytree(untouched, tmp_path, dirs_exist_ok=True)
    with closing(sdcduck.open_guard(tmp_path / "register")) as opened:
        yield opened


def test_they_hold_the_exact_numbers_as_often_as_they_say(guard: Guard) -> None:
    """Of 4,550 groups of people known exactly, each with a count, a sum and what is made of both; ten standard errors.

    A count is a whole number, so that its interval holds it a little more often; a sum of two has one for each.
    """
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people AS {RECORDS.replace(repr('unknown'), 'NULL')}")
    made_of = "count(*) AS n, sum(income) AS s, 3 * count(*) - sum(income) AS d"
    held, numbers = {"n": 0, "s": 0, "d": 0}, 0
    for last in range(10):
        of = f"FROM people WHERE NOT ill OR age >= {last}"
        query = f"SELECT region, age, {made_of} {of} GROUP BY ALL"
        exact = {
            (region, age): {"n": n, "s": float(s or 0), "d": 3 * n - float(s or 0)}
            for region, age, n, s, _ in con.execute(query).fetchall()
        }
        for row in guard.sql(f"FROM sdc_confidence($${query}$$, 0.8)").to_pylist():
            true = exact.get((row["region"], row["age"]), {"n": 0, "s": 0.0, "d": 0.0})
            numbers += 1
            for name in held:
                assert row[f"{name}_lower"] < row[name] < row[f"{name}_upper"]
                held[name] += row[f"{name}_lower"] <= true[name] <= row[f"{name}_upper"]
    con.close()
    luck = 10 * math.sqrt(0.8 * 0.2 / numbers)
    assert numbers >= 4000
    assert 0.8 - luck <= held["s"] / numbers <= 0.8 + luck
    assert 0.8 - luck <= held["n"] / numbers <= 0.87 + luck
    assert 0.8 - luck <= held["d"] / numbers <= 0.97


def test_they_are_of_the_same_numbers_and_cost_nothing_more(guard: Guard, tmp_path: Path) -> None:
    """Whether the question is asked before or after; by parts of them, and in any order."""
    query = "SELECT region, count(*) AS n, avg(income) AS mean FROM people GROUP BY region"
    first = guard.sql(f"FROM sdc_confidence('{query}')")
    assert first.column_names == ["region", "n", "mean", "n_lower", "n_upper", "mean_lower", "mean_upper"]
    assert first.select(["region", "n", "mean"]).to_pylist() == guard.sql(query).to_pylist()
    assert set(first["mean_lower"].to_pylist()) == set(first["mean_upper"].to_pylist()) == {None}
    assert len({row["n_upper"] - row["n"] for row in first.to_pylist()}) == 1
    wider = guard.sql(f"SELECT region, n_lower FROM sdc_confidence('{query}', 0.999) ORDER BY n_lower LIMIT 2")
    lower = {row["region"]: row["n_lower"] for row in first.to_pylist()}
    assert all(row["n_lower"] < lower[row["region"]] for row in wider.to_pylist())
    assert charged(tmp_path / "register") == 1


def test_parameters_and_descriptions(guard: Guard, tmp_path: Path) -> None:
    (row,) = guard.sql("FROM sdc_confidence('SELECT count(*) AS n FROM people WHERE age > $1')", [30]).to_pylist()
    assert row["n_lower"] < row["n"] < row["n_upper"]
    before = charged(tmp_path / "register")
    asked = "FROM sdc_confidence('SELECT count(*) AS n, sum(income)::INTEGER AS s FROM people WHERE ill')"
    described = {line["column_name"]: line["column_type"] for line in guard.sql(f"DESCRIBE {asked}").to_pylist()}
    assert described == {"n": "BIGINT", "s": "INTEGER", "n_lower": "BIGINT", "n_upper": "BIGINT",
                         "s_lower": "DOUBLE", "s_upper": "DOUBLE"}  # fmt: skip
    assert dict(guard.columns(asked)) == described
    assert guard.explain(asked).answered
    assert charged(tmp_path / "register") == before


REFUSED = {
    "other numbers beside": "SELECT * FROM sdc_confidence('SELECT count(*) AS n FROM people'), (SELECT count(*) FROM people WHERE ill)",
    "one in another": "FROM sdc_confidence('FROM sdc_confidence(''SELECT count(*) AS n FROM people'')')",
    "subtotals": "FROM sdc_confidence('SELECT region, count(*) AS n FROM people GROUP BY ROLLUP (region)')",
    "no noise": "FROM sdc_confidence('SELECT 1 AS one')",
    "a name that is taken": "FROM sdc_confidence('SELECT count(*) AS n, 3 AS n_lower FROM people')",
    "certain": "FROM sdc_confidence('SELECT count(*) AS n FROM people', 1)",
    "hardly": "FROM sdc_confidence('SELECT count(*) AS n FROM people', 0.1)",
    "no level": "FROM sdc_confidence('SELECT count(*) AS n FROM people', ill)",
    "not answered": "FROM sdc_confidence('SELECT * FROM people')",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_has_no_intervals_is_refused_and_not_charged(guard: Guard, tmp_path: Path, why: str) -> None:
    """With more totals in a statement each has more noise than the intervals say."""
    with pytest.raises(Refused, match=r"SDC0(05|21|40|81)"):
        guard.sql(REFUSED[why])
    assert charged(tmp_path / "register") == 0


def test_the_same_numbers_twice_are_one_draw(guard: Guard, tmp_path: Path) -> None:
    """So the intervals of both hold, whatever else of them is asked; it is charged once, and no noise averages out."""
    asked = "sdc_confidence('SELECT count(*) AS n FROM people')"
    (row,) = guard.sql(f"SELECT a.*, b.n AS m, b.n_lower AS l FROM {asked} a, {asked} b").to_pylist()
    assert (row["m"], row["l"]) == (row["n"], row["n_lower"])
    (both,) = guard.sql("SELECT (SELECT count(*) FROM people) AS a, (SELECT count(*) FROM people) AS b").to_pylist()
    assert both["a"] == both["b"] == row["n"]
    assert charged(tmp_path / "register") == 1
    # What both add up to has no noise of two draws: nothing is said where it is not known.
    two = "(SELECT count(*) AS n FROM people) AS a, (SELECT count(*) AS n FROM people) AS b"
    assert guard.noise(f"SELECT a.n + b.n AS n FROM {two}").to_pylist()[0]["sd"] is None


def test_a_number_whose_law_is_not_known_has_none(guard: Guard) -> None:
    (row,) = guard.sql(
        "FROM sdc_confidence('SELECT sqrt(greatest(count(*), 0)) AS root, count(*)::VARCHAR AS word, median(income) AS m, "
        "count(*) / 2 AS half FROM people')"
    ).to_pylist()
    for name in ("root", "word", "m"):
        assert row[f"{name}_lower"] is row[f"{name}_upper"] is None
    assert row["half_lower"] < row["half"] < row["half_upper"]
