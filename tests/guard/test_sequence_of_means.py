"""Sums and means of a measure under noise: what many of them tell of its values is kept, and limited, as counts are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from register_of_people import SECRET, file_of, outcome
from sqlglot import parse_one

import sdcduck
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.guard import Guard, Refused
from sdcduck.guard.protect.inner_cells import Figure

PROTECT = """FROM sdc_protect('people', unit := 'person_id', dimensions := ['a', 'b', 'ill'], measures := {measures},
    min_units := 3{more})"""
SUMS = 10
"""In a question."""
LIMIT = ", sequence := 'precision', secrets := ['ill']"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes the register of 40 people in 25 cells, most of one or two."""
    known: dict[object, Path] = {}

    def register(
        *,
        more: str = LIMIT,
        income: str = "1000 + hash(i * 5) % 1000",
        ill: str = "hash(i) % 10 < 3",
        visits: str = "i % 3",
    ) -> Path:
        path = tmp_path_factory.mktemp("register") / "people.duckdb"
        asked = (more, income, ill, visits)
        if asked in known:
            path.write_bytes(known[asked].read_bytes())
            return path
        with closing(sdcduck.connect(path, secret=SECRET)) as con:
            con.execute(f"""CREATE TABLE people AS SELECT i AS person_id, hash(i * 7 + 1) % 5 AS a, hash(i * 11 + 2) % 5 AS b,
                {ill} AS ill, CASE WHEN i % 20 > 0 THEN {income} END AS income, {visits} AS visits FROM range(40) t(i)""").fetchall()
            con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
            con.execute(PROTECT.format(measures="['income', 'visits']", more=more)).fetchall()
        known[asked] = path.with_suffix(".kept")
        known[asked].write_bytes(path.read_bytes())
        return path

    return register


@pytest.fixture
def guard(made: Callable[..., Path]) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(made())) as opened:
        yield opened


def answers(guard: Guard, user: str = "ann") -> tuple[int, int]:
    """How many answers told something, and of how many sets."""
    [told] = guard.sql("SHOW sdc_sequence", user=user).to_pylist()
    return told["answers"], told["sets"]


def lists(number: int) -> list[str]:
    """Sums over people in lists of values."""
    chance = random.Random(3)
    chosen = [[", ".join(map(str, sorted(chance.sample(range(5), 3)))) for _ in "ab"] for _ in range(number)]
    return [f"SELECT sum(income) AS s FROM people WHERE a IN ({a}) AND b IN ({b})" for a, b in chosen]


def test_a_sum_is_charged_once_in_whatever_words(guard: Guard) -> None:
    guard.sql("SELECT a, sum(income) FROM people GROUP BY a", user="ann")
    first = answers(guard)
    assert first == (1, 10), "five sums, and how many have a value"
    for again in (
        "SELECT p.a, sum(p.income) + 1 FROM people p WHERE a < 9 GROUP BY p.a",
        "SELECT avg(Income) FROM people WHERE a = 2",
        "SELECT a, count(income), count(*) FROM people GROUP BY a",
        "SELECT a, b, count(*) FROM people GROUP BY CUBE (a, b)",
    ):
        assert outcome(guard, again) == "answered"
        assert answers(guard) == first, again
    for more, other in enumerate(("sum(income)", "sum(visits)", "sum(income * b)"), 1):
        assert outcome(guard, f"SELECT {other} FROM people") == "answered"
        assert answers(guard)[0] == 1 + more, other
    assert answers(guard)[1] == 10 + 2 + 2 + 10, "a sum with a factor is one of each of its values"
    guard.sql("SELECT sum(income / $1), sum(income * $1) FROM people", [3], user="ann")
    assert answers(guard)[0] == 4, "a figure is multiplied outside"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(income) FROM people WHERE ill",
        "SELECT a, avg(income) FILTER (WHERE NOT ill) FROM people GROUP BY a",
        "SELECT ill, count(income) FROM people GROUP BY ill",
        "SELECT sum(CASE WHEN ill THEN income ELSE 0 END) FROM people",
        "SELECT sum(income) FROM (SELECT * FROM people WHERE ill)",
        "SELECT sum(income) FROM people WHERE income > 1200",
    ],
)
def test_what_nobody_knows_the_worth_of_is_refused(guard: Guard, query: str) -> None:
    assert outcome(guard, query) not in ("answered", "SDC001", "SDC070")
    assert answers(guard) == (0, 0)


