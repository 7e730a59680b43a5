"""Exact sums: no sum of a group of few follows from all that a login was told (`sequence := 'rank'`)."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pytest
from register_of_people import SECRET, outcome

import sdcduck
from sdcduck.guard import Guard

POLICY = """FROM sdc_protect('people', unit := 'person', dimensions := ['a', 'b', 'ill'], measures := ['income'],
    method := 'threshold', min_units := 5, sequence := '{mode}'{more})"""


def declare(con: duckdb.DuckDBPyConnection, mode: str = "rank", more: str = "") -> None:
    con.execute(POLICY.format(mode=mode, more=more)).fetchall()


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sums") / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS person, i % 4 AS a, i // 4 % 4 AS b, i < 32 AND i % 16 < 15 AS ill,
            CASE WHEN i % 7 > 0 THEN hash(i) % 1000 END::INTEGER AS income FROM range(400) t(i)""").fetchall()
        declare(con)
    return path


@pytest.fixture
def register(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(untouched, tmp_path))


@pytest.fixture
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as guard:
        yield guard


def test_sums_means_spreads_and_counts_are_answered(guard: Guard) -> None:
    answer = guard.sql(
        "SELECT a, sum(income) AS s, avg(income) AS m, stddev(income) AS d, count(income) AS n FROM people GROUP BY a",
        user="ann",
    )
    with closing(guard._limited.cursor()) as con:
        wanted = con.sql("SELECT a, sum(income), avg(income), stddev(income), count(income) FROM people GROUP BY a")
        for one, other in zip(sorted(map(tuple, zip(*answer.to_pydict().values()))), sorted(wanted.fetchall())):  # noqa: B905
            assert one == pytest.approx([float(number) for number in other])
    [told] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    assert (told["sets"], told["limit"]) == (4, 5), "the values and how many there are are told of the same people"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(income) FROM people",
        "SELECT avg(income) FROM people WHERE a < 9",
        "SELECT sum(income) FILTER (WHERE a >= 0), count(income) FROM people",
    ],
)
def test_the_sum_of_everybody_is_free(register: Path, guard: Guard, query: str) -> None:
    assert outcome(guard, query) == "answered"
    assert not register.with_name(f"{register.name}.sequence").exists()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(income) FROM people WHERE ill AND a = 0 AND b = 0",
        "SELECT avg(income) FROM people WHERE NOT (ill AND a = 0 AND b = 0)",
        "SELECT sum(income) FILTER (WHERE ill AND a = 0 AND b = 0), sum(income) FROM people",
        "SELECT a, b, sum(income) FROM people WHERE ill GROUP BY a, b",
        "SELECT sum(income * CASE WHEN ill AND a = 0 AND b = 0 THEN 0 ELSE 1 END) FROM people",
        "SELECT sum(income * (a + 1)) FROM people WHERE NOT (ill AND a = 0 AND b = 0)",
        "SELECT regr_slope(income, a) FROM people WHERE NOT (ill AND a = 0 AND b = 0)",
        "SELECT sum(a + 1) FROM people WHERE NOT (ill AND a = 0 AND b = 0)",
    ],
)
def test_sums_of_few_and_of_all_but_few_are_refused(guard: Guard, query: str) -> None:
    assert outcome(guard, query) == "SDC070"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT median(income) FROM people",
        "SELECT max(income) FROM people",
        "SELECT sum(income + a) FROM people",
        "SELECT sum(CASE WHEN ill THEN income ELSE 0 END) FROM people",
        "SELECT sum(income) FROM people WHERE income > 10",
        "SELECT sum(income) FILTER (WHERE income IS NULL OR ill) FROM people",
    ],
)
def test_what_is_no_sum_over_groups_is_refused(guard: Guard, query: str) -> None:
    assert outcome(guard, query) not in ("answered", "SDC001", "SDC070")


def test_other_limits_answer_no_sums(register: Path) -> None:
    for mode in ("atoms", "pairwise"):
        with closing(sdcduck.connect(register, secret=SECRET)) as con:
            declare(con, mode)
        with closing(sdcduck.open_guard(register)) as guard:
            assert outcome(guard, "SELECT a, sum(income) FROM people GROUP BY a") == "SDC071"
            assert outcome(guard, "SELECT a, count(income) FROM people GROUP BY a") == "SDC071"


