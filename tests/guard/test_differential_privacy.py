"""Differential privacy behind the policy: what is answered, what it costs, and that nothing is drawn twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_numbers import charged
from private_people import PEOPLE, RECORDS, declared, dies_before_it_draws, made

import sdcduck
from sdcduck.catalog.cost_files import CostFile
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused
from sdcduck.guard.guard import NOTICE
from sdcduck.guard.releases import Releases

pytest.importorskip("opendp")


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("private") / "register")


@pytest.fixture(scope="module")
def generous(untouched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    """A guard whose noise is small: a standard deviation of half a person, and of some hundreds of an income."""
    folder = tmp_path_factory.mktemp("generous")
    shutil.copytree(untouched.parent, folder, dirs_exist_ok=True)
    with closing(sdcduck.open_guard(folder / untouched.name)) as guard:
        yield guard


Make = Callable[..., Guard]


@pytest.fixture
def make(untouched: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes guards of registers of their own, in `tmp_path`; as declared by default they are copies."""
    opened: list[Guard] = []

    def guard(**other: str) -> Guard:
        path = tmp_path / untouched.name
        if not path.exists():
            if other:
                made(path, **other)
            else:  # with what is kept beside the file
                shutil.copytree(untouched.parent, tmp_path, dirs_exist_ok=True)
        opened.append(sdcduck.open_guard(path))
        return opened[-1]

    yield guard
    for one in opened:
        one.close()


def refusal(guard: Guard, query: str, **more: object) -> str:
    with pytest.raises(Refused) as refused:
        guard.sql(query, **more)  # type: ignore[arg-type]
    return str(refused.value)


AMONG = "region IN ('n', 's', 'e', 'w')"
ANSWERED = {
    "SELECT count(*) FROM people": f"SELECT {PEOPLE}",
    "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region": (
        f"SELECT CASE WHEN {AMONG} THEN region END AS r, count(*) FROM people GROUP BY 1 ORDER BY 1"
    ),
    "SELECT region, count(*) FROM people WHERE age > 30 AND region <> 'n' GROUP BY 1 ORDER BY 1": (
        "SELECT region, count(*) FROM people WHERE age > 30 AND region IN ('s', 'e', 'w') GROUP BY 1 ORDER BY 1"
    ),
    "SELECT upper(region) AS r, count(*) FROM people WHERE region IN ('n', 's') GROUP BY upper(region) ORDER BY 1": (
        "SELECT upper(region) AS r, count(*) FROM people WHERE region IN ('n', 's') GROUP BY 1 ORDER BY 1"
    ),
    "SELECT age // 30 AS a, count(*) FILTER (WHERE ill), count_if(ill) FROM people WHERE age >= 0 GROUP BY 1 ORDER BY 1": (
        "SELECT age // 30 AS a, count(*) FILTER (WHERE ill), count_if(ill) FROM people GROUP BY 1 ORDER BY 1"
    ),
    "SELECT sum(CASE WHEN ill THEN 1 ELSE 0 END), count(income), count(DISTINCT id) FROM people": (
        "SELECT count_if(ill), count(income), count(*) FROM people"
    ),
    "WITH a AS (SELECT region, count(*) AS n FROM people GROUP BY 1) SELECT region, n FROM a WHERE region < 'o' ORDER BY 1": (
        "SELECT region, count(*) FROM people WHERE region IN ('e', 'n') GROUP BY 1 ORDER BY 1"
    ),
    "SELECT region, count(*) FROM people GROUP BY region HAVING count(*) > 100 ORDER BY 1 LIMIT 2": (
        "SELECT region, count(*) FROM people WHERE region IN ('e', 'n') GROUP BY 1 ORDER BY 1"
    ),
    "SELECT x, (SELECT count(*) FROM people WHERE age = x) FROM (VALUES (1), (2)) AS v(x) ORDER BY 1": (
        "SELECT age, count(*) FROM people WHERE age IN (1, 2) GROUP BY 1 ORDER BY 1"
    ),
    "SELECT 'all', count(*) FROM people UNION ALL SELECT region, count(*) FROM people WHERE region = 'n' GROUP BY region": (
        f"SELECT 'all', {PEOPLE} UNION ALL SELECT 'n', count(*) FROM people WHERE region = 'n'"
    ),
}
"""Questions, and what DuckDB says of the same people; the noise of a count is 0.2 at most per number asked for."""