def test_a_parameter_inside_of_a_sum_would_be_another_sum_in_the_same_words() -> None:
    with pytest.raises(Refused, match=r"SDC071: .*a parameter in what is added up"):
        Figure.of("sum", [parse_one("ln(income + $1)", read="duckdb")])
    figure = Figure.of("sum", [parse_one('ln(p."Income" + 1)', read="duckdb")])
    assert figure == Figure.of("sum", [parse_one("ln(INCOME + 1)", read="duckdb")]) == Figure.read(figure.text)
    assert figure.measures == ("income",)


def test_many_sums_are_refused_and_all_guards_of_the_file_know(made: Callable[..., Path], tmp_path: Path) -> None:
    register, log = made(), tmp_path / "log"
    asked = lists(22)
    with closing(sdcduck.open_guard(register, log=AuditLog(log))) as one:
        said = [outcome(one, question) for question in asked]
        assert set(said) == {"answered", "SDC070"}
        last = said.index("SDC070")
        assert last > 3
        rehearsed = one.sequence_rehearsal(log, "people", secrets=["ill"]).to_pylist()
    assert ["SDC070" if row["verdict"] == "refused" else row["verdict"] for row in rehearsed] == said
    with closing(sdcduck.open_guard(register)) as other:
        assert outcome(other, asked[last]) == "SDC070"
        assert outcome(other, asked[0]) == "answered"
        assert outcome(other, "SELECT a, ill, count(*) FROM people GROUP BY ALL") == "answered", "counts have their own"
        assert outcome(other, "SELECT sum(visits) FROM people WHERE a IN (1, 2)") == "answered", "and so has a measure"
        assert outcome(other, asked[last], "bob") == "answered"


def test_a_refusal_depends_on_nobodys_value(made: Callable[..., Path]) -> None:
    said = []
    for income in ("1000 + hash(i * 5) % 1000", "CASE WHEN i = 7 THEN 1000000 ELSE 0 END", "-5 * i"):
        with closing(sdcduck.open_guard(made(income=income))) as opened:
            said.append([outcome(opened, question) for question in lists(22)])
    assert said[0] == said[1] == said[2]
    assert "SDC070" in said[0]


def test_that_somebody_has_no_value_shows_in_no_charge_and_no_refusal(made: Callable[..., Path]) -> None:
    questions = (
        "SELECT count(visits) FROM people",
        "SELECT a, sum(visits) FROM people GROUP BY a",
        "SELECT sum(CASE WHEN a = 1 THEN visits ELSE 0 END) FROM people",
        "SELECT avg(visits) FROM people WHERE b = 2",
    )
    said = []
    for visits in ("i % 3", "CASE WHEN i <> 7 THEN i % 3 END"):
        with closing(sdcduck.open_guard(made(visits=visits))) as opened:
            said.append([(outcome(opened, question), answers(opened)) for question in questions])
    assert said[0] == said[1]


