"""Public tables beside records, and subqueries of records, under a limit on the sequence of answers: the same sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from register_of_people import SECRET, add_zones, declare, made, outcome, persons_of

import sdcduck
from sdcduck.guard import Guard

BY_ZONE = "SELECT z.zone, count(*) AS n FROM people p JOIN zones z ON p.a = z.a WHERE p.ill GROUP BY z.zone"
SETS = {
    BY_ZONE: "SELECT list(person_id) FROM people JOIN zones USING (a) WHERE ill GROUP BY zone",
    "SELECT zone, count(*) FROM zones JOIN people USING (a) WHERE zone <> 'north' AND NOT ill GROUP BY zone": (
        "SELECT list(person_id) FROM people JOIN zones USING (a) WHERE zone <> 'north' AND NOT ill GROUP BY zone"
    ),
    "SELECT count(*) FROM people LEFT JOIN zones ON people.a = zones.a WHERE ill AND zone IS NULL": (
        "SELECT list(person_id) FROM people WHERE ill AND a NOT IN (SELECT a FROM zones)"
    ),
    "SELECT label, count(*) FROM people JOIN (VALUES (1, 'one'), (2, 'two')) v(x, label) ON a = x WHERE ill GROUP BY ALL": (
        "SELECT list(person_id) FROM people WHERE ill AND a IN (1, 2) GROUP BY a"
    ),
    "SELECT most, count(*) FROM people JOIN (VALUES (2), (5)) v(most) ON a < most WHERE ill GROUP BY most": (
        "SELECT list(person_id) FROM people WHERE ill AND a < 2 UNION ALL SELECT list(person_id) FROM people WHERE ill AND a < 5"
    ),
    'SELECT "q"."a", COUNT(*) FROM (SELECT * FROM people) AS "q" WHERE "q"."ill" GROUP BY 1': (
        "SELECT list(person_id) FROM people WHERE ill GROUP BY a"
    ),
    "SELECT high, count(*) FROM (SELECT a + b > 7 AS high, ill AS c FROM people WHERE c > 2) WHERE c GROUP BY high": (
        "SELECT list(person_id) FROM people WHERE ill AND c > 2 GROUP BY a + b > 7"
    ),
    "SELECT zone, count(*) FROM (SELECT a, ill FROM people) q JOIN zones ON q.a = zones.a WHERE q.ill GROUP BY zone": (
        "SELECT list(person_id) FROM people JOIN zones USING (a) WHERE ill GROUP BY zone"
    ),
}


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = made(tmp_path_factory.mktemp("joined"), people=200)
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        add_zones(con)
        con.execute("CREATE TABLE twice AS SELECT a, zone FROM zones UNION ALL SELECT a, 'again' FROM zones").fetchall()
        con.execute("FROM sdc_declare_public('twice')").fetchall()
    return path


@pytest.fixture(scope="module")
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


@pytest.mark.parametrize("question", SETS)
def test_the_sets_are_those_of_the_records(guard: Guard, question: str) -> None:
    with closing(guard._limited.cursor()) as con:
        wanted = {frozenset(ids) for (ids,) in con.execute(SETS[question]).fetchall() if ids}
    rewritten, _ = guard.rewritten(question)
    [policy] = [policy for policy in rewritten.policies if policy.name == "people"]
    [counted] = [counted for counted in rewritten.sets if "GROUP BY" in counted.sql or len(rewritten.sets) == 1]
    found = {persons for persons, _ in persons_of(guard, policy, counted)}
    assert found - {frozenset()} == wanted


def test_the_same_set_is_the_same_number_however_it_is_written(guard: Guard) -> None:
    """So that it is charged once."""
    plain = "SELECT a, count(*) AS n FROM people WHERE ill AND a < 4 GROUP BY a ORDER BY a"
    first = guard.sql(plain, user="bea").to_pylist()
    before = guard.sql("SHOW sdc_sequence", user="bea").to_pylist()
    for again in (
        "SELECT a, count(*) AS n FROM (SELECT a, ill AS sick FROM people) q WHERE sick AND a < 4 GROUP BY a ORDER BY a",
        "SELECT z.a, count(*) AS n FROM people p JOIN zones z ON p.a = z.a WHERE p.ill GROUP BY z.a ORDER BY z.a",
    ):
        assert guard.sql(again, user="bea").to_pylist() == first
    assert guard.sql("SHOW sdc_sequence", user="bea").to_pylist() == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.zone, count(*) FROM people p JOIN twice t ON p.a = t.a WHERE zone <> 'x' GROUP BY GROUPING SETS ((zone), ())",
        "SELECT count(*) FROM people p JOIN twice t ON p.a = t.a",
        "SELECT count(*) FROM people RIGHT JOIN zones USING (a)",
        "SELECT count(*) FROM people FULL JOIN zones USING (a)",
        "SELECT count(*) FROM people JOIN (SELECT a FROM zones WHERE random() < 0.5) z USING (a)",
        "SELECT count(*) FROM (SELECT a FROM people LIMIT 7)",
        "SELECT count(*) FROM (SELECT a, random() AS r FROM people) WHERE r < 0.5",
        "SELECT count(*) FROM (SELECT a, person_id AS c FROM people) WHERE c < 5",
        "SELECT count(*) FROM (SELECT unnest([a, b]) AS x FROM people) WHERE x > 1",
        "SELECT count(*) FROM (SELECT a, current_date AS d FROM people) WHERE d > DATE '2020-01-01'",
        "SELECT count(*) FROM people p JOIN zones z ON p.a = z.a AND p.person_id = 3",
        "SELECT count(*) FROM people JOIN zones ON zones.a < _sdc_place",
        "SELECT count(*) FROM (SELECT a, a AS _sdc_place FROM people)",
    ],
)
def test_what_is_no_plain_set_is_refused(guard: Guard, query: str) -> None:
    assert outcome(guard, query) not in ("answered", "SDC001", "SDC070", "SDC090")


def test_exact_counts_are_limited_behind_a_join_as_without(register: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    path.write_bytes(register.read_bytes())
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("""FROM sdc_protect('people', unit := 'person_id', dimensions := ['a'], method := 'threshold',
            min_units := 10, sequence := 'atoms')""").fetchall()
    with closing(sdcduck.open_guard(path)) as opened:
        assert outcome(opened, "SELECT count(*) FROM people JOIN zones USING (a) WHERE zone = 'north'") == "answered"
        assert opened.sql("SHOW sdc_sequence", user="ann").column("sets").to_pylist() == [1]
        assert outcome(opened, "SELECT count(*) FROM (SELECT a FROM people WHERE a < 2)") == "answered"
        assert opened.sql("SHOW sdc_sequence", user="ann").column("sets").to_pylist() == [1], "the same people"


def test_measures_of_a_subquery_are_known_by_their_names(tmp_path: Path) -> None:
    path = made(tmp_path / "measured")
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("ALTER TABLE people ADD COLUMN x INTEGER").fetchall()
        con.execute("ALTER TABLE people ADD COLUMN y INTEGER").fetchall()
        con.execute("UPDATE people SET x = 5 + person_id % 7, y = 100 + person_id").fetchall()
        declare(con, more=", measures := ['x', 'y']")
    with closing(sdcduck.open_guard(path)) as opened:
        first = opened.sql("SELECT sum(x) AS s FROM people", user="ann").to_pylist()
        [told] = opened.sql("SHOW sdc_sequence", user="ann").to_pylist()
        assert opened.sql("SELECT sum(q.x) AS s FROM (SELECT * FROM people) q", user="ann").to_pylist() == first
        [again] = opened.sql("SHOW sdc_sequence", user="ann").to_pylist()
        assert again["sets"] == told["sets"] == 2, "and how many have a value, whether or not all have one"
        assert opened.sql("SELECT sum(q.z) AS s FROM (SELECT x AS z FROM people) q", user="ann").to_pylist() == first
        assert opened.sql("SHOW sdc_sequence", user="ann").to_pylist() == [again]
        assert outcome(opened, "SELECT sum(q.x) FROM (SELECT y AS x FROM people) q") == "answered"
        [other] = opened.sql("SHOW sdc_sequence", user="ann").to_pylist()
        assert other["sets"] == 4, "of y"
        assert outcome(opened, "SELECT sum(q.x) FROM (SELECT x + 1 AS x FROM people) q") == "answered"
        assert opened.sql("SHOW sdc_sequence", user="ann").to_pylist() == [other], "their number is added"
        assert outcome(opened, "SELECT sum(v.x) FROM people JOIN (VALUES (1, 2)) v(k, x) ON a = k") != "answered"