@pytest.mark.parametrize("question", ANSWERED)
def test_answers_are_near_those_of_duckdb(generous: Guard, question: str) -> None:
    """No clause is left out: every group that is asked for, and none beside it."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people AS {RECORDS}")
    wanted = con.execute(ANSWERED[question]).fetchall()
    found = [tuple(row.values()) for row in generous.sql(question).to_pylist()]
    assert len(found) == len(wanted)
    for row, exact in zip(found, wanted, strict=True):
        for value, true in zip(row, exact, strict=True):
            assert value == (true if isinstance(true, str | None) else pytest.approx(true, abs=12))


def test_sums_and_means_are_near_those_of_bounded_values(generous: Guard) -> None:
    """NULL adds nothing; a mean is that of those that have a value."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people AS {RECORDS}")
    wanted = con.execute(
        "SELECT sum(income), avg(income), sum(2 * income + 3), avg(income * income) FROM people"
    ).fetchall()
    (found,) = generous.sql(
        "SELECT sum(income), avg(income), sum(2 * income + 3), avg(income * income) FROM people"
    ).to_pylist()
    total, mean, linear, square = found.values()
    (exact,) = wanted
    exact = [float(value) for value in exact]
    assert total == pytest.approx(exact[0], abs=30_000)
    assert mean == pytest.approx(exact[1], abs=40)
    assert linear == pytest.approx(exact[2], abs=60_000)
    assert square == pytest.approx(exact[3], rel=0.1)


def test_windows_and_shares_are_made_of_released_numbers(generous: Guard) -> None:
    """All the same noise: parts add up to what the window says, to the last digit."""
    rows = generous.sql(
        "SELECT region, count(*) AS n, sum(count(*)) OVER () AS whole, rank() OVER (ORDER BY count(*) DESC) AS place "
        "FROM people GROUP BY region"
    ).to_pylist()
    assert sum(row["n"] for row in rows) == rows[0]["whole"]
    assert all(row["place"] == 1 + sum(other["n"] > row["n"] for other in rows) for row in rows)


def test_every_group_of_a_domain_is_answered(make: Make) -> None:
    """Whether anybody is in a group shows nowhere: empty ones have noise as others do, and so has that of unknown values."""
    guard = make(domains="{'region': ['n', 'nobody'], 'age': [3, 500]}")
    rows = guard.sql("SELECT region, age, count(*) AS n FROM people GROUP BY ALL ORDER BY ALL").to_pylist()
    assert [(row["region"], row["age"]) for row in rows] == [
        (region, age) for region in ("n", "nobody", None) for age in (3, 500, None)
    ]
    assert guard.sql("SELECT region, count(*) FROM people WHERE false GROUP BY region").num_rows == 0


def test_domains_come_from_types_where_these_say_them(tmp_path: Path) -> None:
    """Truth values have two, labels of an ENUM are named by the custodian as public; all else is given."""
    register = made(tmp_path / "r", "SELECT * REPLACE (region::ENUM('n', 's', 'e', 'w', 'unknown', 'z') AS region) "
                    f"FROM ({RECORDS})", domains="'public'")  # fmt: skip
    with closing(sdcduck.open_guard(register)) as guard:
        rows = guard.sql("SELECT region, ill, count(*) AS n FROM people GROUP BY ALL").to_pylist()
        assert {row["region"] for row in rows} == {"n", "s", "e", "w", "unknown", "z", None}
        assert {row["ill"] for row in rows} == {True, False, None}
        assert sum(row["n"] for row in rows if row["region"] == "n") == pytest.approx(400, abs=30)
        assert "no domain" in refusal(guard, "SELECT age, count(*) FROM people GROUP BY age")


REFUSED = [
    "SELECT max(age) FROM people",
    "SELECT DISTINCT region FROM people WHERE length(region) > id",
    "SELECT count(*) FROM people WHERE age > (SELECT count(*) FROM people)",
    "SELECT count(*) FROM people WHERE age < date_part('year', current_date)",
    "SELECT count(*) FROM people USING SAMPLE 10",
    "SELECT max(income) FROM people",
    "SELECT list(income) FROM people",
    "SELECT * FROM people",
    "SUMMARIZE people",
    "SELECT var_samp(length(region)) FROM people",
]


@pytest.mark.parametrize("question", REFUSED)
def test_what_is_not_answered_costs_nothing(make: Make, question: str, tmp_path: Path) -> None:
    assert refusal(make(), question).startswith("SDC")
    assert charged(tmp_path / "register") == 0