def test_who_is_asked_for_most_is_not_known_better_than_by_the_noise(made: Callable[..., Path]) -> None:
    """A least-squares attacker with the real sums: without a limit she knows single incomes far better than by noise."""
    found = {}
    for more in (LIMIT, ""):
        register = made(more=more)
        with closing(sdcduck.connect(register, secret=SECRET)) as con:
            rows = con.execute("SELECT a, b, coalesce(income, 0) FROM people ORDER BY person_id").fetchall()
        a, b, income = (np.array(column, float) for column in zip(*rows, strict=True))
        sets, told = [], []
        with closing(sdcduck.open_guard(register)) as opened:
            for begin in range(0, 80, SUMS):
                conditions = [question.split("WHERE ")[1] for question in lists(80)[begin : begin + SUMS]]
                shown = ", ".join(
                    f"sum(income) FILTER (WHERE {one}) AS s{place}" for place, one in enumerate(conditions)
                )
                try:
                    [row] = opened.sql(f"SELECT {shown} FROM people", user="eve").to_pylist()
                except Refused:
                    continue
                for condition, value in zip(conditions, row.values(), strict=True):
                    lists_of = [part.split(")")[0].split(", ") for part in condition.split("IN (")[1:]]
                    inside = [
                        np.isin(column, np.array(one, float)) for column, one in zip((a, b), lists_of, strict=True)
                    ]
                    sets.append(np.logical_and(*inside).astype(float))
                    told.append(float(value))
        largest = income.max()
        rows_of, noise = np.array(sets), (0.1 * largest) ** 2
        prior = np.full(len(income), largest**2 / 4)
        inner = (rows_of * prior) @ rows_of.T + noise * np.eye(len(sets))
        guess = largest / 2 + prior * (
            rows_of.T @ np.linalg.solve(inner, np.array(told) - rows_of.sum(axis=1) * largest / 2)
        )
        alone = np.array([((a == a[one]) & (b == b[one])).sum() == 1 for one in range(len(a))])
        errors = np.sqrt(np.mean((guess - income)[alone] ** 2)) / (0.1 * largest)
        found[more] = (len(sets), errors)
    assert SUMS <= found[LIMIT][0] < found[""][0] == 80
    assert found[LIMIT][1] > 0.8
    assert found[""][1] < 0.6


def test_why_sums_by_the_secret_are_refused(made: Callable[..., Path]) -> None:
    """Who knows all incomes, and that one is far larger, sees in one sum over all who are ill whether she is ill."""
    told = []
    for turned in ("hash(i) % 10 < 3", "(hash(i) % 10 < 3) <> (i = 7)"):
        register = made(more="", income="CASE WHEN i = 7 THEN 100000 ELSE 1000 END", ill=turned)
        with closing(sdcduck.open_guard(register)) as opened:
            told += opened.sql("SELECT sum(income) AS s FROM people WHERE ill").column("s").to_pylist()
    assert abs(told[0] - told[1]) > 50_000, "the noise has a standard deviation of a tenth of the largest"


def test_a_measure_that_is_gone_stops_the_answers_about_it(made: Callable[..., Path]) -> None:
    register = made()
    with closing(sdcduck.open_guard(register)) as opened:
        opened.sql("SELECT sum(visits) FROM people", user="ann")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute(PROTECT.format(measures="['income']", more=LIMIT)).fetchall()
    with closing(sdcduck.open_guard(register)) as opened:
        assert outcome(opened, "SELECT sum(income) FROM people") == "SDC072"
        assert outcome(opened, "SELECT sum(income) FROM people", "bob") == "answered"


def test_other_noise_of_sums_stops_the_answers(made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    register = made()
    with closing(sdcduck.open_guard(register)) as opened:
        opened.sql("SELECT sum(income) FROM people", user="ann")
    path = file_of(register)
    assert b'"of_sums"' in path.read_bytes()
    from sdcduck.guard import sequence_cells

    real = sequence_cells._least_variance
    monkeypatch.setattr(
        sequence_cells, "_least_variance", lambda laws: 0.25 * real(laws) if real(laws) < 1 else real(laws)
    )
    with closing(sdcduck.open_guard(register)) as opened:
        assert outcome(opened, "SELECT sum(visits) FROM people") == "SDC072"
        assert outcome(opened, "SELECT sum(visits) FROM people", "bob") == "answered"


def test_sums_may_be_granted(made: Callable[..., Path]) -> None:
    register = made(more=f"{LIMIT}, granted := 'SELECT a, sum(income) AS s FROM people GROUP BY ROLLUP (a)'")
    with closing(sdcduck.open_guard(register)) as opened:
        assert outcome(opened, "SELECT a, sum(income), avg(income) FROM people GROUP BY a") == "answered"
        assert answers(opened) == (0, 0)
        assert outcome(opened, "SELECT b, sum(income) FROM people GROUP BY b") == "answered"
        assert answers(opened)[0] == 1
