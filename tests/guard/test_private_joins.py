"""Two tables of the same people under `method := 'dp'`: joined on the unit, looked for in each other, and charged to both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pytest
from private_numbers import charges, groups_near, totals
from private_people import dies_before_it_draws

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.costs import policy_of, sensitivity
from sdcduck.guard.releases import Releases

pytest.importorskip("opendp")

ROWS = 4
PEOPLE = """SELECT i AS id, ['n', 's'][1 + i % 2] AS region, i * 7 % 90 AS age, (i * 37 % 500)::DOUBLE AS income
    FROM range(600) t(i)"""
VISITS = """SELECT i * i % 701 AS id, ['gp', 'er', 'lab'][1 + i % 3] AS kind, i % 5 AS region, (i % 97 * 3)::DOUBLE AS cost
    FROM range(1000) t(i)"""
SHARED = {"epsilon": "1000", "per_question": "50", "delta": "1e-6", "population": "'persons'"}


def made(path: Path, people: str = PEOPLE, visits: str = VISITS, of_visits: dict[str, str] | None = None, **other: str) -> Path:  # fmt: skip
    """A register of people and their visits; ``of_visits``: what is declared otherwise of these alone."""

    def written(arguments: dict[str, str]) -> str:
        return "".join(f", {name} := {value}" for name, value in arguments.items() if value)

    with closing(sdcduck.connect(str(path))) as con:
        con.execute(f"CREATE TABLE people AS {people}; CREATE TABLE visits AS {visits}")
        con.execute("CREATE TABLE areas AS SELECT * FROM (VALUES ('n', 'cold'), ('s', 'warm')) t(region, area)")
        con.execute("FROM sdc_declare_public('areas')").fetchall()
        con.execute(f"""FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'],
            method := 'dp', bounds := {{'income': [0, 500]}},
            domains := {{'region': ['n', 's'], 'age': range(0, 90)}}{written({**SHARED, **other})})""").fetchall()
        con.execute(f"""FROM sdc_protect('visits', unit := 'id', dimensions := ['kind', 'region'], measures := ['cost'],
            method := 'dp', bounds := {{'cost': [0, 300]}}, domains := {{'kind': ['gp', 'er', 'lab'], 'region': range(0, 5)}}
            {written({**SHARED, 'contributions': str(ROWS), **other, **(of_visits or {})})})""").fetchall()  # fmt: skip
    return path


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(made(tmp_path_factory.mktemp("joins") / "register"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {PEOPLE}; CREATE TABLE visits AS {VISITS}")
        con.execute("CREATE TABLE areas AS SELECT * FROM (VALUES ('n', 'cold'), ('s', 'warm')) t(region, area)")
        yield con


PER = "(SELECT id, count(*) AS n, sum(cost) AS total FROM visits GROUP BY id)"
QUESTIONS = [
    ("SELECT p.region, count(*), sum(v.cost), avg(p.income) FROM people p JOIN visits v USING (id) GROUP BY 1", 1),
    ("SELECT v.kind, count(*), count(DISTINCT p.id), avg(p.age) FROM visits v JOIN people p ON p.id = v.id WHERE p.region = 'n' GROUP BY v.kind", 1),
    ("SELECT p.region, v.region AS of, count(*) FROM people p, visits v WHERE p.id = v.id AND v.cost > 50 GROUP BY ALL", 2),
    ("SELECT p.region, count(*), count(v.id), count(DISTINCT v.id), count(*) FILTER (WHERE v.id IS NULL), sum(v.cost) FROM people p LEFT JOIN visits v USING (id) GROUP BY 1", 1),
    ("SELECT count(*) FROM people p LEFT JOIN visits v ON v.id = p.id WHERE v.id IS NULL AND p.age > 20", 0),
    ("SELECT count(*), count(v.id) FILTER (WHERE v.kind = 'er') FROM visits v RIGHT JOIN people p ON p.id = v.id", 0),
    ("SELECT a.area, v.kind, count(*) FROM people p JOIN areas a ON a.region = p.region JOIN visits v ON v.id = p.id AND v.kind <> 'lab' GROUP BY ALL", 2),
    ("SELECT floor(v.cost / 100) * 100, count(*) FROM people p JOIN visits v ON v.id = p.id GROUP BY 1", 1),
    ("SELECT p.region, count(*) FROM people p JOIN (SELECT id, cost AS c FROM visits WHERE kind = 'er') v ON v.id = p.id WHERE v.c > 100 GROUP BY p.region", 1),
    ("WITH er AS (SELECT * FROM visits WHERE kind = 'er') SELECT region, n FROM (SELECT p.region, count(*) AS n FROM people p JOIN er USING (id) GROUP BY p.region)", 1),
    ("SELECT v.region, count(*) FROM (SELECT id, region FROM people WHERE age > 40) p LEFT JOIN (SELECT id, kind AS region FROM visits) v ON v.id = p.id GROUP BY v.region", 1),
    (f"SELECT p.region, avg(t.n), sum(t.total), count(*) FROM people p JOIN {PER} t ON t.id = p.id WHERE p.age < 80 GROUP BY p.region", 1),
    (f"SELECT coalesce(t.n, 0), count(*), avg(p.income) FROM {PER} t RIGHT JOIN people p ON t.id = p.id GROUP BY 1", 1),
    ("SELECT p.region, sum(coalesce(t.er, 0)), sum(t.c) FROM people p LEFT JOIN (SELECT id, count(*) FILTER (WHERE kind = 'er') AS er, sum(cost) AS c FROM visits WHERE cost > 30 GROUP BY id) t ON t.id = p.id GROUP BY p.region", 1),
    ("WITH t AS (SELECT id, sum(cost) AS total FROM visits GROUP BY id HAVING count(*) > 1) SELECT floor(t.total / 300) * 300, avg(p.income), count(*) FROM t JOIN people p ON p.id = t.id GROUP BY 1", 1),
    ("SELECT region, avg(n), count(*) FROM (SELECT p.id, p.region, count(v.id) AS n FROM people p LEFT JOIN visits v ON v.id = p.id GROUP BY p.id, p.region) GROUP BY region", 1),
    ("SELECT region, count(*) FROM people WHERE id IN (SELECT id FROM visits WHERE kind = 'er') GROUP BY region", 1),
    ("SELECT count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND v.cost > 200)", 0),
    ("SELECT count(*), sum(cost) FROM visits WHERE id IN (SELECT id FROM people WHERE region = 'n' AND income > 100)", 0),
    ("SELECT count(*) FROM people p SEMI JOIN (SELECT id FROM visits GROUP BY id HAVING count(*) > 2) v USING (id)", 0),
    ("SELECT count(*) FROM people p JOIN visits v USING (id) WHERE p.id NOT IN (SELECT id FROM visits WHERE kind = 'lab')", 0),
    ("SELECT p.region, count(*) FROM people p JOIN (SELECT DISTINCT id FROM visits WHERE kind = 'er') v ON v.id = p.id GROUP BY p.region", 1),
    ("SELECT region, count(*), count(*) FILTER (WHERE id IN (SELECT id FROM visits WHERE kind = 'lab')) FROM people GROUP BY region", 1),
    ("SELECT EXISTS (SELECT 1 FROM visits v WHERE v.id = people.id AND v.cost > 100) AS often, region, count(*), sum(income) FROM people GROUP BY ALL", 2),
    ("SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM visits WHERE kind = 'gp')", 0),
    ("SELECT a.region, a.n, b.m FROM (SELECT region, count(*) AS n FROM people GROUP BY region) a JOIN (SELECT p.region, count(*) AS m FROM people p JOIN visits v USING (id) GROUP BY p.region) b USING (region)", 1),
]  # fmt: skip


@pytest.mark.parametrize(("question", "keys"), QUESTIONS)
def test_numbers_are_near_those_of_the_tables(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int
) -> None:
    """No unit has more rows than are looked at; groups that nobody is in have next to nothing."""
    groups_near(guard, plain, question, keys, rel=0.1)


# The rows of one unit in both tables: none, few, many, of no kind, with NaN, in one of both alone.
OF_ONE: list[tuple[str, str]] = [
    ("('n', 3, 500.0)", "('gp', 0, 300.0)"),
    ("('s', 80, 0.0)", ", ".join(f"('lab', {place % 5}, 1e9)" for place in range(9))),
    ("('x', 99, 'nan'::DOUBLE)", "('er', 1, 0.0), ('x', 9, 'inf'::DOUBLE), (NULL, NULL, NULL), ('er', 4, 299.0)"),
    ("(NULL, 30, 250.0)", ""),
    ("", ", ".join(f"('er', {place}, 299.5)" for place in range(4))),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_neighbours_are_no_farther_apart_than_is_charged(tmp_path: Path, neighbours: str) -> None:
    """Exactly, where one person is other in one table, in the other, or in both at once."""
    with ExitStack() as stack:
        guards = []
        for place, (person, visits) in enumerate(OF_ONE):
            one = f" UNION ALL BY NAME SELECT 7 AS id, * FROM (VALUES {person}) v(region, age, income)"
            its = f" UNION ALL BY NAME SELECT 7 AS id, * FROM (VALUES {visits}) v(kind, region, cost)"
            register = made(
                tmp_path / str(place),
                f"SELECT * FROM ({PEOPLE}) WHERE id <> 7{one if person else ''}",
                f"SELECT * FROM ({VISITS}) WHERE id <> 7{its if visits else ''}",
                neighbours=f"'{neighbours}'",
            )
            guards.append(stack.enter_context(closing(sdcduck.open_guard(register))))
        for question, _ in QUESTIONS[::2] if neighbours == "replace" else QUESTIONS[1::4]:
            every = [totals(guard, question) for guard in guards]
            privacy, most = policy_of(guards[0].rewritten(question)[0]).privacy, 0.0
            pairs = combinations(every, 2) if neighbours == "replace" else ((one, every[-1]) for one in every[:-1])
            for one, other in pairs:
                for (release, noised, mine), (_, _, its_own) in zip(one, other, strict=True):
                    apart = [abs(int(a) - int(b)) for a, b in zip(mine, its_own, strict=True)]
                    assert release.contributions is not None
                    rows = sdcduck.catalog.Privacy(**{**vars(privacy), "contributions": release.contributions})
                    for gaussian, distance in ((False, sum(apart)), (True, math.hypot(*apart))):
                        charged = sensitivity(noised, rows, grouped=release.grouped, gaussian=gaussian)
                        assert distance <= charged * (1 + 1e-12), (question, noised)
                        most = max(most, distance / charged)
            assert most >= 0.15, question  # that they are told apart is seen


JOINED = "SELECT p.region, count(*) AS n FROM people p JOIN visits v USING (id) GROUP BY p.region ORDER BY p.region"
BUDGET = {"epsilon": "1", "delta": "0", "per_question": "0.5"}


def test_a_mean_of_numbers_of_rows_is_one_of_what_a_unit_may_have(tmp_path: Path) -> None:
    few = made(tmp_path / "register", "SELECT i AS id, 'n' AS region, i AS age, 1.0 AS income FROM range(3) t(i)", per_question="1")  # fmt: skip
    with closing(sdcduck.open_guard(few)) as opened:
        means = [
            row["a"]
            for row in opened.sql("""SELECT p.age, avg(t.n) AS a FROM people p
                JOIN (SELECT id, count(*) AS n FROM visits GROUP BY id) t ON t.id = p.id GROUP BY p.age""").to_pylist()
        ]
    assert len(means) > 80
    assert all(mean is None or 0 <= mean <= ROWS for mean in means)


def test_both_ledgers_are_charged_the_same_once(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "register", **BUDGET))) as guard:
        before = guard.dp_preview(JOINED).to_pylist()[-1]
        first = guard.sql(JOINED).to_pylist()
        assert guard.sql(JOINED).to_pylist() == first
        assert guard.sql(JOINED.replace("p JOIN visits v", "AS p INNER JOIN visits AS v")).to_pylist() == first
        after = guard.dp_preview(JOINED).to_pylist()[-1]
        notes = guard.explain(JOINED).notes[-2:]
    mine, its = (charges(tmp_path / "register", table) for table in ("people", "visits"))
    assert [(line["cost"], line["unit"], line["key"]) for line in mine] == [(0.5, "epsilon", mine[0]["key"])]
    assert [line["key"] for line in its] == [line["key"] for line in mine]
    assert (before["epsilon"], before["paid"], before["questions_left"]) == (0.5, False, 1)
    assert (after["epsilon"], after["paid"], after["questions_left"]) == (0.0, True, 1)
    assert [note.partition(":")[0] for note in notes] == ["people", "visits"]


def test_where_one_budget_is_spent_no_ledger_is_charged(tmp_path: Path) -> None:
    """Whichever it is, also where it is the one that is held second; tables by themselves go on."""
    with closing(sdcduck.open_guard(made(tmp_path / "register", **BUDGET))) as guard:
        for kind in ("gp", "er"):
            guard.sql(f"SELECT count(*) FROM visits WHERE kind = '{kind}'")
        assert not guard.dp_preview(JOINED).to_pylist()[-1]["enough"]
        with pytest.raises(Refused, match=r"SDC080.*'visits'"):
            guard.sql(JOINED)
        assert charges(tmp_path / "register", "people") == []
        guard.sql("SELECT count(*) FROM people")
        with pytest.raises(Refused, match="SDC080"):
            guard.sql("SELECT count(*) FROM people WHERE id IN (SELECT id FROM visits)")
    assert len(charges(tmp_path / "register", "people")) == 1
    assert len(charges(tmp_path / "register", "visits")) == 2


def test_what_died_between_two_ledgers_is_charged_on_and_not_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = made(tmp_path / "register", **BUDGET)
    added = Releases._add

    def dies(self: Releases, policy: sdcduck.catalog.Policy, *given: Any) -> None:
        if policy.name == "visits":
            raise KeyboardInterrupt
        added(self, policy, *given)

    with closing(sdcduck.open_guard(register)) as guard:
        with monkeypatch.context() as patched:
            patched.setattr(Releases, "_add", dies)
            with pytest.raises(KeyboardInterrupt):
                guard.sql(JOINED)
        with dies_before_it_draws(), pytest.raises(KeyboardInterrupt):
            guard.sql(JOINED)
        guard.sql(JOINED)
    assert len(charges(tmp_path / "register", "people")) == len(charges(tmp_path / "register", "visits")) == 1


REFUSED = [
    ("SELECT count(*) FROM people p JOIN visits v ON p.age = v.region", "SDC035", "join v on the unit"),
    ("SELECT count(*) FROM people p, visits v", "SDC035", "join v on the unit"),
    ("SELECT count(*) FROM people p FULL JOIN visits v ON p.id = v.id", "SDC081", "FULL JOIN"),
    ("SELECT count(*) FROM people p LEFT JOIN visits v ON p.id = v.id AND v.kind = 'er'", "SDC081", "FILTER"),
    ("SELECT v.id % 2, count(*) FROM people p LEFT JOIN visits v ON p.id = v.id GROUP BY 1", "SDC081", "behind LEFT JOIN"),
    ("SELECT p.id FROM people p JOIN visits v ON p.id = v.id", "SDC040", ""),
    ("SELECT v.secret FROM people p JOIN visits v ON p.id = v.id", "SDC030", ""),
    ("SELECT count(*) FROM people p JOIN visits v ON p.id = v.id JOIN visits w ON w.id = p.id", "SDC081", ""),
    (f"SELECT avg(t.n) FROM people p LEFT JOIN {PER} t ON t.id = p.id", "SDC081", "coalesce(t.n, 0)"),
    ("SELECT max(v.cost) FROM people p JOIN visits v ON p.id = v.id", "SDC050", "quantile_cont(cost, 0.95)"),
    ("SELECT count(*) FROM people WHERE id IN (SELECT max(id) FROM visits GROUP BY kind)", "SDC050", ""),
    ("SELECT count(*) FROM people WHERE region IN (SELECT kind FROM visits)", "SDC044", ""),
    ("SELECT count(*) FROM people p WHERE (SELECT count(*) FROM visits v WHERE v.cost > p.income) > 3", "", ""),
    ("SELECT count(*) FROM people p JOIN visits v ON p.id = v.id AND p.id = (SELECT max(id) FROM visits)", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("question", "code", "told"), REFUSED)
def test_what_is_not_answered_says_why(guard: Guard, question: str, code: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(question)
    assert code in str(refused.value)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"neighbours": "'add_remove'"}, "neighbours"), ({"delta": "1e-7"}, "delta"), ({"per_question": "40"}, "per_question"),
        ({"noise": "'normal'"}, "noise"), ({"objective": "'mse'"}, "objective"), ({"population": "'firms'"}, "different units"),
        ({"population": ""}, "different units"),
    ],
)  # fmt: skip
def test_tables_that_are_not_counted_alike_are_not_asked_together(
    tmp_path: Path, other: dict[str, str], told: str
) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "register", of_visits=other))) as guard:
        for question in (JOINED, "SELECT count(*) FROM people WHERE id IN (SELECT id FROM visits)"):
            with pytest.raises(Refused) as refused:
                guard.sql(question)
            assert told in str(refused.value)
    assert charges(tmp_path / "register", "people") == charges(tmp_path / "register", "visits") == []