ASKED_WITH = [
    ("SELECT count(*) AS n FROM people WHERE age > $1", [60]),
    ("SELECT count(*) AS n FROM people WHERE region = ? AND ill", ["n"]),
    ("SELECT count(*) FILTER (WHERE age < $age) + $more AS n FROM people", {"age": 30, "more": 1000}),
    ("SELECT sum(CASE WHEN age < $2 THEN 1 ELSE 0 END) AS n FROM people WHERE region IN ($1, $3)", ["n", 45, "s"]),
    ("SELECT region, count(*) AS n FROM people WHERE region <> $1 AND age > $2 GROUP BY region HAVING count(*) > $3 "
     "ORDER BY region LIMIT $4", ["n", 10, 200, 2]),
    ("SELECT age >= $1 AS old, count(*) AS n FROM people WHERE age >= 0 GROUP BY age >= $1 ORDER BY 1", [65]),
    ("SELECT count(*) AS n FROM people WHERE $1", [True]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "parameters"), ASKED_WITH)
def test_parameters_stand_for_values(generous: Guard, question: str, parameters: list[object]) -> None:
    """In conditions, in groups and around the released numbers."""
    con = duckdb.connect()
    records = RECORDS.replace("'unknown'", "NULL")
    con.execute(f"CREATE TABLE people AS {records}")
    wanted = con.execute(question, parameters).fetchall()
    found = [tuple(row.values()) for row in generous.sql(question, parameters).to_pylist()]
    assert [row[:-1] for row in found] == [row[:-1] for row in wanted]
    assert [row[-1] for row in found] == pytest.approx([row[-1] for row in wanted], abs=12)
    con.close()


def test_other_values_of_parameters_are_other_questions(make: Make, tmp_path: Path) -> None:
    """The same values have the same answer for nothing; a text is no number; what is around the numbers is not charged."""
    guard, query = make(), "SELECT count(*) + $2 AS n FROM people WHERE age = $1"
    first = [guard.sql(query, [age, 0]).to_pylist()[0]["n"] for age in (3, 4, 3)]
    assert first[0] == first[2]
    assert charged(tmp_path / "register") == 2
    assert guard.sql(query, [3, 5000]).to_pylist()[0]["n"] == first[0] + 5000
    assert guard.stream(query, [3, 1]).read_all().to_pylist()[0]["n"] == first[0] + 1
    assert charged(tmp_path / "register") == 2
    guard.sql(query, ["3", 0])
    assert charged(tmp_path / "register") == 3
    lines = [line["query"] for line in CostFile(tmp_path / "register", "people").lines() if line["kind"] == "charge"]
    assert lines[0] == query + ' -- {"1": 3, "2": 0}'


@pytest.mark.parametrize(("right", "parameters"), [("1", None), ("$1", [1])])
def test_what_does_not_go_together_is_not_charged(
    make: Make, tmp_path: Path, right: str, parameters: list[object] | None
) -> None:
    """DuckDB says so of the types alone."""
    said = refusal(make(), f"SELECT count(*) FROM people WHERE region > {right}", parameters=parameters)
    assert "a cast helps" in said
    assert charged(tmp_path / "register") == 0


class Odd(str):
    """A text whose `repr` is not its own."""

    def __repr__(self) -> str:
        return "'n'"


@pytest.mark.parametrize(
    "parameters", [[], ["n", 3], {"1": "n", "2": 3}, {"region": "n"}, [Odd("s")], [[Odd("s")]], ["n" * 20_000]]
)
def test_parameters_that_are_not_those_of_the_question_cost_nothing(
    make: Make, tmp_path: Path, parameters: object
) -> None:
    assert refusal(make(), "SELECT count(*) FROM people WHERE region = $1", parameters=parameters).startswith("SDC")
    assert charged(tmp_path / "register") == 0