def test_sums_of_what_was_told_are_told(guard: Guard) -> None:
    assert outcome(guard, "SELECT a, b, sum(income) FROM people GROUP BY a, b") == "answered"
    for query in (
        "SELECT a, avg(income) FROM people GROUP BY CUBE (a)",
        "SELECT sum(income) FROM people WHERE a = 1 AND b IN (0, 3) OR a = 2",
        "SELECT a, b, count(*) FROM people GROUP BY a, b",
    ):
        assert outcome(guard, query) == "answered"


def test_four_answers_of_which_no_two_tell_anything(register: Path) -> None:
    """Two ill people: twice their income is the sum of two answers less that of two others."""
    few = "(ill AND a = 0 AND b = 0)"
    asked = [
        f"{few} OR a IN (1, 2)",
        f"{few} OR a = 3 OR (a = 0 AND b = 1)",
        "a IN (1, 3)",
        "a = 2 OR (a = 0 AND b = 1)",
    ]
    told: dict[str, list[int | None]] = {}
    for mode, of in (("pairwise", "count(*)"), ("rank", "count(*)"), ("rank", "sum(income)")):
        with closing(sdcduck.connect(register, secret=SECRET)) as con:
            declare(con, mode)
            con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            found = told[f"{mode} {of}"] = []
            for where in asked:
                query = f"SELECT {of} AS n FROM people WHERE {where}"
                answered = outcome(guard, query) == "answered"
                found.append(guard.sql(query, user="ann").column("n")[0].as_py() if answered else None)
    one, two, three, four = (number or 0 for number in told["pairwise count(*)"])
    assert one + two - three - four == 2 * 2, "of whom there are two"
    for name in ("rank count(*)", "rank sum(income)"):
        assert [number is None for number in told[name]] == [False, False, False, True]


@pytest.mark.parametrize("seed", range(3))
def test_no_sum_of_few_follows_from_what_was_answered(register: Path, seed: int) -> None:
    """Random questions; whether the sum of a small atom follows is looked at beside the guard, by ranks."""
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        records = con.execute("SELECT a, b, ill, count(*) FROM people GROUP BY ALL").fetchall()
    cells = [(a, b, ill) for a in range(4) for b in range(4) for ill in (False, True)]
    sizes = np.array([sum(number for *cell, number in records if tuple(cell) == one) for one in cells], float)
    chance, rows, outcomes = random.Random(seed), [np.ones(len(cells))], []
    with closing(sdcduck.open_guard(register)) as guard:
        for _ in range(60):
            lists = [sorted(chance.sample(range(4), chance.randint(1, 4))) for _ in "ab"]
            sick = chance.choice(["", " AND ill", " AND NOT ill"])
            where = " AND ".join(f"{name} IN ({', '.join(map(str, of))})" for name, of in zip("ab", lists, strict=True))
            outcomes.append(outcome(guard, f"SELECT sum(income) FROM people WHERE {where}{sick}"))
            if outcomes[-1] == "answered":
                chosen = [
                    a in lists[0] and b in lists[1] and sick in ("", " AND ill" if ill else " AND NOT ill")
                    for a, b, ill in cells
                ]
                rows.append(np.array(chosen, float))
    told = np.array(rows)
    for atom in {tuple(column) for column in told.T}:
        group = np.array([tuple(column) == atom for column in told.T], float)
        if group @ sizes < 5:
            assert np.linalg.matrix_rank(np.vstack([told, group])) > np.linalg.matrix_rank(told)
    assert set(outcomes) == {"answered", "SDC070"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("method := 'cell_key', sequence := 'rank'", "'rank' is not available for method := 'cell_key'"),
        ("method := 'threshold', min_units := 1, sequence := 'rank'", "argument 'min_units' must be at least 2"),
        ("method := 'threshold', min_units := 5, sequence := 'rank', granted := 'people'", "'granted' goes with"),
    ],
)
def test_what_sdc_protect_refuses(register: Path, more: str, said: str) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("CREATE TABLE others AS SELECT * REPLACE (person + 1000 AS person) FROM people").fetchall()
        con.execute("FROM sdc_add_record_key('others', unit := 'person')").fetchall()
        with pytest.raises(duckdb.Error, match=said):
            con.execute(f"FROM sdc_protect('others', unit := 'person', dimensions := ['a'], {more})").fetchall()
