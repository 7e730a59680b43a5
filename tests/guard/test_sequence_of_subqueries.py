"""Subqueries, WITH, public lists and answers beside records, and conditions on measures, under a limit: which sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from register_of_people import SECRET, add_zones, declare, made, outcome, persons_of

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.protect.inner_cells import Figure

ILL = "WHERE ill GROUP BY a"
SETS = {
    f"WITH w AS (SELECT * FROM people WHERE b < 4), v AS (SELECT a, ill FROM w) SELECT a, count(*) FROM v {ILL}": (
        f"b < 4 AND {ILL[6:]}"
    ),
    f"SELECT a, count(*) FROM (SELECT person_id, max(a) AS a, bool_or(ill) AS ill FROM people GROUP BY person_id) {ILL}": (
        ILL[6:]
    ),
    f"SELECT a, count(*) FROM people SEMI JOIN zones USING (a) {ILL}": f"a IN (SELECT a FROM zones) AND {ILL[6:]}",
    f"SELECT a, count(*) FROM people ANTI JOIN zones USING (a) {ILL}": f"a NOT IN (SELECT a FROM zones) AND {ILL[6:]}",
    "SELECT count(*) FROM people p WHERE ill AND NOT EXISTS (SELECT 1 FROM zones z WHERE z.a = p.b AND zone <> 'west')": (
        "ill AND b NOT IN (SELECT a FROM zones WHERE zone <> 'west')"
    ),
    "SELECT count(*) FROM people WHERE ill OR a IN (SELECT a FROM shown)": "ill OR a IN (SELECT a FROM zones)",
    "SELECT (SELECT zone FROM zones z WHERE z.a = p.a) AS z, count(*) FROM people p WHERE ill GROUP BY z": (
        "ill GROUP BY CASE WHEN a < 2 THEN 0 ELSE least(a, 4) END"
    ),
    "WITH p AS (SELECT 2 AS low, 5 AS high) SELECT count(*) FROM people, p WHERE ill AND a BETWEEN low AND high": (
        "ill AND a BETWEEN 2 AND 5"
    ),
    "SELECT since, count(*) FROM people ASOF JOIN (VALUES (2), (6)) r(since) ON a >= since WHERE ill GROUP BY since": (
        "ill AND a >= 2 GROUP BY a >= 6"
    ),
    "SELECT count(*) FILTER (WHERE b > (SELECT max(a) FROM zones)) FROM people WHERE ill": "ill AND b > 3",
    "SELECT count(*) FROM people WHERE ill AND b < 4 AND x >= 10": "ill AND b < 4",
}


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = made(tmp_path_factory.mktemp("subqueries"), people=200)
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        add_zones(con)
        con.execute("CREATE VIEW drawn AS FROM zones WHERE current_date > DATE '2020-01-01'")
        con.execute("FROM sdc_declare_public('drawn')").fetchall()
        con.execute("ALTER TABLE people ADD COLUMN x INTEGER").fetchall()
        con.execute("UPDATE people SET x = CASE WHEN person_id % 9 > 0 THEN 5 + person_id % 30 END").fetchall()
        declare(con, more=", measures := ['x'], bands := {'x': [10, 20]}")
    return path


@pytest.fixture
def guard(register: Path, tmp_path: Path) -> Iterator[Guard]:
    """Of a copy, in which nobody was told anything."""
    path = tmp_path / "people.duckdb"
    path.write_bytes(register.read_bytes())
    with closing(sdcduck.open_guard(path)) as opened:
        yield opened


@pytest.fixture(scope="module")
def rewriting(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


def sets(guard: Guard, question: str) -> dict[frozenset[int], set[str]]:
    """The persons that the last block of a question is about, and what is added up of them."""
    rewritten, _ = guard.rewritten(question)
    [policy] = [policy for policy in rewritten.policies if policy.name == "people"]
    found: dict[frozenset[int], set[str]] = {}
    for persons, of in persons_of(guard, policy, rewritten.sets[-1]):
        found.setdefault(persons, set()).add(of)
    return found


@pytest.mark.parametrize("question", SETS)
def test_the_sets_are_those_of_the_records(register: Path, rewriting: Guard, question: str) -> None:
    found = sets(rewriting, question)
    with closing(rewriting._limited.cursor()) as con:
        wanted = {
            frozenset(ids)
            for (ids,) in con.execute(f"SELECT list(person_id) FROM people WHERE {SETS[question]}").fetchall()
            if ids
        }
    assert wanted <= found.keys(), "groups and, beside them, all that their conditions leave"
    assert all(any(one <= other for other in wanted) or one >= frozenset().union(*wanted) for one in found)


def test_what_is_said_of_a_measure_is_no_set_but_another_figure(rewriting: Guard) -> None:
    """Of the same people: a sum of some values, and how many have such a value."""
    [(_, of)] = sets(rewriting, "SELECT sum(x) AS s FROM people WHERE b < 4 AND x >= 10").items()
    read = {(figure.kind, figure.measures, figure.made.split(";")[0]) for figure in map(Figure.read, of)}
    assert {(kind, measures) for kind, measures, _ in read} == {("sum", ("x",)), ("value", ("x",))}
    assert all(">= 10" in Figure.read(text).made for text in of)
    banded = "SELECT CASE WHEN x < 10 THEN 'low' WHEN x < 20 THEN 'middle' ELSE 'high' END AS band, count(*) FROM people GROUP BY 1"
    [(everybody, figures)] = sets(rewriting, banded).items()
    assert len(everybody) == 200
    assert len(figures) == 4, "of each band, and of who has no value"


def test_answers_that_choose_records_are_charged_before_the_sets_are_looked_at(register: Path, tmp_path: Path) -> None:
    """Who is refused was told what the refusal followed from."""
    path = tmp_path / "people.duckdb"
    path.write_bytes(register.read_bytes())
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        declare(con, more=", least_error := 0.97")
    top = "SELECT a FROM people WHERE ill GROUP BY a ORDER BY count(*) DESC, a LIMIT 2"
    with closing(sdcduck.open_guard(path)) as guard:
        assert outcome(guard, f"SELECT count(*) FROM people WHERE ill AND a IN ({top})") == "answered"
        [told] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
        assert (told["answers"], told["sets"]) == (2, 9), "eight groups, and the people of two of them"
        assert outcome(guard, top) == "answered"
        assert guard.sql("SHOW sdc_sequence", user="ann").to_pylist() == [told]
        assert (
            outcome(guard, f"SELECT b, c, count(*) FROM people WHERE ill AND a IN ({top}) GROUP BY b, c", "bob")
            == "SDC070"
        )
        [told] = guard.sql("SHOW sdc_sequence", user="bob").to_pylist()
        assert (told["answers"], told["sets"]) == (1, 8)


def test_the_same_people_through_an_answer_are_the_same_set(guard: Guard) -> None:
    top = "SELECT a FROM people GROUP BY a ORDER BY count(*) DESC, a LIMIT 2"
    first, second = (row["a"] for row in guard.sql(top, user="ann").to_pylist())
    named = guard.sql(
        f"SELECT count(*) AS n FROM people WHERE ill AND a IN ({first}, {second})", user="ann"
    ).to_pylist()
    before = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    for again in (
        f"SELECT count(*) AS n FROM people WHERE ill AND a IN ({top})",
        f"WITH t AS ({top}) SELECT count(*) AS n FROM people JOIN t USING (a) WHERE ill",
    ):
        assert guard.sql(again, user="ann").to_pylist() == named
    assert guard.sql("SHOW sdc_sequence", user="ann").to_pylist() == before


def test_sums_of_what_is_known_of_everybody_tell_nothing(guard: Guard) -> None:
    for query in (
        "SELECT avg(b) FROM people",
        "SELECT a, median(b) FROM people GROUP BY a",
        "SUMMARIZE SELECT a, b FROM people",
    ):
        assert outcome(guard, query) == "answered"
    assert {one["sets"] for one in guard.sql("SHOW sdc_sequence", user="ann").to_pylist()} == {0}
    assert outcome(guard, "SELECT median(b) FROM people WHERE ill") == "SDC071"
    assert outcome(guard, "SELECT stddev(b) FROM people WHERE ill") == "answered"
    assert {one["sets"] for one in guard.sql("SHOW sdc_sequence", user="ann").to_pylist()} == {9}, "by their counts"
    assert outcome(guard, "SUMMARIZE SELECT b FROM people WHERE ill") == "SDC071"
    assert outcome(guard, "SUMMARIZE SELECT b FROM people WHERE x >= 10") == "SDC071"


def test_sums_of_some_values_differ_from_those_of_all(guard: Guard) -> None:
    """However they are narrowed, each is a look at the values."""
    told = []
    for query in ("SELECT sum(x) FROM people", "SELECT sum(x) FROM people WHERE x >= 10", "SELECT sum(x) FROM people"):
        assert outcome(guard, query) == "answered"
        [one] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
        told.append(one["sets"])
    assert told[0] < told[1] == told[2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ill, count(*) FROM people WHERE x >= 10 GROUP BY ill",
        "SELECT ill, sum(x) FROM people GROUP BY ill",
        "SELECT count(*) FROM people WHERE x >= 10 OR a = 1",
        "WITH w AS (SELECT a, x >= 10 AS rich FROM people) SELECT rich, count(*) FROM w GROUP BY rich",
        "SELECT count(*) FROM people WHERE a IN (SELECT a FROM drawn)",
        "SELECT count(*) FROM people JOIN (SELECT a FROM zones WHERE current_date > DATE '2020-01-01') z USING (a)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT count(*) FROM people WHERE a IN (FROM r)",
        "SELECT count(*) FROM (SELECT a FROM people UNION ALL SELECT b FROM people)",
        "SELECT count(*) FROM people p WHERE person_id IN (SELECT person_id FROM people WHERE ill)",
        "SELECT n, count(*) FROM (SELECT person_id, row_number() OVER (PARTITION BY person_id ORDER BY a) AS n FROM people) GROUP BY n",
    ],
)
def test_what_is_no_set_is_refused(rewriting: Guard, query: str) -> None:
    assert outcome(rewriting, query) not in ("answered", "SDC001", "SDC070", "SDC090")