def test_the_same_numbers_cost_nothing_again(make: Make, tmp_path: Path) -> None:
    """Sorted, cut, renamed or worked out in another way; by anybody; in another session: one draw."""
    guard, other = make(), make()
    first = guard.sql("SELECT region, count(*) AS n FROM people GROUP BY region", user="ann").to_pylist()
    again = other.sql(
        "SELECT count(*) AS people, region FROM people GROUP BY region ORDER BY 1 DESC", user="bob"
    ).to_pylist()
    assert {row["region"]: row["n"] for row in first} == {row["region"]: row["people"] for row in again}
    (most,) = guard.sql(
        "SELECT max(n) AS most FROM (SELECT region, count(*) AS n FROM people GROUP BY region)"
    ).to_pylist()
    assert most["most"] == max(row["n"] for row in first)
    read = guard.stream("SELECT region, count(*) AS n FROM people GROUP BY region").read_all().to_pylist()
    assert read == first
    assert charged(tmp_path / "register") == 1


def test_other_words_are_charged_or_have_the_same_answer(make: Make, tmp_path: Path) -> None:
    """Whoever averages over wordings pays for each draw that goes into the average."""
    guard = make()
    wordings = [
        "SELECT count(*) FROM people WHERE ill AND age < 40",
        "SELECT count(*) FROM people WHERE age < 40 AND ill",
        "SELECT count(*) FILTER (WHERE ill AND age < 40) FROM people",
        "SELECT sum(CASE WHEN ill AND age < 40 THEN 1 END) FROM people",
        "SELECT count(*) FROM people AS p WHERE p.ill AND p.age < 40",
        "SELECT count(*) AS n FROM people WHERE (ill) AND (age < 40)",
        "SELECT count(*) FROM people WHERE ill AND age < 40",
    ]
    answers = [next(iter(guard.sql(query).to_pylist()[0].values())) for query in wordings]
    assert len(set(answers)) <= charged(tmp_path / "register") <= len(wordings) - 1


def test_planning_describing_and_explaining_draw_nothing(make: Make, tmp_path: Path) -> None:
    guard, query = make(), "SELECT region, count(*) AS n, sum(income) AS s FROM people GROUP BY region"
    assert guard.columns(query) == [("region", "VARCHAR"), ("n", "BIGINT"), ("s", "DOUBLE")]
    assert guard.sql(f"EXPLAIN {query}").num_rows == 3
    assert guard.sql(f"DESCRIBE {query}").num_rows == 3
    explained = guard.explain(query)
    assert explained.answered
    # A seventeenth of all: so many questions of Gaussian noise there would be.
    assert "epsilon 58.8235 alone, for Laplace noise" in explained.notes[-1]
    rewritten = guard.rewrite(query)
    guard.close()
    con = sdcduck.connect(str(tmp_path / "register"))
    assert con.execute(rewritten).fetchall() == []  # whatever runs it as it is sees no number
    con.close()
    assert charged(tmp_path / "register") == 0


def test_the_noise_of_each_column_is_said(make: Make) -> None:
    """Who is replaced changes two groups: Laplace noise of scale 2 for an epsilon of 1."""
    guard = make(delta="0", per_question="1")
    noise = {
        row["column"]: row
        for row in guard.noise("SELECT region, count(*) AS n FROM people GROUP BY region").to_pylist()
    }
    assert noise["n"]["sd"] == pytest.approx(2.7995, abs=1e-3)  # discrete Laplace of scale 2
    assert "epsilon 1 for the whole question" in noise["n"]["noise"]


def test_a_spent_budget_is_said_with_what_is_free(make: Make, tmp_path: Path) -> None:
    guard = make(epsilon="1", delta="0", per_question="0.4")
    first = guard.sql("SELECT count(*) FROM people").to_pylist()
    guard.sql("SELECT count(*) FROM people WHERE ill")
    said = refusal(guard, "SELECT count(*) FROM people WHERE NOT ill")
    assert said.startswith("SDC080")
    assert "epsilon 0.8 of 1 is spent, 0.2 is free" in said
    assert guard.sql("SELECT count(*) FROM people").to_pylist() == first
    (row,) = guard.sql("SHOW sdc_budget").to_pylist()
    assert row == {
        "name": "people", "epsilon": 1.0, "delta": 0.0, "per_question": 0.4, "questions": 2, "spent": 0.8,
        "questions_left": 0, "ledger": "policy", "until": None,
    }  # fmt: skip
    assert charged(tmp_path / "register") == 2


def test_zero_concentrated_costs_add_up_to_the_declared_epsilon(make: Make) -> None:
    """More questions than the sum of epsilons allows, and never more than their conversion does."""
    guard = make(epsilon="1", delta="1e-6", per_question="0.25")
    answered = 0
    while guard.sql("SHOW sdc_budget").to_pylist()[0]["questions_left"]:
        guard.sql(f"SELECT count(*) FROM people WHERE age = {answered}")
        answered += 1
    assert refusal(guard, "SELECT count(*) FROM people").startswith("SDC080")
    (row,) = guard.sql("SHOW sdc_budget").to_pylist()
    assert answered == row["questions"] == 13
    assert 0.95 < row["spent"] <= 1


def test_whoever_asks_spends_the_same_budget(make: Make) -> None:
    """Who ask in turn can put their answers together."""
    guard = make(epsilon="1", delta="0", per_question="0.5")
    guard.sql("SELECT count(*) FROM people", user="ann")
    guard.sql("SELECT count(*) FROM people WHERE ill", user="bob")
    assert refusal(guard, "SELECT count(*) FROM people WHERE age = 3", user="eve").startswith("SDC080")


def test_two_sessions_at_one_moment_are_charged_once(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have drawn before either writes: there is one answer all the same."""
    guards, drawn, together = [make(), make()], Releases._draw, threading.Barrier(2)
    draws: list[object] = []

    def draw(*given: object) -> object:
        numbers = drawn(*given)  # type: ignore[arg-type]
        draws.append(numbers)
        together.wait(60)
        return numbers

    monkeypatch.setattr(Releases, "_draw", draw)
    query, answers = "SELECT sum(income), count(*) FROM people", list[object]()
    threads = [
        threading.Thread(target=lambda guard=guard: answers.append(guard.sql(query).to_pylist())) for guard in guards
    ]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(draws) == 2
    assert draws[0] != draws[1]
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert charged(tmp_path / "register") == 1


def test_a_question_that_was_charged_and_got_no_answer_is_not_charged_again(make: Make, tmp_path: Path) -> None:
    """The process died between the two: who asks again gets the answer."""

    with dies_before_it_draws(), pytest.raises(KeyboardInterrupt):
        make().sql("SELECT count(*) FROM people")
    assert charged(tmp_path / "register") == 1
    later = make()
    assert later.sql("SELECT count(*) FROM people").num_rows == 1
    assert charged(tmp_path / "register") == 1


def test_a_charge_is_on_disk_before_noise_is_drawn(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, seen = Releases._draw, list[int]()

    def draw(*given: object) -> object:
        seen.append(charged(tmp_path / "register"))
        return drawn(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Releases, "_draw", draw)
    make().sql("SELECT count(*) FROM people")
    assert seen == [1]


@pytest.mark.parametrize("part", [".jsonl", ".jsonl.last", "all", "changed"])
def test_without_its_ledger_a_table_is_not_answered(make: Make, tmp_path: Path, part: str) -> None:
    """Who takes the ledger away, or a line of it, has no new budget."""
    guard = make()
    guard.sql("SELECT count(*) FROM people")
    folder = tmp_path / "register.dp"
    if part == "all":
        shutil.rmtree(folder)
    for file in list(folder.iterdir()) if folder.exists() else []:
        if part == "changed" and file.suffix == ".jsonl":
            file.write_text(file.read_text().replace("login", "logic"))
        elif file.name.endswith(part):
            file.unlink()
    for asked in (make(), *([] if part == "changed" else [guard])):  # who has read what is there need not read it again
        assert refusal(asked, "SELECT count(*) FROM people WHERE ill").startswith("SDC082")


def test_declared_anew_what_was_spent_stays_spent(tmp_path: Path) -> None:
    """Also after the policy was taken back, and under another relation of neighbours, where it counts for more."""
    register = made(tmp_path / "r", epsilon="2", delta="0", per_question="1", neighbours="'add_remove'")
    with closing(sdcduck.open_guard(register)) as guard:
        guard.sql("SELECT count(*) FROM people")
    con = sdcduck.connect(str(register))
    con.execute("FROM sdc_unprotect('people')").fetchall()
    con.execute(declared(epsilon="2", delta="0", per_question="0.5", neighbours="'replace'")).fetchall()
    con.close()
    with closing(sdcduck.open_guard(register)) as guard:
        assert refusal(guard, "SELECT count(*) FROM people").startswith(
            "SDC080: the budget of this table is spent (epsilon 2 of 2"
        )


def test_a_rho_is_no_epsilon(tmp_path: Path) -> None:
    """Answers with a delta are nothing that a policy without one allows; the other way round they count as a rho."""
    register = made(tmp_path / "r", epsilon="1", delta="1e-9", per_question="0.1")
    with closing(sdcduck.open_guard(register)) as guard:
        guard.sql("SELECT count(*) FROM people")
    con = sdcduck.connect(str(register))
    con.execute(declared(epsilon="5", delta="0", per_question="0.1")).fetchall()
    con.close()
    with closing(sdcduck.open_guard(register)) as guard:
        assert "have a delta" in refusal(guard, "SELECT count(*) FROM people")
        (standing,) = guard.sql("SHOW sdc_budget").to_pylist()
        assert (standing["spent"], standing["questions_left"]) == (None, 0)
        (cost,) = guard.dp_preview("SELECT count(*) FROM people").to_pylist()
        assert (cost["enough"], cost["spent"], cost["questions_left"]) == (False, None, 0)


def test_other_data_are_charged_anew(make: Make, tmp_path: Path) -> None:
    """An answer belongs to the data that it was made of."""
    with closing(make()) as guard:
        guard.sql("SELECT count(*) FROM people")
    con = sdcduck.connect(str(tmp_path / "register"))
    con.execute("UPDATE people SET age = age + 1")
    con.close()
    make().sql("SELECT count(*) FROM people")
    assert charged(tmp_path / "register") == 2


def test_the_ledger_is_a_table(make: Make, tmp_path: Path) -> None:
    guard = make(epsilon="1", delta="0", per_question="0.25")
    guard.sql("SELECT count(*) FROM people", user="ann")
    guard.sql("SELECT count(*) FROM people WHERE ill", user="bob")
    guard.close()
    con = sdcduck.connect(str(tmp_path / "register"))
    rows = con.execute(
        "SELECT number, login, question, unit, cost, spent, neighbours FROM sdc_dp_ledger('people')"
    ).fetchall()
    assert rows == [
        (1, "ann", "SELECT count(*) FROM people", "epsilon", 0.25, 0.25, "replace"),
        (2, "bob", "SELECT count(*) FROM people WHERE ill", "epsilon", 0.25, 0.5, "replace"),
    ]
    con.close()


WRONG = {
    "epsilon := NULL": {"epsilon": "NULL"}, "epsilon := 0": {"epsilon": "0"}, "negative": {"epsilon": "-1"},
    "infinite": {"epsilon": "'inf'::DOUBLE"}, "NaN": {"epsilon": "'nan'::DOUBLE"}, "no question": {"per_question": "NULL"},
    "more than all": {"epsilon": "1", "per_question": "2"}, "delta of one in a few": {"delta": "0.005"},
    "delta negative": {"delta": "-1e-9"}, "delta of 1": {"delta": "1"}, "delta NaN": {"delta": "'nan'::DOUBLE"},
    "bounds reversed": {"bounds": "{'income': [6000, 0]}"}, "bounds near 0": {"bounds": "{'income': [0, 1e-12]}"},
    "bounds infinite": {"bounds": "{'income': [0, 'inf'::DOUBLE]}"}, "no rows": {"contributions": "0"},
    "min_units": {"min_units": "3"}, "bands": {"bands": "{'income': [0, 10]}"},
    "domain of another column": {"domains": "{'income': [1]}"}, "domain of no column": {"domains": "{'x': [1]}"},
    "domain of another type": {"domains": "{'age': ['a']}"}, "domain twice": {"domains": "{'age': [1, 1]}"},
    "domain with NULL": {"domains": "{'age': [1, NULL]}"}, "domain empty": {"domains": "{'age': []}"},
    "domain of another word": {"domains": "'secret'"}, "neighbours": {"neighbours": "'near'"},
    "sequence": {"sequence": "'precision'", "secrets": "['ill']"},
}  # fmt: skip


@pytest.fixture(scope="module")
def refusing(untouched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A register that stays as it is, because all that is asked of it is refused."""
    path = shutil.copy(untouched, tmp_path_factory.mktemp("refusing"))
    with closing(sdcduck.connect(path)) as con:
        yield con


@pytest.mark.parametrize("wrong", WRONG)
def test_bad_declarations_are_refused(refusing: duckdb.DuckDBPyConnection, wrong: str) -> None:
    before = refusing.execute("FROM sdc.policies").fetchall()
    with pytest.raises((SDCError, duckdb.Error), match=r"argument|method|unknown column"):
        refusing.execute(declared(**WRONG[wrong])).fetchall()
    assert refusing.execute("FROM sdc.policies").fetchall() == before


def test_a_measure_without_bounds_is_not_added_up(make: Make) -> None:
    """They are declared: of the data they would tell of the largest."""
    guard = make(bounds="")
    assert "no bounds" in refusal(guard, "SELECT avg(income) FROM people")
    assert guard.sql("SELECT count(income) FROM people").num_rows == 1


@pytest.mark.parametrize("records", ["SELECT 1 AS id UNION ALL SELECT 1", "SELECT 1 AS id UNION ALL SELECT NULL"])
def test_records_that_are_no_units_are_refused(tmp_path: Path, records: str) -> None:
    con = sdcduck.connect(str(tmp_path / "r"))
    con.execute(
        f"CREATE TABLE people AS SELECT id, 'n' AS region, 3 AS age, true AS ill, 5.0 AS income FROM ({records})"
    )
    with pytest.raises(duckdb.Error, match=r"several rows|NULL"):
        con.execute(declared(delta="0")).fetchall()
    con.close()


def test_tables_only_in_a_file_and_under_one_policy(tmp_path: Path) -> None:
    memory = sdcduck.connect()
    memory.execute(f"CREATE TABLE people AS {RECORDS}")
    with pytest.raises(duckdb.Error, match="in no file"):
        memory.execute(declared()).fetchall()
    con = sdcduck.connect(str(tmp_path / "r"))
    con.execute(f"CREATE TABLE records AS {RECORDS}; CREATE VIEW people AS FROM records")
    with pytest.raises(duckdb.Error, match="view"):
        con.execute(declared()).fetchall()
    con.execute("DROP VIEW people; ALTER TABLE records RENAME TO people; CREATE VIEW ills AS FROM people WHERE ill")
    threshold = "unit := 'id', dimensions := ['region'], method := 'threshold', min_units := 3"
    con.execute(f"FROM sdc_protect('people', {threshold})").fetchall()
    with pytest.raises(duckdb.Error, match="is not undone"):
        con.execute(declared()).fetchall()
    con.execute("FROM sdc_unprotect('people')").fetchall()
    con.execute(f"FROM sdc_protect('ills', {threshold}, role := 'other')").fetchall()
    with pytest.raises(duckdb.Error, match="not counted"):
        con.execute(declared()).fetchall()
    con.execute("FROM sdc_unprotect('ills', role := 'other')").fetchall()
    con.execute(declared()).fetchall()
    with pytest.raises(duckdb.Error, match="are counted"):
        con.execute(f"FROM sdc_protect('ills', {threshold}, role := 'other')").fetchall()
    con.close()


def test_odd_values_of_a_measure_are_none(tmp_path: Path) -> None:
    """NaN and infinities count as missing; what is beyond a bound counts as it does; nothing overflows."""
    odd = "CASE i % 5 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE WHEN 2 THEN '-inf'::DOUBLE WHEN 3 THEN 1e300 ELSE -1e300 END"
    register = made(tmp_path / "r", f"SELECT * REPLACE ({odd} AS income) FROM ({RECORDS.replace('AS id', 'AS id, i')})",
                    bounds="{'income': [-9e14, 8e14]}")  # fmt: skip
    with closing(sdcduck.open_guard(register)) as guard:
        (row,) = guard.sql("SELECT count(income) AS n, sum(income) AS s, avg(income) AS m FROM people").to_pylist()
    assert row["n"] == pytest.approx(800, abs=15)
    assert row["s"] == pytest.approx(400 * 8e14 - 400 * 9e14, rel=0.4)
    assert -9e14 <= row["m"] <= 8e14


def test_a_question_is_counted_before_it_is_charged(tmp_path: Path) -> None:
    """Who may ask no more on this day spends nothing; the answer says how many questions are left."""
    register = made(tmp_path / "r")
    with closing(sdcduck.connect(str(register))) as con:
        con.execute("FROM sdc_question_budget('people', 1)").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        answer = guard.sql("SELECT count(*) AS n FROM people", user="ann")
        assert answer.to_pylist()[0]["n"] == pytest.approx(PEOPLE, abs=12)
        assert (answer.schema.metadata or {})[NOTICE.encode()] == b"people: 0 of 1 questions are left today"
        assert refusal(guard, "SELECT count(*) FROM people WHERE ill", user="ann").startswith("SDC073")
    assert charged(register) == 1
